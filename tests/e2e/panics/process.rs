//! A panic in a hook of the process's life: Envoy refuses to start and says why, or it serves and
//! later ends as asked. It never dies of a signal.

use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    process::ExitStatus,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use filter_envoy_abi::process_faults;
use tests::{http::Request, stack::Stack, wait};
use xtask::{process::Ask, stack::Variation};

use super::{Running, START, START_DEADLINE_MS, chat_body, show, stack_of_faults};

/// Envoys that run at the same time.
const AT_ONCE: usize = 4;
/// A provider's cluster leaves 5 s after its provider.
const CLUSTER_LEAVES: Duration = Duration::from_secs(10);
const STOP: Duration = Duration::from_secs(15);

/// What becomes of an Envoy whose first call of a hook panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It ends with a failure before it serves.
    RefusesToStart,
    /// It serves requests as if nothing had been.
    Serves,
}

fn fate(hook: &str) -> Fate {
    match hook {
        "program_init"
        | "http_filter.config_new"
        | "specifier.config_new"
        | "bootstrap.config_new" => Fate::RefusesToStart,
        _ => Fate::Serves,
    }
}

/// One Envoy from start to end; what was seen.
fn live(hook: &'static str, stack: &Stack, key: &str) -> String {
    let variation = Variation {
        env: vec![("TURNPIKE_FAULT".to_owned(), hook.into())],
        ..Variation::default()
    };
    let started = Instant::now();
    let deadline_ms = match hook {
        // What would release the listener is lost, so the deadline does.
        "bootstrap.scheduled" => 5_000,
        _ => START_DEADLINE_MS,
    };
    let mut envoy = Running::spawn(stack, &hook.replace('.', "-"), deadline_ms, &variation);
    let seen = match fate(hook) {
        Fate::RefusesToStart => refusal(hook, &mut envoy),
        Fate::Serves => service(hook, stack, key, &mut envoy),
    };
    assert_eq!(envoy.panics(), [hook], "one panic, and no other");
    format!("{hook}: {seen} ({:.1} s)", started.elapsed().as_secs_f32())
}

fn refusal(hook: &str, envoy: &mut Running) -> String {
    assert!(envoy.0.process.wait_gone(START), "{hook}: Envoy still runs");
    let status = exit_status(hook, envoy);
    assert!(!status.success(), "{hook}: {status}");
    let log = fs::read_to_string(envoy.0.process.log()).expect("a log");
    let said = log
        .lines()
        .find(|line| line.contains("[critical]"))
        .unwrap_or_else(|| panic!("{hook}: Envoy says no reason: {log}"));
    let reason = said.split('`').nth(1).unwrap_or(said);
    format!("refuses to start, {status}: {reason}")
}

fn service(hook: &str, stack: &Stack, key: &str, envoy: &mut Running) -> String {
    envoy.wait_ready();
    let ask = || {
        let answer = Request::chat(key, &chat_body("small")).send(envoy.0.gateway_port);
        answer.expect("an answer").status
    };
    // The filter of a request that could not be made costs that one request.
    let first = ask();
    let next = ask();
    assert_eq!(next, 200, "{hook}, then a request");
    bring_about(hook, stack, envoy);
    assert_eq!(ask(), 200, "{hook}, then a request");
    envoy.0.process.signal(Ask::Term);
    assert!(envoy.0.process.wait_gone(STOP), "{hook}: does not stop");
    let status = exit_status(hook, envoy);
    assert!(status.success(), "{hook}: {status}");
    format!("starts, answers {first} and {next}, stops with {status}")
}

/// Does what makes Envoy call a hook that a start and a request do not call.
fn bring_about(hook: &str, stack: &Stack, envoy: &Running) {
    match hook {
        "bootstrap.drain_started" => {
            let path = "/drain_listeners?graceful&skip_exit";
            let answer = xtask::http::request(envoy.0.admin_port, "POST", path, &[], "");
            assert_eq!(answer.expect("an answer").status, 200);
        }
        "bootstrap.cluster_add_or_update" => {
            let args = [
                "--base-url",
                "http://127.0.0.1:9/v1",
                "--credential-place",
                "none",
            ];
            stack.turnpike(&[&["providers", "create", "arriving"], args.as_slice()].concat());
        }
        "bootstrap.cluster_removal" => {
            stack.turnpike(&["providers", "delete", "leaving"]);
        }
        // A second after the start.
        "bootstrap.timer_fired" => {}
        _ => return,
    }
    wait::until(CLUSTER_LEAVES, &format!("a panic in {hook}"), || {
        envoy.panics().contains(&hook.to_owned()).then_some(())
    });
}

fn exit_status(hook: &str, envoy: &mut Running) -> ExitStatus {
    let status = envoy.0.process.exit_status().expect("our child");
    assert_eq!(status.signal(), None, "{hook}: Envoy crashed");
    status
}

#[test]
fn a_panic_in_a_hook_of_the_process_refuses_the_start_or_costs_nothing() {
    let stack = stack_of_faults();
    let key = stack.key("panics");
    stack.turnpike(&[
        "providers",
        "create",
        "leaving",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--credential-place",
        "none",
    ]);
    let hooks: Vec<&'static str> = process_faults().collect();
    let next = Mutex::new(hooks.iter());
    let seen = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(hook) = next.lock().ok().and_then(|mut next| next.next().copied()) {
                    let line = live(hook, &stack, &key);
                    seen.lock().expect("no panic while it is held").push(line);
                }
            });
        }
    });
    let mut seen = seen.into_inner().expect("every thread ended well");
    seen.sort_by_key(|line| hooks.iter().position(|hook| line.starts_with(hook)));
    show(
        "a panic in a hook of the process, and what became of it",
        &seen,
    );
    assert_eq!(seen.len(), hooks.len());
}
