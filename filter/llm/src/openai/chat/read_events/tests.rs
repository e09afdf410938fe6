use super::*;
use crate::api::Api;
use crate::conversation::Finish;
use crate::meter::{StreamMeter, UsageMembers};
use crate::usage::Usage;

fn read(pieces: &[&[u8]]) -> Vec<Event<'static>> {
    let mut meter = StreamMeter::new(Api::ChatCompletions, UsageMembers::Keep, 1 << 20);
    let mut reader = ChatEvents::default();
    let mut events = Vec::new();
    let mut hand_on = |name: &[u8], data: &[u8]| {
        reader.read(name, data, &mut |event| events.push(event.into_owned()));
    };
    for piece in pieces {
        meter.read_each(piece, &mut hand_on);
    }
    meter.finish_each(&mut hand_on);
    reader.finish(&mut |event| events.push(event.into_owned()));
    events
}

/// Checks that it does not matter where the stream is cut.
fn events(stream: &str) -> Vec<Event<'static>> {
    let stream = stream.as_bytes();
    let whole = read(&[stream]);
    for cut in 0..stream.len() {
        let (head, tail) = stream.split_at(cut);
        assert_eq!(read(&[head, tail]), whole, "cut at {cut}");
    }
    whole
}

fn stream_of(chunks: &[&str]) -> String {
    chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect()
}

fn start(id: &'static str, model: &'static str) -> Event<'static> {
    let (id, model) = (id.into(), model.into());
    Event::Start { id, model }
}

fn call(call: u32, id: &'static str, name: &'static str) -> Event<'static> {
    Event::CallStart {
        call,
        id: id.into(),
        name: name.into(),
        signature: None,
    }
}

fn piece(call: u32, json: &'static str) -> Event<'static> {
    let json = json.into();
    Event::CallArguments { call, json }
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
        output,
        ..Usage::default()
    })
}

/// OpenAI's API reference, `chat/streaming`, with `include_usage`.
#[test]
fn a_stream_of_openai_is_read() {
    let events = events(&stream_of(&[
        r#"{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}"#,
        r#"{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","choices":[{"index":0,"delta":{"content":"Hell\u00f6"},"logprobs":null,"finish_reason":null}],"usage":null}"#,
        r#"{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}"#,
        r#"{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}"#,
        "[DONE]",
    ]));
    let expected = [
        start("chatcmpl-123", "gpt-4o-mini"),
        Event::Text("Hellö".into()),
        finish(Finish::Stop),
        usage(9, 2),
        Event::End,
    ];
    assert_eq!(events, expected);
}

/// OpenAI's guide to function calling: id and name are in a call's first fragment alone.
#[test]
fn parallel_calls_are_told_apart_by_index() {
    let events = events(&stream_of(&[
        r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"f","arguments":""}}]}}]}"#,
        r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}}]}"#,
        r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"g","arguments":""}},{"index":0,"function":{"arguments":":1}"}}]}}]}"#,
        r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}}]}"#,
        r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]));
    let expected = [
        start("c", "m"),
        call(0, "call_a", "f"),
        piece(0, "{\"a\""),
        call(1, "call_b", "g"),
        piece(0, ":1}"),
        piece(1, "{}"),
        finish(Finish::ToolCalls),
        Event::End,
    ];
    assert_eq!(events, expected);
}

/// ollama/ollama issues 15457 (all at index 0) and 7881 (no index); whole calls, ended by `stop`.
#[test]
fn calls_with_wrong_indices_are_told_apart_by_their_ids() {
    for index in [r#""index":0,"#, ""] {
        let events = events(&stream_of(&[
            &format!(
                r#"{{"id":"c","model":"m","choices":[{{"index":0,"delta":{{"content":"","tool_calls":[{{{index}"id":"call_a","function":{{"name":"f","arguments":"{{}}"}}}}]}}}}]}}"#
            ),
            &format!(
                r#"{{"id":"c","model":"m","choices":[{{"index":0,"delta":{{"tool_calls":[{{{index}"id":"call_b","function":{{"name":"f","arguments":"{{\"n\":"}}}}]}}}}]}}"#
            ),
            &format!(
                r#"{{"id":"c","model":"m","choices":[{{"index":0,"delta":{{"tool_calls":[{{{index}"id":"call_b","function":{{"arguments":"1}}"}}}}]}},"finish_reason":"stop"}}]}}"#
            ),
        ]));
        let expected = [
            start("c", "m"),
            call(0, "call_a", "f"),
            piece(0, "{}"),
            call(1, "call_b", "f"),
            piece(1, "{\"n\":"),
            piece(1, "1}"),
            finish(Finish::ToolCalls),
            Event::End,
        ];
        assert_eq!(events, expected, "{index:?}");
    }
}

