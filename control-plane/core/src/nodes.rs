//! Which node runs which version: what `Config.Wait` and `Config.ListNodes` answer from.

use std::collections::{BTreeMap, VecDeque};

/// Names one process of a node: 16 random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootId(pub [u8; 16]);

impl BootId {
    /// From bytes on the wire; none unless there are 16.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// A process of a node as last seen. Times are Unix microseconds of the control plane's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub boot_id: BootId,
    /// A label; several processes may carry the same.
    pub name: String,
    pub envoy_version: String,
    pub connected: bool,
    /// Newest version it has ACKed; 0: none.
    pub acked_version: u64,
    pub connected_at_us: i64,
    pub last_seen_us: i64,
    /// Resources that it refused, as `kind/id: reason`.
    pub rejected: Vec<String>,
}

/// Names one connection of a node, so that the end of an old one does not end a newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    boot_id: BootId,
    number: u64,
}

impl Session {
    /// The process that is connected.
    pub fn boot_id(self) -> BootId {
        self.boot_id
    }
}

/// How far a version has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Connected nodes.
    pub connected: u32,
    /// Connected nodes that run the version or a later one.
    pub acked: u32,
    /// Nodes seen within the time they may be stale that are not connected.
    pub disconnected: u32,
    /// Connected nodes that do not run it, by name.
    pub pending: Vec<String>,
    /// What connected nodes refused, as `kind/id: reason`, each once.
    pub rejected: Vec<String>,
    /// When the last of the connected nodes ACKed it; none while some have not, or none is there.
    pub complete_at_us: Option<i64>,
}

impl Progress {
    /// Whether every connected node runs the version.
    pub fn is_complete(&self) -> bool {
        self.pending.is_empty()
    }
}

/// Every node this replica has heard of.
#[derive(Debug, Default)]
pub struct Nodes {
    entries: BTreeMap<BootId, Entry>,
    sessions: u64,
}

#[derive(Debug)]
struct Entry {
    node: Node,
    /// None: known from another replica's report.
    session: Option<u64>,
    acks: VecDeque<(u64, i64)>,
}

/// ACKs kept a node, so that a waiter learns when its version came, not when the newest did.
const KEPT_ACKS: usize = 64;

impl Nodes {
    /// A node connects; `acked_version` is what it says it runs (0: nothing of ours).
    pub fn connect(
        &mut self,
        boot_id: BootId,
        name: &str,
        envoy_version: &str,
        acked_version: u64,
        now_us: i64,
    ) -> Session {
        self.sessions += 1;
        let entry = Entry {
            node: Node {
                boot_id,
                name: name.to_owned(),
                envoy_version: envoy_version.to_owned(),
                connected: true,
                acked_version,
                connected_at_us: now_us,
                last_seen_us: now_us,
                rejected: Vec::new(),
            },
            session: Some(self.sessions),
            acks: VecDeque::from([(acked_version, now_us)]),
        };
        self.entries.insert(boot_id, entry);
        Session {
            boot_id,
            number: self.sessions,
        }
    }

    /// A connected node runs a version. `rejected` names what it refused of it and replaces what
    /// was said before.
    pub fn ack(&mut self, session: Session, version: u64, rejected: Vec<String>, now_us: i64) {
        let Some(entry) = self.current(session) else {
            return;
        };
        entry.node.last_seen_us = now_us;
        entry.node.rejected = rejected;
        if version > entry.node.acked_version {
            entry.node.acked_version = version;
            entry.acks.push_back((version, now_us));
            if entry.acks.len() > KEPT_ACKS {
                entry.acks.pop_front();
            }
        }
    }

    /// A connected node gave a sign of life.
    pub fn seen(&mut self, session: Session, now_us: i64) {
        if let Some(entry) = self.current(session) {
            entry.node.last_seen_us = now_us;
        }
    }

    /// A connection ended. Of no effect when the node has connected again since.
    pub fn disconnect(&mut self, session: Session, now_us: i64) {
        if let Some(entry) = self.current(session) {
            entry.node.connected = false;
            entry.node.last_seen_us = now_us;
            entry.session = None;
        }
    }

    /// Takes in what another replica, or an earlier process of this one, has stored of a node.
    /// What is connected here is known better here.
    pub fn observe(&mut self, node: Node) {
        let known = self.entries.get(&node.boot_id);
        if known.is_some_and(|entry| {
            entry.session.is_some() || entry.node.last_seen_us > node.last_seen_us
        }) {
            return;
        }
        let acks = VecDeque::from([(node.acked_version, node.last_seen_us)]);
        let entry = Entry {
            node,
            session: None,
            acks,
        };
        self.entries.insert(entry.node.boot_id, entry);
    }

    /// Drops nodes that are not connected and were last seen before a moment.
    pub fn forget_before(&mut self, moment_us: i64) {
        self.entries
            .retain(|_, entry| entry.node.connected || entry.node.last_seen_us >= moment_us);
    }

    /// Every node, in no telling order.
    pub fn iter(&self) -> impl Iterator<Item = &Node> {
        self.entries.values().map(|entry| &entry.node)
    }

