//! What a seed stands for: limits, load, and how much goes wrong.

use std::sync::Arc;

use control_plane_core::limit::{self, Calendar, Terms, Window};
use filter_core::credit::{Kind, LimitTerms};

use crate::random::Random;

/// Unix seconds at which every run begins: a minute before a full hour.
pub const START_S: i64 = 1_800_000_000 - 60;

const S: u64 = 1_000_000;
const MINUTE_US: u64 = 60 * S;

/// One run, but for the order of its events.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Places where a process can run; a disk may serve two of them.
    pub disks: Vec<usize>,
    pub replicas: usize,
    pub limits: Vec<Limit>,
    pub keys: u64,
    /// Between requests of one node, on average.
    pub gap_us: u64,
    pub run_us: u64,
    pub faults: Faults,
}

/// A limit as both sides know it.
#[derive(Clone, Debug)]
pub struct Limit {
    pub id: Arc<str>,
    pub unit: Unit,
    pub enforcement: Enforcement,
    pub terms: Terms,
    pub account: LimitTerms,
    /// One bucket a key; else one for everything.
    pub is_by_key: bool,
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Exchanges.
    Requests,
    /// Output tokens, at one nano-dollar each.
    Money,
    InFlight,
    /// Exchanges, spread evenly.
    Rate,
}

/// How money is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// An upper bound.
    Strict,
    /// An estimate, extended as the answer grows; cut where that fails.
    Guarded,
    /// An estimate.
    Estimated,
}

/// How much goes wrong. Chances are per mille; times are means.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Of a message, to be late by seconds.
    pub late: u64,
    /// Of a message to a replica, that it commits and dies before it answers.
    pub dies_after_commit: u64,
    /// Of a settlement, that the process dies in the midst of it.
    pub dies_settling: u64,
    /// Between two of a kind; 0: never.
    pub break_us: u64,
    pub partition_us: u64,
    pub kill_us: u64,
    pub replica_kill_us: u64,
    pub store_down_us: u64,
    pub amount_us: u64,
    /// Of a kill, that the disk is lost.
    pub disk_lost: u64,
    /// Of a kill, that it is a shutdown in order.
    pub in_order: u64,
    pub disk_full_us: u64,
    /// Clocks run fast or slow by up to this, in parts per million.
    pub drift_ppm: u64,
    /// The database is replaced by an older copy.
    pub failover_us: u64,
}

impl Scenario {
    /// What seed number `seed` is about.
    pub fn draw(random: &mut Random) -> Self {
        let nodes = random.between(2, 4);
        let shares_disk = random.chance(300);
        let disks = (0..nodes).map(|node| if shares_disk { node / 2 } else { node });
        Self {
            disks: disks
                .map(|disk| usize::try_from(disk).expect("few"))
                .collect(),
            replicas: usize::try_from(random.between(1, 3)).expect("few"),
            limits: limits(random),
            keys: random.between(1, 3),
            gap_us: *random.pick(&[S / 4, S / 2, S, 2 * S]),
            run_us: 120 * S,
            faults: Faults::draw(random),
        }
    }
}

fn limits(random: &mut Random) -> Vec<Limit> {
    let mut limits = Vec::new();
    if random.chance(700) {
        let amount = random.between(2_000, 60_000);
        limits.push(money(
            "a-strict",
            Enforcement::Strict,
            Window::Hour,
            amount,
            random,
        ));
    }
    if random.chance(500) {
        let amount = random.between(20, 400);
        limits.push(Limit::new(
            "b-requests",
            Unit::Requests,
            Enforcement::Strict,
            Window::Hour,
            amount,
        ));
    }
    if random.chance(400) {
        let window = *random.pick(&[Window::Hour, Window::Lifetime]);
        let amount = random.between(2_000, 60_000);
        limits.push(money(
            "c-guarded",
            Enforcement::Guarded,
            window,
            amount,
            random,
        ));
    }
    if random.chance(300) {
        let amount = random.between(2_000, 60_000);
        limits.push(money(
            "d-estimated",
            Enforcement::Estimated,
            Window::Hour,
            amount,
            random,
        ));
    }
    if random.chance(300) {
        let amount = random.between(1, 12);
        limits.push(Limit::new(
            "e-in-flight",
            Unit::InFlight,
            Enforcement::Strict,
            Window::None,
            amount,
        ));
    }
    if random.chance(200) || limits.is_empty() {
        let amount = random.between(10, 200);
        limits.push(Limit::new(
            "f-rate",
            Unit::Rate,
            Enforcement::Strict,
            Window::Minute,
            amount,
        ));
    }
    for limit in &mut limits {
        limit.is_by_key = random.chance(400);
    }
    limits
}

