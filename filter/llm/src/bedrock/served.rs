//! Answers and streams as Bedrock serves them, for tests.

use serde_json::{Value, json};

use super::frames::write_event;
use crate::conversation::{Answer, Event, Finish, Part, Thinking};
use crate::usage::Usage;

/// A whole answer.
pub(super) fn answer(answer: &Answer<'_>) -> Vec<u8> {
    let content: Vec<String> = answer.parts.iter().map(block).collect();
    let mut rest = json!({
        "metrics": {"latencyMs": 600},
        "stopReason": stop_reason(answer.finish.unwrap(), answer.stop_sequence.is_some()),
    });
    if let Some(told) = &answer.usage {
        rest["usage"] = usage(told);
    }
    if let Some(text) = &answer.stop_sequence {
        rest["additionalModelResponseFields"] = json!({"stop_sequence": text});
    }
    let message = format!(
        r#"{{"role":"assistant","content":[{}]}}"#,
        content.join(",")
    );
    let rest = rest.to_string();
    let rest = rest.strip_prefix('{').unwrap();
    format!(r#"{{"output":{{"message":{message}}},{rest}"#).into_bytes()
}

/// As text, so that a call's input stays as it is written.
fn block(part: &Part<'_>) -> String {
    match part {
        Part::Text { text, .. } => json!({"text": text}).to_string(),
        Part::Thinking(Thinking::Shown { text, signature }) => {
            let told = json!({"text": text, "signature": signature});
            json!({"reasoningContent": {"reasoningText": told}}).to_string()
        }
        Part::Thinking(Thinking::Redacted { data }) => {
            json!({"reasoningContent": {"redactedContent": data}}).to_string()
        }
        Part::ToolCall(call) => {
            let (id, name) = (json!(call.id), json!(call.name));
            let input = &call.arguments;
            format!(r#"{{"toolUse":{{"toolUseId":{id},"name":{name},"input":{input}}}}}"#)
        }
        other => panic!("no answer has {other:?}"),
    }
}

fn usage(told: &Usage) -> Value {
    let uncached = told.input - told.cached_input - told.cache_write;
    let five_minutes = told.cache_write - told.cache_write_1h;
    json!({
        "inputTokens": uncached,
        "outputTokens": told.output,
        "totalTokens": told.total(),
        "cacheReadInputTokens": told.cached_input,
        "cacheWriteInputTokens": told.cache_write,
        "cacheDetails": [
            {"ttl": "1h", "inputTokens": told.cache_write_1h},
            {"ttl": "5m", "inputTokens": five_minutes},
        ],
    })
}

fn stop_reason(finish: Finish, at_sequence: bool) -> &'static str {
    match finish {
        Finish::Stop if at_sequence => "stop_sequence",
        Finish::Stop | Finish::Refusal => "end_turn",
        Finish::Length => "max_tokens",
        Finish::ToolCalls => "tool_use",
        Finish::ContentFilter => "content_filtered",
        Finish::Error => "malformed_model_output",
    }
}

/// A stream.
pub(super) fn stream(events: &[Event<'_>]) -> Vec<u8> {
    let mut served = Served::default();
    for event in events {
        served.event(event);
    }
    served.out
}

/// The kind of the block that is open.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Thinking,
    Call(u32),
}

#[derive(Default)]
struct Served {
    out: Vec<u8>,
    open: Option<Kind>,
    block: u32,
}

impl Served {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Start { .. } => self.write("messageStart", &json!({"role": "assistant"})),
            Event::Text(text) => self.delta(Kind::Text, &json!({"text": text})),
            Event::Thinking(text) => self.reasoning(&json!({"text": text})),
            Event::Signature(signature) => {
                self.reasoning(&json!({"signature": signature}));
                self.close();
            }
            Event::Redacted(data) => {
                self.close();
                self.reasoning(&json!({"redactedContent": data}));
                self.close();
            }
            Event::CallStart { call, id, name, .. } => {
                self.close();
                let start = json!({"toolUse": {"toolUseId": id, "name": name}});
                let told = json!({"contentBlockIndex": self.block, "start": start});
                self.write("contentBlockStart", &told);
                self.open = Some(Kind::Call(*call));
            }
            Event::CallArguments { call, json } => {
                self.delta(Kind::Call(*call), &json!({"toolUse": {"input": json}}));
            }
            Event::CallEnd { .. } => self.close(),
            Event::Finish {
                finish,
                stop_sequence,
            } => self.finish(*finish, stop_sequence.as_deref()),
            Event::Usage(told) => {
                let told = json!({"usage": usage(told), "metrics": {"latencyMs": 600}});
                self.write("metadata", &told);
            }
            Event::End => {}
            other => panic!("no stream has {other:?}"),
        }
    }

    fn finish(&mut self, finish: Finish, stop_sequence: Option<&str>) {
        self.close();
        let reason = stop_reason(finish, stop_sequence.is_some());
        let mut told = json!({"stopReason": reason});
        if let Some(text) = stop_sequence {
            told["additionalModelResponseFields"] = json!({"stop_sequence": text});
        }
        self.write("messageStop", &told);
    }

    fn reasoning(&mut self, told: &Value) {
        self.delta(Kind::Thinking, &json!({"reasoningContent": told}));
    }

    fn delta(&mut self, kind: Kind, told: &Value) {
        if self.open != Some(kind) {
            self.close();
            self.open = Some(kind);
        }
        let told = json!({"contentBlockIndex": self.block, "delta": told, "p": "abcdef"});
        self.write("contentBlockDelta", &told);
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            let told = json!({"contentBlockIndex": self.block});
            self.write("contentBlockStop", &told);
            self.block += 1;
        }
    }

    fn write(&mut self, name: &str, json: &Value) {
        write_event(name, json.to_string().as_bytes(), &mut self.out).unwrap();
    }
}
