//! A driver that takes one stream through its filters in Envoy's order.

use crate::attribute::Attribute;
use crate::cell::{FilterCell, Response};
use crate::fake::flow::Flow;
use crate::fake::half::{Half, REQUEST, RESPONSE};
use crate::fake::host::{Call, FakeHost};
use crate::guard::guard;
use crate::http::{
    DownstreamFilter, DownstreamFilterConfig, LocalReply, UpstreamFilter, UpstreamFilterConfig,
};
use crate::op::QueuedCall;
use crate::status::{HeaderMap, LocalReplyStatus};
use crate::{down, up};

/// What the client has received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Response status; `None` before headers.
    pub status: Option<u16>,
    /// Body bytes, error events included.
    pub body: Vec<u8>,
    /// Response trailers.
    pub trailers: Vec<(String, Vec<u8>)>,
    /// The response ended as it should.
    pub ended: bool,
    /// The stream was cut.
    pub cut: bool,
}

/// One stream: a downstream filter, and one upstream filter for each attempt.
///
/// Steps: [`request`](Self::request), [`attempt`](Self::attempt),
/// [`response_headers`](Self::response_headers), [`response_frame`](Self::response_frame), then
/// one of the ends: [`finish`](Self::finish), [`client_abort`](Self::client_abort),
/// [`upstream_reset`](Self::upstream_reset).
pub struct Exchange {
    /// The stream that both filters see.
    pub host: FakeHost,
    /// What came out at the client.
    pub client: Client,
    /// Hooks in the order in which they were called.
    pub hooks: Vec<&'static str>,
    /// Retries that the router has left; 429 and 5xx are retried.
    pub retries: u32,
    down: FilterCell<dyn DownstreamFilter>,
    up: Option<FilterCell<dyn UpstreamFilter>>,
    request: Half,
    up_request: Half,
    up_response: Half,
    response: Half,
    request_body: Vec<u8>,
    /// Entries of `host.calls` that were acted on.
    acted: usize,
    replied: bool,
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange")
            .field("client", &self.client)
            .field("hooks", &self.hooks)
            .finish_non_exhaustive()
    }
}

impl Exchange {
    /// A stream before its first byte; `host` may be scripted.
    pub fn new(config: &dyn DownstreamFilterConfig, mut host: FakeHost) -> Self {
        let made = guard("downstream.new_filter", || config.new_filter(&mut host));
        Self {
            host,
            client: Client::default(),
            hooks: Vec::new(),
            retries: 0,
            down: FilterCell::new(made),
            up: None,
            request: Half::default(),
            up_request: Half::default(),
            up_response: Half::default(),
            response: Half::default(),
            request_body: Vec::new(),
            acted: 0,
            replied: false,
        }
    }

    /// The client's whole request arrives, headers first, then these frames.
    pub fn request(&mut self, headers: &[(&str, &str)], frames: &[&[u8]]) -> Flow {
        self.host.put_headers(HeaderMap::Request, headers);
        let end = frames.is_empty();
        self.hooks.push("downstream.request_headers");
        let status = down::request_headers(&self.down, &mut self.host, end);
        self.request.headers_answered(status, end);
        self.act();
        for (index, frame) in frames.iter().enumerate() {
            if self.is_over() {
                break;
            }
            self.request_frame(frame, index + 1 == frames.len());
        }
        self.flow_of_request()
    }

    fn request_frame(&mut self, frame: &[u8], end: bool) {
        if self
            .request
            .frame_arrives(&mut self.host, REQUEST, frame, end)
        {
            self.hooks.push("downstream.request_body");
            let status = down::request_body(&self.down, &mut self.host, end);
            self.request
                .body_answered(&mut self.host, REQUEST, status, end);
            self.act();
        }
    }