fn money(
    id: &str,
    enforcement: Enforcement,
    window: Window,
    amount: u64,
    random: &mut Random,
) -> Limit {
    let mut limit = Limit::new(id, Unit::Money, enforcement, window, amount);
    if enforcement != Enforcement::Strict && random.chance(500) {
        limit.account.on_unavailable_allowance = Some(random.between(500, 5_000));
    }
    limit
}

// === impl Limit ===

impl Limit {
    fn new(id: &str, unit: Unit, enforcement: Enforcement, window: Window, amount: u64) -> Self {
        let (on_server, on_node) = match unit {
            Unit::Requests | Unit::Money => (limit::Kind::Counted, Kind::Credit),
            Unit::InFlight => (limit::Kind::InFlight, Kind::InFlight),
            Unit::Rate => {
                let pace = Kind::Rate {
                    window_us: MINUTE_US,
                    burst: (amount / 4).max(1),
                    amount,
                };
                (limit::Kind::Rate, pace)
            }
        };
        Self {
            id: id.into(),
            unit,
            enforcement,
            terms: Terms {
                kind: on_server,
                calendar: Calendar::new(window, "").expect("UTC"),
                amount,
                strict: enforcement == Enforcement::Strict,
            },
            account: LimitTerms {
                id: id.into(),
                kind: on_node,
                amount,
                on_unavailable_allowance: None,
            },
            is_by_key: false,
        }
    }

    /// Whom it counts a key's request for.
    pub fn subject(&self, key: u64) -> String {
        if self.is_by_key {
            format!("key-{key}")
        } else {
            String::new()
        }
    }

    /// Whether what is used of it is charged.
    pub fn is_counted(&self) -> bool {
        self.terms.kind == limit::Kind::Counted
    }

    /// Whether its amount holds whatever happens.
    pub fn is_strict(&self) -> bool {
        self.enforcement == Enforcement::Strict
    }
}

// === impl Faults ===

impl Faults {
    /// A few kinds at a time: what only shows when everything else works is seen as well.
    fn draw(random: &mut Random) -> Self {
        let mut rarely = |us: u64| if random.chance(500) { us } else { 0 };
        let mut faults = Self {
            break_us: rarely(15 * S),
            partition_us: rarely(60 * S),
            kill_us: rarely(40 * S),
            replica_kill_us: rarely(40 * S),
            store_down_us: rarely(80 * S),
            ..Self::default()
        };
        faults.amount_us = if random.chance(200) { 50 * S } else { 0 };
        faults.disk_full_us = if random.chance(200) { 60 * S } else { 0 };
        faults.disk_lost = *random.pick(&[0, 0, 150]);
        faults.in_order = *random.pick(&[0, 300, 700]);
        faults.late = *random.pick(&[0, 5, 50]);
        faults.dies_after_commit = *random.pick(&[0, 0, 2, 10]);
        faults.dies_settling = *random.pick(&[0, 0, 5, 20]);
        faults.drift_ppm = *random.pick(&[0, 200, 20_000]);
        faults.failover_us = if random.chance(100) { 90 * S } else { 0 };
        faults
    }
}
