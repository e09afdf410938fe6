//! What time does to leases: processes fall silent, credit of lost ones comes due, rows get old.
//! Every replica looks; that several do is harmless.

use std::time::Duration;

use control_plane_store::{Error, Store};
use tokio::time::sleep;

use crate::shutdown::Shutdown;

const FENCE_EVERY: Duration = Duration::from_secs(1);
const RAISE_EVERY: Duration = Duration::from_secs(5);
const EXPIRE_EVERY: Duration = Duration::from_secs(5);
const PRUNE_EVERY: Duration = Duration::from_secs(300);

/// Starts the tasks; they end at shutdown.
pub(super) fn start(store: &Store, shutdown: &Shutdown) {
    tokio::spawn(again_and_again(FENCE_EVERY, shutdown.clone(), {
        let store = store.clone();
        move || fence(store.clone())
    }));
    tokio::spawn(again_and_again(RAISE_EVERY, shutdown.clone(), {
        let store = store.clone();
        move || raise(store.clone())
    }));
    tokio::spawn(again_and_again(EXPIRE_EVERY, shutdown.clone(), {
        let store = store.clone();
        move || expire(store.clone())
    }));
    tokio::spawn(again_and_again(PRUNE_EVERY, shutdown.clone(), {
        let store = store.clone();
        move || prune(store.clone())
    }));
}

async fn again_and_again<F>(every: Duration, mut shutdown: Shutdown, work: impl Fn() -> F)
where
    F: Future<Output = Result<(), Error>>,
{
    loop {
        tokio::select! {
            () = sleep(every) => {}
            () = shutdown.requested() => return,
        }
        match work().await {
            Ok(()) => {}
            Err(error @ Error::Unavailable(_)) => {
                tracing::debug!(%error, "leases are not looked after now");
            }
            Err(error) => tracing::error!(%error, "leases could not be looked after"),
        }
    }
}

async fn fence(store: Store) -> Result<(), Error> {
    for boot_id in store.fence_expired().await? {
        let boot_id = u128::from_be_bytes(boot_id.0);
        tracing::warn!(
            boot = format!("{boot_id:032x}"),
            "a process fell silent: its credit is suspended"
        );
    }
    Ok(())
}

async fn raise(store: Store) -> Result<(), Error> {
    let events = store.raise_limit_events().await?;
    if events > 0 {
        tracing::info!(events, "buckets have passed thresholds of their limits");
    }
    Ok(())
}

async fn expire(store: Store) -> Result<(), Error> {
    let changed = store.expire_lost().await?;
    if changed > 0 {
        tracing::warn!(
            leases = changed,
            "credit of lost processes was freed or written down"
        );
    }
    Ok(())
}

async fn prune(store: Store) -> Result<(), Error> {
    store.prune_limits().await
}
