//! The cell around one filter: catches panics, poisons, refuses re-entrance, runs the queue.
//!
//! Everything is behind shared references with interior mutability, because Envoy may call a
//! filter's hook while another hook of the same filter is in an Envoy call.

use std::cell::{Cell, RefCell};

use crate::guard::{Panicked, contain, guard};
use crate::http::{DownstreamHost, LocalReplyHost, ScheduledHost, UpstreamHost};
use crate::op::QueuedCall;
use crate::status::{BodyStatus, HeadersStatus};

/// One side of a stream as the cell needs it: Envoy's, or a fake one.
pub(crate) trait Stream:
    DownstreamHost + UpstreamHost + ScheduledHost + LocalReplyHost
{
    /// The oldest queued call.
    fn next_call(&mut self) -> Option<QueuedCall>;
    /// Forgets queued calls.
    fn forget_calls(&mut self);
    /// Makes a call; may re-enter hooks.
    fn make_call(&mut self, call: QueuedCall);
    /// Tells whether response headers were let through, before the local-reply hook.
    fn set_response_started(&mut self, started: bool);
}

/// How a hook went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran<R> {
    /// The filter answered.
    Answered(R),
    /// The filter is in another hook right now: pass on.
    Busy,
    /// The filter panicked, now or earlier.
    Broken,
}

/// How far the response got past this filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    Awaited,
    Held,
    Started,
}

/// A filter and what the cell knows about it.
pub(crate) struct FilterCell<F: ?Sized> {
    filter: RefCell<Option<Box<F>>>,
    broken: Cell<bool>,
    /// The client has got the answer to a panic; later hooks pass everything on.
    answered: Cell<bool>,
    /// Envoy destroyed the filter; queued calls must not be made any more.
    destroyed: Cell<bool>,
    /// The filter's own error event is passing the encoder chain.
    sending_event: Cell<bool>,
    response: Cell<Response>,
    /// Response headers were replaced by those of a failure, its body has still to go out.
    failure_body: Cell<bool>,
    #[cfg(feature = "fault-injection")]
    fault: Cell<Option<&'static str>>,
}

impl<F: ?Sized> FilterCell<F> {
    /// A cell around a new filter, or a broken one when making the filter panicked.
    pub(crate) fn new(made: Result<Box<F>, Panicked>) -> Self {
        let filter = made.ok();
        Self {
            broken: Cell::new(filter.is_none()),
            filter: RefCell::new(filter),
            answered: Cell::new(false),
            destroyed: Cell::new(false),
            sending_event: Cell::new(false),
            response: Cell::new(Response::Awaited),
            failure_body: Cell::new(false),
            #[cfg(feature = "fault-injection")]
            fault: Cell::new(None),
        }
    }

    /// Runs a hook of the filter unless it is broken or busy.
    pub(crate) fn run<S: Stream, R>(
        &self,
        host: &mut S,
        hook: &'static str,
        body: impl FnOnce(&mut F, &mut S) -> R,
    ) -> Ran<R> {
        if self.broken.get() {
            return Ran::Broken;
        }
        let Ok(mut slot) = self.filter.try_borrow_mut() else {
            return Ran::Busy;
        };
        let Some(filter) = slot.as_deref_mut() else {
            return Ran::Busy;
        };
        let result = guard(hook, || {
            #[cfg(feature = "fault-injection")]
            crate::fault::trip(hook, self.fault.get());
            body(filter, host)
        });
        drop(slot);
        match result {
            Ok(answer) => Ran::Answered(answer),
            Err(Panicked) => {
                self.broken.set(true);
                host.forget_calls();
                Ran::Broken
            }
        }
    }

    /// Makes the allowed ones of the calls that the hook queued; the filter is free, so they may
    /// re-enter it.
    pub(crate) fn make_calls<S: Stream>(
        &self,
        host: &mut S,
        allowed: impl Fn(&QueuedCall) -> bool,
    ) {
        while let Some(call) = host.next_call() {
            if self.destroyed.get() {
                return host.forget_calls();
            }
            if allowed(&call) {
                self.make_call(host, call);
            }
        }
    }

    fn make_call<S: Stream>(&self, host: &mut S, call: QueuedCall) {
        if matches!(call, QueuedCall::ContinueEncoding) && self.response.get() == Response::Held {
            self.response.set(Response::Started);
        }
        let event = matches!(call, QueuedCall::SendErrorEvent(_));
        self.sending_event.set(event);
        host.make_call(call);
        self.sending_event.set(false);
    }

    /// Answers the client once for a filter that can not; true when this call does it.
    pub(crate) fn answer_once(&self) -> bool {
        !self.answered.replace(true)
    }

    /// The next response frame is to carry the failure's body.
    pub(crate) fn owe_failure_body(&self) {
        self.failure_body.set(true);
    }

    /// Whether this response frame carries the failure's body.
    pub(crate) fn take_failure_body(&self) -> bool {
        self.failure_body.take()
    }

    pub(crate) fn is_destroyed(&self) -> bool {
        self.destroyed.get()
    }

    pub(crate) fn is_sending_event(&self) -> bool {
        self.sending_event.get()
    }

    pub(crate) fn response(&self) -> Response {
        self.response.get()
    }

    /// Follows what the filter does with response headers.
    pub(crate) fn note_response_headers(&self, status: HeadersStatus) {
        self.response.set(match status {
            HeadersStatus::Continue | HeadersStatus::ContinueAndDontEndStream => Response::Started,
            HeadersStatus::StopIteration
            | HeadersStatus::StopAllIterationAndBuffer
            | HeadersStatus::StopAllIterationAndWatermark => Response::Held,
        });
    }

    /// A body hook that continues releases held headers.
    pub(crate) fn note_response_body(&self, status: BodyStatus) {
        if status == BodyStatus::Continue && self.response.get() == Response::Held {
            self.response.set(Response::Started);
        }
    }

    /// Drops the filter, or leaves that to the running hook's end.
    pub(crate) fn destroy(&self, hook: &'static str) {
        self.destroyed.set(true);
        let Ok(mut slot) = self.filter.try_borrow_mut() else {
            return;
        };
        let filter = slot.take();
        drop(slot);
        contain(hook, || {
            #[cfg(feature = "fault-injection")]
            crate::fault::trip(hook, self.fault.get());
            drop(filter);
        });
    }

    #[cfg(feature = "fault-injection")]
    pub(crate) fn arm(&self, fault: Option<&'static str>) {
        self.fault.set(fault);
    }
}

/// The reply for a request whose filter panicked.
pub(crate) fn failure_reply() -> QueuedCall {
    QueuedCall::reply(
        500,
        &[("content-type", b"application/json")],
        FAILURE_BODY,
        FAILURE_DETAILS,
    )
}

/// An error in the shape that most clients of LLM APIs understand.
pub(crate) const FAILURE_BODY: &[u8] = br#"{"error":{"message":"internal error in the gateway","type":"server_error","param":null,"code":"internal_error"}}"#;
/// Response code details of both the reply and the cut.
pub(crate) const FAILURE_DETAILS: &str = "dynamic_module_panic";
