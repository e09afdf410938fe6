//! Where a chat request says what a target may need said otherwise.

use serde_json::value::RawValue;

use crate::openai::stream_options::StreamOptions;
use crate::request::{EditPoints, MAX_COMPLETION_TOKENS, MissingOutput, OutputPoints, Span};

/// The members that bound a request's output.
#[derive(Clone, Copy, Default)]
pub(super) struct OutputMembers<'a> {
    pub(super) max_tokens: Option<&'a RawValue>,
    pub(super) max_completion_tokens: Option<&'a RawValue>,
}

/// One that says nothing about its output gets `max_completion_tokens`, which reasoning counts
/// towards.
pub(super) fn points(
    body: &[u8],
    model: &RawValue,
    options: &StreamOptions<'_>,
    output: OutputMembers<'_>,
) -> EditPoints {
    let span_of = |member: Option<&RawValue>| member.map(|member| Span::of(body, member));
    EditPoints {
        model: Some(Span::of(body, model)),
        usage: options.edit(body),
        output: OutputPoints {
            said: [
                span_of(output.max_tokens),
                span_of(output.max_completion_tokens),
            ],
            missing: Some(MissingOutput {
                at: Span::first_member(body).start,
                before: MAX_COMPLETION_TOKENS,
                after: ",",
            }),
            completion_name: match output.max_tokens {
                None => span_of(output.max_completion_tokens).and_then(|span| span.name_of(body)),
                Some(_) => None,
            },
        },
        vertex: None,
    }
}
