use super::*;
use crate::conversation::{
    CacheMark, Media, MediaSource, Message, Role, Thinking, ToolCall, ToolResult,
};

fn read(body: &str) -> Request<'_> {
    read_request(body.as_bytes()).unwrap()
}

fn left_out(body: &str) -> Vec<String> {
    let request = read(body);
    request
        .left_out
        .iter()
        .map(|path| path.to_string())
        .collect()
}

fn text(text: &'static str) -> Part<'static> {
    Part::Text {
        text: text.into(),
        cache: None,
    }
}

fn media(source: MediaSource<'static>) -> Media<'static> {
    Media {
        source,
        name: None,
        detail: None,
        cache: None,
    }
}

/// As Claude Code asks: the members and blocks are of Anthropic's API reference, "Create a
/// Message".
const AGENT: &str = r#"{"model":"claude-x","max_tokens":32000,"stream":true,"temperature":1,
    "top_p":0.9,"top_k":7,"stop_sequences":["\n\nHuman:"],"metadata":{"user_id":"user_1","action_id":"a"},
    "system":[{"type":"text","text":"You are an agent."},
        {"type":"text","text":"Rules.","cache_control":{"type":"ephemeral","ttl":"1h"}}],
    "tools":[{"name":"Read","description":"Reads a file.","input_schema":{"type":"object","properties":{}},
            "cache_control":{"type":"ephemeral"}},
        {"type":"custom","name":"Now","input_schema":{"type":"object"},"strict":true}],
    "tool_choice":{"type":"auto","disable_parallel_tool_use":true},
    "thinking":{"type":"enabled","budget_tokens":31999},
    "messages":[
        {"role":"user","content":"Hello"},
        {"role":"assistant","content":[
            {"type":"thinking","thinking":"Let me look.","signature":"EqQB"},
            {"type":"redacted_thinking","data":"EmwK"},
            {"type":"text","text":"Looking."},
            {"type":"tool_use","id":"toolu_1","name":"Read","input":{"path": "a.rs"}},
            {"type":"tool_use","id":"toolu_2","name":"Now","input":{}}]},
        {"role":"user","content":[
            {"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"fn main() {}"},
                {"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]},
            {"type":"tool_result","tool_use_id":"toolu_2","content":"denied","is_error":true},
            {"type":"text","text":"And?","cache_control":{"type":"ephemeral"}}]}]}"#;

#[test]
fn an_agents_request_is_read_whole() {
    let request = read(AGENT);
    assert_eq!(request.left_out, [] as [&str; 0]);
    assert_eq!((request.model.as_ref(), request.stream), ("claude-x", true));
    assert_eq!(request.max_output_tokens, Some(32_000));
    assert_eq!((request.temperature, request.top_p), (Some(1.0), Some(0.9)));
    assert_eq!(request.top_k, Some(7));
    assert_eq!(request.stop, ["\n\nHuman:"]);
    assert_eq!(request.user.as_deref(), Some("user_1"));
    let system = |text: &'static str, cache| System {
        text: text.into(),
        cache,
    };
    assert_eq!(
        request.system,
        [
            system("You are an agent.", None),
            system("Rules.", Some(CacheMark::OneHour))
        ]
    );
    assert_eq!(request.tool_choice, Some(ToolChoice::Auto));
    assert_eq!(request.parallel_tool_calls, Some(false));
    let expected = Reasoning {
        effort: None,
        budget_tokens: Some(31_999),
        is_shown: Some(true),
    };
    assert_eq!(request.reasoning, Some(expected));
}

#[test]
fn an_agents_tools_are_read() {
    let request = read(AGENT);
    let [read, now] = request.tools.as_slice() else {
        panic!("{:?}", request.tools);
    };
    assert_eq!(
        (read.name.as_ref(), read.description.as_deref(), read.cache),
        ("Read", Some("Reads a file."), Some(CacheMark::FiveMinutes))
    );
    let schema = read.parameters.as_deref().unwrap();
    assert_eq!(schema.get(), r#"{"type":"object","properties":{}}"#);
    assert_eq!((now.name.as_ref(), now.strict), ("Now", Some(true)));
}

#[test]
fn an_agents_turns_are_read_and_results_know_their_tools() {
    let call = |id: &'static str, name: &'static str, arguments: &'static str| {
        Part::ToolCall(ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            signature: None,
            cache: None,
        })
    };
    let result = |id: &'static str, name: &'static str, parts, is_error| {
        Part::ToolResult(ToolResult {
            id: id.into(),
            name: name.into(),
            parts,
            is_error,
            cache: None,
        })
    };
    let image = Part::Image(media(MediaSource::Base64 {
        media_type: "image/png".into(),
        data: "iVBO".into(),
    }));
    let expected = [
        Message {
            role: Role::User,
            parts: vec![text("Hello")],
        },
        Message {
            role: Role::Assistant,
            parts: vec![
                Part::Thinking(Thinking::Shown {
                    text: "Let me look.".into(),
                    signature: Some("EqQB".into()),
                }),
                Part::Thinking(Thinking::Redacted {
                    data: "EmwK".into(),
                }),
                text("Looking."),
                call("toolu_1", "Read", r#"{"path": "a.rs"}"#),
                call("toolu_2", "Now", "{}"),
            ],
        },
        Message {
            role: Role::User,
            parts: vec![
                result("toolu_1", "Read", vec![text("fn main() {}"), image], false),
                result("toolu_2", "Now", vec![text("denied")], true),
                Part::Text {
                    text: "And?".into(),
                    cache: Some(CacheMark::FiveMinutes),
                },
            ],
        },
    ];
    assert_eq!(read(AGENT).messages, expected);
}

#[test]
fn images_and_documents_of_every_source_are_read() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":[
        {"type":"image","source":{"type":"url","url":"https://a.example/b.png"}},
        {"type":"image","source":{"type":"file","file_id":"file_1"}},
        {"type":"document","title":"t.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"}},
        {"type":"document","title":"Notes","source":{"type":"text","media_type":"text/plain","data":"a\nb"}}]}]}"#;
    let pdf = Media {
        name: Some("t.pdf".into()),
        ..media(MediaSource::Base64 {
            media_type: "application/pdf".into(),
            data: "JVBE".into(),
        })
    };
    let expected = [
        Part::Image(media(MediaSource::Url("https://a.example/b.png".into()))),
        Part::Image(media(MediaSource::Id("file_1".into()))),
        Part::File(pdf),
        text("Notes\n\na\nb"),
    ];
    assert_eq!(read(body).messages[0].parts, expected);
}

