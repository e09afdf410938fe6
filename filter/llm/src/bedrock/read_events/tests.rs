use super::*;
use crate::conversation::Finish;

fn read(told: &[(&str, &str)]) -> Vec<Event<'static>> {
    let mut reader = ConverseEvents::default();
    let mut events = Vec::new();
    for (name, json) in told {
        reader.read(name.as_bytes(), json.as_bytes(), &mut |event| {
            events.push(event.into_owned());
        });
    }
    reader.finish(&mut |event| events.push(event.into_owned()));
    events
}

fn start() -> Event<'static> {
    Event::Start {
        id: "".into(),
        model: "".into(),
    }
}

#[test]
fn a_call_without_input_is_told_as_one_of_nothing() {
    let events = read(&[
        ("messageStart", r#"{"role":"assistant"}"#),
        (
            "contentBlockStart",
            r#"{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"t","name":"f"}}}"#,
        ),
        (
            "contentBlockDelta",
            r#"{"contentBlockIndex":1,"delta":{"toolUse":{"input":""}}}"#,
        ),
        ("contentBlockStop", r#"{"contentBlockIndex":1}"#),
        ("messageStop", r#"{"stopReason":"tool_use"}"#),
    ]);
    let expected = [
        start(),
        Event::CallStart {
            call: 0,
            id: "t".into(),
            name: "f".into(),
            signature: None,
        },
        Event::CallArguments {
            call: 0,
            json: "{}".into(),
        },
        Event::CallEnd { call: 0 },
        Event::Finish {
            finish: Finish::ToolCalls,
            stop_sequence: None,
        },
        Event::End,
    ];
    assert_eq!(events, expected);
}

#[test]
fn what_is_unknown_is_passed_over_and_a_late_start_is_made_up() {
    let events = read(&[
        (
            "contentBlockStart",
            r#"{"contentBlockIndex":0,"start":{"image":{"format":"png"}}}"#,
        ),
        (
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"citation":{"title":"t"}}}"#,
        ),
        ("contentBlockDelta", "not json"),
        ("somethingNew", r#"{"a":1}"#),
        (
            "contentBlockDelta",
            r#"{"contentBlockIndex":1,"delta":{"text":"a\n"}}"#,
        ),
    ]);
    assert_eq!(events, [start(), Event::Text("a\n".into()), Event::End]);
}

#[test]
fn after_an_error_nothing_follows() {
    let events = read(&[
        ("messageStart", r#"{"role":"assistant"}"#),
        (
            "error",
            r#"{"__type":"modelStreamErrorException","message":"m"}"#,
        ),
        ("messageStop", r#"{"stopReason":"end_turn"}"#),
    ]);
    let [_, Event::Error(error)] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(error.kind, "ModelStreamErrorException");
}
