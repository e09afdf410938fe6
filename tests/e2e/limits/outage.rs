//! Without a control plane: credit at hand is spent, and at its end a limit does what it says.

use std::{
    thread,
    time::{Duration, Instant},
};

use proto::config::v1::{LimitUnit, LimitWindow, OnUnavailable};
use tests::{
    stack::{Options, Stack},
    wait,
};
use xtask::process::Ask;

use super::{chat, crowd::Said, limit};

const AMOUNT: u64 = 1_000;
const ALLOWANCE: u64 = 7;
/// Credit may be spent for 15 s after the last beat that was answered.
const TTL: Duration = Duration::from_secs(15);

fn stack(on_unavailable: OnUnavailable) -> (Stack, String) {
    let stack = Stack::start(&Options::default());
    let key = stack.key("outage");
    let mut values = limit(LimitUnit::Requests, LimitWindow::Lifetime, AMOUNT);
    values.on_unavailable = on_unavailable.into();
    if on_unavailable == OnUnavailable::Allow {
        values.outage_allowance = ALLOWANCE;
    }
    stack.limit("requests", values);
    (stack, key)
}

fn ask(stack: &Stack, key: &str, at: usize) -> Said {
    let answer = chat(key, &format!("outage-{at}"), at).send(stack.port());
    Said::by(&answer.expect("an answer"))
}

fn kill_control_plane(stack: &mut Stack) -> Instant {
    let process = &mut stack.control_plane.process;
    process.stop(Ask::Kill, Duration::from_secs(5));
    Instant::now()
}

/// Everything that is answered until the first that is not.
fn answered(stack: &Stack, key: &str, from: usize) -> (usize, Said) {
    let mut at = from;
    loop {
        match ask(stack, key, at) {
            Said::Answered => at += 1,
            said => return (at - from, said),
        }
    }
}

#[test]
fn credit_at_hand_is_spent_without_a_control_plane_and_then_the_limit_is_unavailable() {
    let (mut stack, key) = stack(OnUnavailable::Reject);
    assert!(matches!(ask(&stack, &key, 0), Said::Answered));
    let held = u64::try_from(stack.bucket("requests").held).expect("not negative");
    assert!(held > 1, "some credit is at hand: {held}");
    kill_control_plane(&mut stack);
    let (count, said) = answered(&stack, &key, 1);
    assert!(matches!(said, Said::Unavailable(_)), "{said:?}");
    assert!(count >= 1, "credit at hand is spent");
    let count = u64::try_from(count).expect("fits");
    assert!(count < AMOUNT, "no more than was granted: {count}");

    stack.restart_control_plane(0).expect("it starts");
    wait::until(Duration::from_secs(40), "it goes on by itself", || {
        matches!(ask(&stack, &key, 5_000), Said::Answered).then_some(())
    });
    // Not one is lost or counted twice.
    wait::until(Duration::from_secs(10), "the counter is exact", || {
        let served = i64::try_from(stack.served().len()).expect("fits");
        (stack.bucket("requests").settled == served).then_some(())
    });
}

#[test]
fn credit_is_not_spent_for_longer_than_its_time() {
    let (mut stack, key) = stack(OnUnavailable::Reject);
    assert!(matches!(ask(&stack, &key, 0), Said::Answered));
    kill_control_plane(&mut stack);
    assert!(matches!(ask(&stack, &key, 1), Said::Answered));
    thread::sleep(TTL + Duration::from_millis(500));
    let said = ask(&stack, &key, 2);
    assert!(matches!(said, Said::Unavailable(_)), "{said:?}");
}

#[test]
fn a_limit_that_allows_it_lets_its_allowance_through_and_no_more() {
    let (mut stack, key) = stack(OnUnavailable::Allow);
    assert!(matches!(ask(&stack, &key, 0), Said::Answered));
    kill_control_plane(&mut stack);
    // What is at hand is not to be told from the allowance, until its time is over.
    thread::sleep(TTL + Duration::from_millis(500));
    let (count, said) = answered(&stack, &key, 1);
    assert!(matches!(said, Said::Unavailable(_)), "{said:?}");
    assert_eq!(u64::try_from(count).expect("fits"), ALLOWANCE);

    stack.restart_control_plane(0).expect("it starts");
    wait::until(Duration::from_secs(50), "the allowance is charged", || {
        let served = i64::try_from(stack.served().len()).expect("fits");
        (stack.bucket("requests").settled == served).then_some(())
    });
}
