//! Requests are of the forms that OpenAI's API reference shows at `chat/create`, and of those that
//! its Python SDK 1.x builds, unless a test says another source.

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

fn with_messages(messages: &str) -> String {
    format!(r#"{{"model":"m","messages":{messages}}}"#)
}

fn with_member(member: &str) -> String {
    format!(r#"{{"model":"m","messages":[],{member}}}"#)
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

fn base64<'a>(media_type: &'a str, data: &'a str) -> MediaSource<'a> {
    MediaSource::Base64 {
        media_type: media_type.into(),
        data: data.into(),
    }
}

/// The parts of the one message.
fn parts(messages: &str) -> Vec<Part<'static>> {
    let body: &'static str = Box::leak(with_messages(messages).into_boxed_str());
    let [message] = <[Message<'_>; 1]>::try_from(read(body).messages).unwrap();
    message.parts
}

fn left_out(body: &str) -> Vec<String> {
    let left_out = read(body).left_out;
    left_out.iter().map(ToString::to_string).collect()
}

#[test]
fn every_member_that_has_a_meaning_elsewhere_is_read() {
    let request = read(
        r#"{"model":"fast","messages":[{"role":"user","content":"hi"}],"stream":true,
        "stream_options":{"include_usage":true},"max_tokens":5,"max_completion_tokens":9,
        "temperature":0.7,"top_p":0.1,"top_k":40,"presence_penalty":-0.5,"frequency_penalty":1,
        "seed":-3,"stop":["a","\n"],"reasoning_effort":"high","parallel_tool_calls":false,
        "user":"u-1","safety_identifier":"s","metadata":{"action_id":"x"},"n":1,
        "response_format":{"type":"text"}}"#,
    );
    assert_eq!((request.model.as_ref(), request.stream), ("fast", true));
    assert_eq!(request.max_output_tokens, Some(9));
    assert_eq!(
        (request.temperature, request.top_p, request.top_k),
        (Some(0.7), Some(0.1), Some(40))
    );
    assert_eq!(
        (request.presence_penalty, request.frequency_penalty),
        (Some(-0.5), Some(1.0))
    );
    assert_eq!((request.seed, request.stop.len()), (Some(-3), 2));
    assert_eq!(request.stop[1], "\n");
    let reasoning = request.reasoning.unwrap();
    assert_eq!(reasoning.effort, Some(Effort::High));
    assert_eq!(request.parallel_tool_calls, Some(false));
    assert_eq!(request.user.as_deref(), Some("u-1"));
    assert!(request.left_out.is_empty(), "{:?}", request.left_out);
}

#[test]
fn instructions_are_gathered_wherever_they_stand() {
    let body = with_messages(
        r#"[{"role":"system","content":"a"},{"role":"user","content":"hi"},
        {"role":"developer","content":[{"type":"text","text":"b",
        "cache_control":{"type":"ephemeral"}},{"type":"text","text":"c"}]}]"#,
    );
    let request = read(&body);
    let piece = |text: &'static str, cache| System {
        text: text.into(),
        cache,
    };
    assert_eq!(
        request.system,
        [
            piece("a", None),
            piece("b", Some(CacheMark::FiveMinutes)),
            piece("c", None)
        ]
    );
    assert_eq!(request.messages.len(), 1);
}

#[test]
fn every_kind_of_content_is_read() {
    let read = parts(
        r#"[{"role":"user","content":[
        {"type":"text","text":"what is\tthis?","cache_control":{"type":"ephemeral","ttl":"1h"}},
        {"type":"image_url","image_url":{"url":"https://example.com/a.png","detail":"low"}},
        {"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}},
        {"type":"image_url","image_url":"https://example.com/b.png"},
        {"type":"input_audio","input_audio":{"data":"UklGRg==","format":"mp3"}},
        {"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}},
        {"type":"file","file":{"file_id":"file-abc"}}]}]"#,
    );
    let expected = [
        Part::Text {
            text: "what is\tthis?".into(),
            cache: Some(CacheMark::OneHour),
        },
        Part::Image(Media {
            detail: Some("low".into()),
            ..media(MediaSource::Url("https://example.com/a.png".into()))
        }),
        Part::Image(media(base64("image/png", "iVBORw0KGgo="))),
        Part::Image(media(MediaSource::Url("https://example.com/b.png".into()))),
        Part::Audio(media(base64("audio/mpeg", "UklGRg=="))),
        Part::File(Media {
            name: Some("a.pdf".into()),
            ..media(base64("application/pdf", "JVBERi0="))
        }),
        Part::File(media(MediaSource::Id("file-abc".into()))),
    ];
    assert_eq!(read, expected);
}

