//! Recorded answers, byte for byte and with their pauses, through a real Envoy.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tests::{
    http::Request,
    stack::{Options, Stack},
};

const CASES: [&str; 3] = [
    "02-usage-in-every-chunk-cut-mid-json",
    "03-utf8-cut-inside-character",
    "04-usage-chunk-without-choices",
];

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn recorded_answers_come_through_and_are_metered_as_expected() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/cases");
    let stack = Stack::start(&Options {
        provider_args: vec!["--cases-dir".to_owned(), cases.display().to_string()],
        ..Options::default()
    });
    let key = stack.key("cases");
    for name in CASES {
        let folder = cases.join(name);
        let expect = read(&folder.join("expect.json"));
        let mut body = read(&folder.join("request.json"))
            .pointer("/body")
            .cloned()
            .expect("a body");
        if let Some(model) = body.get_mut("model") {
            *model = json!("small");
        }
        let answer = Request::chat(&key, &body)
            .script(&json!({"case": name}))
            .send(stack.port())
            .expect("an answer");
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        assert!(answer.complete, "{name} is cut");
        let whole = expect.pointer("/client/body").is_some();
        if whole {
            let direct = Request::new("POST", "/v1/chat/completions")
                .json(&body)
                .script(&json!({"case": name}))
                .send(stack.provider.port)
                .expect("the provider answers");
            assert_eq!(answer.text(), direct.text(), "{name} is not byte for byte");
        } else {
            assert!(answer.text().ends_with("data: [DONE]\n\n"), "{name}");
            for event in answer.events() {
                let choices = event.get("choices").and_then(Value::as_array);
                assert!(
                    choices.is_some_and(|choices| !choices.is_empty()),
                    "{name}: {event}"
                );
                assert!(event.get("usage").is_none(), "{name}: {event}");
            }
        }
        let id = answer.header("x-request-id").expect("a request id");
        let record = stack.record(id).record;
        let usage = record
            .attempts
            .first()
            .and_then(|attempt| attempt.usage.clone());
        let usage = usage.expect("usage");
        let expected = |field: &str| {
            expect
                .pointer(&format!("/metering/{field}"))
                .and_then(Value::as_u64)
                .expect(field)
        };
        assert_eq!(usage.input, expected("prompt_total"), "{name}");
        assert_eq!(usage.cached_input, expected("cache_read"), "{name}");
        assert_eq!(usage.output, expected("output"), "{name}");
    }
}
