//! The published config in memory, so that nodes are served while Postgres is away.

use std::sync::Arc;
use std::time::Duration;

use control_plane_core::published::{Kind, Published};
use control_plane_core::resource::Settings;
use control_plane_store::{Error, Store};
use prost::Message as _;
use proto::config::v1 as config;
use tokio::sync::watch;

use crate::shutdown::Shutdown;

// Behind NOTIFY, which carries nearly every change: how late a change can be whose notification
// was lost. A revocation has one second to reach the nodes.
const POLL: Duration = Duration::from_millis(500);
const RETRY: Duration = Duration::from_millis(250);

/// The newest published config.
#[derive(Clone, Debug)]
pub(crate) struct Feed(watch::Receiver<Arc<Published>>);

impl Feed {
    /// Loads the config and follows it until shutdown.
    ///
    /// # Errors
    /// When the store cannot be read now.
    pub(crate) async fn start(store: &Store, shutdown: Shutdown) -> Result<Self, Error> {
        // Watching begins before loading, so that no change falls between the two.
        let versions = store.watch_config(POLL);
        let published = store.load_published().await?;
        let (sender, receiver) = watch::channel(Arc::new(published));
        tokio::spawn(follow(store.clone(), versions, sender, shutdown));
        Ok(Self(receiver))
    }

    /// The newest config.
    pub(crate) fn current(&self) -> Arc<Published> {
        self.0.borrow().clone()
    }

    /// A receiver that has not seen the current config yet.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Published>> {
        let mut receiver = self.0.clone();
        receiver.mark_changed();
        receiver
    }

    /// How long a node may serve without the control plane, in seconds.
    pub(crate) fn max_stale_s(&self) -> u32 {
        let settings = self
            .current()
            .body(Kind::Settings, filter_agent::ads::SINGLETON)
            .and_then(|body| config::Settings::decode(body.bytes()).ok())
            .and_then(|settings| Settings::from_wire(settings).ok());
        settings.unwrap_or_default().max_stale_s()
    }
}

async fn follow(
    store: Store,
    mut versions: watch::Receiver<u64>,
    sender: watch::Sender<Arc<Published>>,
    mut shutdown: Shutdown,
) {
    versions.mark_changed();
    loop {
        tokio::select! {
            changed = versions.changed() => {
                if changed.is_err() {
                    tracing::error!("the config is not followed any more");
                    return;
                }
            }
            () = shutdown.requested() => return,
        }
        let mut published = Published::clone(&sender.borrow());
        match store.refresh_published(&mut published).await {
            Ok(()) => publish(&sender, published),
            Err(error) => {
                tracing::warn!(%error, "the config could not be refreshed; it is tried again");
                tokio::time::sleep(RETRY).await;
                versions.mark_changed();
            }
        }
    }
}

fn publish(sender: &watch::Sender<Arc<Published>>, published: Published) {
    sender.send_if_modified(|current| {
        let differs =
            current.version() != published.version() || current.nonce() != published.nonce();
        if differs {
            tracing::info!(version = published.version(), "config published");
            *current = Arc::new(published);
        }
        differs
    });
}
