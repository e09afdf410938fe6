//! ① The downstream filter: one per client stream.
//!
//! Reads the request, lets the exchange decide, names it to Envoy's router, and settles it in the
//! one hook that always comes.

use filter_core::exchange::{Begin, Exchange, Head, LocalReply as Answer, Reply, Step, StreamEnd};
use filter_envoy_abi::{
    Attribute, Body, BodyStatus, DownstreamFilter, DownstreamFilterConfig, DownstreamHost,
    HeaderMap, HeadersStatus, HttpHost, LocalReply, LocalReplyHost, LocalReplyStatus,
    ScheduledHost, TrailersStatus,
};

use crate::{
    clock::SystemClock,
    credit,
    exchanges::{self, Handle},
    host::{Sink, reply_headers},
    open_table, published, upstream,
    waiting::{self, Wait},
    worker::{self, HELD},
};

/// Room above the body limit, so that the refusal is ours and not Envoy's plain 413.
const BUFFER_SLACK_BYTES: u64 = 64 * 1024;

/// The event by which a stream that was cut comes to its end; others are [`waiting`]'s.
const CUT: u64 = 2;

/// Makes the downstream filters.
pub(crate) struct DownstreamConfig;

impl DownstreamFilterConfig for DownstreamConfig {
    fn new_filter(&self, host: &mut dyn HttpHost) -> Box<dyn DownstreamFilter> {
        worker::enter(host.worker_index());
        Box::new(Downstream {
            handle: None,
            wait: None,
            waits_since_us: None,
            is_cut: false,
            replied: false,
            replacement: None,
        })
    }
}

struct Downstream {
    handle: Option<Handle>,
    /// The request is held until there is credit for it.
    wait: Option<Wait>,
    /// When that began, by the monotonic clock.
    waits_since_us: Option<u64>,
    /// The client has got the closing events of a stream whose provider goes on.
    is_cut: bool,
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
        self.handle = exchanges::open(exchange);
        worker::note_open_count();
        let status = match step {
            Step::NeedBody { .. } if end_of_stream => self.decide(host, &[]),
            Step::NeedBody { limit_bytes } => {
                let wanted = limit_bytes.saturating_add(BUFFER_SLACK_BYTES);
                if host.buffer_limit() < wanted {
                    host.set_buffer_limit(wanted);
                }
                return HeadersStatus::StopIteration;
            }
            step => self.follow(host, step),
        };
        match status {
            BodyStatus::Continue => HeadersStatus::Continue,
            _ => HeadersStatus::StopIteration,
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
        let missing_body = exchanges::with_open(handle, |open| {
            let exchange = &mut open.exchange;
            exchange.restore_request_head(&mut Sink {
                host,
                map: HeaderMap::Request,
            });
            exchange.edit_client_head(&mut Sink {
                host,
                map: HeaderMap::Response,
            });
            let missing_body = exchange.take_missing_body();
            open_table::note(open);
            missing_body
        });
        if let Some(reply) = &self.replacement {
            replace_head(host, reply);
        }
        if end_of_stream {
            let replacement = self.replacement.take().map(|reply| reply.body);
            if let Some(body) = replacement.or(missing_body.flatten()) {
                add_body(host, &body);
            }
        }
        HeadersStatus::Continue
    }

    fn on_response_body(&mut self, host: &mut dyn DownstreamHost, end: bool) -> BodyStatus {
        if let Some(reply) = self.replacement.take() {
            host.replace_response_body(&reply.body);
        }
        let is_cut = |handle| exchanges::with(handle, |exchange| exchange.is_cut());
        if !end && !self.is_cut && self.handle.and_then(is_cut) == Some(true) {
            self.is_cut = true;
            // The closing events go first: what is called from here would overtake them.
            host.new_scheduler().commit(CUT);
        }
        BodyStatus::Continue
    }

