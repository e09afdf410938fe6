use super::*;
use crate::api::Api;
use crate::meter::{StreamMeter, UsageMembers};
use crate::translate::ReadEvents;

/// As the Gemini API reference has it, with the calls' ids that AI Studio tells and Vertex does not.
const STREAM: &str = concat!(
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hm\",\"thought\":true,",
    "\"thoughtSignature\":\"czE=\"}],\"role\":\"model\"},\"index\":0}],\"responseId\":\"r-1\",",
    "\"modelVersion\":\"gemini-2.5-pro\"}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"I look.\"},{\"functionCall\":",
    "{\"name\":\"f\",\"args\":{\"a\": 1}},\"thoughtSignature\":\"czI=\"},{\"functionCall\":",
    "{\"id\":\"c-2\",\"name\":\"g\"}}]},\"finishReason\":\"STOP\",\"index\":0}],",
    "\"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":2,\"totalTokenCount\":7}}",
    "\r\n\r\n",
);

fn events(chunks: &[&[u8]]) -> Vec<Event<'static>> {
    let mut meter = StreamMeter::new(Api::GenerateContent, UsageMembers::Keep, 1 << 16);
    let mut reader = GeminiEvents::default();
    let mut events = Vec::new();
    let mut take = |name: &[u8], data: &[u8]| {
        reader.read(name, data, &mut |event| events.push(event.into_owned()));
    };
    for chunk in chunks {
        meter.read_each(chunk, &mut take);
    }
    meter.finish_each(&mut take);
    reader.finish(&mut |event| events.push(event.into_owned()));
    events
}

#[test]
fn a_stream_gives_the_same_events_wherever_it_is_cut() {
    let whole = events(&[STREAM.as_bytes()]);
    let start = |call, id: &'static str, name: &'static str, signature: Option<&'static str>| {
        Event::CallStart {
            call,
            id: id.into(),
            name: name.into(),
            signature: signature.map(Cow::Borrowed),
        }
    };
    let json = |call, json: &'static str| Event::CallArguments {
        call,
        json: json.into(),
    };
    let expected = [
        Event::Start {
            id: "r-1".into(),
            model: "gemini-2.5-pro".into(),
        },
        Event::Thinking("hm".into()),
        Event::Signature("czE=".into()),
        Event::Text("I look.".into()),
        start(0, "call_r1_0", "f", Some("czI=")),
        json(0, "{\"a\": 1}"),
        Event::CallEnd { call: 0 },
        start(1, "c-2", "g", None),
        json(1, "{}"),
        Event::CallEnd { call: 1 },
        Event::Finish {
            finish: Finish::ToolCalls,
            stop_sequence: None,
        },
        Event::Usage(crate::usage::Usage {
            input: 5,
            output: 2,
            ..Default::default()
        }),
        Event::End,
    ];
    assert_eq!(whole, expected);
    for cut in 0..STREAM.len() {
        let (head, tail) = STREAM.as_bytes().split_at(cut);
        assert_eq!(events(&[head, tail]), whole, "cut at {cut}");
    }
}

#[test]
fn a_whole_answer_has_what_its_stream_tells() {
    let document = STREAM
        .split("\r\n\r\n")
        .nth(1)
        .and_then(|event| event.strip_prefix("data: "))
        .unwrap();
    let answer = read_answer(document.as_bytes()).unwrap();
    assert_eq!(answer.text(), "I look.");
    assert_eq!(answer.calls().count(), 2);
    assert_eq!(answer.finish, Some(Finish::ToolCalls));
    assert_eq!(answer.usage.map(|usage| usage.total()), Some(7));
    assert!(read_answer(b"{}").is_none() && read_answer(b"[]").is_none());
    let blocked = read_answer(br#"{"promptFeedback":{"blockReason":"SAFETY"}}"#).unwrap();
    assert_eq!(blocked.finish, Some(Finish::ContentFilter));
}
