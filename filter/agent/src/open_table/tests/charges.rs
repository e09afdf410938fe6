//! What limits are charged after a crash: by each attempt for what it held, and never less.

use filter_core::{exchange::OpenCharge, limits::Most};
use proto::metering::v1::Charge;

use super::*;

fn charge(limit: &str, reserved: u64) -> Charge {
    Charge {
        limit: limit.to_owned(),
        epoch: 1,
        reserved,
        ..Charge::default()
    }
}

/// 110 tokens and a milli-USD are reserved.
fn opened() -> UsageRecord {
    UsageRecord {
        charges: vec![charge("tokens", 110), charge("money", 1_000_000)],
        ..record(1)
    }
}

fn most() -> Most {
    Most {
        input: Some(500),
        output: Some(60),
    }
}

fn settled(record: &UsageRecord) -> Vec<(&str, u64)> {
    let charges = record.charges.iter();
    charges
        .map(|charge| (charge.limit.as_str(), charge.settled))
        .collect()
}

fn cost_nusd(record: &UsageRecord) -> u64 {
    let costs = record.attempts.iter().flat_map(|attempt| &attempt.costs);
    costs.filter_map(|cost| cost.cost_nusd).sum()
}

#[test]
fn charges_are_settled_in_the_units_of_their_limits() {
    let memory = memory();
    let mut table = OpenTable::default();
    table.add(memory.clone());
    let mut slot = table.open(&mut opened(), &terms()).unwrap();
    assert!(table.begin_attempt(&mut slot, &mut attempt(1), &at(&price())));
    slot.note(&Progress {
        visible_bytes: 80,
        ..progress(1)
    });
    let found = records(&memory).remove(0);
    assert_eq!(settled(&found), [("tokens", 120), ("money", 140_000)]);
    assert_eq!(cost_nusd(&found), 140_000);
}

#[test]
fn a_second_attempt_is_charged_by_its_own_limits_prices_bounds_and_tier() {
    let memory = memory();
    let mut table = OpenTable::default();
    table.add(memory.clone());
    let mut slot = table.open(&mut opened(), &terms()).unwrap();
    assert!(table.begin_attempt(&mut slot, &mut attempt(1), &at(&price())));
    slot.note(&Progress {
        status: 503,
        verdict: Verdict::NotBilled,
        left_for: "status",
        duration_us: 9,
        ..progress(1)
    });
    let dearer = Price {
        output_pusd: Some(9_000_000),
        ..price()
    };
    let open = |same_as, charge: Charge, unit| OpenCharge {
        same_as,
        charge,
        unit,
    };
    let later = AttemptTerms {
        price: Some(&dearer),
        asked_tier: "flex",
        most: most(),
        charges: Some(vec![
            open(Some(1), charge("", 2_000_000), LimitUnit::Money),
            open(
                None,
                Charge {
                    subject: "team/user".to_owned(),
                    window_start_s: 86_400,
                    ..charge("output", 60)
                },
                LimitUnit::OutputTokens,
            ),
        ]),
    };
    assert!(table.begin_attempt(&mut slot, &mut attempt(2), &later));
    slot.note(&progress(2));
    let found = records(&memory).remove(0);
    let second = found.attempts[1].usage.as_ref().unwrap();
    assert_eq!((second.input, second.output), (500, 60));
    assert_eq!(second.method, "bound");
    assert_eq!(second.service_tier, "flex");
    let cost = 500 * 1_000 + 60 * 9_000;
    assert_eq!(
        settled(&found),
        [("tokens", 0), ("money", cost), ("output", 60)]
    );
    assert_eq!(cost_nusd(&found), cost);
    let output = &found.charges[2];
    assert_eq!(output.subject, "team/user");
    assert_eq!((output.window_start_s, output.epoch), (86_400, 1));
}

