//! The last events of a stream that the gateway ends before its provider does.

use super::event::{EndShown, EventShown};
use super::message::{UsageShown, stop_reason};
use crate::closing::Closing;
use crate::conversation::Finish;

/// Appends the end of the block that is open, the finish with the usage, and the end.
pub(crate) fn write(closing: &Closing<'_>, out: &mut Vec<u8>) {
    if let Some(index) = closing.open_block {
        EventShown::ContentBlockStop { index }.write(out);
    }
    let delta = EndShown {
        stop_reason: stop_reason(Finish::Length, false),
        stop_sequence: None,
    };
    let usage = UsageShown::of(closing.usage);
    EventShown::MessageDelta { delta, usage }.write(out);
    EventShown::MessageStop.write(out);
}

#[cfg(test)]
mod tests {
    use crate::api::Api;
    use crate::closing::Closing;
    use crate::meter::{StreamMeter, UsageMembers};
    use crate::reading::Finish;
    use crate::usage::Usage;

    const STREAM: &[u8] = b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\
        \"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n\
        event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":4,\
        \"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
    const BLOCK_STOP: &[u8] = b"event: content_block_stop\n\
        data: {\"type\":\"content_block_stop\",\"index\":4}\n\n";

    #[test]
    fn a_stream_that_is_cut_ends_as_one_that_came_to_its_length() {
        let usage = Usage {
            input: 9,
            cached_input: 2,
            output: 5,
            ..Usage::default()
        };
        for (stream, ends_block) in [
            (STREAM.to_vec(), true),
            ([STREAM, BLOCK_STOP].concat(), false),
        ] {
            let mut meter = StreamMeter::new(Api::Messages, UsageMembers::Keep, 1 << 16);
            meter.observe(&stream);
            let closing = Closing {
                id: "",
                model: "",
                created_at_s: 0,
                usage: &usage,
                shows_usage: true,
                open_block: meter.reading().open_block,
                sequence_number: 0,
            };
            let mut end = Vec::new();
            closing.write(Api::Messages, &mut end);
            assert_eq!(end.starts_with(BLOCK_STOP), ends_block);
            meter.observe(&end);
            let reading = meter.reading();
            assert!(reading.is_done && !reading.is_output_early);
            assert_eq!((reading.open_block, reading.unreadable_events), (None, 0));
            assert_eq!(reading.finish, Some(Finish::Length));
            assert_eq!(reading.usage, Some(usage));
        }
    }
}
