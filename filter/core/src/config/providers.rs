//! Where models are served, and how requests to there look.

use std::collections::BTreeMap;

use filter_llm::api::{Api, Dialect};
use filter_llm::translate::Quirks;
use proto::config::v1::{self as wire, CredentialPlace, Quirk};

use super::ResourceKind;
use super::compile::Faults;
use crate::text;

/// Stands for the upstream model in a path prefix.
const MODEL: &str = "{model}";
const MOST_HEADERS: usize = 16;
/// Headers that are the gateway's, Envoy's or the connection's own.
const OWN_HEADERS: [&str; 14] = [
    "accept-encoding",
    "api-key",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
    "x-api-key",
    "x-goog-api-key",
    "x-request-id",
];

/// Where models are served.
pub(crate) struct Provider {
    pub(crate) id: Box<str>,
    pub(crate) dialect: Dialect,
    pub(crate) authority: Box<str>,
    path_prefix: Box<str>,
    query: Box<str>,
    pub(crate) cluster_name: Box<str>,
    pub(crate) place: CredentialPlace,
    pub(crate) headers: FixedHeaders,
    pub(crate) quirks: Quirks,
}

/// Name and value of each header that is sent with every request.
type FixedHeaders = Vec<(Box<str>, Box<str>)>;

impl Provider {
    pub(crate) fn takes_credential(&self) -> bool {
        self.place != CredentialPlace::None
    }

    /// The header that carries the credential.
    pub(crate) fn credential_header(&self) -> Option<&'static str> {
        match self.place {
            CredentialPlace::Bearer => Some("authorization"),
            CredentialPlace::ApiKey => Some("api-key"),
            CredentialPlace::XApiKey => Some("x-api-key"),
            CredentialPlace::XGoogApiKey => Some("x-goog-api-key"),
            CredentialPlace::None | CredentialPlace::Sigv4 | CredentialPlace::Unspecified => None,
        }
    }

    /// The API in which requests of a client's API go to this provider; `None`: they can't.
    pub(crate) fn serves(&self, client: Api) -> Option<Api> {
        let is_missing = client == Api::Responses && self.quirks.no_responses;
        if self.dialect.has(client) && !is_missing {
            Some(client)
        } else if client.is_conversation() {
            Some(self.dialect.main_api())
        } else {
            None
        }
    }

    /// The paths of one model's requests.
    pub(super) fn paths(&self, upstream_model: &str) -> Paths {
        let paths = Api::ALL.into_iter().filter(|api| self.dialect.has(*api));
        let each = paths.flat_map(|api| {
            [false, true].map(|stream| {
                let path = self.path(api, stream, upstream_model);
                (api, stream, path.into_boxed_str())
            })
        });
        Paths(each.collect())
    }

    fn path(&self, api: Api, stream: bool, upstream_model: &str) -> String {
        let model = text::percent_encode(upstream_model);
        let is_vertex = self.quirks.is_vertex;
        let own = match (api, stream) {
            (Api::ChatCompletions, _) => "/chat/completions".to_owned(),
            (Api::Completions, _) => "/completions".to_owned(),
            (Api::Embeddings, _) => "/embeddings".to_owned(),
            (Api::Responses, _) => "/responses".to_owned(),
            (Api::Messages, false) if is_vertex => format!("/models/{model}:rawPredict"),
            (Api::Messages, true) if is_vertex => format!("/models/{model}:streamRawPredict"),
            (Api::CountTokens, _) if is_vertex => "/models/count-tokens:rawPredict".to_owned(),
            (Api::Messages, _) => "/messages".to_owned(),
            (Api::CountTokens, _) => "/messages/count_tokens".to_owned(),
            (Api::GenerateContent, false) => format!("/models/{model}:generateContent"),
            (Api::GenerateContent, true) => {
                format!("/models/{model}:streamGenerateContent?alt=sse")
            }
            (Api::Converse, false) => format!("/model/{model}/converse"),
            (Api::Converse, true) => format!("/model/{model}/converse-stream"),
            (Api::Inference, _) => String::new(),
        };
        let mut path = self.path_prefix.replace(MODEL, &model);
        path.push_str(&own);
        if !self.query.is_empty() {
            path.push(if own.contains('?') { '&' } else { '?' });
            path.push_str(&self.query);
        }
        path
    }
}

/// The paths of one target's requests, whole with their query.
#[derive(Default)]
pub(crate) struct Paths(Vec<(Api, bool, Box<str>)>);

