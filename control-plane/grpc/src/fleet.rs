//! The nodes: who is connected here, what other replicas report, and who runs which version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use control_plane_core::nodes::{BootId, Node, Nodes, Progress, Session};
use control_plane_store::{Error, Store};
use tokio::sync::watch;

use crate::clock::now_us;
use crate::shutdown::Shutdown;

// How soon another replica's `Wait` learns of an ACK here, and we of one there.
const SAVE_EVERY: Duration = Duration::from_millis(100);
const BEAT_EVERY: Duration = Duration::from_secs(5);
// Three beats: a replica that reports a node no more has lost it, or is gone itself.
const REPORT_HOLDS_US: i64 = 15_000_000;

/// Every node that this replica has heard of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    state: Arc<Mutex<State>>,
    changes: Arc<watch::Sender<()>>,
}

#[derive(Debug, Default)]
struct State {
    nodes: Nodes,
    /// Left since the last time node states were stored.
    departed: BTreeMap<BootId, Node>,
    /// Stand for processes that did not say which they are. Only this replica knows them, so that
    /// no two replicas give one of them to two processes.
    stand_ins: BTreeSet<BootId>,
}

/// Which process of a node connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    Named(BootId),
    /// It did not say. It takes the place of one of the same name that has left this replica, if
    /// there is one, so that coming and going does not fill the fleet; else this.
    Unnamed {
        fresh: BootId,
    },
}

/// A node's place in the fleet while its stream is open; dropping it is the disconnection.
#[derive(Debug)]
pub(crate) struct Seat {
    fleet: Fleet,
    session: Session,
}

impl Fleet {
    /// A node connects, running a version (0: none of ours).
    pub(crate) fn connect(&self, process: Process, name: &str, version: &str, acked: u64) -> Seat {
        let mut state = self.lock();
        let boot_id = match process {
            Process::Named(boot_id) => boot_id,
            Process::Unnamed { fresh } => state.stand_in(name, fresh),
        };
        let session = state.nodes.connect(boot_id, name, version, acked, now_us());
        drop(state);
        self.changes.send_replace(());
        Seat {
            fleet: self.clone(),
            session,
        }
    }

    /// How far a version has come; nodes not seen for `max_stale_s` are not counted.
    pub(crate) fn progress(&self, version: u64, max_stale_s: u32) -> Progress {
        let stale_before_us = now_us() - i64::from(max_stale_s) * 1_000_000;
        let state = self.lock();
        let mut progress = state.nodes.progress(version, stale_before_us);
        progress.disconnected = count_away(&state.nodes, stale_before_us);
        progress
    }

    /// Nodes whose config stream is at this replica.
    pub(crate) fn connected_here(&self) -> u64 {
        u64::try_from(self.lock().nodes.own().count()).unwrap_or(u64::MAX)
    }

    /// Every node, by name.
    pub(crate) fn list(&self) -> Vec<Node> {
        let state = self.lock();
        let here: BTreeSet<BootId> = state.nodes.own().map(|node| node.boot_id).collect();
        let now_us = now_us();
        // A dead connection does not outlive the keep-alive, so who is connected is seen now.
        let seen = |node: &Node| Node {
            last_seen_us: if here.contains(&node.boot_id) {
                now_us
            } else {
                node.last_seen_us
            },
            ..node.clone()
        };
        let mut nodes: Vec<Node> = state.nodes.iter().map(seen).collect();
        nodes.sort_by(|a, b| (&a.name, a.boot_id).cmp(&(&b.name, b.boot_id)));
        nodes
    }

    /// Marks what came before as seen; the receiver tells of each change after.
    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Takes in what other replicas have stored.
    ///
    /// # Errors
    /// When the store cannot be read now.
    pub(crate) async fn refresh(&self, store: &Store) -> Result<(), Error> {
        let reports = store.list_nodes().await?;
        let holds_since_us = now_us() - REPORT_HOLDS_US;
        let mut state = self.lock();
        for mut report in reports {
            report.connected &= report.last_seen_us >= holds_since_us;
            state.nodes.observe(report);
        }
        Ok(())
    }

    /// Stores what happens to the nodes connected here, until shutdown.
    pub(crate) async fn keep_stored(
        self,
        store: Store,
        feed: crate::feed::Feed,
        mut shutdown: Shutdown,
    ) {
        let mut changes = self.watch();
        loop {
            tokio::select! {
                _ = changes.changed() => tokio::time::sleep(SAVE_EVERY).await,
                () = tokio::time::sleep(BEAT_EVERY) => {}
                () = shutdown.requested() => return,
            }
            changes.mark_unchanged();
            let stale_before_us = now_us() - i64::from(feed.max_stale_s()) * 1_000_000;
            if let Err(error) = self.store_once(&store, stale_before_us).await {
                tracing::debug!(%error, "node states could not be stored");
            }
        }
    }

    async fn store_once(&self, store: &Store, stale_before_us: i64) -> Result<(), Error> {
        let changed = self.take_changed(stale_before_us);
        store.save_nodes(&changed).await?;
        store.forget_nodes_before(stale_before_us).await?;
        self.refresh(store).await
    }

