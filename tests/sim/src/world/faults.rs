//! What goes wrong, and what mends it.

use super::{Replica, S, World};
use crate::event::{End, Event, Fault, Kind};
use crate::process::{Ending, Process};
use crate::truth::FactEnd;

/// A process that ends in order is killed after this long.
const OVERDUE_US: u64 = 30 * S;
const COPY_US: u64 = 20 * S;

impl World {
    pub(super) fn begin_faults(&mut self) {
        for fault in [
            Fault::Break,
            Fault::Partition,
            Fault::Kill,
            Fault::KillReplica,
            Fault::StoreGoes,
            Fault::DiskFills,
            Fault::Amount,
            Fault::Failover,
        ] {
            self.plan_fault(fault);
        }
        if self.scenario.faults.failover_us > 0 {
            self.at(COPY_US, Event::Copy);
        }
    }

    fn plan_fault(&mut self, fault: Fault) {
        let faults = &self.scenario.faults;
        let mean_us = match fault {
            Fault::Break => faults.break_us,
            Fault::Partition => faults.partition_us,
            Fault::Kill => faults.kill_us,
            Fault::KillReplica => faults.replica_kill_us,
            Fault::StoreGoes => faults.store_down_us,
            Fault::DiskFills => faults.disk_full_us,
            Fault::Amount => faults.amount_us,
            Fault::Failover => faults.failover_us,
        };
        if mean_us > 0 {
            self.soon(2 * mean_us, Event::Fault(fault));
        }
    }

    pub(super) fn happen_badly(&mut self, event: Event) {
        match event {
            Event::Fault(fault) if !self.is_healing => {
                self.strike(fault);
                self.plan_fault(fault);
            }
            Event::StartReplica { replica } => self.start_replica(replica),
            Event::StoreIsBack => self.store_is_back(),
            Event::DiskHasRoom { disk } => self.disks[disk].set_full(false),
            Event::Copy if !self.is_healing => {
                self.copy = Some(Box::new(self.db.clone()));
                self.at(self.now_us + COPY_US, Event::Copy);
            }
            Event::Overdue { node, life } if self.is_current(node, life) && !self.is_healing => {
                self.kill(node, false);
            }
            _ => {}
        }
    }

    fn strike(&mut self, fault: Fault) {
        let node = self.random.index(self.nodes.len());
        match fault {
            Fault::Break => {
                let kind = *self.random.pick(&[Kind::Lease, Kind::Usage]);
                self.cut(node, kind);
            }
            Fault::Partition => self.partition(node),
            Fault::Kill => self.strike_down(node),
            Fault::KillReplica => {
                let replica = self.random.index(self.replicas.len());
                self.kill_replica(replica);
            }
            Fault::StoreGoes => {
                self.is_db_up = false;
                let within_us = *self.random.pick(&[S, 8 * S, 40 * S]);
                self.soon(within_us, Event::StoreIsBack);
            }
            Fault::DiskFills => {
                let disk = self.random.index(self.disks.len());
                self.disks[disk].set_full(true);
                self.soon(20 * S, Event::DiskHasRoom { disk });
            }
            Fault::Amount => self.change_amount(),
            Fault::Failover => self.fail_over(),
        }
    }

    /// Nothing comes through, in one direction or both; streams may notice or not.
    fn partition(&mut self, node: usize) {
        let until_us = self.now_us + self.random.between(2 * S, 45 * S);
        let way = self.random.below(4);
        let place = &mut self.nodes[node];
        if way != 0 {
            place.stalled_up_until_us = until_us;
        }
        if way != 1 {
            place.stalled_down_until_us = until_us;
        }
        place.reachable_since_us = until_us;
        if way == 2 {
            self.cut(node, Kind::Lease);
            self.cut(node, Kind::Usage);
        }
    }

    fn strike_down(&mut self, node: usize) {
        if self.nodes[node].process.is_none() {
            return;
        }
        if self.random.chance(self.scenario.faults.in_order) {
            self.drain(node);
            return;
        }
        let is_disk_lost = self.random.chance(self.scenario.faults.disk_lost);
        if !is_disk_lost {
            self.kill(node, false);
            return;
        }
        // Whoever else works on this disk goes with it.
        let disk = self.nodes[node].disk;
        for other in 0..self.nodes.len() {
            if self.nodes[other].disk == disk {
                self.kill(other, true);
            }
        }
        self.disks[disk].wipe();
        self.lose_unledgered(disk);
    }

    /// What was on a disk and not in the ledger is gone, that of earlier processes included.
    fn lose_unledgered(&mut self, disk: usize) {
        let nodes = &self.nodes;
        let of_disk = |boot: &[u8; 16]| nodes[usize::from(boot[0])].disk == disk;
        let facts = self.truth.exchanges.values();
        let boots = facts.map(|fact| fact.boot).filter(of_disk);
        self.truth.lost_boots.extend(boots);
    }

