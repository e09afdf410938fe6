//! The running parts of Turnpike, started one by one: `up` starts one of each, tests start what
//! they need, as often as they need it.
//!
//! Order: Postgres, control plane, provider, Envoy. Nothing here stops when it is dropped, since
//! `up --detach` leaves it running; [`Started`] stops what was collected in it.

use std::{
    ffi::OsString,
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    http,
    layout::{StateDir, target, write_secret},
    pins::Pin,
    process::{Ask, Process, Spec},
    render::{self, Placement},
};

/// The programs to run.
#[derive(Debug, Clone)]
pub struct Programs {
    pub control_plane: PathBuf,
    pub cli: PathBuf,
    pub provider: PathBuf,
    pub envoy: PathBuf,
    /// Folder that holds `libturnpike.so`.
    pub module_dir: PathBuf,
}

impl Programs {
    /// Programs of ours in `bin_dir`, the module in `module_dir`, and the pinned Envoy.
    pub fn new(bin_dir: &Path, module_dir: &Path, envoy: &Path) -> Result<Self> {
        let ours = |name: &str| -> Result<PathBuf> {
            let path = bin_dir.join(name);
            ensure!(path.exists(), "{} is not built", path.display());
            Ok(path)
        };
        let module = module_dir.join("libturnpike.so");
        ensure!(module.exists(), "{} is not built", module.display());
        Ok(Self {
            control_plane: ours("turnpike-control-plane")?,
            cli: ours("turnpike")?,
            provider: ours("turnpike-provider")?,
            envoy: envoy.to_owned(),
            module_dir: module_dir.to_owned(),
        })
    }

    /// What `cargo xtask test` hands to tests by `TURNPIKE_BIN_DIR`, `TURNPIKE_MODULE_DIR` and
    /// `TURNPIKE_ENVOY`; else what lies in the target folder, and the pinned Envoy.
    pub fn for_tests() -> Result<Self> {
        let named = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
        let envoy = match named("TURNPIKE_ENVOY") {
            Some(envoy) => envoy,
            None => Pin::envoy()?.fetch()?.join("envoy"),
        };
        let bin_dir = named("TURNPIKE_BIN_DIR").unwrap_or_else(|| target().join("debug"));
        let module_dir = named("TURNPIKE_MODULE_DIR").unwrap_or_else(|| target().join("release"));
        Self::new(&bin_dir, &module_dir, &envoy)
    }

    /// The same programs with another `libturnpike.so`.
    pub fn with_module(&self, module_dir: &Path) -> Self {
        Self {
            module_dir: module_dir.to_owned(),
            ..self.clone()
        }
    }
}

/// How a control plane is to run.
#[derive(Debug, Clone)]
pub struct ControlPlaneOptions {
    /// Names the process; replicas have names of their own.
    pub name: String,
    pub database_url: String,
    pub grpc_port: u16,
    pub http_port: u16,
    /// More variables, for example a provider's secret, or its certificate.
    pub env: Vec<(String, OsString)>,
}

/// A running control plane.
#[derive(Debug)]
pub struct ControlPlane {
    pub process: Process,
    pub http_port: u16,
    pub access: Access,
}

/// How a control plane is reached.
#[derive(Debug, Clone)]
pub struct Access {
    pub grpc_port: u16,
    pub tokens: Tokens,
    /// The authority of its certificate, where it serves TLS.
    pub ca_file: Option<PathBuf>,
}

/// What opens a control plane, as files in the state folder.
#[derive(Debug, Clone)]
pub struct Tokens {
    pub admin: PathBuf,
    pub node: PathBuf,
    /// Encrypts provider secrets at rest.
    pub master_key: PathBuf,
    /// Encrypts the nodes' snapshots on disk.
    pub snapshot_key: PathBuf,
}

impl Tokens {
    /// Makes those that are not there yet.
    pub fn open(state: &StateDir) -> Result<Self> {
        let tokens = Self {
            admin: state.secrets().join("admin-token"),
            node: state.secrets().join("node-token"),
            master_key: state.secrets().join("master-key"),
            snapshot_key: state.secrets().join("snapshot-key"),
        };
        for path in [
            &tokens.admin,
            &tokens.node,
            &tokens.master_key,
            &tokens.snapshot_key,
        ] {
            if !path.exists() {
                write_secret(path, &random_hex()?)?;
            }
        }
        Ok(tokens)
    }

    /// The admin token itself.
    pub fn admin_token(&self) -> Result<String> {
        let text = fs::read_to_string(&self.admin);
        Ok(text
            .with_context(|| format!("reading {}", self.admin.display()))?
            .trim()
            .to_owned())
    }
}

