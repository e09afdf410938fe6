//! Learning of new config versions: LISTEN for speed, a poll behind it for certainty.
//!
//! The same task takes up rows that were edited past the API, looks at references again, makes the
//! ledger's partitions ahead of time, drops old ones, and forgets removals that are old.

use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::publish::CHANNEL;
use crate::stored::unsigned;
use crate::{Error, Store};

/// How often the secrets that references point at are compared.
const REFERENCE_INTERVAL: Duration = Duration::from_secs(15);
/// How often partitions are made and dropped, and old removals forgotten.
const CHORE_INTERVAL: Duration = Duration::from_secs(3600);
/// Pause before a lost LISTEN connection is made again; the poll goes on meanwhile.
const LISTEN_RETRY: Duration = Duration::from_secs(1);

impl Store {
    /// The newest config version, kept up to date by a task that ends with its receivers. 0 until
    /// it is first read.
    pub fn watch_config(&self, poll: Duration) -> watch::Receiver<u64> {
        let (sender, receiver) = watch::channel(0);
        let store = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = sender.closed() => {}
                () = store.listen(&sender) => {}
                () = store.poll(&sender, poll) => {}
            }
        });
        receiver
    }

    async fn listen(&self, sender: &watch::Sender<u64>) {
        loop {
            if let Err(error) = self.listen_once(sender).await {
                tracing::debug!(%error, "the LISTEN connection was lost");
            }
            sleep(LISTEN_RETRY).await;
        }
    }

    async fn listen_once(&self, sender: &watch::Sender<u64>) -> Result<(), Error> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen(CHANNEL).await?;
        loop {
            // Read once after LISTEN too: what was published before it was not heard.
            let version = self.config_version().await?;
            tell(sender, version);
            // None: the connection was lost and made again.
            listener.try_recv().await?;
            // Versions that come close together are told once.
            while listener.next_buffered().is_some() {}
        }
    }

    async fn poll(&self, sender: &watch::Sender<u64>, period: Duration) {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut references_at = Instant::now() + REFERENCE_INTERVAL;
        let mut chores_at = Instant::now();
        let mut away = false;
        loop {
            ticks.tick().await;
            let done = self.take_up(sender).await;
            if let Err(error) = &done
                && !away
            {
                tracing::warn!(%error, "the config cannot be read, trying again");
            }
            away = done.is_err();
            if away {
                continue;
            }
            let now = Instant::now();
            if now >= references_at {
                references_at = now + REFERENCE_INTERVAL;
                warn("comparing references", self.mark_changed_references().await);
            }
            if now >= chores_at {
                chores_at = now + CHORE_INTERVAL;
                warn("making partitions", self.make_partitions().await);
                let dropped = self.drop_old_records().await;
                if let Ok(days @ 1..) = dropped {
                    tracing::info!(days, "usage records of old days dropped");
                }
                warn("dropping old usage records", dropped.map(drop));
                warn("forgetting removals", self.prune_old_removals().await);
            }
        }
    }

    /// Reads the version, and publishes what was edited past the API.
    async fn take_up(&self, sender: &watch::Sender<u64>) -> Result<(), Error> {
        let row = sqlx::query!(
            r#"select version, exists(select from pending_edit p
                 where p.tried_version is null or p.tried_version < s.version) as "pending!"
               from config_state s"#
        )
        .fetch_one(&self.pool)
        .await?;
        let mut version = unsigned(row.version);
        if row.pending {
            version = self.publish_edits().await?.version;
        }
        tell(sender, version);
        Ok(())
    }
}

fn warn(what: &str, done: Result<(), Error>) {
    if let Err(error) = done {
        tracing::warn!(%error, "{what} failed");
    }
}

fn tell(sender: &watch::Sender<u64>, version: u64) {
    sender.send_if_modified(|known| {
        let is_new = *known != version;
        *known = version;
        is_new
    });
}
