//! Streams: messages in order until one end learns that it is over, late or lost in between.

use proto::metering::v1::{LeaseDown, LeaseUp, UsageDown, UsageUp};

use super::{Checked, MS, S, Stream, World};
use crate::event::{End, Event, Kind};
use crate::process::{Ending, Process};
use crate::replica::{LeaseEnd, Reply, on_usage};

/// How late a late message is at most.
const LATE_US: u64 = 3 * S;

impl World {
    /// The agent looks: what is there to say, and when to look again.
    pub(super) fn poll(&mut self, node: usize) {
        self.nodes[node].poll_at_us = None;
        let now = self.moment(node);
        let mut lease_ups = Vec::new();
        let mut usage_ups = Vec::new();
        let has_usage = self.nodes[node].usage.is_some();
        let Some(process) = &mut self.nodes[node].process else {
            return;
        };
        end_in_order(process, now.mono_us);
        let open = process.exchanges.len() as u64;
        process.keeper.observe(open, process.ends());
        while let Some(up) = process.keeper.next_up(now.mono_us, self.random.draw()) {
            lease_ups.push(up);
        }
        if has_usage && std::mem::take(&mut process.has_news) {
            usage_ups.extend(std::iter::from_fn(|| process.usage.next_up()));
        }
        let look_at_us = process.keeper.look_at_us(now.mono_us);
        let look_at_us = look_at_us.map(|at| process.clock.when_us(at));
        if let Some(stream) = self.nodes[node].lease {
            for message in lease_ups {
                let at_us = self.arrival(stream, End::Replica);
                self.at(at_us, Event::LeaseUp { stream, message });
            }
        }
        if let Some(stream) = self.nodes[node].usage {
            for message in usage_ups {
                let at_us = self.arrival(stream, End::Replica);
                self.at(at_us, Event::UsageUp { stream, message });
            }
        }
        if let Some(look_at_us) = look_at_us {
            self.poll_at(node, look_at_us.max(self.now_us + MS));
        }
        self.after(node);
        self.end_if_done(node);
    }

    /// What workers and the agent did to accounts wakes others.
    pub(super) fn after(&mut self, node: usize) {
        self.touched = Some(node);
        let place = &mut self.nodes[node];
        let life = place.life;
        let Some(process) = &mut place.process else {
            return;
        };
        let woken = std::mem::take(&mut *process.woken.lock().expect("one thread"));
        let is_rung = process.bell.was_rung();
        for number in woken {
            let within_us = if self.random.chance(50) {
                60 * MS
            } else {
                2 * MS
            };
            let turn = crate::event::Turn::Woken;
            self.soon(
                within_us,
                Event::Worker {
                    node,
                    life,
                    number,
                    turn,
                },
            );
        }
        if is_rung {
            self.poll_soon(node);
        }
    }

    pub(super) fn poll_soon(&mut self, node: usize) {
        let at_us = self.now_us + self.random.below(2 * MS);
        self.poll_at(node, at_us);
    }

    fn poll_at(&mut self, node: usize, at_us: u64) {
        let place = &mut self.nodes[node];
        if place.poll_at_us.is_some_and(|planned| planned <= at_us) {
            return;
        }
        place.poll_at_us = Some(at_us);
        let life = place.life;
        self.at(at_us, Event::Poll { node, life });
    }

    /// When a message arrives at an end of a stream.
    fn arrival(&mut self, stream: u64, end: End) -> u64 {
        let late = self.scenario.faults.late;
        let is_late = self.random.chance(late);
        let mut at_us = self.now_us + self.random.between(MS / 5, 3 * MS);
        if is_late {
            at_us += self.random.below(LATE_US);
        }
        let Some(stream) = self.streams.get_mut(&stream) else {
            return at_us;
        };
        let node = &mut self.nodes[stream.node];
        let (last_us, stalled_us) = match end {
            End::Replica => (&mut stream.up_at_us, node.stalled_up_until_us),
            End::Node => (&mut stream.down_at_us, node.stalled_down_until_us),
        };
        *last_us = at_us.max(*last_us + 1).max(stalled_us);
        if is_late && stream.kind == Kind::Lease {
            node.reachable_since_us = node.reachable_since_us.max(*last_us);
        }
        *last_us
    }

