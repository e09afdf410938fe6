//! A panic in a hook costs one request a 500 or a cut; the same Envoy serves the next one.

use std::{
    env, fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use filter_envoy_abi::REQUEST_FAULTS;
use serde_json::json;
use tests::{
    http::Request,
    stack::{Options, Stack},
    wait,
};

/// No client may be left waiting longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Hooks that only trailers, schedulers or slow readers reach.
const NOT_REACHED: [&str; 8] = [
    "downstream.request_trailers",
    "downstream.response_trailers",
    "downstream.scheduled",
    "downstream.above_watermark",
    "downstream.below_watermark",
    "upstream.request_trailers",
    "upstream.response_trailers",
    "upstream.scheduled",
];

fn fault_module() -> PathBuf {
    let folder = env::var_os("TURNPIKE_FAULT_MODULE_DIR");
    folder
        .map(PathBuf::from)
        .expect("TURNPIKE_FAULT_MODULE_DIR is not set: run the tests by `cargo xtask test`")
}

#[test]
fn a_panic_in_a_hook_costs_one_request_and_not_the_process() {
    let stack = Stack::start(&Options {
        module_dir: Some(fault_module()),
        ..Options::default()
    });
    let key = stack.key("panics");
    let envoy = stack.envoys.first().expect("an Envoy");
    let log = stack.state.logs().join("envoy-0.log");
    let mut seen = Vec::new();
    for hook in REQUEST_FAULTS {
        // A local reply needs a provider that breaks off.
        let script = match *hook {
            "downstream.local_reply" => json!({"cut_after_chunks": 2, "chunk_delay_ms": 5}),
            _ => json!({}),
        };
        let body = json!({
            "model": "small", "stream": true,
            "messages": [{"role": "user", "content": "Hello"}],
        });
        let request = Request::chat(&key, &body);
        let before = panics(&log);
        let asked = Instant::now();
        let answer = request
            .clone()
            .script(&script)
            .header("x-turnpike-test-fault", hook)
            .send(envoy.gateway_port);
        let outcome = match answer {
            Ok(answer) if answer.complete => answer.status.to_string(),
            Ok(answer) => format!("{} and a cut", answer.status),
            Err(_) => "a cut".to_owned(),
        };
        assert!(
            asked.elapsed() < PATIENCE,
            "{hook} leaves the client waiting"
        );
        if !NOT_REACHED.contains(hook) {
            wait::until(
                Duration::from_secs(5),
                &format!("a panic in {hook}"),
                || (panics(&log) > before).then_some(()),
            );
        }
        seen.push(format!("{hook}: {outcome}"));
        let next = request.send(envoy.gateway_port).expect("an answer");
        assert_eq!(next.status, 200, "after a panic in {hook}: {}", next.text());
        assert!(next.complete, "after a panic in {hook}");
    }
    for served in stack.served() {
        stack.record(&served.request_id);
    }
    let reached = seen.len() - NOT_REACHED.len();
    assert_eq!(panics(&log), reached, "{seen:#?}");
    let alive = fs::exists(format!("/proc/{}", envoy.process.pid())).expect("a look at /proc");
    assert!(alive, "the same process serves");
    // Shown by `--nocapture`, and when the test fails.
    drop(std::io::Write::write_all(
        &mut std::io::stdout(),
        format!("{seen:#?}\n").as_bytes(),
    ));
}

/// Panics that Envoy's log tells of so far.
fn panics(log: &std::path::Path) -> usize {
    fs::read_to_string(log)
        .map(|text| text.lines().filter(|line| line.contains("panic")).count())
        .unwrap_or_default()
}
