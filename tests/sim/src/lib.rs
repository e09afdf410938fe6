//! Limits and ledger as a whole, simulated: the accounts and reservations of nodes, their lease
//! keepers, spools, open tables and usage sessions, and the control plane's lease book and ledger
//! arithmetic, all of them the real ones, under a seeded scheduler in virtual time.
//!
//! A seed is a run: its limits, its load, what goes wrong, and the order of all events follow from
//! it, so that a run that failed can be had again. What stands in for the rest of the product is
//! small: [`replica`] for the gRPC services, [`database`] for Postgres, [`request`] for the request
//! path, [`disk`] for a disk. After every event the invariants in `check` are looked at. [`mutant`]
//! has rules to break, to see that breaking them is noticed.
//!
//! It does not simulate workers that race on atomics (`filter_core::credit` has tests with threads),
//! SQL (`control-plane/store` compares it with the same lease book) or bytes on the wire.
//!
//! Read next: `world`.
#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test says what is wrong by a panic"
)]

mod check;
pub mod clock;
pub mod database;
pub mod disk;
pub mod event;
pub mod mutant;
pub mod outage;
pub mod process;
pub mod random;
pub mod replica;
pub mod request;
pub mod scenario;
pub mod truth;
pub mod world;

use mutant::Mutant;
use truth::Tally;
use world::{Checked, Violation, World, violated};

const S: u64 = 1_000_000;
/// A run that heals is quiet by then.
const HEALED_US: u64 = 150 * S;
/// Processes that are told to end have ended by then.
const OVER_US: u64 = 120 * S;
/// By then nobody who is gone is taken for alive.
const FENCED_US: u64 = 40 * S;
/// Into the next window but one.
const LATER_US: i64 = 2 * 3_600_000_000;

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub seed: u64,
    /// Events that happened.
    pub steps: u64,
    pub tally: Tally,
    /// None: every invariant held.
    pub violation: Option<Violation>,
    /// The last events, if they were asked for.
    pub log: Vec<String>,
}

/// Runs a seed.
pub fn run(seed: u64, mutant: Option<Mutant>, is_logged: bool) -> Outcome {
    let mut world = World::new(seed, mutant, is_logged);
    let violation = whole(&mut world).err();
    Outcome {
        seed,
        steps: world.steps,
        tally: world.truth.tally,
        violation,
        log: world.log(),
    }
}

fn whole(world: &mut World) -> Checked {
    let run_us = world.scenario.run_us;
    go_until(world, run_us, |_| false)?;
    world.heal();
    if !go_until(world, run_us + HEALED_US, World::is_quiet)? {
        return violated(
            7,
            format!("healed, and there is still to do: {:?}", world.to_do()),
        );
    }
    world.check_quiet()?;
    world.end_all();
    let over_us = world.now_us + OVER_US;
    if !go_until(world, over_us, |world| world.is_over())? {
        return violated(7, "a process that was told to end goes on".to_owned());
    }
    let fenced_us = world.now_us + FENCED_US;
    go_until(world, fenced_us, |_| false)?;
    world.check_over()?;
    let later_us = world.unix_us() + LATER_US;
    world.db.tend(later_us);
    world.check_unaccounted()
}

/// Goes on until a time, or until something is so; whether it was.
fn go_until(
    world: &mut World,
    until_us: u64,
    is_so: impl Fn(&mut World) -> bool,
) -> Result<bool, Violation> {
    while world.now_us < until_us {
        if is_so(world) {
            return Ok(true);
        }
        if !world.step()? {
            break;
        }
    }
    Ok(is_so(world))
}