/// 32 random bytes as hex.
fn random_hex() -> Result<String> {
    use std::io::Read as _;
    let mut bytes = [0_u8; 32];
    fs::File::open("/dev/urandom")?
        .read_exact(&mut bytes)
        .context("reading /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl ControlPlane {
    /// Starts one, which migrates the database first, and waits until it is ready.
    pub fn start(
        programs: &Programs,
        state: &StateDir,
        options: &ControlPlaneOptions,
    ) -> Result<Self> {
        let tokens = Tokens::open(state)?;
        let listen =
            |port: u16| OsString::from(SocketAddr::from((Ipv4Addr::LOCALHOST, port)).to_string());
        let mut env = vec![
            (
                "TURNPIKE_DATABASE_URL".to_owned(),
                OsString::from(&options.database_url),
            ),
            ("TURNPIKE_GRPC_LISTEN".to_owned(), listen(options.grpc_port)),
            ("TURNPIKE_HTTP_LISTEN".to_owned(), listen(options.http_port)),
            (
                "TURNPIKE_ADMIN_TOKEN_FILE".to_owned(),
                tokens.admin.clone().into(),
            ),
            (
                "TURNPIKE_NODE_TOKEN_FILE".to_owned(),
                tokens.node.clone().into(),
            ),
            (
                "TURNPIKE_MASTER_KEY_FILE".to_owned(),
                tokens.master_key.clone().into(),
            ),
        ];
        env.extend(options.env.iter().cloned());
        let mut process = Process::start(&Spec {
            name: options.name.clone(),
            program: programs.control_plane.clone(),
            args: Vec::new(),
            env,
            user: None,
            log: state.logs().join(format!("{}.log", options.name)),
            run_dir: state.run(),
        })?;
        let port = options.http_port;
        let ready = process.wait_ready(Duration::from_secs(60), || http::is_ok(port, "/readyz"));
        if let Err(error) = ready {
            process.stop(Ask::Term, Duration::from_secs(2));
            return Err(error);
        }
        Ok(Self {
            process,
            http_port: port,
            access: Access {
                grpc_port: options.grpc_port,
                tokens,
                ca_file: None,
            },
        })
    }
}

impl Access {
    /// `http://127.0.0.1:<port>`, for nodes and the admin API; `https:` where it serves TLS.
    pub fn url(&self) -> String {
        let scheme = self.ca_file.as_ref().map_or("http", |_| "https");
        format!("{scheme}://127.0.0.1:{}", self.grpc_port)
    }

    /// The `turnpike` command, opened for this control plane.
    pub fn cli(&self, programs: &Programs) -> Result<Command> {
        let mut cli = Command::new(&programs.cli);
        cli.env("TURNPIKE_ADMIN_ADDR", self.url());
        cli.env("TURNPIKE_ADMIN_TOKEN", self.tokens.admin_token()?);
        if let Some(ca_file) = &self.ca_file {
            cli.env("TURNPIKE_ADMIN_CA_FILE", ca_file);
        }
        Ok(cli)
    }
}

/// A running demo provider.
#[derive(Debug)]
pub struct Provider {
    pub process: Process,
    pub port: u16,
}

impl Provider {
    /// Starts one with `args` added and waits until it answers.
    pub fn start(
        programs: &Programs,
        state: &StateDir,
        name: &str,
        port: u16,
        args: &[&str],
    ) -> Result<Self> {
        let mut all: Vec<OsString> = vec!["--listen".into(), format!("127.0.0.1:{port}").into()];
        all.extend(args.iter().map(OsString::from));
        let mut process = Process::start(&Spec {
            name: name.to_owned(),
            program: programs.provider.clone(),
            args: all,
            env: Vec::new(),
            user: None,
            log: state.logs().join(format!("{name}.log")),
            run_dir: state.run(),
        })?;
        let ready = process.wait_ready(Duration::from_secs(10), || http::is_ok(port, "/healthz"));
        if let Err(error) = ready {
            process.stop(Ask::Term, Duration::from_secs(2));
            return Err(error);
        }
        Ok(Self { process, port })
    }
}

/// How an Envoy is to run.
#[derive(Debug, Clone)]
pub struct EnvoyOptions {
    /// Names the process, the node, and the folder of its state.
    pub name: String,
    pub gateway_port: u16,
    pub admin_port: u16,
    pub control_plane: String,
    pub tokens: Tokens,
    /// Worker threads.
    pub concurrency: u32,
    pub start_deadline_ms: u64,
    /// `info`, `debug`…
    pub log_level: String,
}

/// What a test changes in one Envoy.
#[derive(Default)]
pub struct Variation<'a> {
    /// More environment variables.
    pub env: Vec<(String, OsString)>,
    /// Takes a last hand to the bootstrap.
    pub bootstrap: Option<&'a dyn Fn(&mut serde_json::Value)>,
}