    /// The router starts an attempt; the filter of an earlier one goes first. The request body
    /// reaches the upstream filter as one frame.
    pub fn attempt(&mut self, config: &dyn UpstreamFilterConfig) -> Flow {
        self.destroy_up();
        self.up_request = Half::default();
        self.up_response = Half::default();
        self.host.texts.remove(&Attribute::UpstreamLocalAddress);
        *self
            .host
            .ints
            .entry(Attribute::UpstreamRequestAttemptCount)
            .or_default() += 1;
        self.request_body.append(&mut self.request.out);
        let made = guard("upstream.new_filter", || config.new_filter(&mut self.host));
        let cell = self.up.insert(FilterCell::new(made));
        let end = self.request_body.is_empty();
        self.hooks.push("upstream.request_headers");
        let status = up::request_headers(cell, &mut self.host, end);
        self.up_request.headers_answered(status, end);
        self.act();
        if !end && !self.is_over() {
            let body = self.request_body.clone();
            self.up_request_frame(&body);
        }
        self.flow_of(self.up_request.ended)
    }

    fn up_request_frame(&mut self, body: &[u8]) {
        let half = &mut self.up_request;
        let Some(cell) = &self.up else { return };
        if half.frame_arrives(&mut self.host, REQUEST, body, true) {
            self.hooks.push("upstream.request_body");
            let status = up::request_body(cell, &mut self.host, true);
            half.body_answered(&mut self.host, REQUEST, status, true);
            self.act();
        }
    }

    /// The attempt's connection is there; until then nothing of the request has left.
    pub fn connect(&mut self) {
        let address = b"127.0.0.1:50000".to_vec();
        let key = Attribute::UpstreamLocalAddress;
        self.host.texts.insert(key, address);
    }

    /// What the provider of the current attempt was sent.
    pub fn sent_upstream(&self) -> &[u8] {
        &self.up_request.out
    }

    /// What the downstream filter let through to the router.
    pub fn routed_body(&self) -> &[u8] {
        &self.request.out
    }

    /// The provider's response headers arrive, which takes a connection.
    pub fn response_headers(&mut self, headers: &[(&str, &str)], end: bool) -> Flow {
        self.connect();
        self.host.put_headers(HeaderMap::Response, headers);
        if let Some(cell) = &self.up {
            self.hooks.push("upstream.response_headers");
            let status = up::response_headers(cell, &mut self.host, end);
            self.up_response.headers_answered(status, end);
        } else {
            self.up_response.headers_out = true;
            self.up_response.ended = end;
        }
        self.act();
        if self.up_response.headers_out {
            return self.router_headers(end);
        }
        self.flow_of(false)
    }

    /// Headers reach the router, which retries or passes them on.
    fn router_headers(&mut self, end: bool) -> Flow {
        let status = self.response_status();
        if self.retries > 0 && (status == 429 || status >= 500) {
            self.retries -= 1;
            self.destroy_up();
            return Flow::Retry;
        }
        self.down_headers(end);
        self.flow_of_response()
    }

    fn down_headers(&mut self, end: bool) {
        self.hooks.push("downstream.response_headers");
        let status = down::response_headers(&self.down, &mut self.host, end);
        self.response.headers_answered(status, end);
        if end {
            // What a hook appends to headers without a body becomes their body.
            let body = self.host.take_body(RESPONSE.buffered);
            self.response.out.extend(body);
        }
        self.deliver();
        self.act();
    }

    /// A frame of the provider's response arrives.
    pub fn response_frame(&mut self, frame: &[u8], end: bool) -> Flow {
        if self.is_over() {
            return Flow::Over;
        }
        let had_headers = self.up_response.headers_out;
        if let Some(cell) = &self.up {
            let half = &mut self.up_response;
            if half.frame_arrives(&mut self.host, RESPONSE, frame, end) {
                self.hooks.push("upstream.response_body");
                let status = up::response_body(cell, &mut self.host, end);
                half.body_answered(&mut self.host, RESPONSE, status, end);
                self.act();
            }
        } else {
            self.up_response.out.extend_from_slice(frame);
            self.up_response.ended = end;
        }
        if !self.up_response.headers_out {
            return self.flow_of(false);
        }
        if !had_headers && self.router_headers(false) == Flow::Retry {
            return Flow::Retry;
        }
        let out = std::mem::take(&mut self.up_response.out);
        if !self.is_over() {
            self.down_frame(&out, self.up_response.ended);
        }
        self.flow_of_response()
    }

