//! Reads a provider's answer, whole or chunk by chunk. A chunk is a response of its own, with
//! whole calls in it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::finish;
use super::error;
use super::reported;
use crate::conversation::{Answer, Event, Finish, Part, Thinking, ToolCall};
use crate::reading;
use crate::translate::ReadEvents;

/// A response. What may be of several kinds stays raw, so that it spoils nothing else.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, default)]
    prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(borrow, default)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model_version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(borrow, default)]
    block_reason: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default)]
    index: Option<u32>,
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<&'a str>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<Said<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(default)]
    thought: bool,
    #[serde(borrow, default)]
    thought_signature: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

impl<'a> Response<'a> {
    fn parse(document: &'a [u8]) -> Option<Self> {
        let is_object = document.trim_ascii_start().starts_with(b"{");
        is_object.then(|| serde_json::from_slice(document).ok())?
    }

    fn first_candidate(self) -> Option<Candidate<'a>> {
        let is_first = |candidate: &Candidate<'_>| candidate.index.unwrap_or_default() == 0;
        self.candidates?.into_iter().find(is_first)
    }

    fn is_blocked(&self) -> bool {
        let reason = self
            .prompt_feedback
            .as_ref()
            .and_then(|feedback| feedback.block_reason);
        reason.is_some_and(|reason| reason != "BLOCK_REASON_UNSPECIFIED")
    }
}

impl<'a> FunctionCall<'a> {
    fn into_call(self, made_id: String, signature: Option<Cow<'a, str>>) -> ToolCall<'a> {
        let id = self.id.filter(|id| !id.is_empty());
        ToolCall {
            id: id.unwrap_or(Cow::Owned(made_id)),
            name: self.name,
            arguments: self.args.map_or("{}", RawValue::get).into(),
            signature,
            cache: None,
        }
    }
}

/// An id for a call that came without: the same for the same answer, and another in another one.
fn made_id(response_id: &str, call: usize) -> String {
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric();
    let answer: String = response_id.chars().filter(is_plain).collect();
    format!("call_{answer}_{call}")
}

/// Google's reasons between the two forms; a call of a tool ends as a plain stop.
fn finish_of(word: Option<&str>, has_calls: bool) -> Option<Finish> {
    let read = finish(word.unwrap_or_default().as_bytes())?;
    Some(match read {
        reading::Finish::Stop | reading::Finish::Other if has_calls => Finish::ToolCalls,
        reading::Finish::Stop | reading::Finish::Other => Finish::Stop,
        reading::Finish::Length => Finish::Length,
        reading::Finish::ToolCalls => Finish::ToolCalls,
        reading::Finish::ContentFilter => Finish::ContentFilter,
        reading::Finish::Error => Finish::Error,
    })
}

/// Reads an answer; `None`: it is none.
pub(crate) fn read_answer(document: &[u8]) -> Option<Answer<'_>> {
    let response = Response::parse(document)?;
    let is_blocked = response.is_blocked();
    let mut answer = Answer {
        id: response.response_id.clone().unwrap_or_default(),
        model: response.model_version.clone().unwrap_or_default(),
        usage: response.usage_metadata.and_then(reported::read),
        ..Answer::default()
    };
    let Some(candidate) = response.first_candidate() else {
        answer.finish = is_blocked.then_some(Finish::ContentFilter);
        return is_blocked.then_some(answer);
    };
    let said = candidate.content.and_then(|content| content.parts);
    for said in said.into_iter().flatten() {
        let calls = answer.calls().count();
        add(said, &made_id(&answer.id, calls), &mut answer.parts);
    }
    let has_calls = answer.calls().next().is_some();
    answer.finish = finish_of(candidate.finish_reason, has_calls);
    Some(answer)
}

