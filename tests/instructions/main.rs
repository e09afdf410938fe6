//! The core's budget in user-space instructions, per request and per event of a stream. They are
//! counted by callgrind, since a count does not depend on what else the machine does.
//!
//! The program counted is `filter/core/examples/one_request`, built for release: two runs that
//! differ by a number of requests, or of events, differ in instructions by those alone.
#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what is wrong by a panic, and shows what it counted"
)]

use std::{fs, path::PathBuf, process::Command};

use xtask::{debian::VALGRIND, layout::target};

/// For a request of 1 KB, from its first hook to its usage record.
const REQUEST_MAX: u64 = 40_000;
/// For an event of 170 bytes; a quarter above what was counted when this was written.
const EVENT_MAX: u64 = 5_500;

/// What a run has before its first counted request, so that tables and buffers are warm.
const WARM: u64 = 50;
const REQUESTS: u64 = 500;
const EVENTS: u64 = 100;

/// The program, as `cargo xtask test` names it; else where cargo puts it.
fn program() -> PathBuf {
    let program = std::env::var_os("TURNPIKE_ONE_REQUEST").map_or_else(
        || target().join("release/examples/one_request"),
        PathBuf::from,
    );
    assert!(
        program.exists(),
        "{} is not built: cargo build --release -p filter-core --example one_request",
        program.display()
    );
    program
}

/// Instructions of a whole run.
fn instructions(requests: u64, kind: &str, events: u64) -> u64 {
    let valgrind = VALGRIND.ensure().unwrap_or_else(|e| panic!("{e:#}"));
    let folder = tempfile::tempdir().expect("a folder");
    let counted = folder.path().join("callgrind.out");
    let output = Command::new(valgrind)
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", counted.display()))
        .arg(program())
        .args([&requests.to_string(), kind, &events.to_string()])
        .output()
        .expect("valgrind runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let counted = fs::read_to_string(counted).expect("callgrind's figures");
    let total = counted
        .lines()
        .find_map(|line| line.strip_prefix("summary: "));
    total
        .and_then(|total| total.trim().parse().ok())
        .expect("callgrind's summary")
}

/// Instructions of one request with so many events.
fn of_a_request(kind: &str, events: u64) -> u64 {
    let (few, many) = (
        instructions(WARM, kind, events),
        instructions(WARM + REQUESTS, kind, events),
    );
    (many - few) / REQUESTS
}

/// Instructions of one event, in the middle of streams.
fn of_an_event(kind: &str) -> u64 {
    let (none, some) = (
        instructions(WARM, kind, 0),
        instructions(WARM, kind, EVENTS),
    );
    (some - none) / (WARM * EVENTS)
}

fn assert_within(what: &str, counted: u64, max: u64) {
    println!("{what}: {counted} instructions, at most {max} allowed");
    // A tenth of the budget is less than the work can take: something was not run.
    assert!(
        counted > max / 10,
        "{what}: {counted} instructions can't be"
    );
    assert!(
        counted <= max,
        "{what}: {counted} instructions, at most {max} are allowed"
    );
}

#[test]
fn a_plain_request_stays_within_its_instructions() {
    assert_within("plain request", of_a_request("plain", 0), REQUEST_MAX);
}

#[test]
fn a_stream_and_its_events_stay_within_their_instructions() {
    assert_within("stream", of_a_request("stream", 0), REQUEST_MAX);
    assert_within("event of a stream", of_an_event("stream"), EVENT_MAX);
}

#[test]
fn a_stream_that_is_stripped_stays_within_its_instructions() {
    let kind = "stripped";
    assert_within("stripped stream", of_a_request(kind, 0), REQUEST_MAX);
    assert_within("event of a stripped stream", of_an_event(kind), EVENT_MAX);
}
