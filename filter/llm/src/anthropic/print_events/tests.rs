use serde_json::{Value, json};

use super::*;
use crate::api::Api;
use crate::meter::{StreamMeter, UsageMembers};
use crate::reading;

fn printed(events: &[Event<'_>]) -> (Vec<Value>, reading::Reading) {
    let terms = AnswerTerms {
        request_id: "id-1",
        model: "alias",
        created_at_s: 0,
        shows_usage: true,
    };
    let mut printer = MessageEvents::new(&terms);
    let mut stream = Vec::new();
    for event in events {
        printer.print(event, &mut stream);
    }
    let mut meter = StreamMeter::new(Api::Messages, UsageMembers::Keep, 1 << 16);
    let mut told = Vec::new();
    meter.read_each(&stream, &mut |name, data| {
        let event: Value = serde_json::from_slice(data).unwrap();
        assert_eq!(event["type"].as_str().unwrap().as_bytes(), name);
        told.push(event);
    });
    assert!(meter.at_event_boundary());
    (told, meter.reading().clone())
}

fn start() -> Event<'static> {
    Event::Start {
        id: "".into(),
        model: "m".into(),
    }
}

fn finish(finish: Finish) -> Event<'static> {
    Event::Finish {
        finish,
        stop_sequence: None,
    }
}

fn usage(input: u64, output: u64) -> Event<'static> {
    Event::Usage(Usage {
        input,
        cached_input: 3,
        output,
        ..Usage::default()
    })
}

fn call(call: u32) -> Event<'static> {
    Event::CallStart {
        call,
        id: format!("c{call}").into(),
        name: "f".into(),
        signature: None,
    }
}

fn arguments(call: u32, json: &'static str) -> Event<'static> {
    Event::CallArguments {
        call,
        json: json.into(),
    }
}

fn delta(index: u32, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

/// The order is of Anthropic's page "Streaming messages".
#[test]
fn blocks_are_opened_and_closed_and_the_end_waits_for_the_usage() {
    let (told, reading) = printed(&[
        start(),
        usage(10, 1),
        Event::Thinking("hm".into()),
        Event::Signature("sig".into()),
        Event::Redacted("xyz".into()),
        Event::Text("So".into()),
        Event::Text("".into()),
        Event::Text(".".into()),
        finish(Finish::Stop),
        usage(10, 7),
        Event::End,
    ]);
    let expected = [
        json!({"type": "message_start", "message": {"id": "msg_id-1", "type": "message",
            "role": "assistant", "model": "alias", "content": [], "stop_reason": null,
            "stop_sequence": null, "usage": {"input_tokens": 7, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 3, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "sig"})),
        stop(0),
        json!({"type": "content_block_start", "index": 1,
            "content_block": {"type": "redacted_thinking", "data": "xyz"}}),
        stop(1),
        json!({"type": "content_block_start", "index": 2,
            "content_block": {"type": "text", "text": ""}}),
        delta(2, json!({"type": "text_delta", "text": "So"})),
        delta(2, json!({"type": "text_delta", "text": "."})),
        stop(2),
        json!({"type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"input_tokens": 7, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 3, "output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ];
    assert_eq!(told, expected);
    assert!(reading.is_done && reading.open_block.is_none());
    assert_eq!(
        reading.usage.map(|usage| (usage.input, usage.output)),
        Some((10, 7))
    );
}

#[test]
fn calls_told_in_turns_are_blocks_one_after_the_other() {
    let (told, _) = printed(&[
        start(),
        call(0),
        call(1),
        arguments(1, "{\"b\":1}"),
        arguments(0, "{\"a\":"),
        arguments(0, "2}"),
        finish(Finish::ToolCalls),
        Event::End,
    ]);
    let open = |index: u32| {
        json!({"type": "content_block_start", "index": index, "content_block":
            {"type": "tool_use", "id": format!("c{index}"), "name": "f", "input": {}}})
    };
    let input = |index, json: &str| {
        delta(
            index,
            json!({"type": "input_json_delta", "partial_json": json}),
        )
    };
    let expected = [
        open(0),
        input(0, "{\"a\":"),
        input(0, "2}"),
        stop(0),
        open(1),
        input(1, "{\"b\":1}"),
        stop(1),
    ];
    assert_eq!(told[1..8], expected);
    assert_eq!(told[8]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn a_call_without_arguments_has_an_empty_object() {
    for events in [
        vec![start(), call(0), Event::End],
        vec![start(), call(0), arguments(0, ""), Event::End],
    ] {
        let (told, _) = printed(&events);
        let expected = delta(0, json!({"type": "input_json_delta", "partial_json": "{}"}));
        assert_eq!(told[2], expected);
        assert_eq!(told[3], stop(0));
    }
}

#[test]
fn every_finish_has_a_word() {
    for (told, word) in [
        (Finish::Stop, "end_turn"),
        (Finish::Length, "max_tokens"),
        (Finish::ToolCalls, "tool_use"),
        (Finish::ContentFilter, "refusal"),
        (Finish::Refusal, "refusal"),
        (Finish::Error, "end_turn"),
    ] {
        let (events, _) = printed(&[start(), finish(told), Event::End]);
        assert_eq!(events[1]["delta"]["stop_reason"], word);
    }
    let by_sequence = Event::Finish {
        finish: Finish::Stop,
        stop_sequence: Some("END".into()),
    };
    let (events, _) = printed(&[start(), by_sequence, Event::End]);
    let expected = json!({"stop_reason": "stop_sequence", "stop_sequence": "END"});
    assert_eq!(events[1]["delta"], expected);
}
