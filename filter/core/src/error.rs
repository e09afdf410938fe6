//! Every refusal: what the gateway itself answers when no provider's answer can be passed on.
//!
//! One match, [`Refusal::terms`], holds status, type, code and retry advice of all of them. A
//! provider's own error answers are not here: they go to the client in the provider's words (see
//! `respond`), but for those that would be misread as the caller's fault.

use std::borrow::Cow;
use std::sync::Arc;

use filter_llm::api::Api;
use filter_llm::error::ErrorBody;
use filter_llm::provider_error::ProviderError;
use filter_llm::request::RequestFault;

use crate::exchange::Reply;
use crate::limits::Unbounded;
use crate::text;

mod exceeded;

pub(crate) use exceeded::Exceeded;

/// Why the gateway answers instead of a provider.
#[derive(Debug)]
pub(crate) enum Refusal {
    UnknownUrl,
    MethodNotAllowed {
        allow: &'static str,
    },
    MissingApiKey,
    SeveralApiKeys,
    InvalidApiKey,
    ConfigUnavailable,
    UnsupportedContentType,
    UnsupportedContentEncoding,
    BodyTooLarge,
    BodiesTooLarge,
    InvalidAttributes,
    InvalidRequest(RequestFault),
    ModelNotAllowed {
        model: String,
    },
    ModelNotFound {
        model: String,
    },
    NoCapableModel,
    /// What could answer has no known price, and is then not to be used.
    PriceUnknown,
    VendorsUnavailable {
        retry_after_s: Option<u32>,
    },
    /// No target is left after one that answered with this status; its own words are the body.
    ProviderError {
        status: u16,
        retry_after_s: Option<u32>,
    },
    /// An error event came before any content, and can still become a status.
    ProviderErrorEvent(ProviderError),
    ProviderEmptyAnswer,
    /// A whole answer that could not be put into the client's API.
    ProviderAnswerUnreadable,
    /// The provider's API can't be told what the request asks.
    Untranslatable(RequestFault),
    /// 401, 402 or 403: the gateway's credential is at fault, never the caller's key.
    ProviderCredentialRejected,
    /// 404: the caller's model exists, what the config says of the provider does not.
    ProviderModelNotFound,
    ProviderRedirected,
    /// An error whose body is compressed, so that it can't be searched for the credential.
    ProviderErrorUnreadable {
        status: u16,
    },
    ProviderUnreachable,
    ProviderReset,
    ProviderTimeout,
    ProviderCut,
    RequestTimeout,
    /// A limit does not let it through.
    LimitReached(Box<Exceeded>),
    /// What it may cost has no upper bound, and a limit wants one.
    UnboundedRequest {
        limit: Arc<str>,
        unbounded: Unbounded,
    },
    /// Envoy refused for a reason of its own.
    Proxy {
        status: u16,
    },
}

/// To whom a refusal is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Voice<'a> {
    /// In whose shape.
    pub(crate) api: Api,
    pub(crate) request_id: &'a str,
}

/// How a refusal reads on the wire.
struct Terms {
    status: u16,
    /// OpenAI's `error.type`.
    kind: &'static str,
    /// Response code details; what follows `turnpike_` is `error.code`.
    details: &'static str,
    retry: Retry,
}

/// What to tell a client that would retry by itself.
enum Retry {
    Never,
    AfterSeconds(u32),
}

const INVALID_REQUEST: &str = "invalid_request_error";
const PERMISSION: &str = "permission_error";
const SERVER: &str = "server_error";
const DETAILS_PREFIX: &str = "turnpike_";

/// Long enough for a reconnect to the control plane.
const CONFIG_RETRY_S: u32 = 2;
const VENDORS_RETRY_S: u32 = 5;
const BODIES_RETRY_S: u32 = 1;

