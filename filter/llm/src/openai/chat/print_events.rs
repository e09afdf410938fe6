//! Prints a stream for a client, chunk by chunk.

use serde::Serialize;

use super::print_answer::{or_else, word};
use super::thought::{BlockShown, SignedId};
use crate::conversation::Event;
use crate::openai::print::write_json;
use crate::openai::usage::UsageShown;
use crate::translate::{AnswerTerms, PrintEvents};
use crate::usage::Usage;

/// A stream as far as it has been printed.
#[derive(Debug)]
pub(crate) struct ChatChunks {
    request_id: String,
    model: String,
    created_at_s: u64,
    shows_usage: bool,
    /// What every chunk begins with, once the first one has been printed.
    head: Vec<u8>,
    has_refusal: bool,
    usage: Option<Usage>,
    /// Calls of which no argument has been seen.
    bare_calls: Vec<u32>,
    block: Block,
}

/// The thinking block at hand.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    index: u32,
    is_open: bool,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_blocks: Option<[BlockShown<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[CallShown<'a>; 1]>,
}

#[derive(Serialize)]
struct CallShown<'a> {
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<SignedId<'a>>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    function: CalledShown<'a>,
}

#[derive(Serialize)]
struct CalledShown<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: &'a str,
}

impl ChatChunks {
    /// At the start of a stream.
    pub(crate) fn new(terms: &AnswerTerms<'_>) -> Self {
        Self {
            request_id: terms.request_id.to_owned(),
            model: terms.model.to_owned(),
            created_at_s: terms.created_at_s,
            shows_usage: terms.shows_usage,
            head: Vec::new(),
            has_refusal: false,
            usage: None,
            bare_calls: Vec::new(),
            block: Block::default(),
        }
    }
}

impl PrintEvents for ChatChunks {
    fn print(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Start { id, model } => self.start(id, model, out),
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::Error(_) => {}
            Event::Text(text) | Event::Refusal(text) | Event::Thinking(text) if text.is_empty() => {
            }
            Event::End => self.end(out),
            _ => {
                self.start("", "", out);
                self.content(event, out);
            }
        }
    }
}

impl ChatChunks {
    /// Prints the chunk with the role, once.
    fn start(&mut self, id: &str, model: &str, out: &mut Vec<u8>) {
        #[derive(Serialize)]
        struct Head<'a> {
            id: &'a str,
            object: &'static str,
            created: u64,
            model: &'a str,
        }
        if !self.head.is_empty() {
            return;
        }
        self.head.extend_from_slice(b"data: ");
        write_json(
            &Head {
                id: or_else(id, &self.request_id),
                object: "chat.completion.chunk",
                created: self.created_at_s,
                model: or_else(model, &self.model),
            },
            &mut self.head,
        );
        // The other members follow.
        self.head.pop();
        let role = Delta {
            role: Some("assistant"),
            content: Some(""),
            ..Delta::default()
        };
        self.delta(&role, out);
    }

    fn content(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Thinking(_) | Event::Signature(_) | Event::Redacted(_) => {
                return self.thinking(event, out);
            }
            _ => self.close_block(),
        }
        match event {
            Event::Text(text) => self.delta(
                &Delta {
                    content: Some(text),
                    ..Delta::default()
                },
                out,
            ),
            Event::Refusal(text) => {
                self.has_refusal = true;
                let refusal = Some(text.as_ref());
                self.delta(
                    &Delta {
                        refusal,
                        ..Delta::default()
                    },
                    out,
                );
            }
            Event::CallStart {
                call,
                id,
                name,
                signature,
            } => {
                self.bare_calls.push(*call);
                let signature = signature.as_deref();
                let id = Some(SignedId { id, signature });
                self.call(*call, id, Some(name), "", out);
            }
            Event::CallArguments { call, json } if !json.is_empty() => {
                self.bare_calls.retain(|bare| bare != call);
                self.call(*call, None, None, json, out);
            }
            Event::CallEnd { call } => self.fill(*call, out),
            Event::Finish {
                finish,
                stop_sequence,
            } => {
                self.fill_all(out);
                let word = word(*finish, self.has_refusal);
                self.choice(&Delta::default(), Some(word), stop_sequence.as_deref(), out);
            }
            _ => {}
        }
    }

    /// Thinking is told twice: to be shown, and to be sent back.
    fn thinking(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let is_first = !self.block.is_open;
        let (text, block) = match event {
            Event::Thinking(text) => {
                self.block.is_open = true;
                (Some(text.as_ref()), BlockShown::thinking(Some(text), None))
            }
            Event::Signature(signature) => {
                let text = is_first.then_some("");
                (None, BlockShown::thinking(text, Some(signature)))
            }
            Event::Redacted(data) => {
                self.close_block();
                (None, BlockShown::redacted(data))
            }
            _ => return,
        };
        let delta = Delta {
            reasoning_content: text,
            thinking_blocks: Some([block.at(self.block.index)]),
            ..Delta::default()
        };
        self.delta(&delta, out);
        if !matches!(event, Event::Thinking(_)) {
            self.block.is_open = true;
            self.close_block();
        }
    }

    fn close_block(&mut self) {
        self.block.index += u32::from(self.block.is_open);
        self.block.is_open = false;
    }

    fn call(
        &self,
        call: u32,
        id: Option<SignedId<'_>>,
        name: Option<&str>,
        arguments: &str,
        out: &mut Vec<u8>,
    ) {
        let piece = CallShown {
            index: call,
            kind: id.is_some().then_some("function"),
            id,
            function: CalledShown { name, arguments },
        };
        let delta = Delta {
            tool_calls: Some([piece]),
            ..Delta::default()
        };
        self.delta(&delta, out);
    }

    /// Clients parse the arguments, also where there are none.
    fn fill(&mut self, call: u32, out: &mut Vec<u8>) {
        if self.bare_calls.contains(&call) {
            self.bare_calls.retain(|bare| *bare != call);
            self.call(call, None, None, "{}", out);
        }
    }

    fn fill_all(&mut self, out: &mut Vec<u8>) {
        for call in std::mem::take(&mut self.bare_calls) {
            self.call(call, None, None, "{}", out);
        }
    }

    fn end(&self, out: &mut Vec<u8>) {
        if let Some(usage) = &self.usage
            && self.shows_usage
            && !self.head.is_empty()
        {
            out.extend_from_slice(&self.head);
            out.extend_from_slice(br#","choices":[],"usage":"#);
            write_json(&UsageShown::from(usage), out);
            out.extend_from_slice(b"}\n\n");
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn delta(&self, delta: &Delta<'_>, out: &mut Vec<u8>) {
        self.choice(delta, None, None, out);
    }

    fn choice(
        &self,
        delta: &Delta<'_>,
        finish_reason: Option<&'static str>,
        stop_reason: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        #[derive(Serialize)]
        struct Choice<'a> {
            index: u32,
            delta: &'a Delta<'a>,
            logprobs: Option<()>,
            finish_reason: Option<&'static str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            stop_reason: Option<&'a str>,
        }
        out.extend_from_slice(&self.head);
        out.extend_from_slice(br#","choices":"#);
        let choice = Choice {
            index: 0,
            delta,
            logprobs: None,
            finish_reason,
            stop_reason,
        };
        write_json(&[choice], out);
        // As at OpenAI, where a client that asked for usage sees the member in every chunk.
        if self.shows_usage {
            out.extend_from_slice(br#","usage":null"#);
        }
        out.extend_from_slice(b"}\n\n");
    }
}

#[cfg(test)]
mod tests;
