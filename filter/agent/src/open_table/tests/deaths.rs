//! A process dies between any two of its stores, or the power fails: an exchange is in one record
//! or in none, and never in a wrong one.

use std::collections::BTreeMap;

use proptest::prelude::*;
use prost::Message as _;

use super::*;
use crate::spool::{
    Adopted, BatchLimit, Boot, DEFAULT_SEGMENT_BYTES, Disk as _, Read, ShardWriter, adopt,
    memory::MemoryDisk,
};

const LIMIT: BatchLimit = BatchLimit {
    bytes: 1 << 20,
    records: 1_000,
};

/// What a process does that outlives it.
#[derive(Clone, Debug)]
enum Step {
    Store(usize, u64),
    Append(Box<UsageRecord>),
}

/// A worker's steps over some exchanges that follow each other in the same slots.
struct Life {
    memory: Memory,
    table: OpenTable<Memory>,
    steps: Vec<Step>,
}

impl Life {
    fn new() -> Self {
        let memory = memory();
        stores::take(&memory.0);
        let mut table = OpenTable::default();
        table.add(memory.clone());
        Self {
            memory,
            table,
            steps: Vec::new(),
        }
    }

    fn note_steps(&mut self) {
        let stores = stores::take(&self.memory.0);
        self.steps
            .extend(stores.into_iter().map(|(at, word)| Step::Store(at, word)));
    }

    /// One exchange from admission to its record, with so many attempts of so many frames.
    fn exchange(&mut self, id: u8, attempts: u32, frames: u32) {
        let mut slot = self.table.open(&mut record(id), &terms()).unwrap();
        self.note_steps();
        for number in 1..=attempts {
            let mut begun = attempt(number);
            begun.upstream_model = format!("upstream-{id}-{number}");
            let fits = self
                .table
                .begin_attempt(&mut slot, &mut begun, &at(&price()));
            assert!(fits);
            for frame in 1..=frames {
                slot.note(&noted(id, number, frame));
            }
            slot.note(&Progress {
                left_for: "reset",
                duration_us: 5,
                verdict: Verdict::Unknown,
                ..noted(id, number, frames)
            });
            self.note_steps();
        }
        self.steps.push(Step::Append(Box::new(settled(id))));
        self.table.free(slot);
        self.note_steps();
    }
}

fn noted(id: u8, number: u32, frame: u32) -> Progress<'static> {
    // Both parts of a report are of the same frame.
    let tokens = u64::from(id) * 1_000 + u64::from(frame);
    let reported = Usage {
        input: tokens,
        cached_input: tokens,
        output: tokens,
        reasoning: tokens,
        ..Usage::default()
    };
    Progress {
        status: 200,
        visible_bytes: u64::from(frame) * 4,
        reported: Some(reported).filter(|_| frame > 1),
        ..progress(number)
    }
}

fn settled(id: u8) -> UsageRecord {
    UsageRecord {
        end: End::Complete.into(),
        ..record(id)
    }
}

/// The disk of a process that did these steps and no more.
fn disk_after(steps: &[Step]) -> MemoryDisk {
    let disk = MemoryDisk::default();
    disk.state().now_ms = 1_750_000_000_000;
    let boot = Boot::create(&disk, BOOT).unwrap();
    let mut writer = boot.writer(SHARD, DEFAULT_SEGMENT_BYTES);
    let memory = memory();
    for step in steps {
        match step {
            Step::Store(at, word) => {
                memory.0[*at].store(*word, std::sync::atomic::Ordering::Relaxed)
            }
            Step::Append(record) => drop(ShardWriter::append(&mut writer, &**record)),
        }
    }
    let path = boot.open_table_path(SHARD, 1);
    disk.create(&path).unwrap();
    disk.overwrite(&path, bytes(&memory.0));
    disk
}

/// Every record of the dead process, once what it had open is settled.
fn recover(disk: &MemoryDisk) -> BTreeMap<Vec<u8>, UsageRecord> {
    let mut adopted = adopt(disk, BOOT).unwrap().unwrap();
    adopted.settle(SHARD, 0).unwrap();
    assert!(!adopted.is_unsettled(SHARD));
    assert!(disk.files().iter().all(|path| !path.ends_with(".map")));
    read(&adopted)
}

fn read(adopted: &Adopted<MemoryDisk>) -> BTreeMap<Vec<u8>, UsageRecord> {
    let mut all = BTreeMap::new();
    let mut next_seq = 1;
    for mut reader in adopted.readers() {
        while let Some(read) = reader.read(LIMIT).unwrap() {
            let Read::Records { first_seq, records } = read else {
                panic!("{read:?}");
            };
            assert_eq!(first_seq, next_seq);
            next_seq += records.len() as u64;
            for record in records {
                let record = UsageRecord::decode(record.as_slice()).unwrap();
                let before = all.insert(record.exchange_id.clone(), record);
                assert!(before.is_none(), "twice: {before:?}");
            }
        }
    }
    all
}

