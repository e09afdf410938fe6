//! What is compared: the upstream itself, a bare Envoy before it, and an Envoy with the module.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::{
    Bed,
    bare::{self, Place},
    load::Target,
};
use crate::{
    http,
    ports::free_port,
    process::{Ask, Process, Spec},
    stack::{Access, ControlPlane, ControlPlaneOptions, Envoy, EnvoyOptions, Programs, Started},
};

/// As many as `cargo xtask up` gives.
const WORKERS: u32 = 2;
const PROVIDER: &str = "load";
const MODEL: &str = "load-1";

/// A subject by its place in every list of this bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Direct,
    Bare,
    Module,
}

impl Subject {
    pub(super) const ALL: [Self; 3] = [Self::Direct, Self::Bare, Self::Module];
    /// Those that are an Envoy.
    pub(super) const ENVOYS: [Self; 2] = [Self::Bare, Self::Module];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Bare => "bare Envoy",
            Self::Module => "Envoy + module",
        }
    }
}

/// The subjects, running.
#[derive(Debug)]
pub(super) struct Subjects {
    key: String,
    upstream_port: u16,
    bare: Running,
    module: Running,
    access: Access,
    _started: Started,
}

/// An Envoy, and the ports and the process of it.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) gateway_port: u16,
    pub(super) admin_port: u16,
    pub(super) pid: i32,
    bootstrap: PathBuf,
}

impl Subjects {
    /// Starts everything, and waits until each subject answers.
    pub(super) fn start(bed: &Bed, patience: Duration) -> Result<Self> {
        let mut started = Started::default();
        let control_plane = ControlPlane::start(
            &bed.programs,
            &bed.state,
            &ControlPlaneOptions {
                name: "control-plane".to_owned(),
                database_url: bed.database_url.clone(),
                grpc_port: free_port()?,
                http_port: free_port()?,
                env: Vec::new(),
            },
        )?;
        let access = control_plane.access;
        started.push(control_plane.process, Ask::Term);
        let (upstream, upstream_port) = bed.load.start_upstream(&bed.state)?;
        started.push(upstream, Ask::Kill);
        let key = configure(bed, &access, upstream_port)?;
        let module = with_module(bed, &access, &bed.programs, "module", WORKERS, &mut started)?;
        let bare = bare(bed, &module, &bed.programs, "bare", WORKERS, &mut started)?;
        let subjects = Self {
            key,
            upstream_port,
            bare,
            module,
            access,
            _started: started,
        };
        for subject in Subject::ALL {
            answers(bed, &subjects.target(subject), patience)
                .with_context(|| format!("waiting for {}", subject.name()))?;
        }
        Ok(subjects)
    }

    /// Where load for a subject goes.
    pub(super) fn target(&self, subject: Subject) -> Target {
        let port = match subject {
            Subject::Direct => self.upstream_port,
            Subject::Bare => self.bare.gateway_port,
            Subject::Module => self.module.gateway_port,
        };
        self.target_at(port)
    }

    fn target_at(&self, port: u16) -> Target {
        Target {
            port,
            key: self.key.clone(),
            model: MODEL,
        }
    }

    /// The Envoy of a subject.
    pub(super) fn envoy(&self, subject: Subject) -> Option<&Running> {
        match subject {
            Subject::Direct => None,
            Subject::Bare => Some(&self.bare),
            Subject::Module => Some(&self.module),
        }
    }

    /// Another Envoy of this kind with one worker, `program` in Envoy's place, stopped with
    /// `started`; and where its load goes.
    pub(super) fn start_another(
        &self,
        bed: &Bed,
        subject: Subject,
        program: &Path,
        started: &mut Started,
    ) -> Result<(Running, Target)> {
        let programs = Programs {
            envoy: program.to_owned(),
            ..bed.programs.clone()
        };
        let running = if subject == Subject::Module {
            with_module(bed, &self.access, &programs, "module-counted", 1, started)?
        } else {
            bare(bed, &self.module, &programs, "bare-counted", 1, started)?
        };
        let target = self.target_at(running.gateway_port);
        answers(bed, &target, Duration::from_secs(60))?;
        Ok((running, target))
    }
}

