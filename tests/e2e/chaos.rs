//! Metering and limits while everything is killed: two Envoys, two replicas of the control plane
//! and Postgres, each by SIGKILL, at moments drawn from a seed.
//!
//! A minute by default; `TURNPIKE_CHAOS_SECONDS` and `TURNPIKE_CHAOS_SEED` say otherwise. The seed
//! is printed and gives the same schedule again.

mod load;
mod schedule;

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use proto::{
    config::v1::{Enforcement, Limit, LimitUnit, LimitWindow, OnUnavailable},
    metering::v1::{End, UsageSource, Verdict},
};
use tests::{
    ledger::Stored,
    stack::{Options, Stack},
    truth::Served,
    wait,
};
use xtask::process::Ask;

use self::{
    load::{Class, Failure, Load},
    schedule::{Part, Strike, strikes},
};
use crate::limits::limit;

const ENVOYS: usize = 2;
const CLIENTS: usize = 8;
/// Backoff goes up to 30 s, and so does the time until dead processes are looked for.
const HEALED: Duration = Duration::from_secs(120);
/// Between a kill and what a client feels of it.
const FELT: Duration = Duration::from_secs(2);

fn from_env(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value}")))
}

fn drawn_seed() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    u64::from(since.subsec_nanos()) ^ since.as_secs()
}

/// Limits that everything counts on and nothing reaches. While nobody can be asked, they allow it.
fn wide(unit: LimitUnit, window: LimitWindow, amount: u64) -> Limit {
    let enforcement = match unit {
        LimitUnit::Money => Enforcement::Estimated,
        _ => Enforcement::Strict,
    };
    Limit {
        enforcement: enforcement.into(),
        on_unavailable: OnUnavailable::Allow.into(),
        outage_allowance: amount / 100,
        ..limit(unit, window, amount)
    }
}

#[test]
fn every_attempt_is_in_exactly_one_record_whatever_is_killed() {
    let seed = from_env("TURNPIKE_CHAOS_SEED").unwrap_or_else(drawn_seed);
    let length = Duration::from_secs(from_env("TURNPIKE_CHAOS_SECONDS").unwrap_or(60));
    tests::say(&format!("TURNPIKE_CHAOS_SEED={seed}, {length:?}"));
    let mut stack = Stack::start(&Options {
        envoys: ENVOYS,
        concurrency: 2,
        control_planes: 2,
        own_postgres: true,
        ..Options::default()
    });
    let key = stack.key("chaos");
    let limits = [
        ("money", LimitUnit::Money, LimitWindow::Lifetime, 1 << 50),
        ("requests", LimitUnit::Requests, LimitWindow::Day, 1 << 40),
        ("in-flight", LimitUnit::InFlight, LimitWindow::None, 1 << 20),
        ("rate", LimitUnit::Requests, LimitWindow::Minute, 1 << 24),
    ];
    for (id, unit, window, amount) in limits {
        stack.limit(id, wide(unit, window, amount));
    }
    let ports = stack.envoys.iter().map(|envoy| envoy.gateway_port);
    let load = Load::new(seed, key, ports.collect());
    let strikes = strikes(seed, length);
    let kills = thread::scope(|scope| {
        for client in 0..CLIENTS {
            let load = &load;
            scope.spawn(move || load.run(client));
        }
        let kills = play(&mut stack, &strikes, length);
        load.stop();
        kills
    });
    let failures = load.failures();
    tests::say(&format!(
        "{} requests, {} kills, {} failures",
        load.sent(),
        kills.len(),
        failures.len()
    ));
    assert_eq!(unexplained(&failures, &kills), Vec::<String>::new());
    assert!(
        kills.iter().any(|kill| matches!(kill.part, Part::Envoy(_))),
        "no Envoy was killed"
    );
    settle(&stack, &failures);
}

/// A kill, and when it was.
struct Kill {
    part: Part,
    at: Instant,
}

/// Plays the schedule against the stack.
fn play(stack: &mut Stack, strikes: &[Strike], length: Duration) -> Vec<Kill> {
    let start = Instant::now();
    let mut kills = Vec::new();
    for strike in strikes {
        thread::sleep(strike.after);
        for part in &strike.parts {
            tests::say(&format!("{:?}: {part:?} is killed", start.elapsed()));
            kills.push(Kill {
                part: *part,
                at: Instant::now(),
            });
            kill(stack, *part);
        }
        thread::sleep(strike.down);
        // The database is needed by the others.
        for part in &strike.parts {
            restart(stack, *part);
            tests::say(&format!("{:?}: {part:?} is back", start.elapsed()));
        }
    }
    thread::sleep(length.saturating_sub(start.elapsed()));
    kills
}

fn kill(stack: &mut Stack, part: Part) {
    let process = match part {
        Part::Postgres => stack.postgres.as_mut().map(|server| &mut server.process),
        Part::ControlPlane(at) => stack.control_plane(at).map(|one| &mut one.process),
        Part::Envoy(at) => stack.envoys.get_mut(at).map(|envoy| &mut envoy.process),
    };
    let process = process.expect("a part of the stack");
    process.stop(Ask::Kill, Duration::from_secs(5));
}

fn restart(stack: &mut Stack, part: Part) {
    let restarted = match part {
        Part::Postgres => stack.restart_postgres(),
        Part::ControlPlane(at) => stack.restart_control_plane(at),
        Part::Envoy(at) => stack.restart_envoy(at),
    };
    restarted.unwrap_or_else(|error| panic!("{part:?}: {error:#}"));
}

