//! ③ The upstream filter: one per attempt, in every provider's cluster and in the stop cluster.
//!
//! Turns the client's request into the provider's, and meters the provider's own bytes.

use filter_core::exchange::{AttemptStep, Exchange, ResponseStep};
use filter_envoy_abi::{
    Body, BodyStatus, HeaderMap, HeadersStatus, HttpHost, MetadataSource, TrailersStatus,
    UpstreamFilter, UpstreamFilterConfig, UpstreamHost,
};

use crate::{
    clock::SystemClock,
    exchanges::{self, Handle},
    host::{Sink, reply_headers},
};

/// Makes the upstream filters.
pub(crate) struct UpstreamConfig;

impl UpstreamFilterConfig for UpstreamConfig {
    fn new_filter(&self, _host: &mut dyn HttpHost) -> Box<dyn UpstreamFilter> {
        Box::new(Upstream::default())
    }
}

#[derive(Default)]
struct Upstream {
    handle: Option<Handle>,
    /// The request body is held until it is whole, then spliced.
    splices: bool,
    /// Response headers wait for the first content.
    holds_head: bool,
    /// What the client gets for the frames of one hook.
    out: Vec<u8>,
}

impl UpstreamFilter for Upstream {
    fn on_request_headers(
        &mut self,
        host: &mut dyn UpstreamHost,
        _end_of_stream: bool,
    ) -> HeadersStatus {
        self.handle = handle(host);
        let step = self.with(|exchange| {
            exchange.begin_attempt(&mut Sink {
                host,
                map: HeaderMap::Request,
            })
        });
        host.remove_header(HeaderMap::Request, exchanges::HEADER);
        match step {
            Some(AttemptStep::Pass) => HeadersStatus::Continue,
            Some(AttemptStep::Splice) => {
                self.splices = true;
                HeadersStatus::StopIteration
            }
            Some(AttemptStep::Reply(reply)) => {
                host.send_response(
                    reply.status,
                    &reply_headers(&reply),
                    &reply.body,
                    reply.details,
                );
                HeadersStatus::StopIteration
            }
            // Without an exchange nothing may leave: no credential, no route, no meter.
            None => {
                host.send_response(500, &[], b"", "turnpike_no_exchange");
                HeadersStatus::StopIteration
            }
        }
    }

    fn on_request_body(&mut self, host: &mut dyn UpstreamHost, end_of_stream: bool) -> BodyStatus {
        if self.splices {
            if !end_of_stream {
                return BodyStatus::StopIterationAndBuffer;
            }
            self.splice(host);
        }
        if end_of_stream {
            self.with(Exchange::on_request_sent);
        }
        BodyStatus::Continue
    }

    fn on_request_trailers(&mut self, host: &mut dyn UpstreamHost) -> TrailersStatus {
        if self.splices {
            self.splice(host);
        }
        self.with(Exchange::on_request_sent);
        TrailersStatus::Continue
    }

    fn on_response_headers(
        &mut self,
        host: &mut dyn HttpHost,
        end_of_stream: bool,
    ) -> HeadersStatus {
        let step = {
            let headers = host.headers(HeaderMap::Response);
            let headers: Vec<(&[u8], &[u8])> = headers.iter().collect();
            self.with(|exchange| exchange.on_response_head(&headers, end_of_stream, &SystemClock))
        };
        if matches!(step, Some(ResponseStep::Hold)) && !end_of_stream {
            self.holds_head = true;
            return HeadersStatus::StopIteration;
        }
        self.edit_head(host);
        HeadersStatus::Continue
    }

    fn on_response_body(&mut self, host: &mut dyn HttpHost, end_of_stream: bool) -> BodyStatus {
        self.meter(host, end_of_stream);
        if !self.holds_head {
            return BodyStatus::Continue;
        }
        let released = self.with(Exchange::releases_head).unwrap_or(true);
        if !released && !end_of_stream {
            return BodyStatus::StopIterationAndBuffer;
        }
        self.holds_head = false;
        self.edit_head(host);
        BodyStatus::Continue
    }

    fn on_response_trailers(&mut self, host: &mut dyn HttpHost) -> TrailersStatus {
        self.out.clear();
        let mut out = std::mem::take(&mut self.out);
        self.with(|exchange| exchange.on_response_end(&mut out, &SystemClock));
        if !out.is_empty() {
            host.append_body(Body::BufferedResponse, &out);
        }
        self.out = out;
        if self.holds_head {
            self.holds_head = false;
            self.edit_head(host);
        }
        TrailersStatus::Continue
    }
}

impl Upstream {
    fn with<R>(&self, f: impl FnOnce(&mut Exchange) -> R) -> Option<R> {
        exchanges::with(self.handle?, f)
    }

    fn splice(&mut self, host: &mut dyn UpstreamHost) {
        let mut body = Vec::new();
        host.copy_request_body(&mut body);
        if let Some(spliced) = self.with(|exchange| exchange.splice_body(&body)) {
            host.replace_request_body(&spliced);
        }
        self.splices = false;
    }

    fn edit_head(&self, host: &mut dyn HttpHost) {
        self.with(|exchange| {
            exchange.edit_response_head(&mut Sink {
                host,
                map: HeaderMap::Response,
            });
        });
    }

    /// Shows the frames of this hook to the exchange, and puts in their place what it says.
    fn meter(&mut self, host: &mut dyn HttpHost, end_of_stream: bool) {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let transformed = self.with(|exchange| {
            let transforms = exchange.transforms_response();
            for chunk in host.body(Body::ReceivedResponse).iter() {
                if transforms {
                    exchange.transform(chunk, &mut out, &SystemClock);
                } else {
                    exchange.observe(chunk, &SystemClock);
                }
            }
            if end_of_stream {
                exchange.on_response_end(&mut out, &SystemClock);
            }
            transforms
        });
        if transformed == Some(true) {
            let received = host.body_size(Body::ReceivedResponse);
            host.drain_body(Body::ReceivedResponse, received);
        }
        if !out.is_empty() {
            host.append_body(Body::ReceivedResponse, &out);
        }
        self.out = out;
    }
}

/// From the request header; on a retry from metadata, see [`exchanges::METADATA_KEY`].
fn handle(host: &dyn UpstreamHost) -> Option<Handle> {
    host.header(HeaderMap::Request, exchanges::HEADER)
        .or_else(|| {
            host.metadata_string(
                MetadataSource::Dynamic,
                exchanges::METADATA_NAMESPACE,
                exchanges::METADATA_KEY,
            )
        })
        .and_then(Handle::decode)
}
