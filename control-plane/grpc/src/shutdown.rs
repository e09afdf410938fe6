//! Ends the long streams, without which a graceful stop of the server would wait for ever.

use tokio::sync::watch;

/// Makes a signal: set the sender to true to stop, or drop it.
pub fn shutdown() -> (watch::Sender<bool>, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (sender, Shutdown(receiver))
}

/// Resolves once the process is to stop.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Waits for the signal.
    pub async fn requested(&mut self) {
        if self.0.wait_for(|stop| *stop).await.is_err() {
            tracing::debug!("the sender was dropped, which means the same");
        }
    }
}
