//! The command line of `turnpike-load`.

use std::{io::Write as _, net::SocketAddr, time::Duration};

use anyhow::Result;
use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::{
    closed_loop::{self, Extent},
    connection::{Ask, Pace},
    hold, upstream,
};

/// Load over sockets; figures come out as one line of JSON.
#[derive(Debug, Parser)]
pub struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Answer chat completions with fixed bytes, until killed
    Upstream {
        #[arg(long)]
        listen: SocketAddr,
    },
    /// Send plain requests in closed loops
    Plain {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        length: Length,
    },
    /// Send streamed requests in closed loops
    Streams {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        length: Length,
        #[command(flatten)]
        pace: PaceArgs,
    },
    /// Hold streams open, one event a second each, until standard input ends
    Hold {
        #[command(flatten)]
        target: Target,
        #[arg(long)]
        streams: usize,
    },
}

#[derive(Debug, ClapArgs)]
struct Target {
    /// Where to send requests
    #[arg(long)]
    target: SocketAddr,
    /// The virtual key to send
    #[arg(long, env = "TURNPIKE_KEY", hide_env_values = true)]
    key: String,
    /// The model to ask for
    #[arg(long)]
    model: String,
}

#[derive(Debug, ClapArgs)]
struct Length {
    /// Closed loops at the same time, a connection each
    #[arg(long)]
    connections: usize,
    /// How long to send
    #[arg(long, conflicts_with = "requests")]
    seconds: Option<f64>,
    /// How many requests to send over each connection
    #[arg(long, required_unless_present = "seconds")]
    requests: Option<u64>,
}

#[derive(Debug, ClapArgs)]
struct PaceArgs {
    /// Events of a stream that have content
    #[arg(long)]
    events: u32,
    /// Microseconds between two of them
    #[arg(long)]
    gap_us: u64,
}

impl Target {
    fn ask(&self, pace: Option<Pace>) -> Ask {
        Ask::new(self.target, &self.key, &self.model, pace)
    }
}

impl Length {
    fn extent(&self) -> Extent {
        match (self.requests, self.seconds) {
            (Some(requests), _) => Extent::Requests(requests),
            (None, seconds) => Extent::Time(Duration::from_secs_f64(seconds.unwrap_or(1.0))),
        }
    }
}

impl Args {
    /// Does what the command line says.
    ///
    /// # Errors
    /// An answer that is not the expected one, or a connection that failed.
    pub async fn run(self) -> Result<()> {
        let (target, length, pace) = match &self.task {
            Task::Upstream { listen } => return upstream::serve(*listen).await,
            Task::Hold { target, streams } => {
                let pace = Pace {
                    events: u32::MAX,
                    gap_us: 1_000_000,
                };
                return hold::hold(&target.ask(Some(pace)), *streams).await;
            }
            Task::Plain { target, length } => (target, length, None),
            Task::Streams {
                target,
                length,
                pace,
            } => (
                target,
                length,
                Some(Pace {
                    events: pace.events,
                    gap_us: pace.gap_us,
                }),
            ),
        };
        let figures =
            closed_loop::run(&target.ask(pace), length.connections, length.extent()).await?;
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&figures)?)?;
        Ok(())
    }
}