impl Refusal {
    #[rustfmt::skip] // a table
    fn terms(&self) -> Terms {
        use Retry::{AfterSeconds, Never};
        let (status, kind, details, retry) = match self {
            Self::UnknownUrl => (404, INVALID_REQUEST, "turnpike_unknown_url", Never),
            Self::MethodNotAllowed { .. } => (405, INVALID_REQUEST, "turnpike_method_not_allowed", Never),
            Self::MissingApiKey => (401, INVALID_REQUEST, "turnpike_missing_api_key", Never),
            Self::SeveralApiKeys => (401, INVALID_REQUEST, "turnpike_several_api_keys", Never),
            Self::InvalidApiKey => (401, INVALID_REQUEST, "turnpike_invalid_api_key", Never),
            Self::ConfigUnavailable => (503, SERVER, "turnpike_config_unavailable", AfterSeconds(CONFIG_RETRY_S)),
            Self::UnsupportedContentType => (415, INVALID_REQUEST, "turnpike_unsupported_content_type", Never),
            Self::UnsupportedContentEncoding => (415, INVALID_REQUEST, "turnpike_unsupported_content_encoding", Never),
            Self::BodyTooLarge => (413, INVALID_REQUEST, "turnpike_request_too_large", Never),
            Self::BodiesTooLarge => (503, SERVER, "turnpike_request_memory_exhausted", AfterSeconds(BODIES_RETRY_S)),
            Self::InvalidAttributes => (400, INVALID_REQUEST, "turnpike_invalid_attributes", Never),
            Self::InvalidRequest(_) => (400, INVALID_REQUEST, "turnpike_invalid_request", Never),
            Self::ModelNotAllowed { .. } => (403, PERMISSION, "turnpike_model_not_allowed", Never),
            Self::ModelNotFound { .. } => (404, INVALID_REQUEST, "turnpike_model_not_found", Never),
            Self::NoCapableModel => (400, INVALID_REQUEST, "turnpike_no_capable_model", Never),
            Self::PriceUnknown => (400, INVALID_REQUEST, "turnpike_price_unknown", Never),
            Self::VendorsUnavailable { retry_after_s } => {
                (503, SERVER, "turnpike_vendors_unavailable", AfterSeconds(retry_after_s.unwrap_or(VENDORS_RETRY_S)))
            }
            Self::ProviderError { status, retry_after_s } => {
                (*status, SERVER, "turnpike_provider_error", retry_after_s.map_or(Never, AfterSeconds))
            }
            Self::ProviderErrorEvent(error) => (status_of_event(error), SERVER, "turnpike_provider_error_event", Never),
            Self::ProviderEmptyAnswer => (502, SERVER, "turnpike_provider_empty_answer", Never),
            Self::ProviderAnswerUnreadable => (502, SERVER, "turnpike_provider_answer_unreadable", Never),
            Self::Untranslatable(_) => (400, INVALID_REQUEST, "turnpike_untranslatable", Never),
            Self::ProviderCredentialRejected => (502, SERVER, "turnpike_provider_credential_rejected", Never),
            Self::ProviderModelNotFound => (502, SERVER, "turnpike_provider_model_not_found", Never),
            Self::ProviderRedirected => (502, SERVER, "turnpike_provider_redirected", Never),
            Self::ProviderErrorUnreadable { status } => (*status, SERVER, "turnpike_provider_error_unreadable", Never),
            Self::ProviderUnreachable => (503, SERVER, "turnpike_provider_unreachable", AfterSeconds(VENDORS_RETRY_S)),
            Self::ProviderReset => (502, SERVER, "turnpike_provider_reset", Never),
            Self::ProviderTimeout => (504, SERVER, "turnpike_provider_timeout", Never),
            Self::ProviderCut => (502, SERVER, "turnpike_provider_cut", Never),
            Self::RequestTimeout => (408, INVALID_REQUEST, "turnpike_request_timeout", Never),
            Self::LimitReached(exceeded) => return exceeded.terms(),
            Self::UnboundedRequest { .. } => (400, INVALID_REQUEST, "turnpike_unbounded_request", Never),
            Self::Proxy { status: status @ 400..500 } => (*status, INVALID_REQUEST, "turnpike_proxy_refused", Never),
            Self::Proxy { status } => (*status, SERVER, "turnpike_proxy_failed", Never),
        };
        Terms { status, kind, details, retry }
    }

