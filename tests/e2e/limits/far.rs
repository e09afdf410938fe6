//! Away from a limit's edge nothing leaves the process.

use std::time::Duration;

use proto::config::v1::{LimitSubject, LimitUnit, LimitWindow};
use tests::{
    metrics::metric,
    stack::{Options, Stack},
    wait,
};

use super::{PRICE_NUSD, chat, limit};

type Wide = (&'static str, LimitSubject, LimitUnit, LimitWindow, u64);

/// Of every kind, each far away.
const LIMITS: [Wide; 5] = [
    (
        "budget",
        LimitSubject::Everything,
        LimitUnit::Money,
        LimitWindow::Month,
        1_000_000 * PRICE_NUSD,
    ),
    (
        "tokens",
        LimitSubject::Team,
        LimitUnit::Tokens,
        LimitWindow::Day,
        1 << 40,
    ),
    (
        "requests",
        LimitSubject::Key,
        LimitUnit::Requests,
        LimitWindow::Hour,
        1_000_000,
    ),
    (
        "rate",
        LimitSubject::Key,
        LimitUnit::Requests,
        LimitWindow::Minute,
        1_000_000,
    ),
    (
        "in-flight",
        LimitSubject::Team,
        LimitUnit::InFlight,
        LimitWindow::None,
        10_000,
    ),
];

#[test]
fn far_from_every_limit_no_request_waits_for_the_control_plane() {
    let stack = Stack::start(&Options {
        concurrency: 2,
        ..Options::default()
    });
    let key = stack.key("far");
    for (id, subject, unit, window, amount) in LIMITS {
        let mut values = limit(unit, window, amount);
        values.subject = subject.into();
        stack.limit(id, values);
    }
    let admin_port = stack.envoys.first().expect("an Envoy").admin_port;
    let wants = |urgency: &str| {
        let label = format!("urgency=\"{urgency}\"");
        metric(admin_port, "lease_wants_total", &[&label]).expect("metrics")
    };
    let ask = |from: usize, count: usize| {
        for number in from..from + count {
            let answer = chat(&key, &format!("far-{number}"), number).send(stack.port());
            let answer = answer.expect("an answer");
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    };
    // Nobody holds credit yet: the first ones have to ask, and show that asking is counted.
    ask(0, 100);
    wait::until(
        Duration::from_secs(5),
        "the first wants are counted",
        || (wants("urgent") > 0).then_some(()),
    );
    // Past the flush of what came before.
    std::thread::sleep(Duration::from_millis(1_500));
    let before = wants("urgent");
    ask(100, 500);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(
        wants("urgent") - before,
        0,
        "{} asked ahead",
        wants("ahead")
    );
    let connected = metric(admin_port, "lease_connected", &[]).expect("metrics");
    assert_eq!(connected, 1);
}