/// Panics unless it is what the worker knew of this exchange at some moment.
fn check(id: u8, found: &UsageRecord, attempts: u32, frames: u32) {
    let expected = UsageRecord {
        end: End::Crash.into(),
        duration_us: found.duration_us,
        status: found.status,
        attempts: found.attempts.clone(),
        ..record(id)
    };
    assert_eq!(*found, expected);
    assert!(found.attempts.len() <= attempts as usize);
    for (at, attempt) in (1..).zip(&found.attempts) {
        assert_eq!(attempt.number, at);
        assert_eq!(attempt.upstream_model, format!("upstream-{id}-{at}"));
        let usage = attempt.usage.as_ref().unwrap();
        match usage.source() {
            UsageSource::Reported => {
                let tokens = usage.input;
                assert_eq!(
                    [usage.cached_input, usage.output, usage.reasoning],
                    [tokens; 3]
                );
                let frame = tokens - u64::from(id) * 1_000;
                assert!((2..=u64::from(frames)).contains(&frame), "{frame}");
            }
            UsageSource::Estimated => {
                assert!(usage.input == 100 && usage.output <= u64::from(frames))
            }
            UsageSource::None => assert_eq!(attempt.verdict(), Verdict::NotBilled),
            UsageSource::Unspecified => panic!("no source"),
        }
    }
}

#[test]
fn a_process_that_dies_between_any_two_stores_leaves_each_exchange_in_one_record_or_none() {
    let mut life = Life::new();
    let exchanges = [(1_u8, 2, 3), (2, 0, 0), (3, 3, 2), (4, 1, 5)];
    for (id, attempts, frames) in exchanges {
        life.exchange(id, attempts, frames);
    }
    let steps = life.steps;
    let appended = |steps: &[Step], id: u8| {
        let is_own = |step: &Step| matches!(step, Step::Append(it) if it.exchange_id == [id; 16]);
        steps.iter().any(is_own)
    };
    let mut crashes = 0;
    for end in 0..=steps.len() {
        let done = &steps[..end];
        let mut found = recover(&disk_after(done));
        for (id, attempts, frames) in exchanges {
            match (appended(done, id), found.remove(&vec![id; 16])) {
                (true, record) => assert_eq!(record, Some(settled(id)), "after {end} steps"),
                (false, Some(record)) => {
                    crashes += 1;
                    check(id, &record, attempts, frames);
                }
                (false, None) => {}
            }
        }
        assert!(found.is_empty(), "made up: {found:?}");
    }
    assert!(crashes > 100, "{crashes} of {} ends", steps.len());
}

#[test]
fn an_exchange_is_not_lost_between_its_seal_and_its_record() {
    let mut life = Life::new();
    life.exchange(1, 2, 2);
    let steps = life.steps;
    let is_seal = |step: &Step| matches!(step, Step::Store(512, word) if *word != 0);
    let sealed = steps.iter().position(is_seal).unwrap();
    for end in sealed + 1..=steps.len() {
        assert_eq!(recover(&disk_after(&steps[..end])).len(), 1, "{end}");
    }
    // Of an attempt nothing leaves before the call has returned.
    let found = recover(&disk_after(&steps[..steps.len() - 2]));
    assert_eq!(found[&vec![1; 16]].attempts.len(), 2);
}

#[test]
fn an_adopter_that_dies_leaves_the_rest_to_the_next_one() {
    let mut life = Life::new();
    let mut open = Vec::new();
    for id in 1..=5 {
        open.push(life.table.open(&mut record(id), &terms()).unwrap());
    }
    life.note_steps();
    let disk = disk_after(&life.steps);
    // Everything is appended, and the table stays.
    let mut first = adopt(&disk, BOOT).unwrap().unwrap();
    assert_eq!(first.in_flight(), (5, 0));
    disk.state().refuse_remove = true;
    assert!(first.settle(SHARD, 0).is_err());
    assert!(first.is_unsettled(SHARD));
    assert_eq!(first.end(SHARD).last_seq, 5);
    drop(first);
    disk.state().refuse_remove = false;
    let mut second = adopt(&disk, BOOT).unwrap().unwrap();
    assert_eq!(second.in_flight(), (0, 0));
    second.settle(SHARD, 5).unwrap();
    assert_eq!(second.end(SHARD).last_seq, 5);
    assert_eq!(read(&second).len(), 5);
    assert!(!second.is_unsettled(SHARD));
}

