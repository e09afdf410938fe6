//! The hooks of a downstream filter, for any host.
//!
//! A filter that panicked answers the client once: a 500 while no response headers are out, a
//! cut afterwards. From then on it passes everything on.

use crate::cell::{FAILURE_DETAILS, FilterCell, Ran, Response, Stream, failure_reply};
use crate::cut;
use crate::http::{DownstreamFilter, LocalReply};
use crate::op::QueuedCall;
use crate::selection;
use crate::status::{BodyStatus, HeadersStatus, LocalReplyStatus, TrailersStatus};

type Cell = FilterCell<dyn DownstreamFilter>;

pub(crate) fn request_headers<S: Stream>(cell: &Cell, host: &mut S, end: bool) -> HeadersStatus {
    #[cfg(feature = "fault-injection")]
    cell.arm(crate::fault::asked_by_request(host));
    run(
        cell,
        host,
        "downstream.request_headers",
        (fail_request, HeadersStatus::StopIteration),
        |filter, host| filter.on_request_headers(host, end),
    )
}

pub(crate) fn request_body<S: Stream>(cell: &Cell, host: &mut S, end: bool) -> BodyStatus {
    run(
        cell,
        host,
        "downstream.request_body",
        (fail_request, BodyStatus::StopIterationNoBuffer),
        |filter, host| filter.on_request_body(host, end),
    )
}

pub(crate) fn request_trailers<S: Stream>(cell: &Cell, host: &mut S) -> TrailersStatus {
    run(
        cell,
        host,
        "downstream.request_trailers",
        (fail_request, TrailersStatus::StopIteration),
        |filter, host| filter.on_request_trailers(host),
    )
}

pub(crate) fn response_headers<S: Stream>(cell: &Cell, host: &mut S, end: bool) -> HeadersStatus {
    run(
        cell,
        host,
        "downstream.response_headers",
        // Nothing is out yet: Envoy replaces the provider's response by a reply.
        (fail_request, HeadersStatus::StopIteration),
        |filter, host| {
            let status = filter.on_response_headers(host, end);
            cell.note_response_headers(status);
            status
        },
    )
}

pub(crate) fn response_body<S: Stream>(cell: &Cell, host: &mut S, end: bool) -> BodyStatus {
    if cell.is_sending_event() {
        return BodyStatus::Continue;
    }
    if cut::is_asked(host) && fail_response(cell, host) {
        return BodyStatus::StopIterationNoBuffer;
    }
    run(
        cell,
        host,
        "downstream.response_body",
        (fail_response, BodyStatus::StopIterationNoBuffer),
        |filter, host| {
            let status = filter.on_response_body(host, end);
            cell.note_response_body(status);
            status
        },
    )
}

pub(crate) fn response_trailers<S: Stream>(cell: &Cell, host: &mut S) -> TrailersStatus {
    if cut::is_asked(host) && fail_response(cell, host) {
        return TrailersStatus::StopIteration;
    }
    run(
        cell,
        host,
        "downstream.response_trailers",
        (fail_response, TrailersStatus::StopIteration),
        |filter, host| filter.on_response_trailers(host),
    )
}

/// Runs a hook of the filter, then the calls that it queued. A broken filter, or a specifier that
/// panics in these calls, fails the stream, the first time only, and stops it with the answer given.
fn run<S: Stream, R: Default>(
    cell: &Cell,
    host: &mut S,
    hook: &'static str,
    (fail, stop): (fn(&Cell, &mut S) -> bool, R),
    body: impl FnOnce(&mut (dyn DownstreamFilter + 'static), &mut S) -> R,
) -> R {
    let status = match cell.run(host, hook, body) {
        Ran::Answered(status) => status,
        Ran::Broken if fail(cell, host) => return stop,
        Ran::Busy | Ran::Broken => return R::default(),
    };
    let unrouted = selection::fails_in(|| cell.make_calls(host, |_| true));
    if unrouted && !cell.is_destroyed() && fail(cell, host) {
        return stop;
    }
    status
}

pub(crate) fn local_reply<S: Stream>(
    cell: &Cell,
    host: &mut S,
    reply: LocalReply<'_>,
) -> LocalReplyStatus {
    host.set_response_started(cell.response() == Response::Started);
    let ran = cell.run(host, "downstream.local_reply", |filter, host| {
        filter.on_local_reply(host, reply)
    });
    let Ran::Answered(status) = ran else {
        return LocalReplyStatus::Continue;
    };
    cell.make_calls(host, |_| true);
    status
}

pub(crate) fn stream_complete<S: Stream>(cell: &Cell, host: &mut S) {
    // No calls can be queued through this hook's host.
    cell.run(host, "downstream.stream_complete", |filter, host| {
        filter.on_stream_complete(host);
    });
}

pub(crate) fn scheduled<S: Stream>(cell: &Cell, host: &mut S, event_id: u64) {
    let ran = cell.run(host, "downstream.scheduled", |filter, host| {
        filter.on_scheduled(host, event_id);
    });
    match ran {
        Ran::Answered(()) => cell.make_calls(host, |_| true),
        Ran::Busy => {}
        Ran::Broken => {
            if cell.response() == Response::Awaited {
                fail_request(cell, host);
            } else {
                fail_response(cell, host);
            }
        }
    }
}

pub(crate) fn above_watermark<S: Stream>(cell: &Cell, host: &mut S) {
    cell.run(host, "downstream.above_watermark", |filter, host| {
        filter.on_above_write_buffer_high_watermark(host);
    });
}

pub(crate) fn below_watermark<S: Stream>(cell: &Cell, host: &mut S) {
    cell.run(host, "downstream.below_watermark", |filter, host| {
        filter.on_below_write_buffer_low_watermark(host);
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

/// Cuts the stream unless the client already got its answer; true when the caller must stop.
fn fail_response<S: Stream>(cell: &Cell, host: &mut S) -> bool {
    let first = cell.answer_once();
    if first {
        host.make_call(QueuedCall::ResetStream {
            details: FAILURE_DETAILS.to_owned(),
        });
    }
    first
}
