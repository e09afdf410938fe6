//! Anthropic's Messages, played: what a request must have, and how an answer looks.

use serde_json::{Value, json};

use crate::{
    answer::{Answer, Ask, split},
    script::{Script, ToolCall},
    stream::Event,
    tokens::Tokens,
};

/// Reads a request, as strictly as Anthropic does. The error is its message.
pub fn read(body: &Value, version: Option<&str>) -> Result<Ask, String> {
    if version.is_none() {
        return Err("anthropic-version: header is required".to_owned());
    }
    let model = body.get("model").and_then(Value::as_str);
    let model = model.ok_or("model: Field required")?.to_owned();
    if body.get("max_tokens").and_then(Value::as_u64).is_none() {
        return Err("max_tokens: Field required".to_owned());
    }
    let messages = body.get("messages").and_then(Value::as_array);
    let messages = messages.ok_or("messages: Field required")?;
    check_messages(messages)?;
    let last = messages.last();
    let is_answered =
        last.is_some_and(|last| blocks(last).any(|block| block["type"] == "tool_result"));
    let users = messages
        .iter()
        .rev()
        .filter(|message| message["role"] == "user");
    let said = users.map(text_of).find(|text| !text.is_empty());
    Ok(Ask {
        model,
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        include_usage: true,
        last_user_text: said.unwrap_or_default(),
        forced_tool: (!is_answered).then(|| forced_tool(body)).flatten(),
    })
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message["content"].as_array().into_iter().flatten()
}

/// The text of a message, results of tools not counted.
fn text_of(message: &Value) -> String {
    if let Some(text) = message["content"].as_str() {
        return text.to_owned();
    }
    let texts = blocks(message).filter_map(|block| block.get("text")?.as_str());
    texts.collect::<Vec<_>>().join(" ")
}

/// Turns begin with the user's, no text is empty, and each result follows its call.
fn check_messages(messages: &[Value]) -> Result<(), String> {
    let first = messages
        .first()
        .ok_or("messages: at least one message is required")?;
    if first["role"] != "user" {
        return Err("messages: first message must use the \"user\" role".to_owned());
    }
    let mut called: Vec<&Value> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let mut calls = Vec::new();
        for block in blocks(message) {
            let place = format!("messages.{at}");
            match block["type"].as_str() {
                Some("text")
                    if block["text"]
                        .as_str()
                        .is_none_or(|text| text.trim().is_empty()) =>
                {
                    return Err(format!("{place}: text content blocks must be non-empty"));
                }
                Some("tool_use") if !block["input"].is_object() => {
                    return Err(format!(
                        "{place}: tool_use.input: Input should be a valid dictionary"
                    ));
                }
                Some("tool_use") => calls.push(&block["id"]),
                Some("tool_result") if !called.contains(&&block["tool_use_id"]) => {
                    return Err(format!(
                        "{place}: unexpected `tool_use_id` found in `tool_result` blocks"
                    ));
                }
                Some("thinking") if block["signature"].as_str().is_none_or(str::is_empty) => {
                    return Err(format!("{place}: thinking.signature: Field required"));
                }
                Some(_) => {}
                None => return Err(format!("{place}: type: Field required")),
            }
        }
        called = calls;
    }
    Ok(())
}

/// The tool that `tool_choice` leaves no way around, in the form that answers are made from.
fn forced_tool(body: &Value) -> Option<Value> {
    let tools = body.get("tools")?.as_array()?;
    let choice = body.get("tool_choice")?;
    let tool = match choice["type"].as_str()? {
        "any" => tools.first()?,
        "tool" => tools.iter().find(|tool| tool["name"] == choice["name"])?,
        _ => return None,
    };
    Some(json!({"function": {"name": tool["name"], "parameters": tool["input_schema"]}}))
}

/// An error in Anthropic's shape.
pub fn error_json(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_demo"})
}

/// Reasoning is part of the output; what was cached stands beside the input.
fn usage(tokens: Tokens) -> Value {
    json!({
        "input_tokens": tokens.prompt - tokens.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.completion,
        "service_tier": "standard",
    })
}

fn stop_reason(answer: &Answer) -> &str {
    match answer.finish_reason.as_str() {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        "content_filter" => "refusal",
        other => other,
    }
}

fn input(call: &ToolCall) -> Value {
    match &call.arguments {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!({})),
        value => value.clone(),
    }
}