#[test]
fn results_find_the_tools_that_were_called() {
    let body = with_messages(
        r#"[{"role":"assistant","content":null,"tool_calls":[
        {"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Bonn\"}"}},
        {"id":"call_2","type":"function","function":{"name":"time","arguments":""}}]},
        {"role":"tool","tool_call_id":"call_2","content":[{"type":"text","text":"noon"}]},
        {"role":"tool","tool_call_id":"call_1","content":"rain"},
        {"role":"tool","tool_call_id":"call_9","content":"?"}]"#,
    );
    let request = read(&body);
    let call = |id: &'static str, name: &'static str, arguments: &'static str| {
        Part::ToolCall(ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            signature: None,
            cache: None,
        })
    };
    let result = |id: &'static str, name: &'static str, said: &'static str| Message {
        role: Role::User,
        parts: vec![Part::ToolResult(ToolResult {
            id: id.into(),
            name: name.into(),
            parts: vec![text(said)],
            is_error: false,
            cache: None,
        })],
    };
    let expected = [
        Message {
            role: Role::Assistant,
            parts: vec![
                call("call_1", "weather", r#"{"city":"Bonn"}"#),
                call("call_2", "time", "{}"),
            ],
        },
        result("call_2", "time", "noon"),
        result("call_1", "weather", "rain"),
        result("call_9", "", "?"),
    ];
    assert_eq!(request.messages, expected);
}

#[test]
fn functions_are_read_as_the_tools_that_they_became() {
    let body = r#"{"model":"m","functions":[{"name":"f","parameters":{"type":"object"}}],
        "function_call":{"name":"f"},"messages":[{"role":"user","content":"go"},
        {"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},
        {"role":"function","name":"f","content":"done"}]}"#;
    let request = read(body);
    assert_eq!(request.tools[0].name, "f");
    assert_eq!(request.tool_choice, Some(ToolChoice::Named("f".into())));
    let [Part::ToolCall(call)] = request.messages[1].parts.as_slice() else {
        panic!("{:?}", request.messages)
    };
    let [Part::ToolResult(result)] = request.messages[2].parts.as_slice() else {
        panic!("{:?}", request.messages)
    };
    assert_eq!((&result.id, &result.name), (&call.id, &call.name));
    assert!(request.left_out.is_empty());
}

#[test]
fn thinking_comes_back_with_its_signatures() {
    let shown = |text: &'static str, signature: Option<&'static str>| {
        Part::Thinking(Thinking::Shown {
            text: text.into(),
            signature: signature.map(Into::into),
        })
    };
    let signed = parts(
        r#"[{"role":"assistant","content":"42","reasoning_content":"hmm so",
        "thinking_blocks":[{"type":"thinking","thinking":"hmm","signature":"c2ln"},
        {"type":"redacted_thinking","data":"aGlkZGVu"}]}]"#,
    );
    let redacted = Part::Thinking(Thinking::Redacted {
        data: "aGlkZGVu".into(),
    });
    assert_eq!(signed, [shown("hmm", Some("c2ln")), redacted, text("42")]);
    for member in ["reasoning_content", "reasoning"] {
        let message = format!(r#"[{{"role":"assistant","content":"42","{member}":"hmm"}}]"#);
        assert_eq!(parts(&message), [shown("hmm", None), text("42")]);
    }
    // As Mistral has it in answers.
    let among = parts(
        r#"[{"role":"assistant","content":[{"type":"thinking",
        "thinking":[{"type":"text","text":"h"},{"type":"text","text":"m"}]},
        {"type":"text","text":"42"}]}]"#,
    );
    assert_eq!(among, [shown("hm", None), text("42")]);
}

