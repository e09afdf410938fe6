//! A node and a ledger with a network between them that cuts the stream anywhere, processes that
//! die, disks that fill up, and a ledger that is restored to an older state: in the end every
//! record is in the ledger once, or named as missing.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use proptest::prelude::*;

use super::*;
use crate::open_table::{self, OpenTable, Slot};
use crate::spool::Disk as _;
use filter_core::exchange::OpenTerms;
use proto::metering::v1::End;

type ShardId = (Vec<u8>, u32);

#[derive(Clone, Debug)]
enum Op {
    Write {
        shard: u32,
        records: u8,
    },
    /// So many bytes fit on the disk from now on.
    Space(Option<u8>),
    /// The node sends what it wants to.
    Send,
    /// So many messages arrive, each way.
    Deliver {
        up: u8,
        down: u8,
    },
    /// The ledger commits what has arrived, and answers.
    Commit,
    /// The stream breaks and what is on its way is gone.
    Cut,
    /// An exchange is admitted.
    Open {
        shard: u32,
    },
    /// The exchange that was admitted last is settled.
    Settle {
        shard: u32,
    },
    /// The process dies; the next one adopts its directory.
    Restart,
    /// It dies when an exchange's record is appended, and its slot not yet free.
    DieSettling {
        shard: u32,
    },
    /// The ledger goes back to what it had at its last backup; its streams break.
    Restore,
    Backup,
    Prune,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0..SHARDS, 0_u8..6).prop_map(|(shard, records)| Op::Write { shard, records }),
        1 => proptest::option::weighted(0.3, 0_u8..200).prop_map(Op::Space),
        8 => Just(Op::Send),
        10 => (0_u8..6, 0_u8..6).prop_map(|(up, down)| Op::Deliver { up, down }),
        6 => Just(Op::Commit),
        2 => Just(Op::Cut),
        3 => (0..SHARDS).prop_map(|shard| Op::Open { shard }),
        2 => (0..SHARDS).prop_map(|shard| Op::Settle { shard }),
        1 => Just(Op::Restart),
        1 => (0..SHARDS).prop_map(|shard| Op::DieSettling { shard }),
        1 => Just(Op::Restore),
        1 => Just(Op::Backup),
        1 => Just(Op::Prune),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn every_record_is_in_the_ledger_once_or_named_as_missing(
        ops in proptest::collection::vec(op(), 0..250),
    ) {
        let mut world = World::new();
        for op in &ops {
            world.step(op);
        }
        world.heal();
        world.check();
    }
}

const SHARDS: u32 = 2;

struct World {
    disk: MemoryDisk,
    boot: Boot<MemoryDisk>,
    boots: u8,
    writers: Vec<ShardWriter<MemoryDisk>>,
    session: Session<MemoryDisk>,
    /// Messages on their way, in order.
    up: VecDeque<UsageUp>,
    down: VecDeque<UsageDown>,
    /// Arrived at the ledger and not committed.
    arrived: VecDeque<UsageUp>,
    ledger: Ledger,
    backup: Ledger,
    /// What became of every record that was ever settled.
    written: BTreeMap<(ShardId, u64), Fate>,
    /// By shard, what is open in this process.
    open: Vec<OpenShard>,
    exchanges: u128,
    /// What was open when its process died.
    crashed: BTreeSet<(ShardId, Vec<u8>)>,
}

/// A worker's table, and its exchanges.
struct OpenShard {
    memory: Memory,
    table: OpenTable<Memory>,
    slots: Vec<(Vec<u8>, Slot<Memory>)>,
}

#[derive(Clone)]
struct Memory(Arc<[AtomicU64]>);

impl AsRef<[AtomicU64]> for Memory {
    fn as_ref(&self) -> &[AtomicU64] {
        &self.0
    }
}

