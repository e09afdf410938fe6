//! Random histories of a shard against a model of it: what is read is what was written, in order,
//! and what is missing is named.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    /// Append a record with this many bytes of padding.
    Append(u16),
    /// So many bytes fit on the disk from now on.
    Space(Option<u16>),
    RefuseTruncate(bool),
    RefuseCreate(bool),
    MarkGap,
    Upkeep,
    /// The last bytes written are not visible yet.
    Unseen(u8),
    Read {
        bytes: u16,
        records: u8,
    },
    Ack,
    /// The ledger goes back, to a fraction of its cursor.
    Rewind(u8),
    Prune {
        bytes: u16,
    },
    /// The process dies and the last segment loses its end at a fraction of it; another process
    /// adopts what is left. At a cut of 0 nothing is lost.
    Crash(u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0_u16..300).prop_map(Op::Append),
        2 => proptest::option::of(0_u16..600).prop_map(Op::Space),
        1 => any::<bool>().prop_map(Op::RefuseTruncate),
        1 => any::<bool>().prop_map(Op::RefuseCreate),
        1 => Just(Op::MarkGap),
        2 => Just(Op::Upkeep),
        2 => (0_u8..80).prop_map(Op::Unseen),
        8 => (0_u16..2_000, 0_u8..20).prop_map(|(bytes, records)| Op::Read { bytes, records }),
        2 => Just(Op::Ack),
        2 => any::<u8>().prop_map(Op::Rewind),
        1 => (0_u16..2_000).prop_map(|bytes| Op::Prune { bytes }),
    ]
}

