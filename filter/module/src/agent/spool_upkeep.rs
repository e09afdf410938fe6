//! Looks after the spool's disk about once a second, so that no worker waits for it: brings records
//! to the medium, sets room aside, and writes down what was lost.

use std::{sync::Arc, time::Duration};

use filter_agent::spool::{DiskError, Kept, ShardEnd};
use tokio::time::{MissedTickBehavior, interval};

use super::{Agent, disk::StateDir};
use crate::{
    log,
    node::{NodeError, ThisNode},
    worker::{self, Shared},
};

/// The most that a power failure may take of what was settled, besides the time of the sync itself.
const PERIOD: Duration = Duration::from_secs(1);

/// The upkeep of every worker's shard.
pub(super) struct SpoolUpkeep<'a> {
    agent: &'a Agent,
    node: Arc<ThisNode>,
    /// Records that are lost and not marked, as said in the log last.
    told_unmarked: u64,
    /// Why there was no table for more open exchanges, as said in the log last.
    told_supplied: Option<DiskError>,
}

/// What was done without any lock.
struct Done {
    relocked: Result<bool, NodeError>,
    supplied: Result<(), DiskError>,
    kept: Vec<(Arc<Shared>, Kept<StateDir>)>,
}

impl<'a> SpoolUpkeep<'a> {
    pub(super) fn new(agent: &'a Agent, node: Arc<ThisNode>) -> Self {
        Self {
            agent,
            node,
            told_unmarked: 0,
            told_supplied: None,
        }
    }

    /// Goes on for ever.
    pub(super) async fn run(&mut self) {
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.keep().await;
        }
    }

    /// Does once what is to be done.
    pub(super) async fn keep(&mut self) {
        let mut unmarked = 0;
        let mut wanted = Vec::new();
        for worker in worker::all() {
            let upkeep = match &mut *worker.spool() {
                Some(writer) => {
                    writer.mark_gap();
                    unmarked += writer.unmarked();
                    writer.upkeep()
                }
                None => None,
            };
            wanted.extend(upkeep.map(|upkeep| (worker, upkeep)));
        }
        self.tell_unmarked(unmarked);
        let node = Arc::clone(&self.node);
        let done = tokio::task::spawn_blocking(move || {
            let relocked = node.relock();
            let is_new = matches!(relocked, Ok(true));
            Done {
                relocked,
                supplied: supply(&node, is_new),
                kept: wanted
                    .into_iter()
                    .map(|(worker, upkeep)| (worker, upkeep.perform()))
                    .collect(),
            }
        });
        match done.await {
            Ok(done) => self.take_back(done, unmarked),
            Err(error) => log::error(&format!("spool: {error}")),
        }
    }

    /// The last words of every shard. No record is appended after it.
    pub(super) fn finish(&mut self) -> Vec<ShardEnd> {
        let finish = |worker: Arc<Shared>| worker.spool().as_mut().map(|writer| writer.finish());
        worker::all().into_iter().filter_map(finish).collect()
    }

    fn take_back(&mut self, done: Done, unmarked: u64) {
        match done.relocked {
            Ok(false) => {}
            Ok(true) => log::error("state_dir was emptied while in use; the spool goes on in it"),
            Err(error) => log::error(&error.to_string()),
        }
        let mut lacks_room = self.tell_supplied(done.supplied);
        for (worker, kept) in done.kept {
            lacks_room |= kept.lacks_room();
            for trouble in kept.troubles() {
                log::error(&format!("spool: {trouble}"));
            }
            let vanished = worker
                .spool()
                .as_mut()
                .is_some_and(|writer| writer.kept(kept));
            if vanished {
                log::error("a segment of the spool vanished; its records are shown as lost");
            }
        }
        self.agent.disk_full.set(lacks_room || unmarked > 0);
    }

    /// True if the disk has no room for a table of open exchanges.
    fn tell_supplied(&mut self, supplied: Result<(), DiskError>) -> bool {
        let error = supplied.err();
        let (told, is_full) = (self.told_supplied.take(), error == Some(DiskError::Full));
        if let Some(error) = error.as_ref().filter(|error| told.as_ref() != Some(*error)) {
            log::error(&format!("no table for more open exchanges: {error}"));
        }
        self.told_supplied = error;
        is_full
    }

    fn tell_unmarked(&mut self, unmarked: u64) {
        if unmarked == 0 && self.told_unmarked > 0 {
            log::warn("the disk takes usage records again; the lost ones are marked as a gap");
        } else if unmarked > self.told_unmarked {
            log::error(&format!(
                "the disk of state_dir takes no usage records: {unmarked} are lost so far"
            ));
        }
        self.told_unmarked = unmarked;
    }
}

/// Brings every worker the tables that it may need next. `is_new`: the directory is, so that the
/// tables it had are nowhere.
fn supply(node: &ThisNode, is_new: bool) -> Result<(), DiskError> {
    let mut outcome = Ok(());
    for worker in worker::all() {
        let Some(supply) = &worker.supply else {
            continue;
        };
        if is_new {
            supply.give_up();
        }
        outcome = outcome.and(supply.fill(node, worker.open()));
    }
    outcome
}
