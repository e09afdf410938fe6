//! OpenAI's own SDKs work through the gateway: what they show is what the provider served, and is
//! in the ledger.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use proto::metering::v1::{Attempt, UsageSource};
use serde_json::Value;
use tests::{
    stack::{Options, Stack},
    truth::{Served, Tokens},
};

/// The cases that both SDKs run, and how many requests of each reach the provider.
const CASES: [(&str, usize); 19] = [
    ("plain", 1),
    ("streamed", 1),
    ("streamed_with_usage", 1),
    ("chunks", 2),
    ("concurrent", 4),
    ("tools", 2),
    ("tools_streamed", 1),
    ("models", 0),
    ("bad_request", 0),
    ("authentication", 0),
    ("permission", 0),
    ("not_found", 0),
    ("provider_bad_request", 1),
    ("provider_unauthorized", 1),
    ("broken_stream", 1),
    ("retries_of_one_target", 3),
    ("retries_after_a_wait", 2),
    ("retries_of_a_plan", 2),
    ("fall_over", 2),
];

/// A program with an SDK in its reach. It takes its text from standard input.
struct Runtime {
    command: Command,
}

/// An answer or error, as a case saw it.
struct Seen {
    case: String,
    request_id: String,
    tokens: Option<Tokens>,
}

// === impl Runtime ===

impl Runtime {
    /// `python3` with nothing but its own library and the pinned packages.
    fn python() -> Self {
        let dir = folder("TURNPIKE_SDK_PYTHON_DIR", xtask::sdks::python);
        let mut runtime = Self::new("python3");
        runtime.command.env("PYTHONPATH", dir).args(["-S", "-B"]);
        runtime
    }

    /// `node`, which looks for modules from where it stands when its program has no file.
    fn node() -> Self {
        let dir = folder("TURNPIKE_SDK_NODE_DIR", xtask::sdks::node);
        let mut runtime = Self::new("node");
        runtime.command.current_dir(dir).arg("--input-type=module");
        runtime
    }

    /// Without what steers an SDK or a proxy from outside.
    fn new(program: &str) -> Self {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let upper = name.to_string_lossy().to_uppercase();
            let steers = ["OPENAI_", "PYTHON", "NODE_"]
                .iter()
                .any(|prefix| upper.starts_with(prefix));
            if steers || upper.ends_with("_PROXY") {
                command.env_remove(name);
            }
        }
        Self { command }
    }

    /// Runs a program to its end and gives its standard output; panics with all that it said if it
    /// fails.
    fn run(mut self, stack: &Stack, key: &str, program: &str, args: &[&str]) -> String {
        let url = format!("http://127.0.0.1:{}", stack.port());
        self.command
            .env("TURNPIKE_URL", url)
            .env("TURNPIKE_KEY", key);
        self.command.arg("-").args(args);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("program");
        std::fs::write(&file, program).expect("written");
        let input = std::fs::File::open(&file).expect("just written");
        let output = self.command.stdin(Stdio::from(input)).output();
        let output = output.expect("the runtime was found when its SDK was installed");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{}\n--- it printed\n{said}--- and said\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        said
    }
}

/// What `cargo xtask test` hands over; else it is installed now.
fn folder(variable: &str, install: impl FnOnce() -> anyhow::Result<PathBuf>) -> PathBuf {
    std::env::var_os(variable).map_or_else(
        || install().unwrap_or_else(|error| panic!("{error:#}")),
        PathBuf::from,
    )
}

fn source(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a root");
    std::fs::read_to_string(root.join(path)).expect("a file of the repository")
}

// === impl Seen ===

impl Seen {
    fn parse(line: &str) -> Self {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        let text = |name: &str| {
            line.get(name)
                .and_then(Value::as_str)
                .expect(name)
                .to_owned()
        };
        let usage = line.get("usage").and_then(Value::as_object);
        Self {
            case: text("case"),
            request_id: text("request_id"),
            tokens: usage.map(|usage| {
                let count = |name: &str| usage.get(name).and_then(Value::as_u64).expect(name);
                Tokens {
                    input: count("input"),
                    cached_input: count("cached_input"),
                    output: count("output"),
                    reasoning: count("reasoning"),
                }
            }),
        }
    }
}

