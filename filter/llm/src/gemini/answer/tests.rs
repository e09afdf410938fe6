//! Bytes as the Gemini API reference writes them (`GenerateContentResponse`, `UsageMetadata`).

use crate::api::Api;
use crate::meter::{PlainMeter, StreamMeter, UsageMembers};
use crate::reading::{Finish, Reading};
use crate::usage::Usage;

const STREAM: &str = concat!(
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Let me think\",\"thought\":true}],",
    "\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":20,",
    "\"totalTokenCount\":30,\"thoughtsTokenCount\":10},\"modelVersion\":\"gemini-2.5-flash\",",
    "\"responseId\":\"r-1\"}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"h\u{e9}llo\"}],\"role\":\"model\"},",
    "\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":20,\"candidatesTokenCount\":3,",
    "\"totalTokenCount\":33,\"thoughtsTokenCount\":10}}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"look\",",
    "\"args\":{\"at\":\"sky\"}},\"thoughtSignature\":\"c2ln\"}],\"role\":\"model\"},",
    "\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":20,",
    "\"cachedContentTokenCount\":8,\"candidatesTokenCount\":7,\"thoughtsTokenCount\":10,",
    "\"toolUsePromptTokenCount\":2,\"totalTokenCount\":39,",
    "\"promptTokensDetails\":[{\"modality\":\"TEXT\",\"tokenCount\":15},",
    "{\"modality\":\"AUDIO\",\"tokenCount\":5}]}}\r\n\r\n",
);

fn expected() -> Usage {
    Usage {
        input: 22,
        cached_input: 8,
        input_audio: 5,
        output: 17,
        reasoning: 10,
        ..Usage::default()
    }
}

fn assert_read(reading: &Reading) {
    assert_eq!(reading.usage, Some(expected()));
    assert_eq!(reading.finish, Some(Finish::ToolCalls));
    assert!(reading.is_done && reading.has_content && reading.error.is_none());
    // 12 of the thought, 6 of the text, `look` and `sky`.
    assert_eq!((reading.visible_bytes, reading.reasoning_bytes), (25, 12));
}

#[test]
fn a_stream_cut_anywhere_is_read_the_same() {
    for cut in 0..=STREAM.len() {
        let (head, tail) = STREAM.as_bytes().split_at(cut);
        let mut meter = StreamMeter::new(Api::GenerateContent, UsageMembers::Keep, 1 << 16);
        meter.observe(head);
        meter.observe(tail);
        meter.finish(&mut Vec::new());
        assert_read(meter.reading());
    }
}

#[test]
fn a_stream_as_one_array_is_read_as_its_responses() {
    let responses: Vec<&str> = STREAM
        .split("\r\n\r\n")
        .filter_map(|event| event.strip_prefix("data: "))
        .collect();
    let array = format!("[{}\n]", responses.join(",\r\n"));
    let mut meter = PlainMeter::new(Api::GenerateContent);
    for byte in array.as_bytes().chunks(7) {
        meter.observe(byte);
    }
    meter.finish();
    assert_read(meter.reading());
}

#[test]
fn a_prompt_that_is_blocked_ends_as_filtered() {
    let mut meter = PlainMeter::new(Api::GenerateContent);
    meter.observe(
        br#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},
            "usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}"#,
    );
    meter.finish();
    let reading = meter.reading();
    assert_eq!(reading.finish, Some(Finish::ContentFilter));
    assert_eq!(
        reading.usage.map(|usage| (usage.input, usage.output)),
        Some((9, 0))
    );
}

#[test]
fn an_error_inside_a_stream_is_told() {
    let mut meter = StreamMeter::new(Api::GenerateContent, UsageMembers::Keep, 1 << 16);
    meter.observe(b"data: {\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}\r\n\r\n");
    let error = meter.reading().error.clone().unwrap();
    assert_eq!(
        (error.message.as_str(), error.kind.as_str()),
        ("The model is overloaded.", "UNAVAILABLE")
    );
}
