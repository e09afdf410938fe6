//! Streams as Anthropic's page "Streaming messages" writes them, with extended thinking, tool use
//! and a web search.

use super::*;
use crate::api::Api;
use crate::conversation::Finish;
use crate::meter::{StreamMeter, UsageMembers};
use crate::usage::Usage;

fn stream(events: &[(&str, &str)]) -> Vec<u8> {
    let event = |(name, data): &(&str, &str)| format!("event: {name}\ndata: {data}\n\n");
    events.iter().map(event).collect::<String>().into_bytes()
}

fn read(pieces: &[&[u8]]) -> Vec<Event<'static>> {
    let mut meter = StreamMeter::new(Api::Messages, UsageMembers::Keep, 1 << 16);
    let mut reader = AnthropicEvents::default();
    let mut events = Vec::new();
    let mut hand_on = |event: Event<'_>| events.push(event.into_owned());
    for piece in pieces {
        meter.read_each(piece, &mut |name, data| {
            reader.read(name, data, &mut hand_on)
        });
    }
    meter.finish_each(&mut |name, data| reader.read(name, data, &mut hand_on));
    reader.finish(&mut hand_on);
    events
}

const START: (&str, &str) = (
    "message_start",
    r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-x","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_read_input_tokens":5,"output_tokens":1}}}"#,
);

const REST: &[(&str, &str)] = &[
    (
        "content_block_start",
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    ),
    (
        "content_block_delta",
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me\n"}}"#,
    ),
    (
        "content_block_delta",
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCg=="}}"#,
    ),
    (
        "content_block_stop",
        r#"{"type":"content_block_stop","index":0}"#,
    ),
    ("ping", r#"{"type": "ping"}"#),
    (
        "content_block_start",
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}"#,
    ),
    (
        "content_block_delta",
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}"#,
    ),
    (
        "content_block_stop",
        r#"{"type":"content_block_stop","index":1}"#,
    ),
    (
        "content_block_start",
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"look","input":{}}}"#,
    ),
    (
        "content_block_delta",
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    ),
    (
        "content_block_delta",
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\": \""}}"#,
    ),
    (
        "content_block_delta",
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"ü\"}"}}"#,
    ),
    (
        "content_block_stop",
        r#"{"type":"content_block_stop","index":2}"#,
    ),
    (
        "content_block_start",
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"now","input":{}}}"#,
    ),
    (
        "content_block_stop",
        r#"{"type":"content_block_stop","index":3}"#,
    ),
    (
        "message_delta",
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}}"#,
    ),
    ("message_stop", r#"{"type":"message_stop"}"#),
];

#[test]
fn a_stream_cut_anywhere_is_told_in_order() {
    let whole = stream(&[&[START], REST].concat());
    let usage = |output| {
        Event::Usage(Usage {
            input: 30,
            cached_input: 5,
            output,
            ..Usage::default()
        })
    };
    let start = |call, id: &'static str, name: &'static str| Event::CallStart {
        call,
        id: id.into(),
        name: name.into(),
        signature: None,
    };
    let arguments = |call, json: &'static str| Event::CallArguments {
        call,
        json: json.into(),
    };
    let expected = [
        Event::Start {
            id: "msg_1".into(),
            model: "claude-x".into(),
        },
        usage(1),
        Event::Thinking("Let me\n".into()),
        Event::Signature("EqQBCg==".into()),
        start(0, "toolu_1", "look"),
        arguments(0, "{\"a\": \""),
        arguments(0, "ü\"}"),
        Event::CallEnd { call: 0 },
        start(1, "toolu_2", "now"),
        arguments(1, "{}"),
        Event::CallEnd { call: 1 },
        Event::Finish {
            finish: Finish::ToolCalls,
            stop_sequence: None,
        },
        usage(89),
        Event::End,
    ];
    for cut in 0..=whole.len() {
        let (head, tail) = whole.split_at(cut);
        assert_eq!(read(&[head, tail]), expected, "cut at {cut}");
    }
}

#[test]
fn an_error_ends_the_stream() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let events = read(&[&stream(&[START, ("error", error), START])]);
    let Some(Event::Error(error)) = events.last() else {
        panic!("{events:?}");
    };
    assert_eq!(
        (error.kind.as_str(), error.message.as_str()),
        ("overloaded_error", "Overloaded")
    );
    assert_eq!(events.len(), 3);
}

#[test]
fn a_stop_sequence_is_told_and_a_stream_that_breaks_off_is_ended() {
    let delta = r#"{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"a\"b"},"usage":{"output_tokens":4}}"#;
    let events = read(&[&stream(&[START, ("message_delta", delta)])]);
    assert_eq!(
        events[2],
        Event::Finish {
            finish: Finish::Stop,
            stop_sequence: Some("a\"b".into())
        }
    );
    assert_eq!(events.last(), Some(&Event::End));
}

#[test]
fn text_without_escapes_is_borrowed() {
    let data =
        br#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"abc"}}"#;
    let mut has_read = false;
    AnthropicEvents::default().read(b"", data, &mut |event| {
        has_read = true;
        assert!(matches!(event, Event::Text(Cow::Borrowed("abc"))));
    });
    assert!(has_read);
}
