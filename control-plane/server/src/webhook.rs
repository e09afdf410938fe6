//! Tells a webhook of what happens to limits: at least once, signed, and again until it is taken.
//!
//! Any replica may tell of an event; the store hands each out to one at a time. Its id is the same
//! at each try, so that the receiver can tell what it has seen.

mod endpoint;
mod message;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use control_plane_grpc::{Metrics, Shutdown};
use control_plane_store::{LimitEvent, Store};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::endpoint::Endpoint;
use self::message::Secret;
use crate::files;

const EVERY: Duration = Duration::from_secs(1);
// Told at the same time.
const BATCH: u32 = 16;
// The store hands an event out again after 10 s at the earliest.
const ANSWER_TIME: Duration = Duration::from_secs(9);

/// Where events are told, and how they are signed.
#[derive(Debug)]
pub(crate) struct Webhook {
    endpoint: Endpoint,
    secret: Secret,
}

impl Webhook {
    /// Reads its secret.
    ///
    /// # Errors
    /// When it cannot be used; the error shows neither the secret nor more of the URL than its
    /// host.
    pub(crate) fn new(url: &str, secret_file: &Path) -> anyhow::Result<Self> {
        const SECRET_FILE: &str = "--event-webhook-secret-file";
        let endpoint = Endpoint::new(url).context("--event-webhook")?;
        let text = files::text(secret_file, SECRET_FILE)?;
        let secret = Secret::parse(text.trim_ascii());
        let secret = secret.with_context(|| format!("{SECRET_FILE} {}", secret_file.display()))?;
        Ok(Self { endpoint, secret })
    }

    /// Tells what there is to tell, until shutdown.
    pub(crate) async fn run(self, store: Store, metrics: Metrics, mut shutdown: Shutdown) {
        let webhook = Arc::new(self);
        loop {
            tokio::select! {
                () = sleep(EVERY) => {}
                () = shutdown.requested() => return,
            }
            let events = match store.take_limit_events(BATCH).await {
                Ok(events) => events,
                Err(error) => {
                    tracing::debug!(%error, "events could not be read");
                    continue;
                }
            };
            let mut telling = JoinSet::new();
            for event in events {
                telling.spawn(tell(webhook.clone(), store.clone(), metrics.clone(), event));
            }
            telling.join_all().await;
        }
    }

    async fn post(&self, event: &LimitEvent) -> anyhow::Result<()> {
        let message = self.secret.message(event)?;
        let status = timeout(ANSWER_TIME, self.endpoint.post(message))
            .await
            .context("no answer within 9 s")??;
        ensure!(status.is_success(), "the receiver answered with {status}");
        Ok(())
    }
}

async fn tell(webhook: Arc<Webhook>, store: Store, metrics: Metrics, event: LimitEvent) {
    let id = event.id;
    let posted = webhook.post(&event).await;
    metrics.webhook_told(posted.is_ok());
    if let Err(error) = posted {
        let host = webhook.endpoint.host();
        tracing::warn!(
            event = %id,
            host,
            error = format!("{error:#}"),
            "an event could not be delivered; it is tried again for a day"
        );
        let noted = store.limit_event_failed(id, &format!("{error:#}")).await;
        if let Err(error) = noted {
            tracing::debug!(event = %id, %error, "why it was not delivered could not be noted");
        }
        return;
    }
    // It will be told again if this fails.
    if let Err(error) = store.limit_event_delivered(id).await {
        tracing::warn!(event = %id, %error, "an event was delivered and could not be noted as such");
    }
}
