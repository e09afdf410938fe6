//! What is answered: the content, before it takes a shape on the wire.

use serde_json::{Value, json};

use crate::{
    script::{Script, ToolCall},
    tokens::{TOKEN_BYTES, Tokens},
};

/// What a chat request asks for, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ask {
    pub model: String,
    pub stream: bool,
    pub include_usage: bool,
    pub last_user_text: String,
    /// The tool that must be called, in OpenAI's form.
    pub forced_tool: Option<Value>,
}

impl Ask {
    /// Reads a chat-completions body. The error says which field is wrong.
    pub fn read(body: &Value) -> Result<Self, &'static str> {
        let model = body
            .get("model")
            .and_then(Value::as_str)
            .filter(|m| !m.is_empty());
        let model = model.ok_or("model")?.to_owned();
        let messages = body
            .get("messages")
            .and_then(Value::as_array)
            .ok_or("messages")?;
        let last_user = messages
            .iter()
            .rev()
            .find(|m| m.get("role") == Some(&json!("user")));
        let answered = messages
            .last()
            .is_some_and(|m| m.get("role") == Some(&json!("tool")));
        Ok(Self {
            model,
            stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
            include_usage: body
                .pointer("/stream_options/include_usage")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            last_user_text: last_user.map(text_of).unwrap_or_default(),
            forced_tool: (!answered).then(|| forced_tool(body)).flatten(),
        })
    }
}

/// The text of a message: its string, or the texts of its parts.
fn text_of(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}

/// The tool that `tool_choice` leaves no way around.
fn forced_tool(body: &Value) -> Option<Value> {
    let tools = body.get("tools")?.as_array()?;
    let choice = body.get("tool_choice")?;
    if choice == "required" {
        return tools.first().cloned();
    }
    let name = choice.pointer("/function/name")?;
    tools
        .iter()
        .find(|tool| tool.pointer("/function/name") == Some(name))
        .cloned()
}

/// An answer's content.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub id: String,
    pub created_s: u64,
    pub model: String,
    pub reasoning: Option<String>,
    pub text: Option<String>,
    pub tool_calls: Vec<ToolCall>,
    pub finish_reason: String,
    pub tokens: Tokens,
}

impl Answer {
    /// The answer to request number `number`: the script's, or a demo text that echoes the question.
    pub fn new(ask: &Ask, script: &Script, number: u64, created_s: u64, drawn: Tokens) -> Self {
        let mut tool_calls = script.tool_calls.clone();
        if tool_calls.is_empty() && script.text.is_none() {
            tool_calls.extend(ask.forced_tool.as_ref().and_then(demo_call));
        }
        for (index, call) in tool_calls.iter_mut().enumerate() {
            call.id
                .get_or_insert_with(|| format!("call_{number}_{index}"));
        }
        let text = match &script.text {
            Some(text) => Some(text.repeat(script.text_times)),
            None if tool_calls.is_empty() => Some(demo_text(ask, number)),
            None => None,
        };
        let usual_finish = if tool_calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        Self {
            id: format!("chatcmpl-demo-{number}"),
            created_s,
            model: ask.model.clone(),
            reasoning: script.reasoning_content.clone(),
            text,
            tool_calls,
            finish_reason: script
                .finish_reason
                .clone()
                .unwrap_or_else(|| usual_finish.to_owned()),
            tokens: script.tokens.unwrap_or(drawn),
        }
    }
}

impl Answer {
    /// The same as a model gives it that counts truthfully: cut where `output_bound` tokens are
    /// reached. `asked_bytes` are those of the request, `number` is its number.
    pub fn measured(mut self, asked_bytes: u64, output_bound: Option<u64>, number: u64) -> Self {
        let calls: usize = self
            .tool_calls
            .iter()
            .map(|call| call.name.len() + arguments_text(call).len())
            .sum();
        let text = self.text.as_deref().map_or(0, |text| text.chars().count());
        let wanted = tokens_of(text + calls).max(1);
        let output = output_bound.map_or(wanted, |bound| wanted.min(bound));
        if output < wanted {
            self.finish_reason = "length".to_owned();
            let kept = usize::try_from(output.saturating_mul(TOKEN_BYTES)).unwrap_or(usize::MAX);
            let cut = |text: String| text.chars().take(kept).collect();
            self.text = self.text.map(cut);
        }
        self.tokens = Tokens::measure(asked_bytes, output, number);
        self
    }
}

fn tokens_of(characters: usize) -> u64 {
    u64::try_from(characters)
        .unwrap_or(u64::MAX)
        .div_ceil(TOKEN_BYTES)
}

