//! What is printed is read back as the same: requests, answers, streams, and turns that go through
//! a client.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::api::Api;
use crate::conversation::arbitrary::{self, Says, meaning, told};
use crate::conversation::{Answer, Event, Part};
use crate::meter::{StreamMeter, UsageMembers};
use crate::request::PathFacts;
use crate::translate::{AnswerTerms, PrintEvents, Quirks, ReadEvents, Terms};

const REQUESTS: Says = Says {
    stream: true,
    image_links: true,
    image_detail: true,
    audio: true,
    files: true,
    file_names: true,
    refusals: true,
    unbounded: true,
    high_temperature: true,
    penalties: true,
    seed: true,
    stop: true,
    parallel: true,
    strict: true,
    json: true,
    schema: true,
    schema_name: true,
    effort: true,
    user: true,
    ..Says::LEAST
};

const ANSWERS: Says = Says {
    thinking: true,
    signatures: true,
    redacted: true,
    refusals: true,
    id: true,
    stop_sequence: true,
    usage_details: true,
    ..Says::LEAST
};

/// Streams tell calls' signatures in ids, which only requests take apart.
const TURNS: Says = Says {
    call_signatures: true,
    ..ANSWERS
};

fn answer_terms() -> AnswerTerms<'static> {
    AnswerTerms {
        request_id: "req-1",
        model: "alias",
        created_at_s: 1_750_000_000,
        shows_usage: true,
    }
}

fn print_stream(events: &[Event<'_>]) -> Vec<u8> {
    let mut printer = ChatChunks::new(&answer_terms());
    let mut stream = Vec::new();
    for event in events {
        printer.print(event, &mut stream);
    }
    stream
}

fn read_stream(pieces: &[&[u8]]) -> Vec<Event<'static>> {
    let mut meter = StreamMeter::new(Api::ChatCompletions, UsageMembers::Keep, 1 << 20);
    let mut reader = ChatEvents::default();
    let mut events = Vec::new();
    for piece in pieces {
        meter.read_each(piece, &mut |name, data| {
            reader.read(name, data, &mut |event| events.push(event.into_owned()));
        });
    }
    meter.finish_each(&mut |name, data| {
        reader.read(name, data, &mut |event| events.push(event.into_owned()));
    });
    reader.finish(&mut |event| events.push(event.into_owned()));
    let reading = meter.reading();
    assert_eq!(
        (reading.unreadable_events, reading.oversized_events),
        (0, 0)
    );
    events
}