    fn down_frame(&mut self, frame: &[u8], end: bool) {
        let half = &mut self.response;
        if half.frame_arrives(&mut self.host, RESPONSE, frame, end) {
            self.hooks.push("downstream.response_body");
            let status = down::response_body(&self.down, &mut self.host, end);
            half.body_answered(&mut self.host, RESPONSE, status, end);
            self.deliver();
            self.act();
        }
    }

    /// A commit of the downstream filter's scheduler arrives.
    pub fn scheduled(&mut self, event_id: u64) {
        self.hooks.push("downstream.scheduled");
        down::scheduled(&self.down, &mut self.host, event_id);
        self.act();
    }

    /// A commit of the upstream filter's scheduler arrives.
    pub fn scheduled_upstream(&mut self, event_id: u64) {
        if let Some(cell) = &self.up {
            self.hooks.push("upstream.scheduled");
            up::scheduled(cell, &mut self.host, event_id);
            self.act();
        }
    }

    /// The stream ends as it is: completion, then the last attempt's filter, then the other.
    pub fn finish(&mut self) {
        self.complete();
        self.destroy_up();
        self.destroy_down();
    }

    /// The client goes away: the downstream filter is destroyed before the upstream one.
    pub fn client_abort(&mut self) {
        let details = b"downstream_remote_disconnect".to_vec();
        let (key, flags) = (Attribute::ResponseCodeDetails, Attribute::ResponseFlags);
        self.host.texts.insert(key, details);
        self.host.ints.insert(flags, 0x4000);
        self.client.cut = true;
        self.complete();
        self.destroy_down();
        self.destroy_up();
    }

    /// The provider's connection breaks, or was never made: retried before response headers if
    /// there are retries, otherwise the end.
    pub fn upstream_reset(&mut self) -> Flow {
        let is_connected = self
            .host
            .texts
            .contains_key(&Attribute::UpstreamLocalAddress);
        if self.down.response() == Response::Started {
            self.local_reply(502, "upstream_reset_after_response_started{protocol_error}");
            self.client.cut = true;
        } else if self.retries > 0 {
            self.retries -= 1;
            self.destroy_up();
            return Flow::Retry;
        } else if is_connected {
            let details = "upstream_reset_before_response_started{connection_termination}";
            self.reply(503, b"upstream connect error", details, true);
        } else {
            let details = "upstream_reset_before_response_started{remote_connection_failure}";
            self.reply(503, b"upstream connect error", details, true);
        }
        self.finish();
        Flow::Over
    }

    /// Acts on the queued calls that were made since the last time.
    fn act(&mut self) {
        while let Some(call) = self.host.calls.get(self.acted).cloned() {
            self.acted += 1;
            let Call::Made(call) = call else { continue };
            match call {
                QueuedCall::SendResponse {
                    status,
                    body,
                    details,
                    ..
                } => {
                    let upstream = self
                        .hooks
                        .last()
                        .is_some_and(|hook| hook.starts_with("upstream"));
                    self.reply(status, &body, &details, upstream);
                }
                QueuedCall::ResetStream { .. } => self.client.cut = true,
                QueuedCall::ContinueDecoding => self.resume_request(),
                QueuedCall::ContinueEncoding => {
                    self.response.release();
                    self.deliver();
                }
                QueuedCall::SendErrorEvent(bytes) => self.client.body.extend(bytes),
                QueuedCall::SendResponseTrailers(trailers) => {
                    self.response.release();
                    self.deliver();
                    self.client.trailers = trailers;
                    self.client.ended = true;
                }
                QueuedCall::ClearRouteCache | QueuedCall::ClearRouteClusterCache => {}
            }
        }
    }