    /// One node.
    pub fn node(&self, boot_id: BootId) -> Option<&Node> {
        self.entries.get(&boot_id).map(|entry| &entry.node)
    }

    /// The nodes that are connected to this replica.
    pub fn own(&self) -> impl Iterator<Item = &Node> {
        self.entries
            .values()
            .filter(|entry| entry.session.is_some())
            .map(|entry| &entry.node)
    }

    /// How far a version has come. Nodes last seen before `stale_before_us` are not counted as
    /// disconnected.
    pub fn progress(&self, version: u64, stale_before_us: i64) -> Progress {
        let mut progress = Progress::default();
        let mut last_ack_us = None;
        for entry in self.entries.values() {
            let node = &entry.node;
            if !node.connected {
                progress.disconnected += u32::from(node.last_seen_us >= stale_before_us);
                continue;
            }
            progress.connected += 1;
            for refusal in &node.rejected {
                if !progress.rejected.contains(refusal) {
                    progress.rejected.push(refusal.clone());
                }
            }
            if node.acked_version < version {
                progress.pending.push(node.name.clone());
                continue;
            }
            progress.acked += 1;
            let first = entry.acks.iter().find(|(acked, _)| *acked >= version);
            last_ack_us = last_ack_us.max(first.map(|(_, at_us)| *at_us));
        }
        if progress.pending.is_empty() {
            progress.complete_at_us = last_ack_us;
        }
        progress
    }

    fn current(&mut self, session: Session) -> Option<&mut Entry> {
        self.entries
            .get_mut(&session.boot_id)
            .filter(|entry| entry.session == Some(session.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(byte: u8) -> BootId {
        BootId([byte; 16])
    }

    #[test]
    fn a_version_is_complete_when_every_connected_node_runs_it() {
        let mut nodes = Nodes::default();
        let a = nodes.connect(boot(1), "a", "1.40.0", 0, 10);
        let b = nodes.connect(boot(2), "b", "1.40.0", 0, 10);
        nodes.ack(a, 7, vec![], 20);
        let half = nodes.progress(7, 0);
        assert_eq!(
            (half.connected, half.acked, half.pending.as_slice()),
            (2, 1, ["b".to_owned()].as_slice())
        );
        assert_eq!(half.complete_at_us, None);
        nodes.ack(b, 7, vec![], 30);
        nodes.ack(a, 8, vec![], 90);
        let whole = nodes.progress(7, 0);
        assert!(whole.is_complete());
        assert_eq!((whole.acked, whole.complete_at_us), (2, Some(30)));
        assert_eq!(nodes.progress(8, 0).pending, ["b"]);
    }

    #[test]
    fn a_node_that_left_is_not_waited_for_but_told() {
        let mut nodes = Nodes::default();
        let a = nodes.connect(boot(1), "a", "", 0, 10);
        nodes.disconnect(a, 20);
        assert_eq!(
            (
                nodes.progress(7, 15).disconnected,
                nodes.progress(7, 25).disconnected
            ),
            (1, 0)
        );
        assert!(nodes.progress(7, 0).is_complete());
        nodes.forget_before(21);
        assert_eq!(nodes.iter().count(), 0);
    }

    #[test]
    fn the_end_of_an_old_connection_does_not_end_a_newer_one() {
        let mut nodes = Nodes::default();
        let old = nodes.connect(boot(1), "a", "", 0, 10);
        let new = nodes.connect(boot(1), "a", "", 3, 20);
        nodes.disconnect(old, 30);
        nodes.ack(old, 9, vec![], 30);
        assert_eq!(
            (nodes.progress(3, 0).acked, nodes.progress(9, 0).acked),
            (1, 0)
        );
        nodes.disconnect(new, 40);
        assert_eq!(nodes.progress(3, 0).connected, 0);
    }

    #[test]
    fn what_a_node_refused_is_told_until_it_says_otherwise() {
        let mut nodes = Nodes::default();
        let a = nodes.connect(boot(1), "a", "", 0, 10);
        let b = nodes.connect(boot(2), "b", "", 0, 10);
        nodes.ack(a, 1, vec!["model/m: no targets".into()], 20);
        nodes.ack(b, 1, vec!["model/m: no targets".into()], 20);
        assert_eq!(nodes.progress(1, 0).rejected, ["model/m: no targets"]);
        nodes.ack(a, 2, vec![], 30);
        nodes.ack(b, 2, vec![], 30);
        assert!(nodes.progress(2, 0).rejected.is_empty());
    }

    #[test]
    fn a_stored_report_counts_unless_the_node_is_connected_here() {
        let mut nodes = Nodes::default();
        let a = nodes.connect(boot(1), "a", "", 5, 10);
        let mut report = nodes.iter().next().unwrap().clone();
        report.acked_version = 1;
        report.last_seen_us = 99;
        nodes.observe(report.clone());
        assert_eq!(nodes.progress(5, 0).acked, 1);
        nodes.disconnect(a, 50);
        nodes.observe(report.clone());
        assert_eq!(nodes.progress(5, 0).pending, ["a"]);
        report.last_seen_us = 40;
        report.acked_version = 7;
        nodes.observe(report);
        assert_eq!(nodes.progress(7, 0).acked, 0);
    }
}
