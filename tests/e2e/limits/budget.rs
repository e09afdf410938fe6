//! One strict budget, hammered by 64 clients through three Envoys of two workers each.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use proto::{
    admin::v1::Bucket,
    config::v1::{LimitUnit, LimitWindow},
};
use tests::{
    stack::{Options, Stack},
    wait,
};
use xtask::process::Ask;

use super::{
    PRICE_NUSD, bound_nusd, chat,
    crowd::{Met, hammer},
    limit,
};

const CLIENTS: usize = 64;
const FITTING: u64 = 600;
/// Enough for the bound of the last that fits, not for another one.
const AMOUNT_NUSD: u64 = FITTING * PRICE_NUSD + PRICE_NUSD / 2;

/// A node's backoff goes up to 30 s, and so does the time until it looks for dead processes.
const HEALED: Duration = Duration::from_secs(90);

fn stack() -> (Stack, String) {
    let stack = Stack::start(&Options {
        envoys: 3,
        concurrency: 2,
        ..Options::default()
    });
    let key = stack.key("budget");
    stack.limit(
        "budget",
        limit(LimitUnit::Money, LimitWindow::Lifetime, AMOUNT_NUSD),
    );
    assert!((PRICE_NUSD..PRICE_NUSD * 3 / 2).contains(&bound_nusd()));
    (stack, key)
}

fn ports(stack: &Stack) -> Vec<u16> {
    let envoys = stack.envoys.iter();
    envoys.map(|envoy| envoy.gateway_port).collect()
}

/// What the provider billed, whoever knows of it.
fn billed_nusd(stack: &Stack) -> u64 {
    let served = stack.served();
    let billed = served.iter().filter(|served| served.status == 200);
    PRICE_NUSD * u64::try_from(billed.count()).expect("fits")
}

/// Money of every record in the ledger, and charges to the budget.
fn recorded_nusd(stack: &Stack) -> (u64, u64) {
    let records = stack.records();
    let records = records.iter().map(|stored| &stored.record);
    let costs = records
        .clone()
        .flat_map(|record| &record.attempts)
        .flat_map(|attempt| &attempt.costs);
    let charges = records.flat_map(|record| &record.charges);
    (
        costs.filter_map(|cost| cost.cost_nusd).sum(),
        charges.map(|charge| charge.settled).sum(),
    )
}

/// The counter once it equals what is in the ledger, and the money of the records there. Of what a
/// dead process had open nobody knows what it cost: the ledger has all that it can have cost, and
/// the budget is charged that.
fn settled_bucket(stack: &Stack, limit: Duration) -> (Bucket, u64) {
    wait::until(limit, "the counter equals the ledger", || {
        let (costs, charges) = recorded_nusd(stack);
        let bucket = stack.bucket("budget");
        let settled = u64::try_from(bucket.settled).expect("not negative");
        let is_whole = stack.records().len() >= stack.served().len();
        (is_whole && settled == charges && costs == charges).then_some((bucket, costs))
    })
}

/// Nobody was told that the budget is spent while the next one would have fitted.
fn assert_no_false_refusal(met: &Met) {
    for refused in &met.spent {
        // No more than these can have been settled by then.
        let begun = met.answered.iter().filter(|began| *began < refused);
        let settled = PRICE_NUSD * u64::try_from(begun.count()).expect("fits");
        assert!(
            settled + bound_nusd() > AMOUNT_NUSD,
            "told to be spent with at most {settled} of {AMOUNT_NUSD} settled"
        );
    }
}

#[test]
fn a_strict_budget_lets_through_exactly_what_fits() {
    let (stack, key) = stack();
    let began = Instant::now();
    let met = hammer(CLIENTS, &ports(&stack), |number| {
        chat(&key, &format!("budget-{number}"), number)
    });
    assert_eq!(met.strange, Vec::<String>::new());
    assert_eq!((met.lost, met.unavailable), (0, 0));
    assert_eq!(met.spent.len(), CLIENTS);
    assert_no_false_refusal(&met);
    assert_eq!(
        u64::try_from(met.answered.len()).expect("fits"),
        FITTING,
        "after {:?}; {} reserved, at most {} in a row",
        began.elapsed(),
        met.reserved,
        met.longest_streak,
    );
    assert_eq!(billed_nusd(&stack), FITTING * PRICE_NUSD);
    let (bucket, costs) = settled_bucket(&stack, Duration::from_secs(5));
    assert_eq!(costs, FITTING * PRICE_NUSD);
    assert_eq!(
        bucket.settled,
        i64::try_from(FITTING * PRICE_NUSD).expect("fits")
    );
    assert_eq!(
        bucket.remaining,
        bucket.amount - bucket.settled - bucket.held - bucket.suspended
    );
    assert_eq!(bucket.suspended, 0);
    tests::say(&format!(
        "{FITTING} of {FITTING} in {:?}; {} reserved, at most {} in a row",
        began.elapsed(),
        met.reserved,
        met.longest_streak
    ));
}

#[test]
fn a_strict_budget_is_not_exceeded_though_envoys_and_the_control_plane_are_killed() {
    let (mut stack, key) = stack();
    let sent = AtomicUsize::new(0);
    let ports = ports(&stack);
    let met = thread::scope(|scope| {
        let (sent, ports, key) = (&sent, &ports, &key);
        let crowd = scope.spawn(move || {
            hammer(CLIENTS, ports, |number| {
                sent.store(number, Ordering::Relaxed);
                chat(key, &format!("budget-{number}"), number)
            })
        });
        let reached = |number: usize| {
            wait::until(Duration::from_secs(60), "requests", || {
                (sent.load(Ordering::Relaxed) >= number || crowd.is_finished()).then_some(())
            });
        };
        reached(100);
        kill_envoy(&mut stack, 0);
        stack.restart_envoy(0).expect("it starts");
        reached(250);
        let control_plane = &mut stack.control_plane.process;
        control_plane.stop(Ask::Kill, Duration::from_secs(5));
        thread::sleep(Duration::from_millis(500));
        stack.restart_control_plane(0).expect("it starts");
        reached(400);
        kill_envoy(&mut stack, 1);
        stack.restart_envoy(1).expect("it starts");
        crowd.join().expect("no client panics")
    });
    assert_eq!(met.strange, Vec::<String>::new());
    assert!(met.lost > 0, "the kills were felt");
    let billed = billed_nusd(&stack);
    assert!(billed <= AMOUNT_NUSD, "{billed} of {AMOUNT_NUSD} is billed");
    let (bucket, _) = settled_bucket(&stack, HEALED);
    assert!(bucket.settled <= bucket.amount, "{bucket:?}");
    // What the dead held came back: everybody was told that it is spent, and it was.
    let bound = i64::try_from(bound_nusd()).expect("fits");
    assert!(bucket.settled + bound > bucket.amount, "{bucket:?}");
    assert_eq!(bucket.suspended, 0, "{bucket:?}");
    tests::say(&format!(
        "{} answered, {} lost, {} unavailable, {} reserved, at most {} in a row; {bucket:?}",
        met.answered.len(),
        met.lost,
        met.unavailable,
        met.reserved,
        met.longest_streak
    ));
}

fn kill_envoy(stack: &mut Stack, at: usize) {
    let envoy = stack.envoys.get_mut(at).expect("an Envoy");
    envoy.process.stop(Ask::Kill, Duration::from_secs(5));
}