/// The whole message.
pub fn message(answer: &Answer) -> Value {
    let thinking = answer
        .reasoning
        .as_ref()
        .map(|text| json!({"type": "thinking", "thinking": text, "signature": signature(text)}));
    let text = answer
        .text
        .as_ref()
        .map(|text| json!({"type": "text", "text": text}));
    let calls = answer.tool_calls.iter().map(
        |call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input(call)}),
    );
    let content: Vec<Value> = thinking.into_iter().chain(text).chain(calls).collect();
    json!({
        "id": answer.id, "type": "message", "role": "assistant", "model": answer.model,
        "content": content, "stop_reason": stop_reason(answer), "stop_sequence": null,
        "usage": usage(answer.tokens),
    })
}

/// Says whose words it signs, so that a test sees whether it comes back with them.
fn signature(text: &str) -> String {
    format!("signed-{}", text.len())
}

/// The events of a streamed message.
pub fn events(answer: &Answer, script: &Script) -> Vec<Event> {
    let mut stream = Stream {
        events: Vec::new(),
        blocks: 0,
    };
    let early = Tokens {
        completion: 1,
        reasoning: 0,
        ..answer.tokens
    };
    let start = json!({
        "id": answer.id, "type": "message", "role": "assistant", "model": answer.model,
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(early),
    });
    stream.push("message_start", json!({"message": start}), Some(early));
    stream.push("ping", json!({}), None);
    let parts = script.chunks.unwrap_or(6);
    if let Some(text) = &answer.reasoning {
        let mut deltas: Vec<Value> = split(text, parts)
            .into_iter()
            .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
            .collect();
        deltas.push(json!({"type": "signature_delta", "signature": signature(text)}));
        stream.block(
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            deltas,
        );
    }
    if let Some(text) = &answer.text {
        let pieces = split(text, parts).into_iter();
        let deltas = pieces
            .map(|piece| json!({"type": "text_delta", "text": piece}))
            .collect();
        stream.block(json!({"type": "text", "text": ""}), deltas);
    }
    for call in &answer.tool_calls {
        let arguments = input(call).to_string();
        let pieces = split(&arguments, call.fragments).into_iter();
        let deltas = pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
        let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        stream.block(block, deltas.collect());
    }
    let delta = json!({
        "delta": {"stop_reason": stop_reason(answer), "stop_sequence": null},
        "usage": {"output_tokens": answer.tokens.completion},
    });
    stream.push("message_delta", delta, Some(answer.tokens));
    stream.push("message_stop", json!({}), None);
    stream.with_error(script)
}

struct Stream {
    events: Vec<Event>,
    blocks: usize,
}

impl Stream {
    fn push(&mut self, name: &str, data: Value, usage: Option<Tokens>) {
        let mut data = data;
        if let Value::Object(members) = &mut data {
            members.insert("type".to_owned(), json!(name));
        }
        let bytes = format!("event: {name}\ndata: {data}\n\n").into_bytes();
        self.events.push(Event { bytes, usage });
    }

    fn block(&mut self, block: Value, deltas: Vec<Value>) {
        let index = self.blocks;
        self.blocks += 1;
        self.push(
            "content_block_start",
            json!({"index": index, "content_block": block}),
            None,
        );
        for delta in deltas {
            self.push(
                "content_block_delta",
                json!({"index": index, "delta": delta}),
                None,
            );
        }
        self.push("content_block_stop", json!({"index": index}), None);
    }

    fn with_error(mut self, script: &Script) -> Vec<Event> {
        if let Some(error) = &script.error_event {
            self.events.truncate(error.after_chunks);
            let body = error.body.clone();
            let body = body.unwrap_or_else(|| error_json(529, "Overloaded"));
            let bytes = format!("event: error\ndata: {body}\n\n").into_bytes();
            self.events.push(Event { bytes, usage: None });
        }
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(messages: &Value) -> String {
        let body = json!({"model": "m", "max_tokens": 9, "messages": messages});
        read(&body, Some("2023-06-01")).unwrap_err()
    }

    #[test]
    fn what_anthropic_refuses_is_refused() {
        let user = |content: Value| json!({"role": "user", "content": content});
        assert!(fault(&json!([])).contains("at least one"));
        assert!(fault(&json!([{"role": "assistant", "content": "x"}])).contains("first message"));
        let blank = json!([user(json!([{"type": "text", "text": " "}]))]);
        assert!(fault(&blank).contains("non-empty"));
        let result = json!([user(json!([{"type": "tool_result", "tool_use_id": "t"}]))]);
        assert!(fault(&result).contains("tool_use_id"));
        let body = json!({"model": "m", "messages": []});
        assert_eq!(
            read(&body, Some("x")).unwrap_err(),
            "max_tokens: Field required"
        );
        assert!(read(&body, None).unwrap_err().contains("anthropic-version"));
    }
}
