//! Asks processes here for idle credit that others wait for, at whatever replica those are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use control_plane_core::limit::{BucketKey, Recall};
use control_plane_core::nodes::BootId;
use control_plane_store::Store;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::roster::Roster;
use super::{in_time, wire};
use crate::metrics::Metrics;
use crate::shutdown::Shutdown;

// How late a recall is that another replica asked for. A request waits for two seconds at most.
const EVERY: Duration = Duration::from_millis(200);
// Between two looks, however many requests wait.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks again and again, and soon when told, until shutdown.
pub(super) async fn run(
    store: Store,
    roster: Roster,
    soon: Arc<Notify>,
    metrics: Metrics,
    mut shutdown: Shutdown,
) {
    let mut told = BTreeMap::new();
    loop {
        tokio::select! {
            () = soon.notified() => {}
            () = sleep(EVERY) => {}
            () = shutdown.requested() => return,
        }
        let connected = roster.connected();
        if !connected.is_empty() {
            match in_time(store.recalls(&connected)).await {
                Ok(recalls) => {
                    let known = tell(&roster, &told, recalls);
                    let is_new =
                        |mark: &(&(BootId, BucketKey), &i64)| told.get(mark.0) != Some(mark.1);
                    metrics.recalled(known.iter().filter(is_new).count());
                    told = known;
                }
                Err(error) => tracing::debug!(%error, "recalls could not be read"),
            }
        }
        sleep(PAUSE).await;
    }
}

/// Marks that were told, with the moment of the mark.
type Told = BTreeMap<(BootId, BucketKey), i64>;

/// Tells processes what they were not told yet, and returns what they know now.
fn tell(roster: &Roster, told: &Told, recalls: Vec<(BootId, Recall)>) -> Told {
    let mut known = Told::new();
    let mut news: BTreeMap<BootId, Vec<Recall>> = BTreeMap::new();
    for (boot_id, recall) in recalls {
        let key = (boot_id, recall.bucket.clone());
        if told.get(&key) == Some(&recall.marked_at_us) {
            known.insert(key, recall.marked_at_us);
        } else {
            news.entry(boot_id).or_default().push(recall);
        }
    }
    for (boot_id, recalls) in news {
        let marks: Vec<_> = recalls
            .iter()
            .map(|recall| ((boot_id, recall.bucket.clone()), recall.marked_at_us))
            .collect();
        // One that has no room for it now is told at the next look.
        if roster.tell(boot_id, wire::recall(recalls)) {
            known.extend(marks);
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use proto::metering::v1::lease_down::Message;
    use tokio::sync::mpsc;

    use super::*;

    fn recall(limit: &str, marked_at_us: i64) -> (BootId, Recall) {
        let bucket = BucketKey {
            limit: limit.into(),
            subject: String::new(),
            window_start_s: 0,
        };
        let recall = Recall {
            bucket,
            keep: 3,
            marked_at_us,
        };
        (BootId([1; 16]), recall)
    }

    #[test]
    fn a_mark_is_told_once_and_a_newer_one_again() {
        let roster = Roster::default();
        let (outbox, mut answers) = mpsc::channel(1);
        let (_seat, _ended) = roster.seat(BootId([1; 16]), 1, outbox);
        let mut recalled = || {
            let message = answers.try_recv().ok()?.unwrap().message?;
            let Message::Recall(recall) = message else {
                panic!("{message:?}");
            };
            Some(recall.buckets.len())
        };
        let told = tell(&roster, &Told::new(), vec![recall("a", 1), recall("b", 1)]);
        assert_eq!(recalled(), Some(2));
        let told = tell(&roster, &told, vec![recall("a", 1), recall("b", 2)]);
        // It was not read yet, so there is no room for one that is due.
        let again = tell(&roster, &told, vec![recall("a", 2)]);
        assert_eq!(recalled(), Some(1));
        tell(&roster, &again, vec![recall("a", 2)]);
        assert_eq!(recalled(), Some(1));
        assert_eq!(recalled(), None);
    }
}
