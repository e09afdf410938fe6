//! A stack of real components for one test: control plane, test provider, Envoys, and a database of
//! its own on the server that `cargo xtask test` started.

use std::{
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;
use xtask::{
    layout::StateDir,
    ports::free_port,
    process::Ask,
    stack::{ControlPlane, ControlPlaneOptions, Envoy, EnvoyOptions, Programs, Provider, Tokens},
};

use crate::{
    ledger::{self, Stored},
    truth::{self, Served},
    wait,
};

/// The variable that names the Postgres server, as a superuser.
const DATABASE: &str = "TURNPIKE_TEST_DATABASE_URL";

/// One test's components. Dropping it stops them all.
#[derive(Debug)]
pub struct Stack {
    pub programs: Programs,
    pub state: StateDir,
    pub control_plane: ControlPlane,
    pub provider: Provider,
    pub envoys: Vec<Envoy>,
    pub database_url: String,
    folder: Option<TempDir>,
}

/// What differs from one test's stack to the next.
#[derive(Clone, Debug)]
pub struct Options {
    pub envoys: usize,
    /// Worker threads of each Envoy.
    pub concurrency: u32,
    /// Folder of another `libturnpike.so`.
    pub module_dir: Option<std::path::PathBuf>,
    /// More arguments of the provider.
    pub provider_args: Vec<String>,
    /// More variables of the control plane.
    pub control_plane_env: Vec<(String, std::ffi::OsString)>,
    pub log_level: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            envoys: 1,
            concurrency: 1,
            module_dir: None,
            provider_args: Vec::new(),
            control_plane_env: Vec::new(),
            log_level: "info".to_owned(),
        }
    }
}

impl Stack {
    /// Starts everything, with a team `demo`, a provider `demo` (the test provider), and models
    /// `small` (one target) and `pair` (two targets, both at the test provider).
    pub fn start(options: &Options) -> Self {
        Self::try_start(options).unwrap_or_else(|error| panic!("{error:#}"))
    }

    fn try_start(options: &Options) -> Result<Self> {
        let mut programs = Programs::for_tests()?;
        if let Some(module_dir) = &options.module_dir {
            programs = programs.with_module(module_dir);
        }
        let folder = tempfile::tempdir()?;
        let state = StateDir::open(folder.path())?;
        let database_url = create_database()?;
        let control_plane = ControlPlane::start(
            &programs,
            &state,
            &ControlPlaneOptions {
                name: "control-plane".to_owned(),
                database_url: database_url.clone(),
                grpc_port: free_port()?,
                http_port: free_port()?,
                env: options.control_plane_env.clone(),
            },
        )?;
        let args: Vec<&str> = options.provider_args.iter().map(String::as_str).collect();
        let provider = Provider::start(&programs, &state, "provider", free_port()?, &args)?;
        let mut stack = Self {
            programs,
            state,
            control_plane,
            provider,
            envoys: Vec::new(),
            database_url,
            folder: Some(folder),
        };
        stack.apply(&base_config(stack.provider.port));
        for at in 0..options.envoys {
            let envoy = stack.start_envoy(&format!("envoy-{at}"), options)?;
            stack.envoys.push(envoy);
        }
        Ok(stack)
    }

    /// Starts an Envoy on the state that its name left behind.
    pub fn start_envoy(&self, name: &str, options: &Options) -> Result<Envoy> {
        Envoy::start(
            &self.programs,
            &self.state,
            &EnvoyOptions {
                name: name.to_owned(),
                gateway_port: free_port()?,
                admin_port: free_port()?,
                control_plane: self.control_plane.access.url(),
                tokens: Tokens::open(&self.state)?,
                concurrency: options.concurrency,
                start_deadline_ms: 15_000,
                log_level: options.log_level.clone(),
            },
        )
    }

    /// Port of the first Envoy's gateway.
    pub fn port(&self) -> u16 {
        self.envoys.first().expect("an Envoy").gateway_port
    }

