//! Bytes as Anthropic's reference writes them ("Streaming messages", with extended thinking and
//! tool use).

use crate::api::Api;
use crate::meter::{PlainMeter, StreamMeter, UsageMembers};
use crate::reading::Finish;
use crate::usage::Usage;

const STREAM: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",",
    "\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"model\":\"claude\",",
    "\"stop_reason\":null,\"usage\":{\"input_tokens\":25,\"cache_creation_input_tokens\":40,",
    "\"cache_read_input_tokens\":100,\"cache_creation\":{\"ephemeral_5m_input_tokens\":10,",
    "\"ephemeral_1h_input_tokens\":30},\"output_tokens\":1,\"service_tier\":\"standard\"}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,",
    "\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,",
    "\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,",
    "\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"look\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,",
    "\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\": 1}\"}}\n\n",
);
const END: &str = concat!(
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":",
    "\"tool_use\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":89}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

fn meter(chunks: &[&str]) -> StreamMeter {
    let mut meter = StreamMeter::new(Api::Messages, UsageMembers::Keep, 1 << 16);
    for chunk in chunks {
        meter.observe(chunk.as_bytes());
    }
    meter
}

#[test]
fn a_stream_cut_anywhere_is_read_the_same() {
    let whole = format!("{STREAM}{END}");
    for cut in 0..=whole.len() {
        let (head, tail) = whole.split_at(cut);
        let meter = meter(&[head, tail]);
        let reading = meter.reading();
        let expected = Usage {
            input: 165,
            cached_input: 100,
            cache_write: 40,
            cache_write_1h: 30,
            output: 89,
            ..Usage::default()
        };
        assert_eq!(reading.usage, Some(expected));
        assert_eq!(reading.finish, Some(Finish::ToolCalls));
        assert_eq!(reading.service_tier.as_deref(), Some("standard"));
        assert!(reading.is_done && reading.has_content && !reading.is_output_early);
        assert_eq!(
            (reading.visible_bytes, reading.reasoning_bytes),
            (2 + 4 + 8, 2)
        );
        assert_eq!((reading.open_block, reading.unreadable_events), (None, 0));
    }
}

#[test]
fn a_stream_that_breaks_off_has_its_prompt_counted_and_an_early_output() {
    let meter = meter(&[STREAM]);
    let reading = meter.reading();
    assert_eq!(
        reading.usage.map(|usage| (usage.input, usage.output)),
        Some((165, 1))
    );
    assert!(reading.is_output_early && !reading.is_done);
    assert_eq!(reading.open_block, Some(1));
}

#[test]
fn an_error_event_is_told() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\
                 \"message\":\"Overloaded\"}}\n\n";
    let error = meter(&[error]).reading().error.clone().unwrap();
    assert_eq!(
        (error.kind.as_str(), error.message.as_str()),
        ("overloaded_error", "Overloaded")
    );
}

#[test]
fn a_whole_message_is_read() {
    let mut meter = PlainMeter::new(Api::Messages);
    meter.observe(
        br#"{"id":"msg_1","type":"message","content":[{"type":"thinking","thinking":"hm"},
        {"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"f","input":{"a":"b"}}],
        "stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":7}}"#,
    );
    meter.finish();
    let reading = meter.reading();
    assert_eq!(
        reading.usage.map(|usage| (usage.input, usage.output)),
        Some((5, 7))
    );
    assert_eq!((reading.visible_bytes, reading.reasoning_bytes), (6, 2));
    assert_eq!(reading.finish, Some(Finish::Stop));
    assert!(reading.is_done && !reading.is_output_early);
}