#[test]
fn what_has_no_form_elsewhere_is_named_by_its_path() {
    let body = r#"{"model":"m","service_tier":"auto","container":"c","messages":[
        {"role":"user","content":"x"},
        {"role":"assistant","content":[{"type":"text","text":"y","citations":[{"type":"char_location"}]},
            {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},
            {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},
            {"type":"tool_use","id":"t","name":"f","input":{},"caller":{"type":"direct"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[
            {"type":"search_result","source":"s","title":"t","content":[]}]}]}],
        "tools":[{"type":"web_search_20250305","name":"web_search","max_uses":5},
            {"name":"f","input_schema":{},"defer_loading":true}],
        "thinking":{"type":"adaptive"},
        "output_config":{"effort":"max","task_budget":{"type":"tokens"}}}"#;
    let expected = [
        "messages[1].content[0].citations",
        "messages[1].content[1] (server_tool_use)",
        "messages[1].content[2] (web_search_tool_result)",
        "messages[1].content[3].caller",
        "messages[2].content[0].content[0] (search_result)",
        "tools[0] (web_search_20250305)",
        "tools[1].defer_loading",
        "output_config.task_budget",
        "service_tier",
        "container",
    ];
    assert_eq!(left_out(body), expected);
}

#[test]
fn choices_efforts_and_formats_are_read() {
    let request = |members: &str| format!(r#"{{"model":"m","messages":[],{members}}}"#);
    for (choice, expected) in [
        (r#"{"type":"any"}"#, ToolChoice::Required),
        (r#"{"type":"none"}"#, ToolChoice::None),
        (
            r#"{"type":"tool","name":"f"}"#,
            ToolChoice::Named("f".into()),
        ),
    ] {
        let body = request(&format!(r#""tool_choice":{choice}"#));
        assert_eq!(read(&body).tool_choice, Some(expected));
    }
    let effort = |effort, budget_tokens, is_shown| {
        Some(Reasoning {
            effort,
            budget_tokens,
            is_shown,
        })
    };
    for (members, expected) in [
        (
            r#""thinking":{"type":"adaptive"}"#,
            effort(None, None, Some(true)),
        ),
        (
            r#""thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"xhigh"}"#,
            effort(Some(Effort::ExtraHigh), None, Some(false)),
        ),
        (
            r#""thinking":{"type":"disabled"}"#,
            effort(None, Some(0), None),
        ),
        (
            r#""output_config":{"effort":"low"}"#,
            effort(Some(Effort::Low), None, None),
        ),
        (r#""thinking":null"#, None),
    ] {
        assert_eq!(read(&request(members)).reasoning, expected, "{members}");
    }
    let body =
        request(r#""output_config":{"format":{"type":"json_schema","schema":{"type": "object"}}}"#);
    let Format::Schema(schema) = read(&body).format else {
        panic!("a schema");
    };
    assert_eq!(schema.schema.get(), r#"{"type": "object"}"#);
}

#[test]
fn faults_name_the_place() {
    for (members, named) in [
        (
            r#""messages":[{"role":"robot","content":"x"}]"#,
            "messages[0].role",
        ),
        (r#""messages":[{"role":"user"}]"#, "messages[0].content"),
        (
            r#""messages":[{"role":"user","content":7}]"#,
            "messages[0].content",
        ),
        (
            r#""messages":[{"role":"user","content":[{"type":"text"}]}]"#,
            "messages[0].content[0].text",
        ),
        (
            r#""messages":[{"role":"user","content":[{"type":"image","source":{"type":"disk"}}]}]"#,
            "messages[0].content[0].source.type",
        ),
        (r#""messages":[],"messages":[]"#, "messages"),
        (
            r#""messages":[],"tools":[{"input_schema":{}}]"#,
            "tools[0].name",
        ),
        (
            r#""messages":[],"tool_choice":{"type":"maybe"}"#,
            "tool_choice.type",
        ),
        (r#""messages":[],"thinking":{"type":"on"}"#, "thinking.type"),
        (
            r#""messages":[],"output_config":{"effort":"huge"}"#,
            "output_config.effort",
        ),
        (
            r#""messages":[],"system":[{"type":"image","source":{"type":"url","url":"u"}}]"#,
            "system",
        ),
        (r#""stream":true"#, "messages"),
    ] {
        let body = format!(r#"{{"model":"m",{members}}}"#);
        let fault = read_request(body.as_bytes()).unwrap_err();
        assert!(fault.message.contains(&format!("`{named}`")), "{fault}");
    }
}
