//! The last events of a stream that the gateway ends before its provider does.

use crate::json::write_text;
use crate::usage::Usage;

/// What the closing events name, as the stream's own chunks do.
#[derive(Clone, Copy, Debug)]
pub struct Closing<'a> {
    pub id: &'a str,
    pub model: &'a str,
    pub created_at_s: u64,
    /// For a client that asked for it.
    pub usage: Option<&'a Usage>,
}

impl Closing<'_> {
    /// Appends a chunk that finishes the first choice for its length, the usage if there is any,
    /// and the end marker. What was sent before must end where an event ends.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_chunk(
            br#""choices":[{"index":0,"delta":{},"finish_reason":"length"}]"#,
            out,
        );
        if let Some(usage) = self.usage {
            let (input, output) = (usage.input, usage.output);
            let total = usage.total();
            let members = format!(
                r#""choices":[],"usage":{{"prompt_tokens":{input},"completion_tokens":{output},"total_tokens":{total}}}"#
            );
            self.write_chunk(members.as_bytes(), out);
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn write_chunk(&self, members: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(br#"data: {"id":"#);
        write_text(out, self.id);
        out.extend_from_slice(br#","object":"chat.completion.chunk","created":"#);
        out.extend_from_slice(self.created_at_s.to_string().as_bytes());
        out.extend_from_slice(br#","model":"#);
        write_text(out, self.model);
        out.push(b',');
        out.extend_from_slice(members);
        out.extend_from_slice(b"}\n\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Api;
    use crate::meter::{StreamMeter, UsageMembers};
    use crate::reading::Finish;

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
            usage: Some(&usage),
        };
        let mut out = Vec::new();
        closing.write(&mut out);
        let mut meter = StreamMeter::new(Api::ChatCompletions, UsageMembers::Keep, 1 << 16);
        meter.observe(&out);
        let reading = meter.reading();
        assert_eq!(reading.finish, Some(Finish::Length));
        assert!(reading.is_done && reading.unreadable_events == 0);
        assert_eq!(reading.usage, Some(usage));
        assert!(meter.at_event_boundary());

        let silent = Closing {
            usage: None,
            ..closing
        };
        let mut out = Vec::new();
        silent.write(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("data: ").count(), 2);
        assert!(!text.contains("usage"));
    }
}
