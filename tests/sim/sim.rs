//! Every invariant, for many seeds; and that each of them notices what it is there for.
//!
//! `TURNPIKE_SIM_SEEDS=n` runs n seeds instead of 200, `TURNPIKE_SIM_SEED=n` that one alone, with
//! what happened last.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tests_sim::mutant::Mutant;
use tests_sim::{Outcome, run};

const SEEDS: u64 = 200;
/// Seeds run on as many threads as there are processors, and two at least.
const THREADS: usize = 2;
/// Failures that are shown.
const SHOWN: usize = 5;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

/// Runs a seed; a panic counts as a failure.
fn outcome(seed: u64, mutant: Option<Mutant>, is_logged: bool) -> Result<Outcome, u64> {
    catch_unwind(AssertUnwindSafe(|| run(seed, mutant, is_logged))).map_err(|_| seed)
}

/// Why a seed failed; none: it did not.
fn failure(seed: u64) -> Option<String> {
    match outcome(seed, None, false) {
        Err(seed) => Some(format!("seed {seed} panicked")),
        Ok(outcome) => {
            let violation = outcome.violation?;
            let invariant = violation.invariant;
            Some(format!(
                "seed {seed}, event {}: invariant {invariant}: {}",
                outcome.steps, violation.what
            ))
        }
    }
}

#[test]
fn every_invariant_holds_for_every_seed() {
    if let Some(seed) = number("TURNPIKE_SIM_SEED") {
        return replay(seed);
    }
    let seeds = number("TURNPIKE_SIM_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(0);
    let began = Instant::now();
    let failures: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let mut failures = Vec::new();
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= seeds || failures.len() >= SHOWN {
                            return failures;
                        }
                        failures.extend(failure(seed));
                    }
                })
            })
            .collect();
        let joined = workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"));
        joined.flatten().collect()
    });
    let each = began.elapsed() / u32::try_from(seeds.max(1)).unwrap_or(u32::MAX);
    println!("{seeds} seeds, {each:?} each on {THREADS} threads");
    assert!(
        failures.is_empty(),
        "replay one with TURNPIKE_SIM_SEED=n:\n{}",
        failures.join("\n")
    );
}

fn replay(seed: u64) {
    let outcome = run(seed, None, true);
    println!(
        "{}\n{} events, {:?}",
        outcome.log.join("\n"),
        outcome.steps,
        outcome.tally
    );
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

/// Whether a mutant breaks the invariant within the seeds of the tests, and breaks none before.
#[track_caller]
fn breaks(mutant: Mutant, invariant: u8) {
    let began = Instant::now();
    for seed in 0..SEEDS {
        let Ok(outcome) = outcome(seed, Some(mutant), false) else {
            panic!("{mutant:?} panics with seed {seed}");
        };
        if let Some(violation) = outcome.violation {
            assert_eq!(
                violation.invariant, invariant,
                "{mutant:?} with seed {seed}: {violation:?}"
            );
            return;
        }
        assert!(
            began.elapsed() < Duration::from_secs(300),
            "{mutant:?} by seed {seed}"
        );
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
