//! ① The downstream filter: one per client stream.
//!
//! Reads the request, lets the exchange decide, names it to Envoy's router, and settles it in the
//! one hook that always comes.

use filter_core::exchange::{Begin, Exchange, Head, LocalReply as Answer, Reply, Step, StreamEnd};
use filter_envoy_abi::{
    Attribute, Body, BodyStatus, DownstreamFilter, DownstreamFilterConfig, DownstreamHost,
    HeaderMap, HeadersStatus, HttpHost, LocalReply, LocalReplyHost, LocalReplyStatus,
    TrailersStatus,
};

use crate::{
    clock::SystemClock,
    exchanges::{self, Handle},
    host::{Sink, reply_headers},
    published,
    worker::{self, HELD},
};

/// Room above the body limit, so that the refusal is ours and not Envoy's plain 413.
const BUFFER_SLACK_BYTES: u64 = 64 * 1024;

/// Makes the downstream filters.
pub(crate) struct DownstreamConfig;

impl DownstreamFilterConfig for DownstreamConfig {
    fn new_filter(&self, host: &mut dyn HttpHost) -> Box<dyn DownstreamFilter> {
        worker::enter(host.worker_index());
        Box::new(Downstream {
            handle: None,
            replied: false,
            replacement: None,
        })
    }
}

struct Downstream {
    handle: Option<Handle>,
    /// We have replied: what still arrives of the request is dropped.
    replied: bool,
    /// What stands in for a reply of Envoy's own.
    replacement: Option<Reply>,
}

impl DownstreamFilter for Downstream {
    fn on_request_headers(
        &mut self,
        host: &mut dyn DownstreamHost,
        end_of_stream: bool,
    ) -> HeadersStatus {
        let (exchange, step) = begin(host, end_of_stream);
        exchange.edit_request_head(&mut Sink {
            host,
            map: HeaderMap::Request,
        });
        self.handle = exchanges::open(Box::new(exchange));
        worker::note_open_count();
        match step {
            Step::NeedBody { .. } if end_of_stream => match self.decide(host, &[]) {
                BodyStatus::Continue => HeadersStatus::Continue,
                _ => HeadersStatus::StopIteration,
            },
            Step::NeedBody { limit_bytes } => {
                let wanted = limit_bytes.saturating_add(BUFFER_SLACK_BYTES);
                if host.buffer_limit() < wanted {
                    host.set_buffer_limit(wanted);
                }
                HeadersStatus::StopIteration
            }
            Step::Forward => {
                self.forward(host);
                HeadersStatus::Continue
            }
            Step::Reply(reply) => {
                self.reply(host, &reply);
                HeadersStatus::StopIteration
            }
        }
    }

    fn on_request_body(
        &mut self,
        host: &mut dyn DownstreamHost,
        end_of_stream: bool,
    ) -> BodyStatus {
        if self.replied {
            return BodyStatus::StopIterationNoBuffer;
        }
        if !end_of_stream {
            return self.hold_body(host);
        }
        self.decide_whole_body(host)
    }

    fn on_request_trailers(&mut self, host: &mut dyn DownstreamHost) -> TrailersStatus {
        if self.replied {
            return TrailersStatus::StopIteration;
        }
        match self.decide_whole_body(host) {
            BodyStatus::Continue => TrailersStatus::Continue,
            _ => TrailersStatus::StopIteration,
        }
    }

    fn on_response_headers(
        &mut self,
        host: &mut dyn DownstreamHost,
        end_of_stream: bool,
    ) -> HeadersStatus {
        let Some(handle) = self.handle else {
            return HeadersStatus::Continue;
        };
        exchanges::with(handle, |exchange| {
            exchange.restore_request_head(&mut Sink {
                host,
                map: HeaderMap::Request,
            });
            exchange.edit_client_head(&mut Sink {
                host,
                map: HeaderMap::Response,
            });
        });
        if let Some(reply) = &self.replacement {
            // A reply of Envoy's without a body has no place for ours: only its head is replaced,
            // and its length must say so, or the client waits for bytes that never come.
            let body_len = if end_of_stream { 0 } else { reply.body.len() };
            let length = body_len.to_string();
            host.set_header(
                HeaderMap::Response,
                ":status",
                reply.status.to_string().as_bytes(),
            );
            host.set_header(HeaderMap::Response, "content-length", length.as_bytes());
            for (name, value) in reply_headers(reply) {
                host.set_header(HeaderMap::Response, name, value);
            }
        }
        HeadersStatus::Continue
    }

    fn on_response_body(&mut self, host: &mut dyn DownstreamHost, _end: bool) -> BodyStatus {
        if let Some(reply) = self.replacement.take() {
            host.replace_response_body(&reply.body);
        }
        BodyStatus::Continue
    }

