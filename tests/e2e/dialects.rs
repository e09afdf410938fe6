//! Every client API reaches providers of every dialect: what the provider says reaches the client in
//! its own API's shape, and the ledger has what the provider counted.
#![expect(
    clippy::indexing_slicing,
    reason = "a member that is missing is null, and fails its comparison"
)]

use proto::metering::v1::UsageSource;
use serde_json::{Value, json};
use tests::{
    http::{Answer, Request},
    stack::{Options, Stack},
};

/// The client APIs, by the path that they are asked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Chat,
    Messages,
    GenerateContent,
}

const CLIENTS: [Client; 3] = [Client::Chat, Client::Messages, Client::GenerateContent];
/// A model of a provider of each dialect.
const MODELS: [&str; 3] = ["by-openai", "by-anthropic", "by-gemini"];

/// What a client sees of an answer, whatever its API.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    text: String,
    thinking: String,
    /// Name and arguments of each call.
    calls: Vec<(String, Value)>,
    finish: String,
    input: u64,
    output: u64,
}

fn stack() -> Stack {
    let stack = Stack::start(&Options::default());
    let port = stack.provider.port;
    let secret = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(secret.path(), "sk-test-vendor").expect("written");
    let file = secret.path().display();
    stack.apply(&format!(
        "kind: Provider\nid: anthropic\nspec:\n  dialect: anthropic\n  \
         baseUrl: http://127.0.0.1:{port}/v1\n---\n\
         kind: Credential\nid: anthropic\nspec:\n  provider: anthropic\n  secretFile: {file}\n---\n\
         kind: Provider\nid: gemini\nspec:\n  dialect: gemini\n  \
         baseUrl: http://127.0.0.1:{port}/v1beta\n---\n\
         kind: Credential\nid: gemini\nspec:\n  provider: gemini\n  secretFile: {file}\n---\n\
         kind: Model\nid: by-openai\nspec:\n  capabilities: [tools]\n  targets:\n  - provider: demo\n---\n\
         kind: Model\nid: by-anthropic\nspec:\n  capabilities: [tools]\n  targets:\n  - provider: anthropic\n    upstreamModel: claude-test\n---\n\
         kind: Model\nid: by-gemini\nspec:\n  capabilities: [tools]\n  targets:\n  - provider: gemini\n    upstreamModel: gem-test\n"
    ));
    stack
}

impl Client {
    fn ask(self, key: &str, model: &str, stream: bool) -> Request {
        match self {
            Self::Chat => {
                let body = json!({"model": model, "stream": stream,
                    "stream_options": stream.then(|| json!({"include_usage": true})),
                    "messages": [{"role": "system", "content": "Be brief."},
                        {"role": "user", "content": "Hello"}]});
                Request::chat(key, &body)
            }
            Self::Messages => {
                let body = json!({"model": model, "stream": stream, "max_tokens": 500,
                    "system": "Be brief.",
                    "messages": [{"role": "user", "content": "Hello"}]});
                Request::new("POST", "/v1/messages")
                    .header("x-api-key", key)
                    .header("anthropic-version", "2023-06-01")
                    .json(&body)
            }
            Self::GenerateContent => {
                let method = match stream {
                    true => "streamGenerateContent?alt=sse",
                    false => "generateContent",
                };
                let body = json!({"systemInstruction": {"parts": [{"text": "Be brief."}]},
                    "contents": [{"role": "user", "parts": [{"text": "Hello"}]}]});
                Request::new("POST", &format!("/v1beta/models/{model}:{method}"))
                    .header("x-goog-api-key", key)
                    .json(&body)
            }
        }
    }

