use super::*;
use crate::api::Api;
use crate::meter::{PlainMeter, StreamMeter, UsageMembers};
use crate::usage::Usage;

fn meter(chunks: &[&[u8]]) -> Reading {
    let mut meter = StreamMeter::new(Api::Responses, UsageMembers::Keep, 1 << 20);
    for chunk in chunks {
        meter.observe(chunk);
    }
    meter.finish(&mut Vec::new());
    meter.reading().clone()
}

fn stream(events: &[&str]) -> Vec<u8> {
    let framed = events.iter().map(|data| {
        let value: serde_json::Value = serde_json::from_str(data).unwrap();
        format!(
            "event: {}\ndata: {data}\n\n",
            value["type"].as_str().unwrap()
        )
    });
    framed.collect::<String>().into_bytes()
}

fn plain(document: &str) -> Reading {
    let mut meter = PlainMeter::new(Api::Responses);
    meter.observe(document.as_bytes());
    meter.finish();
    meter.reading().clone()
}

/// Events and members as in OpenAI's API reference, "Streaming events", and the types of
/// openai-python 3.57.
const EVENTS: [&str; 14] = [
    r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"incomplete_details":null,"output":[],"service_tier":"auto","usage":null}}"#,
    r#"{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress","output":[],"service_tier":"auto","usage":null}}"#,
    r#"{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
    r#"{"type":"response.reasoning_summary_text.delta","sequence_number":3,"item_id":"rs_1","output_index":0,"summary_index":0,"delta":"hm\n"}"#,
    r#"{"type":"response.output_item.done","sequence_number":4,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm\n"}],"encrypted_content":"gAAA"}}"#,
    r#"{"type":"response.output_item.added","sequence_number":5,"output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#,
    r#"{"type":"response.output_text.delta","sequence_number":6,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"Hi","logprobs":[],"obfuscation":"x9sJ"}"#,
    r#"{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","output_index":1,"content_index":0,"delta":" you","logprobs":[]}"#,
    r#"{"type":"response.output_text.done","sequence_number":8,"item_id":"msg_1","output_index":1,"content_index":0,"text":"Hi you","logprobs":[]}"#,
    r#"{"type":"response.output_item.done","sequence_number":9,"output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"Hi you"}]}}"#,
    r#"{"type":"response.output_item.added","sequence_number":10,"output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"find"}}"#,
    r#"{"type":"response.function_call_arguments.delta","sequence_number":11,"item_id":"fc_1","output_index":2,"delta":"{\"a\":1}"}"#,
    r#"{"type":"response.function_call_arguments.done","sequence_number":12,"item_id":"fc_1","output_index":2,"arguments":"{\"a\":1}"}"#,
    r#"{"type":"response.completed","sequence_number":13,"response":{"id":"resp_1","status":"completed","error":null,"incomplete_details":null,"output":[{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm\n"}]},{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"Hi you"}]},{"id":"fc_1","type":"function_call","name":"find","arguments":"{\"a\":1}"}],"service_tier":"default","usage":{"input_tokens":37,"input_tokens_details":{"cached_tokens":20,"cache_write_tokens":5},"output_tokens":11,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":48}}}"#,
];

fn assert_whole(reading: &Reading) {
    assert_eq!(reading.id.as_deref(), Some("resp_1"));
    assert_eq!(reading.service_tier.as_deref(), Some("default"));
    assert_eq!(reading.finish, Some(Finish::ToolCalls));
    assert!(reading.is_done && reading.has_content);
    assert_eq!(reading.error, None);
    let reasoning = "hm\n".len() as u64;
    let shown = "Hi you".len() + "find".len() + r#"{"a":1}"#.len();
    assert_eq!(reading.visible_bytes, reasoning + shown as u64);
    assert_eq!(reading.reasoning_bytes, reasoning);
    let usage = Usage {
        input: 37,
        cached_input: 20,
        cache_write: 5,
        output: 11,
        reasoning: 4,
        ..Usage::default()
    };
    assert_eq!(reading.usage, Some(usage));
    assert_eq!(reading.unreadable_events, 0);
}

#[test]
fn a_stream_is_read_alike_wherever_it_is_cut() {
    let stream = stream(&EVENTS);
    let whole = meter(&[&stream]);
    assert_whole(&whole);
    assert_eq!(whole.events, 14);
    assert_eq!(whole.next_sequence_number, 14);
    for cut in 0..stream.len() {
        let (head, tail) = stream.split_at(cut);
        assert_eq!(meter(&[head, tail]), whole, "cut at {cut}");
    }
    let bytes: Vec<_> = stream.chunks(1).collect();
    assert_eq!(meter(&bytes), whole);
}

/// vLLM's events have their members in the alphabet's order, so the type is last.
#[test]
fn an_event_may_have_its_type_last() {
    let sorted: Vec<String> = EVENTS
        .iter()
        .map(|event| {
            let members: std::collections::BTreeMap<String, serde_json::Value> =
                serde_json::from_str(event).unwrap();
            serde_json::to_string(&members).unwrap()
        })
        .collect();
    let sorted: Vec<&str> = sorted.iter().map(String::as_str).collect();
    assert_whole(&meter(&[&stream(&sorted)]));
}

#[test]
fn a_whole_response_reads_as_its_stream() {
    let last: serde_json::Value = serde_json::from_str(EVENTS[13]).unwrap();
    let reading = plain(&last["response"].to_string());
    assert_whole(&reading);
    assert_eq!(reading.events, 0);
}