/// Registers the upstream as a provider with one model; a key that may use it.
fn configure(bed: &Bed, access: &Access, upstream_port: u16) -> Result<String> {
    let documents = format!(
        "kind: Team\nid: load\nspec:\n  displayName: Load\n---\nkind: Provider\nid: {PROVIDER}\n\
         spec:\n  baseUrl: http://127.0.0.1:{upstream_port}/v1\n---\nkind: Credential\nid: load\n\
         spec:\n  provider: {PROVIDER}\n  secretFile: SECRET_FILE\n---\nkind: Model\nid: {MODEL}\n\
         spec:\n  targets:\n  - provider: {PROVIDER}\n---\nkind: PriceBook\nspec:\n  prices:\n  \
         - provider: {PROVIDER}\n    upstreamModel: {MODEL}\n    input: 2.50\n    output: 10.00\n"
    );
    let secret = bed.state.secrets().join("provider-secret");
    fs::write(&secret, "sk-test-load")?;
    let file = bed.state.path().join("bench.yaml");
    let secret = secret.display().to_string();
    fs::write(&file, documents.replace("SECRET_FILE", &secret))?;
    let cli = || access.cli(&bed.programs);
    output(cli()?.args(["apply", "-f"]).arg(&file))?;
    let named = format!("load-{}", std::process::id());
    output(cli()?.args(["keys", "create", &named, "--team", "load"]))
        .map(|key| key.trim().to_owned())
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().context("running turnpike")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "turnpike: {}", errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn with_module(
    bed: &Bed,
    access: &Access,
    programs: &Programs,
    name: &str,
    workers: u32,
    started: &mut Started,
) -> Result<Running> {
    let envoy = Envoy::start(
        programs,
        &bed.state,
        &EnvoyOptions {
            name: name.to_owned(),
            gateway_port: free_port()?,
            admin_port: free_port()?,
            control_plane: access.url(),
            tokens: access.tokens.clone(),
            concurrency: workers,
            start_deadline_ms: 60_000,
            log_level: "warning".to_owned(),
        },
    )?;
    let running = Running {
        gateway_port: envoy.gateway_port,
        admin_port: envoy.admin_port,
        pid: envoy.process.pid(),
        bootstrap: bed.state.envoy(name).join("bootstrap.yaml"),
    };
    started.push(envoy.process, Ask::Term);
    Ok(running)
}

/// A bare Envoy that does what `module` does, but for what is ours.
fn bare(
    bed: &Bed,
    module: &Running,
    programs: &Programs,
    name: &str,
    workers: u32,
    started: &mut Started,
) -> Result<Running> {
    let folder = bed.state.envoy(name);
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let running = Running {
        gateway_port: free_port()?,
        admin_port: free_port()?,
        pid: 0,
        bootstrap: folder.join("bootstrap.yaml"),
    };
    let clusters = http::get(
        module.admin_port,
        "/config_dump?resource=dynamic_active_clusters",
    )?;
    let ours = fs::read_to_string(&module.bootstrap)?;
    let place = Place {
        gateway_port: running.gateway_port,
        admin_port: running.admin_port,
        access_log: &bed.state.logs().join(format!("{name}.access.log")),
    };
    fs::write(
        &running.bootstrap,
        bare::bootstrap(&ours, &clusters.body, &place).context("the bare Envoy's bootstrap")?,
    )?;
    let mut args: Vec<_> = vec!["-c".into(), running.bootstrap.clone().into()];
    let workers = workers.to_string();
    let rest = [
        "--concurrency",
        &workers,
        "--log-level",
        "warning",
        "--file-flush-interval-msec",
        "200",
        "--disable-hot-restart",
    ];
    args.extend(rest.iter().map(Into::into));
    let mut process = Process::start(&Spec {
        name: name.to_owned(),
        program: programs.envoy.clone(),
        args,
        env: Vec::new(),
        user: None,
        log: bed.state.logs().join(format!("{name}.log")),
        run_dir: bed.state.run(),
    })?;
    let pid = process.pid();
    let admin = running.admin_port;
    let ready = process.wait_ready(Duration::from_secs(90), || http::is_ok(admin, "/ready"));
    started.push(process, Ask::Term);
    ready?;
    Ok(Running { pid, ..running })
}

/// Waits until one request through the target is answered.
fn answers(bed: &Bed, target: &Target, patience: Duration) -> Result<()> {
    let one = ["plain", "--connections", "1", "--requests", "1"].map(str::to_owned);
    let end = std::time::Instant::now() + patience;
    loop {
        match bed.load.send(target, &one) {
            Ok(_) => return Ok(()),
            Err(error) if std::time::Instant::now() > end => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}