#[test]
fn a_full_disk_takes_what_it_can_and_the_rest_later() {
    let mut life = Life::new();
    for id in 1..=5 {
        life.table.open(&mut record(id), &terms()).unwrap();
    }
    life.note_steps();
    for room in 0..500 {
        let disk = disk_after(&life.steps);
        let mut adopted = adopt(&disk, BOOT).unwrap().unwrap();
        disk.state().space = Some(room);
        if adopted.settle(SHARD, 0).is_ok() {
            assert!(room > 300, "{room}");
            return;
        }
        let stored = adopted.end(SHARD).last_seq;
        assert_eq!(
            adopted.in_flight(),
            (5 - usize::try_from(stored).unwrap(), 0)
        );
        // The adopter may die here as well.
        if room % 2 == 0 {
            drop(adopted);
            adopted = adopt(&disk, BOOT).unwrap().unwrap();
        }
        disk.state().space = None;
        adopted.settle(SHARD, stored).unwrap();
        let found: Vec<_> = (1..=5).map(|id| vec![id; 16]).collect();
        assert_eq!(read(&adopted).into_keys().collect::<Vec<_>>(), found);
    }
    panic!("no room is enough");
}

#[test]
fn no_sequence_is_used_that_the_ledger_has_seen() {
    let mut life = Life::new();
    life.table.open(&mut record(9), &terms()).unwrap();
    life.note_steps();
    let mut steps: Vec<Step> = (1..=3)
        .map(|id| Step::Append(Box::new(settled(id))))
        .collect();
    steps.extend(life.steps);
    let mut adopted = adopt(&disk_after(&steps), BOOT).unwrap().unwrap();
    // A power failure took four records that were acked before.
    adopted.settle(SHARD, 7).unwrap();
    assert_eq!(adopted.end(SHARD).last_seq, 8);
    let mut reader = adopted.readers().remove(0);
    reader.rewind(8);
    let read = reader.read(LIMIT).unwrap();
    assert!(
        matches!(read, Some(Read::Records { first_seq: 8, .. })),
        "{read:?}"
    );
    reader.rewind(1);
    let seen: Vec<_> = std::iter::from_fn(|| reader.read(LIMIT).unwrap()).collect();
    assert!(
        matches!(&seen[1], Read::Gap(gap) if (gap.from, gap.to) == (4, 7)),
        "{seen:?}"
    );
    assert_eq!(seen.len(), 3);
}

#[test]
fn what_was_settled_long_before_anything_was_open_is_not_read_again() {
    let disk = MemoryDisk::default();
    let boot = Boot::create(&disk, BOOT).unwrap();
    let mut writer = boot.writer(SHARD, 200);
    for id in 1..=20 {
        writer.append(&settled(id));
    }
    let memory = memory();
    let mut table = OpenTable::default();
    table.add(memory.clone());
    table.open(&mut record(50), &terms()).unwrap();
    let path = boot.open_table_path(SHARD, 1);
    disk.create(&path).unwrap();
    disk.overwrite(&path, bytes(&memory.0));
    drop((boot, writer));
    // Written in 1970, by this clock: one broken segment of then keeps nobody from settling.
    let mut adopted = adopt(&disk, BOOT).unwrap().unwrap();
    assert_eq!(adopted.in_flight(), (1, 0));
    adopted.settle(SHARD, 0).unwrap();
    assert_eq!(adopted.end(SHARD).last_seq, 21);
}

proptest! {
    /// Each word is whatever it was at some moment: the worst that a power failure can leave.
    #[test]
    fn memory_of_which_only_parts_were_written_back_gives_no_wrong_record(
        lives in proptest::collection::vec((0_u32..4, 1_u32..5), 1..5),
        moments in proptest::collection::vec(any::<prop::sample::Index>(), 16),
        end: prop::sample::Index,
    ) {
        let mut life = Life::new();
        for (id, (attempts, frames)) in (1..).zip(&lives) {
            life.exchange(id, *attempts, *frames);
        }
        let stores: Vec<(usize, u64)> = life.steps.iter().filter_map(|step| match step {
            Step::Store(at, word) => Some((*at, *word)),
            Step::Append(_) => None,
        }).collect();
        let end = end.index(stores.len() + 1);
        let memory = memory();
        // Sectors of 512 bytes are written back at moments of their own.
        for (at, word) in stores.iter().take(end).enumerate().filter(|(step, (at, _))| {
            let moment = moments[(at / 64) % moments.len()].index(end.max(1));
            *step <= moment
        }).map(|(_, store)| *store) {
            memory.0[at].store(word, std::sync::atomic::Ordering::Relaxed);
        }
        let found = find(&bytes(&memory.0), BOOT, SHARD).unwrap();
        prop_assert!(found.records.len() + found.damaged <= 1);
        for record in &found.records {
            let id = record.exchange_id[0];
            let (attempts, _) = lives[usize::from(id) - 1];
            prop_assert_eq!(record.request_id.clone(), format!("request-{id}"));
            prop_assert!(record.attempts.len() <= attempts as usize);
            for (at, attempt) in (1..).zip(&record.attempts) {
                prop_assert_eq!(attempt.upstream_model.clone(), format!("upstream-{id}-{at}"));
            }
        }
    }
}
