use super::super::GeminiEvents;
use super::*;
use crate::translate::ReadEvents;

fn terms() -> AnswerTerms<'static> {
    AnswerTerms {
        request_id: "id-1",
        model: "public",
        created_at_s: 0,
        shows_usage: true,
    }
}

fn printed(events: &[Event<'static>]) -> String {
    let mut printer = GeminiPrinter::new(&terms());
    let mut out = Vec::new();
    for event in events {
        printer.print(event, &mut out);
    }
    String::from_utf8(out).unwrap()
}

fn read(stream: &str) -> Vec<Event<'static>> {
    let mut reader = GeminiEvents::default();
    let mut events = Vec::new();
    for event in stream.split("\r\n\r\n") {
        let data = event.strip_prefix("data: ").unwrap_or_default();
        reader.read(b"", data.as_bytes(), &mut |event| {
            events.push(event.into_owned())
        });
    }
    reader.finish(&mut |event| events.push(event.into_owned()));
    events
}

#[test]
fn a_printed_stream_reads_as_the_events_it_was() {
    let events = [
        Event::Start {
            id: "r-1".into(),
            model: "public".into(),
        },
        Event::Thinking("hm".into()),
        Event::Signature("czE=".into()),
        Event::Text("Hello".into()),
        Event::CallStart {
            call: 0,
            id: "c-1".into(),
            name: "f".into(),
            signature: Some("czI=".into()),
        },
        Event::CallArguments {
            call: 0,
            json: "{\"a\":1}".into(),
        },
        Event::CallEnd { call: 0 },
        Event::Finish {
            finish: Finish::ToolCalls,
            stop_sequence: None,
        },
        Event::Usage(Usage {
            input: 5,
            output: 4,
            ..Usage::default()
        }),
        Event::End,
    ];
    assert_eq!(read(&printed(&events)), events);
}

#[test]
fn a_call_in_pieces_is_told_whole_and_the_usage_comes_last() {
    let piece = |json: &'static str| Event::CallArguments {
        call: 0,
        json: json.into(),
    };
    let stream = printed(&[
        Event::CallStart {
            call: 0,
            id: "c".into(),
            name: "f".into(),
            signature: None,
        },
        piece("{\"a\""),
        piece(":1}"),
        Event::Usage(Usage {
            input: 5,
            output: 4,
            ..Usage::default()
        }),
        Event::Finish {
            finish: Finish::ToolCalls,
            stop_sequence: None,
        },
        Event::End,
    ]);
    let events: Vec<&str> = stream.split_terminator("\r\n\r\n").collect();
    assert_eq!(events.len(), 2, "{stream}");
    assert!(events[0].contains(r#""args":{"a":1}"#), "{stream}");
    assert!(events[1].contains(r#""finishReason":"STOP""#), "{stream}");
    assert!(events[1].contains(r#""totalTokenCount":9"#), "{stream}");
}