    /// Runs `turnpike` with these arguments and gives its standard output; panics if it fails.
    pub fn turnpike(&self, args: &[&str]) -> String {
        let output = self.turnpike_command(args).output().expect("turnpike runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "turnpike {args:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// `turnpike`, opened for this stack's control plane.
    pub fn turnpike_command(&self, args: &[&str]) -> Command {
        let mut command = self
            .control_plane
            .access
            .cli(&self.programs)
            .expect("a token");
        command.args(args);
        command
    }

    /// Applies YAML documents and waits until every Envoy has them.
    pub fn apply(&self, documents: &str) {
        let file = self.state.path().join("apply.yaml");
        std::fs::write(&file, documents).expect("written");
        self.turnpike(&["apply", "-f", &file.display().to_string()]);
        if !self.envoys.is_empty() {
            self.turnpike(&["wait"]);
        }
    }

    /// A new key of team `demo`, known to every Envoy.
    pub fn key(&self, id: &str) -> String {
        let key = self.turnpike(&["keys", "create", id, "--team", "demo", "--wait"]);
        key.trim().to_owned()
    }

    /// Every usage record in the ledger, oldest first.
    pub fn records(&self) -> Vec<Stored> {
        let token = self
            .control_plane
            .access
            .tokens
            .admin_token()
            .expect("a token");
        ledger::records(&self.control_plane.access.url(), &token).expect("the ledger answers")
    }

    /// Everything the test provider has served.
    pub fn served(&self) -> Vec<Served> {
        truth::served(self.provider.port).expect("the provider answers")
    }

    /// The one record with this request id; within 5 s, as the docs promise.
    pub fn record(&self, request_id: &str) -> Stored {
        self.record_within(Duration::from_secs(5), request_id)
    }

    /// As [`record`](Self::record), with more patience: after an outage nodes come back in their
    /// own time.
    pub fn record_within(&self, deadline: Duration, request_id: &str) -> Stored {
        wait::until(deadline, &format!("a record of {request_id}"), || {
            let mut found: Vec<Stored> = self
                .records()
                .into_iter()
                .filter(|stored| stored.record.request_id == request_id)
                .collect();
            assert!(found.len() <= 1, "{} records of {request_id}", found.len());
            found.pop()
        })
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(folder) = self.folder.take()
        {
            // Kept for whoever looks into the failure.
            let kept = folder.keep();
            let mut stderr = std::io::stderr();
            drop(std::io::Write::write_fmt(
                &mut stderr,
                format_args!("logs are in {}\n", kept.join("logs").display()),
            ));
        }
        for envoy in &mut self.envoys {
            envoy.process.stop(Ask::Term, Duration::from_secs(5));
        }
        self.provider
            .process
            .stop(Ask::Term, Duration::from_secs(2));
        self.control_plane
            .process
            .stop(Ask::Term, Duration::from_secs(5));
    }
}

fn base_config(provider_port: u16) -> String {
    format!(
        "\
kind: Team
id: demo
spec:
  displayName: Demo
---
kind: Provider
id: demo
spec:
  baseUrl: http://127.0.0.1:{provider_port}/v1
  credentialPlace: none
---
kind: Model
id: small
spec:
  targets:
  - provider: demo
    upstreamModel: small-1
  capabilities: [tools, image-input, json-schema]
---
kind: Model
id: pair
spec:
  targets:
  - provider: demo
    upstreamModel: first
  - provider: demo
    upstreamModel: second
  capabilities: [tools]
---
kind: PriceBook
spec:
  prices:
  - provider: demo
    upstreamModel: small-1
    input: 2.50
    cachedInput: 1.25
    output: 10.00
"
    )
}

/// A new database on the test server.
fn create_database() -> Result<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = std::env::var(DATABASE)
        .with_context(|| format!("{DATABASE} is not set: run the tests by `cargo xtask test`"))?;
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("e2e_{}_{count}", std::process::id());
    ledger::runtime()?.block_on(async {
        let mut connection = PgConnection::connect(&server).await?;
        let statement = sqlx::AssertSqlSafe(format!("create database {name}"));
        connection.execute(sqlx::raw_sql(statement)).await?;
        anyhow::Ok(())
    })?;
    replace_database(&server, &name)
}

/// The same URL with another database.
fn replace_database(url: &str, name: &str) -> Result<String> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let (server, _) = base.rsplit_once('/').context("the URL names no database")?;
    ensure!(!server.ends_with('/'), "the URL names no database");
    let query = if query.is_empty() {
        String::new()
    } else {
        format!("?{query}")
    };
    Ok(format!("{server}/{name}{query}"))
}
