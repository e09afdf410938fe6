//! The spool between a node and the ledger: full disks, damaged files, lost directories, and the
//! end of a process. What is lost is shown, and nothing counts twice.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use proto::metering::v1::{End, GapReason, UsageSource};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection, Row as _};
use tests::{
    http::{Answer, Request},
    ledger,
    stack::{Options, Stack},
    wait,
};
use xtask::{
    process::Ask,
    stack::{ControlPlane, ControlPlaneOptions},
};

/// Usage reaches the ledger within 5 s, and a full disk is looked at about once a second.
const SHOWN: Duration = Duration::from_secs(10);

fn chat(key: &str, id: &str, stream: bool) -> Request {
    let body = json!({
        "model": "small", "stream": stream,
        "messages": [{"role": "user", "content": format!("request {id}")}],
    });
    Request::chat(key, &body).header("x-request-id", id)
}

/// Asks once for each id; every answer is whole.
fn ask(port: u16, key: &str, ids: &[String]) {
    for id in ids {
        let answer = chat(key, id, false).send(port).expect("an answer");
        assert!(answer.status == 200 && answer.complete, "{}", answer.text());
    }
}

fn ids(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|at| format!("{prefix}-{at}")).collect()
}

/// Each id is in exactly one record.
fn assert_recorded(stack: &Stack, ids: &[String]) {
    for id in ids {
        stack.record_within(Duration::from_secs(40), id);
    }
}

fn records_of(stack: &Stack, ids: &[String]) -> usize {
    let of_ids = |id: &String| ids.contains(id);
    let records = stack.records();
    records
        .iter()
        .filter(|stored| of_ids(&stored.record.request_id))
        .count()
}

/// What the ledger knows to be lost, in the order it came: how many sequences, and why.
fn gaps(stack: &Stack) -> Vec<(i64, GapReason)> {
    let rows = ledger::runtime().expect("a runtime").block_on(async {
        let mut connection = PgConnection::connect(&stack.database_url).await?;
        sqlx::query(
            "select to_seq - from_seq + 1, reason from usage_gap order by seen_at, from_seq",
        )
        .fetch_all(&mut connection)
        .await
    });
    let gap = |row: &sqlx::postgres::PgRow| {
        let reason = GapReason::try_from(row.get::<i32, _>(1)).expect("a known reason");
        (row.get(0), reason)
    };
    rows.expect("the database answers")
        .iter()
        .map(gap)
        .collect()
}

fn wait_for_gaps(stack: &Stack, expected: &[(i64, GapReason)]) {
    wait::until(SHOWN, &format!("gaps {expected:?}"), || {
        (gaps(stack) == expected).then_some(())
    });
}

/// The spool's segments of a node with one worker, each boot's in order.
fn segments(state_dir: &Path) -> Vec<PathBuf> {
    let entries = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).expect("a directory").flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let boots = entries(&state_dir.join("boots"));
    let mut segments: Vec<PathBuf> = boots.iter().flat_map(|boot| entries(boot)).collect();
    segments.retain(|path| path.extension().is_some_and(|extension| extension == "seg"));
    segments.sort();
    segments
}

fn place_of(bytes: &[u8], id: &str) -> Option<usize> {
    bytes
        .windows(id.len())
        .position(|window| window == id.as_bytes())
}

#[test]
fn a_full_disk_costs_records_and_no_request_and_each_lost_one_is_shown() {
    let options = Options {
        module_dir: Some(crate::panics::fault_module()),
        ..Options::default()
    };
    let mut stack = Stack::start(&options);
    let key = stack.key("full-disk");
    let full = stack
        .envoys
        .first()
        .expect("an Envoy")
        .state_dir
        .join("disk-full");

    let before = ids("before", 3);
    ask(stack.port(), &key, &before);
    assert_recorded(&stack, &before);
    fs::write(&full, "").expect("written");
    let lost = ids("lost", 5);
    ask(stack.port(), &key, &lost);
    assert_eq!(gaps(&stack), []);
    fs::remove_file(&full).expect("removed");
    // Shown without another record on its way.
    wait_for_gaps(&stack, &[(5, GapReason::DiskFull)]);
    let after = ids("after", 3);
    ask(stack.port(), &key, &after);
    assert_recorded(&stack, &after);

    // Still full when the process ends: it tells the ledger itself.
    fs::write(&full, "").expect("written");
    let at_the_end = ids("at-the-end", 2);
    ask(stack.port(), &key, &at_the_end);
    let mut envoy = stack.envoys.remove(0);
    assert!(envoy.stop(), "it ends by itself");
    wait_for_gaps(
        &stack,
        &[(5, GapReason::DiskFull), (2, GapReason::DiskFull)],
    );

    fs::remove_file(&full).expect("removed");
    stack
        .envoys
        .push(stack.start_envoy("envoy-0", &options).expect("it starts"));
    let next = ids("next", 2);
    ask(stack.port(), &key, &next);
    assert_recorded(&stack, &next);
    assert_recorded(&stack, &[before, after].concat());
    assert_eq!(records_of(&stack, &[lost, at_the_end].concat()), 0);
    assert_eq!(gaps(&stack).len(), 2);
}

