//! Answers, whole and streamed.

use proptest::option;
use proptest::prelude::*;

use super::parts::{assistant, numbered};
use super::{Cow, Says, if_said, own, text};
use crate::conversation::{Answer, Event, Finish, Part};
use crate::usage::Usage;

/// An answer that ended as its parts say.
pub(crate) fn answer(says: Says) -> impl Strategy<Value = Answer<'static>> {
    let head = (
        if_said(says.id, Cow::Borrowed(""), own("[a-zA-Z0-9-]{1,12}")),
        own("[a-z0-9.-]{1,12}"),
    );
    let parts = assistant(says).prop_filter("an answer has something", |parts| !parts.is_empty());
    let end = prop_oneof![
        Just(Finish::Stop),
        Just(Finish::Length),
        Just(Finish::ContentFilter)
    ];
    let sequence = if_said(says.stop_sequence, None, option::of(text()));
    (head, parts, end, sequence, option::of(usage(says))).prop_map(
        |((id, model), parts, end, sequence, usage)| {
            let finish = match parts.last() {
                Some(Part::ToolCall(_)) => Finish::ToolCalls,
                _ if parts.iter().any(|part| matches!(part, Part::Refusal(_))) => Finish::Refusal,
                _ => end,
            };
            Answer {
                id,
                model,
                parts: numbered(parts, "answer"),
                finish: Some(finish),
                stop_sequence: sequence.filter(|_| finish == Finish::Stop),
                usage,
            }
        },
    )
}

/// An answer as a stream tells it, its texts in pieces.
pub(crate) fn events(says: Says) -> impl Strategy<Value = Vec<Event<'static>>> {
    (answer(says), 1..6_usize).prop_map(|(answer, letters)| {
        let events = answer.into_events().into_iter();
        events.flat_map(|event| pieces(event, letters)).collect()
    })
}

fn usage(says: Says) -> impl Strategy<Value = Usage> {
    let details = if_said(
        says.usage_details,
        [0; 6],
        prop::array::uniform6(0..100_u64),
    );
    (1..5_000_u64, 0..5_000_u64, details).prop_map(|(input, output, details)| {
        let [
            cached_input,
            cache_write,
            cache_write_1h,
            input_audio,
            reasoning,
            output_audio,
        ] = details;
        Usage {
            input: input + cached_input + cache_write,
            cached_input,
            cache_write,
            cache_write_1h,
            input_audio,
            output: output + reasoning,
            reasoning,
            output_audio,
        }
        .clamped()
    })
}

/// A text event as several, of so many letters each.
pub(super) fn pieces(event: Event<'static>, letters: usize) -> Vec<Event<'static>> {
    let cut = |text: &str| -> Vec<Cow<'static, str>> {
        let all: Vec<char> = text.chars().collect();
        let chunks = all.chunks(letters * 3);
        chunks
            .map(|piece| piece.iter().collect::<String>().into())
            .collect()
    };
    match event {
        Event::Text(text) => cut(&text).into_iter().map(Event::Text).collect(),
        Event::Refusal(text) => cut(&text).into_iter().map(Event::Refusal).collect(),
        Event::Thinking(text) => cut(&text).into_iter().map(Event::Thinking).collect(),
        Event::CallArguments { call, json } => cut(&json)
            .into_iter()
            .map(|json| Event::CallArguments { call, json })
            .collect(),
        other => vec![other],
    }
}
