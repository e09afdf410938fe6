//! `turnpike-load` as a process: the client that measures, and the upstream that answers it.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    layout::StateDir,
    ports::{free_port, is_free},
    process::{Process, Spec},
};

/// Figures of one run by their names, as `turnpike-load` prints them.
pub(super) type Figures = BTreeMap<String, f64>;

/// The program.
#[derive(Debug, Clone)]
pub(super) struct Load {
    program: PathBuf,
}

/// Where a client sends to, and what it shows.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) port: u16,
    pub(super) key: String,
    pub(super) model: &'static str,
}

/// Streams that are open until this is dropped.
#[derive(Debug)]
pub(super) struct Held(Child);

impl Load {
    pub(super) fn new(program: PathBuf) -> Self {
        Self { program }
    }

    /// Starts the upstream; its port.
    pub(super) fn start_upstream(&self, state: &StateDir) -> Result<(Process, u16)> {
        let port = free_port()?;
        let listen = format!("127.0.0.1:{port}");
        let mut process = Process::start(&Spec {
            name: "upstream".to_owned(),
            program: self.program.clone(),
            args: ["upstream", "--listen", &listen].map(Into::into).to_vec(),
            env: Vec::new(),
            user: None,
            log: state.logs().join("upstream.log"),
            run_dir: state.run(),
        })?;
        process.wait_ready(Duration::from_secs(10), || !is_free(port))?;
        Ok((process, port))
    }

    /// Sends what `args` say to the target, to the end.
    pub(super) fn send(&self, target: &Target, args: &[String]) -> Result<Figures> {
        let output = self.command(target, args).output();
        let output = output.with_context(|| format!("running {}", self.program.display()))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "turnpike-load {}: {}",
            args.join(" "),
            errors.trim()
        );
        serde_json::from_slice(&output.stdout).context("reading what turnpike-load printed")
    }

    /// Opens so many streams at the target and waits until each has had its first event.
    pub(super) fn hold(&self, target: &Target, streams: u32) -> Result<Held> {
        let args = ["hold", "--streams", &streams.to_string()].map(str::to_owned);
        let mut command = self.command(target, &args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().context("running turnpike-load hold")?;
        let mut held = Held(child);
        let mut line = String::new();
        if let Some(out) = held.0.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        ensure!(line.trim() == "held", "{streams} streams could not be held");
        Ok(held)
    }

    fn command(&self, target: &Target, args: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args);
        command.args(["--target", &format!("127.0.0.1:{}", target.port)]);
        command.args(["--model", target.model]);
        // Not as an argument, which everyone on this machine can read.
        command.env("TURNPIKE_KEY", &target.key);
        command
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The end of its input is what it waits for.
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}
