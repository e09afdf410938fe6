//! Requests are of the forms that OpenAI's API reference shows at `responses/create`, and of the
//! types of openai-python 3.57 for its parameters.

use super::*;
use crate::conversation::{
    CacheMark, Media, MediaSource, Message, Part, Role, System, Thinking, ToolCall, ToolChoice,
    ToolResult,
};

fn read(body: &str) -> Request<'_> {
    read_request(PathFacts::default(), body.as_bytes()).unwrap()
}

fn fault(body: &str) -> RequestFault {
    read_request(PathFacts::default(), body.as_bytes()).expect_err(body)
}

fn with_member(member: &str) -> String {
    format!(r#"{{"model":"m","input":"a",{member}}}"#)
}

fn with_input(items: &str) -> String {
    format!(r#"{{"model":"m","input":{items}}}"#)
}

fn text(text: &str) -> Part<'_> {
    Part::Text {
        text: text.into(),
        cache: None,
    }
}

fn media(source: MediaSource<'_>) -> Media<'_> {
    Media {
        source,
        name: None,
        detail: None,
        cache: None,
    }
}

fn messages(items: &str) -> Vec<Message<'static>> {
    let body: &'static str = Box::leak(with_input(items).into_boxed_str());
    let request = read(body);
    assert_eq!(request.left_out, Vec::<String>::new());
    request.messages
}

fn message<'a>(role: Role, parts: Vec<Part<'a>>) -> Message<'a> {
    Message { role, parts }
}

fn left_out(body: &str) -> Vec<String> {
    let left_out = read(body).left_out;
    left_out.iter().map(ToString::to_string).collect()
}

#[test]
fn a_string_is_what_the_user_says() {
    let body = r#"{"model":"m","input":"hi","instructions":"be brief"}"#;
    let request = read(body);
    assert_eq!(request.model, "m");
    assert!(!request.stream);
    let brief = System {
        text: "be brief".into(),
        cache: None,
    };
    assert_eq!(request.system, [brief]);
    assert_eq!(request.messages, [message(Role::User, vec![text("hi")])]);
    assert!(request.left_out.is_empty());
}

#[test]
fn everything_that_others_know_too_is_read() {
    let body = r#"{"model":"m","stream":true,"input":"a","max_output_tokens":90,"temperature":0.5,
        "top_p":0.25,"parallel_tool_calls":false,"user":"u","safety_identifier":"s",
        "metadata":{"a":"b"},"store":false,"truncation":"disabled","service_tier":"auto",
        "background":false,"top_logprobs":0,"include":["reasoning.encrypted_content"],
        "stream_options":{"include_obfuscation":false},"previous_response_id":null,
        "reasoning":{"effort":"xhigh","summary":"detailed"},
        "text":{"verbosity":"medium","format":{"type":"json_schema","name":"n","description":"d","schema":{"type":"object"},"strict":true}}}"#;
    let request = read(body);
    assert!(request.stream);
    assert_eq!(request.max_output_tokens, Some(90));
    assert_eq!(request.temperature, Some(0.5));
    assert_eq!(request.top_p, Some(0.25));
    assert_eq!(request.parallel_tool_calls, Some(false));
    assert_eq!(request.user.as_deref(), Some("u"));
    let reasoning = Reasoning {
        effort: Some(Effort::ExtraHigh),
        budget_tokens: None,
        is_shown: Some(true),
    };
    assert_eq!(request.reasoning, Some(reasoning));
    let Format::Schema(schema) = &request.format else {
        panic!("{:?}", request.format);
    };
    assert_eq!(schema.name, "n");
    assert_eq!(schema.description.as_deref(), Some("d"));
    assert_eq!(schema.schema.get(), r#"{"type":"object"}"#);
    assert_eq!(schema.strict, Some(true));
    assert_eq!(request.left_out, Vec::<String>::new());
}

