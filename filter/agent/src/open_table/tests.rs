//! A slot's life, and its death at every step of it.

mod charges;
mod deaths;
pub(super) mod stores;

use std::sync::{Arc, atomic::AtomicU64};

use filter_core::exchange::{AttemptTerms, OpenTerms, Progress};
use filter_llm::usage::Usage;
use proto::{
    config::v1::{LimitUnit, Price},
    metering::v1::{Attempt, Caller, Decision, End, UsageRecord, UsageSource, Verdict},
};

use super::*;
use crate::spool::BootId;

const BOOT: BootId = BootId([0xb0; 16]);
const SHARD: u32 = 2;
/// Fewer than a table has outside of tests.
const SLOTS: usize = 8;

/// Memory that a test can look at.
#[derive(Clone)]
struct Memory(Arc<[AtomicU64]>);

impl AsRef<[AtomicU64]> for Memory {
    fn as_ref(&self) -> &[AtomicU64] {
        &self.0
    }
}

fn memory() -> Memory {
    let words = (1 + SLOTS) * layout::SLOT_WORDS;
    let words = Memory((0..words).map(|_| AtomicU64::new(0)).collect());
    format(&words.0, BOOT, SHARD);
    words
}

fn bytes(words: &[AtomicU64]) -> Vec<u8> {
    words
        .iter()
        .flat_map(|word| {
            word.load(std::sync::atomic::Ordering::Relaxed)
                .to_ne_bytes()
        })
        .collect()
}

fn records(memory: &Memory) -> Vec<UsageRecord> {
    let found = find(&bytes(&memory.0), BOOT, SHARD).unwrap();
    assert_eq!(found.damaged, 0);
    found.records
}

fn record(id: u8) -> UsageRecord {
    UsageRecord {
        exchange_id: vec![id; 16],
        request_id: format!("request-{id}"),
        admitted_at_us: 1_750_000_000_000_000 + i64::from(id),
        caller: Some(Caller {
            key: "key".to_owned(),
            team: "team".to_owned(),
            end_user: String::new(),
        }),
        price_version: 3,
        ..UsageRecord::default()
    }
}

fn terms() -> OpenTerms<'static> {
    OpenTerms {
        text_bytes: 400,
        estimates: true,
        units: &[LimitUnit::Tokens, LimitUnit::Money],
    }
}

fn attempt(number: u32) -> Attempt {
    Attempt {
        number,
        provider: "provider".to_owned(),
        upstream_model: format!("upstream-{number}"),
        model: "public".to_owned(),
        credential: "credential".to_owned(),
        started_us: 10 * u64::from(number),
        ..Attempt::default()
    }
}

fn price() -> Price {
    Price {
        input_pusd: Some(1_000_000),
        output_pusd: Some(2_000_000),
        ..Price::default()
    }
}

fn at(price: &Price) -> AttemptTerms<'_> {
    AttemptTerms {
        price: Some(price),
        ..AttemptTerms::default()
    }
}

fn unpriced() -> AttemptTerms<'static> {
    AttemptTerms::default()
}

fn progress(number: u32) -> Progress<'static> {
    Progress {
        number,
        is_sent: true,
        ..Progress::default()
    }
}

#[test]
fn what_is_open_is_found_as_a_crash_and_what_was_freed_is_not() {
    let memory = memory();
    let mut table = OpenTable::default();
    table.add(memory.clone());
    let mut open = table.open(&mut record(1), &terms()).unwrap();
    let freed = table.open(&mut record(2), &terms()).unwrap();
    assert!(table.begin_attempt(&mut open, &mut attempt(1), &at(&price())));
    open.note(&Progress {
        status: 200,
        first_content_us: 70,
        service_tier: "flex",
        visible_bytes: 80,
        reasoning_bytes: 20,
        client_status: 200,
        ..progress(1)
    });
    table.free(freed);

    let [found] = records(&memory).try_into().unwrap();
    assert_eq!(found.end(), End::Crash);
    assert_eq!((found.status, found.duration_us), (200, 80));
    let expected = UsageRecord {
        end: found.end,
        status: found.status,
        duration_us: found.duration_us,
        attempts: found.attempts.clone(),
        ..record(1)
    };
    assert_eq!(found, expected);
    let [found] = found.attempts.try_into().unwrap();
    assert_eq!(found.verdict(), Verdict::Unknown);
    assert_eq!((found.status, found.first_content_us), (200, 70));
    assert_eq!(found.upstream_model, "upstream-1");
    let usage = found.usage.unwrap();
    assert_eq!(usage.source(), UsageSource::Estimated);
    assert_eq!(
        (usage.method.as_str(), usage.service_tier.as_str()),
        ("bytes/4", "flex")
    );
    assert_eq!((usage.input, usage.output, usage.reasoning), (100, 20, 5));
    let costs: Vec<_> = found.costs.iter().map(|cost| cost.cost_nusd).collect();
    assert_eq!(costs, [Some(100_000), Some(30_000), Some(10_000)]);
}

