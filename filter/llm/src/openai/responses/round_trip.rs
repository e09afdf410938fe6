//! Turns go through a client and come back as they were; what is printed is metered as it was
//! meant; a stream says what the whole answer says.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::Api;
use crate::conversation::arbitrary::{self, Says};
use crate::conversation::{Answer, Event, Finish, Part};
use crate::meter::{PlainMeter, StreamMeter, UsageMembers};
use crate::reading::{self, Reading};
use crate::request::PathFacts;
use crate::translate::{self, AnswerTerms, PrintEvents, Quirks, StreamTranslator, Terms};

const TURNS: Says = Says {
    thinking: true,
    signatures: true,
    redacted: true,
    call_signatures: true,
    refusals: true,
    id: true,
    usage_details: true,
    ..Says::LEAST
};

fn terms() -> AnswerTerms<'static> {
    AnswerTerms {
        request_id: "req-1",
        model: "alias",
        created_at_s: 1_750_000_000,
        shows_usage: true,
    }
}

fn print_stream(events: &[Event<'_>]) -> Vec<u8> {
    let mut printer = ResponseEvents::new(&terms());
    let mut stream = Vec::new();
    for event in events {
        printer.print(event, &mut stream);
    }
    stream
}

fn last_response(stream: &[u8]) -> Value {
    let text = std::str::from_utf8(stream).unwrap();
    let last = text.trim_end().rsplit_once("data: ").unwrap().1;
    let mut last: Value = serde_json::from_str(last).unwrap();
    last["response"].take()
}

fn meter(pieces: &[&[u8]]) -> Reading {
    let mut meter = StreamMeter::new(Api::Responses, UsageMembers::Keep, 1 << 20);
    for piece in pieces {
        meter.observe(piece);
    }
    meter.finish(&mut Vec::new());
    meter.reading().clone()
}

/// What an assistant's turn is read as, when a client sends the output back.
fn sent_back(response: &Value) -> Vec<Part<'static>> {
    let mut input = vec![json!({"role": "user", "content": "go"})];
    input.extend(response["output"].as_array().unwrap().iter().cloned());
    let body = json!({"model": "m", "input": input});
    let body: &'static str = Box::leak(body.to_string().into_boxed_str());
    let request = read_request(PathFacts::default(), body.as_bytes()).unwrap();
    assert!(request.left_out.is_empty(), "{:?}", request.left_out);
    let [_, turn] = <[_; 2]>::try_from(request.messages).unwrap();
    turn.parts
}

/// A stream does not tell neighbouring texts apart.
fn with_whole_texts(parts: &[Part<'static>]) -> Vec<Part<'static>> {
    let mut whole: Vec<Part<'static>> = Vec::new();
    for part in parts {
        match (whole.last_mut(), part) {
            (Some(Part::Text { text, .. }), Part::Text { text: more, .. }) => {
                text.to_mut().push_str(more);
            }
            _ => whole.push(part.clone()),
        }
    }
    whole
}

fn is_read_as(finish: Option<Finish>) -> Option<reading::Finish> {
    finish.map(|finish| match finish {
        Finish::Stop | Finish::Refusal => reading::Finish::Stop,
        Finish::Length => reading::Finish::Length,
        Finish::ToolCalls => reading::Finish::ToolCalls,
        Finish::ContentFilter => reading::Finish::ContentFilter,
        Finish::Error => reading::Finish::Error,
    })
}

/// Of texts, reasoning, names and arguments of calls; and of reasoning alone.
fn bytes_of(parts: &[Part<'_>]) -> (u64, u64) {
    use crate::conversation::Thinking;
    let (mut all, mut reasoning) = (0, 0);
    for part in parts {
        match part {
            Part::Text { text, .. } | Part::Refusal(text) => all += text.len(),
            Part::Thinking(Thinking::Shown { text, .. }) => reasoning += text.len(),
            Part::ToolCall(call) => all += call.name.len() + call.arguments.len(),
            _ => {}
        }
    }
    ((all + reasoning) as u64, reasoning as u64)
}

fn assert_metered(reading: &Reading, answer: &Answer<'_>) {
    // This API has no place for audio, nor for how long a write to the cache lasts.
    let usage = answer.usage.map(|usage| crate::usage::Usage {
        cache_write_1h: 0,
        input_audio: 0,
        output_audio: 0,
        ..usage
    });
    assert_eq!(reading.usage, usage);
    assert_eq!(reading.finish, is_read_as(answer.finish));
    assert!(reading.is_done && reading.has_content);
    let bytes = (reading.visible_bytes, reading.reasoning_bytes);
    assert_eq!(bytes, bytes_of(&answer.parts));
    assert_eq!(reading.unreadable_events, 0);
    assert_eq!(reading.error, None);
}

/// Events as in Anthropic's API reference, "Extended thinking" with tools, streamed.
const ANTHROPIC: [&str; 14] = [
    r#"{"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"ZGF0"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"x\":"}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":7}}"#,
    r#"{"type":"message_stop"}"#,
    r#"{"type":"ping"}"#,
];

#[test]
fn anthropics_thinking_goes_through_a_client_and_comes_back_signed() {
    let mut translator = StreamTranslator::new(Api::Messages, Api::Responses, &terms()).unwrap();
    let mut stream = Vec::new();
    for data in ANTHROPIC {
        translator.event(b"", data.as_bytes(), b"", &mut stream);
    }
    translator.finish(&mut stream);
    let response = last_response(&stream);
    assert_eq!(response["status"], "completed");
    assert_eq!(response["usage"]["total_tokens"], 16);

    let mut input = vec![json!({"role": "user", "content": "go"})];
    input.extend(response["output"].as_array().unwrap().iter().cloned());
    input.push(json!({"type": "function_call_output", "call_id": "toolu_1", "output": "ok"}));
    let body = json!({"model": "m", "input": input}).to_string();
    let wanted = Terms {
        upstream_model: "claude",
        max_output_tokens: None,
        default_max_output_tokens: 4096,
        quirks: &Quirks::default(),
    };
    let path = PathFacts::default();
    let next = translate::request(
        Api::Responses,
        Api::Messages,
        path,
        body.as_bytes(),
        &wanted,
    );
    let next = next.unwrap();
    assert_eq!(next.left_out, Vec::<String>::new());
    let next: Value = serde_json::from_slice(&next.body).unwrap();
    let turn = json!([
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}},
    ]);
    assert_eq!(next["messages"][1]["content"], turn);
    assert_eq!(next["messages"][2]["content"][0]["tool_use_id"], "toolu_1");
}

#[test]
fn an_error_of_a_translated_stream_has_the_next_number() {
    let mut translator = StreamTranslator::new(Api::Messages, Api::Responses, &terms()).unwrap();
    let mut stream = Vec::new();
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    for data in [ANTHROPIC[0], ANTHROPIC[1], ANTHROPIC[2], overloaded] {
        translator.event(b"", data.as_bytes(), b"", &mut stream);
    }
    translator.finish(&mut stream);
    let stream = String::from_utf8(stream).unwrap();
    let (before, last) = stream.split_once("event: error\ndata: ").unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["message"], "busy");
    assert_eq!(last["code"], "overloaded_error");
    assert_eq!(last["sequence_number"], before.matches("\n\n").count());
}