    /// A process opens a stream to some replica.
    pub(super) fn connect(&mut self, node: usize, kind: Kind) {
        let place = &self.nodes[node];
        let life = place.life;
        let is_open = match kind {
            Kind::Lease => place.lease.is_some(),
            Kind::Usage => place.usage.is_some(),
        };
        if is_open {
            return;
        }
        let stalled_us = place.stalled_up_until_us.max(place.stalled_down_until_us);
        let replica = self.random.index(self.replicas.len());
        if stalled_us > self.now_us || !self.replicas[replica].is_up {
            self.soon(2 * S, Event::Connect { node, life, kind });
            return;
        }
        self.made += 1;
        let number = self.made;
        self.streams.insert(
            number,
            Stream {
                kind,
                node,
                replica,
                is_open_at_node: true,
                is_open_at_replica: true,
                up_at_us: self.now_us,
                down_at_us: self.now_us,
                end: LeaseEnd::default(),
            },
        );
        let place = &mut self.nodes[node];
        if let Some(process) = &mut place.process {
            match kind {
                Kind::Lease => {
                    process.keeper.connected();
                    place.lease = Some(number);
                }
                Kind::Usage => {
                    process.usage.connected();
                    process.has_news = true;
                    place.usage = Some(number);
                }
            }
        }
        self.poll_soon(node);
    }

    pub(super) fn on_lease_up(&mut self, number: u64, message: LeaseUp) -> Checked {
        let now_us = self.unix_us();
        let Some(stream) = self
            .streams
            .get_mut(&number)
            .filter(|stream| stream.is_open_at_replica)
        else {
            return Ok(());
        };
        let db = self.is_db_up.then_some(&mut self.db);
        let reply = stream.end.on_up(message, db, now_us);
        for bucket in &reply.reserved {
            self.note_obtainable(&bucket.limit, &bucket.subject, None);
        }
        self.check_grants()?;
        let (messages, hangs_up) = (reply.say, reply.hangs_up);
        if self.replica_dies(number) {
            return Ok(());
        }
        for message in messages {
            let at_us = self.arrival(number, End::Node);
            self.at(
                at_us,
                Event::LeaseDown {
                    stream: number,
                    message,
                },
            );
        }
        if hangs_up {
            self.hang_up(number);
        }
        Ok(())
    }

    pub(super) fn on_usage_up(&mut self, number: u64, message: UsageUp) -> Checked {
        let now_us = self.unix_us();
        if !self
            .streams
            .get(&number)
            .is_some_and(|stream| stream.is_open_at_replica)
        {
            return Ok(());
        }
        let db = self.is_db_up.then_some(&mut self.db);
        let Reply { say, hangs_up, .. } = on_usage(message, db, self.now_us, now_us);
        self.take_ledger()?;
        if self.replica_dies(number) {
            return Ok(());
        }
        for message in say {
            let at_us = self.arrival(number, End::Node);
            self.at(
                at_us,
                Event::UsageDown {
                    stream: number,
                    message,
                },
            );
        }
        if hangs_up {
            self.hang_up(number);
        }
        Ok(())
    }

    /// Whether the replica died between its commit and its answer.
    fn replica_dies(&mut self, stream: u64) -> bool {
        let dies = self.random.chance(self.scenario.faults.dies_after_commit);
        if dies && let Some(stream) = self.streams.get(&stream) {
            let replica = stream.replica;
            self.kill_replica(replica);
        }
        dies
    }

