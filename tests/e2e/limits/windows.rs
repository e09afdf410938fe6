//! The end of an hour, which the database's clock brings near.

use std::{
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use proto::config::v1::{LimitUnit, LimitWindow};
use tests::{
    metrics::metric,
    stack::{Options, Stack},
    wait,
};

use super::{chat, limit};

const AMOUNT: u64 = 10_000;
const BEFORE_S: u64 = 45;
const HOUR_S: u64 = 3_600;

#[test]
fn the_next_window_is_there_when_it_begins_and_nobody_waits_for_it() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let into_hour_s = now.expect("after 1970").as_secs() % HOUR_S;
    let to_end_s = HOUR_S - into_hour_s;
    let offset_s = i64::try_from(to_end_s).expect("fits") - i64::try_from(BEFORE_S).expect("fits");
    let stack = Stack::start(&Options {
        envoys: 2,
        concurrency: 2,
        clock_offset_s: offset_s,
        ..Options::default()
    });
    let key = stack.key("windows");
    stack.limit(
        "hourly",
        limit(LimitUnit::Requests, LimitWindow::Hour, AMOUNT),
    );
    let mut numbers = 0..;
    let mut ask_all = || {
        for envoy in &stack.envoys {
            let number = numbers.next().expect("endless");
            let answer = chat(&key, &format!("hour-{number}"), number).send(envoy.gateway_port);
            let answer = answer.expect("an answer");
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    };
    let urgent = || -> u64 {
        let wants = stack.envoys.iter().map(|envoy| {
            let label = "urgency=\"urgent\"";
            metric(envoy.admin_port, "lease_wants_total", &[label]).expect("metrics")
        });
        wants.sum()
    };
    for _ in 0..20 {
        ask_all();
    }
    thread::sleep(Duration::from_millis(1_500));
    let before = urgent();
    assert_eq!(stack.buckets("hourly").len(), 1, "one window so far");
    // Steadily, until the next hour has been going on for some seconds.
    wait::until(
        Duration::from_secs(BEFORE_S + 30),
        "the next window is used",
        || {
            ask_all();
            thread::sleep(Duration::from_millis(100));
            let buckets = stack.buckets("hourly");
            (buckets.len() > 1 && buckets.iter().all(|bucket| bucket.settled > 20)).then_some(())
        },
    );
    thread::sleep(Duration::from_millis(1_500));
    assert_eq!(urgent() - before, 0, "nobody waited at the roll");
    wait::until(Duration::from_secs(10), "each window has its own", || {
        let settled = stack
            .buckets("hourly")
            .iter()
            .map(|bucket| bucket.settled)
            .sum::<i64>();
        let served = i64::try_from(stack.served().len()).expect("fits");
        (settled == served).then_some(())
    });
    let mut starts: Vec<i64> = stack
        .buckets("hourly")
        .iter()
        .filter_map(|bucket| Some(bucket.window_start_time?.seconds))
        .collect();
    starts.sort_unstable();
    let [first, second] = starts.try_into().expect("two windows");
    assert_eq!(second - first, i64::try_from(HOUR_S).expect("fits"));
    assert_eq!(first % i64::try_from(HOUR_S).expect("fits"), 0);
}
