//! Recorded answers, byte for byte and with their pauses, through a real Envoy.

use std::{
    fs,
    path::{Path, PathBuf},
};

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
    let cases = golden("");
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

/// The folder of a golden case.
fn golden(case: &str) -> PathBuf {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/cases");
    cases.join(case)
}

/// Two providers whose credentials differ, and a model that falls from the first to the second.
fn two_providers(port: u16, secrets: &Path) -> String {
    let mut documents = String::new();
    for (id, secret) in [("a", "prov-a-key"), ("b", "prov-b-key")] {
        let file = secrets.join(id);
        fs::write(&file, secret).expect("written");
        let file = file.display();
        documents.push_str(&format!(
            "kind: Provider\nid: {id}\nspec:\n  baseUrl: http://127.0.0.1:{port}/face/{id}/v1\n---\n\
             kind: Credential\nid: {id}\nspec:\n  provider: {id}\n  secretFile: {file}\n---\n"
        ));
    }
    documents.push_str(
        "kind: Model\nid: chat-default\nspec:\n  targets:\n  - provider: a\n    upstreamModel: a-small\n  \
         - provider: b\n    upstreamModel: b-large-2026\n",
    );
    documents
}

#[test]
fn case_07_a_429_falls_to_the_next_target_with_its_own_model_path_and_credential() {
    let name = "07-fallback-429-next-target-right-model";
    let cases = golden("");
    let stack = Stack::start(&Options {
        provider_args: vec!["--cases-dir".to_owned(), cases.display().to_string()],
        ..Options::default()
    });
    let key = stack.key("case-07");
    let secrets = tempfile::tempdir().expect("a folder");
    stack.apply(&two_providers(stack.provider.port, secrets.path()));
    let folder = cases.join(name);
    let (body, expect) = (
        read(&folder.join("request.json")),
        read(&folder.join("expect.json")),
    );
    let body = body.pointer("/body").expect("a body");
    let answer = Request::chat(&key, body)
        .script(&json!({"case": name}))
        .send(stack.port())
        .expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json = answer.json();
    let text = json.pointer("/choices/0/message/content");
    assert_eq!(text, expect.pointer("/client/text"));
    let served = stack.served();
    let seen: Vec<(&str, &str)> = served
        .iter()
        .map(|served| {
            let of = |name: &str| served.entry.get(name).and_then(Value::as_str);
            (of("face").expect("a face"), of("model").expect("a model"))
        })
        .collect();
    assert_eq!(seen, [("a", "a-small"), ("b", "b-large-2026")]);
    let header = |at: usize, name: &str| {
        let headers = served.get(at)?.entry.get("headers")?.as_array()?;
        let found = headers
            .iter()
            .find(|header| header.get(0) == Some(&json!(name)))?;
        found.get(1)?.as_str().map(str::to_owned)
    };
    assert_ne!(header(0, "authorization"), header(1, "authorization"));
    let length = served
        .get(1)
        .and_then(|served| served.entry.get("body_bytes"))
        .cloned();
    assert_eq!(
        header(1, "content-length"),
        length.map(|length| length.to_string())
    );
    let id = answer.header("x-request-id").expect("an id");
    let again = Request::chat(&key, body).send(stack.port());
    assert_eq!(again.expect("an answer").status, 200);
    let last = stack.served().pop().expect("one more");
    let left_alone = "`a` is not asked before its Retry-After";
    assert_eq!(last.entry.get("face"), Some(&json!("b")), "{left_alone}");
    let record = stack.record(id).record;
    let usage = record
        .attempts
        .get(1)
        .and_then(|attempt| attempt.usage.as_ref())
        .expect("usage");
    assert_eq!(
        (record.attempts.len(), usage.input, usage.output),
        (2, 6, 2)
    );
}

/// `short` answers with the first of `responses`, `long` with the second.
fn too_long(responses: [&str; 2]) -> (Stack, tempfile::TempDir) {
    let folder = golden("08-context-length-error-to-long-model");
    let cases = tempfile::tempdir().expect("a folder");
    let case = cases.path().join("too-long");
    fs::create_dir(&case).expect("made");
    for (response, place) in responses.iter().zip(["", "-2"]) {
        let place = case.join(format!("upstream-response{place}.txt"));
        fs::copy(folder.join(response), place).expect("copied");
    }
    let stack = Stack::start(&Options {
        provider_args: vec!["--cases-dir".to_owned(), cases.path().display().to_string()],
        ..Options::default()
    });
    let mut documents = String::new();
    for (model, upstream, window) in [
        ("chat-default", "s-8k", 8192),
        ("short", "s-8k", 8192),
        ("tiny", "t-4k", 4096),
        ("long", "l-128k", 131_072),
    ] {
        documents.push_str(&format!(
            "kind: Model\nid: {model}\nspec:\n  targets:\n  - provider: demo\n    \
             upstreamModel: {upstream}\n  contextWindow: {window}\n---\n"
        ));
    }
    documents.push_str(
        "kind: RuleSet\nspec:\n  rules:\n  - name: by-length\n    matchModel: chat-default\n    \
         models: [short, tiny, long]\n    contextLengthPatterns: [exceeds the model window]\n",
    );
    stack.apply(&documents);
    (stack, cases)
}

#[test]
fn case_08_a_prompt_that_is_too_long_goes_to_the_long_target_whatever_the_wording() {
    let expect = read(&golden("08-context-length-error-to-long-model").join("expect.json"));
    for first in ["upstream-response.txt", "upstream-response-2.txt"] {
        let (stack, _cases) = too_long([first, "upstream-response-3.txt"]);
        let key = stack.key("case-08");
        let filler = "text ".repeat(9001);
        let body =
            json!({"model": "chat-default", "messages": [{"role": "user", "content": filler}]});
        let answer = Request::chat(&key, &body)
            .script(&json!({"case": "too-long"}))
            .send(stack.port())
            .expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let json = answer.json();
        let text = json.pointer("/choices/0/message/content");
        assert_eq!(text, expect.pointer("/client/text"));
        let served = stack.served();
        let models: Vec<_> = served.iter().map(|one| &one.entry["model"]).collect();
        assert_eq!(models, ["s-8k", "l-128k"]);
        let record = stack
            .record(answer.header("x-request-id").expect("an id"))
            .record;
        let attempts = record.attempts.iter();
        let usage: Vec<_> = attempts
            .map(|attempt| {
                attempt
                    .usage
                    .as_ref()
                    .map(|usage| (usage.input, usage.output))
            })
            .collect();
        assert_eq!(usage, [Some((0, 0)), Some((9001, 1))]);
    }
}
