//! A stack of real components for one test: control plane, test provider, Envoys, and a database of
//! its own on the server that `cargo xtask test` started.

use std::{
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;
use xtask::{
    layout::StateDir,
    ports::free_port,
    postgres::{self, Server},
    process::Ask,
    stack::{ControlPlane, ControlPlaneOptions, Envoy, EnvoyOptions, Programs, Provider, Tokens},
};

use crate::{
    balancer::Balancer,
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
    /// Replicas of the control plane, besides the first.
    pub replicas: Vec<ControlPlane>,
    pub provider: Provider,
    pub envoys: Vec<Envoy>,
    pub database_url: String,
    /// The database server, where the test has one of its own.
    pub postgres: Option<Server>,
    balancer: Option<Balancer>,
    options: Options,
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
    /// The authority of the control plane's certificate, where its variables name one.
    pub control_plane_ca_file: Option<std::path::PathBuf>,
    pub log_level: String,
    /// Processes of the control plane. Several are behind a balancer.
    pub control_planes: usize,
    /// A Postgres of the test's own, which keeps what it has committed when it is killed.
    pub own_postgres: bool,
    /// What the database's clock is ahead of the machine's, in seconds.
    pub clock_offset_s: i64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            envoys: 1,
            concurrency: 1,
            module_dir: None,
            provider_args: Vec::new(),
            control_plane_env: Vec::new(),
            control_plane_ca_file: None,
            log_level: "info".to_owned(),
            control_planes: 1,
            own_postgres: false,
            clock_offset_s: 0,
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
        let postgres = match options.own_postgres {
            true => Some(start_postgres(&state)?),
            false => None,
        };
        let database_url = create_database(postgres.as_ref())?;
        if options.clock_offset_s != 0 {
            set_clock(&database_url, options.clock_offset_s)?;
        }
        let mut control_plane = ControlPlane::start(
            &programs,
            &state,
            &control_plane_options(0, &database_url, options, (free_port()?, free_port()?)),
        )?;
        control_plane
            .access
            .ca_file
            .clone_from(&options.control_plane_ca_file);
        let mut replicas = Vec::new();
        for at in 1..options.control_planes {
            let ports = (free_port()?, free_port()?);
            let replica = control_plane_options(at, &database_url, options, ports);
            replicas.push(ControlPlane::start(&programs, &state, &replica)?);
        }
        let balancer = match replicas.is_empty() {
            true => None,
            false => {
                let all = std::iter::once(&control_plane).chain(&replicas);
                let ports = all.map(|one| one.access.grpc_port).collect();
                Some(Balancer::start(ports)?)
            }
        };
        let args: Vec<&str> = options.provider_args.iter().map(String::as_str).collect();
        let provider = Provider::start(&programs, &state, "provider", free_port()?, &args)?;
        let mut stack = Self {
            programs,
            state,
            control_plane,
            replicas,
            provider,
            envoys: Vec::new(),
            database_url,
            postgres,
            balancer,
            options: options.clone(),
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
        self.start_envoy_at(name, options, (free_port()?, free_port()?))
    }

    fn start_envoy_at(
        &self,
        name: &str,
        options: &Options,
        (gateway_port, admin_port): (u16, u16),
    ) -> Result<Envoy> {
        Envoy::start(
            &self.programs,
            &self.state,
            &EnvoyOptions {
                name: name.to_owned(),
                gateway_port,
                admin_port,
                control_plane: self.nodes_url(),
                tokens: Tokens::open(&self.state)?,
                concurrency: options.concurrency,
                start_deadline_ms: 15_000,
                log_level: options.log_level.clone(),
            },
        )
    }

    /// Starts an Envoy that was killed, in its old place.
    pub fn restart_envoy(&mut self, at: usize) -> Result<()> {
        let old = self.envoys.get(at).context("no such Envoy")?;
        let ports = (old.gateway_port, old.admin_port);
        let new = self.start_envoy_at(&format!("envoy-{at}"), &self.options, ports)?;
        *self.envoys.get_mut(at).context("no such Envoy")? = new;
        Ok(())
    }

    /// The replica of this number, from 0.
    pub fn control_plane(&mut self, at: usize) -> Option<&mut ControlPlane> {
        match at.checked_sub(1) {
            None => Some(&mut self.control_plane),
            Some(at) => self.replicas.get_mut(at),
        }
    }

    /// Starts a replica of the control plane that was killed, in its old place.
    pub fn restart_control_plane(&mut self, at: usize) -> Result<()> {
        let old = self.control_plane(at).context("no such replica")?;
        let (ports, ca_file) = (
            (old.access.grpc_port, old.http_port),
            old.access.ca_file.clone(),
        );
        let options = control_plane_options(at, &self.database_url, &self.options, ports);
        let mut new = ControlPlane::start(&self.programs, &self.state, &options)?;
        new.access.ca_file = ca_file;
        *self.control_plane(at).context("no such replica")? = new;
        Ok(())
    }

    /// Starts the test's own Postgres, which was killed, on what it has on disk.
    pub fn restart_postgres(&mut self) -> Result<()> {
        self.postgres = Some(start_postgres(&self.state)?);
        Ok(())
    }

    /// What nodes connect to.
    fn nodes_url(&self) -> String {
        match &self.balancer {
            Some(balancer) => format!("http://127.0.0.1:{}", balancer.port),
            None => self.control_plane.access.url(),
        }
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
        for control_plane in std::iter::once(&mut self.control_plane).chain(&mut self.replicas) {
            control_plane
                .process
                .stop(Ask::Term, Duration::from_secs(5));
        }
        if let Some(postgres) = &mut self.postgres {
            postgres.stop();
            // It may lie outside of the test's folder, where its user can reach it.
            drop(std::fs::remove_dir_all(&postgres.dir));
        }
    }
}

fn control_plane_options(
    at: usize,
    database_url: &str,
    options: &Options,
    (grpc_port, http_port): (u16, u16),
) -> ControlPlaneOptions {
    let name = match at {
        0 => "control-plane".to_owned(),
        _ => format!("control-plane-{at}"),
    };
    ControlPlaneOptions {
        name,
        database_url: database_url.to_owned(),
        grpc_port,
        http_port,
        env: options.control_plane_env.clone(),
    }
}

/// A server whose commits are on disk. The processes of one that was killed give its memory back
/// only when they have noticed.
fn start_postgres(state: &StateDir) -> Result<Server> {
    let options = postgres::Options {
        dir: state.path().join("postgres"),
        logs: state.logs(),
        run_dir: state.run(),
        durable: true,
    };
    let start = Instant::now();
    loop {
        match Server::start(&options) {
            Err(error) if start.elapsed() > Duration::from_secs(30) => return Err(error),
            Err(_) => sleep(Duration::from_millis(100)),
            started => return started,
        }
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

/// A new database, on the test server unless the test has its own.
fn create_database(own: Option<&Server>) -> Result<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = match own {
        Some(server) => server.url.clone(),
        None => std::env::var(DATABASE).with_context(|| {
            format!("{DATABASE} is not set: run the tests by `cargo xtask test`")
        })?,
    };
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("e2e_{}_{count}", std::process::id());
    execute(&server, format!("create database {name}"))?;
    replace_database(&server, &name)
}

/// Moves the clock of a database, for connections that are made from here on.
fn set_clock(database_url: &str, offset_s: i64) -> Result<()> {
    let (server, _) = database_url.split_once('?').unwrap_or((database_url, ""));
    let name = server.rsplit('/').next().unwrap_or_default();
    let offset = format!("alter database {name} set turnpike.clock_offset = '{offset_s} seconds'");
    execute(database_url, offset)
}

fn execute(database_url: &str, statement: String) -> Result<()> {
    ledger::runtime()?.block_on(async {
        let mut connection = PgConnection::connect(database_url).await?;
        let statement = sqlx::AssertSqlSafe(statement);
        connection.execute(sqlx::raw_sql(statement)).await?;
        anyhow::Ok(())
    })
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
