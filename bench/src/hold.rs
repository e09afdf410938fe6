//! Streams that stay open, for measuring what one costs in memory.

use std::io::Write as _;

use anyhow::Result;
use http_body_util::BodyExt as _;
use tokio::{io::AsyncReadExt as _, task::JoinSet};

use crate::connection::{Ask, Connection};

/// Opens the streams, says `held` when each has had its first event, reads on, and goes when
/// standard input ends.
///
/// # Errors
/// A stream that could not be opened, or that ended.
pub async fn hold(ask: &Ask, streams: usize) -> Result<()> {
    let mut reading = JoinSet::new();
    for _ in 0..streams {
        let mut connection = Connection::open(ask).await?;
        let mut answer = connection.begin(ask).await?;
        reading.spawn(async move {
            while let Some(frame) = answer.frame().await {
                frame?;
            }
            drop(connection);
            anyhow::bail!("a stream ended")
        });
    }
    writeln!(std::io::stdout(), "held")?;
    let mut nothing = [0];
    let mut input = tokio::io::stdin();
    tokio::select! {
        ended = reading.join_next() => ended.transpose()?.unwrap_or(Ok(())),
        _ = input.read(&mut nothing) => Ok(()),
    }
}