fn add<'a>(said: Said<'a>, made_id: &str, parts: &mut Vec<Part<'a>>) {
    let signature = said.thought_signature;
    if let Some(call) = said.function_call {
        return parts.push(Part::ToolCall(
            call.into_call(made_id.to_owned(), signature),
        ));
    }
    let text = said.text.unwrap_or_default();
    if said.thought {
        return parts.push(Part::Thinking(Thinking::Shown { text, signature }));
    }
    if signature.is_some() {
        let text = Cow::Borrowed("");
        parts.push(Part::Thinking(Thinking::Shown { text, signature }));
    }
    if !text.is_empty() {
        parts.push(Part::Text { text, cache: None });
    }
}

/// A stream as far as it has been read.
#[derive(Debug, Default)]
pub(crate) struct GeminiEvents {
    id: String,
    calls: u32,
    has_started: bool,
    has_finished: bool,
    /// An error or the end has been told.
    is_over: bool,
}

impl ReadEvents for GeminiEvents {
    fn read(&mut self, _name: &[u8], data: &[u8], hand_on: &mut dyn FnMut(Event<'_>)) {
        if self.is_over {
            return;
        }
        let Some(response) = Response::parse(data) else {
            return;
        };
        if response.error.is_some() {
            self.is_over = true;
            let error = error::parse(data).unwrap_or_default();
            return hand_on(Event::Error(error));
        }
        self.response(response, hand_on);
    }

    fn finish(&mut self, hand_on: &mut dyn FnMut(Event<'_>)) {
        if !std::mem::replace(&mut self.is_over, true) {
            hand_on(Event::End);
        }
    }
}

impl GeminiEvents {
    fn response(&mut self, response: Response<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
        if !std::mem::replace(&mut self.has_started, true) {
            let id = response.response_id.as_deref().unwrap_or_default();
            id.clone_into(&mut self.id);
            hand_on(Event::Start {
                id: id.into(),
                model: response.model_version.as_deref().unwrap_or_default().into(),
            });
        }
        let usage = response.usage_metadata.and_then(reported::read);
        let is_blocked = response.is_blocked();
        match response.first_candidate() {
            Some(candidate) => self.candidate(candidate, hand_on),
            None if is_blocked => self.end(Finish::ContentFilter, hand_on),
            None => {}
        }
        if let Some(usage) = usage {
            hand_on(Event::Usage(usage));
        }
    }

    fn candidate(&mut self, candidate: Candidate<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
        let said = candidate.content.and_then(|content| content.parts);
        for said in said.into_iter().flatten() {
            self.said(said, hand_on);
        }
        if let Some(finish) = finish_of(candidate.finish_reason, self.calls > 0) {
            self.end(finish, hand_on);
        }
    }

    fn end(&mut self, finish: Finish, hand_on: &mut dyn FnMut(Event<'_>)) {
        if !std::mem::replace(&mut self.has_finished, true) {
            hand_on(Event::Finish {
                finish,
                stop_sequence: None,
            });
        }
    }

    fn said(&mut self, said: Said<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
        let signature = said.thought_signature;
        if let Some(call) = said.function_call {
            let made = made_id(&self.id, self.calls as usize);
            return self.call(call.into_call(made, signature), hand_on);
        }
        let text = said.text.unwrap_or_default();
        if said.thought && !text.is_empty() {
            hand_on(Event::Thinking(text.clone()));
        }
        if let Some(signature) = signature {
            hand_on(Event::Signature(signature));
        }
        if !said.thought && !text.is_empty() {
            hand_on(Event::Text(text));
        }
    }

    fn call(&mut self, made: ToolCall<'_>, hand_on: &mut dyn FnMut(Event<'_>)) {
        let call = self.calls;
        self.calls += 1;
        hand_on(Event::CallStart {
            call,
            id: made.id,
            name: made.name,
            signature: made.signature,
        });
        hand_on(Event::CallArguments {
            call,
            json: made.arguments,
        });
        hand_on(Event::CallEnd { call });
    }
}

#[cfg(test)]
mod tests;