impl Paths {
    /// Empty for an API that the target does not serve.
    pub(crate) fn path(&self, api: Api, stream: bool) -> &str {
        let found = self
            .0
            .iter()
            .find(|(of, is, _)| *of == api && *is == stream);
        found.map_or("", |(_, _, path)| path)
    }
}

pub(super) fn compile(
    wire: &BTreeMap<String, wire::Provider>,
    faults: &mut Faults,
) -> Vec<Provider> {
    let mut providers = Vec::with_capacity(wire.len());
    for (name, provider) in wire {
        if !faults.check_id(ResourceKind::Provider, name, &provider.id) {
            continue;
        }
        match compile_provider(provider) {
            Ok(provider) => providers.push(provider),
            Err((place, reason)) => faults.add(ResourceKind::Provider, name, place, reason),
        }
    }
    providers
}

/// The place at fault, and why.
type Fault = (&'static str, &'static str);

fn compile_provider(wire: &wire::Provider) -> Result<Provider, Fault> {
    let dialect = match wire::Dialect::try_from(wire.dialect) {
        Ok(wire::Dialect::Openai) => Dialect::OpenAi,
        Ok(wire::Dialect::Anthropic) => Dialect::Anthropic,
        Ok(wire::Dialect::Gemini) => Dialect::Gemini,
        // Nothing translates to it, and nothing signs its requests.
        Ok(wire::Dialect::Converse) => return Err(("dialect", "converse is not served yet")),
        Ok(wire::Dialect::Unspecified) | Err(_) => return Err(("dialect", "no such dialect")),
    };
    let place = match CredentialPlace::try_from(wire.credential_place) {
        Ok(CredentialPlace::Unspecified) | Err(_) => {
            return Err(("credential_place", "no such place"));
        }
        Ok(CredentialPlace::Sigv4) => {
            return Err(("credential_place", "sigv4 is not served yet"));
        }
        Ok(place) => place,
    };
    check_address(wire)?;
    Ok(Provider {
        id: wire.id.as_str().into(),
        dialect,
        authority: wire.authority.as_str().into(),
        path_prefix: wire.path_prefix.as_str().into(),
        query: wire.query.as_str().into(),
        cluster_name: wire.cluster_name.as_str().into(),
        place,
        headers: compile_headers(&wire.headers)?,
        quirks: quirks(wire)?,
    })
}

fn check_address(wire: &wire::Provider) -> Result<(), Fault> {
    if wire.authority.is_empty() || !is_visible(&wire.authority) || wire.authority.contains('/') {
        return Err(("authority", "must be a host, with a port if need be"));
    }
    let prefix = wire.path_prefix.as_str();
    let well_formed = prefix.is_empty() || prefix.starts_with('/') && !prefix.ends_with('/');
    if !well_formed || !is_visible(prefix) || prefix.contains(['?', '#']) {
        return Err((
            "path_prefix",
            "must be empty, or start with / and not end in one",
        ));
    }
    if !is_visible(&wire.query) || wire.query.contains(['?', '#']) {
        return Err(("query", "must be a query without its question mark"));
    }
    if wire.cluster_name.is_empty() || !is_visible(&wire.cluster_name) {
        return Err(("cluster_name", "must be the name of an Envoy cluster"));
    }
    Ok(())
}

fn compile_headers(wire: &[wire::Header]) -> Result<FixedHeaders, Fault> {
    if wire.len() > MOST_HEADERS {
        return Err(("headers", "at most 16"));
    }
    let mut headers: FixedHeaders = Vec::with_capacity(wire.len());
    for wire::Header { name, value } in wire {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(("headers", "a name must be of a-z, 0-9 and -"));
        }
        let is_own = OWN_HEADERS.binary_search(&name.as_str()).is_ok();
        if is_own || name.starts_with("x-envoy-") || name.starts_with("x-turnpike-") {
            return Err(("headers", "one is the gateway's own"));
        }
        if headers.iter().any(|(other, _)| **other == **name) {
            return Err(("headers", "one is there twice"));
        }
        let is_text = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        if value.trim() != value || !value.bytes().all(is_text) {
            return Err(("headers", "a value must be visible ASCII"));
        }
        headers.push((name.as_str().into(), value.as_str().into()));
    }
    Ok(headers)
}

