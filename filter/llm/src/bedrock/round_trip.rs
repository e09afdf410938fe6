//! What Bedrock serves is read as what it says: whole and streamed, wherever the stream is cut, for
//! a client of any API; and what is printed for it keeps to what it takes.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::api::Api;
use crate::conversation::arbitrary::{self, Says, told};
use crate::conversation::{Event, Finish};
use crate::meter::{PlainMeter, StreamMeter, UsageMembers};
use crate::reading::Reading;
use crate::translate::{self, AnswerTerms, Quirks, ReadEvents, StreamTranslator, Terms};
use crate::usage::Usage;

const ANSWERS: Says = Says {
    thinking: true,
    signatures: true,
    redacted: true,
    stop_sequence: true,
    usage_details: true,
    ..Says::LEAST
};

/// All that its API can say, and much that it can't.
const REQUESTS: Says = Says {
    image_links: false,
    file_names: false,
    ..Says::ALL
};

const CLIENTS: [Api; 4] = [
    Api::ChatCompletions,
    Api::Responses,
    Api::Messages,
    Api::GenerateContent,
];

/// Neither sounds nor reasoning are counted apart, and no refusal is told.
fn counted(usage: Usage) -> Usage {
    Usage {
        input_audio: 0,
        reasoning: 0,
        output_audio: 0,
        ..usage
    }
}

/// Bedrock tells no ids, no models and no refusals.
fn as_told(event: &mut Event<'_>) {
    match event {
        Event::Start { id, model } => (*id, *model) = Default::default(),
        Event::Finish { finish, .. } if *finish == Finish::Refusal => *finish = Finish::Stop,
        Event::Usage(usage) => *usage = counted(*usage),
        _ => {}
    }
}

fn answer_terms() -> AnswerTerms<'static> {
    AnswerTerms {
        request_id: "req-1",
        model: "alias",
        created_at_s: 1_750_000_000,
        shows_usage: true,
    }
}

fn read_stream(pieces: &[&[u8]]) -> (Vec<Event<'static>>, Reading) {
    let mut meter = StreamMeter::new(Api::Converse, UsageMembers::Keep, 1 << 20);
    let mut reader = ConverseEvents::default();
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
    (events, meter.reading().clone())
}

/// What a client gets for a stream, and what is metered of that.
fn translated(client: Api, stream: &[u8], chunk_bytes: usize) -> (Vec<u8>, Reading) {
    let mut meter = StreamMeter::new(Api::Converse, UsageMembers::Keep, 1 << 20);
    let mut translator = StreamTranslator::new(Api::Converse, client, &answer_terms()).unwrap();
    let mut out = Vec::new();
    for chunk in stream.chunks(chunk_bytes) {
        meter.read_each(chunk, &mut |name, data| {
            translator.event(name, data, b"", &mut out);
        });
    }
    translator.finish(&mut out);
    let mut given = StreamMeter::new(client, UsageMembers::Keep, 1 << 20);
    given.observe(&out);
    (out, given.reading().clone())
}

/// Faults of a printed request that Bedrock would refuse.
fn faults(body: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let turns = body["messages"].as_array().unwrap();
    let mut due = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        let role = ["user", "assistant"][at % 2];
        if turn["role"] != role {
            faults.push(format!("turn {at} is not the {role}'s"));
        }
        let blocks = turn["content"].as_array().unwrap();
        if blocks.is_empty() {
            faults.push(format!("turn {at} is empty"));
        }
        let ids = |kind: &str| -> Vec<String> {
            let told = blocks.iter().filter_map(|block| block.get(kind));
            told.map(|told| told["toolUseId"].as_str().unwrap().to_owned())
                .collect()
        };
        if ids("toolResult") != due {
            faults.push(format!("turn {at} does not have the results of {due:?}"));
        }
        due = ids("toolUse");
        for block in blocks {
            let text = block.get("text").and_then(Value::as_str);
            if text.is_some_and(|text| text.trim().is_empty()) {
                faults.push(format!("turn {at} has blank text"));
            }
        }
        if !due.is_empty() && body.get("toolConfig").is_none() {
            faults.push("calls without tools".to_owned());
        }
    }
    if body.to_string().matches("\"cachePoint\"").count() > 4 {
        faults.push("too many cache points".to_owned());
    }
    faults
}