#[test]
fn a_call_without_an_id_gets_one_of_its_answer() {
    let chunk = r#"{"id":"gen-1","model":"m","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":{"a":1}}}]}}]}"#;
    let events = events(&stream_of(&[chunk]));
    let expected = [
        start("gen-1", "m"),
        call(0, "call_gen1_0", "f"),
        piece(0, r#"{"a":1}"#),
        Event::End,
    ];
    assert_eq!(events, expected);
}

/// Azure's reference for content filters, `Streaming`: the first chunk has results of the prompt's
/// filter alone.
#[test]
fn azures_first_chunk_starts_nothing() {
    let events = events(&stream_of(&[
        r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}"#,
        r#"{"choices":[{"content_filter_results":{},"delta":{"content":"","role":"assistant"},"finish_reason":null,"index":0,"logprobs":null}],"created":1,"id":"chatcmpl-1","model":"gpt-4o-2024-11-20","object":"chat.completion.chunk"}"#,
        r#"{"choices":[{"content_filter_results":{},"delta":{},"finish_reason":"content_filter","index":0}],"created":1,"id":"chatcmpl-1","model":"gpt-4o-2024-11-20","object":"chat.completion.chunk"}"#,
        "[DONE]",
    ]));
    let expected = [
        start("chatcmpl-1", "gpt-4o-2024-11-20"),
        finish(Finish::ContentFilter),
        Event::End,
    ];
    assert_eq!(events, expected);
}

/// OpenRouter's reference, `streaming`: comments keep the connection alive, an error comes inside a
/// choice-bearing chunk.
#[test]
fn comments_pass_and_nothing_follows_an_error() {
    let stream = format!(
        ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\r\n\r\n{}",
        stream_of(&[
            r#"{"id":"gen-1","provider":"X","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"par"},"finish_reason":null}]}"#,
            r#"{"id":"gen-1","model":"m","error":{"code":"server_error","message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
            r#"{"id":"gen-1","model":"m","choices":[{"index":0,"delta":{"content":"tial"}}]}"#,
            "[DONE]",
        ])
    );
    let events = events(&stream);
    let [first, text, Event::Error(error)] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!(
        (first, text),
        (&start("gen-1", "m"), &Event::Text("par".into()))
    );
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("server_error", "Provider disconnected")
    );
}

#[test]
fn an_error_by_its_events_name_is_one_too() {
    for (data, message) in [
        (r#"{"message":"overloaded","type":"x"}"#, "overloaded"),
        ("overloaded", "overloaded"),
        (r#"{"error":"overloaded"}"#, "overloaded"),
    ] {
        let events = events(&format!("event: error\ndata: {data}\n\n"));
        let [Event::Error(error)] = events.as_slice() else {
            panic!("{events:?}")
        };
        assert_eq!(error.message, message);
    }
}

/// vLLM since 0.11 and some gateways tell reasoning under both names.
#[test]
fn reasoning_is_read_once_whatever_its_name() {
    for members in [
        r#""reasoning_content":"hmm""#,
        r#""reasoning":"hmm""#,
        r#""reasoning_content":"hmm","reasoning":"hmm""#,
        r#""reasoning_content":null,"reasoning":"hmm""#,
        r#""reasoning_content":"hmm","thinking_blocks":[{"type":"thinking","thinking":"hmm"}]"#,
        r#""thinking_blocks":[{"type":"thinking","thinking":"hmm"}]"#,
        r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"hmm"}]}]"#,
    ] {
        let chunk = format!(r#"{{"id":"c","model":"m","choices":[{{"delta":{{{members}}}}}]}}"#);
        let events = events(&stream_of(&[&chunk]));
        let expected = [start("c", "m"), Event::Thinking("hmm".into()), Event::End];
        assert_eq!(events, expected, "{members}");
    }
}

/// Groq's reference, `x_groq`; Mistral's, with usage in the last chunk; `choices: null` at others.
#[test]
fn usage_is_read_wherever_it_is_told() {
    let told = r#"{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}"#;
    for chunk in [
        format!(r#"{{"id":"c","model":"m","choices":null,"usage":{told}}}"#),
        format!(r#"{{"id":"c","model":"m","choices":[],"usage":{told}}}"#),
        format!(
            r#"{{"id":"c","model":"m","choices":[{{"index":0,"delta":{{}}}}],"x_groq":{{"id":"r","usage":{told}}}}}"#
        ),
        format!(
            r#"{{"id":"c","model":"m","choices":[{{"index":0,"delta":{{"content":""}},"usage":{told}}}]}}"#
        ),
    ] {
        let expected = [start("c", "m"), usage(5, 3), Event::End];
        assert_eq!(events(&stream_of(&[&chunk])), expected, "{chunk}");
    }
}

#[test]
fn a_refusal_ends_as_one() {
    let events = events(&stream_of(&[
        r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"refusal":"I can't"}}]}"#,
        r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    ]));
    let expected = [
        start("c", "m"),
        Event::Refusal("I can't".into()),
        finish(Finish::Refusal),
        Event::End,
    ];
    assert_eq!(events, expected);
}

#[test]
fn what_is_no_chunk_is_passed_over() {
    let events = events(&stream_of(&[
        "{",
        "hello",
        "[]",
        r#"{"choices":7}"#,
        r#"{"id":"c","model":"m","choices":[{"index":1,"delta":{"content":"other"}}]}"#,
        r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"x"}}]}"#,
    ]));
    let expected = [start("c", "m"), Event::Text("x".into()), Event::End];
    assert_eq!(events, expected);
}