#[test]
fn a_state_directory_that_cannot_be_written_is_refused_by_its_name() {
    let options = Options {
        envoys: 0,
        ..Options::default()
    };
    let stack = Stack::start(&options);
    let folder = stack.state.envoy("envoy-0");
    fs::create_dir_all(&folder).expect("made");
    // Nobody can make files there, not even root.
    std::os::unix::fs::symlink("/proc", folder.join("state")).expect("linked");
    let refused = stack.start_envoy("envoy-0", &options);
    assert!(refused.is_err(), "it must not start without a spool");
    let log = fs::read_to_string(stack.state.logs().join("envoy-0.log")).expect("a log");
    let said = log.lines().find(|line| line.contains("cannot be written"));
    let said = said.unwrap_or_else(|| panic!("nothing of it in {log}"));
    let path = folder.join("state").display().to_string();
    assert!(said.contains("state_dir") && said.contains(&path), "{said}");
}

#[test]
fn a_state_directory_that_comes_back_empty_costs_only_what_was_not_sent() {
    let options = Options::default();
    let mut stack = Stack::start(&options);
    let key = stack.key("emptied");
    let sent = ids("sent", 3);
    ask(stack.port(), &key, &sent);
    assert_recorded(&stack, &sent);

    let mut first = stack.envoys.remove(0);
    first.process.stop(Ask::Kill, Duration::from_secs(5));
    fs::remove_dir_all(&first.state_dir).expect("removed");
    let again = stack.start_envoy("envoy-0", &options).expect("it starts");
    let state_dir = again.state_dir.clone();
    stack.envoys.push(again);
    let on_empty = ids("on-empty", 3);
    ask(stack.port(), &key, &on_empty);
    assert_recorded(&stack, &on_empty);
    assert_eq!(gaps(&stack), [], "the ledger had everything");

    // Under a living process: what goes into files without a name is missed within seconds.
    fs::remove_dir_all(state_dir.join("boots")).expect("removed");
    let unnamed = ids("unnamed", 2);
    ask(stack.port(), &key, &unnamed);
    let lost = wait::until(SHOWN, "every exchange is a record or in a gap", || {
        let lost: i64 = gaps(&stack).iter().map(|(count, _)| count).sum();
        let recorded = i64::try_from(records_of(&stack, &unnamed)).expect("fits");
        (lost + recorded == 2).then_some(lost)
    });
    assert!(lost > 0, "the first went with its directory");
    assert!(
        gaps(&stack)
            .iter()
            .all(|(_, reason)| *reason == GapReason::Lost)
    );
    let later = ids("later", 2);
    ask(stack.port(), &key, &later);
    assert_recorded(&stack, &[sent, on_empty, later].concat());
}

