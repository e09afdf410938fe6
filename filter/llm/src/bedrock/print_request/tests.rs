use serde_json::{Value, json};

use super::*;
use crate::conversation::{
    CacheMark, Media, MediaSource, Message, Part, Reasoning, Role, System, Thinking as Said, Tool,
    ToolCall, ToolChoice, ToolResult,
};
use crate::translate::Quirks;

const CLAUDE: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const NOVA: &str = "amazon.nova-pro-v1:0";

fn printed(request: &Request<'_>, model: &str) -> (Value, Vec<String>) {
    let terms = Terms {
        upstream_model: model,
        max_output_tokens: None,
        default_max_output_tokens: 4096,
        quirks: &Quirks::default(),
    };
    let printed = print_request(request, &terms).unwrap();
    (
        serde_json::from_slice(&printed.body).unwrap(),
        printed.left_out,
    )
}

fn text(text: &'static str) -> Part<'static> {
    marked(text, None)
}

fn marked(text: &'static str, cache: Option<CacheMark>) -> Part<'static> {
    Part::Text {
        text: text.into(),
        cache,
    }
}

fn call(id: &'static str, arguments: &'static str) -> Part<'static> {
    Part::ToolCall(ToolCall {
        id: id.into(),
        name: "f".into(),
        arguments: arguments.into(),
        signature: None,
        cache: None,
    })
}

fn result(id: &'static str, parts: Vec<Part<'static>>) -> Part<'static> {
    Part::ToolResult(ToolResult {
        id: id.into(),
        name: "f".into(),
        parts,
        is_error: true,
        cache: None,
    })
}

fn thought(signature: Option<&'static str>) -> Part<'static> {
    Part::Thinking(Said::Shown {
        text: "hm".into(),
        signature: signature.map(Into::into),
    })
}

fn tool() -> Tool<'static> {
    Tool {
        name: "f".into(),
        description: Some("".into()),
        parameters: None,
        strict: Some(true),
        cache: Some(CacheMark::OneHour),
    }
}

fn of(messages: Vec<(Role, Vec<Part<'static>>)>) -> Request<'static> {
    Request {
        messages: messages
            .into_iter()
            .map(|(role, parts)| Message { role, parts })
            .collect(),
        ..Request::default()
    }
}

#[test]
fn turns_are_merged_results_and_reasoning_come_first_and_blanks_are_left_away() {
    let request = of(vec![
        (Role::User, vec![text("a"), text(" ")]),
        (Role::User, vec![text("b")]),
        (
            Role::Assistant,
            vec![text("c"), thought(None), thought(Some("c2ln"))],
        ),
        (Role::Assistant, vec![call("call|1", "not json")]),
        (
            Role::User,
            vec![text("d"), result("call|1", vec![text("done"), text(" ")])],
        ),
        (Role::Assistant, vec![text("go on \n")]),
    ]);
    let (json, left_out) = printed(&request, CLAUDE);
    let expected = json!([
        {"role": "user", "content": [{"text": "a"}, {"text": "b"}]},
        {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
            {"text": "c"},
            {"toolUse": {"toolUseId": "call_1", "name": "f", "input": {"arguments": "not json"}}}]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "call_1", "content": [{"text": "done"}], "status": "error"}},
            {"text": "d"}]},
        {"role": "assistant", "content": [{"text": "go on"}]},
    ]);
    assert_eq!(json["messages"], expected);
    let expected = json!({"tools": [{"toolSpec": {"name": "f",
        "inputSchema": {"json": {"type": "object", "properties": {}}}}}]});
    assert_eq!(json["toolConfig"], expected);
    let expected = [
        "tools (those that were called were put in)",
        "thinking without a signature",
    ];
    assert_eq!(left_out, expected);
    assert_eq!(json.get("inferenceConfig"), None);
}