impl OpenShard {
    fn new(boot: BootId, shard: u32) -> Self {
        // The header and fifteen slots.
        let words = (0..512 * 16).map(|_| AtomicU64::new(0));
        let memory = Memory(words.collect());
        open_table::format(&memory.0, boot, shard);
        let mut table = OpenTable::default();
        table.add(memory.clone());
        Self {
            memory,
            table,
            slots: Vec::new(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let words = self.memory.0.iter();
        words
            .flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes())
            .collect()
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Stored(Vec<u8>),
    Lost,
}

/// What a ledger's database holds.
#[derive(Clone, Debug, Default)]
struct Ledger {
    cursors: BTreeMap<ShardId, u64>,
    records: BTreeMap<(ShardId, u64), Vec<u8>>,
    gaps: BTreeMap<(ShardId, u64), GapReason>,
}

impl World {
    fn new() -> Self {
        let disk = MemoryDisk::default();
        let boot = Boot::create(&disk, BootId([1; 16])).unwrap();
        let mut world = Self {
            writers: Vec::new(),
            session: Session::new("node-1", window()),
            disk,
            boot,
            boots: 1,
            up: VecDeque::new(),
            down: VecDeque::new(),
            arrived: VecDeque::new(),
            ledger: Ledger::default(),
            backup: Ledger::default(),
            written: BTreeMap::new(),
            open: Vec::new(),
            exchanges: 0,
            crashed: BTreeSet::new(),
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        self.session = Session::new("node-1", window());
        (0..SHARDS).for_each(|shard| self.session.add(self.boot.reader(shard)));
        self.writers = (0..SHARDS)
            .map(|shard| self.boot.writer(shard, 150))
            .collect();
        self.open = (0..SHARDS)
            .map(|shard| OpenShard::new(self.boot.id(), shard))
            .collect();
        for dead in crate::spool::boots(&self.disk).unwrap() {
            if let Some(adopted) = adopt(&self.disk, dead).unwrap() {
                self.session.adopt(adopted);
            }
        }
        self.session.connected();
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Write { shard, records } => (0..*records).for_each(|_| self.write(*shard)),
            Op::Space(space) => self.disk.state().space = space.map(usize::from),
            Op::Send => self
                .up
                .extend(std::iter::from_fn(|| self.session.next_up())),
            Op::Deliver { up, down } => {
                let up = usize::from(*up).min(self.up.len());
                self.arrived.extend(self.up.drain(..up));
                let down = usize::from(*down).min(self.down.len());
                self.down
                    .drain(..down)
                    .for_each(|message| self.session.on_down(message));
            }
            Op::Commit => {
                let answers = self.arrived.drain(..).map(|up| self.ledger.commit(up));
                self.down.extend(answers);
            }
            Op::Cut => self.cut(),
            Op::Open { shard } => self.open(*shard),
            Op::Settle { shard } => {
                let open = &mut self.open[*shard as usize];
                if let Some((id, slot)) = open.slots.pop() {
                    open.table.free(slot);
                    self.append(*shard, id);
                }
            }
            Op::DieSettling { shard } => {
                let open = &mut self.open[*shard as usize];
                if let Some((id, _)) = open.slots.pop() {
                    let stored = self.append(*shard, id.clone());
                    if !stored {
                        self.crashed.insert((self.shard(*shard), id));
                    }
                    self.restart();
                }
            }
            Op::Restart => self.restart(),
            Op::Backup => self.backup = self.ledger.clone(),
            Op::Restore => {
                self.ledger = self.backup.clone();
                self.cut();
            }
            // The bytes that are kept cover every restore: the backup is never older than them.
            Op::Prune => {
                self.backup = self.ledger.clone();
                self.session
                    .prune(
                        Retention {
                            bytes: 0,
                            age_ms: 0,
                        },
                        1,
                    )
                    .unwrap();
            }
        }
    }

    fn shard(&self, shard: u32) -> ShardId {
        (self.boot.id().0.to_vec(), shard)
    }

    fn restart(&mut self) {
        for (shard, open) in (0..).zip(&self.open) {
            let path = self.boot.open_table_path(shard, 1);
            self.disk.create(&path).unwrap();
            self.disk.overwrite(&path, open.bytes());
            for (id, _) in &open.slots {
                self.crashed.insert((self.shard(shard), id.clone()));
            }
        }
        self.boots += 1;
        // The old session's locks go with it.
        self.session = Session::new("gone", window());
        self.boot = Boot::create(&self.disk, BootId([self.boots; 16])).unwrap();
        self.cut();
        self.begin();
    }

    fn next_id(&mut self) -> Vec<u8> {
        self.exchanges += 1;
        self.exchanges.to_be_bytes().to_vec()
    }

    fn open(&mut self, shard: u32) {
        let id = self.next_id();
        let open = &mut self.open[shard as usize];
        let mut record = UsageRecord {
            exchange_id: id.clone(),
            ..UsageRecord::default()
        };
        if let Some(slot) = open.table.open(&mut record, &OpenTerms::default()) {
            open.slots.push((id, slot));
        }
    }

    fn write(&mut self, shard: u32) {
        let id = self.next_id();
        self.append(shard, id);
    }

    /// True if it is on the disk.
    fn append(&mut self, shard: u32, exchange_id: Vec<u8>) -> bool {
        let writer = &mut self.writers[shard as usize];
        let record = UsageRecord {
            exchange_id,
            admitted_at_us: i64::try_from(writer.next_seq()).unwrap(),
            ..UsageRecord::default()
        };
        let (seq, fate) = match writer.append(&record) {
            Appended::Stored { seq } => (seq, Fate::Stored(prost::Message::encode_to_vec(&record))),
            Appended::Lost { seq } => (seq, Fate::Lost),
        };
        let stored = fate != Fate::Lost;
        self.written.insert((self.shard(shard), seq), fate);
        stored
    }

    /// The stream ends and another one begins: what was on its way is gone, whichever way it went.
    fn cut(&mut self) {
        self.up.clear();
        self.arrived.clear();
        self.down.clear();
        self.session.connected();
    }

    /// Faults stop, the last gaps are marked, and everything is given the time it needs.
    fn heal(&mut self) {
        self.step(&Op::Space(None));
        assert!(self.writers.iter_mut().all(ShardWriter::mark_gap));
        self.cut();
        // What the disk did not take before is tried again when it is looked after.
        self.deliver_all();
        self.step(&Op::Prune);
        self.deliver_all();
        assert!(self.session.is_drained());
        assert!(self.session.take_troubles().len() < 2 * usize::from(self.boots));
    }

    fn deliver_all(&mut self) {
        for _ in 0..10_000 {
            self.step(&Op::Send);
            self.step(&Op::Deliver {
                up: u8::MAX,
                down: 0,
            });
            self.step(&Op::Commit);
            if self.down.is_empty() && self.up.is_empty() {
                break;
            }
            self.step(&Op::Deliver {
                up: 0,
                down: u8::MAX,
            });
        }
    }

    /// Whose crash a record tells of.
    fn crash(&self, id: &(ShardId, u64)) -> Option<(ShardId, Vec<u8>)> {
        let record: UsageRecord =
            prost::Message::decode(self.ledger.records.get(id)?.as_slice()).unwrap();
        (record.end() == End::Crash).then_some((id.0.clone(), record.exchange_id))
    }

    fn check(&self) {
        let crashes: Vec<_> = self
            .ledger
            .records
            .keys()
            .filter_map(|id| self.crash(id))
            .collect();
        assert_eq!(
            crashes.iter().cloned().collect::<BTreeSet<_>>(),
            self.crashed
        );
        assert_eq!(crashes.len(), self.crashed.len(), "nothing counts twice");
        for (id, fate) in &self.written {
            match fate {
                Fate::Stored(bytes) => {
                    assert_eq!(self.ledger.records.get(id), Some(bytes), "{id:?}")
                }
                // Its sequence was never told as lost, and went to what was open.
                Fate::Lost if self.crash(id).is_some() => {}
                Fate::Lost => {
                    assert!(!self.ledger.records.contains_key(id), "{id:?}");
                    // What was lost after the last record of a process that died is not named.
                    if self
                        .ledger
                        .cursors
                        .get(&id.0)
                        .is_some_and(|cursor| id.1 <= *cursor)
                    {
                        assert_eq!(
                            self.ledger.gaps.get(id),
                            Some(&GapReason::DiskFull),
                            "{id:?}"
                        );
                    }
                }
            }
        }
        let written =
            |id: &(ShardId, u64)| self.written.contains_key(id) || self.crash(id).is_some();
        assert!(
            self.ledger.records.keys().all(written),
            "nothing was made up"
        );
        assert!(
            self.ledger
                .gaps
                .keys()
                .all(|id| self.written.get(id) == Some(&Fate::Lost))
        );
    }
}

impl Ledger {
    /// What the control plane does with a message, in one transaction with its cursor.
    fn commit(&mut self, up: UsageUp) -> UsageDown {
        match up.message.unwrap() {
            usage_up::Message::Open(open) => {
                let id = (open.boot_id, open.shard);
                down_resume(&id, self.cursor(&id) + 1)
            }
            usage_up::Message::Batch(batch) => {
                let id = (batch.boot_id, batch.shard);
                let cursor = self.cursor(&id);
                if batch.first_seq > cursor + 1 {
                    return down_resume(&id, cursor + 1);
                }
                for (seq, record) in (batch.first_seq..).zip(batch.records) {
                    if seq > self.cursor(&id) {
                        assert!(self.records.insert((id.clone(), seq), record).is_none());
                        self.cursors.insert(id.clone(), seq);
                    }
                }
                down_ack(&id, self.cursor(&id))
            }
            usage_up::Message::Gap(gap) => {
                let id = (gap.boot_id, gap.shard);
                let cursor = self.cursor(&id);
                if gap.from_seq > cursor + 1 {
                    return down_resume(&id, cursor + 1);
                }
                for seq in (cursor + 1)..=gap.to_seq {
                    let reason = GapReason::try_from(gap.reason).unwrap();
                    self.gaps.insert((id.clone(), seq), reason);
                    self.cursors.insert(id.clone(), seq);
                }
                down_ack(&id, self.cursor(&id))
            }
        }
    }

    fn cursor(&self, id: &ShardId) -> u64 {
        self.cursors.get(id).copied().unwrap_or_default()
    }
}

fn window() -> Window {
    Window {
        messages: 3,
        batch: BatchLimit {
            bytes: 100,
            records: 4,
        },
    }
}

fn down_resume(id: &ShardId, next_seq: u64) -> UsageDown {
    let resume = Resume {
        boot_id: id.0.clone(),
        shard: id.1,
        next_seq,
    };
    UsageDown {
        message: Some(usage_down::Message::Resume(resume)),
    }
}

fn down_ack(id: &ShardId, through_seq: u64) -> UsageDown {
    let ack = Ack {
        boot_id: id.0.clone(),
        shard: id.1,
        through_seq,
    };
    UsageDown {
        message: Some(usage_down::Message::Ack(ack)),
    }
}