#[test]
fn a_calls_signature_is_taken_out_of_its_id() {
    let body = with_messages(
        r#"[{"role":"assistant","tool_calls":[{"id":"call_1__thought__CiQ/a+b=","type":"function",
        "function":{"name":"f","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"call_1__thought__CiQ/a+b=","content":"ok"}]"#,
    );
    let request = read(&body);
    let [Part::ToolCall(call)] = request.messages[0].parts.as_slice() else {
        panic!("{:?}", request.messages)
    };
    assert_eq!(call.id, "call_1");
    assert_eq!(call.signature.as_deref(), Some("CiQ/a+b="));
    let [Part::ToolResult(result)] = request.messages[1].parts.as_slice() else {
        panic!("{:?}", request.messages)
    };
    assert_eq!((result.id.as_ref(), result.name.as_ref()), ("call_1", "f"));
}

#[test]
fn tools_and_choices_are_read() {
    let body = with_member(
        r#""tools":[{"type":"function","function":{"name":"f","description":"does it",
        "parameters":{"type":"object","properties":{}},"strict":true}},
        {"type":"custom","custom":{"name":"c"}}],"tool_choice":"required""#,
    );
    let request = read(&body);
    let [tool] = request.tools.as_slice() else {
        panic!("{:?}", request.tools)
    };
    assert_eq!(tool.description.as_deref(), Some("does it"));
    assert_eq!(tool.strict, Some(true));
    assert_eq!(
        tool.parameters.as_ref().unwrap().get(),
        r#"{"type":"object","properties":{}}"#
    );
    assert_eq!(request.tool_choice, Some(ToolChoice::Required));
    assert_eq!(request.left_out, ["tools[1] (custom)"]);
    for (choice, expected) in [
        (r#""auto""#, Some(ToolChoice::Auto)),
        (r#""none""#, Some(ToolChoice::None)),
        (r#""any""#, Some(ToolChoice::Required)),
        (
            r#"{"type":"function","function":{"name":"f"}}"#,
            Some(ToolChoice::Named("f".into())),
        ),
        ("null", None),
    ] {
        let body = with_member(&format!(r#""tool_choice":{choice}"#));
        assert_eq!(read(&body).tool_choice, expected, "{choice}");
    }
}

#[test]
fn the_answers_form_is_read() {
    let body = with_member(
        r#""response_format":{"type":"json_schema","json_schema":{"name":"city",
        "description":"where","strict":true,"schema":{"type":"object"}}}"#,
    );
    let Format::Schema(schema) = read(&body).format else {
        panic!("no schema")
    };
    assert_eq!((schema.name.as_ref(), schema.strict), ("city", Some(true)));
    assert_eq!(schema.schema.get(), r#"{"type":"object"}"#);
    for format in [
        r#"{"type":"json_object"}"#,
        r#"{"type":"json_schema","json_schema":{"name":"any"}}"#,
    ] {
        let body = with_member(&format!(r#""response_format":{format}"#));
        assert!(matches!(read(&body).format, Format::Json), "{format}");
    }
}

#[test]
fn what_has_no_form_elsewhere_is_named_by_its_path() {
    let body = r#"{"model":"m","messages":[{"role":"user","name":"ann","content":
        [{"type":"text","text":"hi","annotations":[]}]},
        {"role":"assistant","content":"x","audio":{"id":"a"}}],
        "logprobs":true,"top_logprobs":2,"logit_bias":{"50256":-100},"prediction":{"type":"content"},
        "web_search_options":{},"modalities":["text","audio"],"audio":{"voice":"alloy"},
        "store":true,"service_tier":"flex","stream_options":{"include_obfuscation":false},
        "reasoning_effort":"hardest","verbosity":"low","x":1,"user":"u","tool_choice":
        {"type":"allowed_tools","allowed_tools":{}}}"#;
    let expected = [
        "stream_options.include_obfuscation",
        "messages[0].content[0].annotations",
        "messages[0].name",
        "messages[1].audio",
        "tool_choice (allowed_tools)",
        "reasoning_effort (hardest)",
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "prediction",
        "web_search_options",
        "modalities",
        "audio",
        "store",
        "service_tier",
        "verbosity",
        "x",
    ];
    assert_eq!(left_out(body), expected);
}

#[test]
fn what_asks_for_nothing_is_not_left_out() {
    let body = with_member(
        r#""logprobs":false,"store":false,"modalities":["text"],"service_tier":"auto",
        "logit_bias":null,"stop":null,"tools":null,"reasoning_effort":null,"n":null"#,
    );
    assert_eq!(left_out(&body), Vec::<String>::new());
}

#[test]
fn faults_name_the_place() {
    let table = [
        (r#"{"messages":[]}"#, "model", "`model`"),
        (r#"{"model":"m"}"#, "messages", "`messages`"),
        (r#"{"model":"m","messages":{}}"#, "messages", "`messages`"),
        (r#"{"model":"m","messages":[],"n":2}"#, "n", "`n`"),
        (
            r#"{"model":"m","messages":[{"role":"robot"}]}"#,
            "messages",
            "`messages[0].role`",
        ),
        (
            r#"{"model":"m","messages":[{"role":"user","content":7}]}"#,
            "messages",
            "`messages[0].content`",
        ),
        (
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"video_url"}]}]}"#,
            "messages",
            "`messages[0].content[0].type`",
        ),
        (
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png,x"}}]}]}"#,
            "messages",
            "`messages[0].content[0].image_url`",
        ),
        (
            r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{}}]}]}"#,
            "messages",
            "`messages[0].tool_calls[0].function.name`",
        ),
        (
            r#"{"model":"m","messages":[{"role":"tool","content":"x"}]}"#,
            "messages",
            "`messages[0].tool_call_id`",
        ),
        (
            r#"{"model":"m","messages":[],"temperature":"hot"}"#,
            "temperature",
            "`temperature`",
        ),
        (
            r#"{"model":"m","messages":[],"stop":[1]}"#,
            "stop",
            "`stop`",
        ),
        (
            r#"{"model":"m","messages":[],"response_format":{"type":"xml"}}"#,
            "response_format",
            "`response_format.type`",
        ),
        (
            r#"{"model":"m","messages":[],"top_p":1,"top_p":0.5}"#,
            "top_p",
            "`top_p`",
        ),
    ];
    for (body, param, place) in table {
        let fault = fault(body);
        assert_eq!(fault.param, Some(param), "{body}");
        assert!(fault.message.starts_with(place), "{}", fault.message);
    }
}

#[test]
fn a_depth_bomb_does_not_overflow_the_stack() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    for body in [
        with_messages(&deep),
        with_messages(&format!(r#"[{{"role":"user","content":{deep}}}]"#)),
        with_member(&format!(
            r#""tools":[{{"type":"function","function":{deep}}}]"#
        )),
        with_member(&format!(r#""x":{deep}"#)),
    ] {
        drop(read_request(PathFacts::default(), body.as_bytes()));
    }
}
