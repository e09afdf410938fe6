use super::*;
use serde_json::{Value, json};

fn print(events: &[Event<'_>]) -> String {
    let terms = AnswerTerms {
        request_id: "req-1",
        model: "alias",
        created_at_s: 7,
        shows_usage: true,
    };
    let mut printer = ResponseEvents::new(&terms);
    let mut out = Vec::new();
    for event in events {
        printer.print(event, &mut out);
    }
    String::from_utf8(out).unwrap()
}

/// The data of every event; its name is its type, and its number how many came before it.
fn read(stream: &str) -> Vec<Value> {
    let events: Vec<Value> = stream
        .split_terminator("\n\n")
        .map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(
                Some(name),
                data["type"]
                    .as_str()
                    .map(|kind| format!("event: {kind}"))
                    .as_deref()
            );
            data
        })
        .collect();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
    events
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let kinds = events.iter().filter_map(|event| event["type"].as_str());
    kinds
        .map(|kind| kind.trim_start_matches("response."))
        .collect()
}

fn start() -> Event<'static> {
    Event::Start {
        id: "a-1".into(),
        model: "m-1".into(),
    }
}

fn finish(finish: Finish) -> Event<'static> {
    Event::Finish {
        finish,
        stop_sequence: None,
    }
}

fn call(call: u32) -> Event<'static> {
    Event::CallStart {
        call,
        id: format!("call-{call}").into(),
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

/// The order of OpenAI's API reference, "Streaming events".
#[test]
fn text_is_told_in_a_part_of_an_item_of_a_response() {
    let usage = Usage {
        input: 5,
        output: 2,
        ..Usage::default()
    };
    let stream = print(&[
        start(),
        Event::Text("Hi".into()),
        Event::Text("".into()),
        Event::Text(" you".into()),
        finish(Finish::Stop),
        Event::Usage(usage),
        Event::End,
    ]);
    let events = read(&stream);
    let order = [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(kinds(&events), order);
    let expected = concat!(
        "event: response.output_item.added\n",
        r#"data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"type":"message","id":"msg_a1_0","status":"in_progress","role":"assistant","content":[]}}"#,
        "\n\nevent: response.content_part.added\n",
        r#"data: {"type":"response.content_part.added","sequence_number":3,"item_id":"msg_a1_0","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}}"#,
        "\n\nevent: response.output_text.delta\n",
        r#"data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_a1_0","output_index":0,"content_index":0,"delta":"Hi","logprobs":[]}"#,
        "\n\n",
    );
    assert!(stream.contains(expected), "{stream}");
    assert_eq!(events[6]["text"], "Hi you");
    assert_eq!(events[7]["part"]["text"], "Hi you");
    assert_eq!(events[8]["item"]["status"], "completed");
    for event in [&events[0], &events[9]] {
        assert_eq!(event["response"]["id"], "a-1");
        assert_eq!(event["response"]["model"], "m-1");
        assert_eq!(event["response"]["created_at"], 7);
    }
    assert_eq!(events[0]["response"]["status"], "in_progress");
    assert!(events[0]["response"]["usage"].is_null());
    assert_eq!(events[9]["response"]["output"], json!([events[8]["item"]]));
    assert_eq!(events[9]["response"]["usage"]["total_tokens"], 7);
}

#[test]
fn reasoning_and_calls_are_items_of_their_own() {
    let events = read(&print(&[
        start(),
        Event::Thinking("hm".into()),
        Event::Thinking(", so".into()),
        Event::Signature("c2ln".into()),
        Event::Redacted("ZA".into()),
        call(0),
        arguments(0, "{\"a\":"),
        arguments(0, "1}"),
        Event::CallEnd { call: 0 },
        call(1),
        finish(Finish::ToolCalls),
        Event::End,
    ]));
    let order = [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(kinds(&events), order);
    assert_eq!(
        events[3]["part"],
        json!({"type": "summary_text", "text": ""})
    );
    assert_eq!(events[6]["text"], "hm, so");
    assert_eq!(
        events[8]["item"],
        json!({
            "type": "reasoning",
            "id": "rs_a1_0",
            "summary": [{"type": "summary_text", "text": "hm, so"}],
            "encrypted_content": "turnpike.signature.c2ln",
        })
    );
    assert_eq!(
        events[10]["item"]["encrypted_content"],
        "turnpike.redacted.ZA"
    );
    assert_eq!(events[11]["item"]["arguments"], "");
    assert_eq!(events[11]["item"]["call_id"], "call-0");
    assert_eq!(events[14]["arguments"], r#"{"a":1}"#);
    assert_eq!(events[14]["name"], "f");
    assert_eq!(events[17]["delta"], "{}");
    let items = [8, 10, 15, 19].map(|at: usize| events[at]["item"].clone());
    assert_eq!(events[20]["response"]["output"], json!(items));
    for (index, at) in [(0, 2), (1, 9), (2, 11), (3, 16)] {
        assert_eq!(events[at]["output_index"], index);
    }
}

#[test]
fn a_refusal_is_a_part_after_the_text() {
    let events = read(&print(&[
        start(),
        Event::Text("well".into()),
        Event::Refusal("no".into()),
        finish(Finish::Refusal),
        Event::End,
    ]));
    let order = [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "content_part.added",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(kinds(&events), order);
    assert_eq!(events[8]["content_index"], 1);
    assert!(events[8].get("logprobs").is_none());
    assert_eq!(events[9]["refusal"], "no");
    assert_eq!(
        events[10]["part"],
        json!({"type": "refusal", "refusal": "no"})
    );
}

#[test]
fn a_stream_that_was_cut_for_its_length_is_incomplete_and_so_is_its_last_item() {
    let events = read(&print(&[
        start(),
        Event::Text("a".into()),
        call(0),
        arguments(0, "{\"a"),
        finish(Finish::Length),
        Event::End,
    ]));
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.incomplete");
    assert_eq!(
        last["response"]["incomplete_details"]["reason"],
        "max_output_tokens"
    );
    assert_eq!(last["response"]["output"][0]["status"], "completed");
    assert_eq!(last["response"]["output"][1]["status"], "incomplete");
    assert_eq!(last["response"]["output"][1]["arguments"], "{\"a");
}

#[test]
fn calls_told_in_turns_are_items_one_after_the_other() {
    let events = read(&print(&[
        start(),
        call(0),
        call(1),
        arguments(1, "[1]"),
        arguments(0, "[0]"),
        finish(Finish::ToolCalls),
        Event::End,
    ]));
    let output = &events.last().unwrap()["response"]["output"];
    assert_eq!(output[0]["arguments"], "[0]");
    assert_eq!(output[1]["arguments"], "[1]");
}

#[test]
fn a_provider_that_gave_up_makes_the_response_failed() {
    let events = read(&print(&[start(), finish(Finish::Error), Event::End]));
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["error"]["code"], "server_error");
}

#[test]
fn content_without_a_start_starts_the_response() {
    let events = read(&print(&[Event::Text("a".into()), Event::End]));
    assert_eq!(events[0]["type"], "response.created");
    assert_eq!(events[0]["response"]["id"], "req-1");
    assert_eq!(events[0]["response"]["model"], "alias");
    let events = read(&print(&[Event::End]));
    assert_eq!(kinds(&events), ["created", "in_progress", "completed"]);
}

#[test]
fn the_next_number_is_known_for_an_error() {
    let terms = AnswerTerms {
        request_id: "req-1",
        model: "alias",
        created_at_s: 7,
        shows_usage: true,
    };
    let mut printer = ResponseEvents::new(&terms);
    let mut out = Vec::new();
    printer.print(&start(), &mut out);
    printer.print(&Event::Text("a".into()), &mut out);
    assert_eq!(printer.next_sequence_number(), 5);
}
