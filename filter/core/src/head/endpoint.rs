//! What a path names. Paths match by their exact bytes: no normalisation, no aliases.

use std::borrow::Cow;

use filter_llm::api::{Api, Dialect};

use crate::error::Refusal;
use crate::text;

/// What is called.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Endpoint<'a> {
    /// A model is asked; some APIs name it, and say whether to stream, in their path.
    Ask {
        api: Api,
        model: Option<Cow<'a, str>>,
        stream: bool,
    },
    ListModels(Dialect),
    RetrieveModel(Dialect, Cow<'a, str>),
    Health,
}

/// The client APIs, each with the name that goes into records and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientApi {
    Ask(Api),
    Models(Dialect),
    Health,
    Unknown(Dialect),
}

impl ClientApi {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ask(api) => api.as_str(),
            Self::Models(Dialect::Anthropic) => "anthropic.models",
            Self::Models(Dialect::Gemini) => "gemini.models",
            Self::Models(_) => "openai.models",
            Self::Health => "health",
            Self::Unknown(_) => "unknown",
        }
    }

    /// The API in whose shape errors are told.
    pub(crate) const fn voice(self) -> Api {
        match self {
            Self::Ask(api) => api,
            Self::Models(dialect) | Self::Unknown(dialect) => dialect.main_api(),
            Self::Health => Api::ChatCompletions,
        }
    }
}

/// The APIs whose path is fixed.
const FIXED: [(&str, Api); 6] = [
    ("/v1/chat/completions", Api::ChatCompletions),
    ("/v1/messages", Api::Messages),
    ("/v1/responses", Api::Responses),
    ("/v1/embeddings", Api::Embeddings),
    ("/v1/completions", Api::Completions),
    ("/v1/messages/count_tokens", Api::CountTokens),
];

/// Where the lists of models are; Gemini's asks its models beneath it.
const MODELS: &str = "/v1/models";
const GEMINI_MODELS: &str = "/v1beta/models";

/// A path that is the same for each request, if it is one of ours.
pub(crate) fn known_path(path: &[u8]) -> Option<&'static str> {
    let known = FIXED.iter().find(|(known, _)| known.as_bytes() == path);
    known.map(|(known, _)| *known)
}

impl Endpoint<'_> {
    pub(crate) const fn client_api(&self) -> ClientApi {
        match self {
            Self::Ask { api, .. } => ClientApi::Ask(*api),
            Self::ListModels(dialect) | Self::RetrieveModel(dialect, _) => {
                ClientApi::Models(*dialect)
            }
            Self::Health => ClientApi::Health,
        }
    }

    const fn method(&self) -> &'static str {
        match self {
            Self::Ask { .. } => "POST",
            Self::ListModels(_) | Self::RetrieveModel(..) | Self::Health => "GET",
        }
    }
}

/// What is called by this method and path.
pub(super) fn of<'a>(
    method: &[u8],
    path: &'a [u8],
    dialect: Dialect,
) -> Result<Endpoint<'a>, Refusal> {
    let path = std::str::from_utf8(path).map_err(|_| Refusal::UnknownUrl)?;
    let endpoint = named(path, dialect).ok_or(Refusal::UnknownUrl)?;
    if method != endpoint.method().as_bytes() {
        return Err(Refusal::MethodNotAllowed {
            allow: endpoint.method(),
        });
    }
    Ok(endpoint)
}

fn named(path: &str, dialect: Dialect) -> Option<Endpoint<'_>> {
    if let Some((_, api)) = FIXED.iter().find(|(fixed, _)| *fixed == path) {
        return Some(Endpoint::Ask {
            api: *api,
            model: None,
            stream: false,
        });
    }
    match path {
        "/healthz" => return Some(Endpoint::Health),
        MODELS => return Some(Endpoint::ListModels(dialect)),
        GEMINI_MODELS => return Some(Endpoint::ListModels(Dialect::Gemini)),
        _ => {}
    }
    let beneath = |list: &str| path.strip_prefix(list)?.strip_prefix('/');
    let (model, dialect) = match beneath(GEMINI_MODELS) {
        Some(model) => (model, Dialect::Gemini),
        None => (beneath(MODELS)?, dialect),
    };
    of_model(model, dialect)
}

/// What is asked of one model: Gemini's methods follow its name after a colon.
fn of_model(model: &str, dialect: Dialect) -> Option<Endpoint<'_>> {
    let (name, stream) = match model.rsplit_once(':') {
        Some((name, "generateContent")) => (name, Some(false)),
        Some((name, "streamGenerateContent")) => (name, Some(true)),
        _ => (model, None),
    };
    let name = text::percent_decode(name.as_bytes()).filter(|name| !name.is_empty())?;
    Some(match stream {
        Some(stream) => Endpoint::Ask {
            api: Api::GenerateContent,
            model: Some(name),
            stream,
        },
        None => Endpoint::RetrieveModel(dialect, name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str) -> Option<Endpoint<'_>> {
        super::named(path, Dialect::OpenAi)
    }

    #[test]
    fn geminis_paths_name_the_model_and_whether_to_stream() {
        for (path, model, stream) in [
            (
                "/v1beta/models/gemini-2.5-pro:generateContent",
                "gemini-2.5-pro",
                false,
            ),
            ("/v1beta/models/a:b:streamGenerateContent", "a:b", true),
            (
                "/v1/models/acme%2Fsmall:generateContent",
                "acme/small",
                false,
            ),
        ] {
            let asked = Endpoint::Ask {
                api: Api::GenerateContent,
                model: Some(model.into()),
                stream,
            };
            assert_eq!(named(path), Some(asked), "{path}");
        }
        assert_eq!(named("/v1beta/models/:generateContent"), None);
        assert_eq!(
            named("/v1beta/models/m"),
            Some(Endpoint::RetrieveModel(Dialect::Gemini, "m".into()))
        );
    }

    #[test]
    fn every_fixed_path_names_its_api_and_nothing_near_it_does() {
        for (path, api) in FIXED {
            let asked = Endpoint::Ask {
                api,
                model: None,
                stream: false,
            };
            assert_eq!(named(path), Some(asked));
            assert_eq!(named(&format!("{path}/")), None);
            assert_eq!(named(&format!("/{path}")), None);
        }
    }
}