#[test]
fn reasoning_in_full_is_reasoning_too() {
    let document = r#"{"output":[{"content":[{"text":"deep","type":"reasoning_text"}],"summary":[],"type":"reasoning"},{"content":[{"text":"so","type":"output_text"}],"type":"message"}],"status":"completed"}"#;
    let reading = plain(document);
    assert_eq!((reading.visible_bytes, reading.reasoning_bytes), (6, 4));
    assert_eq!(reading.finish, Some(Finish::Stop));
    let delta = r#"{"type":"response.reasoning_text.delta","delta":"deep"}"#;
    let reading = meter(&[&stream(&[delta])]);
    assert_eq!((reading.visible_bytes, reading.reasoning_bytes), (4, 4));
}

#[test]
fn what_was_not_told_in_deltas_counts_in_the_last_event() {
    let reading = meter(&[&stream(&[EVENTS[0], EVENTS[13]])]);
    assert_eq!(reading.visible_bytes, 20);
    assert_eq!(reading.reasoning_bytes, 3);
    assert!(reading.has_content);
}

#[test]
fn every_last_event_tells_usage_and_finish() {
    let usage = r#""usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}"#;
    let last = |kind: &str, rest: &str| {
        let data = format!(r#"{{"type":"{kind}","response":{{{rest},{usage}}}}}"#);
        meter(&[&stream(&[&data])])
    };
    let cut = last(
        "response.incomplete",
        r#""status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}"#,
    );
    let filtered = last(
        "response.incomplete",
        r#""status":"incomplete","incomplete_details":{"reason":"content_filter"}"#,
    );
    let failed = last(
        "response.failed",
        r#""status":"failed","error":{"code":"rate_limit_exceeded","message":"slow down"}"#,
    );
    let unsaid = last("response.completed", r#""id":"resp_1""#);
    let finishes = [&cut, &filtered, &failed, &unsaid].map(|reading| reading.finish);
    let expected = [
        Finish::Length,
        Finish::ContentFilter,
        Finish::Error,
        Finish::Stop,
    ];
    assert_eq!(finishes, expected.map(Some));
    for reading in [&cut, &filtered, &failed, &unsaid] {
        assert!(reading.is_done);
        assert_eq!(reading.usage.map(|usage| usage.total()), Some(7));
    }
    assert_eq!(cut.error, None);
    let error = failed.error.unwrap();
    assert_eq!(error.code, "rate_limit_exceeded");
    assert_eq!(error.message, "slow down");
}

#[test]
fn errors_are_read_wherever_they_stand() {
    for data in [
        r#"{"type":"error","code":"server_error","message":"no","param":null,"sequence_number":3}"#,
        r#"{"type":"error","sequence_number":3,"error":{"type":"server_error","code":"server_error","message":"no","param":null}}"#,
        r#"{"error":{"message":"no","type":"x","code":"server_error"},"type":"error"}"#,
    ] {
        let reading = meter(&[&stream(&[EVENTS[0], data])]);
        let error = reading.error.unwrap();
        assert_eq!(
            (error.message.as_str(), error.code.as_str()),
            ("no", "server_error")
        );
        assert!(!reading.is_done && !reading.has_content);
    }
    let failed = plain(
        r#"{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"no"},"output":[],"usage":null}"#,
    );
    assert_eq!(failed.finish, Some(Finish::Error));
    assert_eq!(failed.error.unwrap().message, "no");
    assert_eq!(failed.usage, None);
}

#[test]
fn what_begins_is_content_only_where_it_cannot_be_taken_back() {
    let added = |item: &str| {
        let data = format!(r#"{{"type":"response.output_item.added","item":{item}}}"#);
        meter(&[&stream(&[&data])]).has_content
    };
    assert!(!added(r#"{"type":"message","content":[]}"#));
    assert!(!added(r#"{"type":"reasoning","summary":[]}"#));
    assert!(added(r#"{"type":"function_call","name":"f"}"#));
    assert!(added(
        r#"{"type":"web_search_call","status":"in_progress"}"#
    ));
    let hidden = r#"{"type":"response.output_item.done","item":{"type":"reasoning","summary":[],"encrypted_content":"gA"}}"#;
    assert!(meter(&[&stream(&[hidden])]).has_content);
    let audio = r#"{"type":"response.audio.delta","delta":"AAAA"}"#;
    let heard = meter(&[&stream(&[audio])]);
    assert!(heard.has_content && heard.visible_bytes == 0);
}

#[test]
fn a_stream_cut_midway_keeps_what_was_told() {
    let reading = meter(&[&stream(&EVENTS[..8])]);
    assert!(!reading.is_done && reading.has_content);
    assert_eq!(reading.finish, None);
    assert_eq!(reading.usage, None);
    assert_eq!(reading.service_tier, None);
    assert_eq!(reading.visible_bytes, 9);
}

#[test]
fn an_end_marker_is_one_here_too() {
    let mut stream = stream(&EVENTS[..8]);
    stream.extend_from_slice(b"data: [DONE]\n\n");
    assert!(meter(&[&stream]).is_done);
}

/// Instructions are repeated in the last event, which can be of hundreds of kilobytes.
#[test]
fn usage_is_found_in_a_last_event_of_any_size() {
    let instructions = "be brief. ".repeat(30_000);
    let usage = r#""usage":{"input_tokens":70000,"output_tokens":2,"total_tokens":70002}"#;
    let last = format!(
        r#"{{"type":"response.completed","response":{{"status":"completed","instructions":"{instructions}",{usage}}}}}"#
    );
    let stream = stream(&[EVENTS[0], &last]);
    let pieces: Vec<_> = stream.chunks(16 << 10).collect();
    let reading = meter(&pieces);
    assert_eq!(reading.usage.map(|usage| usage.input), Some(70_000));
    assert!(reading.is_done);
    assert_eq!(reading.oversized_events, 0);
}
