//! Gemini's `generateContent`, played: what a request must have, and how an answer looks.

use serde_json::{Value, json};

use crate::{
    answer::{Answer, Ask, split},
    script::{Script, ToolCall},
    stream::Event,
    tokens::Tokens,
};

/// Members that a request may have; any other is refused, as Google does.
const MEMBERS: [&str; 9] = [
    "cachedContent",
    "contents",
    "generationConfig",
    "labels",
    "model",
    "safetySettings",
    "systemInstruction",
    "toolConfig",
    "tools",
];

/// A path's model and whether it streams, if it asks Gemini.
pub fn asked(path: &str) -> Option<(&str, bool)> {
    let (model, method) = path.strip_prefix("/v1beta/models/")?.rsplit_once(':')?;
    match method {
        "generateContent" => Some((model, false)),
        "streamGenerateContent" => Some((model, true)),
        _ => None,
    }
}

/// Reads a request, as strictly as Google does. The error is its message.
pub fn read(model: &str, stream: bool, body: &Value) -> Result<Ask, String> {
    let members = body.as_object().ok_or("Invalid JSON payload received.")?;
    for name in members.keys() {
        if !MEMBERS.contains(&name.as_str()) {
            return Err(format!(
                "Invalid JSON payload received. Unknown name \"{name}\""
            ));
        }
    }
    let contents = body["contents"]
        .as_array()
        .filter(|contents| !contents.is_empty());
    let contents =
        contents.ok_or("* GenerateContentRequest.contents: contents is not specified")?;
    for (at, content) in contents.iter().enumerate() {
        if !matches!(content["role"].as_str(), None | Some("user" | "model")) {
            return Err("Please use a valid role: user, model.".to_owned());
        }
        if content["parts"].as_array().is_none_or(Vec::is_empty) {
            return Err(format!(
                "* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty."
            ));
        }
    }
    let parts = |content: &'_ Value| content["parts"].as_array().cloned().unwrap_or_default();
    let is_answered = contents.last().is_some_and(|last| {
        parts(last)
            .iter()
            .any(|part| part.get("functionResponse").is_some())
    });
    let users = contents
        .iter()
        .rev()
        .filter(|content| content["role"] != "model");
    let text = |content: &Value| {
        let texts = parts(content)
            .into_iter()
            .filter_map(|part| Some(part.get("text")?.as_str()?.to_owned()));
        texts.collect::<Vec<_>>().join(" ")
    };
    Ok(Ask {
        model: model.to_owned(),
        stream,
        include_usage: true,
        last_user_text: users
            .map(text)
            .find(|text| !text.is_empty())
            .unwrap_or_default(),
        forced_tool: (!is_answered).then(|| forced_tool(body)).flatten(),
    })
}

/// The tool that `toolConfig` leaves no way around, in the form that answers are made from.
fn forced_tool(body: &Value) -> Option<Value> {
    let calling = body.pointer("/toolConfig/functionCallingConfig")?;
    if calling["mode"] != "ANY" {
        return None;
    }
    let functions = body.pointer("/tools/0/functionDeclarations")?.as_array()?;
    let tool = match calling.pointer("/allowedFunctionNames/0") {
        Some(name) => functions.iter().find(|tool| tool["name"] == *name)?,
        None => functions.first()?,
    };
    Some(json!({"function": {"name": tool["name"], "parameters": tool["parametersJsonSchema"]}}))
}

/// An error in Google's shape.
pub fn error_json(status: u16, message: &str) -> Value {
    let word = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": message, "status": word}})
}

/// Thoughts stand beside the candidates' tokens; what was cached lies within the prompt.
fn usage(tokens: Tokens) -> Value {
    json!({
        "promptTokenCount": tokens.prompt,
        "cachedContentTokenCount": tokens.cached,
        "candidatesTokenCount": tokens.completion - tokens.reasoning,
        "thoughtsTokenCount": tokens.reasoning,
        "totalTokenCount": tokens.prompt + tokens.completion,
    })
}

fn finish_reason(answer: &Answer) -> &str {
    match answer.finish_reason.as_str() {
        "stop" | "tool_calls" => "STOP",
        "length" => "MAX_TOKENS",
        "content_filter" => "SAFETY",
        other => other,
    }
}

fn call_part(call: &ToolCall) -> Value {
    let args = match &call.arguments {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!({})),
        value => value.clone(),
    };
    json!({"functionCall": {"name": call.name, "args": args, "id": call.id},
        "thoughtSignature": "c2lnbmVkLWNhbGw="})
}

fn response(answer: &Answer, parts: &[Value], finish: bool, usage: Value) -> Value {
    let candidate = match finish {
        true => json!({"content": {"parts": parts, "role": "model"}, "index": 0,
            "finishReason": finish_reason(answer)}),
        false => json!({"content": {"parts": parts, "role": "model"}, "index": 0}),
    };
    json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": answer.model,
        "responseId": answer.id})
}

/// The whole response.
pub fn whole(answer: &Answer) -> Value {
    let thought = answer
        .reasoning
        .iter()
        .map(|text| json!({"text": text, "thought": true}));
    let text = answer.text.iter().map(|text| json!({"text": text}));
    let calls = answer.tool_calls.iter().map(call_part);
    let parts: Vec<Value> = thought.chain(text).chain(calls).collect();
    response(answer, &parts, true, usage(answer.tokens))
}

/// The chunks of a streamed response: usage grows, calls come whole.
pub fn events(answer: &Answer, script: &Script) -> Vec<Event> {
    let pieces = |text: &Option<String>| {
        split(
            text.as_deref().unwrap_or_default(),
            script.chunks.unwrap_or(6),
        )
    };
    let thoughts = pieces(&answer.reasoning);
    let thoughts = thoughts
        .iter()
        .map(|piece| json!({"text": piece, "thought": true}));
    let texts = pieces(&answer.text);
    let texts = texts.iter().map(|piece| json!({"text": piece}));
    let calls = answer.tool_calls.iter().map(call_part);
    let parts: Vec<Value> = thoughts.chain(texts).chain(calls).collect();
    let all = u64::try_from(parts.len()).unwrap_or(u64::MAX);
    let mut events: Vec<Event> = (1..)
        .zip(&parts)
        .map(|(done, part)| {
            let is_last = done == all;
            let tokens = if is_last {
                answer.tokens
            } else {
                answer.tokens.after(done, all)
            };
            event(
                &response(answer, std::slice::from_ref(part), is_last, usage(tokens)),
                Some(tokens),
            )
        })
        .collect();
    if let Some(error) = &script.error_event {
        events.truncate(error.after_chunks);
        let body = error.body.clone();
        let body = body.unwrap_or_else(|| error_json(503, "The model is overloaded."));
        events.push(event(&body, None));
    }
    events
}

fn event(data: &Value, usage: Option<Tokens>) -> Event {
    let bytes = format!("data: {data}\r\n\r\n").into_bytes();
    Event { bytes, usage }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_google_refuses_is_refused() {
        let fault = |body: Value| read("m", false, &body).unwrap_err();
        assert!(fault(json!({"contents": [], "stream": true})).contains("\"stream\""));
        assert!(fault(json!({"contents": []})).contains("not specified"));
        assert!(
            fault(json!({"contents": [{"role": "assistant", "parts": [{}]}]}))
                .contains("valid role")
        );
        assert!(
            fault(json!({"contents": [{"role": "user", "parts": []}]}))
                .contains("must not be empty")
        );
    }
}
