//! How an answer's bytes leave: a list of writes and pauses, and how it ends.

use std::time::Duration;

use tokio::{
    io::AsyncWriteExt as _,
    time::{sleep, timeout},
};

use crate::{script::Cut, tokens::Tokens, wire::Wire};

/// One step of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Write(Vec<u8>),
    Pause(Duration),
    /// Everything before this step has been handed to the socket; this much of the answer is out.
    Mark(Mark),
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// Whole events of a stream; 1 for a whole plain body.
    pub events: u64,
    /// The last usage object that went out whole.
    pub usage: Option<Tokens>,
}

/// What becomes of the connection after the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    KeepAlive,
    Close,
    Cut(Cut),
}

/// An answer ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub steps: Vec<Step>,
    pub ending: Ending,
}

/// What was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    pub bytes: u64,
    pub mark: Mark,
}

impl Delivery {
    /// Adds a pause, unless it is none.
    pub fn pause(&mut self, ms: u64) {
        if ms > 0 {
            self.steps.push(Step::Pause(Duration::from_millis(ms)));
        }
    }

    /// Sends everything. False: the client went away first.
    pub async fn send(&self, wire: &mut Wire, progress: &mut Progress) -> bool {
        let (write, watch) = wire.halves();
        let work = async {
            for step in &self.steps {
                match step {
                    Step::Write(bytes) => {
                        write.write_all(bytes).await?;
                        progress.bytes += u64::try_from(bytes.len()).unwrap_or_default();
                    }
                    Step::Pause(time) => sleep(*time).await,
                    Step::Mark(mark) => progress.mark = *mark,
                }
            }
            Ok::<(), std::io::Error>(())
        };
        tokio::select! {
            // A peer that left before the last write is gone even if that write still fits the socket.
            biased;
            () = watch.peer_gone() => false,
            done = work => done.is_ok(),
        }
    }

    /// Gives the connection back if it goes on, or ends it.
    pub async fn end(&self, wire: Wire) -> Option<Wire> {
        match self.ending {
            Ending::KeepAlive => return Some(wire),
            Ending::Close | Ending::Cut(Cut::Fin) => wire.finish().await,
            Ending::Cut(Cut::Rst) => {
                // Time for what was written to be read, or the reset would take it back.
                sleep(Duration::from_millis(30)).await;
                wire.reset();
            }
        }
        None
    }
}

/// Waits out `ms`. False: the client went away meanwhile.
pub async fn wait_with_client(wire: &mut Wire, ms: u64) -> bool {
    if ms == 0 {
        return true;
    }
    let (_, watch) = wire.halves();
    timeout(Duration::from_millis(ms), watch.peer_gone())
        .await
        .is_err()
}
