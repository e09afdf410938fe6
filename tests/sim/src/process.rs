//! One Envoy process: its accounts, its workers' shards and tables, and the agent's two sessions.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use control_plane_core::limit::BucketKey;
use filter_agent::open_table::{OpenTable, format};
use filter_agent::spool::{
    Appended, BatchLimit, Boot, BootId, Retention, ShardWriter, adopt, boots,
};
use filter_agent::{lease, usage};
use filter_core::credit::{Account, Accounts, Lease, Refusal, Wake};
use proto::metering::v1::{ShardEnd, UsageRecord};

use crate::clock::Clock;
use crate::disk::SimDisk;
use crate::mutant::Mutant;
use crate::outage::Outages;
use crate::request::{Exchange, Waiter};

/// Others have this long to give back what they are asked for, and a quarter until it is asked about.
pub const RECALL_US: u64 = 1_250_000;
/// Whoever is waited for asks again this soon after a refusal, with delays.
const ASKED_AGAIN_US: u64 = 500_000;
/// Workers of a process.
pub const WORKERS: usize = 2;
/// Slots of a worker's table that exist; a run opens fewer at a time.
const PAGES: usize = 1 + 64;
const PAGE_WORDS: usize = 512;
/// A few dozen records.
const SEGMENT_BYTES: u64 = 4_096;
/// Small, so that a shard takes several batches.
const WINDOW: usage::Window = usage::Window {
    messages: 3,
    batch: BatchLimit {
        bytes: 2_048,
        records: 8,
    },
};
/// How long acked segments are kept where no older database will ask for them.
const KEPT_MS: u64 = 20_000;

/// A process.
#[derive(Debug)]
pub struct Process {
    pub boot: Boot<SimDisk>,
    pub clock: Clock,
    pub accounts: Arc<Accounts>,
    pub keeper: lease::Session,
    pub usage: usage::Session<SimDisk>,
    pub shards: Vec<Shard>,
    pub exchanges: BTreeMap<u64, Exchange>,
    pub waiters: BTreeMap<u64, Waiter>,
    /// Leases that were seen, which outlive their place in an account.
    pub leases: BTreeMap<LeaseName, Seen>,
    /// There may be records to send.
    pub has_news: bool,
    pub outages: Outages,
    /// By limit and subject, the refusals as RESERVED that came one after the other.
    pub refusals: BTreeMap<(Arc<str>, Arc<str>), Refusals>,
    pub bell: Bell,
    pub woken: Arc<Mutex<Vec<u64>>>,
    pub ending: Ending,
    /// All that its workers' tables have.
    pub slots: usize,
    disk: SimDisk,
}

/// A worker's part.
#[derive(Debug)]
pub struct Shard {
    pub writer: ShardWriter<SimDisk>,
    pub table: OpenTable<Table>,
    memory: Table,
}

/// Where a process stands in ending in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Running,
    /// No more requests come.
    Draining,
    /// The last exchange is settled.
    Finished,
}

/// Limit, subject, window start and epoch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseName {
    pub limit: Arc<str>,
    pub subject: Arc<str>,
    pub window_start_s: i64,
    pub epoch: u64,
}

/// A lease that was seen.
#[derive(Debug)]
pub struct Seen {
    pub lease: Arc<Lease>,
    pub bucket: BucketKey,
    /// What was settled on it.
    pub settled: u64,
    /// What was available when it was last looked at, and since when.
    pub idle: i64,
    pub idle_since_us: u64,
}

/// Refusals of one account, none of them long after the one before.
#[derive(Debug)]
pub struct Refusals {
    pub since_us: u64,
    last_us: u64,
    retry_at_us: u64,
}

/// Rung when the agent is to look.
#[derive(Clone, Debug, Default)]
pub struct Bell(Arc<AtomicBool>);

/// Words that outlive their process.
#[derive(Clone, Debug)]
pub struct Table(Rc<Vec<AtomicU64>>);

struct Waker {
    woken: Arc<Mutex<Vec<u64>>>,
    exchange: u64,
}

impl AsRef<[AtomicU64]> for Table {
    fn as_ref(&self) -> &[AtomicU64] {
        &self.0
    }
}