    fn seen(self, answer: &Answer, stream: bool) -> Seen {
        match (self, stream) {
            (Self::Chat, false) => chat(&answer.json()),
            (Self::Chat, true) => chat_stream(answer),
            (Self::Messages, false) => message(&answer.json()),
            (Self::Messages, true) => message_stream(answer),
            (Self::GenerateContent, false) => response(&[answer.json()]),
            (Self::GenerateContent, true) => response(&answer.events()),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn chat(json: &Value) -> Seen {
    let choice = &json["choices"][0];
    let message = &choice["message"];
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    Seen {
        text: text(&message["content"]),
        thinking: text(&message["reasoning_content"]),
        calls: calls
            .map(|call| {
                let function = &call["function"];
                let arguments = text(&function["arguments"]);
                let arguments = serde_json::from_str(&arguments).expect("JSON");
                (text(&function["name"]), arguments)
            })
            .collect(),
        finish: text(&choice["finish_reason"]),
        input: json["usage"]["prompt_tokens"].as_u64().unwrap_or(0),
        output: json["usage"]["completion_tokens"].as_u64().unwrap_or(0),
    }
}

fn chat_stream(answer: &Answer) -> Seen {
    let mut seen = Seen::default();
    let mut calls: Vec<(String, String)> = Vec::new();
    for chunk in answer.events() {
        let choice = &chunk["choices"][0];
        let delta = &choice["delta"];
        seen.text.push_str(&text(&delta["content"]));
        seen.thinking.push_str(&text(&delta["reasoning_content"]));
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(piece["index"].as_u64().expect("an index")).expect("small");
            calls.resize(calls.len().max(index + 1), Default::default());
            let function = &piece["function"];
            calls[index].0.push_str(&text(&function["name"]));
            calls[index].1.push_str(&text(&function["arguments"]));
        }
        if choice["finish_reason"].is_string() {
            seen.finish = text(&choice["finish_reason"]);
        }
        if chunk["usage"].is_object() {
            let usage = chat(&chunk);
            (seen.input, seen.output) = (usage.input, usage.output);
        }
    }
    let whole = |(name, arguments): (String, String)| {
        (name, serde_json::from_str(&arguments).expect("JSON"))
    };
    seen.calls = calls.into_iter().map(whole).collect();
    assert!(answer.text().ends_with("data: [DONE]\n\n"));
    seen
}

/// Anthropic's words in OpenAI's.
fn finish_of(stop_reason: &str) -> String {
    match stop_reason {
        "end_turn" => "stop",
        "tool_use" => "tool_calls",
        "max_tokens" => "length",
        other => other,
    }
    .to_owned()
}

fn message(json: &Value) -> Seen {
    let mut seen = Seen {
        finish: finish_of(&text(&json["stop_reason"])),
        ..Seen::default()
    };
    for block in json["content"].as_array().expect("content") {
        seen.text.push_str(&text(&block["text"]));
        seen.thinking.push_str(&text(&block["thinking"]));
        if block["type"] == "tool_use" {
            seen.calls
                .push((text(&block["name"]), block["input"].clone()));
        }
    }
    add_usage(&mut seen, &json["usage"]);
    seen
}

fn add_usage(seen: &mut Seen, usage: &Value) {
    let count = |name: &str| usage[name].as_u64();
    if let Some(input) = count("input_tokens") {
        let cached = count("cache_read_input_tokens").unwrap_or(0);
        seen.input = input + cached + count("cache_creation_input_tokens").unwrap_or(0);
    }
    seen.output = count("output_tokens").unwrap_or(seen.output);
}

fn message_stream(answer: &Answer) -> Seen {
    let mut seen = Seen::default();
    let mut open: Option<u64> = None;
    let mut arguments = String::new();
    let events = answer.events();
    assert_eq!(events[0]["type"], "message_start");
    assert_eq!(events.last().expect("events")["type"], "message_stop");
    for event in &events {
        let index = event["index"].as_u64();
        match event["type"].as_str().expect("a type") {
            "message_start" => add_usage(&mut seen, &event["message"]["usage"]),
            "content_block_start" => {
                assert_eq!(open, None, "one block at a time");
                open = index;
                let block = &event["content_block"];
                if block["type"] == "tool_use" {
                    seen.calls.push((text(&block["name"]), json!({})));
                    arguments.clear();
                }
            }
            "content_block_delta" => {
                assert_eq!(open, index);
                let delta = &event["delta"];
                seen.text.push_str(&text(&delta["text"]));
                seen.thinking.push_str(&text(&delta["thinking"]));
                arguments.push_str(&text(&delta["partial_json"]));
                if delta["type"] == "input_json_delta"
                    && let Ok(whole) = serde_json::from_str(&arguments)
                {
                    seen.calls.last_mut().expect("a call").1 = whole;
                }
            }
            "content_block_stop" => assert_eq!(open.take(), index),
            "message_delta" => {
                seen.finish = finish_of(&text(&event["delta"]["stop_reason"]));
                add_usage(&mut seen, &event["usage"]);
            }
            _ => {}
        }
    }
    seen
}

fn response(responses: &[Value]) -> Seen {
    let mut seen = Seen::default();
    for response in responses {
        let candidate = &response["candidates"][0];
        for part in candidate["content"]["parts"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let to = match part["thought"].as_bool() {
                Some(true) => &mut seen.thinking,
                _ => &mut seen.text,
            };
            to.push_str(&text(&part["text"]));
            if let Some(call) = part.get("functionCall") {
                seen.calls.push((text(&call["name"]), call["args"].clone()));
            }
        }
        if let Some(word) = candidate["finishReason"].as_str() {
            seen.finish = match (word, seen.calls.is_empty()) {
                ("STOP", true) => "stop".to_owned(),
                ("STOP", false) => "tool_calls".to_owned(),
                (other, _) => other.to_owned(),
            };
        }
        let usage = &response["usageMetadata"];
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        if usage.is_object() {
            seen.input = count("promptTokenCount");
            seen.output = count("candidatesTokenCount") + count("thoughtsTokenCount");
        }
    }
    seen
}

#[test]
fn every_client_reaches_every_dialect_and_each_token_is_counted() {
    let stack = stack();
    let key = stack.key("dialects");
    let script = json!({
        "text": "Grüße, 世界!", "reasoning_content": "Let me think.", "chunks": 4,
        "tool_calls": [{"name": "weather", "arguments": {"city": "Oslo"}},
            {"name": "time", "arguments": {}}],
    });
    for client in CLIENTS {
        for model in MODELS {
            for stream in [false, true] {
                let case = format!("{client:?} to {model}, streamed: {stream}");
                let request = client.ask(&key, model, stream).script(&script);
                let answer = request.send(stack.port()).expect("an answer");
                assert_eq!(answer.status, 200, "{case}: {}", answer.text());
                let id = answer.header("x-request-id").expect("an id");
                let served = stack.served();
                let served = served.iter().rfind(|served| served.request_id == id);
                let tokens = served.expect("served").tokens;
                let seen = client.seen(&answer, stream);
                let expected = Seen {
                    text: "Grüße, 世界!".to_owned(),
                    thinking: "Let me think.".to_owned(),
                    calls: vec![
                        ("weather".to_owned(), json!({"city": "Oslo"})),
                        ("time".to_owned(), json!({})),
                    ],
                    finish: "tool_calls".to_owned(),
                    input: tokens.input,
                    output: tokens.output,
                };
                assert_eq!(seen, expected, "{case}: {}", answer.text());
                let record = stack.record(id).record;
                let attempt = &record.attempts[0];
                let usage = attempt.usage.as_ref().expect("usage");
                assert_eq!(usage.source(), UsageSource::Reported, "{case}");
                assert_eq!(
                    (usage.input, usage.cached_input, usage.output),
                    (tokens.input, tokens.cached_input, tokens.output),
                    "{case}"
                );
            }
        }
    }
}

#[test]
fn a_conversation_with_calls_goes_on_whoever_answers() {
    let stack = stack();
    let key = stack.key("turns");
    let tool = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    for model in MODELS {
        // The provider refuses what its vendor would: a result without its call, empty text.
        let chat = json!({"model": model, "messages": [
            {"role": "user", "content": "Weather in Oslo?"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "call_1", "type": "function",
                 "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}},
                {"id": "call_2", "type": "function",
                 "function": {"name": "weather", "arguments": ""}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
            {"role": "tool", "tool_call_id": "call_2", "content": ""}],
            "tools": [{"type": "function", "function": {"name": "weather", "parameters": tool}}]});
        let messages = json!({"model": model, "max_tokens": 99, "messages": [
            {"role": "user", "content": "Weather in Oslo?"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"},
                {"type": "text", "text": "And now?", "cache_control": {"type": "ephemeral"}}]}],
            "tools": [{"name": "weather", "input_schema": tool}]});
        let contents = json!({"contents": [
            {"role": "user", "parts": [{"text": "Weather in Oslo?"}]},
            {"role": "model", "parts": [
                {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "weather", "response": {"result": "rain"}}}]}],
            "tools": [{"functionDeclarations": [
                {"name": "weather", "parametersJsonSchema": tool}]}]});
        let gemini = format!("/v1beta/models/{model}:generateContent");
        for (path, body) in [
            ("/v1/chat/completions", &chat),
            ("/v1/messages", &messages),
            (gemini.as_str(), &contents),
        ] {
            let answer = Request::new("POST", path)
                .key(&key)
                .header("anthropic-version", "2023-06-01")
                .json(body)
                .send(stack.port())
                .expect("an answer");
            assert_eq!(answer.status, 200, "{path} by {model}: {}", answer.text());
        }
    }
}

#[test]
fn errors_are_told_in_the_clients_own_shape_whoever_tells_them() {
    let stack = stack();
    let key = stack.key("errors");
    let limited = |client: Client, model: &str, script: &Value| {
        let answer = client.ask(&key, model, true).script(script);
        let answer = answer.send(stack.port()).expect("an answer");
        let text = answer.text();
        assert_eq!(answer.status, 429, "{client:?} by {model}: {text}");
        assert_shape(client, &answer.json());
        assert!(text.contains("scripted status 429"), "{text}");
        answer
    };
    for client in CLIENTS {
        for model in MODELS {
            limited(client, model, &json!({"status": 429}));
        }
    }
    // A target is left alone as long as it says, so each is asked but once from here on.
    for (client, model) in CLIENTS.into_iter().zip(MODELS) {
        let script = json!({"status": 429, "retry_after": "7"});
        let answer = limited(client, model, &script);
        assert_eq!(answer.header("retry-after"), Some("7"));
    }
    for client in CLIENTS {
        let answer = client
            .ask("tp_wrong", "by-openai", false)
            .send(stack.port());
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 401, "{}", answer.text());
        assert_shape(client, &answer.json());
        let answer = client.ask(&key, "nobody", false).send(stack.port());
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 404, "{}", answer.text());
        assert_shape(client, &answer.json());
    }
}

