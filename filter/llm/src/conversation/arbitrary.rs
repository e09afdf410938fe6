//! Conversations for property tests: what every API can say, and by [`Says`] what some can.
//!
//! A test prints what is generated here, reads it back, and compares the [`meaning`] of both, or
//! what both have [`told`].

mod answer;
mod parts;
mod request;

use std::borrow::Cow;

use proptest::prelude::*;

pub(crate) use answer::{answer, events};
pub(crate) use request::request;

use super::{CacheMark, Event, Message, Request};

/// What an API can say beyond what all can.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Says {
    /// Whether an answer is streamed is in the body.
    pub(crate) stream: bool,
    /// Several pieces of instructions stay apart.
    pub(crate) system_pieces: bool,
    pub(crate) cache_marks: bool,
    pub(crate) image_links: bool,
    pub(crate) image_detail: bool,
    pub(crate) audio: bool,
    pub(crate) files: bool,
    /// Files are named, and may be ids.
    pub(crate) file_names: bool,
    pub(crate) result_images: bool,
    pub(crate) result_errors: bool,
    pub(crate) thinking: bool,
    /// Of thinking.
    pub(crate) signatures: bool,
    pub(crate) redacted: bool,
    /// Of calls.
    pub(crate) call_signatures: bool,
    pub(crate) refusals: bool,
    /// The output need not be bounded.
    pub(crate) unbounded: bool,
    /// Up to 2.
    pub(crate) high_temperature: bool,
    pub(crate) top_k: bool,
    pub(crate) penalties: bool,
    pub(crate) seed: bool,
    pub(crate) stop: bool,
    pub(crate) parallel: bool,
    /// Of tools and schemas.
    pub(crate) strict: bool,
    /// JSON without a schema.
    pub(crate) json: bool,
    pub(crate) schema: bool,
    /// A schema has a name and a description.
    pub(crate) schema_name: bool,
    pub(crate) effort: bool,
    pub(crate) budget: bool,
    pub(crate) user: bool,
    /// Of answers.
    pub(crate) id: bool,
    pub(crate) stop_sequence: bool,
    /// All of usage's details.
    pub(crate) usage_details: bool,
}

impl Says {
    pub(crate) const LEAST: Self = Self {
        stream: false,
        system_pieces: false,
        cache_marks: false,
        image_links: false,
        image_detail: false,
        audio: false,
        files: false,
        file_names: false,
        result_images: false,
        result_errors: false,
        thinking: false,
        signatures: false,
        redacted: false,
        call_signatures: false,
        refusals: false,
        unbounded: false,
        high_temperature: false,
        top_k: false,
        penalties: false,
        seed: false,
        stop: false,
        parallel: false,
        strict: false,
        json: false,
        schema: false,
        schema_name: false,
        effort: false,
        budget: false,
        user: false,
        id: false,
        stop_sequence: false,
        usage_details: false,
    };

    pub(crate) const ALL: Self = Self {
        stream: true,
        system_pieces: true,
        cache_marks: true,
        image_links: true,
        image_detail: true,
        audio: true,
        files: true,
        file_names: true,
        result_images: true,
        result_errors: true,
        thinking: true,
        signatures: true,
        redacted: true,
        call_signatures: true,
        refusals: true,
        unbounded: true,
        high_temperature: true,
        top_k: true,
        penalties: true,
        seed: true,
        stop: true,
        parallel: true,
        strict: true,
        json: true,
        schema: true,
        schema_name: true,
        effort: true,
        budget: true,
        user: true,
        id: true,
        stop_sequence: true,
        usage_details: true,
    };
}