proptest! {
    #[test]
    fn a_served_answer_is_read_as_itself(answer in arbitrary::answer(ANSWERS)) {
        let mut answer = answer;
        (answer.id, answer.model) = Default::default();
        answer.finish = answer.finish.map(|finish| match finish {
            Finish::Refusal => Finish::Stop,
            finish => finish,
        });
        answer.usage = answer.usage.map(counted);
        let document = served::answer(&answer);
        let mut meter = PlainMeter::new(Api::Converse);
        document.chunks(7).for_each(|chunk| meter.observe(chunk));
        meter.finish();
        prop_assert_eq!(meter.reading().usage, answer.usage);
        prop_assert!(meter.reading().is_done && meter.reading().has_content);
        prop_assert_eq!(read_answer(&document).unwrap(), answer);
        for client in CLIENTS {
            let terms = answer_terms();
            prop_assert!(translate::answer(Api::Converse, client, &document, &terms).is_some());
        }
    }

    #[test]
    fn a_served_stream_is_read_as_itself(events in arbitrary::events(ANSWERS)) {
        let stream = served::stream(&events);
        let (read, reading) = read_stream(&[&stream]);
        let mut expected = events;
        expected.iter_mut().for_each(as_told);
        let usage = expected.iter().find_map(|event| match event {
            Event::Usage(usage) => Some(*usage),
            _ => None,
        });
        prop_assert_eq!(told(&read), told(&expected));
        prop_assert_eq!(reading.usage, usage);
        prop_assert_eq!(reading.is_done, usage.is_some());
        prop_assert!(reading.error.is_none() && reading.unreadable_events == 0);
    }

    #[test]
    fn a_stream_is_read_alike_wherever_it_is_cut(
        events in arbitrary::events(ANSWERS),
        cut in 0..10_000_usize,
    ) {
        let stream = served::stream(&events);
        let (head, tail) = stream.split_at(cut % stream.len());
        prop_assert_eq!(read_stream(&[head, tail]), read_stream(&[&stream]));
    }

    #[test]
    fn every_client_sees_the_usage_of_a_stream_wherever_it_is_cut(
        events in arbitrary::events(ANSWERS),
        chunk_bytes in 1..50_usize,
    ) {
        let stream = served::stream(&events);
        let (_, metered) = read_stream(&[&stream]);
        for client in CLIENTS {
            let (out, given) = translated(client, &stream, chunk_bytes);
            prop_assert_eq!(&out, &translated(client, &stream, stream.len()).0);
            prop_assert!(given.is_done && given.error.is_none(), "{:?}", client);
            if let Some(usage) = metered.usage {
                let given = given.usage.unwrap();
                prop_assert_eq!((given.input, given.output), (usage.input, usage.output));
                prop_assert_eq!(given.cached_input, usage.cached_input);
            }
        }
    }

    #[test]
    fn a_printed_request_keeps_to_what_converse_takes(
        request in arbitrary::request(REQUESTS),
        is_claude in any::<bool>(),
    ) {
        let terms = Terms {
            upstream_model: if is_claude { "us.anthropic.claude-sonnet-4-5" } else { "amazon.nova" },
            max_output_tokens: None,
            default_max_output_tokens: 4096,
            quirks: &Quirks::default(),
        };
        let printed = print_request(&request, &terms).unwrap();
        let body: Value = serde_json::from_slice(&printed.body).unwrap();
        prop_assert_eq!(faults(&body), Vec::<String>::new(), "{}", body);
    }

    #[test]
    fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(read_answer(&bytes));
        drop(error::parse(&bytes));
        let mut reader = ConverseEvents::default();
        for name in [&b"contentBlockDelta"[..], b"metadata", b"error"] {
            reader.read(name, &bytes, &mut |_| {});
        }
        reader.finish(&mut |_| {});
        drop(read_stream(&[&bytes]));
    }
}
