//! One node's Usage stream.

use std::collections::VecDeque;

use proto::metering::v1::{Batch, Gap, OpenShard, UsageDown, UsageUp, usage_down, usage_up};

use crate::spool::{
    Adopted, BatchLimit, BootId, Disk, DiskError, Read, Retention, ShardEnd, ShardReader,
};

/// How much may be on its way without an ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Batches and gaps, of all shards together.
    pub messages: usize,
    /// Bounds of one batch.
    pub batch: BatchLimit,
}

/// Says what to send next on the Usage stream: every shard of this process and of those it has
/// adopted, each opened, resumed where the ledger says, and sent in order within a window.
#[derive(Debug)]
pub struct Session<D: Disk> {
    node: String,
    window: Window,
    lanes: Vec<Lane<D>>,
    adopted: Vec<Adopted<D>>,
    /// Of those, the ones that [`Self::take_done`] gave.
    told_done: Vec<BootId>,
    /// The lane whose turn it is, so that a busy shard does not starve the others.
    turn: usize,
}

/// A shard that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("shard {shard} of boot {boot} cannot be read: {cause}")]
pub struct Trouble {
    /// The process that wrote it.
    pub boot: BootId,
    /// Its worker.
    pub shard: u32,
    /// What the disk said.
    #[source]
    pub cause: DiskError,
}

#[derive(Debug)]
struct Lane<D> {
    reader: ShardReader<D>,
    phase: Phase,
    /// The last sequence of each message without an ack, in order.
    in_flight: VecDeque<u64>,
    trouble: Option<DiskError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not opened on this stream.
    Closed,
    /// Opened; where to begin is not known.
    Opened,
    Flowing,
}

impl Default for Window {
    /// 4 messages, each of at most 1 MiB and 1,000 records.
    fn default() -> Self {
        Self {
            messages: 4,
            batch: BatchLimit {
                bytes: 1 << 20,
                records: 1_000,
            },
        }
    }
}

// === impl Session ===

impl<D: Disk> Session<D> {
    /// A session without shards. `node` is a label for people.
    #[must_use]
    pub fn new(node: impl Into<String>, window: Window) -> Self {
        Self {
            node: node.into(),
            window,
            lanes: Vec::new(),
            adopted: Vec::new(),
            told_done: Vec::new(),
            turn: 0,
        }
    }

    /// Adds a shard of this process; at any time.
    pub fn add(&mut self, reader: ShardReader<D>) {
        let (phase, in_flight) = (Phase::Closed, VecDeque::new());
        self.lanes.push(Lane {
            reader,
            phase,
            in_flight,
            trouble: None,
        });
    }

    /// Adds the shards of a dead process; at any time. Its lock is held from here on.
    pub fn adopt(&mut self, adopted: Adopted<D>) {
        for reader in adopted.readers() {
            self.add(reader);
        }
        self.adopted.push(adopted);
    }

    /// A stream is open: every shard is to be opened on it. Also to be called when one has ended,
    /// if its state is asked for.
    pub fn connected(&mut self) {
        for lane in &mut self.lanes {
            lane.phase = Phase::Closed;
            lane.in_flight.clear();
        }
    }

    /// The next message to send; `None` until there are new records or something comes in.
    pub fn next_up(&mut self) -> Option<UsageUp> {
        if let Some(lane) = self
            .lanes
            .iter_mut()
            .find(|lane| lane.phase == Phase::Closed)
        {
            return Some(up(usage_up::Message::Open(lane.open(&self.node))));
        }
        if self.in_flight() >= self.window.messages {
            return None;
        }
        let lanes = self.lanes.len();
        for at in (0..lanes).map(|step| (self.turn + step) % lanes) {
            let lane = self.lanes.get_mut(at)?;
            if let Some(message) = lane.next(self.window.batch) {
                self.turn = at + 1;
                return Some(up(message));
            }
        }
        None
    }

