//! The hooks of an upstream filter, for any host.
//!
//! A filter that panicked answers 500 while response headers are in its hands; afterwards it
//! lets no provider byte through and has the downstream filter cut the stream. It never resets
//! the stream itself: Envoy would not survive that.

use crate::cell::{FAILURE_BODY, FilterCell, Ran, Response, Stream, failure_reply};
use crate::cut;
use crate::http::UpstreamFilter;
use crate::log::log;
use crate::op::QueuedCall;
use crate::status::{Body, BodyStatus, HeaderMap, HeadersStatus, LogLevel, TrailersStatus};

type Cell = FilterCell<dyn UpstreamFilter>;

pub(crate) fn request_headers<S: Stream>(cell: &Cell, host: &mut S, end: bool) -> HeadersStatus {
    #[cfg(feature = "fault-injection")]
    cell.arm(crate::fault::asked_by_metadata(host));
    run_request(
        cell,
        host,
        "upstream.request_headers",
        HeadersStatus::StopIteration,
        |filter, host| filter.on_request_headers(host, end),
    )
}

pub(crate) fn request_body<S: Stream>(cell: &Cell, host: &mut S, end: bool) -> BodyStatus {
    run_request(
        cell,
        host,
        "upstream.request_body",
        BodyStatus::StopIterationNoBuffer,
        |filter, host| filter.on_request_body(host, end),
    )
}

pub(crate) fn request_trailers<S: Stream>(cell: &Cell, host: &mut S) -> TrailersStatus {
    run_request(
        cell,
        host,
        "upstream.request_trailers",
        TrailersStatus::StopIteration,
        |filter, host| filter.on_request_trailers(host),
    )
}

/// Runs a request hook of the filter, then the calls that it queued. A broken filter answers the
/// client 500, the first time only, and then stops the request with the answer given.
fn run_request<S: Stream, R: Default>(
    cell: &Cell,
    host: &mut S,
    hook: &'static str,
    stop: R,
    body: impl FnOnce(&mut (dyn UpstreamFilter + 'static), &mut S) -> R,
) -> R {
    let status = match cell.run(host, hook, body) {
        Ran::Answered(status) => status,
        Ran::Broken if fail_request(cell, host) => return stop,
        Ran::Busy | Ran::Broken => return R::default(),
    };
    make_calls(cell, host);
    status
}

pub(crate) fn response_headers<S: Stream>(cell: &Cell, host: &mut S, end: bool) -> HeadersStatus {
    let ran = cell.run(host, "upstream.response_headers", |filter, host| {
        filter.on_response_headers(host, end)
    });
    let status = match ran {
        Ran::Answered(status) => status,
        Ran::Broken => {
            replace_response(cell, host);
            HeadersStatus::Continue
        }
        Ran::Busy => HeadersStatus::Continue,
    };
    cell.note_response_headers(status);
    status
}

pub(crate) fn response_body<S: Stream>(cell: &Cell, host: &mut S, end: bool) -> BodyStatus {
    let held = cell.response() == Response::Held;
    let ran = cell.run(host, "upstream.response_body", |filter, host| {
        filter.on_response_body(host, end)
    });
    let status = match ran {
        Ran::Answered(status) => status,
        Ran::Broken => {
            if held {
                replace_response(cell, host);
            }
            stop_forwarding(cell, host);
            BodyStatus::Continue
        }
        Ran::Busy => BodyStatus::Continue,
    };
    cell.note_response_body(status);
    status
}

pub(crate) fn response_trailers<S: Stream>(cell: &Cell, host: &mut S) -> TrailersStatus {
    let held = cell.response() == Response::Held;
    let ran = cell.run(host, "upstream.response_trailers", |filter, host| {
        filter.on_response_trailers(host)
    });
    match ran {
        Ran::Answered(status) => status,
        Ran::Broken => {
            if held {
                replace_response(cell, host);
            }
            give_up(cell, host, Body::BufferedResponse);
            TrailersStatus::Continue
        }
        Ran::Busy => TrailersStatus::Continue,
    }
}

pub(crate) fn scheduled<S: Stream>(cell: &Cell, host: &mut S, event_id: u64) {
    let ran = cell.run(host, "upstream.scheduled", |filter, host| {
        filter.on_scheduled(host, event_id);
    });
    match ran {
        Ran::Answered(()) => make_calls(cell, host),
        Ran::Busy => {}
        Ran::Broken => match cell.response() {
            Response::Awaited => {
                fail_request(cell, host);
            }
            // Released so that the body hooks, or the end, find the broken filter.
            Response::Held => {
                replace_response(cell, host);
                host.make_call(QueuedCall::ContinueEncoding);
            }
            Response::Started => {}
        },
    }
}

/// Makes queued calls, but no reply once the provider has answered: Envoy can not take it then.
fn make_calls<S: Stream>(cell: &Cell, host: &mut S) {
    cell.make_calls(host, |call| {
        let reply = matches!(call, QueuedCall::SendResponse { .. });
        let refused = reply && cell.response() != Response::Awaited;
        if refused {
            log(
                LogLevel::Error,
                "an upstream filter replied after its response had begun; ignored",
            );
        }
        !refused
    });
}

/// Replies 500 unless the client already got its answer; true when the caller must stop.
fn fail_request<S: Stream>(cell: &Cell, host: &mut S) -> bool {
    let first = cell.answer_once();
    if first {
        host.make_call(failure_reply());
    }
    first
}

/// Turns response headers in hand into those of a 500; the router may retry it.
fn replace_response<S: Stream>(cell: &Cell, host: &mut S) {
    if !cell.answer_once() {
        return;
    }
    cell.owe_failure_body();
    host.set_header(HeaderMap::Response, ":status", b"500");
    host.set_header(HeaderMap::Response, "content-type", b"application/json");
    host.remove_header(HeaderMap::Response, "content-length");
    host.remove_header(HeaderMap::Response, "content-encoding");
    host.drain_body(
        Body::BufferedResponse,
        host.body_size(Body::BufferedResponse),
    );
}

/// Drops the provider's frame; the failure's own body, or the cut, takes its place once.
fn stop_forwarding<S: Stream>(cell: &Cell, host: &mut S) {
    host.drain_body(
        Body::ReceivedResponse,
        host.body_size(Body::ReceivedResponse),
    );
    give_up(cell, host, Body::ReceivedResponse);
}

/// Ends the response once: with the failure's body in `place` where its headers are those of a
/// failure, else with a cut.
fn give_up<S: Stream>(cell: &Cell, host: &mut S, place: Body) {
    if cell.take_failure_body() {
        host.append_body(place, FAILURE_BODY);
    } else if cell.answer_once() {
        cut::ask(host);
    }
}
