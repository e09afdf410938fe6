//! ① The request: begin, hold, and decide.

use std::borrow::Cow;

use filter_llm::request::{PathFacts, Request, pinned_tier};

use super::admission::Refused;
use super::guard::Guard;
use super::{Admitted, Begin, Exchange, Head, Reply, Step};
use crate::admit::admit;
use crate::authenticate::authenticate;
use crate::error::Refusal;
use crate::forward;
use crate::head::{ClientApi, Endpoint, RequestHead, Strip};
use crate::host::{Clock, HeaderSink, HeldBody, NodeState};
use crate::limits::Asked;
use crate::models;
use crate::route::{Attributes, Wish, route};
use crate::text;

/// The attribute that `user` gives, and the one that labels usage instead of choosing a rule.
const USER_ATTRIBUTE: &str = "user_id";
const ACTION_ATTRIBUTE: &str = "action_id";

pub(super) fn begin(begin: &Begin<'_>, head: &Head<'_>) -> (Exchange, Step) {
    let read = RequestHead::read(head);
    let (id_entropy, _) = halves(&begin.entropy);
    let mut exchange = Exchange {
        config: begin.config.clone(),
        entropy: begin.entropy,
        began: begin.clock.now(),
        held: HeldBody::new(begin.held),
        limits: begin.limits,
        health: begin.health,
        api: ClientApi::Unknown(read.dialect()),
        path_model: None,
        path_stream: false,
        request_id: read.request_id(&id_entropy),
        authority: read.authority.to_vec(),
        strip: Strip::default(),
        attributes: Attributes::default(),
        caller: None,
        pending: None,
        admitted: None,
        attempts: Vec::new(),
        next_planned: 0,
        turned: None,
        obstacle: None,
        guard: Guard::Off,
        is_stopped: false,
        has_client_head: false,
        missing_body: Vec::new(),
        error_code: None,
        limit_refusal: "",
    };
    let step = match exchange.open(&read, begin.node) {
        Ok(Step::NeedBody { .. }) if head.end_of_stream => {
            exchange.on_request_body(b"", begin.clock)
        }
        Ok(step) => step,
        Err(refusal) => Step::Reply(exchange.refuse(&refusal)),
    };
    exchange.strip = read.into_strip();
    (exchange, step)
}

/// The entropy of names, and the draw among credentials.
fn halves(entropy: &[u8; 32]) -> ([u8; 16], u64) {
    let names = entropy.first_chunk::<16>().copied().unwrap_or_default();
    let draw = entropy.last_chunk::<8>().copied().unwrap_or_default();
    (names, u64::from_le_bytes(draw))
}

/// What limits look at.
fn asked(request: &Request<'_>) -> Asked {
    let needs = request.needs;
    Asked {
        body_bytes: request.body_bytes,
        text_bytes: request.text_bytes,
        choices: request.choices,
        max_output: request.max_output_tokens,
        has_tools: needs.tools,
        has_media: needs.image_input || needs.audio_input || needs.file_input,
    }
}

impl Exchange {
    /// Names the exchange in the ledger.
    pub(super) fn id(&self) -> [u8; 16] {
        halves(&self.entropy).0
    }

    fn open(&mut self, head: &RequestHead<'_>, node: NodeState) -> Result<Step, Refusal> {
        let endpoint = head.endpoint()?;
        self.api = endpoint.client_api();
        if endpoint == Endpoint::Health {
            return Ok(self.health());
        }
        let config = &**self.config;
        let caller = authenticate(config, head.key()?, node, self.began)?;
        self.caller = Some(caller);
        let body = match endpoint {
            Endpoint::Health => return Ok(self.health()),
            Endpoint::ListModels(dialect) => models::list(config, caller, dialect),
            Endpoint::RetrieveModel(dialect, id) => models::retrieve(config, caller, dialect, &id)?,
            Endpoint::Ask { model, stream, .. } => {
                self.path_model = model.map(Cow::into_owned);
                self.path_stream = stream;
                let limit_bytes = config.settings.max_request_body_bytes;
                head.check_body(limit_bytes)?;
                self.attributes = Attributes::new(head.attributes()?);
                return Ok(Step::NeedBody { limit_bytes });
            }
        };
        Ok(Step::Reply(self.plain_reply(
            "application/json",
            body,
            "turnpike_models",
        )))
    }