#[test]
fn cache_marks_become_points_behind_what_they_mark_up_to_the_fourth() {
    let five = Some(CacheMark::FiveMinutes);
    let mut request = of(vec![
        (Role::User, vec![marked("a", five)]),
        (Role::Assistant, vec![call("c", "{}")]),
        (
            Role::User,
            vec![
                text("x"),
                result("c", vec![marked("done", five), text("more")]),
                marked("b", five),
            ],
        ),
    ]);
    request.tools = vec![tool()];
    request.system = vec![System {
        text: "be kind".into(),
        cache: Some(CacheMark::OneHour),
    }];
    let (json, left_out) = printed(&request, NOVA);
    let hour = json!({"cachePoint": {"type": "default", "ttl": "1h"}});
    let point = json!({"cachePoint": {"type": "default"}});
    assert_eq!(json["toolConfig"]["tools"][1], hour);
    assert_eq!(json["toolConfig"]["tools"][0]["toolSpec"]["strict"], true);
    assert_eq!(
        json["toolConfig"]["tools"][0]["toolSpec"].get("description"),
        None
    );
    assert_eq!(json["system"], json!([{"text": "be kind"}, hour]));
    assert_eq!(
        json["messages"][0]["content"],
        json!([{"text": "a"}, point])
    );
    let last = json["messages"][2]["content"].as_array().unwrap();
    assert!(last[0].get("toolResult").is_some());
    assert_eq!(
        json!(last[1..]),
        json!([point, {"text": "x"}, {"text": "b"}])
    );
    assert_eq!(left_out, ["cache marks (beyond the fourth)"]);
}

#[test]
fn claude_thinks_within_its_output_and_others_as_they_like() {
    let mut request = of(vec![(Role::User, vec![text("a")])]);
    request.reasoning = Some(Reasoning {
        effort: None,
        budget_tokens: Some(2000),
        is_shown: None,
    });
    request.tools = vec![tool()];
    request.tool_choice = Some(ToolChoice::Required);
    request.stop = vec!["END".into(), "".into()];
    request.temperature = Some(0.5);
    let (json, left_out) = printed(&request, CLAUDE);
    let fields = json!({"thinking": {"type": "enabled", "budget_tokens": 2000}});
    assert_eq!(json["additionalModelRequestFields"], fields);
    assert_eq!(
        json["additionalModelResponseFieldPaths"],
        json!(["/stop_sequence"])
    );
    let inference = json!({"maxTokens": 4096, "stopSequences": ["END"]});
    assert_eq!(json["inferenceConfig"], inference);
    assert_eq!(json["toolConfig"]["toolChoice"], json!({"auto": {}}));
    assert_eq!(
        left_out,
        [
            "temperature (while thinking)",
            "tool_choice (while thinking)"
        ]
    );
    let (json, left_out) = printed(&request, NOVA);
    assert_eq!(json.get("additionalModelRequestFields"), None);
    assert_eq!(json.get("additionalModelResponseFieldPaths"), None);
    let inference = json!({"temperature": 0.5, "stopSequences": ["END"]});
    assert_eq!(json["inferenceConfig"], inference);
    assert_eq!(json["toolConfig"]["toolChoice"], json!({"any": {}}));
    assert_eq!(left_out, ["reasoning"]);
    request.reasoning = Some(Reasoning {
        effort: Some(Effort::High),
        ..Reasoning::default()
    });
    let (json, _) = printed(&request, "anthropic.claude-opus-4-8");
    let fields = json!({"thinking": {"type": "adaptive", "display": "summarized"}});
    assert_eq!(json["additionalModelRequestFields"], fields);
    assert_eq!(json["outputConfig"], json!({"effort": "high"}));
}

#[test]
fn a_choice_of_no_tool_takes_the_tools_away_unless_some_were_called() {
    let mut request = of(vec![(Role::User, vec![text("a")])]);
    request.tools = vec![tool()];
    request.tool_choice = Some(ToolChoice::None);
    request.parallel_tool_calls = Some(false);
    let (json, left_out) = printed(&request, NOVA);
    assert_eq!(json.get("toolConfig"), None);
    assert_eq!(left_out, ["parallel_tool_calls"]);
    request.messages.push(Message {
        role: Role::Assistant,
        parts: vec![call("c", "{}")],
    });
    request.parallel_tool_calls = None;
    let (json, left_out) = printed(&request, NOVA);
    assert!(json["toolConfig"]["tools"].is_array());
    assert_eq!(left_out, ["tool_choice (none, after calls)"]);
    request.tool_choice = Some(ToolChoice::Named("f".into()));
    let (json, _) = printed(&request, NOVA);
    assert_eq!(
        json["toolConfig"]["toolChoice"],
        json!({"tool": {"name": "f"}})
    );
}

