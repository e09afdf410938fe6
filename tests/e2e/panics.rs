//! A panic in a hook costs at most one request and never the process.
//!
//! The module is a build that panics on demand: where a request's header, or the environment, says.

mod exports;
mod process;
mod requests;

use std::{env, fs, path::PathBuf, time::Duration};

use serde_json::{Value, json};
use tests::stack::{Options, Stack};
use xtask::{
    http,
    ports::free_port,
    process::Ask,
    stack::{Envoy, EnvoyOptions, Tokens, Variation},
};

/// An Envoy that has to wait for its start deadline is ready by then.
const START: Duration = Duration::from_secs(30);
/// Time that Envoy has for its first config before it opens its listener without one.
const START_DEADLINE_MS: u64 = 15_000;

pub(crate) fn fault_module() -> PathBuf {
    let folder = env::var_os("TURNPIKE_FAULT_MODULE_DIR");
    folder
        .map(PathBuf::from)
        .expect("TURNPIKE_FAULT_MODULE_DIR is not set: run the tests by `cargo xtask test`")
}

/// Everything but an Envoy, for Envoys that can panic.
fn stack_of_faults() -> Stack {
    Stack::start(&Options {
        envoys: 0,
        module_dir: Some(fault_module()),
        ..Options::default()
    })
}

fn chat_body(model: &str) -> Value {
    json!({
        "model": model, "stream": true,
        "messages": [{"role": "user", "content": "Hello"}],
    })
}

/// An Envoy that goes with its test.
struct Running(Envoy);

impl Running {
    /// Starts one and does not wait.
    fn spawn(stack: &Stack, name: &str, start_deadline_ms: u64, variation: &Variation<'_>) -> Self {
        let options = EnvoyOptions {
            name: name.to_owned(),
            gateway_port: free_port().expect("a port"),
            admin_port: free_port().expect("a port"),
            control_plane: stack.control_plane.access.url(),
            tokens: Tokens::open(&stack.state).expect("tokens"),
            concurrency: 1,
            start_deadline_ms,
            log_level: "info".to_owned(),
        };
        let envoy = Envoy::spawn(&stack.programs, &stack.state, &options, variation);
        Self(envoy.expect("Envoy starts"))
    }

    /// Waits until it serves.
    fn wait_ready(&mut self) {
        let (admin, gateway) = (self.0.admin_port, self.0.gateway_port);
        let serves = || http::is_ok(admin, "/ready") && http::is_ok(gateway, "/healthz");
        let ready = self.0.process.wait_ready(START, serves);
        ready.unwrap_or_else(|error| panic!("{error:#}"));
    }

    /// Panics that its log tells of so far, by hook.
    fn panics(&self) -> Vec<String> {
        let log = fs::read_to_string(self.0.process.log()).unwrap_or_default();
        let named = |line: &str| {
            let (_, rest) = line.split_once("panic in ")?;
            Some(rest.split(' ').next()?.to_owned())
        };
        log.lines().filter_map(named).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.process.stop(Ask::Kill, Duration::from_secs(5));
    }
}

/// Written past the test runner, which would keep it to itself when the test passes.
fn show(title: &str, lines: &[String]) {
    let text = format!("{title}\n  {}\n", lines.join("\n  "));
    drop(std::io::Write::write_all(
        &mut std::io::stdout(),
        text.as_bytes(),
    ));
}