    /// A reply in the provider's place; the filter that sent it does not see its response hooks.
    fn reply(&mut self, status: u16, body: &[u8], details: &str, seen: bool) {
        if std::mem::replace(&mut self.replied, true) {
            return;
        }
        self.local_reply(u32::from(status), details);
        if seen {
            let text = status.to_string();
            self.host
                .put_headers(HeaderMap::Response, &[(":status", &text)]);
            self.down_headers(false);
            self.down_frame(body, true);
        } else {
            self.client.body.extend_from_slice(body);
            self.client.status = Some(status);
            self.client.ended = true;
        }
    }

    fn local_reply(&mut self, status: u32, details: &str) -> LocalReplyStatus {
        let key = Attribute::ResponseCodeDetails;
        self.host.texts.insert(key, details.as_bytes().to_vec());
        self.hooks.push("downstream.local_reply");
        let reply = LocalReply {
            status,
            details: details.as_bytes(),
            reset_imminent: false,
        };
        let answer = down::local_reply(&self.down, &mut self.host, reply);
        self.act();
        answer
    }

    /// Resumes whichever side of the request is held: the upstream one when an attempt runs.
    fn resume_request(&mut self) {
        if self.up.is_some() {
            let body = std::mem::take(&mut self.up_request.held);
            if std::mem::take(&mut self.up_request.stopped_all) {
                self.up_request.headers_out = true;
                return self.up_request_frame(&body);
            }
            self.up_request.held = body;
            return self.up_request.release();
        }
        if !std::mem::take(&mut self.request.stopped_all) {
            return self.request.release();
        }
        self.request.headers_out = true;
        let (body, end) = (
            std::mem::take(&mut self.request.held),
            self.request.end_seen,
        );
        if body.is_empty() {
            return self.request.release();
        }
        // Envoy replays what it buffered meanwhile.
        self.host.replayed_request = true;
        self.request_frame(&body, end);
        self.host.replayed_request = false;
    }

    /// Moves what the downstream filter let through to the client.
    fn deliver(&mut self) {
        if !self.response.headers_out {
            return;
        }
        if self.client.status.is_none() {
            self.client.status = Some(self.response_status());
        }
        self.client.body.append(&mut self.response.out);
        self.client.ended |= self.response.ended;
    }

    fn response_status(&self) -> u16 {
        let status = self.host.header_text(HeaderMap::Response, ":status");
        status.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    fn complete(&mut self) {
        let code = self.client.status.unwrap_or(0);
        self.host.ints.insert(Attribute::ResponseCode, code.into());
        self.hooks.push("downstream.stream_complete");
        down::stream_complete(&self.down, &mut self.host);
    }

    fn destroy_up(&mut self) {
        if let Some(cell) = self.up.take() {
            self.hooks.push("upstream.destroy");
            cell.destroy("upstream.destroy");
        }
    }

    fn destroy_down(&mut self) {
        self.hooks.push("downstream.destroy");
        if let Some(scheduler) = self.host.scheduler.take() {
            scheduler.close();
        }
        self.down.destroy("downstream.destroy");
    }

    fn is_over(&self) -> bool {
        self.client.cut || self.replied
    }

    fn flow_of(&self, passed: bool) -> Flow {
        match (self.is_over(), passed) {
            (true, _) => Flow::Over,
            (false, true) => Flow::Passed,
            (false, false) => Flow::Held,
        }
    }

    fn flow_of_request(&self) -> Flow {
        self.flow_of(self.request.ended)
    }

    fn flow_of_response(&self) -> Flow {
        self.flow_of(self.response.headers_out && self.response.held.is_empty())
    }
}