    /// A process dies at once.
    pub(super) fn kill(&mut self, node: usize, is_disk_lost: bool) {
        let Some(process) = self.nodes[node].process.take() else {
            return;
        };
        for number in process.exchanges.keys() {
            self.truth.tally.crashed += 1;
            if let Some(fact) = self.truth.exchanges.get_mut(number) {
                fact.end = FactEnd::Crashed;
            }
        }
        // One that dies in the midst of something is not among them.
        let boot = process.id();
        let open = self.truth.exchanges.values_mut();
        for fact in open.filter(|fact| fact.boot == boot && fact.end == FactEnd::Open) {
            fact.end = FactEnd::Crashed;
        }
        self.truth.killed_boots.insert(boot);
        process.die(is_disk_lost);
        self.gone(node);
        self.soon(15 * S, Event::Start { node });
    }

    /// A process is no more; its streams are over.
    fn gone(&mut self, node: usize) {
        for kind in [Kind::Lease, Kind::Usage] {
            self.cut(node, kind);
        }
        let place = &mut self.nodes[node];
        place.lease = None;
        place.usage = None;
        place.reachable_since_us = u64::MAX;
    }

    /// A process is to end in order.
    pub(super) fn drain(&mut self, node: usize) {
        let place = &mut self.nodes[node];
        let life = place.life;
        let Some(process) = &mut place.process else {
            return;
        };
        if process.ending != Ending::Running {
            return;
        }
        process.ending = Ending::Draining;
        process.keeper.drain();
        self.at(self.now_us + OVERDUE_US, Event::Overdue { node, life });
        self.poll_soon(node);
    }

    pub(super) fn end_if_done(&mut self, node: usize) {
        let is_done = |process: &Process| {
            process.ending == Ending::Finished
                && process.keeper.is_closed()
                && process.usage.is_drained()
        };
        // Without a stream nothing was read, so that nothing is known to be left.
        let is_told = self.nodes[node].usage.is_some();
        if !is_told || !self.nodes[node].process.as_ref().is_some_and(is_done) {
            return;
        }
        // What was said last is still on its way.
        let place = &mut self.nodes[node];
        let Some(process) = place.process.take() else {
            return;
        };
        process.die(false);
        place.reachable_since_us = u64::MAX;
        for stream in [place.lease.take(), place.usage.take()]
            .into_iter()
            .flatten()
        {
            self.let_go(stream);
        }
        if !self.is_ending {
            self.soon(5 * S, Event::Start { node });
        }
    }

    pub(super) fn kill_replica(&mut self, replica: usize) {
        let Replica { life, is_up } = &mut self.replicas[replica];
        if !std::mem::take(is_up) {
            return;
        }
        *life += 1;
        self.recalls_since_us = self.now_us;
        let streams = self
            .streams
            .iter_mut()
            .filter(|(_, stream)| stream.replica == replica);
        let mut broken = Vec::new();
        for (number, stream) in streams {
            stream.is_open_at_replica = false;
            broken.push(*number);
        }
        for stream in broken {
            let at_us = self.now_us + self.random.below(S);
            self.at(
                at_us,
                Event::Broken {
                    stream,
                    end: End::Node,
                },
            );
        }
        self.soon(8 * S, Event::StartReplica { replica });
    }

    fn start_replica(&mut self, replica: usize) {
        if !std::mem::replace(&mut self.replicas[replica].is_up, true) {
            let life = self.replicas[replica].life;
            self.soon(S / 4, Event::Tick { replica, life });
        }
    }

    pub(super) fn store_is_back(&mut self) {
        if !std::mem::replace(&mut self.is_db_up, true) {
            self.db.book.was_deaf(self.unix_us());
            self.recalls_since_us = self.now_us;
        }
    }

    pub(super) fn wake_all(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].process.is_none() {
                self.soon(S, Event::Start { node });
            } else {
                self.poll_soon(node);
            }
        }
        for replica in 0..self.replicas.len() {
            self.soon(S, Event::StartReplica { replica });
        }
    }

    fn change_amount(&mut self) {
        let at = self.random.index(self.scenario.limits.len());
        let percent = *self.random.pick(&[40, 80, 120, 200]);
        let now_us = self.unix_us();
        let limit = &mut self.scenario.limits[at];
        if !limit.is_counted() {
            return;
        }
        let amount = (limit.terms.amount * percent / 100).max(1);
        limit.terms.amount = amount;
        limit.account.amount = amount;
        let highest = self.truth.highest.entry(limit.id.to_string()).or_default();
        *highest = amount.max(*highest);
        self.db.set_limit(&limit.id, limit.terms.clone(), now_us);
    }

    /// The database is an older one from here on.
    fn fail_over(&mut self) {
        let Some(copy) = &self.copy else {
            return;
        };
        self.db = (**copy).clone();
        self.failovers += 1;
        let now_us = self.unix_us();
        for limit in self.scenario.limits.clone() {
            self.db.set_limit(&limit.id, limit.terms, now_us);
        }
        self.db.book.was_deaf(now_us);
        self.recalls_since_us = self.now_us;
        self.forget_later_records();
        // Every process has to say Hello, and where it resumes.
        for replica in 0..self.replicas.len() {
            self.kill_replica(replica);
        }
    }
}
