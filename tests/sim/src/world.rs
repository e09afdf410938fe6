//! Nodes, replicas, a database and a network between them, moved one event at a time.

mod faults;
mod streams;
mod workers;

use std::collections::{BTreeMap, VecDeque};

use control_plane_core::ledger::Shard;
use control_plane_core::limit::BucketKey;

use crate::clock::Clock;
use crate::database::Database;
use crate::disk::SimDisk;
use crate::event::{Agenda, Event, Kind};
use crate::mutant::Mutant;
use crate::process::Process;
use crate::random::Random;
use crate::replica::LeaseEnd;
use crate::request::{Moment, Plan};
use crate::scenario::{START_S, Scenario};
use crate::truth::Truth;

const S: u64 = 1_000_000;
const MS: u64 = 1_000;

/// Nothing is left to do when nothing was for so long.
const QUIET_US: u64 = 5 * S;

/// Events that are shown of a run that failed.
const SHOWN: usize = 50;

/// Everything there is.
#[derive(Debug)]
pub struct World {
    /// True time since the start.
    pub now_us: u64,
    pub random: Random,
    pub scenario: Scenario,
    pub mutant: Option<Mutant>,
    pub db: Database,
    pub is_db_up: bool,
    pub failovers: u32,
    pub nodes: Vec<Node>,
    pub truth: Truth,
    /// Nothing goes wrong any more, and nobody asks.
    pub is_healing: bool,
    /// Every process is to end, and no other begins.
    is_ending: bool,
    pub steps: u64,
    /// When replicas last came to be able to ask for credit back, all of them.
    pub recalls_since_us: u64,
    /// What of the database has been checked.
    pub checked_commits: u64,
    pub seen: usize,
    pub sequences: BTreeMap<(Shard, u64), u64>,
    /// Sums of the ledger's charges.
    pub counters: BTreeMap<BucketKey, u64>,
    /// The node whose accounts the present event has moved.
    pub touched: Option<usize>,
    /// When something was last left to do.
    noise_us: u64,
    agenda: Agenda,
    disks: Vec<SimDisk>,
    replicas: Vec<Replica>,
    streams: BTreeMap<u64, Stream>,
    made: u64,
    copy: Option<Box<Database>>,
    /// The last events, if they are to be shown.
    log: Option<VecDeque<String>>,
}

/// A place where processes run, one after the other.
#[derive(Debug)]
pub struct Node {
    pub disk: usize,
    /// Counts its processes.
    pub life: u32,
    pub process: Option<Process>,
    /// Since when what it holds idle can be asked back.
    pub reachable_since_us: u64,
    lease: Option<u64>,
    usage: Option<u64>,
    stalled_up_until_us: u64,
    stalled_down_until_us: u64,
    poll_at_us: Option<u64>,
    /// Who went away while waiting, for [`Mutant::ReservesForTheGone`].
    gone: BTreeMap<u64, Plan>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Replica {
    life: u32,
    is_up: bool,
}

#[derive(Debug)]
struct Stream {
    kind: Kind,
    node: usize,
    replica: usize,
    is_open_at_node: bool,
    is_open_at_replica: bool,
    /// When the last message of each direction arrives: none overtakes another.
    up_at_us: u64,
    down_at_us: u64,
    end: LeaseEnd,
}

/// A rule that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Number of the invariant.
    pub invariant: u8,
    pub what: String,
}

/// What a check comes to.
pub type Checked = Result<(), Violation>;

/// An invariant that does not hold.
pub fn violated(invariant: u8, what: String) -> Checked {
    Err(Violation { invariant, what })
}