    fn on_local_reply(
        &mut self,
        host: &mut dyn LocalReplyHost,
        reply: LocalReply<'_>,
    ) -> LocalReplyStatus {
        let status = u16::try_from(reply.status).unwrap_or(500);
        let answer = self.handle.and_then(|handle| {
            exchanges::with(handle, |exchange| {
                exchange.on_local_reply(status, reply.details)
            })
        });
        match answer {
            Some(Answer::Event(event)) => {
                host.send_error_event(&event);
            }
            Some(Answer::Replace(replacement)) if !host.response_started() => {
                self.replacement = Some(replacement);
            }
            _ => {}
        }
        LocalReplyStatus::Continue
    }

    fn on_stream_complete(&mut self, host: &mut dyn HttpHost) {
        let Some(handle) = self.handle.take() else {
            return;
        };
        let Some(mut exchange) = exchanges::close(handle) else {
            return;
        };
        exchange.restore_request_head(&mut Sink {
            host,
            map: HeaderMap::Request,
        });
        {
            let code = host.attribute_int(Attribute::ResponseCode).unwrap_or(0);
            let end = StreamEnd {
                response_code: u32::try_from(code).unwrap_or(0),
                details: host
                    .attribute_str(Attribute::ResponseCodeDetails)
                    .unwrap_or_default(),
                flags: host.attribute_int(Attribute::ResponseFlags).unwrap_or(0),
                shutdown: worker::is_shutting_down(),
            };
            worker::settle(&mut exchange, &end);
        }
        worker::with_log(|entries| {
            host.set_metadata_strings(exchanges::METADATA_NAMESPACE, entries);
        });
    }
}

impl Drop for Downstream {
    /// Settles what `on_stream_complete` did not: after a panic that hook is left out.
    fn drop(&mut self) {
        let Some(mut exchange) = self.handle.take().and_then(exchanges::close) else {
            return;
        };
        let end = StreamEnd {
            response_code: 0,
            details: b"",
            flags: 0,
            shutdown: worker::is_shutting_down(),
        };
        worker::settle(&mut exchange, &end);
    }
}

impl Downstream {
    /// Counts what is held so far and holds more of it, up to the caps.
    fn hold_body(&mut self, host: &mut dyn DownstreamHost) -> BodyStatus {
        let total = host.body_size(Body::BufferedRequest) + host.body_size(Body::ReceivedRequest);
        match self.count_body(total) {
            None => BodyStatus::StopIterationAndBuffer,
            Some(reply) => self.reply(host, &reply),
        }
    }

    fn count_body(&self, total: usize) -> Option<Reply> {
        let total = u64::try_from(total).unwrap_or(u64::MAX);
        exchanges::with(self.handle?, |exchange| exchange.on_request_bytes(total)).flatten()
    }

    fn decide_whole_body(&mut self, host: &mut dyn DownstreamHost) -> BodyStatus {
        let mut whole = Vec::new();
        host.copy_request_body(&mut whole);
        match self.count_body(whole.len()) {
            None => self.decide(host, &whole),
            Some(reply) => self.reply(host, &reply),
        }
    }

    fn decide(&mut self, host: &mut dyn DownstreamHost, body: &[u8]) -> BodyStatus {
        let step = self.handle.and_then(|h| {
            exchanges::with(h, |exchange| exchange.on_request_body(body, &SystemClock))
        });
        match step {
            Some(Step::Forward | Step::NeedBody { .. }) => {
                self.forward(host);
                BodyStatus::Continue
            }
            Some(Step::Reply(reply)) => self.reply(host, &reply),
            None => BodyStatus::Continue,
        }
    }

    /// Hands the request to the router under the exchange's handle.
    fn forward(&self, host: &mut dyn DownstreamHost) {
        let Some(handle) = self.handle else { return };
        let retries = exchanges::with(handle, |exchange| {
            exchange.edit_forward_head(&mut Sink {
                host,
                map: HeaderMap::Request,
            });
            exchange.retries()
        });
        let encoded = handle.encode();
        host.set_header(HeaderMap::Request, exchanges::HEADER, &encoded);
        if retries.unwrap_or(0) > 0 {
            host.set_metadata_string(
                exchanges::METADATA_NAMESPACE,
                exchanges::METADATA_KEY,
                &encoded,
            );
        }
        host.clear_route_cluster_cache();
    }

    fn reply(&mut self, host: &mut dyn DownstreamHost, reply: &Reply) -> BodyStatus {
        self.replied = true;
        host.send_response(
            reply.status,
            &reply_headers(reply),
            &reply.body,
            reply.details,
        );
        BodyStatus::StopIterationNoBuffer
    }
}

fn begin(host: &dyn DownstreamHost, end_of_stream: bool) -> (Exchange, Step) {
    let headers = host.headers(HeaderMap::Request);
    let headers: Vec<(&[u8], &[u8])> = headers.iter().collect();
    let config = published::current();
    let begin = Begin {
        config: &config,
        clock: &SystemClock,
        entropy: worker::entropy(),
        node: published::node_state(crate::clock::mono_us()),
        held: &HELD,
    };
    Exchange::begin(
        &begin,
        &Head {
            headers: &headers,
            end_of_stream,
        },
    )
}