fn assert_shape(client: Client, json: &Value) {
    let error = &json["error"];
    assert!(error["message"].is_string(), "{json}");
    match client {
        Client::Chat => assert!(
            error["type"].is_string() && error.get("param").is_some(),
            "{json}"
        ),
        Client::Messages => {
            assert_eq!(json["type"], "error");
            assert!(
                error["type"]
                    .as_str()
                    .is_some_and(|kind| kind.ends_with("_error")),
                "{json}"
            );
        }
        Client::GenerateContent => {
            assert!(
                error["code"].is_u64() && error["status"].is_string(),
                "{json}"
            );
        }
    }
}

#[test]
fn a_stream_that_breaks_off_ends_with_an_error_of_the_clients_api() {
    let stack = stack();
    let key = stack.key("cuts");
    for client in CLIENTS {
        for model in MODELS {
            let answer = client
                .ask(&key, model, true)
                .script(&json!({"text": "one two three four", "chunks": 8, "cut_after_chunks": 6, "cut": "rst"}))
                .send(stack.port())
                .expect("an answer");
            let case = format!("{client:?} by {model}: {}", answer.text());
            assert_eq!(answer.status, 200, "{case}");
            let last = answer.events().pop().expect("an event");
            assert_shape(client, &last);
            let id = answer.header("x-request-id").expect("an id");
            let record = stack.record(id).record;
            let attempt = &record.attempts[0];
            assert!(attempt.usage.is_some(), "{case}");
            if model == "by-anthropic" {
                let served = stack.served();
                let served = served.iter().rfind(|served| served.request_id == id);
                let usage = attempt.usage.as_ref().expect("usage");
                assert_eq!(usage.input, served.expect("served").tokens.input, "{case}");
                assert_eq!(usage.source(), UsageSource::Estimated, "{case}");
                assert!(usage.output >= 1, "{case}");
            }
        }
    }
}

