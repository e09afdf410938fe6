//! Every invariant, for many seeds; and that each of them notices what it is there for.
//!
//! `TURNPIKE_SIM_SEEDS=n` runs n seeds instead of 200, `TURNPIKE_SIM_SEED=n` that one alone, with
//! what happened last.
#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what is wrong by a panic, and a replay what happened"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use tests_sim::mutant::Mutant;
use tests_sim::{Outcome, run};

const SEEDS: u64 = 200;
const THREADS: usize = 2;
/// Failures after which a thread stops.
const FAILURES: usize = 3;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

/// Runs a seed; none: it panicked.
fn outcome(seed: u64, mutant: Option<Mutant>) -> Option<Outcome> {
    catch_unwind(AssertUnwindSafe(|| run(seed, mutant, false))).ok()
}

/// Why a seed failed; none: it did not.
fn failure(seed: u64) -> Option<(u64, String)> {
    let Some(outcome) = outcome(seed, None) else {
        return Some((seed, "panicked".to_owned()));
    };
    let violation = outcome.violation?;
    let (steps, invariant, what) = (outcome.steps, violation.invariant, violation.what);
    Some((
        seed,
        format!("event {steps}: invariant {invariant}: {what}"),
    ))
}

/// Runs seeds until there are none, or until enough have failed.
fn failures(next: &AtomicU64, seeds: u64) -> Vec<(u64, String)> {
    let mut failures = Vec::new();
    while failures.len() < FAILURES {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= seeds {
            break;
        }
        failures.extend(failure(seed));
    }
    failures
}

#[test]
fn every_invariant_holds_for_every_seed() {
    if let Some(seed) = number("TURNPIKE_SIM_SEED") {
        replay(seed);
        return;
    }
    let seeds = number("TURNPIKE_SIM_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(0);
    let began = Instant::now();
    let failures: Vec<_> = thread::scope(|scope| {
        let workers = [(); THREADS].map(|()| scope.spawn(|| failures(&next, seeds)));
        let joined = workers.map(|worker| worker.join().expect("panics are caught"));
        joined.into_iter().flatten().collect()
    });
    println!(
        "{seeds} seeds in {:?} on {THREADS} threads",
        began.elapsed()
    );
    for (seed, what) in &failures {
        println!("seed {seed}, {what}");
    }
    if let Some((seed, _)) = failures.first() {
        replay(*seed);
    }
    assert_eq!(failures, []);
}

/// Runs a seed again, and shows what happened last.
fn replay(seed: u64) {
    let outcome = run(seed, None, true);
    for event in &outcome.log {
        println!("{event}");
    }
    println!("{} events, {:?}", outcome.steps, outcome.tally);
    assert_eq!(outcome.violation, None, "seed {seed}");
}

#[test]
fn a_seed_is_the_same_run_each_time() {
    for seed in [3, 14] {
        let first = run(seed, None, true);
        assert_eq!(run(seed, None, true), first);
        assert!(first.steps > 1_000);
    }
}

#[test]
fn seeds_differ_and_cover_what_can_happen() {
    let mut whole = tests_sim::truth::Tally::default();
    for seed in 0..20 {
        let tally = run(seed, None, false).tally;
        whole.admitted += tally.admitted;
        whole.waited += tally.waited;
        whole.spent += tally.spent;
        whole.reserved += tally.reserved;
        whole.too_fast += tally.too_fast;
        whole.unavailable += tally.unavailable;
        whole.gone += tally.gone;
        whole.crashed += tally.crashed;
        whole.cut += tally.cut;
    }
    let counts = [
        whole.admitted,
        whole.waited,
        whole.spent,
        whole.reserved,
        whole.too_fast,
        whole.unavailable,
        whole.gone,
        whole.crashed,
        whole.cut,
    ];
    assert!(counts.iter().all(|count| *count > 0), "{whole:?}");
}

/// A mutant breaks the invariant within the seeds of the tests. It may break others before, each of
/// which ends its seed.
#[track_caller]
fn breaks(mutant: Mutant, invariant: u8) {
    for seed in 0..SEEDS {
        let Some(outcome) = outcome(seed, Some(mutant)) else {
            panic!("{mutant:?} panics with seed {seed}");
        };
        if outcome
            .violation
            .is_some_and(|violation| violation.invariant == invariant)
        {
            return;
        }
    }
    panic!("nobody notices {mutant:?}");
}

#[test]
fn invariant_1_notices_a_lost_leases_charge_taken_from_what_is_held() {
    breaks(Mutant::SettlesLostFromHeld, 1);
}

#[test]
fn invariant_1_notices_a_grant_by_an_old_amount() {
    breaks(Mutant::GrantsByOldAmount, 1);
}

#[test]
fn invariant_2_notices_lost_credit_that_is_free_at_once() {
    breaks(Mutant::FreesLostCredit, 2);
}

#[test]
fn invariant_3_notices_an_allowance_that_is_renewed() {
    breaks(Mutant::RenewsAllowance, 3);
}

#[test]
fn invariant_4_notices_a_grant_on_a_stale_snapshot() {
    breaks(Mutant::GrantsOnStaleSnapshot, 4);
}

#[test]
fn invariant_4_notices_a_reservation_that_refills_a_new_epoch() {
    breaks(Mutant::RefillsNewEpoch, 4);
}

#[test]
fn invariant_5_notices_a_batch_that_counts_again() {
    breaks(Mutant::IgnoresCursor, 5);
}

#[test]
fn invariant_5_notices_a_charge_in_the_window_of_its_arrival() {
    breaks(Mutant::ChargesWindowOfArrival, 5);
}

#[test]
fn invariant_6_notices_an_open_table_that_nobody_reads() {
    breaks(Mutant::ForgetsOpenTable, 6);
}

#[test]
fn invariant_6_notices_a_slot_that_is_free_before_its_record_is_written() {
    breaks(Mutant::FreesSlotFirst, 6);
}

#[test]
fn invariant_7_notices_a_reservation_for_one_who_went_away() {
    breaks(Mutant::ReservesForTheGone, 7);
}

#[test]
fn invariant_8_notices_missing_credit_taken_for_a_refusal() {
    breaks(Mutant::RefusesOnLocalMiss, 8);
}

#[test]
fn invariant_8_notices_idle_credit_that_nobody_asks_back() {
    breaks(Mutant::NeverRecalls, 8);
}
