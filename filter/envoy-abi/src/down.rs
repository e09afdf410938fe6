//! The hooks of a downstream filter, for any host.
//!
//! A filter that panicked answers the client once: a 500 while no response headers are out, a
//! cut afterwards. From then on it passes everything on.

use crate::cell::{FAILURE_DETAILS, FilterCell, Ran, Response, Stream, failure_reply};
use crate::cut;
use crate::http::{DownstreamFilter, LocalReply};
use crate::op::QueuedCall;
use crate::status::{BodyStatus, HeadersStatus, LocalReplyStatus, TrailersStatus};

type Cell = FilterCell<dyn DownstreamFilter>;

pub(crate) fn request_headers<S: Stream>(cell: &Cell, host: &mut S, end: bool) -> HeadersStatus {
    #[cfg(feature = "fault-injection")]
    cell.arm(crate::fault::asked_by_request(host));
    let ran = cell.run(host, "downstream.request_headers", |filter, host| {
        filter.on_request_headers(host, end)
    });
    let status = match ran {
        Ran::Answered(status) => status,
        Ran::Broken if fail_request(cell, host) => return HeadersStatus::StopIteration,
        Ran::Busy | Ran::Broken => return HeadersStatus::Continue,
    };
    cell.make_calls(host, |_| true);
    status
}

pub(crate) fn request_body<S: Stream>(cell: &Cell, host: &mut S, end: bool) -> BodyStatus {
    let ran = cell.run(host, "downstream.request_body", |filter, host| {
        filter.on_request_body(host, end)
    });
    let status = match ran {
        Ran::Answered(status) => status,
        Ran::Broken if fail_request(cell, host) => return BodyStatus::StopIterationNoBuffer,
        Ran::Busy | Ran::Broken => return BodyStatus::Continue,
    };
    cell.make_calls(host, |_| true);
    status
}

pub(crate) fn request_trailers<S: Stream>(cell: &Cell, host: &mut S) -> TrailersStatus {
    let ran = cell.run(host, "downstream.request_trailers", |filter, host| {
        filter.on_request_trailers(host)
    });
    let status = match ran {
        Ran::Answered(status) => status,
        Ran::Broken if fail_request(cell, host) => return TrailersStatus::StopIteration,
        Ran::Busy | Ran::Broken => return TrailersStatus::Continue,
    };
    cell.make_calls(host, |_| true);
    status
}

pub(crate) fn response_headers<S: Stream>(cell: &Cell, host: &mut S, end: bool) -> HeadersStatus {
    let ran = cell.run(host, "downstream.response_headers", |filter, host| {
        filter.on_response_headers(host, end)
    });
    let status = match ran {
        Ran::Answered(status) => status,
        // Nothing is out yet: Envoy replaces the provider's response by a reply.
        Ran::Broken if fail_request(cell, host) => return HeadersStatus::StopIteration,
        Ran::Busy | Ran::Broken => return HeadersStatus::Continue,
    };
    cell.note_response_headers(status);
    cell.make_calls(host, |_| true);
    status
}

pub(crate) fn response_body<S: Stream>(cell: &Cell, host: &mut S, end: bool) -> BodyStatus {
    if cell.is_sending_event() {
        return BodyStatus::Continue;
    }
    if cut::is_asked(host) && fail_response(cell, host) {
        return BodyStatus::StopIterationNoBuffer;
    }
    let ran = cell.run(host, "downstream.response_body", |filter, host| {
        filter.on_response_body(host, end)
    });
    let status = match ran {
        Ran::Answered(status) => status,
        Ran::Broken if fail_response(cell, host) => return BodyStatus::StopIterationNoBuffer,
        Ran::Busy | Ran::Broken => return BodyStatus::Continue,
    };
    cell.note_response_body(status);
    cell.make_calls(host, |_| true);
    status
}

pub(crate) fn response_trailers<S: Stream>(cell: &Cell, host: &mut S) -> TrailersStatus {
    let ran = cell.run(host, "downstream.response_trailers", |filter, host| {
        filter.on_response_trailers(host)
    });
    let status = match ran {
        Ran::Answered(status) => status,
        Ran::Broken if fail_response(cell, host) => return TrailersStatus::StopIteration,
        Ran::Busy | Ran::Broken => return TrailersStatus::Continue,
    };
    cell.make_calls(host, |_| true);
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
