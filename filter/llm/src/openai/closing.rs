//! The last events of a stream of chunks that the gateway ends before its provider does.

use serde::Serialize;

use super::print::write_json;
use super::usage::UsageShown;
use crate::closing::Closing;

/// Appends a chunk that finishes the first choice for its length, the usage if it is to be shown,
/// and the end marker.
pub(crate) fn write(closing: &Closing<'_>, out: &mut Vec<u8>) {
    let delta = Delta {};
    let finish = Finish::of(Said::Chat { delta });
    write_stream(closing, "chat.completion.chunk", finish, out);
}

/// The same for the older completions.
pub(crate) fn write_completion(closing: &Closing<'_>, out: &mut Vec<u8>) {
    let finish = Finish::of(Said::Completion { text: "" });
    write_stream(closing, "text_completion", finish, out);
}

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: &'a [Finish],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageShown>,
}

/// A choice that ends.
#[derive(Serialize)]
struct Finish {
    index: u32,
    #[serde(flatten)]
    said: Said,
    logprobs: Option<()>,
    finish_reason: &'static str,
}

/// What is said last: nothing.
#[derive(Serialize)]
#[serde(untagged)]
enum Said {
    Chat { delta: Delta },
    Completion { text: &'static str },
}

#[derive(Serialize)]
struct Delta {}

impl Finish {
    fn of(said: Said) -> Self {
        Self {
            index: 0,
            said,
            logprobs: None,
            finish_reason: "length",
        }
    }
}

fn write_stream(closing: &Closing<'_>, object: &'static str, finish: Finish, out: &mut Vec<u8>) {
    let mut chunk = Chunk {
        id: closing.id,
        object,
        created: closing.created_at_s,
        model: closing.model,
        choices: &[finish],
        usage: None,
    };
    write_chunk(&chunk, out);
    if closing.shows_usage {
        chunk.choices = &[];
        chunk.usage = Some(UsageShown::from(closing.usage));
        write_chunk(&chunk, out);
    }
    out.extend_from_slice(b"data: [DONE]\n\n");
}

fn write_chunk(chunk: &Chunk<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    write_json(chunk, out);
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use crate::api::Api;
    use crate::closing::Closing;
    use crate::meter::{StreamMeter, UsageMembers};
    use crate::reading::Finish;
    use crate::usage::Usage;

    #[test]
    fn a_closed_stream_reads_as_one_that_reached_its_length() {
        let usage = Usage {
            input: 7,
            cached_input: 2,
            output: 3,
            ..Usage::default()
        };
        let closing = Closing {
            id: "chatcmpl-\"1\"",
            model: "small-1",
            created_at_s: 1_750_000_000,
            usage: &usage,
            shows_usage: true,
            open_block: None,
            sequence_number: 0,
        };
        for api in [Api::ChatCompletions, Api::Completions] {
            let mut out = Vec::new();
            closing.write(api, &mut out);
            let mut meter = StreamMeter::new(api, UsageMembers::Keep, 1 << 16);
            meter.observe(&out);
            let reading = meter.reading();
            assert_eq!(reading.finish, Some(Finish::Length));
            assert!(reading.is_done && reading.unreadable_events == 0);
            assert_eq!(reading.usage, Some(usage));
            assert!(meter.at_event_boundary());

            let silent = Closing {
                shows_usage: false,
                ..closing
            };
            let mut out = Vec::new();
            silent.write(api, &mut out);
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.matches("data: ").count(), 2);
            assert!(!text.contains("usage"));
        }
    }

    #[test]
    fn the_last_choice_has_the_form_of_its_api() {
        let closing = Closing {
            id: "1",
            model: "m",
            created_at_s: 7,
            usage: &Usage::default(),
            shows_usage: false,
            open_block: None,
            sequence_number: 0,
        };
        for (api, object, said) in [
            (
                Api::ChatCompletions,
                "chat.completion.chunk",
                r#""delta":{}"#,
            ),
            (Api::Completions, "text_completion", r#""text":"""#),
        ] {
            let mut out = Vec::new();
            closing.write(api, &mut out);
            let expected = format!(
                "data: {{\"id\":\"1\",\"object\":\"{object}\",\"created\":7,\"model\":\"m\",\
                 \"choices\":[{{\"index\":0,{said},\"logprobs\":null,\
                 \"finish_reason\":\"length\"}}]}}\n\ndata: [DONE]\n\n"
            );
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