/// Runs every case and compares what it saw with the provider's log and the ledger.
fn run_cases(mut runtime: Runtime, program: &str) {
    let stack = Stack::start(&Options::default());
    let key = stack.key("sdk");
    let create = ["keys", "create", "narrow", "--team", "demo"];
    let narrow = stack.turnpike(&[&create[..], &["--models", "pair", "--wait"]].concat());
    runtime.command.env("TURNPIKE_NARROW_KEY", narrow.trim());
    let names = CASES.map(|(name, _)| name);
    let printed = runtime.run(&stack, &key, program, &names);

    let seen: Vec<Seen> = printed.lines().map(Seen::parse).collect();
    let cases: BTreeSet<&str> = seen.iter().map(|seen| seen.case.as_str()).collect();
    assert_eq!(cases, BTreeSet::from(names), "each case saw something");
    let served = stack.served();
    for (case, requests) in CASES {
        let of_case = served.iter().filter(|served| case_of(served) == case);
        assert_eq!(of_case.count(), requests, "requests of {case}");
    }
    compare(&stack, &seen, served);
}

fn case_of(served: &Served) -> &str {
    let headers = served.entry.get("headers").and_then(Value::as_array);
    let pairs = headers.into_iter().flatten().filter_map(Value::as_array);
    let mut values = pairs.filter_map(|pair| match pair.as_slice() {
        [name, value] if name == "x-sdk-case" => value.as_str(),
        _ => None,
    });
    values.next().expect("a case")
}

/// Every exchange is in one record with all its attempts, and nothing else is.
fn compare(stack: &Stack, seen: &[Seen], served: Vec<Served>) {
    let mut exchanges: BTreeMap<String, Vec<Served>> = BTreeMap::new();
    for served in served {
        let attempts = exchanges.entry(served.request_id.clone()).or_default();
        attempts.push(served);
    }
    for (request_id, served) in &exchanges {
        let record = stack.record(request_id).record;
        assert_eq!(record.attempts.len(), served.len(), "{request_id}");
        for (attempt, served) in record.attempts.iter().zip(served) {
            assert_eq!(u64::from(attempt.status), served.status, "{request_id}");
            if served.usage_sent {
                assert_eq!(reported(attempt), Some(served.tokens), "{request_id}");
            }
        }
        let shown = seen.iter().find(|seen| seen.request_id == *request_id);
        if let Some(tokens) = shown.and_then(|seen| seen.tokens) {
            let last = record.attempts.last().expect("an attempt");
            assert_eq!(reported(last), Some(tokens), "{request_id}");
        }
    }
    for seen in seen.iter().filter(|seen| seen.tokens.is_some()) {
        let is_served = exchanges.contains_key(&seen.request_id);
        assert!(is_served, "{}: nobody served what it saw", seen.case);
    }
    // Those that never reached the provider have had as long to come as those that did.
    assert_eq!(
        stack.records().len(),
        exchanges.len(),
        "refusals in the ledger"
    );
}

fn reported(attempt: &Attempt) -> Option<Tokens> {
    let usage = attempt.usage.as_ref()?;
    (usage.source() == UsageSource::Reported).then_some(Tokens {
        input: usage.input,
        cached_input: usage.cached_input,
        output: usage.output,
        reasoning: usage.reasoning,
    })
}

#[test]
fn the_python_sdk_works_and_its_usage_is_the_ledgers() {
    run_cases(Runtime::python(), &source("tests/sdks/python/cases.py"));
}

#[test]
fn the_node_sdk_works_and_its_usage_is_the_ledgers() {
    run_cases(Runtime::node(), &source("tests/sdks/node/cases.mjs"));
}

#[test]
fn the_examples_of_the_readme_stream_an_answer() {
    let stack = Stack::start(&Options::default());
    stack.apply(
        "kind: Model\nid: demo\nspec:\n  targets:\n  - provider: demo\n    upstreamModel: demo-large\n",
    );
    let key = stack.key("readme");
    let readme = source("README.md");
    for (language, runtime) in [("python", Runtime::python()), ("js", Runtime::node())] {
        let marker = format!("```{language}\n");
        let blocks: Vec<&str> = readme.split(&marker).skip(1).collect();
        let [block] = blocks[..] else {
            panic!("the README has {} examples in {language}", blocks.len());
        };
        let (example, _) = block.split_once("\n```").expect("the block's end");
        let printed = runtime.run(&stack, &key, example, &[]);
        // The demo provider's answer quotes the question.
        assert!(printed.contains("Hello"), "{language}: {printed}");
    }
    assert_eq!(stack.served().len(), 2);
}
