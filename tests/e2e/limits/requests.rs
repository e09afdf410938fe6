//! Limits on requests: by the minute, open at a time, of each end user, of each of many keys.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use proto::config::v1::{LimitSubject, LimitUnit, LimitWindow};
use serde_json::json;
use tests::{
    http::Request,
    stack::{Options, Stack},
    truth::Served,
    wait,
};

use super::{
    chat,
    crowd::{Said, hammer},
    limit,
};

const CLIENTS: usize = 32;

fn stack() -> Stack {
    Stack::start(&Options {
        envoys: 3,
        concurrency: 2,
        ..Options::default()
    })
}

fn ports(stack: &Stack) -> Vec<u16> {
    let envoys = stack.envoys.iter();
    envoys.map(|envoy| envoy.gateway_port).collect()
}

fn micros(served: &Served, name: &str) -> u64 {
    let value = served.entry.get(name).and_then(serde_json::Value::as_u64);
    value.expect("a moment")
}

/// `each` in turn, as fast as `CLIENTS` clients can, until `until`; how many were answered.
fn rush(until: Instant, each: impl Fn(usize) -> Said + Sync) -> usize {
    let (number, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while Instant::now() < until {
                    match each(number.fetch_add(1, Ordering::Relaxed)) {
                        Said::Answered => {
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        Said::Reserved(_) => thread::sleep(Duration::from_millis(20)),
                        said => panic!("{said:?}"),
                    }
                }
            });
        }
    });
    answered.into_inner()
}

#[test]
fn requests_per_minute_hold_over_all_envoys_and_are_used_up() {
    const PER_MINUTE: u64 = 1_200;
    const BURST: u64 = 30;
    let stack = stack();
    let key = stack.key("rate");
    let mut values = limit(LimitUnit::Requests, LimitWindow::Minute, PER_MINUTE);
    values.burst = BURST;
    stack.limit("rate", values);
    let ports = ports(&stack);
    let length = Duration::from_secs(20);
    rush(Instant::now() + length, |number| {
        let port = ports.get(number % ports.len()).expect("a port");
        let answer = chat(&key, &format!("rate-{number}"), number).send(*port);
        Said::by(&answer.expect("an answer"))
    });
    let mut at_us: Vec<u64> = stack
        .served()
        .iter()
        .map(|served| micros(served, "received_at_us"))
        .collect();
    at_us.sort_unstable();
    // In any stretch of time: its part of the minute, and the burst.
    let window_us = 5_000_000;
    let allowed = PER_MINUTE / 12 + BURST;
    let most = at_us
        .iter()
        .enumerate()
        .map(|(at, start)| at_us.partition_point(|other| *other < start + window_us) - at)
        .max();
    let most = u64::try_from(most.unwrap_or(0)).expect("fits");
    // The way to the provider shifts some across the edges of the stretch.
    assert!(most <= allowed + 5, "{most} in 5 s, {allowed} are allowed");
    let count = u64::try_from(at_us.len()).expect("fits");
    let whole = PER_MINUTE * length.as_secs() / 60;
    assert!(
        count * 10 >= whole * 7,
        "{count} of {whole} were let through"
    );
    tests::say(&format!(
        "{count} of {whole}, at most {most} of {allowed} in 5 s"
    ));
}