#[test]
fn what_a_provider_reported_is_kept_and_a_later_report_replaces_it() {
    let memory = memory();
    let mut table = OpenTable::default();
    table.add(memory.clone());
    let mut slot = table.open(&mut record(1), &terms()).unwrap();
    assert!(table.begin_attempt(&mut slot, &mut attempt(1), &unpriced()));
    for output in [1, 2, 3] {
        let reported = Some(Usage {
            input: 9,
            output,
            ..Usage::default()
        });
        slot.note(&Progress {
            status: 200,
            verdict: Verdict::Billed,
            visible_bytes: 4_000,
            reported,
            ..progress(1)
        });
        let found = records(&memory).remove(0).attempts.remove(0);
        assert_eq!(found.verdict(), Verdict::Billed);
        let usage = found.usage.unwrap();
        assert_eq!(usage.source(), UsageSource::Reported);
        assert_eq!((usage.input, usage.output), (9, output));
        assert!(found.costs.iter().all(|cost| cost.cost_nusd.is_none()));
    }
}

#[test]
fn an_attempt_that_was_left_keeps_its_verdict_and_the_next_one_is_unknown() {
    let memory = memory();
    let mut table = OpenTable::default();
    table.add(memory.clone());
    let mut slot = table.open(&mut record(1), &terms()).unwrap();
    assert!(table.begin_attempt(&mut slot, &mut attempt(1), &unpriced()));
    slot.note(&Progress {
        status: 500,
        verdict: Verdict::NotBilled,
        left_for: "status",
        duration_us: 1_234,
        ..progress(1)
    });
    assert!(table.begin_attempt(&mut slot, &mut attempt(2), &unpriced()));
    slot.note(&progress(1));
    slot.note(&progress(2));
    let [first, second] = records(&memory).remove(0).attempts.try_into().unwrap();
    assert_eq!(first.verdict(), Verdict::NotBilled);
    assert_eq!(
        (first.reason.as_str(), first.duration_us),
        ("status", 1_234)
    );
    assert_eq!(first.usage.unwrap().source(), UsageSource::None);
    assert_eq!(second.verdict(), Verdict::Unknown);
    assert_eq!((second.reason.as_str(), second.status), ("", 0));
    assert_eq!(second.usage.unwrap().input, 100);
}

#[test]
fn a_table_that_is_full_says_so_until_a_slot_is_freed_or_another_table_comes() {
    let mut table = OpenTable::default();
    assert!(table.open(&mut record(0), &terms()).is_none());
    table.add(memory());
    let mut open: Vec<_> = (0..SLOTS)
        .map(|_| table.open(&mut record(1), &terms()).unwrap())
        .collect();
    assert!(table.open(&mut record(2), &terms()).is_none());
    table.free(open.remove(7));
    let again = table.open(&mut record(2), &terms()).unwrap();
    assert_eq!(table.free_slots(), 0);
    let second = memory();
    table.add(second.clone());
    let other = table.open(&mut record(3), &terms()).unwrap();
    assert_eq!(records(&second), {
        let mut expected = record(3);
        expected.end = End::Crash.into();
        [expected]
    });
    for slot in open.into_iter().chain([again, other]) {
        table.free(slot);
    }
    assert_eq!(table.free_slots(), 2 * SLOTS);
    assert_eq!(records(&second), []);
}

