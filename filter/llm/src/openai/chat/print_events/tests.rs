use super::*;
use crate::conversation::Finish;

fn printed(shows_usage: bool, events: &[Event<'_>]) -> Vec<String> {
    let mut printer = ChatChunks::new(&AnswerTerms {
        request_id: "req-1",
        model: "alias",
        created_at_s: 7,
        shows_usage,
    });
    let mut out = Vec::new();
    for event in events {
        printer.print(event, &mut out);
    }
    let stream = String::from_utf8(out).unwrap();
    assert!(stream.is_empty() || stream.ends_with("\n\n"));
    let events = stream.split_terminator("\n\n");
    events
        .map(|event| event.strip_prefix("data: ").unwrap().to_owned())
        .collect()
}

/// What stands in a chunk's only choice, as the chunks of [`printed`] have it.
fn chunk(choice: &str) -> String {
    format!(
        r#"{{"id":"msg_1","object":"chat.completion.chunk","created":7,"model":"m-1","choices":[{{"index":0,{choice}}}]}}"#
    )
}

fn delta(members: &str) -> String {
    chunk(&format!(
        r#""delta":{{{members}}},"logprobs":null,"finish_reason":null"#
    ))
}

fn start() -> Event<'static> {
    Event::Start {
        id: "msg_1".into(),
        model: "m-1".into(),
    }
}

fn finish(finish: Finish) -> Event<'static> {
    Event::Finish {
        finish,
        stop_sequence: None,
    }
}

const ROLE: &str = r#""role":"assistant","content":"""#;

#[test]
fn the_role_comes_first_and_the_end_marker_last() {
    let usage = Usage {
        input: 9,
        cached_input: 4,
        output: 2,
        ..Usage::default()
    };
    let events = [
        start(),
        Event::Usage(Usage::default()),
        Event::Text("h\"i\n".into()),
        finish(Finish::Length),
        Event::Usage(usage),
        Event::End,
    ];
    let silent = printed(false, &events);
    let expected = [
        delta(ROLE),
        delta(r#""content":"h\"i\n""#),
        chunk(r#""delta":{},"logprobs":null,"finish_reason":"length""#),
        "[DONE]".to_owned(),
    ];
    assert_eq!(silent, expected);

    let shown = printed(true, &events);
    let [.., last, done] = shown.as_slice() else {
        panic!("{shown:?}")
    };
    assert_eq!(
        last,
        r#"{"id":"msg_1","object":"chat.completion.chunk","created":7,"model":"m-1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}}}"#
    );
    assert_eq!(done, "[DONE]");
    assert!(
        shown[..3]
            .iter()
            .all(|chunk| chunk.ends_with(r#""usage":null}"#))
    );
}

#[test]
fn calls_are_counted_and_those_without_arguments_get_an_empty_object() {
    let call = |call, id: &'static str, signature: Option<&'static str>| Event::CallStart {
        call,
        id: id.into(),
        name: "f".into(),
        signature: signature.map(Into::into),
    };
    let chunks = printed(
        false,
        &[
            start(),
            call(0, "a", None),
            Event::CallEnd { call: 0 },
            call(1, "b", Some("c2ln")),
            Event::CallArguments {
                call: 1,
                json: r#"{"x":1}"#.into(),
            },
            Event::CallEnd { call: 1 },
            call(2, "c", None),
            finish(Finish::ToolCalls),
        ],
    );
    let begun = |index: u32, id: &str| {
        delta(&format!(
            r#""tool_calls":[{{"index":{index},"id":"{id}","type":"function","function":{{"name":"f","arguments":""}}}}]"#
        ))
    };
    let piece = |index: u32, json: &str| {
        delta(&format!(
            r#""tool_calls":[{{"index":{index},"function":{{"arguments":"{json}"}}}}]"#
        ))
    };
    let expected = [
        delta(ROLE),
        begun(0, "a"),
        piece(0, "{}"),
        begun(1, "b__thought__c2ln"),
        piece(1, r#"{\"x\":1}"#),
        begun(2, "c"),
        piece(2, "{}"),
        chunk(r#""delta":{},"logprobs":null,"finish_reason":"tool_calls""#),
    ];
    assert_eq!(chunks, expected);
}

#[test]
fn thinking_is_shown_and_its_blocks_are_counted() {
    let chunks = printed(
        false,
        &[
            start(),
            Event::Thinking("a".into()),
            Event::Thinking("b".into()),
            Event::Signature("c2ln".into()),
            Event::Redacted("aGlk".into()),
            Event::Thinking("c".into()),
            Event::Text("x".into()),
            Event::Signature("ZW5k".into()),
        ],
    );
    let thought = |index: u32, text: &str| {
        delta(&format!(
            r#""reasoning_content":"{text}","thinking_blocks":[{{"index":{index},"type":"thinking","thinking":"{text}"}}]"#
        ))
    };
    let expected = [
        delta(ROLE),
        thought(0, "a"),
        thought(0, "b"),
        delta(r#""thinking_blocks":[{"index":0,"type":"thinking","signature":"c2ln"}]"#),
        delta(r#""thinking_blocks":[{"index":1,"type":"redacted_thinking","data":"aGlk"}]"#),
        thought(2, "c"),
        delta(r#""content":"x""#),
        delta(
            r#""thinking_blocks":[{"index":3,"type":"thinking","thinking":"","signature":"ZW5k"}]"#,
        ),
    ];
    assert_eq!(chunks, expected);
}

#[test]
fn a_refusal_is_told_in_words_or_as_a_filters() {
    let last = |events: &[Event<'_>]| printed(false, events).pop().unwrap();
    let silent = last(&[start(), finish(Finish::Refusal)]);
    assert!(silent.contains(r#""finish_reason":"content_filter""#));
    let refusal = Event::Refusal("no".into());
    let told = last(&[start(), refusal, finish(Finish::Refusal)]);
    assert!(told.contains(r#""finish_reason":"stop""#));
}

#[test]
fn what_the_provider_has_no_name_for_is_named_by_the_request() {
    let nameless = Event::Start {
        id: "".into(),
        model: "".into(),
    };
    let chunks = printed(false, &[nameless, Event::Text("x".into())]);
    assert!(chunks.iter().all(|chunk| chunk.starts_with(
        r#"{"id":"req-1","object":"chat.completion.chunk","created":7,"model":"alias","#
    )));
    // The same for a stream that begins with its content.
    assert_eq!(printed(false, &[Event::Text("x".into())]), chunks);
}

#[test]
fn errors_and_empty_pieces_print_nothing() {
    let error = crate::provider_error::ProviderError::of_text(b"overloaded");
    let empty = [
        Event::Text("".into()),
        Event::Thinking("".into()),
        Event::Refusal("".into()),
        Event::Error(error),
    ];
    assert!(printed(true, &empty).is_empty());
}