#[test]
fn output_that_was_reported_early_is_not_taken_for_all_of_it() {
    let memory = memory();
    let mut table = OpenTable::default();
    table.add(memory.clone());
    let mut slot = table.open(&mut opened(), &terms()).unwrap();
    assert!(table.begin_attempt(&mut slot, &mut attempt(1), &at(&price())));
    let mut noted = Progress {
        status: 200,
        visible_bytes: 80,
        is_output_early: true,
        reported: Some(Usage {
            input: 9,
            output: 1,
            ..Usage::default()
        }),
        ..progress(1)
    };
    slot.note(&noted);
    let seen = records(&memory).remove(0);
    let usage = seen.attempts[0].usage.as_ref().unwrap();
    assert_eq!((usage.input, usage.output), (9, 20));
    assert_eq!(usage.method, "input reported, output bytes/4");
    noted.is_output_early = false;
    slot.note(&noted);
    let seen = records(&memory).remove(0);
    assert_eq!(seen.attempts[0].usage.as_ref().unwrap().output, 1);
}

/// Attempts with names of such a length that few fit.
fn wide(number: u32) -> Attempt {
    Attempt {
        provider: "p".repeat(900),
        ..attempt(number)
    }
}

/// How many of them fit.
const FIT: u32 = 3;

/// So many wide attempts, each left with this verdict but for the last, which has begun.
fn crowded(attempts: u32, verdict: Verdict) -> UsageRecord {
    let memory = memory();
    let mut table = OpenTable::default();
    table.add(memory.clone());
    let mut slot = table.open(&mut opened(), &terms()).unwrap();
    let price = price();
    let terms = AttemptTerms {
        most: most(),
        ..at(&price)
    };
    for number in 1..=attempts {
        assert!(table.begin_attempt(&mut slot, &mut wide(number), &terms));
        slot.note(&progress(number));
        if number < attempts {
            slot.note(&Progress {
                verdict,
                left_for: "reset",
                duration_us: 7,
                ..progress(number)
            });
        }
    }
    records(&memory).remove(0)
}

#[test]
fn an_attempt_without_room_takes_the_place_of_one_that_costs_nothing() {
    let all = crowded(FIT, Verdict::NotBilled);
    assert_eq!(all.attempts.len(), FIT as usize);
    let found = crowded(FIT + 2, Verdict::NotBilled);
    let numbers: Vec<u32> = found
        .attempts
        .iter()
        .map(|attempt| attempt.number)
        .collect();
    assert_eq!(numbers, [1, 2, FIT + 2]);
    assert_eq!(settled(&found), settled(&all));
    assert_eq!(cost_nusd(&found), 620_000);
}

#[test]
fn an_attempt_without_room_is_charged_as_much_as_the_one_before_could_be() {
    for attempts in 1..=FIT + 3 {
        let found = crowded(attempts, Verdict::Unknown);
        assert_eq!(found.attempts.len(), attempts.min(FIT) as usize);
        let cost = u64::from(attempts) * 620_000;
        let tokens = u64::from(attempts) * 560;
        assert_eq!(settled(&found), [("tokens", tokens), ("money", cost)]);
        assert_eq!(cost_nusd(&found), cost);
        let last = found.attempts.last().unwrap();
        assert_eq!(last.verdict(), Verdict::Unknown);
    }
}

#[test]
fn what_is_seen_of_attempts_that_became_one_is_added_up() {
    let memory = memory();
    let mut table = OpenTable::default();
    table.add(memory.clone());
    let mut slot = table.open(&mut record(1), &terms()).unwrap();
    for number in 1..=FIT + 2 {
        assert!(table.begin_attempt(&mut slot, &mut wide(number), &at(&price())));
        for bytes in [40, 80] {
            slot.note(&Progress {
                status: 200,
                visible_bytes: bytes,
                ..progress(number)
            });
        }
        slot.note(&Progress {
            verdict: Verdict::Unknown,
            left_for: "reset",
            status: 200,
            visible_bytes: 80,
            duration_us: 7,
            ..progress(number)
        });
    }
    let last = records(&memory).remove(0).attempts.pop().unwrap();
    let usage = last.usage.unwrap();
    assert_eq!((usage.input, usage.output), (300, 60));
}