impl World {
    /// The world of a seed, at its start.
    pub fn new(seed: u64, mutant: Option<Mutant>, is_logged: bool) -> Self {
        let mut random = Random::new(seed);
        let scenario = Scenario::draw(&mut random);
        let disks = scenario.disks.iter().max().map_or(0, |last| last + 1);
        let nodes = scenario.disks.iter().map(|disk| Node::new(*disk));
        let mut world = Self {
            now_us: 0,
            db: Database::new(mutant),
            is_db_up: true,
            failovers: 0,
            nodes: nodes.collect(),
            truth: Truth::default(),
            is_healing: false,
            is_ending: false,
            steps: 0,
            recalls_since_us: 0,
            checked_commits: 0,
            seen: 0,
            sequences: BTreeMap::new(),
            counters: BTreeMap::new(),
            noise_us: 0,
            touched: None,
            agenda: Agenda::default(),
            disks: (0..disks).map(|_| SimDisk::default()).collect(),
            replicas: vec![
                Replica {
                    life: 0,
                    is_up: true
                };
                scenario.replicas
            ],
            streams: BTreeMap::new(),
            made: 0,
            copy: None,
            log: is_logged.then(VecDeque::new),
            random,
            scenario,
            mutant,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        let now_us = self.unix_us();
        for limit in self.scenario.limits.clone() {
            self.db.set_limit(&limit.id, limit.terms.clone(), now_us);
            self.truth
                .highest
                .insert(limit.id.to_string(), limit.terms.amount);
        }
        for node in 0..self.nodes.len() {
            self.soon(200 * MS, Event::Start { node });
            self.soon(2 * S, Event::Arrive { node });
        }
        for replica in 0..self.replicas.len() {
            self.soon(250 * MS, Event::Tick { replica, life: 0 });
        }
        self.begin_faults();
    }

    /// Does what comes next. False: nothing ever will.
    pub fn step(&mut self) -> Result<bool, Violation> {
        let Some((at_us, event)) = self.agenda.take_next() else {
            return Ok(false);
        };
        self.now_us = at_us;
        self.steps += 1;
        if let Some(log) = &mut self.log {
            if log.len() == SHOWN {
                log.pop_front();
            }
            log.push_back(format!("{:>12.6} s  {event:?}", seconds(at_us)));
        }
        self.happen(event)?;
        self.check_step()?;
        Ok(true)
    }

    /// The last events, oldest first.
    pub fn log(&self) -> Vec<String> {
        self.log.iter().flatten().cloned().collect()
    }

    fn happen(&mut self, event: Event) -> Checked {
        match event {
            Event::Arrive { node } => self.arrive(node),
            Event::Poll { node, life } => {
                let is_due = self.nodes[node].poll_at_us == Some(self.now_us);
                if self.is_current(node, life) && is_due {
                    self.poll(node);
                }
                Ok(())
            }
            Event::Worker {
                node,
                life,
                number,
                turn,
            } => {
                if self.is_current(node, life) {
                    self.work(node, number, turn)?;
                }
                Ok(())
            }
            Event::Connect { node, life, kind } => {
                if self.is_current(node, life) {
                    self.connect(node, kind);
                }
                Ok(())
            }
            Event::LeaseUp { stream, message } => self.on_lease_up(stream, message),
            Event::UsageUp { stream, message } => self.on_usage_up(stream, message),
            Event::LeaseDown { stream, message } => {
                self.on_lease_down(stream, message);
                Ok(())
            }
            Event::UsageDown { stream, message } => {
                self.on_usage_down(stream, message);
                Ok(())
            }
            Event::Broken { stream, end } => {
                self.broken(stream, end);
                Ok(())
            }
            Event::Tick { replica, life } => {
                self.tick(replica, life);
                Ok(())
            }
            Event::Start { node } => {
                self.start(node);
                Ok(())
            }
            Event::Upkeep { node, life } => {
                if self.is_current(node, life) {
                    self.upkeep(node);
                }
                Ok(())
            }
            other => {
                self.happen_badly(other);
                Ok(())
            }
        }
    }

    /// From here on nothing goes wrong, what is broken is mended, and nobody asks.
    pub fn heal(&mut self) {
        self.is_healing = true;
        self.noise_us = self.now_us;
        for node in &mut self.nodes {
            node.stalled_up_until_us = 0;
            node.stalled_down_until_us = 0;
        }
        for disk in &self.disks {
            disk.set_full(false);
        }
        self.scenario.faults.late = 0;
        self.scenario.faults.dies_after_commit = 0;
        self.scenario.faults.dies_settling = 0;
        self.store_is_back();
        self.wake_all();
    }

    /// Whether nothing has been left to do for a while.
    pub fn is_quiet(&mut self) -> bool {
        let is_quiet = self.nodes.iter().all(|node| {
            node.process.as_ref().is_some_and(|process| {
                process.exchanges.is_empty()
                    && process.waiters.is_empty()
                    && node.lease.is_some()
                    && process.keeper.epoch() > 0
                    && node.usage.is_some()
                    && process.usage.is_drained()
            })
        });
        if !is_quiet {
            self.noise_us = self.now_us;
        }
        self.now_us > self.noise_us + QUIET_US
    }

    /// What keeps each node busy.
    pub fn to_do(&self) -> Vec<String> {
        let of_node = |node: &Node| match &node.process {
            None => "no process".to_owned(),
            Some(process) => format!(
                "{:?} {} exchanges, {} wait, epoch {}, streams {:?} {:?}, drained {}",
                process.ending,
                process.exchanges.len(),
                process.waiters.len(),
                process.keeper.epoch(),
                node.lease,
                node.usage,
                process.usage.is_drained(),
            ),
        };
        self.nodes.iter().map(of_node).collect()
    }

    /// Every process is told to end in order.
    pub fn end_all(&mut self) {
        self.is_ending = true;
        for node in 0..self.nodes.len() {
            self.drain(node);
        }
    }

    /// Whether every process has ended.
    pub fn is_over(&self) -> bool {
        self.nodes.iter().all(|node| node.process.is_none())
    }

    /// Unix microseconds, by the database's clock.
    pub fn unix_us(&self) -> i64 {
        START_S * 1_000_000 + i64::try_from(self.now_us).expect("a short run")
    }

    fn is_current(&self, node: usize, life: u32) -> bool {
        let node = &self.nodes[node];
        node.life == life && node.process.is_some()
    }

    /// Something is to happen within `within_us`.
    fn soon(&mut self, within_us: u64, event: Event) {
        let at_us = self.now_us + self.random.below(within_us + 1);
        self.agenda.put(at_us, event, &mut self.random);
    }

    fn at(&mut self, at_us: u64, event: Event) {
        let at_us = at_us.max(self.now_us);
        self.agenda.put(at_us, event, &mut self.random);
    }

    fn moment(&self, node: usize) -> Moment {
        let clock = self.nodes[node]
            .process
            .as_ref()
            .map(|process| process.clock);
        let clock = clock.expect("a process");
        Moment {
            mono_us: clock.mono_us(self.now_us),
            wall_us: clock.wall_us(self.unix_us()),
        }
    }

    fn start(&mut self, node: usize) {
        if self.nodes[node].process.is_some() {
            return;
        }
        let drift = self.scenario.faults.drift_ppm;
        let signed = |random: &mut Random, most: u64| {
            let drawn = i64::try_from(random.below(2 * most + 1)).expect("small");
            drawn - i64::try_from(most).expect("small")
        };
        let clock = Clock {
            offset_us: self.random.below(1 << 40),
            drift_ppm: signed(&mut self.random, drift),
            skew_us: signed(&mut self.random, 2 * S),
        };
        let disk = self.disks[self.nodes[node].disk].clone();
        disk.set_now(u64::try_from(self.unix_us() / 1000).expect("after 1970"));
        self.nodes[node].life += 1;
        let life = self.nodes[node].life;
        let mut id = [0; 16];
        id[0] = u8::try_from(node).expect("few");
        id[1..5].copy_from_slice(&life.to_be_bytes());
        let mut process = Process::start(&disk, id, clock);
        process.adopt(self.mutant);
        let place = &mut self.nodes[node];
        place.process = Some(process);
        place.lease = None;
        place.usage = None;
        place.poll_at_us = None;
        place.reachable_since_us = u64::MAX;
        place.gone.clear();
        for kind in [Kind::Lease, Kind::Usage] {
            self.soon(100 * MS, Event::Connect { node, life, kind });
        }
        self.soon(S, Event::Upkeep { node, life });
        if self.is_ending {
            self.drain(node);
        }
    }

    fn upkeep(&mut self, node: usize) {
        let now_ms = u64::try_from(self.unix_us() / 1000).expect("after 1970");
        let is_adopting = self.random.chance(100);
        let keeps_all = self.scenario.faults.failover_us > 0;
        let mutant = self.mutant;
        let place = &mut self.nodes[node];
        self.disks[place.disk].set_now(now_ms);
        let life = place.life;
        let Some(process) = &mut place.process else {
            return;
        };
        process.tend(now_ms, keeps_all);
        if is_adopting {
            process.adopt(mutant);
        }
        self.at(self.now_us + S, Event::Upkeep { node, life });
        self.poll_soon(node);
    }
}

impl Node {
    const fn new(disk: usize) -> Self {
        Self {
            disk,
            life: 0,
            process: None,
            reachable_since_us: u64::MAX,
            lease: None,
            usage: None,
            stalled_up_until_us: 0,
            stalled_down_until_us: 0,
            poll_at_us: None,
            gone: BTreeMap::new(),
        }
    }
}

fn seconds(us: u64) -> f64 {
    let us = u32::try_from(us / 1_000).unwrap_or(u32::MAX);
    f64::from(us) / 1_000.0
}
