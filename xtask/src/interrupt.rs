//! Ctrl-C and SIGTERM as a flag, so that what was started is stopped before we go.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Result, bail};
use tokio::signal::unix::{SignalKind, signal};

/// Raised by the first SIGINT or SIGTERM.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes both signals over for the rest of this process.
    pub fn listen() -> Result<Self> {
        let interrupt = Self::default();
        let raised = Arc::clone(&interrupt.0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // Registered before we return: from now on no signal ends us in the middle.
        let (mut int, mut term) = {
            let _context = runtime.enter();
            (
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
            )
        };
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = int.recv() => {}
                    _ = term.recv() => {}
                }
                raised.store(true, Ordering::Relaxed);
                // Swallow the impatient ones: the tidying must end.
                loop {
                    tokio::select! {
                        _ = int.recv() => {}
                        _ = term.recv() => {}
                    }
                }
            });
        });
        Ok(interrupt)
    }

    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error once it is raised.
    pub fn check(&self) -> Result<()> {
        if self.raised() {
            bail!("interrupted");
        }
        Ok(())
    }
}