proptest! {
    #[test]
    fn a_turn_goes_through_a_client_and_comes_back(answer in arbitrary::answer(TURNS)) {
        let printed: Value = serde_json::from_slice(&print_answer(&answer, &terms())).unwrap();
        prop_assert_eq!(sent_back(&printed), answer.parts);
    }

    #[test]
    fn a_streamed_turn_goes_through_a_client_and_comes_back(answer in arbitrary::answer(TURNS)) {
        let expected = with_whole_texts(&answer.parts);
        let response = last_response(&print_stream(&answer.into_events()));
        prop_assert_eq!(sent_back(&response), expected);
    }

    #[test]
    fn a_stream_ends_with_what_the_whole_answer_is(answer in arbitrary::answer(TURNS)) {
        let parts = with_whole_texts(&answer.parts);
        let answer = Answer { parts, ..answer };
        let printed: Value = serde_json::from_slice(&print_answer(&answer, &terms())).unwrap();
        prop_assert_eq!(last_response(&print_stream(&answer.into_events())), printed);
    }

    #[test]
    fn a_printed_answer_is_metered_as_it_was_meant(answer in arbitrary::answer(TURNS)) {
        let mut meter = PlainMeter::new(Api::Responses);
        meter.observe(&print_answer(&answer, &terms()));
        meter.finish();
        assert_metered(meter.reading(), &answer);
    }

    #[test]
    fn a_printed_stream_is_metered_as_it_was_meant(
        answer in arbitrary::answer(TURNS),
        cut in 0..10_000_usize,
    ) {
        let stream = print_stream(&answer.clone().into_events());
        let (head, tail) = stream.split_at(cut % stream.len());
        let reading = meter(&[head, tail]);
        assert_metered(&reading, &answer);
        prop_assert_eq!(reading.next_sequence_number, reading.events);
        prop_assert_eq!(reading, meter(&[&stream]));
    }

    #[test]
    fn any_damage_is_survived(
        answer in arbitrary::answer(TURNS),
        at in 0..100_000_usize,
        byte in proptest::sample::select(br#"{}[]",:\u0a"#.to_vec()),
    ) {
        let damaged = |mut bytes: Vec<u8>| {
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes
        };
        let response = damaged(print_answer(&answer, &terms()));
        meter(&[&damaged(print_stream(&answer.into_events()))]);
        let mut body = br#"{"model":"m","input":["#.to_vec();
        body.extend_from_slice(&response);
        body.extend_from_slice(b"]}");
        drop(read_request(PathFacts::default(), &body));
        drop(parse(&body));
    }

    #[test]
    fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(parse(&bytes));
        drop(read_request(PathFacts::default(), &bytes));
        meter(&[&bytes]);
    }
}
