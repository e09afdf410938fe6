//! The last events of a stream of chunks that the gateway ends before its provider does.

use crate::closing::Closing;
use crate::json::write_text;

/// Appends a chunk that finishes the first choice for its length, the usage if it is to be shown,
/// and the end marker.
pub(crate) fn write(closing: &Closing<'_>, out: &mut Vec<u8>) {
    let finish = br#""choices":[{"index":0,"delta":{},"finish_reason":"length"}]"#;
    write_chunk(closing, finish, out);
    if closing.shows_usage {
        let (input, output) = (closing.usage.input, closing.usage.output);
        let total = closing.usage.total();
        let members = format!(
            r#""choices":[],"usage":{{"prompt_tokens":{input},"completion_tokens":{output},"total_tokens":{total}}}"#
        );
        write_chunk(closing, members.as_bytes(), out);
    }
    out.extend_from_slice(b"data: [DONE]\n\n");
}

fn write_chunk(closing: &Closing<'_>, members: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"data: {"id":"#);
    write_text(out, closing.id);
    out.extend_from_slice(br#","object":"chat.completion.chunk","created":"#);
    out.extend_from_slice(closing.created_at_s.to_string().as_bytes());
    out.extend_from_slice(br#","model":"#);
    write_text(out, closing.model);
    out.push(b',');
    out.extend_from_slice(members);
    out.extend_from_slice(b"}\n\n");
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
        };
        let mut out = Vec::new();
        closing.write(Api::ChatCompletions, &mut out);
        let mut meter = StreamMeter::new(Api::ChatCompletions, UsageMembers::Keep, 1 << 16);
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
        silent.write(Api::ChatCompletions, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("data: ").count(), 2);
        assert!(!text.contains("usage"));
    }
}