impl Wake for Bell {
    fn wake(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Bell {
    /// Whether it was rung since the last call.
    pub fn was_rung(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Waker {
    fn wake(&self) {
        self.woken.lock().expect("one thread").push(self.exchange);
    }
}

impl Process {
    /// A new process on a disk.
    pub fn start(disk: &SimDisk, id: [u8; 16], clock: Clock) -> Self {
        let id = BootId(id);
        let boot = Boot::create(disk, id).expect("a new boot");
        let accounts = Arc::new(Accounts::new());
        let bell = Bell::default();
        accounts.set_bell(Arc::new(bell.clone()));
        let mut usage = usage::Session::new("node", WINDOW);
        let shards = (0..WORKERS).map(|worker| {
            let number = u32::try_from(worker).expect("few");
            usage.add(boot.reader(number));
            let words = (0..PAGES * PAGE_WORDS).map(|_| AtomicU64::new(0));
            let memory = Table(Rc::new(words.collect()));
            format(memory.as_ref(), id, number);
            let mut table = OpenTable::default();
            table.add(memory.clone());
            Shard {
                writer: boot.writer(number, SEGMENT_BYTES),
                table,
                memory,
            }
        });
        let shards: Vec<Shard> = shards.collect();
        Self {
            slots: shards.iter().map(|shard| shard.table.free_slots()).sum(),
            keeper: lease::Session::new(id, "node", Arc::clone(&accounts)),
            boot,
            clock,
            accounts,
            usage,
            shards,
            exchanges: BTreeMap::new(),
            waiters: BTreeMap::new(),
            leases: BTreeMap::new(),
            has_news: true,
            outages: Outages::default(),
            refusals: BTreeMap::new(),
            bell,
            woken: Arc::default(),
            ending: Ending::Running,
            disk: disk.clone(),
        }
    }

    /// The process's name.
    pub fn id(&self) -> [u8; 16] {
        self.boot.id().0
    }

    /// Takes over what dead processes left on the disk.
    pub fn adopt(&mut self, mutant: Option<Mutant>) {
        for id in boots(&self.disk).expect("a disk that can be listed") {
            if id == self.boot.id() {
                continue;
            }
            if mutant == Some(Mutant::ForgetsOpenTable) {
                self.forget_tables(id);
            }
            if let Some(adopted) = adopt(&self.disk, id).expect("a disk that can be read") {
                self.usage.adopt(adopted);
                self.has_news = true;
            }
        }
    }

    fn forget_tables(&self, id: BootId) {
        // Only a dead one's: the living have theirs in memory.
        self.disk.remove_all(&format!("boots/{id}/open-w0-1.map"));
        self.disk.remove_all(&format!("boots/{id}/open-w1-1.map"));
    }

    /// What an agent does for its disk about once a second.
    pub fn tend(&mut self, now_ms: u64, keeps_all: bool) {
        drop(self.boot.relock());
        for shard in &mut self.shards {
            self.has_news |= shard.writer.unmarked() > 0;
            shard.writer.mark_gap();
            if let Some(upkeep) = shard.writer.upkeep() {
                shard.writer.kept(upkeep.perform());
            }
        }
        let age_ms = if keeps_all { u64::MAX } else { KEPT_MS };
        self.has_news = true;
        let retention = Retention {
            age_ms,
            ..Retention::default()
        };
        drop(self.usage.prune(retention, now_ms));
    }

    /// Writes a record; true if the disk did not take it.
    pub fn append(&mut self, shard: usize, record: &UsageRecord) -> bool {
        self.has_news = true;
        let appended = self.shards[shard].writer.append(record);
        matches!(appended, Appended::Lost { .. })
    }

    /// How far each shard has got.
    pub fn ends(&self) -> Vec<ShardEnd> {
        let ends = self
            .shards
            .iter()
            .enumerate()
            .map(|(number, shard)| ShardEnd {
                shard: u32::try_from(number).expect("few"),
                last_seq: shard.writer.next_seq() - 1,
            });
        ends.collect()
    }

    /// Remembers the leases of an account.
    pub fn see(&mut self, account: &Account) {
        for lease in [account.current(), account.next()].into_iter().flatten() {
            let name = LeaseName {
                limit: Arc::clone(account.limit()),
                subject: Arc::clone(account.subject()),
                window_start_s: lease.span().window_start_s,
                epoch: lease.span().epoch,
            };
            match self.leases.get_mut(&name) {
                Some(seen) => seen.lease = lease,
                None => {
                    let bucket = BucketKey {
                        limit: name.limit.to_string(),
                        subject: name.subject.to_string(),
                        window_start_s: name.window_start_s,
                    };
                    self.leases.insert(
                        name,
                        Seen {
                            lease,
                            bucket,
                            settled: 0,
                            idle: 0,
                            idle_since_us: 0,
                        },
                    );
                }
            }
        }
    }

    /// Notes since when each lease has had what it has.
    pub fn look(&mut self, now_us: u64) {
        for seen in self.leases.values_mut() {
            let idle = seen.lease.available();
            if idle != seen.idle {
                seen.idle = idle;
                seen.idle_since_us = now_us;
            }
        }
    }

    /// Remembers the leases of all accounts.
    pub fn see_all(&mut self) {
        for account in self.accounts.all() {
            self.see(&account);
        }
    }

    /// Remembers since when accounts have been refused what others hold.
    pub fn note_refusals(&mut self, now_us: u64) {
        for account in self.accounts.all() {
            let name = (Arc::clone(account.limit()), Arc::clone(account.subject()));
            let denial = account.denial();
            let reserved = denial.filter(|denial| denial.kind == Refusal::Reserved);
            let Some(denial) = reserved else {
                self.refusals.remove(&name);
                continue;
            };
            let refusals = self.refusals.entry(name).or_insert(Refusals {
                since_us: now_us,
                last_us: now_us,
                retry_at_us: denial.retry_at_us,
            });
            if refusals.retry_at_us != denial.retry_at_us {
                if refusals.last_us + ASKED_AGAIN_US < now_us {
                    refusals.since_us = now_us;
                }
                refusals.last_us = now_us;
                refusals.retry_at_us = denial.retry_at_us;
            }
        }
    }

    /// What wakes a request that waits.
    pub fn waker(&self, exchange: u64) -> Arc<dyn Wake> {
        Arc::new(Waker {
            woken: Arc::clone(&self.woken),
            exchange,
        })
    }

    /// Dies: what its tables hold stays on the disk, unless that is lost as well.
    pub fn die(self, is_disk_lost: bool) {
        if is_disk_lost {
            self.disk.wipe();
            return;
        }
        for (number, shard) in self.shards.iter().enumerate() {
            let number = u32::try_from(number).expect("few");
            let words = shard.memory.as_ref();
            let mut pages = words.chunks(PAGE_WORDS);
            let used = pages.rposition(|page| page[0].load(Ordering::Relaxed) != 0);
            let used = used.map_or(0, |last| (last + 1) * PAGE_WORDS);
            let bytes = words[..used].iter();
            let bytes = bytes.flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
            self.disk
                .put(&self.boot.open_table_path(number, 1), bytes.collect());
        }
    }
}
