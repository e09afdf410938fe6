//! The whole command against a scripted control plane on a loopback port.

mod apply;
mod failures;
mod fake;
mod help;
mod limit_status;
mod limits;
mod operate;
mod resources;
mod singletons;

use clap::Parser;

use crate::args::Cli;
use crate::{execute, failure};
use fake::{Fake, TOKEN};

/// What one run of the command left behind.
struct Run {
    result: Result<(), String>,
    out: String,
    notes: String,
}

impl Run {
    #[track_caller]
    fn ok(self) -> Self {
        assert_eq!(self.result, Ok(()), "notes: {}", self.notes);
        self
    }

    #[track_caller]
    fn error(&self) -> &str {
        self.result.as_ref().unwrap_err()
    }

    #[track_caller]
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

async fn turnpike(fake: &Fake, args: &[&str]) -> Run {
    run(&fake.address, TOKEN, args).await
}

async fn run(address: &str, token: &str, args: &[&str]) -> Run {
    let global = ["turnpike", "--admin-addr", address, "--admin-token", token];
    let cli = Cli::try_parse_from(global.iter().chain(args)).unwrap();
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let result = Box::pin(execute(cli, &mut out, &mut notes)).await;
    Run {
        result: result.map_err(|error| failure::one_line(&error)),
        out: String::from_utf8(out).unwrap(),
        notes: String::from_utf8(notes).unwrap(),
    }
}
