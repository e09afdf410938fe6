//! Closes that wait for the last records of their process, or for Postgres.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use control_plane_core::nodes::BootId;
use control_plane_store::{Closing, Store};
use tokio::time::{Instant, sleep};

use super::wire::EpochEnd;
use crate::shutdown::Shutdown;

const EVERY: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
// Records of an ended process that are not in the ledger by then are brought by whoever adopts its
// spool; its credit has the fate of a lost process's until it is closed again.
const KEPT_FOR: Duration = Duration::from_secs(3600);
const MOST: usize = 10_000;

/// Closes that are to be tried again.
#[derive(Clone, Debug, Default)]
pub(super) struct Closes(Arc<Mutex<BTreeMap<(BootId, u64), Pending>>>);

#[derive(Clone, Debug)]
struct Pending {
    end: EpochEnd,
    try_at: Instant,
    /// Doubles with each try.
    pause: Duration,
    until: Instant,
}

impl Closes {
    /// Closes an epoch of a process, now or later.
    pub(super) async fn take(&self, store: &Store, boot_id: BootId, end: EpochEnd) {
        if close(store, boot_id, &end).await {
            return;
        }
        let mut pending = self.lock();
        if pending.len() >= MOST {
            tracing::warn!(
                epoch = end.epoch,
                "too many closes wait: one is left to the fence"
            );
            return;
        }
        let now = Instant::now();
        let one = Pending {
            try_at: now + EVERY,
            pause: EVERY,
            until: now + KEPT_FOR,
            end,
        };
        pending.insert((boot_id, one.end.epoch), one);
    }

    /// Tries them again and again, until shutdown.
    pub(super) async fn run(self, store: Store, mut shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = sleep(EVERY) => {}
                () = shutdown.requested() => return,
            }
            for (boot_id, end) in self.take_due(Instant::now()) {
                if close(&store, boot_id, &end).await {
                    self.lock().remove(&(boot_id, end.epoch));
                }
            }
        }
    }

    /// Those to be tried now; forgets those that were kept long enough.
    fn take_due(&self, now: Instant) -> Vec<(BootId, EpochEnd)> {
        let mut pending = self.lock();
        pending.retain(|_, one| now < one.until);
        let due = pending.iter_mut().filter(|(_, one)| one.try_at <= now);
        due.map(|((boot_id, _), one)| {
            one.pause = (one.pause * 2).min(LONGEST_PAUSE);
            one.try_at = now + one.pause;
            (*boot_id, one.end.clone())
        })
        .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(BootId, u64), Pending>> {
        // Nothing in the critical sections leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it is done.
async fn close(store: &Store, boot_id: BootId, end: &EpochEnd) -> bool {
    let closing = store.close(boot_id, end.epoch, &end.holdings, &end.shards);
    match closing.await {
        Ok(closing) => closing == Closing::Done,
        Err(error) => {
            tracing::debug!(%error, "an epoch could not be closed; it is tried again");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_close_is_tried_ever_more_rarely_and_for_an_hour() {
        let closes = Closes::default();
        let began = Instant::now();
        let end = EpochEnd {
            epoch: 3,
            holdings: Vec::new(),
            shards: Vec::new(),
        };
        let one = Pending {
            end,
            try_at: began + EVERY,
            pause: EVERY,
            until: began + KEPT_FOR,
        };
        closes.lock().insert((BootId([1; 16]), 3), one);
        let mut tries = Vec::new();
        for second in 0..4000 {
            let due = closes.take_due(began + Duration::from_secs(second));
            tries.extend(due.iter().map(|_| second));
        }
        assert_eq!(tries[..7], [1, 3, 7, 15, 31, 63, 123]);
        assert!(tries.last().is_some_and(|last| (3500..3600).contains(last)));
        assert!(closes.lock().is_empty());
    }
}