    fn take_changed(&self, stale_before_us: i64) -> Vec<Node> {
        let now_us = now_us();
        let mut state = self.lock();
        let State {
            nodes,
            departed,
            stand_ins,
        } = &mut *state;
        nodes.forget_before(stale_before_us);
        stand_ins.retain(|boot_id| nodes.node(*boot_id).is_some());
        let departed = std::mem::take(departed).into_values();
        let own = nodes.own().map(|node| Node {
            last_seen_us: now_us,
            ..node.clone()
        });
        own.chain(departed).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in the critical sections leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn stand_in(&mut self, name: &str, fresh: BootId) -> BootId {
        let vacant = self
            .stand_ins
            .iter()
            .filter_map(|boot_id| self.nodes.node(*boot_id))
            .find(|node| !node.connected && node.name == name)
            .map(|node| node.boot_id);
        let boot_id = vacant.unwrap_or(fresh);
        self.stand_ins.insert(boot_id);
        boot_id
    }
}

impl Seat {
    /// The node runs a version, refusing some of it.
    pub(crate) fn ack(&self, version: u64, rejected: Vec<String>) {
        self.fleet
            .lock()
            .nodes
            .ack(self.session, version, rejected, now_us());
        self.fleet.changes.send_replace(());
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.fleet.lock();
        state.nodes.disconnect(self.session, now_us());
        let boot_id = self.session.boot_id();
        let gone = state
            .nodes
            .node(boot_id)
            .filter(|node| !node.connected)
            .cloned();
        state.departed.extend(gone.map(|node| (boot_id, node)));
        drop(state);
        self.fleet.changes.send_replace(());
    }
}

// A process that was restarted leaves its old one behind under the same name; the node is not away.
fn count_away(nodes: &Nodes, stale_before_us: i64) -> u32 {
    let (here, away): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| node.connected);
    let here: BTreeSet<&str> = here.iter().map(|node| node.name.as_str()).collect();
    let away: BTreeSet<&str> = away
        .iter()
        .filter(|node| node.last_seen_us >= stale_before_us)
        .map(|node| node.name.as_str())
        .filter(|name| !here.contains(name))
        .collect();
    u32::try_from(away.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(byte: u8) -> Process {
        Process::Named(BootId([byte; 16]))
    }

    fn unnamed(byte: u8) -> Process {
        Process::Unnamed {
            fresh: BootId([byte; 16]),
        }
    }

    #[test]
    fn a_node_whose_seat_is_dropped_is_away_until_it_is_back_under_its_name() {
        let fleet = Fleet::default();
        let seat = fleet.connect(named(1), "gw-1", "1.40.0", 3);
        let progress = fleet.progress(3, 60);
        assert_eq!(
            (progress.connected, progress.acked, progress.disconnected),
            (1, 1, 0)
        );
        drop(seat);
        assert_eq!(fleet.progress(3, 60).disconnected, 1);
        assert_eq!(fleet.connected_here(), 0);
        // A new process of the node, so another entry; but nobody is away.
        let _seat = fleet.connect(named(2), "gw-1", "1.40.0", 0);
        let progress = fleet.progress(3, 60);
        assert_eq!((progress.connected, progress.disconnected), (1, 0));
        assert_eq!(fleet.list().len(), 2);
    }

    #[test]
    fn processes_that_give_no_name_neither_pile_up_nor_stand_for_one_another() {
        let fleet = Fleet::default();
        for byte in 1..100 {
            drop(fleet.connect(unnamed(byte), "gw-1", "", 0));
        }
        assert_eq!(fleet.list().len(), 1);
        let _one = fleet.connect(unnamed(101), "gw-1", "", 0);
        let _two = fleet.connect(unnamed(102), "gw-1", "", 0);
        assert_eq!(fleet.progress(1, 60).connected, 2);
        assert_eq!(fleet.progress(1, 60).pending, ["gw-1", "gw-1"]);
    }

    #[test]
    fn what_is_stored_are_the_nodes_here_and_once_those_that_left() {
        let fleet = Fleet::default();
        let _stays = fleet.connect(named(1), "gw-1", "", 0);
        drop(fleet.connect(named(2), "gw-2", "", 0));
        let states = |nodes: Vec<Node>| -> Vec<(String, bool)> {
            let states = nodes.into_iter().map(|node| (node.name, node.connected));
            states.collect()
        };
        assert_eq!(
            states(fleet.take_changed(0)),
            [("gw-1".to_owned(), true), ("gw-2".to_owned(), false)]
        );
        assert_eq!(states(fleet.take_changed(0)), [("gw-1".to_owned(), true)]);
    }

    #[test]
    fn a_change_wakes_who_watches() {
        let fleet = Fleet::default();
        let changes = fleet.watch();
        let seat = fleet.connect(named(1), "gw-1", "", 0);
        assert!(changes.has_changed().unwrap());
        let mut changes = fleet.watch();
        seat.ack(4, vec!["Model/m: no targets".into()]);
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        drop(seat);
        assert!(changes.has_changed().unwrap());
    }
}
