//! ③ The upstream filter: one per attempt, in every provider's cluster and in the stop cluster.
//!
//! Turns the client's request into the provider's, and meters the provider's own bytes.

use filter_core::exchange::{AttemptStep, Exchange, Reply, ResponseStep};
use filter_envoy_abi::{
    Attribute, Body, BodyStatus, HeaderMap, HeadersStatus, HttpHost, MetadataSource,
    TrailersStatus, UpstreamFilter, UpstreamFilterConfig, UpstreamHost,
};

use crate::{
    clock::SystemClock,
    exchanges::{self, Handle, Open},
    host::{Sink, reply_headers},
    open_table,
};

/// What tells that an attempt has had a connection, for the hooks that see an attempt fail.
///
/// This filter cannot tell: its request hooks run while the connection is still being made, and a
/// failed attempt only drops it. Measured on Envoy 1.40, where each attempt starts without these
/// attributes, and the specifier, asked for the next attempt, still reads those of the one before:
///
/// | attempt | local address | transport failure | response code details in the downstream filter |
/// |---|---|---|---|
/// | port refuses | none | `delayed connect error: …` | `upstream_reset_before_response_started{remote_connection_failure…` |
/// | port takes nothing; TLS never finishes | none | none | `…{connection_timeout}` |
/// | client leaves while connecting | none | none | `downstream_remote_disconnect` |
/// | reset after the request went out | an address | none | `…{connection_termination}` |
/// | per-try timeout after the request went out | an address | none | `upstream_per_try_timeout` |
/// | answered | an address | none | `via_upstream` |
///
/// The remote address is there in every row, the flags say `UF` in the first two, and in the
/// specifier a failed attempt has set neither details nor flags. So the local address alone tells
/// everywhere, and no byte of a request leaves before it is there.
pub(crate) const CONNECTED: Attribute = Attribute::UpstreamLocalAddress;

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
    /// Head and body of the request are held until they are whole, then rewritten.
    rewrites: bool,
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
        let step = self.with_open(|open| {
            let step = open.exchange.begin_attempt(&mut Sink {
                host,
                map: HeaderMap::Request,
            });
            if !matches!(step, AttemptStep::Reply(_)) {
                open_table::begin_attempt(open);
            }
            step
        });
        host.remove_header(HeaderMap::Request, exchanges::HEADER);
        match step {
            Some(AttemptStep::Pass) => HeadersStatus::Continue,
            Some(AttemptStep::Rewrite) => {
                self.rewrites = true;
                HeadersStatus::StopIteration
            }
            Some(AttemptStep::Reply(reply)) => {
                send(host, &reply);
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
        if self.rewrites && (!end_of_stream || !self.rewrite(host)) {
            return BodyStatus::StopIterationAndBuffer;
        }
        if end_of_stream {
            self.note(Exchange::on_request_sent);
        }
        BodyStatus::Continue
    }

    fn on_request_trailers(&mut self, host: &mut dyn UpstreamHost) -> TrailersStatus {
        if self.rewrites && !self.rewrite(host) {
            return TrailersStatus::StopIteration;
        }
        self.note(Exchange::on_request_sent);
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
            self.note(|exchange| exchange.on_response_head(&headers, end_of_stream, &SystemClock))
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
        self.note(|exchange| exchange.on_response_end(&mut out, &SystemClock));
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

    fn with_open<R>(&self, f: impl FnOnce(&mut Open) -> R) -> Option<R> {
        exchanges::with_open(self.handle?, f)
    }

    /// Runs `f`, and notes how far the exchange has come by it before anyone else sees that.
    fn note<R>(&self, f: impl FnOnce(&mut Exchange) -> R) -> Option<R> {
        self.with_open(|open| {
            let outcome = f(&mut open.exchange);
            open_table::note(open);
            outcome
        })
    }

    /// True when the request may go on; false when it was answered.
    fn rewrite(&mut self, host: &mut dyn UpstreamHost) -> bool {
        self.rewrites = false;
        let mut body = Vec::new();
        host.copy_request_body(&mut body);
        let rewritten = self.with(|exchange| {
            let map = HeaderMap::Request;
            exchange.rewrite_body(&body, &mut Sink { host, map })
        });
        match rewritten {
            Some(Ok(rewritten)) => host.replace_request_body(&rewritten),
            Some(Err(reply)) => {
                send(host, &reply);
                return false;
            }
            None => {}
        }
        true
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
        let transformed = self.note(|exchange| {
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
            } else {
                exchange.guard(&mut out, &SystemClock);
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

fn send(host: &mut dyn UpstreamHost, reply: &Reply) {
    let headers = reply_headers(reply);
    host.send_response(reply.status, &headers, &reply.body, reply.details);
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
