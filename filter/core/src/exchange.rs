//! One client request and its answer, from the first header to the usage record.
//!
//! An exchange owns its state and borrows nothing of the shell. The phases are in the files below
//! this one, in the order in which they happen: `request` (begin, body), `admission` (limits),
//! `attempts` (select, begin, splice), `answer` (head, frames, end), `guard` (cut at a limit),
//! `local_reply`, `open` (what outlives the process), `settle`.

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use filter_llm::api::Api;
use filter_llm::request::EditPoints;

use crate::admit::{Admission, Grip, Obstacle};
use crate::attempt::Attempt;
use crate::authenticate::Caller;
use crate::config::Compiled;
use crate::error::{Refusal, Voice};
use crate::head::{ClientApi, Strip};
use crate::health::Health;
use crate::host::{Clock, HeaderSink, HeldBodies, HeldBody, NodeState, Now};
use crate::limits::{Asked, NodeLimits};
use crate::route::{Attributes, Route};

mod admission;
mod answer;
mod attempts;
mod guard;
mod local_reply;
mod open;
mod request;
pub(crate) mod settle;
mod turn;

use admission::Pending;
use guard::Guard;
use turn::Turn;

pub use crate::respond::ResponseStep;
pub use local_reply::LocalReply;
pub use open::{AttemptTerms, OpenCharge, OpenTerms, Progress};
pub use settle::{LogFields, Sample, Settled, StreamEnd, TokenCounts};

/// The cluster that stands for "no target is left": nobody listens on its one endpoint, and its
/// upstream filter answers with the real error.
pub const STOP_CLUSTER: &str = "turnpike_stop";

/// A config as one worker holds it: cloned per exchange without touching a line that other
/// workers touch.
pub type Config = Rc<Arc<Compiled>>;

/// What an exchange starts from, beside the request.
pub struct Begin<'a> {
    /// The config that the exchange keeps until its end.
    pub config: &'a Config,
    /// Asked once.
    pub clock: &'a dyn Clock,
    /// Fresh random bytes.
    pub entropy: [u8; 32],
    /// How far the config may be trusted.
    pub node: NodeState,
    /// What the process holds of request bodies.
    pub held: &'static HeldBodies,
    /// What the process may spend of its limits.
    pub limits: &'static NodeLimits,
    /// What the process knows of failing targets.
    pub health: &'static Health,
}

impl fmt::Debug for Begin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begin")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

/// A request's head. Names are lower case; pseudo headers are among them.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// Name and value of each header, in the order they came.
    pub headers: &'a [(&'a [u8], &'a [u8])],
    /// The request has no body.
    pub end_of_stream: bool,
}

/// Counts only: a head holds the caller's key.
impl fmt::Debug for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head")
            .field("headers", &self.headers.len())
            .field("end_of_stream", &self.end_of_stream)
            .finish()
    }
}

/// What the downstream shell does next.
#[derive(Debug)]
pub enum Step {
    /// Hold the body, up to this many bytes, then call [`Exchange::on_request_body`].
    NeedBody {
        /// Larger bodies are refused.
        limit_bytes: u64,
    },
    /// A limit has to be asked for: hold the request and call [`Exchange::wait`]. Then, whichever
    /// comes first: [`Exchange::on_credit`] when woken, [`Exchange::on_wait_over`] after `max_us`.
    Wait {
        /// Microseconds, at most.
        max_us: u64,
    },
    /// Send the request on, after [`Exchange::edit_forward_head`].
    Forward,
    /// Answer at once.
    Reply(Reply),
}

/// An answer of the gateway's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Headers, names in lower case.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// The whole body.
    pub body: Vec<u8>,
    /// Response code details, such as `turnpike_invalid_api_key`.
    pub details: &'static str,
}

/// What the upstream shell does with an attempt.
#[derive(Debug)]
pub enum AttemptStep {
    /// The body goes as it is.
    Pass,
    /// The head waits for the whole body, which goes as [`Exchange::rewrite_body`] returns it.
    Rewrite,
    /// No target is left: this is the client's answer.
    Reply(Reply),
}