impl std::fmt::Debug for Variation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Variation")
            .field("env", &self.env)
            .finish_non_exhaustive()
    }
}

/// A running Envoy with the module in it.
#[derive(Debug)]
pub struct Envoy {
    pub process: Process,
    pub gateway_port: u16,
    pub admin_port: u16,
    /// The module's own disk.
    pub state_dir: PathBuf,
    pub access_log: PathBuf,
}

impl Envoy {
    /// Starts one on the state that its name left behind, and waits until it serves.
    pub fn start(programs: &Programs, state: &StateDir, options: &EnvoyOptions) -> Result<Self> {
        let mut envoy = Self::spawn(programs, state, options, &Variation::default())?;
        let (admin, gateway) = (options.admin_port, options.gateway_port);
        let serves = || http::is_ok(admin, "/ready") && http::is_ok(gateway, "/healthz");
        let limit = Duration::from_millis(options.start_deadline_ms) + Duration::from_secs(30);
        if let Err(error) = envoy.process.wait_ready(limit, serves) {
            envoy.stop();
            return Err(error);
        }
        Ok(envoy)
    }

    /// Starts one with changes and does not wait.
    pub fn spawn(
        programs: &Programs,
        state: &StateDir,
        options: &EnvoyOptions,
        variation: &Variation<'_>,
    ) -> Result<Self> {
        let dir = state.envoy(&options.name);
        let local = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let state_dir = dir.join("state");
        let access_log = state.logs().join(format!("{}.access.log", options.name));
        let bootstrap = render::write(
            &dir,
            &Placement {
                node: options.name.clone(),
                gateway: local(options.gateway_port),
                admin: local(options.admin_port),
                control_plane: options.control_plane.clone(),
                node_token_file: options.tokens.node.clone(),
                state_dir: state_dir.clone(),
                snapshot_key_file: Some(options.tokens.snapshot_key.clone()),
                access_log: access_log.clone(),
                start_deadline_ms: options.start_deadline_ms,
            },
        )?;
        if let Some(edit) = variation.bootstrap {
            render::edit(&bootstrap, edit)?;
        }
        let mut args: Vec<OsString> = vec!["-c".into(), bootstrap.into()];
        let concurrency = options.concurrency.to_string();
        // Access logs reach their file after 200 ms, not after 10 s.
        let rest = [
            "--concurrency",
            &concurrency,
            "--log-level",
            &options.log_level,
            "--file-flush-interval-msec",
            "200",
            "--disable-hot-restart",
        ];
        args.extend(rest.iter().map(OsString::from));
        let search_path = programs.module_dir.clone().into_os_string();
        let mut env = vec![("ENVOY_DYNAMIC_MODULES_SEARCH_PATH".to_owned(), search_path)];
        env.extend(variation.env.iter().cloned());
        let process = Process::start(&Spec {
            name: options.name.clone(),
            program: programs.envoy.clone(),
            args,
            env,
            user: None,
            log: state.logs().join(format!("{}.log", options.name)),
            run_dir: state.run(),
        })?;
        Ok(Self {
            process,
            gateway_port: options.gateway_port,
            admin_port: options.admin_port,
            state_dir,
            access_log,
        })
    }

    /// `http://127.0.0.1:<port>`, for clients.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.gateway_port)
    }

    /// Lets open streams end (the module holds Envoy back as long as it drains) and stops.
    pub fn stop(&mut self) -> bool {
        self.process.stop(Ask::Term, Duration::from_secs(15))
    }
}

/// Processes to be stopped together, the last started first, when this is dropped.
#[derive(Debug, Default)]
pub struct Started(Vec<(Process, Ask)>);

impl Started {
    /// Takes charge of a process that this run started.
    pub fn push(&mut self, process: Process, ask: Ask) {
        self.0.push((process, ask));
    }

    /// The first that has ended by itself, if any.
    pub fn first_ended(&mut self) -> Option<&Process> {
        let at = self
            .0
            .iter_mut()
            .position(|(process, _)| !process.alive())?;
        self.0.get(at).map(|(process, _)| process)
    }

    /// Lets everything run on.
    pub fn detach(mut self) {
        self.0.clear();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        while let Some((mut process, ask)) = self.0.pop() {
            process.stop(ask, Duration::from_secs(15));
        }
    }
}
