//! The last event of a stream that the gateway ends before its provider does.

use super::event::{self, Lifecycle};
use super::shown::{Head, Item, Outcome, ResponseShown};
use crate::closing::Closing;

/// Appends the event of a response that came to its limit of tokens. Its output is empty, since
/// nothing of what passed has been kept: the client has had it in the events before.
pub(crate) fn write(closing: &Closing<'_>, out: &mut Vec<u8>) {
    let head = Head {
        id: closing.id,
        model: closing.model,
        created_at_s: closing.created_at_s,
    };
    let outcome = Outcome::Cut;
    let output: [Item<'_>; 0] = [];
    let last = Lifecycle {
        kind: outcome.event(),
        sequence_number: closing.sequence_number,
        response: &ResponseShown::new(head, outcome, output, Some(closing.usage)),
    };
    event::write(last.kind, &last, out);
}

#[cfg(test)]
mod tests {
    use crate::api::Api;
    use crate::closing::Closing;
    use crate::meter::{StreamMeter, UsageMembers};
    use crate::reading::Finish;
    use crate::usage::Usage;

    /// OpenAI's SDKs refuse a last event whose response has another id than the first one's.
    #[test]
    fn a_closed_stream_reads_as_one_that_reached_its_length() {
        let told = concat!(
            "event: response.created\n",
            r#"data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_7","status":"in_progress"}}"#,
            "\n\nevent: response.output_text.delta\n",
            r#"data: {"type":"response.output_text.delta","sequence_number":4,"delta":"so"}"#,
            "\n\n",
        );
        let mut meter = StreamMeter::new(Api::Responses, UsageMembers::Keep, 1 << 16);
        meter.observe(told.as_bytes());
        let usage = Usage {
            input: 7,
            output: 3,
            ..Usage::default()
        };
        let closing = Closing {
            id: meter.reading().id.as_deref().unwrap(),
            model: "small-1",
            created_at_s: 1_750_000_000,
            usage: &usage,
            shows_usage: true,
            open_block: None,
            sequence_number: meter.reading().next_sequence_number,
        };
        let mut out = Vec::new();
        closing.write(Api::Responses, &mut out);
        let text = String::from_utf8(out.clone()).unwrap();
        let expected = concat!(
            "event: response.incomplete\n",
            r#"data: {"type":"response.incomplete","sequence_number":5,"response":{"id":"resp_7","object":"response","#,
            r#""created_at":1750000000,"status":"incomplete","#,
        );
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains(r#""incomplete_details":{"reason":"max_output_tokens"}"#));
        meter.observe(&out);
        let reading = meter.reading();
        assert_eq!(reading.finish, Some(Finish::Length));
        assert_eq!(reading.usage, Some(usage));
        assert!(reading.is_done && reading.unreadable_events == 0);
        assert!(meter.at_event_boundary());
    }
}
