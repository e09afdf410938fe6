//! Closed loops: each connection sends its next request when its last answer has ended.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use crate::{
    connection::{Ask, Connection, Times},
    figures::Figures,
};

/// How long a run is.
#[derive(Debug, Clone, Copy)]
pub enum Extent {
    /// So many requests over each connection.
    Requests(u64),
    Time(Duration),
}

impl Extent {
    fn goes_on(self, sent: u64, start: Instant) -> bool {
        match self {
            Self::Requests(requests) => sent < requests,
            Self::Time(time) => start.elapsed() < time,
        }
    }
}

/// Runs the loops to their end.
///
/// # Errors
/// The first answer that is not the expected one.
pub async fn run(ask: &Ask, connections: usize, extent: Extent) -> Result<Figures> {
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(Connection::open(ask).await?);
    }
    let start = Instant::now();
    let mut loops = JoinSet::new();
    for connection in open {
        loops.spawn(one_loop(connection, ask.clone(), extent, start));
    }
    let mut all = Vec::new();
    while let Some(times) = loops.join_next().await {
        all.extend(times??);
    }
    Ok(Figures::new(start.elapsed(), &all))
}

async fn one_loop(
    mut connection: Connection,
    ask: Ask,
    extent: Extent,
    start: Instant,
) -> Result<Vec<Times>> {
    let mut all = Vec::new();
    let mut sent = 0;
    while extent.goes_on(sent, start) {
        all.push(connection.exchange(&ask).await?);
        sent += 1;
    }
    Ok(all)
}