/// The most output tokens that a request of any of the APIs allows.
pub fn output_bound(body: &Value) -> Option<u64> {
    [
        "/max_completion_tokens",
        "/max_tokens",
        "/max_output_tokens",
        "/generationConfig/maxOutputTokens",
        "/inferenceConfig/maxTokens",
    ]
    .into_iter()
    .find_map(|member| body.pointer(member)?.as_u64())
}

fn demo_text(ask: &Ask, number: u64) -> String {
    let question: String = ask.last_user_text.chars().take(200).collect();
    let heard = if question.is_empty() {
        "You said nothing, which is fine.".to_owned()
    } else {
        format!("You said: “{question}”.")
    };
    format!(
        "{heard} This is Turnpike's demo provider, playing {}: there is no model behind it, \
         it costs nothing, and this was its answer number {number}.",
        ask.model
    )
}

/// A call of `tool` whose arguments fit its parameter schema's first level.
fn demo_call(tool: &Value) -> Option<ToolCall> {
    let name = tool.pointer("/function/name")?.as_str()?.to_owned();
    let properties = tool
        .pointer("/function/parameters/properties")
        .and_then(Value::as_object);
    let arguments = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| (name.clone(), demo_value(schema)))
        .collect();
    Some(ToolCall {
        id: None,
        name,
        arguments: Value::Object(arguments),
        fragments: 3,
    })
}

fn demo_value(schema: &Value) -> Value {
    if let Some(first) = schema.pointer("/enum/0") {
        return first.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => json!(7),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("demo"),
    }
}

/// A call's arguments as the string that goes on the wire.
pub fn arguments_text(call: &ToolCall) -> String {
    match &call.arguments {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Cuts `text` into `parts` pieces of about equal length, never inside a character. Fewer when
/// there are fewer characters.
pub fn split(text: &str, parts: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let size = chars.len().div_ceil(parts.max(1)).max(1);
    chars
        .chunks(size)
        .map(|piece| piece.iter().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &Value, script: &Script) -> Answer {
        let ask = Ask::read(body).expect("a chat request");
        Answer::new(&ask, script, 5, 1_700_000_000, Tokens::draw(1, 5))
    }

    #[test]
    fn the_demo_text_echoes_the_last_user_message() {
        let body = json!({"model": "m", "messages": [
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "no"},
            {"role": "user", "content": [{"type": "text", "text": "second"}]},
        ]});
        let text = answer(&body, &Script::default()).text.expect("text");
        assert!(text.contains("second") && !text.contains("first"), "{text}");
    }

    #[test]
    fn a_measured_answer_keeps_to_max_tokens_and_says_that_it_was_cut() {
        let body = json!({"model": "m", "max_completion_tokens": 7,
            "messages": [{"role": "user", "content": "Hello"}]});
        let whole = answer(&body, &Script::default()).measured(80, None, 5);
        assert_eq!(whole.finish_reason, "stop");
        let text = whole.text.expect("text");
        assert_eq!(whole.tokens.completion, tokens_of(text.chars().count()));
        assert_eq!((whole.tokens.prompt, whole.tokens.cached), (20, 0));

        let cut = answer(&body, &Script::default()).measured(80, output_bound(&body), 6);
        assert_eq!(cut.finish_reason, "length");
        assert_eq!((cut.tokens.prompt, cut.tokens.completion), (21, 7));
        let start: String = text.chars().take(28).collect();
        assert_eq!(cut.text, Some(start));
    }

    #[test]
    fn a_required_tool_is_called_with_arguments_of_its_schema() {
        let mut body = json!({
            "model": "m", "tool_choice": "required",
            "messages": [{"role": "user", "content": "weather?"}],
            "tools": [{"type": "function", "function": {"name": "weather", "parameters":
                {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}}],
        });
        let called = answer(&body, &Script::default());
        assert_eq!(called.finish_reason, "tool_calls");
        assert_eq!(called.text, None);
        let arguments: Value =
            serde_json::from_str(&arguments_text(&called.tool_calls[0])).expect("JSON");
        assert_eq!(arguments, json!({"city": "demo", "days": 7}));

        body["messages"] = json!([{"role": "tool", "tool_call_id": "x", "content": "sunny"}]);
        assert_eq!(answer(&body, &Script::default()).finish_reason, "stop");
    }

    #[test]
    fn a_request_without_model_or_messages_is_named_by_its_field() {
        assert_eq!(Ask::read(&json!({"messages": []})), Err("model"));
        assert_eq!(Ask::read(&json!({"model": "m"})), Err("messages"));
    }

    #[test]
    fn pieces_join_to_the_text_and_never_cut_a_character() {
        for parts in 1..12 {
            let pieces = split("grüner Tee 緑茶", parts);
            assert!(pieces.len() <= parts);
            assert_eq!(pieces.concat(), "grüner Tee 緑茶");
        }
        assert!(split("", 3).is_empty());
    }
}
