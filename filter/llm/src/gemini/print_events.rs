//! Prints a stream for a client of Gemini's API: each event a response of its own, calls whole.

use super::document::Document;
use super::print_contents::Part;
use crate::conversation::{Event, EventQueue, Finish};
use crate::translate::{AnswerTerms, PrintEvents};
use crate::usage::Usage;

/// A stream as far as it has been printed.
#[derive(Debug)]
pub(crate) struct GeminiPrinter {
    queue: EventQueue,
    state: State,
}

#[derive(Debug)]
struct State {
    id: String,
    model: String,
    call: Option<OpenCall>,
    finish: Option<Finish>,
    usage: Option<Usage>,
}

/// A call whose arguments are not whole yet.
#[derive(Debug)]
struct OpenCall {
    id: String,
    name: String,
    signature: Option<String>,
    arguments: String,
}

impl GeminiPrinter {
    pub(crate) fn new(terms: &AnswerTerms<'_>) -> Self {
        Self {
            queue: EventQueue::default(),
            state: State {
                id: terms.request_id.to_owned(),
                model: terms.model.to_owned(),
                call: None,
                finish: None,
                usage: None,
            },
        }
    }
}

impl PrintEvents for GeminiPrinter {
    fn print(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let Self { queue, state } = self;
        queue.push(event.clone(), &mut |event| state.print(event, out));
    }
}

impl State {
    fn print(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::Start { id, .. } => {
                if !id.is_empty() {
                    id.as_ref().clone_into(&mut self.id);
                }
            }
            Event::Text(text) | Event::Refusal(text) => self.write(Part::text(text), out),
            Event::Thinking(text) => self.write(Part::thought(text, None), out),
            Event::Signature(signature) | Event::Redacted(signature) => {
                self.write(Part::thought("", Some(signature)), out);
            }
            Event::CallStart {
                id,
                name,
                signature,
                ..
            } => {
                self.call = Some(OpenCall {
                    id: id.as_ref().to_owned(),
                    name: name.as_ref().to_owned(),
                    signature: signature.as_deref().map(str::to_owned),
                    arguments: String::new(),
                });
            }
            Event::CallArguments { json, .. } => {
                if let Some(call) = &mut self.call {
                    call.arguments.push_str(json);
                }
            }
            Event::CallEnd { .. } => self.write_call(out),
            Event::Finish { finish, .. } => self.finish = Some(*finish),
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::Error(_) => {}
            Event::End => self.write_end(out),
        }
    }

    fn write(&self, part: Part<'_>, out: &mut Vec<u8>) {
        write(&Document::new(vec![part], None, &self.model, &self.id), out);
    }

    fn write_call(&mut self, out: &mut Vec<u8>) {
        let Some(call) = self.call.take() else { return };
        let arguments = match call.arguments.trim_ascii() {
            "" => "{}",
            arguments => arguments,
        };
        let signature = call.signature.as_deref();
        let part = Part::call(Some(&call.id), &call.name, arguments, signature);
        self.write(part, out);
    }

    /// Finish and usage are told together, last.
    fn write_end(&self, out: &mut Vec<u8>) {
        let finish = self.finish.unwrap_or(Finish::Stop);
        let document = Document::new(Vec::new(), Some(finish), &self.model, &self.id);
        write(&document.with_usage(self.usage.as_ref()), out);
    }
}

fn write(document: &Document<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    out.extend(serde_json::to_vec(document).unwrap_or_default());
    out.extend_from_slice(b"\r\n\r\n");
}

#[cfg(test)]
mod tests;
