use super::*;

fn ask(include_usage: bool) -> Ask {
    let body = json!({
        "model": "m", "stream": true, "messages": [{"role": "user", "content": "hello"}],
        "stream_options": {"include_usage": include_usage},
    });
    Ask::read(&body).expect("a chat request")
}

/// The events' data as JSON, `[DONE]` as a string, and the usage each claims to tell.
fn run(include_usage: bool, script: &Value) -> Vec<(Value, Option<Tokens>)> {
    let script: Script = serde_json::from_value(script.clone()).expect("a script");
    let ask = ask(include_usage);
    let answer = Answer::new(&ask, &script, 1, 1_700_000_000, Tokens::draw(1, 1));
    let events = events(&ask, &answer, &script);
    let data = events.iter().map(|event| {
        let text = String::from_utf8(event.bytes.clone()).expect("UTF-8");
        let data = text.trim().trim_start_matches("data: ");
        (
            serde_json::from_str(data).unwrap_or_else(|_| json!(data)),
            event.usage,
        )
    });
    data.collect()
}

fn told(chunk: &Value) -> Option<u64> {
    let usage = chunk.pointer("/x_groq/usage").or(chunk.get("usage"));
    usage?.get("completion_tokens")?.as_u64()
}

#[test]
fn usage_comes_last_and_alone_only_when_it_was_asked_for() {
    let asked = run(true, &json!({}));
    let (last, usage) = &asked[asked.len() - 2];
    assert_eq!(last["choices"], json!([]));
    assert_eq!(*usage, Some(Tokens::draw(1, 1)));
    assert!(
        asked[..asked.len() - 2]
            .iter()
            .all(|(chunk, _)| chunk["usage"].is_null())
    );
    assert_eq!(asked[asked.len() - 1].0, "[DONE]");

    let unasked = run(false, &json!({}));
    assert!(
        unasked
            .iter()
            .all(|(chunk, usage)| chunk.get("usage").is_none() && usage.is_none())
    );
}

#[test]
fn every_placement_tells_the_whole_where_it_says_and_nowhere_else() {
    let whole = Tokens::draw(1, 1).completion;
    for (placement, from_end) in [("final-chunk", 2), ("in-finish-chunk", 2), ("x_groq", 2)] {
        let events = run(false, &json!({"usage": placement}));
        let at: Vec<usize> = (0..events.len())
            .filter(|i| told(&events[*i].0).is_some())
            .collect();
        assert_eq!(at, [events.len() - from_end], "{placement}");
        assert_eq!(told(&events[at[0]].0), Some(whole), "{placement}");
    }
    for placement in ["none", "null"] {
        let events = run(true, &json!({"usage": placement}));
        assert!(
            events
                .iter()
                .all(|(chunk, usage)| told(chunk).is_none() && usage.is_none())
        );
    }
}

#[test]
fn growing_usage_never_falls_and_ends_at_the_whole() {
    let events = run(false, &json!({"usage": "every-chunk", "chunks": 4}));
    let told: Vec<u64> = events.iter().filter_map(|(chunk, _)| told(chunk)).collect();
    assert_eq!(told.len(), events.len() - 1);
    assert!(told.is_sorted());
    assert_eq!(told.last(), Some(&Tokens::draw(1, 1).completion));
}

#[test]
fn tool_arguments_come_in_fragments_after_id_and_name() {
    let arguments = json!({"city": "Zürich", "days": 3});
    let script =
        json!({"tool_calls": [{"name": "weather", "arguments": arguments, "fragments": 4}]});
    let events = run(false, &script);
    let parts: Vec<&Value> = events
        .iter()
        .filter_map(|(chunk, _)| chunk.pointer("/choices/0/delta/tool_calls/0"))
        .collect();
    assert_eq!(parts[0]["function"]["name"], "weather");
    assert_eq!(parts[0]["id"], "call_1_0");
    assert_eq!(parts.len(), 5);
    let text: String = parts
        .iter()
        .filter_map(|p| p["function"]["arguments"].as_str())
        .collect();
    assert_eq!(
        serde_json::from_str::<Value>(&text).expect("JSON"),
        arguments
    );
    let finish = events
        .iter()
        .rev()
        .find_map(|(c, _)| c.pointer("/choices/0/finish_reason")?.as_str());
    assert_eq!(finish, Some("tool_calls"));
}

#[test]
fn reasoning_comes_before_text_and_the_text_is_whole() {
    let events = run(
        false,
        &json!({"text": "grüner Tee", "reasoning_content": "hm, tea", "chunks": 3}),
    );
    let join = |field: &str| -> String {
        let pieces = events
            .iter()
            .filter_map(|(c, _)| c.pointer("/choices/0/delta")?.get(field)?.as_str());
        pieces.collect()
    };
    assert_eq!(join("content"), "grüner Tee");
    assert_eq!(join("reasoning_content"), "hm, tea");
}

#[test]
fn an_error_event_takes_the_place_of_the_rest() {
    let events = run(true, &json!({"error_event": {"after_chunks": 2}}));
    assert_eq!(events.len(), 3);
    assert_eq!(events[2].0["error"]["type"], "server_error");
    assert!(events.iter().all(|(_, usage)| usage.is_none()));
}

#[test]
fn line_ends_and_comments_are_as_asked() {
    let script: Script =
        serde_json::from_value(json!({"crlf": true, "comments": true})).expect("a script");
    let ask = ask(false);
    let answer = Answer::new(&ask, &script, 1, 0, Tokens::draw(1, 1));
    for event in events(&ask, &answer, &script) {
        let text = String::from_utf8(event.bytes).expect("UTF-8");
        assert!(text.starts_with(": keep-alive\r\n\r\ndata: "), "{text}");
        assert!(text.ends_with("\r\n\r\n"), "{text}");
    }
}