    fn health(&self) -> Step {
        Step::Reply(self.plain_reply("text/plain", b"ok".to_vec(), "turnpike_health"))
    }

    fn plain_reply(
        &self,
        content_type: &'static str,
        body: Vec<u8>,
        details: &'static str,
    ) -> Reply {
        let headers = vec![
            ("content-type", content_type.into()),
            ("x-request-id", self.request_id.clone().into()),
        ];
        Reply {
            status: 200,
            headers,
            body,
            details,
        }
    }

    pub(super) fn hold(&mut self, total_bytes: u64) -> Result<(), Refusal> {
        let settings = &self.config.settings;
        if total_bytes > settings.max_request_body_bytes {
            return Err(Refusal::BodyTooLarge);
        }
        if !self.held.grow_to(total_bytes, settings.max_held_body_bytes) {
            return Err(Refusal::BodiesTooLarge);
        }
        Ok(())
    }

    /// Parse, route, admit.
    pub(super) fn decide(&mut self, body: &[u8], clock: &dyn Clock) -> Result<Step, Box<Refused>> {
        self.hold(body.len() as u64)?;
        let caller = self.caller.ok_or(Refusal::MissingApiKey)?;
        let ClientApi::Ask(api) = self.api else {
            return Err(Refusal::UnknownUrl.into());
        };
        let path_model = self.path_model.take();
        let path = PathFacts {
            model: path_model.as_deref(),
            stream: self.path_stream,
        };
        let request = Request::parse(api, path, body).map_err(Refusal::InvalidRequest)?;
        for (name, value) in &request.metadata {
            self.attributes.push(name, value);
        }
        let action_id = self.attributes.take(ACTION_ATTRIBUTE).unwrap_or_default();
        if let Some(user) = &request.user {
            self.attributes.push(USER_ATTRIBUTE, user);
        }
        let now = clock.now();
        let wish = Wish {
            api,
            model: &request.model,
            reasoning_effort: request.reasoning_effort.as_deref(),
            attributes: &self.attributes,
            needs: request.needs,
            text_bytes: request.text_bytes,
            unix_s: now.unix_s(),
            mono_us: now.mono_us,
            health: self.health,
        };
        let route = route(&self.config, caller, &wish, halves(&self.entropy).1)?;
        let admitted = Admitted {
            admission: admit(now),
            api,
            route,
            model_asked: request.model.clone().into_owned(),
            end_user: request
                .user
                .as_deref()
                .map(text::distinct)
                .unwrap_or_default(),
            action_id,
            stream: request.stream,
            asks_usage: request.asks_usage,
            edits: request.edits,
            body_len: body.len(),
            text_bytes: request.text_bytes,
            asked: asked(&request),
            asked_tier: pinned_tier(body)
                .as_deref()
                .map(text::cut)
                .unwrap_or_default()
                .to_owned(),
            limit_subject: String::new(),
            grips: Vec::new(),
            clamped_to: None,
        };
        self.seek_admission(admitted, now)
    }

    /// ① After [`Step::Forward`]: tells the router how many attempts there may be, and how long
    /// each may take.
    pub fn edit_forward_head(&self, sink: &mut dyn HeaderSink) {
        if let Some(admitted) = &self.admitted {
            forward::edit_head(&self.config, &admitted.route, sink);
        }
    }

    /// Retries that the plan may take; 0 for a plan of one attempt.
    pub fn retries(&self) -> u32 {
        self.admitted
            .as_ref()
            .map_or(0, |admitted| forward::retries(&admitted.route))
    }
}