    fn on_local_reply(
        &mut self,
        host: &mut dyn LocalReplyHost,
        reply: LocalReply<'_>,
    ) -> LocalReplyStatus {
        let status = u16::try_from(reply.status).unwrap_or(500);
        let is_connected = host.attribute_str(upstream::CONNECTED).is_some();
        let answer = self.handle.and_then(|handle| {
            exchanges::with(handle, |exchange| {
                if !is_connected {
                    exchange.on_unconnected();
                }
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

    fn on_scheduled(&mut self, host: &mut dyn ScheduledHost, event_id: u64) {
        if event_id == CUT {
            // Ends the stream, and with it the attempt: the provider's connection is closed.
            return host.send_response_trailers(&[]);
        }
        if self.wait.take().is_none() {
            return;
        }
        let step = self
            .handle
            .and_then(|handle| exchanges::with(handle, |e| e.on_credit(&SystemClock)));
        let Some(step) = step.flatten() else { return };
        if self.follow(host, step) == BodyStatus::Continue {
            host.continue_decoding();
        }
    }

    fn on_stream_complete(&mut self, host: &mut dyn HttpHost) {
        self.end_wait("gone");
        let Some(handle) = self.handle.take() else {
            return;
        };
        let Some(mut open) = exchanges::close(handle) else {
            return;
        };
        let exchange = &mut open.exchange;
        if host.attribute_str(upstream::CONNECTED).is_none() {
            exchange.on_unconnected();
        }
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
            worker::settle(&mut open, &end);
        }
        worker::with_log(|entries| {
            host.set_metadata_strings(exchanges::METADATA_NAMESPACE, entries);
        });
    }
}

impl Drop for Downstream {
    /// Settles what `on_stream_complete` did not: after a panic that hook is left out, and the
    /// client gets a 500 if it has no head yet.
    fn drop(&mut self) {
        let Some(mut open) = self.handle.take().and_then(exchanges::close) else {
            return;
        };
        let end = StreamEnd {
            response_code: open.exchange.client_status().unwrap_or(500).into(),
            details: b"",
            flags: 0,
            shutdown: worker::is_shutting_down(),
        };
        worker::settle(&mut open, &end);
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
        step.map_or(BodyStatus::Continue, |step| self.follow(host, step))
    }

    /// Does what the exchange says of a request that is whole.
    fn follow(&mut self, host: &mut dyn DownstreamHost, mut step: Step) -> BodyStatus {
        if let (Step::Wait { .. }, Some(handle)) = (&step, self.handle) {
            let alarm = waiting::alarm(host.new_scheduler());
            let waits = exchanges::with(handle, |exchange| {
                let step = exchange.wait(alarm, &SystemClock);
                (step, exchange.waits_until_us())
            });
            if let Some((after, until_us)) = waits {
                step = after;
                self.wait = until_us.map(|until_us| Wait::until(until_us, host.new_scheduler()));
                self.waits_since_us
                    .get_or_insert_with(crate::clock::mono_us);
            }
        }
        match step {
            Step::Forward | Step::NeedBody { .. } => {
                self.end_wait("forwarded");
                self.forward(host);
                BodyStatus::Continue
            }
            Step::Wait { .. } => BodyStatus::StopIterationAndBuffer,
            Step::Reply(reply) => {
                self.end_wait("refused");
                self.reply(host, &reply)
            }
        }
    }

    /// Counts a wait, if there was one.
    fn end_wait(&mut self, outcome: &'static str) {
        self.wait = None;
        if let Some(since_us) = self.waits_since_us.take() {
            worker::note_wait(outcome, crate::clock::mono_us().saturating_sub(since_us));
        }
    }

    /// Hands the request to the router under the exchange's handle.
    fn forward(&self, host: &mut dyn DownstreamHost) {
        let Some(handle) = self.handle else { return };
        let retries = exchanges::with_open(handle, |open| {
            open_table::admit(open);
            let exchange = &mut open.exchange;
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

fn replace_head(host: &mut dyn DownstreamHost, reply: &Reply) {
    let status = reply.status.to_string();
    let length = reply.body.len().to_string();
    host.set_header(HeaderMap::Response, ":status", status.as_bytes());
    host.set_header(HeaderMap::Response, "content-length", length.as_bytes());
    for (name, value) in reply_headers(reply) {
        host.set_header(HeaderMap::Response, name, value);
    }
}

/// Gives a body to a head that had none. No body hook is called for it.
fn add_body(host: &mut dyn DownstreamHost, body: &[u8]) {
    let is_added = host.append_body(Body::BufferedResponse, body);
    // The client waits for as many bytes as the length says.
    let length = if is_added { body.len() } else { 0 };
    host.set_header(
        HeaderMap::Response,
        "content-length",
        length.to_string().as_bytes(),
    );
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
        limits: credit::limits(),
        health: worker::health(),
    };
    Exchange::begin(
        &begin,
        &Head {
            headers: &headers,
            end_of_stream,
        },
    )
}

#[cfg(test)]
mod tests;