    /// For the client: says what to do about it, names no other model, no key, no URL.
    fn message(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::UnknownUrl => "There is no such endpoint here.",
            Self::MethodNotAllowed { .. } => "This endpoint does not take this method.",
            Self::MissingApiKey => {
                "No API key was given. Send it as `Authorization: Bearer <key>`."
            }
            Self::SeveralApiKeys => "The request carries several different API keys.",
            Self::InvalidApiKey => "The API key is not valid: it is unknown, disabled or expired.",
            Self::ConfigUnavailable => "The gateway can't check API keys at the moment.",
            Self::UnsupportedContentType => "The request body must be application/json.",
            Self::UnsupportedContentEncoding => "The request body must not be compressed.",
            Self::BodyTooLarge => "The request body is larger than the gateway takes.",
            Self::BodiesTooLarge => "The gateway holds too many large requests at the moment.",
            Self::InvalidAttributes => {
                "The header x-turnpike-attributes must be up to 16 pairs `name=value` with commas \
                 between, percent-encoded, in at most 1024 bytes."
            }
            Self::InvalidRequest(fault) => return Cow::Borrowed(&fault.message),
            Self::ModelNotAllowed { model } => {
                return Cow::Owned(format!("This API key may not use the model `{model}`."));
            }
            Self::ModelNotFound { model } => {
                return Cow::Owned(format!("The model `{model}` does not exist."));
            }
            Self::NoCapableModel => {
                "No model that may answer this request can: see what it needs (tools, images, \
                 audio, files, a JSON schema, effort) and how long the prompt is."
            }
            Self::PriceUnknown => {
                "The gateway does not know the price of what could answer this request, and is set \
                 to refuse it then."
            }
            Self::VendorsUnavailable { .. } => "No provider can answer this request at the moment.",
            Self::ProviderError { status, .. } => {
                return Cow::Owned(format!("The provider answered with status {status}."));
            }
            Self::ProviderErrorEvent(error) if !error.message.is_empty() => {
                return Cow::Borrowed(&error.message);
            }
            Self::ProviderErrorEvent(_) => "The provider sent an error instead of an answer.",
            Self::ProviderAnswerUnreadable => "The provider's answer could not be read.",
            Self::Untranslatable(fault) => {
                return Cow::Owned(format!(
                    "The model that answers can't be asked this: {fault}."
                ));
            }
            Self::RequestTimeout => "The request did not arrive in time.",
            Self::LimitReached(exceeded) => return Cow::Owned(exceeded.message()),
            Self::UnboundedRequest { limit, unbounded } => {
                return Cow::Owned(unbounded_text(limit, *unbounded));
            }
            Self::Proxy { .. } => "The gateway could not handle the request.",
            _ => self.message_of_provider(),
        })
    }

    /// What went wrong between us and a provider.
    const fn message_of_provider(&self) -> &'static str {
        match self {
            Self::ProviderEmptyAnswer => "The provider ended its answer before any content.",
            Self::ProviderCredentialRejected => {
                "The provider rejected the gateway's credential. This is not about your API key."
            }
            Self::ProviderModelNotFound => {
                "The provider answered 404: it does not know the model that the gateway asked it for, or does not serve this API."
            }
            Self::ProviderRedirected => {
                "The provider answered with a redirect, which is not followed."
            }
            Self::ProviderErrorUnreadable { .. } => {
                "The provider answered with an error that could not be read."
            }
            Self::ProviderUnreachable => "No connection to the provider could be made.",
            Self::ProviderReset => "The provider closed the connection before it answered.",
            Self::ProviderTimeout => "The provider did not answer in time.",
            Self::ProviderCut => "The provider broke off its answer.",
            _ => "The provider did not answer.",
        }
    }

    /// How a limit stands in the way, for metrics; empty: none does.
    pub(crate) fn limit_word(&self) -> &'static str {
        match self {
            Self::LimitReached(exceeded) => exceeded.word(),
            Self::UnboundedRequest { .. } => "unbounded",
            _ => "",
        }
    }

    /// `error.code`, as in logs, metrics and records.
    pub(crate) fn code(&self) -> &'static str {
        let details = self.terms().details;
        details.strip_prefix(DETAILS_PREFIX).unwrap_or(details)
    }

    pub(crate) fn status(&self) -> u16 {
        self.terms().status
    }

    /// The body of the answer, in the client API's own shape.
    pub(crate) fn body(&self, voice: Voice<'_>) -> Vec<u8> {
        self.with_error_body(voice, |body| body.to_body(voice.api))
    }

    /// The error as an event of an open stream.
    pub(crate) fn event(&self, voice: Voice<'_>) -> Vec<u8> {
        self.with_error_body(voice, |body| body.to_event(voice.api))
    }

    /// The headers that say whether, and when, to try again.
    pub(crate) fn retry_headers(&self) -> (&'static str, Cow<'static, str>) {
        match self.terms().retry {
            Retry::Never => ("x-should-retry", Cow::Borrowed("false")),
            Retry::AfterSeconds(seconds) => ("retry-after", Cow::Owned(seconds.to_string())),
        }
    }

    /// The whole answer. A reply of ours passes no response hook, so the request id is set here.
    pub(crate) fn reply(&self, voice: Voice<'_>) -> Reply {
        let mut headers = vec![
            ("content-type", Cow::Borrowed("application/json")),
            ("x-request-id", Cow::Owned(voice.request_id.to_owned())),
            self.retry_headers(),
        ];
        match self {
            Self::MethodNotAllowed { allow } => headers.push(("allow", Cow::Borrowed(*allow))),
            Self::LimitReached(exceeded) => exceeded.more_retry_headers(&mut headers),
            _ => {}
        }
        let Terms {
            status, details, ..
        } = self.terms();
        Reply {
            status,
            headers,
            body: self.body(voice),
            details,
        }
    }

    fn with_error_body<T>(&self, voice: Voice<'_>, print: impl FnOnce(&ErrorBody<'_>) -> T) -> T {
        let terms = self.terms();
        let message = self.message();
        let (mut kind, mut param, mut code) = (terms.kind, None, Some(self.code()));
        match self {
            Self::InvalidRequest(fault) | Self::Untranslatable(fault) => {
                (param, code) = (fault.param, fault.code);
            }
            Self::ModelNotAllowed { .. } | Self::ModelNotFound { .. } => param = Some("model"),
            Self::UnboundedRequest {
                unbounded: Unbounded::MaxTokens,
                ..
            } => param = Some("max_tokens"),
            Self::ProviderErrorEvent(error) => {
                kind = text::or(&error.kind, kind);
                code = Some(text::or(&error.code, self.code()));
            }
            _ => {}
        }
        print(&ErrorBody {
            status: terms.status,
            message: &message,
            kind,
            param,
            code,
            request_id: voice.request_id,
        })
    }
}

fn unbounded_text(limit: &str, unbounded: Unbounded) -> String {
    let missing = match unbounded {
        Unbounded::MaxTokens => "Set `max_tokens`",
        Unbounded::ContextWindow => {
            "It has content that is not text, and the context window of the model is not known to the gateway"
        }
        Unbounded::Price => "The price of the model is not known to the gateway",
    };
    format!("The limit `{limit}` takes only requests whose cost has an upper bound. {missing}.")
}

/// What status an error event would have been: 400 when the request itself is at fault, so that
/// nobody retries it; otherwise one that Envoy retries.
fn status_of_event(error: &ProviderError) -> u16 {
    if error.is_context_length() || error.is_content_policy() {
        400
    } else if error.is_quota() {
        429
    } else {
        502
    }
}

#[cfg(test)]
mod tests;
