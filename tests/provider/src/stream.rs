//! An answer as a list of server-sent events.

use serde_json::{Map, Value, json};

use crate::{
    answer::{Answer, Ask, arguments_text, split},
    reply::error_json,
    script::{Script, UsagePlacement},
    tokens::Tokens,
};

/// One event of a stream, with its line ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub bytes: Vec<u8>,
    /// The usage it tells.
    pub usage: Option<Tokens>,
}

/// The events of `answer`, in order, as `script` wants them.
pub fn events(ask: &Ask, answer: &Answer, script: &Script) -> Vec<Event> {
    let mut lines = Lines {
        ask,
        answer,
        script,
        events: Vec::new(),
    };
    let deltas = deltas(answer, script.chunks.unwrap_or(6));
    let all = u64::try_from(deltas.len()).unwrap_or(u64::MAX);
    for (done, delta) in (1..).zip(deltas) {
        let usage = answer.tokens.after(done, all);
        lines.chunk(
            json!([choice(delta, Value::Null)]),
            grows(script).then_some(usage),
        );
    }
    lines.finish();
    if let Some(error) = &script.error_event {
        lines.events.truncate(error.after_chunks);
        let body = error
            .body
            .clone()
            .unwrap_or_else(|| error_json(500, "the model broke off"));
        lines.push(&body.to_string(), None);
    } else if !script.no_done {
        lines.push("[DONE]", None);
    }
    lines.events
}

fn grows(script: &Script) -> bool {
    script.usage == UsagePlacement::EveryChunk
}

fn choice(delta: Value, finish_reason: Value) -> Value {
    json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason})
}

/// The role, then reasoning, text, and tool calls in fragments.
fn deltas(answer: &Answer, parts: usize) -> Vec<Value> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    let pieces = |text: &Option<String>| split(text.as_deref().unwrap_or_default(), parts);
    deltas.extend(
        pieces(&answer.reasoning)
            .iter()
            .map(|p| json!({"reasoning_content": p})),
    );
    deltas.extend(pieces(&answer.text).iter().map(|p| json!({"content": p})));
    for (index, call) in answer.tool_calls.iter().enumerate() {
        deltas.push(json!({"tool_calls": [{
            "index": index, "id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }]}));
        let fragments = split(&arguments_text(call), call.fragments);
        deltas.extend(fragments.iter().map(|fragment| {
            json!({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]})
        }));
    }
    deltas
}

struct Lines<'a> {
    ask: &'a Ask,
    answer: &'a Answer,
    script: &'a Script,
    events: Vec<Event>,
}

impl Lines<'_> {
    /// Adds a chunk; one that tells no usage says `usage: null` where a provider would.
    fn chunk(&mut self, choices: Value, usage: Option<Tokens>) {
        let mut chunk = self.envelope(choices);
        let says_null = match self.script.usage {
            UsagePlacement::WhenAsked => self.ask.include_usage,
            UsagePlacement::FinalChunk | UsagePlacement::Null => true,
            _ => false,
        };
        if let Some(usage) = usage {
            chunk.insert("usage".to_owned(), usage.to_json());
        } else if says_null {
            chunk.insert("usage".to_owned(), Value::Null);
        }
        self.push(&Value::Object(chunk).to_string(), usage);
    }

    fn envelope(&self, choices: Value) -> Map<String, Value> {
        Map::from_iter([
            ("id".to_owned(), json!(self.answer.id)),
            ("object".to_owned(), json!("chat.completion.chunk")),
            ("created".to_owned(), json!(self.answer.created_s)),
            ("model".to_owned(), json!(self.answer.model)),
            ("choices".to_owned(), choices),
        ])
    }

    /// The chunk with the finish reason, and the one with the usage if it has its own.
    fn finish(&mut self) {
        let tokens = self.answer.tokens;
        let choices = json!([choice(json!({}), json!(self.answer.finish_reason))]);
        match self.script.usage {
            UsagePlacement::InFinishChunk | UsagePlacement::EveryChunk => {
                self.chunk(choices, Some(tokens));
            }
            UsagePlacement::XGroq => {
                let mut chunk = self.envelope(choices);
                let groq = json!({"id": self.answer.id, "usage": tokens.to_json()});
                chunk.insert("x_groq".to_owned(), groq);
                self.push(&Value::Object(chunk).to_string(), Some(tokens));
            }
            _ => self.chunk(choices, None),
        }
        let own_chunk = match self.script.usage {
            UsagePlacement::WhenAsked => self.ask.include_usage,
            UsagePlacement::FinalChunk => true,
            _ => false,
        };
        if own_chunk {
            self.chunk(json!([]), Some(tokens));
        }
    }

    fn push(&mut self, data: &str, usage: Option<Tokens>) {
        let end = if self.script.crlf { "\r\n" } else { "\n" };
        let comment = if self.script.comments {
            format!(": keep-alive{end}{end}")
        } else {
            String::new()
        };
        let bytes = format!("{comment}data: {data}{end}{end}").into_bytes();
        self.events.push(Event { bytes, usage });
    }
}

#[cfg(test)]
mod tests;