/// One client request and its answer.
pub struct Exchange {
    config: Config,
    entropy: [u8; 32],
    began: Now,
    held: HeldBody,
    limits: &'static NodeLimits,
    health: &'static Health,
    api: ClientApi,
    /// What the path says of the model, and of streaming, until the body is read.
    path_model: Option<String>,
    path_stream: bool,
    request_id: String,
    authority: Vec<u8>,
    strip: Strip,
    attributes: Attributes,
    caller: Option<Caller>,
    /// It waits for a limit.
    pending: Option<Box<Pending>>,
    admitted: Option<Admitted>,
    attempts: Vec<Attempt>,
    /// Index of the next planned attempt.
    next_planned: usize,
    /// What an attempt said of the request itself, by which those that follow are chosen.
    turned: Option<Turn>,
    /// The first limit that stood in the way of a further attempt.
    obstacle: Option<Box<Obstacle>>,
    /// What watches the stream that comes.
    guard: Guard,
    /// No target was left when the specifier asked.
    is_stopped: bool,
    /// The head of a provider's answer went to the client.
    has_client_head: bool,
    /// What the client gets as the body of an answer that had none.
    missing_body: Vec<u8>,
    /// `error.code` of the error of ours that the client got.
    error_code: Option<&'static str>,
    /// What about a limit stood in the way, if the client was refused for one.
    limit_refusal: &'static str,
}

/// What is known once a request is let through.
struct Admitted {
    admission: Admission,
    api: Api,
    route: Route,
    /// `model` as the client wrote it.
    model_asked: String,
    end_user: String,
    action_id: String,
    stream: bool,
    asks_usage: bool,
    edits: EditPoints,
    body_len: usize,
    text_bytes: u64,
    asked: Asked,
    /// The one tier that it may be served in; empty: any.
    asked_tier: String,
    /// `<team>/<user>`; empty: no user was named, or there are no limits.
    limit_subject: String,
    /// What each attempt holds of its limits, in their order.
    grips: Vec<Grip>,
    /// The most tokens of output, where we lowered it.
    clamped_to: Option<u64>,
}

impl Exchange {
    /// ① The head of a request has come.
    pub fn begin(begin: &Begin<'_>, head: &Head<'_>) -> (Self, Step) {
        request::begin(begin, head)
    }

    /// ① Strips the caller's credentials and every `x-envoy-*` and `x-turnpike-*` header, and sets
    /// `x-request-id`. Called once, right after [`begin`](Self::begin) unless it replied.
    pub fn edit_request_head(&self, sink: &mut dyn HeaderSink) {
        self.strip.apply(&self.request_id, sink);
    }

    /// ① Bytes of the body held so far; called per frame before the end. A reply (413, 503) when a
    /// cap is passed.
    pub fn on_request_bytes(&mut self, total_bytes: u64) -> Option<Reply> {
        self.hold(total_bytes)
            .err()
            .map(|refusal| self.refuse(&refusal))
    }

    /// ① The whole body has come: parse, route, admit.
    pub fn on_request_body(&mut self, body: &[u8], clock: &dyn Clock) -> Step {
        match self.decide(body, clock) {
            Ok(step) => step,
            Err(refused) => Step::Reply(self.refuse_with(&refused)),
        }
    }

    /// The id in `x-request-id`, kept from the client or made.
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The name of the route action override that guards silence: `stream` or `plain`.
    pub fn idle_override(&self) -> &'static str {
        match &self.admitted {
            Some(admitted) if admitted.stream => "stream",
            _ => "plain",
        }
    }

    /// How errors are told to this client.
    fn voice(&self) -> Voice<'_> {
        Voice {
            api: self.api.voice(),
            request_id: &self.request_id,
        }
    }

    /// Makes the client's answer out of a refusal, and remembers it for the record.
    fn refuse(&mut self, refusal: &Refusal) -> Reply {
        self.error_code = Some(refusal.code());
        refusal.reply(self.voice())
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("request_id", &self.request_id)
            .field("api", &self.api)
            .field("attempts", &self.attempts.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
