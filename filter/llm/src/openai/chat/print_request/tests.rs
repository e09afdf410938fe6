use serde_json::{Value, json};

use super::*;
use crate::conversation::{
    Media, MediaSource, Message, Part, Role, System, Thinking, ToolCall, ToolResult,
};

fn user(parts: Vec<Part<'static>>) -> Message<'static> {
    let role = Role::User;
    Message { role, parts }
}

fn assistant(parts: Vec<Part<'static>>) -> Message<'static> {
    let role = Role::Assistant;
    Message { role, parts }
}

fn text(text: &'static str) -> Part<'static> {
    Part::Text {
        text: text.into(),
        cache: None,
    }
}

fn thought(text: &'static str) -> Part<'static> {
    Part::Thinking(Thinking::Shown {
        text: text.into(),
        signature: Some("c2ln".into()),
    })
}

fn call(id: &'static str) -> Part<'static> {
    Part::ToolCall(ToolCall {
        id: id.into(),
        name: "f".into(),
        arguments: "{}".into(),
        signature: Some("c2ln".into()),
        cache: None,
    })
}

fn result(id: &'static str, parts: Vec<Part<'static>>, is_error: bool) -> Part<'static> {
    Part::ToolResult(ToolResult {
        id: id.into(),
        name: "f".into(),
        parts,
        is_error,
        cache: None,
    })
}

fn image(source: MediaSource<'static>) -> Part<'static> {
    Part::Image(Media {
        source,
        name: None,
        detail: None,
        cache: None,
    })
}

fn png() -> Part<'static> {
    image(MediaSource::Base64 {
        media_type: "image/png".into(),
        data: "iVBORw0KGgo=".into(),
    })
}

fn with(messages: Vec<Message<'static>>) -> Request<'static> {
    Request {
        messages,
        ..Request::default()
    }
}

fn try_print(request: &Request<'_>, quirks: Quirks) -> Result<(Value, Vec<String>), RequestFault> {
    let terms = Terms {
        upstream_model: "upstream-1",
        max_output_tokens: None,
        default_max_output_tokens: 4096,
        quirks: &quirks,
    };
    let printed = print_request(request, &terms)?;
    Ok((
        serde_json::from_slice(&printed.body).unwrap(),
        printed.left_out,
    ))
}

fn print(request: &Request<'_>, quirks: Quirks) -> (Value, Vec<String>) {
    try_print(request, quirks).unwrap()
}

fn messages(request: &Request<'_>, quirks: Quirks) -> Value {
    print(request, quirks).0["messages"].take()
}

#[test]
fn a_bare_request_says_nothing_that_was_not_said() {
    let request = with(vec![user(vec![text("hi")])]);
    let (body, left_out) = print(&request, Quirks::default());
    let expected = json!({"model": "upstream-1", "messages": [{"role": "user", "content": "hi"}]});
    assert_eq!(body, expected);
    assert!(left_out.is_empty());
}

#[test]
fn the_output_is_bounded_in_the_member_that_the_provider_takes() {
    let mut request = with(Vec::new());
    request.max_output_tokens = Some(900);
    for (limit, bound) in [(None, 900), (Some(300), 300)] {
        for max_tokens_member in [false, true] {
            let quirks = Quirks {
                max_tokens_member,
                ..Quirks::default()
            };
            let terms = Terms {
                upstream_model: "m",
                max_output_tokens: limit,
                default_max_output_tokens: 1,
                quirks: &quirks,
            };
            let printed = print_request(&request, &terms).unwrap();
            let body: Value = serde_json::from_slice(&printed.body).unwrap();
            let (said, not_said) = match max_tokens_member {
                true => ("max_tokens", "max_completion_tokens"),
                false => ("max_completion_tokens", "max_tokens"),
            };
            assert_eq!((&body[said], body.get(not_said)), (&json!(bound), None));
        }
    }
}

#[test]
fn a_stream_is_asked_for_its_usage_where_that_is_understood() {
    let mut request = with(Vec::new());
    request.stream = true;
    let (body, _) = print(&request, Quirks::default());
    assert_eq!(body["stream"], true);
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    let quirks = Quirks {
        no_stream_options: true,
        ..Quirks::default()
    };
    assert_eq!(print(&request, quirks).0.get("stream_options"), None);
}

#[test]
fn all_instructions_are_one_message() {
    let mut request = with(vec![user(vec![text("hi")])]);
    request.system = ["a", "b"]
        .map(|text| System {
            text: text.into(),
            cache: None,
        })
        .to_vec();
    let system = &messages(&request, Quirks::default())[0];
    assert_eq!(*system, json!({"role": "system", "content": "a\n\nb"}));
}

#[test]
fn results_follow_their_calls_and_come_before_what_else_is_said() {
    let request = with(vec![
        assistant(vec![thought("hmm"), text("let me see"), call("a")]),
        assistant(vec![call("b")]),
        user(vec![text("and hurry"), result("b", vec![text("2")], false)]),
        user(vec![result("a", vec![text("1"), text("1")], false)]),
    ]);
    let called = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let expected = json!([
        {"role": "assistant", "content": "let me see", "tool_calls": [called("a"), called("b")]},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "tool", "tool_call_id": "a", "content": [
            {"type": "text", "text": "1"}, {"type": "text", "text": "1"}]},
        {"role": "user", "content": "and hurry"},
    ]);
    assert_eq!(messages(&request, Quirks::default()), expected);
}

#[test]
fn a_result_without_its_call_is_a_fault() {
    let request = with(vec![user(vec![result("a", vec![text("1")], false)])]);
    let fault = try_print(&request, Quirks::default()).unwrap_err();
    assert_eq!(fault.param, Some("messages"));
    assert!(fault.message.contains("`a`"), "{}", fault.message);
}

#[test]
fn what_a_result_shows_goes_to_the_users_next_message() {
    let request = with(vec![
        assistant(vec![call("a")]),
        user(vec![result("a", vec![png()], false), text("well?")]),
    ]);
    let printed = messages(&request, Quirks::default());
    assert_eq!(printed[1]["role"], "tool");
    assert_eq!(printed[1]["content"], "See the user's next message.");
    let expected = json!({"role": "user", "content": [
        {"type": "text", "text": "What the call a of f shows:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "text", "text": "well?"},
    ]});
    assert_eq!(printed[2], expected);
}

#[test]
fn a_failed_call_says_so_once() {
    for (said, expected) in [
        (vec![text("no such city")], "Error: no such city"),
        (vec![text("error 404")], "error 404"),
        (vec![], "Error"),
    ] {
        let request = with(vec![
            assistant(vec![call("a")]),
            user(vec![result("a", said, true)]),
        ]);
        let printed = messages(&request, Quirks::default());
        assert_eq!(printed[1]["content"], expected);
    }
}

#[test]
fn reasoning_goes_back_with_its_calls_to_those_who_want_it() {
    let request = with(vec![
        assistant(vec![thought("plain"), text("42")]),
        user(vec![text("more")]),
        assistant(vec![thought("so "), thought("then"), call("a")]),
        user(vec![result("a", vec![text("1")], false)]),
    ]);
    let silent = messages(&request, Quirks::default());
    assert!(!silent.to_string().contains("reasoning_content"));
    let quirks = Quirks {
        wants_reasoning_back: true,
        ..Quirks::default()
    };
    let printed = messages(&request, quirks);
    assert_eq!(printed[0].get("reasoning_content"), None);
    assert_eq!(printed[2]["reasoning_content"], "so then");
    assert_eq!(printed[2]["content"], Value::Null);
}

#[test]
fn a_turn_of_thinking_alone_is_no_message() {
    let request = with(vec![user(vec![text("hi")]), assistant(vec![thought("hm")])]);
    let printed = messages(&request, Quirks::default());
    assert_eq!(printed.as_array().unwrap().len(), 1);
}

#[test]
fn a_schema_is_told_in_words_where_it_is_not_understood() {
    let mut request = with(Vec::new());
    request.format = Format::Schema(Schema {
        name: "".into(),
        description: Some("a city".into()),
        schema: Cow::Borrowed(serde_json::from_str(r#"{"type":"object"}"#).unwrap()),
        strict: Some(true),
    });
    let (body, left_out) = print(&request, Quirks::default());
    let expected = json!({"type": "json_schema", "json_schema": {"name": "answer",
        "description": "a city", "schema": {"type": "object"}, "strict": true}});
    assert_eq!((&body["response_format"], left_out.len()), (&expected, 0));

    let quirks = Quirks {
        no_json_schema: true,
        ..Quirks::default()
    };
    let (body, left_out) = print(&request, quirks);
    assert_eq!(body["response_format"], json!({"type": "json_object"}));
    let instruction = body["messages"][0]["content"].as_str().unwrap();
    assert!(instruction.contains("JSON") && instruction.ends_with("a city\n{\"type\":\"object\"}"));
    assert_eq!(
        left_out,
        ["response_format.json_schema (told as an instruction)"]
    );
}

#[test]
fn effort_is_told_as_openai_knows_it() {
    let effort = |effort| Reasoning {
        effort: Some(effort),
        ..Reasoning::default()
    };
    let budget = |tokens| Reasoning {
        budget_tokens: Some(tokens),
        ..Reasoning::default()
    };
    let no_reasoning = Quirks {
        no_reasoning: true,
        ..Quirks::default()
    };
    let none: [&str; 0] = [];
    let table = [
        (
            effort(Effort::None),
            Some("none"),
            none.as_slice(),
            none.as_slice(),
        ),
        (
            effort(Effort::High),
            Some("high"),
            &none,
            &["reasoning_effort"],
        ),
        (
            effort(Effort::Max),
            Some("xhigh"),
            &["reasoning_effort (clamped)"],
            &["reasoning_effort"],
        ),
        (budget(2000), Some("medium"), &none, &["reasoning_effort"]),
        (Reasoning::default(), None, &none, &none),
    ];
    for (reasoning, word, noted, noted_without) in table {
        let mut request = with(Vec::new());
        request.reasoning = Some(reasoning);
        let (body, left_out) = print(&request, Quirks::default());
        assert_eq!(body.get("reasoning_effort").and_then(Value::as_str), word);
        assert_eq!(left_out, noted);
        let (body, left_out) = print(&request, no_reasoning);
        assert_eq!(body.get("reasoning_effort"), None);
        assert_eq!(left_out, noted_without);
    }
}

fn with_tool(choice: ToolChoice<'static>, parallel: bool) -> Request<'static> {
    let mut request = with(Vec::new());
    request.tools = vec![crate::conversation::Tool {
        name: "f".into(),
        description: None,
        parameters: None,
        strict: None,
        cache: None,
    }];
    request.tool_choice = Some(choice);
    request.parallel_tool_calls = Some(parallel);
    request
}

#[test]
fn choices_of_tools_are_told_in_the_providers_words() {
    let mistral = Quirks {
        tool_choice_any: true,
        ..Quirks::default()
    };
    let named = json!({"type": "function", "function": {"name": "f"}});
    let table = [
        (ToolChoice::Required, json!("required"), json!("any")),
        (ToolChoice::Auto, json!("auto"), json!("auto")),
        (ToolChoice::None, json!("none"), json!("none")),
        (ToolChoice::Named("f".into()), named.clone(), named),
    ];
    for (choice, usual, of_mistral) in table {
        let request = with_tool(choice, true);
        assert_eq!(print(&request, Quirks::default()).0["tool_choice"], usual);
        assert_eq!(print(&request, mistral).0["tool_choice"], of_mistral);
    }
}

#[test]
fn parallel_calls_are_forbidden_where_that_is_understood() {
    let quirks = Quirks {
        no_parallel_tool_calls: true,
        ..Quirks::default()
    };
    for (parallel, noted) in [(false, &["parallel_tool_calls"] as &[&str]), (true, &[])] {
        let request = with_tool(ToolChoice::Auto, parallel);
        let (body, left_out) = print(&request, Quirks::default());
        assert_eq!(body["parallel_tool_calls"], parallel);
        assert!(left_out.is_empty());
        let (body, left_out) = print(&request, quirks);
        assert_eq!(body.get("parallel_tool_calls"), None);
        assert_eq!(left_out, noted);
    }
}

#[test]
fn without_tools_nothing_is_said_of_them() {
    let mut request = with_tool(ToolChoice::Auto, false);
    request.tools.clear();
    let (body, _) = print(&request, Quirks::default());
    for member in ["tools", "tool_choice", "parallel_tool_calls"] {
        assert_eq!(body.get(member), None, "{member}");
    }
}

#[test]
fn what_can_not_be_shown_is_a_fault_that_names_it() {
    let no_links = Quirks {
        no_links: true,
        ..Quirks::default()
    };
    let link = || MediaSource::Url("https://example.com/a.png".into());
    let media = |source| Media {
        source,
        name: None,
        detail: None,
        cache: None,
    };
    let usual = Quirks::default();
    let table = [
        (image(link()), no_links, "an image by its link"),
        (
            image(MediaSource::Id("f".into())),
            usual,
            "an image by its id",
        ),
        (Part::File(media(link())), usual, "a file by its link"),
        (Part::Audio(media(link())), usual, "audio by its link"),
    ];
    for (part, quirks, named) in table {
        let request = with(vec![user(vec![part])]);
        let fault = try_print(&request, quirks).unwrap_err();
        assert!(fault.message.contains(named), "{}", fault.message);
    }
    let request = with(vec![user(vec![image(link()), png()])]);
    let content = &messages(&request, usual)[0]["content"];
    assert_eq!(content[0]["image_url"]["url"], "https://example.com/a.png");
    assert!(try_print(&with(vec![user(vec![png()])]), no_links).is_ok());
}

#[test]
fn what_openai_can_not_be_told_is_named_after_the_readers_own() {
    let mut request = with(vec![user(vec![Part::Text {
        text: "hi".into(),
        cache: Some(crate::conversation::CacheMark::OneHour),
    }])]);
    request.top_k = Some(40);
    request.left_out = vec!["container".into()];
    let (_, left_out) = print(&request, Quirks::default());
    assert_eq!(left_out, ["container", "cache_control", "top_k"]);
}