/// What a stream says: texts whole, the last usage where the stream ends, ends of calls not told.
pub(crate) fn told(events: &[Event<'_>]) -> Vec<Event<'static>> {
    let mut told: Vec<Event<'static>> = Vec::new();
    let mut usage = None;
    for event in events {
        match (told.last_mut(), event) {
            (_, Event::Usage(reported)) => usage = Some(*reported),
            (_, Event::CallEnd { .. }) => {}
            (Some(Event::Text(before)), Event::Text(more))
            | (Some(Event::Refusal(before)), Event::Refusal(more))
            | (Some(Event::Thinking(before)), Event::Thinking(more)) => {
                before.to_mut().push_str(more);
            }
            (
                Some(Event::CallArguments { call: open, json }),
                Event::CallArguments { call, json: more },
            ) if open == call => json.to_mut().push_str(more),
            (_, Event::End) => {
                told.extend(usage.map(Event::Usage));
                told.push(Event::End);
            }
            (_, other) => told.push(other.clone().into_owned()),
        }
    }
    told
}

/// A request in a form to compare: what says the same is the same, however it was cut into
/// messages, and whatever was left out.
pub(crate) fn meaning(request: &Request<'_>) -> String {
    let mut messages: Vec<Message<'_>> = Vec::new();
    for message in &request.messages {
        match messages.last_mut() {
            Some(before) if before.role == message.role => {
                before.parts.extend(message.parts.iter().cloned());
            }
            _ => messages.push(message.clone()),
        }
    }
    let request = Request {
        messages,
        left_out: Vec::new(),
        ..request.clone()
    };
    format!("{request:#?}")
}

/// What `strategy` gives if it can be said, or else `otherwise`.
fn if_said<T, S>(is_said: bool, otherwise: T, strategy: S) -> BoxedStrategy<T>
where
    T: Clone + std::fmt::Debug + 'static,
    S: Strategy<Value = T> + 'static,
{
    if is_said {
        strategy.boxed()
    } else {
        Just(otherwise).boxed()
    }
}

fn own(pattern: &'static str) -> impl Strategy<Value = Cow<'static, str>> {
    pattern.prop_map(Cow::Owned)
}

fn text() -> impl Strategy<Value = Cow<'static, str>> {
    prop_oneof![own(r"\PC{1,24}"), own("[a-z \n\t\r\"\\\\{}]{0,12}[a-z]")]
}

fn base64() -> impl Strategy<Value = Cow<'static, str>> {
    own("([A-Za-z0-9+/]{4}){1,6}")
}

fn cache(says: Says) -> BoxedStrategy<Option<CacheMark>> {
    let marks = [None, Some(CacheMark::FiveMinutes), Some(CacheMark::OneHour)];
    if_said(says.cache_marks, None, prop::sample::select(marks.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{Part, Role};

    proptest! {
        #[test]
        fn turns_alternate_and_every_call_is_answered_in_the_next(request in request(Says::ALL)) {
            let roles = request.messages.iter().map(|message| message.role);
            prop_assert_eq!(roles.clone().next(), Some(Role::User));
            prop_assert!(roles.clone().zip(roles.skip(1)).all(|(one, next)| one != next));
            let ids = |message: &Message<'_>, of_calls: bool| -> Vec<String> {
                let parts = message.parts.iter().filter_map(|part| match part {
                    Part::ToolCall(call) if of_calls => Some(call.id.to_string()),
                    Part::ToolResult(result) if !of_calls => Some(result.id.to_string()),
                    _ => None,
                });
                parts.collect()
            };
            for turns in request.messages.windows(2) {
                prop_assert_eq!(ids(&turns[0], true), ids(&turns[1], false));
            }
            let last = request.messages.last().unwrap();
            prop_assert!(ids(last, true).is_empty());
        }

        #[test]
        fn a_stream_tells_what_its_answer_says(answer in answer(Says::ALL), letters in 1..6_usize) {
            let whole = answer.clone().into_events();
            let cut: Vec<_> = whole.iter().cloned().flat_map(|event| answer::pieces(event, letters)).collect();
            prop_assert_eq!(told(&cut), told(&whole));
        }
    }
}