#[test]
fn what_a_target_can_not_be_told_is_named_in_a_header() {
    let stack = stack();
    let key = stack.key("left-out");
    let body = json!({"model": "by-anthropic", "temperature": 1.5, "logit_bias": {"1": 2},
        "messages": [{"role": "user", "content": "Hello"}]});
    let answer = Request::chat(&key, &body)
        .send(stack.port())
        .expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let named = answer.header("x-turnpike-left-out");
    assert_eq!(named, Some("logit_bias, temperature (clamped)"));
    let native = Request::chat(
        &key,
        &json!({"model": "by-openai", "logit_bias": {"1": 2},
        "messages": [{"role": "user", "content": "Hello"}]}),
    );
    let answer = native.send(stack.port()).expect("an answer");
    assert_eq!(answer.header("x-turnpike-left-out"), None);
    let several = json!({"model": "by-gemini", "n": 2,
        "messages": [{"role": "user", "content": "Hello"}]});
    let answer = Request::chat(&key, &several)
        .send(stack.port())
        .expect("an answer");
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(answer.json()["error"]["param"], "n", "{}", answer.text());
}

#[test]
fn lists_of_models_have_the_shape_of_the_client_that_asks() {
    let stack = stack();
    let key = stack.key("models");
    let list = |path: &str, header: (&str, &str)| {
        let request = Request::new("GET", path)
            .key(&key)
            .header(header.0, header.1);
        request.send(stack.port()).expect("an answer").json()
    };
    let openai = list("/v1/models", ("accept", "application/json"));
    assert_eq!(openai["object"], "list");
    let anthropic = list("/v1/models", ("anthropic-version", "2023-06-01"));
    assert_eq!(anthropic["data"][0]["type"], "model");
    assert_eq!(anthropic["has_more"], false);
    let gemini = list("/v1beta/models", ("accept", "application/json"));
    let names = gemini["models"].as_array().expect("models");
    assert!(
        names
            .iter()
            .any(|model| model["name"] == "models/by-gemini"),
        "{gemini}"
    );
}
