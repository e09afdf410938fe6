//! What is killed when, drawn from a seed.

use std::time::Duration;

/// What may be killed; in the order in which parts are started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Postgres,
    ControlPlane(usize),
    Envoy(usize),
}

const PARTS: [Part; 5] = [
    Part::Postgres,
    Part::ControlPlane(0),
    Part::ControlPlane(1),
    Part::Envoy(0),
    Part::Envoy(1),
];

/// One blow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strike {
    /// Since everything was back from the last one.
    pub(crate) after: Duration,
    pub(crate) parts: Vec<Part>,
    /// Until they are started again.
    pub(crate) down: Duration,
}

/// Evenly drawn numbers (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (drawn ^ (drawn >> 31)) % bound
    }

    fn ms(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}

/// The strikes of about `length`. The first ones hit each part once, in some order; every fourth
/// hits two parts, never both Envoys.
pub(crate) fn strikes(seed: u64, length: Duration) -> Vec<Strike> {
    let mut dice = Dice::new(seed);
    let mut due: Vec<Part> = Vec::new();
    let mut strikes = Vec::new();
    let mut elapsed = Duration::ZERO;
    while elapsed < length {
        if due.is_empty() {
            due = PARTS.to_vec();
        }
        let at = dice.below(u64::try_from(due.len()).unwrap_or(1));
        let part = due.swap_remove(usize::try_from(at).unwrap_or(0));
        let mut parts = vec![part];
        if dice.below(4) == 0 {
            let at = usize::try_from(dice.below(5)).unwrap_or(0);
            let more = PARTS.get(at).copied();
            let is_envoy = |part: &Part| matches!(part, Part::Envoy(_));
            parts.extend(more.filter(|more| *more != part && !(is_envoy(more) && is_envoy(&part))));
        }
        parts.sort();
        let strike = Strike {
            after: dice.ms(500, 3_000),
            parts,
            down: dice.ms(0, 2_500),
        };
        // About as much again for starting.
        elapsed += strike.after + strike.down + Duration::from_secs(1);
        strikes.push(strike);
    }
    strikes
}

#[test]
fn a_seed_gives_its_schedule_again_and_every_part_is_hit() {
    let length = Duration::from_secs(60);
    assert_eq!(strikes(7, length), strikes(7, length));
    assert_ne!(strikes(7, length), strikes(8, length));
    for seed in 0..100 {
        let strikes = strikes(seed, length);
        let hit = |part: &Part| strikes.iter().any(|strike| strike.parts.contains(part));
        assert!(PARTS.iter().all(hit), "seed {seed}");
        let both = [Part::Envoy(0), Part::Envoy(1)];
        let spares_one = |strike: &Strike| strike.parts != both;
        assert!(strikes.iter().all(spares_one), "seed {seed}");
    }
}