#[test]
fn a_slot_of_a_table_that_was_given_up_is_not_taken_again() {
    let mut table = OpenTable::default();
    table.add(memory());
    let slot = table.open(&mut record(1), &terms()).unwrap();
    table.give_up();
    table.add(memory());
    table.free(slot);
    assert_eq!(table.free_slots(), SLOTS);
}

#[test]
fn a_record_that_is_too_long_loses_words_and_keeps_who_pays() {
    let long = |at: usize| format!("{at}{}", "é".repeat(127));
    let mut large = record(1);
    large.request_id = long(0);
    large.decision = Some(Decision {
        model_asked: long(1),
        model: long(2),
        rule: long(3),
        action_id: long(4),
        attributes: (0..20).map(|at| (long(at), long(at))).collect(),
        ..Decision::default()
    });
    let memory = memory();
    let mut table = OpenTable::default();
    table.add(memory.clone());
    let mut slot = table.open(&mut large, &terms()).unwrap();
    for number in 1..=10 {
        let fits = table.begin_attempt(&mut slot, &mut attempt(number), &at(&price()));
        assert!(fits, "{number}");
    }
    let found = records(&memory).remove(0);
    assert_eq!(found.caller, record(1).caller);
    assert_eq!(found.exchange_id, record(1).exchange_id);
    let decision = found.decision.unwrap();
    assert_eq!(decision.model, long(2));
    assert!(decision.attributes.is_empty());
    assert_eq!(found.attempts.len(), 10);
}

#[test]
fn ten_attempts_fit_where_the_record_is_of_the_usual_size() {
    let mut usual = record(1);
    usual.request_id = "0b7cf7fb-9c5d-4e8b-a1f2-3d4c5b6a7980".to_owned();
    usual.decision = Some(Decision {
        client_api: "openai.chat_completions".to_owned(),
        model_asked: "auto:high".to_owned(),
        model: "large".to_owned(),
        rule: "rule-of-some-length".to_owned(),
        effort: "high".to_owned(),
        attributes: [("user_id".to_owned(), "someone@example.com".to_owned())].into(),
        ..Decision::default()
    });
    let mut table = OpenTable::default();
    table.add(memory());
    let mut slot = table.open(&mut usual, &terms()).unwrap();
    for number in 1..=10 {
        assert!(
            table.begin_attempt(&mut slot, &mut attempt(number), &at(&price())),
            "{number}"
        );
    }
}

#[test]
fn an_attempt_that_begins_twice_is_one() {
    let memory = memory();
    let mut table = OpenTable::default();
    table.add(memory.clone());
    let mut slot = table.open(&mut record(1), &terms()).unwrap();
    for _ in 0..2 {
        assert!(table.begin_attempt(&mut slot, &mut attempt(1), &unpriced()));
    }
    assert_eq!(records(&memory).remove(0).attempts.len(), 1);
}

#[test]
fn a_table_of_another_or_of_nobody_has_nothing_open_and_a_newer_one_is_left_alone() {
    let memory = memory();
    let mut table = OpenTable::default();
    table.add(memory.clone());
    drop(table.open(&mut record(1), &terms()));
    let mut bytes = bytes(&memory.0);
    let nothing = Ok(Found::default());
    assert_eq!(find(&bytes, BootId([1; 16]), SHARD), nothing);
    assert_eq!(find(&bytes, BOOT, SHARD + 1), nothing);
    assert_eq!(find(&[], BOOT, SHARD), nothing);
    assert_eq!(find(&vec![0; bytes.len()], BOOT, SHARD), nothing);
    assert_eq!(
        find(&bytes[..8 * layout::SLOT_WORDS + 100], BOOT, SHARD),
        nothing,
        "cut short"
    );
    assert_eq!(find(&bytes, BOOT, SHARD).unwrap().records.len(), 1);
    let newer = (u64::from(layout::FORMAT + 1) << 32).to_ne_bytes();
    bytes[8..16].copy_from_slice(&newer);
    assert_eq!(
        find(&bytes, BOOT, SHARD),
        Err(NotATable(layout::FORMAT + 1))
    );
}