#[test]
fn a_spool_that_was_damaged_loses_what_was_damaged_and_says_so() {
    let options = Options::default();
    let mut stack = Stack::start(&options);
    let key = stack.key("torn");
    let port = stack.port();
    // With the ledger away, the spool holds everything.
    stack
        .control_plane
        .process
        .stop(Ask::Kill, Duration::from_secs(5));
    let settled = ids("settled", 20);
    ask(port, &key, &settled);
    let state_dir = stack.envoys.first().expect("an Envoy").state_dir.clone();
    let spool = || -> Vec<u8> {
        let segments = segments(&state_dir);
        segments
            .iter()
            .flat_map(|path| fs::read(path).expect("read"))
            .collect()
    };

    // Killed under load, when some of it is in the spool as well.
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for client in 0..4 {
            let (key, stop) = (&key, &stop);
            scope.spawn(move || {
                for at in 0.. {
                    let id = format!("load-{client}-{at}");
                    // Whoever is cut off by the kill sees no whole answer.
                    let cut = chat(key, &id, true).send(port).is_err();
                    if cut || stop.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        wait::until(Duration::from_secs(20), "load in the spool", || {
            place_of(&spool(), "load-3-2")
        });
        let mut envoy = stack.envoys.remove(0);
        envoy.process.stop(Ask::Kill, Duration::from_secs(5));
        stop.store(true, Ordering::Relaxed);
    });
    let [segment] = segments(&state_dir).try_into().expect("one segment");
    let mut bytes = fs::read(&segment).expect("read");
    let inside = place_of(&bytes, "settled-7").expect("in the spool");
    *bytes.get_mut(inside).expect("a byte") ^= 1;
    bytes.truncate(bytes.len() - 5);
    fs::write(&segment, &bytes).expect("written");

    restart_control_plane(&mut stack);
    stack
        .envoys
        .push(stack.start_envoy("envoy-0", &options).expect("it starts"));
    let sound: Vec<String> = settled.into_iter().filter(|id| id != "settled-7").collect();
    assert_recorded(&stack, &sound);
    wait_for_gaps(&stack, &[(1, GapReason::Torn), (1, GapReason::Torn)]);
    assert_eq!(records_of(&stack, &["settled-7".to_owned()]), 0);
    let records = stack.records();
    let mut seen: Vec<&str> = records
        .iter()
        .map(|stored| stored.record.request_id.as_str())
        .collect();
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count, "nothing counts twice");
}

fn restart_control_plane(stack: &mut Stack) {
    let access = &stack.control_plane.access;
    stack.control_plane = ControlPlane::start(
        &stack.programs,
        &stack.state,
        &ControlPlaneOptions {
            name: "control-plane".to_owned(),
            database_url: stack.database_url.clone(),
            grpc_port: access.grpc_port,
            http_port: stack.control_plane.http_port,
            env: Vec::new(),
        },
    )
    .expect("the control plane comes back");
}

#[test]
fn streams_that_are_open_at_sigterm_drain_or_are_cut_and_each_is_in_one_record() {
    let options = Options {
        concurrency: 2,
        ..Options::default()
    };
    let mut stack = Stack::start(&options);
    let key = stack.key("sigterm");
    let (short, long) = (ids("short", 5), ids("long", 5));
    let play = |id: &String, script: &Value| {
        let request = chat(&key, id, true).script(script);
        let mut open = request.open(stack.port()).expect("sent");
        open.read_until(|seen| place_of(seen, "\"content\"").is_some())
            .expect("content");
        open
    };
    // Ends within the time that a shutdown waits for open exchanges, and far beyond it.
    let two_s = json!({"chunks": 20, "chunk_delay_ms": 100});
    let a_minute = json!({"chunks": 600, "chunk_delay_ms": 100});
    let drained: Vec<_> = short.iter().map(|id| play(id, &two_s)).collect();
    let cut: Vec<_> = long.iter().map(|id| play(id, &a_minute)).collect();

    let port = stack.port();
    let mut envoy = stack.envoys.remove(0);
    assert!(envoy.process.signal(Ask::Term));
    let meanwhile = ids("meanwhile", 1);
    ask(port, &key, &meanwhile);
    let finish = |open: tests::http::Open| -> Answer { open.finish().expect("an answer") };
    assert!(
        drained
            .into_iter()
            .map(finish)
            .all(|answer| answer.complete)
    );
    assert!(cut.into_iter().map(finish).all(|answer| !answer.complete));
    assert!(envoy.process.wait_gone(Duration::from_secs(20)));

    // What the old process could not send in time is adopted by the next one.
    stack
        .envoys
        .push(stack.start_envoy("envoy-0", &options).expect("it starts"));
    for (ids, end) in [
        (&short, End::Complete),
        (&meanwhile, End::Complete),
        (&long, End::Shutdown),
    ] {
        for id in ids {
            let stored = stack.record_within(Duration::from_secs(40), id);
            assert_eq!(stored.record.end(), end, "{id}");
        }
    }
    for id in &long {
        let record = stack.record(id).record;
        let usage = record
            .attempts
            .first()
            .and_then(|attempt| attempt.usage.clone());
        let usage = usage.expect("usage");
        assert_eq!(usage.source(), UsageSource::Estimated, "{id}");
        assert!(usage.output > 0, "{id}");
    }
    let served = stack.served();
    assert_eq!(served.len(), 11);
    for attempt in served {
        let record = stack.record(&attempt.request_id).record;
        assert_eq!(record.attempts.len(), 1, "{}", attempt.request_id);
    }
    assert_eq!(gaps(&stack), []);
}