/// A message as OpenAI's SDKs put it together from the deltas of a stream: texts are appended, the
/// elements of lists are told apart by `index`. As `accumulate_delta` of openai-python 3.57 does.
fn accumulate(message: &mut Value, delta: &Value) {
    match (message, delta) {
        (Value::Object(message), Value::Object(delta)) => {
            for (name, value) in delta {
                match message.get_mut(name) {
                    Some(_) if name == "index" || name == "type" => {}
                    Some(before) if !before.is_null() => accumulate(before, value),
                    _ => {
                        message.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(message), Value::Array(delta)) => {
            for value in delta {
                let is_its = |before: &&mut Value| before["index"] == value["index"];
                match message.iter_mut().find(is_its) {
                    Some(before) => accumulate(before, value),
                    None => message.push(value.clone()),
                }
            }
        }
        (Value::String(message), Value::String(delta)) => message.push_str(delta),
        (_, Value::Null) => {}
        (message, delta) => *message = delta.clone(),
    }
}

/// What an assistant's turn is read as, when a client sends the message back.
fn sent_back(message: &Value) -> Vec<Part<'static>> {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "go"}, message]});
    let body: &'static str = Box::leak(body.to_string().into_boxed_str());
    let request = read_request(PathFacts::default(), body.as_bytes()).unwrap();
    assert!(request.left_out.is_empty(), "{:?}", request.left_out);
    let [_, turn] = <[_; 2]>::try_from(request.messages).unwrap();
    turn.parts
}

/// Chat has one text where others have several pieces of it.
fn as_one_text(answer: &Answer<'static>) -> Vec<Part<'static>> {
    let text = answer.text();
    let is_text = |part: &Part<'_>| matches!(part, Part::Text { .. });
    let mut parts = answer.parts.clone();
    let at = parts.iter().position(is_text);
    parts.retain(|part| !is_text(part));
    if let Some(at) = at {
        let text = text.into();
        parts.insert(at, Part::Text { text, cache: None });
    }
    parts
}

proptest! {
    #[test]
    fn a_printed_request_is_read_as_itself(request in arbitrary::request(REQUESTS)) {
        let terms = Terms {
            upstream_model: &request.model,
            max_output_tokens: None,
            default_max_output_tokens: 1,
            quirks: &Quirks::default(),
        };
        let printed = print_request(&request, &terms).unwrap();
        prop_assert_eq!(&printed.left_out, &Vec::<String>::new());
        let read = read_request(PathFacts::default(), &printed.body).unwrap();
        prop_assert_eq!(&read.left_out, &Vec::<String>::new());
        prop_assert_eq!(meaning(&read), meaning(&request));
        let facts = parse(&printed.body).unwrap();
        prop_assert_eq!(facts.stream, request.stream);
        prop_assert_eq!(facts.asks_usage, request.stream);
        prop_assert_eq!(facts.max_output_tokens, request.max_output_tokens);
    }

    #[test]
    fn a_printed_answer_is_read_as_itself(answer in arbitrary::answer(ANSWERS)) {
        let printed = print_answer(&answer, &answer_terms());
        let read = read_answer(&printed).unwrap();
        let expected = Answer { parts: as_one_text(&answer), ..answer };
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn a_printed_stream_is_read_as_itself(events in arbitrary::events(ANSWERS)) {
        let stream = print_stream(&events);
        let read = read_stream(&[&stream]);
        prop_assert_eq!(told(&read), told(&events));
    }

    #[test]
    fn a_stream_is_read_alike_wherever_it_is_cut(
        events in arbitrary::events(ANSWERS),
        cut in 0..10_000_usize,
    ) {
        let stream = print_stream(&events);
        let (head, tail) = stream.split_at(cut % stream.len());
        prop_assert_eq!(read_stream(&[head, tail]), read_stream(&[&stream]));
    }

    #[test]
    fn a_turn_goes_through_a_client_and_comes_back(answer in arbitrary::answer(TURNS)) {
        let printed: Value = serde_json::from_slice(&print_answer(&answer, &answer_terms())).unwrap();
        prop_assert_eq!(sent_back(&printed["choices"][0]["message"]), as_one_text(&answer));
    }

    #[test]
    fn a_streamed_turn_goes_through_a_client_and_comes_back(answer in arbitrary::answer(TURNS)) {
        let expected = as_one_text(&answer);
        let stream = String::from_utf8(print_stream(&answer.into_events())).unwrap();
        let mut message = json!({});
        for data in stream.split("\n\n").filter_map(|event| event.strip_prefix("data: {")) {
            let chunk: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
            accumulate(&mut message, &chunk["choices"][0]["delta"]);
        }
        prop_assert_eq!(sent_back(&message), expected);
    }

    #[test]
    fn any_damage_is_survived(
        request in arbitrary::request(REQUESTS),
        events in arbitrary::events(ANSWERS),
        at in 0..100_000_usize,
        byte in proptest::sample::select(br#"{}[]",:\u0a"#.to_vec()),
    ) {
        let terms = Terms {
            upstream_model: "m",
            max_output_tokens: None,
            default_max_output_tokens: 1,
            quirks: &Quirks::default(),
        };
        let damaged = |mut bytes: Vec<u8>| {
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes
        };
        let body = damaged(print_request(&request, &terms).unwrap().body);
        if let Ok(read) = read_request(PathFacts::default(), &body) {
            drop(print_request(&read, &terms));
        }
        let stream = damaged(print_stream(&events));
        let mut reader = ChatEvents::default();
        let mut ends = 0;
        let mut count = |event: Event<'_>| {
            ends += u32::from(matches!(event, Event::End | Event::Error(_)));
        };
        for data in stream.split(|byte| *byte == b'\n') {
            let data = data.strip_prefix(b"data: ").unwrap_or(data);
            reader.read(b"", data, &mut count);
        }
        reader.finish(&mut count);
        prop_assert_eq!(ends, 1);
    }

    #[test]
    fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(read_request(PathFacts::default(), &bytes));
        drop(read_answer(&bytes));
        let mut reader = ChatEvents::default();
        reader.read(b"", &bytes, &mut |_| {});
        reader.finish(&mut |_| {});
    }
}