#[test]
fn what_others_do_not_know_is_named() {
    let cases = [
        (r#""store":true"#, "store"),
        (r#""truncation":"auto""#, "truncation"),
        (r#""service_tier":"flex""#, "service_tier"),
        (r#""prompt_cache_key":"k""#, "prompt_cache_key"),
        (r#""max_tool_calls":3"#, "max_tool_calls"),
        (
            r#""include":["reasoning.encrypted_content","file_search_call.results"]"#,
            "include[1] (file_search_call.results)",
        ),
        (
            r#""stream_options":{"include_obfuscation":true}"#,
            "stream_options.include_obfuscation",
        ),
        (
            r#""reasoning":{"effort":"huge"}"#,
            "reasoning.effort (huge)",
        ),
        (
            r#""reasoning":{"context":"all_turns"}"#,
            "reasoning.context",
        ),
        (r#""text":{"verbosity":"low"}"#, "text.verbosity"),
        (
            r#""tools":[{"type":"web_search"}]"#,
            "tools[0] (web_search)",
        ),
        (
            r#""tools":[{"type":"function","name":"f","defer_loading":true}]"#,
            "tools[0].defer_loading",
        ),
        (
            r#""tool_choice":{"type":"file_search"}"#,
            "tool_choice (file_search)",
        ),
    ];
    for (member, named) in cases {
        assert_eq!(left_out(&with_member(member)), [named]);
    }
    let items = [
        (
            r#"[{"type":"web_search_call","id":"ws_1","status":"completed"}]"#,
            "input[0] (web_search_call)",
        ),
        (
            r#"[{"role":"assistant","content":"a","phase":"commentary"}]"#,
            "input[0].phase",
        ),
        (
            r#"[{"role":"assistant","content":[{"type":"output_text","text":"a","annotations":[{"type":"url_citation"}]}]}]"#,
            "input[0].content[0].annotations",
        ),
        (
            r#"[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAAABo"}]"#,
            "input[0].encrypted_content",
        ),
    ];
    for (items, named) in items {
        assert_eq!(left_out(&with_input(items)), [named]);
    }
}

#[test]
fn what_is_kept_elsewhere_is_a_fault_that_names_the_member() {
    for (member, param) in [
        (r#""previous_response_id":"resp_1""#, "previous_response_id"),
        (r#""conversation":"conv_1""#, "conversation"),
        (r#""prompt":{"id":"pmpt_1"}"#, "prompt"),
    ] {
        let fault = fault(&with_member(member));
        assert_eq!(fault.param, Some(param));
        assert_eq!(fault.code, Some("unsupported_parameter"));
        assert!(
            fault
                .message
                .starts_with(&format!("`{param}` must be left out"))
        );
    }
    let reference = fault(&with_input(r#"[{"type":"item_reference","id":"msg_1"}]"#));
    assert_eq!(reference.param, Some("input"));
    assert!(reference.message.starts_with("`input[0]` must be left out"));
}

#[test]
fn messages_are_said_in_any_of_their_forms() {
    let items = r#"[
        {"role":"user","content":"a"},
        {"type":"message","role":"user","status":"completed","content":[
            {"type":"input_text","text":"b"},
            {"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"low"},
            {"type":"input_image","image_url":"https://h/i.png"},
            {"type":"input_image","file_id":"file-1"},
            {"type":"input_file","filename":"f.pdf","file_data":"data:application/pdf;base64,BBBB"},
            {"type":"input_file","file_data":"CCCC"},
            {"type":"input_file","file_url":"https://h/f.pdf"},
            {"type":"input_file","file_id":"file-2"},
            {"type":"input_audio","input_audio":{"data":"DDDD","format":"mp3"}}
        ]},
        {"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[
            {"type":"output_text","text":"c","annotations":[],"logprobs":[ ]},
            {"type":"refusal","refusal":"no"}
        ]}
    ]"#;
    let base64 = |media_type: &'static str, data: &'static str| {
        media(MediaSource::Base64 {
            media_type: media_type.into(),
            data: data.into(),
        })
    };
    let url = |url: &'static str| media(MediaSource::Url(url.into()));
    let id = |id: &'static str| media(MediaSource::Id(id.into()));
    let small = Media {
        detail: Some("low".into()),
        ..base64("image/png", "AAAA")
    };
    let named = Media {
        name: Some("f.pdf".into()),
        ..base64("application/pdf", "BBBB")
    };
    let shown = vec![
        text("b"),
        Part::Image(small),
        Part::Image(url("https://h/i.png")),
        Part::Image(id("file-1")),
        Part::File(named),
        Part::File(base64("application/pdf", "CCCC")),
        Part::File(url("https://h/f.pdf")),
        Part::File(id("file-2")),
        Part::Audio(base64("audio/mpeg", "DDDD")),
    ];
    let expected = [
        message(Role::User, vec![text("a")]),
        message(Role::User, shown),
        message(Role::Assistant, vec![text("c"), Part::Refusal("no".into())]),
    ];
    assert_eq!(messages(items), expected);
}

#[test]
fn instructions_come_from_every_place_in_order() {
    let body = r#"{"model":"m","instructions":"one","input":[
        {"role":"developer","content":"two"},{"role":"user","content":"a"},
        {"type":"message","role":"system","content":[{"type":"input_text","text":"three"}]}]}"#;
    let said: Vec<_> = read(body).system.into_iter().map(|one| one.text).collect();
    assert_eq!(said, ["one", "two", "three"]);
    let image = r#"[{"role":"system","content":[{"type":"input_image","image_url":"https://h"}]}]"#;
    let refused = fault(&with_input(image));
    assert_eq!(refused.message, "`input[0].content` must be text");
}

#[test]
fn a_turn_of_reasoning_words_and_calls_is_one_message() {
    let items = r#"[
        {"role":"user","content":"a"},
        {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"turnpike.signature.c2ln"},
        {"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"turnpike.redacted.ZA"},
        {"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"so","annotations":[]}]},
        {"type":"function_call","id":"fc_1","call_id":"one__thought__Z2Vt","name":"f","arguments":"{\"x\":1}","status":"completed"},
        {"type":"function_call","call_id":"two","name":"g","arguments":""},
        {"type":"function_call_output","call_id":"one__thought__Z2Vt","output":"1"},
        {"type":"function_call_output","id":"fco_2","call_id":"two","status":"completed","output":[
            {"type":"input_text","text":"2"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]},
        {"role":"user","content":"b"}
    ]"#;
    let call = |id: &'static str, name: &'static str, arguments: &'static str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
        signature: None,
        cache: None,
    };
    let signed = ToolCall {
        signature: Some("Z2Vt".into()),
        ..call("one", "f", r#"{"x":1}"#)
    };
    let turn = vec![
        Part::Thinking(Thinking::Shown {
            text: "hm".into(),
            signature: Some("c2ln".into()),
        }),
        Part::Thinking(Thinking::Redacted { data: "ZA".into() }),
        text("so"),
        Part::ToolCall(signed),
        Part::ToolCall(call("two", "g", "{}")),
    ];
    let result = |id: &'static str, name: &'static str, parts| {
        Part::ToolResult(ToolResult {
            id: id.into(),
            name: name.into(),
            parts,
            is_error: false,
            cache: None,
        })
    };
    let image = Part::Image(media(MediaSource::Base64 {
        media_type: "image/png".into(),
        data: "AAAA".into(),
    }));
    let expected = [
        message(Role::User, vec![text("a")]),
        message(Role::Assistant, turn),
        message(Role::User, vec![result("one", "f", vec![text("1")])]),
        message(Role::User, vec![result("two", "g", vec![text("2"), image])]),
        message(Role::User, vec![text("b")]),
    ];
    assert_eq!(messages(items), expected);
}

#[test]
fn reasoning_of_others_is_told_by_its_words() {
    let thought = |items: &str| {
        let body = with_input(items);
        let request = read(&body);
        let parts = request.messages.into_iter().flat_map(|one| one.parts);
        parts
            .map(|part| match part {
                Part::Thinking(Thinking::Shown { text, signature }) => {
                    assert_eq!(signature, None);
                    text.into_owned()
                }
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    let summary = r#"[{"type":"reasoning","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"gA"}]"#;
    assert_eq!(thought(summary), ["a\n\nb"]);
    let whole = r#"[{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}],"content":[{"type":"reasoning_text","text":"all"}]}]"#;
    assert_eq!(thought(whole), ["all"]);
    let none = r#"[{"type":"reasoning","id":"rs_1","summary":[]}]"#;
    assert!(thought(none).is_empty());
}

#[test]
fn tools_and_the_choice_among_them_are_flat() {
    let tools = r#""tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true},
        {"type":"function","name":"g","parameters":null,"strict":null}]"#;
    let body = with_member(tools);
    let request = read(&body);
    let [f, g] = <[_; 2]>::try_from(request.tools).unwrap();
    assert_eq!((f.name.as_ref(), f.strict), ("f", Some(true)));
    assert_eq!(f.description.as_deref(), Some("d"));
    assert_eq!(f.parameters.unwrap().get(), r#"{"type":"object"}"#);
    assert_eq!((g.name.as_ref(), g.strict), ("g", None));
    assert!(g.parameters.is_none());
    let choice = |choice: &str| {
        let body = with_member(&format!("{tools},\"tool_choice\":{choice}"));
        let request = read(&body);
        assert!(request.left_out.is_empty());
        let names: Vec<_> = request
            .tools
            .iter()
            .map(|tool| tool.name.to_string())
            .collect();
        let choice = request.tool_choice.map(|choice| match choice {
            ToolChoice::Named(name) => format!("named {name}"),
            other => format!("{other:?}"),
        });
        (choice.unwrap_or_default(), names.concat())
    };
    let cases = [
        (r#""auto""#, "Auto", "fg"),
        (r#""none""#, "None", "fg"),
        (r#""required""#, "Required", "fg"),
        (r#"{"type":"function","name":"g"}"#, "named g", "fg"),
        (
            r#"{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"}]}"#,
            "Required",
            "g",
        ),
    ];
    for (said, meant, names) in cases {
        assert_eq!(choice(said), (meant.to_owned(), names.to_owned()));
    }
}

#[test]
fn marks_of_the_cache_are_read() {
    let mark = |part: &str| {
        let items =
            format!(r#"[{{"role":"user","content":[{{"type":"input_text","text":"a",{part}}}]}}]"#);
        match &messages(&items)[0].parts[0] {
            Part::Text { cache, .. } => *cache,
            other => panic!("{other:?}"),
        }
    };
    let short = r#""prompt_cache_breakpoint":{"mode":"explicit"}"#;
    assert_eq!(mark(short), Some(CacheMark::FiveMinutes));
    let long = r#""prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}"#;
    assert_eq!(mark(long), Some(CacheMark::OneHour));
    let anthropic = r#""cache_control":{"type":"ephemeral"}"#;
    assert_eq!(mark(anthropic), Some(CacheMark::FiveMinutes));
}

#[test]
fn faults_say_where() {
    let cases = [
        (r#"{"model":"m"}"#, "`input` must be there"),
        (r#"{"input":"a"}"#, "`model` must be there"),
        (
            r#"{"model":"m","input":7}"#,
            "`input` must be a string or an array of items",
        ),
        (
            r#"{"model":"m","input":[{"role":"tool","content":"a"}]}"#,
            "`input[0].role` must be `user`, `assistant`, `system` or `developer`",
        ),
        (
            r#"{"model":"m","input":[{"role":"user","content":[{"type":"video"}]}]}"#,
            "`input[0].content[0].type` must be `input_text`, `output_text`, `input_image`, `input_file`, `input_audio` or `refusal`",
        ),
        (
            r#"{"model":"m","input":[{"type":"function_call","name":"f"}]}"#,
            "`input[0].call_id` must be there",
        ),
        (
            r#"{"model":"m","input":[{"type":"function_call_output","call_id":"a"}]}"#,
            "`input[0].output` must be there",
        ),
        (
            r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png,x"}]}]}"#,
            "`input[0].content[0].image_url` must be a link, or a `data:` URL with Base64",
        ),
        (
            r#"{"model":"m","input":"a","tool_choice":"maybe"}"#,
            "`tool_choice` must be `auto`, `none`, `required` or an object",
        ),
        (
            r#"{"model":"m","input":"a","text":{"format":{"type":"grammar"}}}"#,
            "`text.format.type` must be `text`, `json_object` or `json_schema`",
        ),
        (
            r#"{"model":"m","input":"a","include":"b"}"#,
            "`include` must be an array of strings",
        ),
    ];
    for (body, message) in cases {
        assert_eq!(fault(body).message, message);
    }
}

/// What openai-python 3.57 sends when an answer's output is put into the next `input`.
#[test]
fn a_turn_that_the_sdk_sends_back_loses_nothing() {
    let body = r#"{"model":"m","include":["reasoning.encrypted_content"],"input":[{"role":"user","content":"a"},{"id":"rs_msg01Abc_0","summary":[{"text":"Let me","type":"summary_text"}],"type":"reasoning","encrypted_content":"turnpike.signature.c2ln"},{"id":"rs_msg01Abc_1","summary":[],"type":"reasoning","encrypted_content":"turnpike.redacted.ZGF0YQ=="},{"id":"msg_msg01Abc_2","content":[{"annotations":[],"text":"Hello wörld","type":"output_text","logprobs":[]}],"role":"assistant","status":"completed","type":"message"},{"arguments":"{\"city\":\"Köln\"}","call_id":"toolu_1__thought__Z2Vt","name":"weather","type":"function_call","id":"fc_msg01Abc_3","status":"completed"},{"type":"function_call_output","call_id":"toolu_1__thought__Z2Vt","output":"ok"}],"reasoning":{"effort":"low","summary":"auto"},"store":false,"tools":[{"type":"function","name":"weather","parameters":{"type":"object","properties":{}},"strict":true}]}"#;
    let request = read(body);
    assert_eq!(request.left_out, Vec::<String>::new());
    let [_, turn, result] = <[_; 3]>::try_from(request.messages).unwrap();
    let call = ToolCall {
        id: "toolu_1".into(),
        name: "weather".into(),
        arguments: r#"{"city":"Köln"}"#.into(),
        signature: Some("Z2Vt".into()),
        cache: None,
    };
    let thought = [
        Thinking::Shown {
            text: "Let me".into(),
            signature: Some("c2ln".into()),
        },
        Thinking::Redacted {
            data: "ZGF0YQ==".into(),
        },
    ];
    let [one, two] = thought.map(Part::Thinking);
    assert_eq!(
        turn.parts,
        [one, two, text("Hello wörld"), Part::ToolCall(call)]
    );
    let [Part::ToolResult(result)] = result.parts.as_slice() else {
        panic!("{:?}", result.parts);
    };
    assert_eq!(
        (result.id.as_ref(), result.name.as_ref()),
        ("toolu_1", "weather")
    );
}