#[test]
fn a_node_that_comes_later_gets_its_share_of_what_another_holds() {
    let stack = Stack::start(&Options {
        envoys: 2,
        concurrency: 2,
        control_planes: 2,
        ..Options::default()
    });
    let key = stack.key("later");
    let limits = [
        ("rate", LimitUnit::Requests, LimitWindow::Minute, 1 << 24),
        ("in-flight", LimitUnit::InFlight, LimitWindow::None, 1 << 20),
    ];
    for (id, unit, window, amount) in limits {
        stack.limit(id, limit(unit, window, amount));
    }
    for port in ports(&stack) {
        let began = Instant::now();
        for number in 0..5 {
            let answer = chat(&key, "", number).send(port).expect("an answer");
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        tests::say(&format!("the first five took {:?}", began.elapsed()));
    }
}

#[test]
fn no_more_than_the_limit_are_in_flight_at_any_time() {
    const AT_A_TIME: u64 = 6;
    const OPEN_MS: u64 = 100;
    let stack = stack();
    let key = stack.key("in-flight");
    stack.limit(
        "in-flight",
        limit(LimitUnit::InFlight, LimitWindow::None, AT_A_TIME),
    );
    let ports = ports(&stack);
    rush(Instant::now() + Duration::from_secs(10), |number| {
        let port = ports.get(number % ports.len()).expect("a port");
        let body = json!({
            "model": "small", "messages": [{"role": "user", "content": format!("request {number}")}],
        });
        let request = Request::chat(&key, &body).script(&json!({"delay_ms": OPEN_MS}));
        Said::by(&request.send(*port).expect("an answer"))
    });
    let mut edges: Vec<(u64, i64)> = Vec::new();
    for served in stack.served() {
        let received_at_us = micros(&served, "received_at_us");
        // Not its end as the provider saw it: the client may have had the answer before.
        edges.push((received_at_us, 1));
        edges.push((received_at_us + OPEN_MS * 1_000, -1));
    }
    edges.sort_unstable();
    let mut open = 0;
    let most = edges.iter().map(|(_, step)| {
        open += step;
        open
    });
    let most = most.max().expect("some");
    assert_eq!(most, i64::try_from(AT_A_TIME).expect("fits"));
    let count = edges.len() / 2;
    // 10 s, a slot for 100 ms each: 600.
    assert!(count >= 300, "only {count} were let through");
    tests::say(&format!("{count} of 600, at most {most} at a time"));
    wait::until(Duration::from_secs(10), "every slot is free", || {
        let idle = stack.buckets("in-flight");
        let settled = idle.iter().map(|bucket| bucket.settled).sum::<i64>();
        (settled == 0).then_some(())
    });
}

#[test]
fn each_end_user_gets_exactly_its_own() {
    const USERS: usize = 20;
    const EACH: usize = 5;
    let stack = stack();
    let key = stack.key("users");
    let mut values = limit(
        LimitUnit::Requests,
        LimitWindow::Lifetime,
        u64::try_from(EACH).expect("fits"),
    );
    values.subject = LimitSubject::EndUser.into();
    stack.limit("each-user", values);
    let ports = ports(&stack);
    let counts = Mutex::new(BTreeMap::<String, usize>::new());
    thread::scope(|scope| {
        for user in 0..USERS {
            let (key, ports, counts) = (&key, &ports, &counts);
            scope.spawn(move || {
                let user = format!("user-{user}");
                let met = hammer(2, ports, |number| {
                    let body = json!({
                        "model": "small", "user": user,
                        "messages": [{"role": "user", "content": format!("request {number}")}],
                    });
                    Request::chat(key, &body)
                });
                assert_eq!(met.strange, Vec::<String>::new());
                assert_eq!(met.spent.len(), 2);
                let mut counts = counts.lock().expect("no client panics");
                counts.insert(user, met.answered.len());
            });
        }
    });
    let counts = counts.into_inner().expect("no client panics");
    assert!(counts.values().all(|count| *count == EACH), "{counts:?}");
    // One whom nobody names is not one of them.
    let answer = chat(&key, "nobody", 0)
        .send(stack.port())
        .expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    wait::until(Duration::from_secs(10), "the counters are exact", || {
        let buckets = stack.buckets("each-user");
        let is_exact = |settled: i64| settled == 5;
        let all = buckets.iter().all(|bucket| is_exact(bucket.settled));
        (buckets.len() == USERS && all).then_some(())
    });
}

#[test]
fn each_of_a_thousand_keys_gets_exactly_its_own() {
    const KEYS: usize = 1_000;
    const EACH: usize = 3;
    let stack = stack();
    let ids: Vec<String> = (0..KEYS).map(|at| format!("key-{at}")).collect();
    let keys = stack.keys(&ids);
    let mut values = limit(
        LimitUnit::Requests,
        LimitWindow::Lifetime,
        u64::try_from(EACH).expect("fits"),
    );
    values.subject = LimitSubject::Key.into();
    stack.limit("each-key", values);
    let ports = ports(&stack);
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let began = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while let Some(key) = keys.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let met = hammer(1, &ports, |number| chat(key, "", number));
                    if met.answered.len() != EACH || !met.strange.is_empty() {
                        wrong.lock().expect("no client panics").push(met);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no client panics");
    assert!(
        wrong.is_empty(),
        "{} keys: {:?}",
        wrong.len(),
        wrong.first()
    );
    tests::say(&format!("{KEYS} keys in {:?}", began.elapsed()));
    assert_eq!(stack.served().len(), KEYS * EACH);
    wait::until(Duration::from_secs(20), "the counters are exact", || {
        let buckets = stack.buckets("each-key");
        let all = buckets.iter().all(|bucket| bucket.settled == 3);
        (buckets.len() == KEYS && all).then_some(())
    });
}
