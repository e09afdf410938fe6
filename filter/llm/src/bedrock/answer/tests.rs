use super::super::frames::{write_error, write_event, write_exception};
use super::*;
use crate::api::Api;
use crate::meter::{PlainMeter, StreamMeter, UsageMembers};
use crate::usage::Usage;

fn read(stream: &[u8]) -> Reading {
    let mut meter = StreamMeter::new(Api::Converse, UsageMembers::Keep, 4096);
    let mut out = Vec::new();
    for chunk in stream.chunks(5) {
        meter.transform(chunk, &mut out);
    }
    meter.finish(&mut out);
    assert_eq!(out, stream);
    meter.reading().clone()
}

fn events(told: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, json) in told {
        write_event(name, json.as_bytes(), &mut out).unwrap();
    }
    out
}

#[test]
fn a_streams_text_reasoning_and_calls_are_counted_and_its_last_event_ends_it() {
    let begun = [
        ("messageStart", r#"{"role":"assistant"}"#),
        (
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"hm"}}}"#,
        ),
        (
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}}}"#,
        ),
        ("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        (
            "contentBlockDelta",
            r#"{"contentBlockIndex":1,"delta":{"text":"abcd"},"p":"abcdefghij"}"#,
        ),
        (
            "contentBlockStart",
            r#"{"contentBlockIndex":2,"start":{"toolUse":{"toolUseId":"t","name":"fn"}}}"#,
        ),
        (
            "contentBlockDelta",
            r#"{"contentBlockIndex":2,"delta":{"toolUse":{"input":"{}"}}}"#,
        ),
        ("messageStop", r#"{"stopReason":"tool_use"}"#),
    ];
    let reading = read(&events(&begun));
    assert_eq!((reading.visible_bytes, reading.reasoning_bytes), (10, 2));
    assert_eq!(reading.finish, Some(Finish::ToolCalls));
    assert!(reading.has_content && !reading.is_done && reading.usage.is_none());
    let last = r#"{"usage":{"inputTokens":5,"outputTokens":7,"totalTokens":12},
        "metrics":{"latencyMs":9},"serviceTier":{"type":"flex"}}"#;
    let reading = read(&[events(&begun), events(&[("metadata", last)])].concat());
    assert!(reading.is_done);
    assert_eq!(reading.service_tier.as_deref(), Some("flex"));
    assert_eq!(reading.usage.map(|usage| usage.total()), Some(12));
}

/// maximhq/bifrost#1872: growing counters were added up.
#[test]
fn of_two_totals_of_the_cache_the_later_counts() {
    let metadata = |written: u64| {
        format!(
            r#"{{"usage":{{"inputTokens":5,"outputTokens":7,"cacheReadInputTokens":20,
            "cacheWriteInputTokens":{written},"cacheDetails":[{{"ttl":"1h","inputTokens":{written}}},
            {{"inputTokens":3,"ttl":"5m"}}]}}}}"#
        )
    };
    let (early, late) = (metadata(100), metadata(150));
    let reading = read(&events(&[("metadata", &early), ("metadata", &late)]));
    let expected = Usage {
        input: 175,
        cached_input: 20,
        cache_write: 150,
        cache_write_1h: 150,
        output: 7,
        ..Usage::default()
    };
    assert_eq!(reading.usage, Some(expected));
}

#[test]
fn exceptions_errors_and_broken_frames_are_errors() {
    let begun = events(&[("messageStart", r#"{"role":"assistant"}"#)]);
    let mut exception = begun.clone();
    let json = br#"{"message":"Too many tokens","originalStatusCode":429}"#;
    write_exception("throttlingException", json, &mut exception).unwrap();
    let error = read(&exception).error.unwrap();
    assert_eq!(
        (error.kind.as_str(), error.message.as_str()),
        ("ThrottlingException", "Too many tokens")
    );
    let mut unmodeled = begun.clone();
    write_error("InternalError", "oops", &mut unmodeled).unwrap();
    let error = read(&unmodeled).error.unwrap();
    assert_eq!(
        (error.kind.as_str(), error.message.as_str()),
        ("InternalError", "oops")
    );
    let mut broken = [begun.clone(), begun.clone()].concat();
    *broken.last_mut().unwrap() ^= 1;
    let error = read(&broken).error.unwrap();
    assert_eq!(
        error.message,
        "broken event stream: the checksum of a frame differs"
    );
    let mut large = begun;
    write_event("metadata", &[b' '; 5000], &mut large).unwrap();
    let error = read(&large).error.unwrap();
    assert!(
        error
            .message
            .ends_with("bytes, more than the 4096 that are read")
    );
}

#[test]
fn a_whole_answer_is_metered_and_an_error_is_none() {
    let answer = br#"{"output":{"message":{"role":"assistant","content":[
        {"reasoningContent":{"reasoningText":{"text":"hm","signature":"x"}}},
        {"citationsContent":{"content":[{"text":"ab"}],"citations":[{"title":"t"}]}},
        {"toolUse":{"toolUseId":"t","name":"fn","input":{"a":"b","n":12}}}]}},
        "stopReason":"content_filtered","usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7}}"#;
    let mut meter = PlainMeter::new(Api::Converse);
    meter.observe(answer);
    meter.finish();
    let reading = meter.reading();
    assert_eq!((reading.visible_bytes, reading.reasoning_bytes), (9, 2));
    assert_eq!(reading.finish, Some(Finish::ContentFilter));
    assert_eq!(reading.usage.map(|usage| usage.total()), Some(7));
}