#[test]
fn a_schema_is_told_as_text_and_what_has_no_place_is_named() {
    let mut request = of(vec![(Role::Assistant, vec![text("a")])]);
    request.format = Format::Schema(Schema {
        name: "city".into(),
        description: None,
        schema: serde_json::from_str(r#"{"type": "object"}"#).unwrap(),
        strict: None,
    });
    request.user = Some("anna".into());
    request.temperature = Some(1.5);
    request.top_k = Some(3);
    request.seed = Some(1);
    let (json, left_out) = printed(&request, NOVA);
    let format = json!({"textFormat": {"type": "json_schema",
        "structure": {"jsonSchema": {"schema": r#"{"type": "object"}"#, "name": "city"}}}});
    assert_eq!(json["outputConfig"], format);
    assert_eq!(json["requestMetadata"], json!({"user": "anna"}));
    assert_eq!(json["inferenceConfig"], json!({"temperature": 1.0}));
    assert_eq!(json["messages"][0]["content"], json!([{"text": "Begin."}]));
    let expected = [
        "top_k",
        "temperature (clamped)",
        "seed",
        "messages (a first one of the user was put in)",
    ];
    assert_eq!(left_out, expected);
    request.format = Format::Json;
    request.user = Some("a\u{e9}".into());
    let (json, left_out) = printed(&request, NOVA);
    assert_eq!(
        (json.get("outputConfig"), json.get("requestMetadata")),
        (None, None)
    );
    assert!(left_out.contains(&"response_format".to_owned()));
    assert!(left_out.contains(&"user".to_owned()));
}

#[test]
fn media_are_bytes_and_a_long_id_is_a_number() {
    let image = |source| {
        Part::Image(Media {
            source,
            name: None,
            detail: None,
            cache: None,
        })
    };
    let base64 = MediaSource::Base64 {
        media_type: "image/jpeg".into(),
        data: "AAAA".into(),
    };
    const LONG: &str = "call_0123456789012345678901234567890123456789012345678901234567890";
    let request = of(vec![
        (Role::User, vec![text("a"), image(base64.clone())]),
        (Role::Assistant, vec![call("c", "{}"), call(LONG, "{}")]),
        (
            Role::User,
            vec![result("c", vec![image(base64)]), result(LONG, Vec::new())],
        ),
    ]);
    let (json, _) = printed(&request, NOVA);
    let shown = json!({"image": {"format": "jpeg", "source": {"bytes": "AAAA"}}});
    assert_eq!(json["messages"][0]["content"][1], shown);
    assert_eq!(
        json["messages"][1]["content"][1]["toolUse"]["toolUseId"],
        "call_2"
    );
    let results = json!([
        {"toolResult": {"toolUseId": "c", "content": [shown], "status": "error"}},
        {"toolResult": {"toolUseId": "call_2", "content": [], "status": "error"}},
    ]);
    assert_eq!(json["messages"][2]["content"], results);
    let terms = Terms {
        upstream_model: NOVA,
        max_output_tokens: None,
        default_max_output_tokens: 1,
        quirks: &Quirks::default(),
    };
    for (part, what) in [
        (
            image(MediaSource::Url("https://x/a.png".into())),
            "a link to an image or a file",
        ),
        (
            result("none", Vec::new()),
            "a tool's result without its call",
        ),
    ] {
        let fault = print_request(&of(vec![(Role::User, vec![part])]), &terms).unwrap_err();
        assert_eq!(fault.message, format!("{what} can't be sent there"));
    }
}