    /// Takes a message in. One about a shard that is not opened on this stream is ignored.
    pub fn on_down(&mut self, down: UsageDown) {
        match down.message {
            Some(usage_down::Message::Resume(resume)) => {
                if let Some(lane) = self.lane(&resume.boot_id, resume.shard) {
                    lane.in_flight.clear();
                    lane.reader.rewind(resume.next_seq);
                    lane.phase = Phase::Flowing;
                    self.settle(&resume.boot_id, resume.shard);
                }
            }
            Some(usage_down::Message::Ack(ack)) => {
                if let Some(lane) = self.lane(&ack.boot_id, ack.shard) {
                    lane.acked(ack.through_seq);
                }
            }
            None => {}
        }
    }

    /// True if every shard is resumed and all that was read of it is acked: after
    /// [`Self::next_up`] gave `None`, nothing is left to send.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.lanes.iter().all(|lane| {
            lane.phase == Phase::Flowing && lane.reader.acked() + 1 >= lane.reader.next_seq()
        })
    }

    /// Shards that could not be read since the last call.
    pub fn take_troubles(&mut self) -> Vec<Trouble> {
        let trouble = |lane: &mut Lane<D>| {
            let (boot, shard) = (lane.reader.boot(), lane.reader.shard());
            lane.trouble
                .take()
                .map(|cause| Trouble { boot, shard, cause })
        };
        self.lanes.iter_mut().filter_map(trouble).collect()
    }

    /// Dead processes of which the ledger has everything, with the ends of their shards; each once.
    pub fn take_done(&mut self) -> Vec<(BootId, Vec<ShardEnd>)> {
        let unsettled = self.unsettled();
        let mut done = Vec::new();
        for adopted in &self.adopted {
            let id = adopted.id();
            let mut lanes = self.lanes.iter().filter(|lane| lane.reader.boot() == id);
            let is_settled = unsettled.iter().all(|(boot, _)| *boot != id);
            if is_settled && lanes.all(Lane::is_done) && !self.told_done.contains(&id) {
                let shards = adopted.shards().iter();
                done.push((id, shards.map(|shard| adopted.end(shard.shard)).collect()));
            }
        }
        self.told_done.extend(done.iter().map(|(id, _)| *id));
        done
    }

    /// A shard of this process gets no more records: what is missing before its end is to be told.
    pub fn end(&mut self, boot: BootId, end: ShardEnd) {
        let of_shard =
            |lane: &&mut Lane<D>| lane.reader.boot() == boot && lane.reader.shard() == end.shard;
        if let Some(lane) = self.lanes.iter_mut().find(of_shard) {
            lane.reader.end_at(end);
        }
    }

    /// Removes acked segments that `retention` does not keep, and the directories of dead processes
    /// that are empty then. Only shards that are resumed on this stream: the ledger may have been
    /// restored to an older state since its last ack. `now_ms` is Unix time in milliseconds.
    ///
    /// # Errors
    /// The first failure of the disk; the rest is still tried.
    pub fn prune(&mut self, retention: Retention, now_ms: u64) -> Result<(), DiskError> {
        // What the disk did not take before is tried again.
        for (boot, shard) in self.unsettled() {
            self.settle(&boot.0, shard);
        }
        // Records that are still in the tables too must be found there.
        let unsettled = self.unsettled();
        let mut readers: Vec<&mut ShardReader<D>> = self
            .lanes
            .iter_mut()
            .filter(|lane| lane.phase == Phase::Flowing)
            .map(|lane| &mut lane.reader)
            .filter(|reader| !unsettled.contains(&(reader.boot(), reader.shard())))
            .collect();
        let mut outcome = retention.prune(&mut readers, now_ms).map(drop);
        let mut gone = Vec::new();
        for adopted in &self.adopted {
            let id = adopted.id();
            if !self
                .lanes
                .iter()
                .filter(|lane| lane.reader.boot() == id)
                .all(Lane::is_done)
            {
                continue;
            }
            match adopted.remove_if_empty() {
                Ok(true) => gone.push(id),
                Ok(false) => {}
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        self.lanes
            .retain(|lane| !gone.contains(&lane.reader.boot()));
        self.adopted.retain(|adopted| !gone.contains(&adopted.id()));
        self.told_done.retain(|id| !gone.contains(id));
        outcome
    }

    /// What a dead process had open in a shard goes into it, now that the ledger has said where to
    /// go on.
    fn settle(&mut self, boot: &[u8], shard: u32) {
        let Self { lanes, adopted, .. } = self;
        let of_boot = |adopted: &&mut Adopted<D>| adopted.id().0 == boot;
        let of_shard =
            |lane: &&mut Lane<D>| lane.reader.boot().0 == boot && lane.reader.shard() == shard;
        let Some(adopted) = adopted.iter_mut().find(of_boot) else {
            return;
        };
        let Some(lane) = lanes.iter_mut().find(of_shard) else {
            return;
        };
        if adopted.is_unsettled(shard) {
            lane.trouble = adopted.settle(shard, lane.reader.acked()).err();
            lane.reader.end_at(adopted.end(shard));
        }
    }

    /// Shards of dead processes that lack some of what was open, though their place is known.
    fn unsettled(&self) -> Vec<(BootId, u32)> {
        let is_unsettled = |lane: &&Lane<D>| {
            let (boot, shard) = (lane.reader.boot(), lane.reader.shard());
            let mut adopted = self.adopted.iter().filter(|adopted| adopted.id() == boot);
            adopted.any(|adopted| adopted.is_unsettled(shard))
        };
        let lanes = self
            .lanes
            .iter()
            .filter(|lane| lane.phase == Phase::Flowing);
        lanes
            .filter(is_unsettled)
            .map(|lane| (lane.reader.boot(), lane.reader.shard()))
            .collect()
    }

    fn in_flight(&self) -> usize {
        self.lanes.iter().map(|lane| lane.in_flight.len()).sum()
    }

    fn lane(&mut self, boot: &[u8], shard: u32) -> Option<&mut Lane<D>> {
        self.lanes.iter_mut().find(|lane| {
            lane.phase != Phase::Closed
                && lane.reader.boot().0 == boot
                && lane.reader.shard() == shard
        })
    }
}

// === impl Lane ===

impl<D: Disk> Lane<D> {
    fn open(&mut self, node: &str) -> OpenShard {
        self.phase = Phase::Opened;
        let oldest_kept_seq = self.reader.oldest_kept_seq().unwrap_or_else(|error| {
            self.trouble = Some(error);
            self.reader.next_seq()
        });
        OpenShard {
            boot_id: self.boot_id(),
            node: node.to_owned(),
            shard: self.reader.shard(),
            oldest_kept_seq,
        }
    }

    fn next(&mut self, limit: BatchLimit) -> Option<usage_up::Message> {
        if self.phase != Phase::Flowing {
            return None;
        }
        let read = self.reader.read(limit).unwrap_or_else(|error| {
            self.trouble = Some(error);
            None
        })?;
        self.in_flight.push_back(self.reader.next_seq() - 1);
        let (boot_id, shard) = (self.boot_id(), self.reader.shard());
        Some(match read {
            Read::Records { first_seq, records } => usage_up::Message::Batch(Batch {
                boot_id,
                shard,
                first_seq,
                records,
            }),
            Read::Gap(gap) => usage_up::Message::Gap(Gap {
                boot_id,
                shard,
                from_seq: gap.from,
                to_seq: gap.to,
                reason: gap.reason.into(),
            }),
        })
    }

    /// An ack of something that was not sent acks what was.
    fn acked(&mut self, through_seq: u64) {
        if self.phase != Phase::Flowing {
            return;
        }
        self.reader
            .acked_through(through_seq.min(self.reader.next_seq() - 1));
        while self
            .in_flight
            .front()
            .is_some_and(|last| *last <= through_seq)
        {
            self.in_flight.pop_front();
        }
    }

    /// The ledger has all that a dead process wrote.
    fn is_done(&self) -> bool {
        self.phase == Phase::Flowing && self.reader.is_done()
    }

    fn boot_id(&self) -> Vec<u8> {
        self.reader.boot().0.to_vec()
    }
}

fn up(message: usage_up::Message) -> UsageUp {
    UsageUp {
        message: Some(message),
    }
}

#[cfg(test)]
mod tests;