    fn hang_up(&mut self, number: u64) {
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.is_open_at_replica = false;
        }
        // After what was said on it.
        let at_us = self.arrival(number, End::Node);
        self.at(
            at_us,
            Event::Broken {
                stream: number,
                end: End::Node,
            },
        );
    }

    pub(super) fn on_lease_down(&mut self, number: u64, message: LeaseDown) {
        let Some(stream) = self
            .streams
            .get(&number)
            .filter(|stream| stream.is_open_at_node)
        else {
            return;
        };
        let node = stream.node;
        if self.nodes[node].process.is_none() {
            return;
        }
        let now = self.moment(node);
        let place = &mut self.nodes[node];
        if place.reachable_since_us == u64::MAX {
            place.reachable_since_us = self.now_us;
        }
        if let Some(process) = &mut place.process {
            process.outages.hear(&message);
            process.keeper.on_down(message, now.mono_us);
            process.see_all();
            process.note_refusals(self.now_us);
        }
        self.poll_soon(node);
        self.after(node);
    }

    pub(super) fn on_usage_down(&mut self, number: u64, message: UsageDown) {
        let Some(stream) = self
            .streams
            .get(&number)
            .filter(|stream| stream.is_open_at_node)
        else {
            return;
        };
        let node = stream.node;
        if let Some(process) = &mut self.nodes[node].process {
            process.usage.on_down(message);
            process.has_news = true;
        }
        self.poll_soon(node);
    }

    /// An end of a stream learns that it is over.
    pub(super) fn broken(&mut self, number: u64, end: End) {
        let Some(stream) = self.streams.get_mut(&number) else {
            return;
        };
        match end {
            End::Replica => stream.is_open_at_replica = false,
            End::Node if stream.is_open_at_node => {
                stream.is_open_at_node = false;
                let (node, kind) = (stream.node, stream.kind);
                self.reconnect(node, kind);
            }
            End::Node => {}
        }
        let is_over = |stream: &Stream| !stream.is_open_at_node && !stream.is_open_at_replica;
        if self.streams.get(&number).is_some_and(is_over) {
            self.streams.remove(&number);
        }
    }

    fn reconnect(&mut self, node: usize, kind: Kind) {
        let place = &mut self.nodes[node];
        let life = place.life;
        match kind {
            Kind::Lease => {
                place.lease = None;
                place.reachable_since_us = u64::MAX;
            }
            Kind::Usage => place.usage = None,
        }
        if let Some(process) = &mut place.process
            && kind == Kind::Lease
        {
            process.keeper.disconnected();
        }
        self.soon(2 * S, Event::Connect { node, life, kind });
        self.poll_soon(node);
    }

    /// Ends the node's end of a stream; the replica's learns it at once, later, or from nobody but
    /// the messages that still arrive.
    pub(super) fn cut(&mut self, node: usize, kind: Kind) {
        let place = &self.nodes[node];
        let stream = match kind {
            Kind::Lease => place.lease,
            Kind::Usage => place.usage,
        };
        let Some(stream) = stream else {
            return;
        };
        let within_us = if self.random.chance(500) { 0 } else { 20 * S };
        if within_us == 0 {
            self.broken(stream, End::Replica);
        } else {
            self.soon(
                within_us,
                Event::Broken {
                    stream,
                    end: End::Replica,
                },
            );
        }
        self.broken(stream, End::Node);
    }

    /// A process that ended in order is no more; what it said still arrives.
    pub(super) fn let_go(&mut self, number: u64) {
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.is_open_at_node = false;
            let at_us = stream.up_at_us + 1;
            self.at(
                at_us,
                Event::Broken {
                    stream: number,
                    end: End::Replica,
                },
            );
        }
    }

    /// Everything that a replica does on a timer.
    pub(super) fn tick(&mut self, replica: usize, life: u32) {
        if self.replicas[replica].life != life || !self.replicas[replica].is_up {
            return;
        }
        self.at(self.now_us + 250 * MS, Event::Tick { replica, life });
        if !self.is_db_up {
            return;
        }
        let now_us = self.unix_us();
        self.db.tend(now_us);
        let mut recalls = Vec::new();
        for (number, stream) in &mut self.streams {
            if stream.replica == replica && stream.is_open_at_replica && stream.kind == Kind::Lease
            {
                stream.end.close(&mut self.db, now_us);
                let recall = stream.end.recall(&self.db, now_us);
                recalls.extend(recall.map(|message| (*number, message)));
            }
        }
        if self.mutant == Some(crate::mutant::Mutant::NeverRecalls) {
            return;
        }
        for (stream, message) in recalls {
            let at_us = self.arrival(stream, End::Node);
            self.at(at_us, Event::LeaseDown { stream, message });
        }
    }
}

/// A process that drains finishes when its last exchange is settled.
fn end_in_order(process: &mut Process, now_us: u64) {
    let is_idle = process.exchanges.is_empty() && process.waiters.is_empty();
    if process.ending != Ending::Draining || !is_idle {
        return;
    }
    process.ending = Ending::Finished;
    let boot = process.boot.id();
    for shard in &mut process.shards {
        let end = shard.writer.finish();
        process.usage.end(boot, end);
        process.has_news = true;
    }
    process.keeper.observe(0, process.ends());
    process.keeper.finish(now_us);
}