fn quirks(wire: &wire::Provider) -> Result<Quirks, Fault> {
    let mut quirks = Quirks {
        no_stream_options: !wire.stream_usage_option,
        ..Quirks::default()
    };
    for &quirk in &wire.quirks {
        let is_set = match Quirk::try_from(quirk) {
            Ok(Quirk::MaxTokensMember) => &mut quirks.max_tokens_member,
            Ok(Quirk::NoJsonSchema) => &mut quirks.no_json_schema,
            Ok(Quirk::NoReasoning) => &mut quirks.no_reasoning,
            Ok(Quirk::NoParallelToolCalls) => &mut quirks.no_parallel_tool_calls,
            Ok(Quirk::ToolChoiceAny) => &mut quirks.tool_choice_any,
            Ok(Quirk::NoLinks) => &mut quirks.no_links,
            Ok(Quirk::Vertex) => &mut quirks.is_vertex,
            Ok(Quirk::NoResponses) => &mut quirks.no_responses,
            Ok(Quirk::WantsReasoningBack) => &mut quirks.wants_reasoning_back,
            Ok(Quirk::Unspecified) | Err(_) => return Err(("quirks", "no such quirk")),
        };
        *is_set = true;
    }
    Ok(quirks)
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(dialect: wire::Dialect, prefix: &str, query: &str) -> wire::Provider {
        wire::Provider {
            id: "p".into(),
            dialect: dialect.into(),
            authority: "p.example".into(),
            path_prefix: prefix.into(),
            query: query.into(),
            cluster_name: "c".into(),
            credential_place: CredentialPlace::Bearer.into(),
            ..wire::Provider::default()
        }
    }

    fn fault(provider: &wire::Provider) -> Fault {
        compile_provider(provider).map(|_| ()).unwrap_err()
    }

    #[test]
    fn every_providers_paths_are_made_of_prefix_api_model_and_query() {
        let mut on_vertex = provider(wire::Dialect::Anthropic, "/v1/projects/p", "");
        on_vertex.quirks = vec![Quirk::Vertex.into()];
        let azure = provider(
            wire::Dialect::Openai,
            "/openai/deployments/{model}",
            "api-version=2024-10-21",
        );
        let gemini = provider(wire::Dialect::Gemini, "/v1beta", "x=1");
        for (provider, api, stream, path) in [
            (
                &azure,
                Api::ChatCompletions,
                true,
                "/openai/deployments/m%2F1/chat/completions?api-version=2024-10-21",
            ),
            (
                &gemini,
                Api::GenerateContent,
                true,
                "/v1beta/models/m%2F1:streamGenerateContent?alt=sse&x=1",
            ),
            (
                &gemini,
                Api::GenerateContent,
                false,
                "/v1beta/models/m%2F1:generateContent?x=1",
            ),
            (
                &on_vertex,
                Api::Messages,
                true,
                "/v1/projects/p/models/m%2F1:streamRawPredict",
            ),
        ] {
            let compiled = compile_provider(provider).map_err(|fault| fault.1).unwrap();
            assert_eq!(compiled.paths("m/1").path(api, stream), path);
        }
    }

    #[test]
    fn an_api_is_served_as_it_is_or_translated_or_not_at_all() {
        let openai = compile_provider(&provider(wire::Dialect::Openai, "/v1", ""))
            .unwrap_or_else(|_| panic!());
        assert_eq!(openai.serves(Api::Responses), Some(Api::Responses));
        assert_eq!(openai.serves(Api::Messages), Some(Api::ChatCompletions));
        assert_eq!(openai.serves(Api::CountTokens), None);
        let mut older = provider(wire::Dialect::Openai, "/v1", "");
        older.quirks = vec![Quirk::NoResponses.into()];
        let older = compile_provider(&older).unwrap_or_else(|_| panic!());
        assert_eq!(older.serves(Api::Responses), Some(Api::ChatCompletions));
    }

    #[test]
    fn headers_of_the_gateways_own_are_refused() {
        assert!(OWN_HEADERS.is_sorted());
        for (name, value) in [
            ("authorization", "x"),
            ("x-envoy-max-retries", "9"),
            ("Anthropic-Version", "x"),
            ("a", "line\nbreak"),
        ] {
            let mut with = provider(wire::Dialect::Openai, "/v1", "");
            with.headers = vec![wire::Header {
                name: name.into(),
                value: value.into(),
            }];
            assert_eq!(fault(&with).0, "headers", "{name}");
        }
    }

    #[test]
    fn what_is_not_served_yet_is_refused() {
        let converse = provider(wire::Dialect::Converse, "", "");
        assert_eq!(fault(&converse).0, "dialect");
        let mut signed = provider(wire::Dialect::Openai, "", "");
        signed.credential_place = CredentialPlace::Sigv4.into();
        assert_eq!(fault(&signed).0, "credential_place");
    }
}