fn history() -> impl Strategy<Value = (Vec<Op>, u8, Vec<Op>)> {
    let after_crash = prop_oneof![
        4 => (0_u16..2_000, 0_u8..20).prop_map(|(bytes, records)| Op::Read { bytes, records }),
        1 => Just(Op::Ack),
        1 => any::<u8>().prop_map(Op::Rewind),
        1 => (0_u16..2_000).prop_map(|bytes| Op::Prune { bytes }),
        1 => any::<u8>().prop_map(Op::Crash),
    ];
    (
        proptest::collection::vec(op(), 0..120),
        any::<u8>(),
        proptest::collection::vec(after_crash, 0..30),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn every_record_is_delivered_in_order_or_named_as_missing((before, cut, after) in history()) {
        let mut world = World::new();
        for op in before {
            world.step(&op);
        }
        world.step(&Op::Crash(cut));
        for op in after {
            world.step(&op);
        }
        world.finish();
    }

    #[test]
    fn a_shard_that_lives_on_delivers_everything_once_the_disk_is_well(
        ops in proptest::collection::vec(op(), 0..120),
    ) {
        let mut world = World::new();
        for op in ops {
            world.step(&op);
        }
        for op in [Op::Space(None), Op::RefuseTruncate(false), Op::RefuseCreate(false), Op::Unseen(0)] {
            world.step(&op);
        }
        world.step(&Op::Append(1));
        world.finish();
    }
}

/// A shard, a ledger that is sent it, and what each must hold.
struct World {
    disk: MemoryDisk,
    /// `None` once the process is dead.
    alive: Option<(Boot<MemoryDisk>, ShardWriter<MemoryDisk>)>,
    adopted: Option<Adopted<MemoryDisk>>,
    reader: ShardReader<MemoryDisk>,
    /// The bytes of each stored record, and the segment and length at which it is whole.
    stored: BTreeMap<u64, (Vec<u8>, String, usize)>,
    lost: BTreeSet<u64>,
    /// Sequences whose segments were pruned.
    pruned: u64,
    cursor: u64,
}

impl World {
    fn new() -> Self {
        let disk = MemoryDisk::default();
        let boot = Boot::create(&disk, BOOT).unwrap();
        let (writer, reader) = (boot.writer(3, 400), boot.reader(3));
        Self {
            disk,
            alive: Some((boot, writer)),
            adopted: None,
            reader,
            stored: BTreeMap::new(),
            lost: BTreeSet::new(),
            pruned: 0,
            cursor: 0,
        }
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Append(padding) => self.append(*padding),
            Op::Space(space) => self.disk.state().space = space.map(usize::from),
            Op::RefuseTruncate(refuse) => self.disk.state().refuse_truncate = *refuse,
            Op::RefuseCreate(refuse) => self.disk.state().refuse_create = *refuse,
            Op::MarkGap => drop(self.alive.as_mut().map(|(_, writer)| writer.mark_gap())),
            Op::Upkeep => self.upkeep(),
            Op::Unseen(bytes) => self.disk.state().unseen = usize::from(*bytes),
            Op::Read { bytes, records } => {
                let limit = BatchLimit {
                    bytes: (*bytes).into(),
                    records: (*records).into(),
                };
                self.read(limit);
            }
            Op::Ack => self.reader.acked_through(self.cursor),
            Op::Rewind(fraction) => {
                self.cursor = self.cursor * u64::from(*fraction) / 255;
                self.reader.rewind(self.cursor + 1);
            }
            Op::Prune { bytes } => self.prune(u64::from(*bytes)),
            Op::Crash(cut) => self.crash(*cut),
        }
    }

    fn append(&mut self, padding: u16) {
        let Some((_, writer)) = &mut self.alive else {
            return;
        };
        let seq = writer.next_seq();
        let record = UsageRecord {
            exchange_id: seq.to_le_bytes().to_vec(),
            request_id: "p".repeat(padding.into()),
            ..UsageRecord::default()
        };
        match writer.append(&record) {
            Appended::Lost { seq: lost } => {
                assert_eq!(lost, seq);
                self.lost.insert(seq);
            }
            Appended::Stored { seq: stored } => {
                assert_eq!(stored, seq);
                let path = self.last_segment().unwrap();
                let length = self.disk.bytes(&path).len();
                let bytes = prost::Message::encode_to_vec(&record);
                self.stored.insert(seq, (bytes, path, length));
            }
        }
    }

    fn upkeep(&mut self) {
        let Some((_, writer)) = &mut self.alive else {
            return;
        };
        if let Some(upkeep) = writer.upkeep() {
            let kept = upkeep.perform();
            // A spare that cannot be made is no loss.
            let refused = self.disk.state().refuse_create;
            assert!(
                refused || kept.troubles().is_empty(),
                "{:?}",
                kept.troubles()
            );
            assert!(!writer.kept(kept), "only whole segments are removed");
        }
    }

    /// What is read must be what the ledger wants next; false if nothing was.
    fn read(&mut self, limit: BatchLimit) -> bool {
        let Some(read) = self.reader.read(limit).unwrap() else {
            return false;
        };
        match read {
            Read::Records { first_seq, records } => {
                assert_eq!(first_seq, self.cursor + 1, "in order, without a hole");
                assert!(records.len() <= limit.records.max(1));
                for (seq, bytes) in (first_seq..).zip(records) {
                    assert_eq!(bytes, self.stored[&seq].0, "record {seq}");
                    self.cursor = seq;
                }
            }
            Read::Gap(gap) => {
                assert_eq!(gap.from, self.cursor + 1, "in order, without a hole");
                assert!(gap.to >= gap.from);
                for seq in gap.from..=gap.to {
                    match gap.reason {
                        GapReason::DiskFull => assert!(self.lost.contains(&seq), "{seq} was kept"),
                        GapReason::Lost => assert!(seq <= self.pruned, "{seq} is on the disk"),
                        GapReason::Torn => {
                            assert!(!self.stored.contains_key(&seq), "{seq} is sound");
                        }
                        GapReason::Unspecified => panic!("no reason for {seq}"),
                    }
                }
                self.cursor = gap.to;
            }
        }
        true
    }

    fn prune(&mut self, bytes: u64) {
        let acked = self.reader.acked();
        Retention {
            bytes,
            age_ms: u64::MAX,
        }
        .prune(&mut [&mut self.reader], 0)
        .unwrap();
        let oldest = match self.segments().first() {
            Some(path) => {
                layout::parse_segment(path.rsplit_once('/').unwrap().1)
                    .unwrap()
                    .1
            }
            None => acked.max(self.pruned) + 1,
        };
        assert!(
            oldest <= acked.max(self.pruned) + 1,
            "only what is acked may go"
        );
        self.pruned = self.pruned.max(oldest - 1);
    }

    fn crash(&mut self, fraction: u8) {
        let mut died = self.alive.take().is_some();
        died |= self.adopted.take().is_some();
        assert!(died);
        self.disk.state().unseen = 0;
        if let Some(path) = self.last_segment() {
            let mut bytes = self.disk.bytes(&path);
            let kept = bytes.len() - bytes.len() * usize::from(fraction) / 255;
            bytes.truncate(kept);
            self.disk.overwrite(&path, bytes);
            self.stored
                .retain(|_, (_, at, length)| *at != path || *length <= kept);
        }
        let adopted = adopt(&self.disk, BOOT).unwrap().expect("nobody holds it");
        let acked = self.reader.acked();
        let Some(reader) = adopted.readers().pop() else {
            self.reader =
                ShardReader::new(self.disk.clone(), "boots/none".to_owned(), BOOT, 3, Some(0));
            self.reader.rewind(acked + 1);
            self.cursor = acked;
            self.adopted = Some(adopted);
            return;
        };
        self.reader = reader;
        // A new stream: the ledger names its cursor, which is what it has acked.
        self.cursor = acked;
        self.reader.rewind(acked + 1);
        self.adopted = Some(adopted);
    }

    /// Everything that is left is delivered, and nothing stored is missing.
    fn finish(&mut self) {
        let start = self.cursor;
        while self.read(LIMIT) {}
        let last_stored = self.stored.keys().next_back().copied().unwrap_or_default();
        // A dead shard of which nothing is kept is not heard of again.
        if last_stored > self.pruned {
            assert!(self.cursor >= last_stored, "{last_stored} is not delivered");
        }
        assert!(self.cursor >= start);
        assert!(!self.read(LIMIT));
    }

    fn segments(&self) -> Vec<String> {
        self.disk
            .files()
            .into_iter()
            .filter(|path| path.ends_with(".seg"))
            .collect()
    }

    fn last_segment(&self) -> Option<String> {
        self.segments().pop()
    }
}