/// Failures that no kill of their Envoy explains.
fn unexplained(failures: &[Failure], kills: &[Kill]) -> Vec<String> {
    let is_explained = |failure: &Failure| {
        kills.iter().any(|kill| {
            let away = failure.at.max(kill.at) - failure.at.min(kill.at);
            kill.part == Part::Envoy(failure.envoy) && away <= FELT
        })
    };
    let unexplained = failures.iter().filter(|failure| !is_explained(failure));
    unexplained.map(|failure| format!("{failure:?}")).collect()
}

/// Waits until the ledger has everything, and compares it with the provider's own account.
fn settle(stack: &Stack, failures: &[Failure]) {
    let cut: BTreeSet<&str> = failures
        .iter()
        .map(|failure| failure.request_id.as_str())
        .collect();
    let mut found = Vec::new();
    let start = Instant::now();
    while start.elapsed() < HEALED {
        found = differences(&stack.served(), &stack.records(), &cut);
        if found.is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(500));
    }
    found.truncate(20);
    assert_eq!(found, Vec::<String>::new(), "not healed in {HEALED:?}");
    let (served, mut records) = (stack.served(), stack.records());
    let missing = served.last().expect("an attempt").request_id.clone();
    records.retain(|stored| stored.record.request_id != missing);
    let found = differences(&served, &records, &cut);
    assert_eq!(found.len(), 1, "a missing record is found: {found:?}");
    let crashed = records
        .iter()
        .filter(|stored| stored.record.end() == End::Crash);
    assert!(
        crashed.clone().count() > 0,
        "nothing was in flight at any kill"
    );
    tests::say(&format!(
        "healed in {:?}: {} records, {} of crashes",
        start.elapsed(),
        records.len(),
        crashed.count()
    ));
    for limit in ["money", "requests"] {
        let mut seen = (0, 0);
        wait::until(
            Duration::from_secs(10),
            "the counters equal the charges",
            || {
                let charged = stack
                    .records()
                    .iter()
                    .map(|stored| charged(stored, limit))
                    .sum();
                let settled = stack
                    .buckets(limit)
                    .iter()
                    .map(|bucket| bucket.settled)
                    .sum();
                seen = (charged, settled);
                (charged == settled).then_some(())
            },
        );
        assert!(seen.0 > 0, "{limit} was charged");
    }
}

/// What a record was charged on a limit.
fn charged(stored: &Stored, limit: &str) -> i64 {
    let charges = stored.record.charges.iter();
    let of_limit = charges.filter(|charge| charge.limit == limit);
    let settled = of_limit.map(|charge| charge.settled).sum::<u64>();
    i64::try_from(settled).expect("fits")
}

/// What differs between the truth and the ledger, in words.
fn differences(served: &[Served], records: &[Stored], cut: &BTreeSet<&str>) -> Vec<String> {
    let mut by_id: BTreeMap<&str, Vec<&Stored>> = BTreeMap::new();
    for stored in records {
        let of_id = by_id.entry(&stored.record.request_id).or_default();
        of_id.push(stored);
    }
    let mut attempts: BTreeMap<&str, Vec<&Served>> = BTreeMap::new();
    for attempt in served {
        let of_id = attempts.entry(&attempt.request_id).or_default();
        of_id.push(attempt);
    }
    let mut found = Vec::new();
    for (id, served) in attempts {
        match by_id.get(id).map(Vec::as_slice) {
            Some([stored]) => found.extend(compare(id, &served, stored, cut.contains(id))),
            Some(several) => found.push(format!("{id} is in {} records", several.len())),
            None => found.push(format!("{id} is in no record")),
        }
    }
    found
}

/// One request against its record; `cut` if its client got no answer.
fn compare(id: &str, served: &[&Served], stored: &Stored, cut: bool) -> Option<String> {
    let record = &stored.record;
    let is_crash = record.end() == End::Crash;
    if record.attempts.len() < served.len() {
        return Some(format!(
            "{id}: {} attempts reached the provider, {} are recorded",
            served.len(),
            record.attempts.len()
        ));
    }
    let class = Class::of(id);
    // Whoever leaves, or is cut off anyway, does not notice.
    if is_crash && !cut && !class.leaves_early() && class != Class::ProviderCut {
        return Some(format!("{id} is recorded as a crash, and was answered"));
    }
    let last = record.attempts.last()?;
    let usage = last.usage.clone().unwrap_or_default();
    let is_right = match class {
        // What was in flight is there as an estimate, unless the provider had said all, or failed.
        _ if is_crash && usage.source() == UsageSource::Reported => {
            let truth = served.last()?.tokens;
            (usage.input, usage.output) == (truth.input, truth.output)
        }
        _ if is_crash => matches!(usage.source(), UsageSource::Estimated | UsageSource::None),
        Class::Plain | Class::Stream | Class::Retry if !cut => {
            let truth = served.last()?.tokens;
            (usage.input, usage.output) == (truth.input, truth.output)
                && (record.end(), last.verdict(), usage.source())
                    == (End::Complete, Verdict::Billed, UsageSource::Reported)
        }
        _ => true,
    };
    (!is_right).then(|| format!("{id}: {:?} with {last:?}", record.end()))
}
