//! `up`, `down`, `status`: one of everything on this machine, with a demo config.

use std::{
    fs,
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::{
    build, http,
    interrupt::Interrupt,
    layout::{StateDir, write_secret},
    pins::Pin,
    ports,
    postgres::{Options, Server},
    process::{Ask, Process},
    seed,
    stack::{ControlPlane, ControlPlaneOptions, Envoy, EnvoyOptions, Programs, Provider, Started},
    steps::{Steps, say},
    tail::Tail,
};

const ENVOY: &str = "envoy";
const PROVIDER: &str = "provider";
const CONTROL_PLANE: &str = "control-plane";
const POSTGRES: &str = "postgres";
/// In the order in which they are stopped.
const STOP_ORDER: [&str; 4] = [ENVOY, PROVIDER, CONTROL_PLANE, POSTGRES];

/// Options of `up`. A port of 0 takes a free one.
#[derive(Debug, Clone, Args)]
pub struct UpArgs {
    /// Return when everything runs; `down` stops it.
    #[arg(long)]
    pub detach: bool,
    /// Port that clients call [default: 8080]
    #[arg(long, value_name = "PORT")]
    pub gateway_port: Option<u16>,
    /// Port of Envoy's own admin interface [default: 9901]
    #[arg(long, value_name = "PORT")]
    pub envoy_admin_port: Option<u16>,
    /// Port of the control plane's gRPC: admin API, config, metering [default: 9090]
    #[arg(long, value_name = "PORT")]
    pub admin_port: Option<u16>,
    /// Port of the control plane's HTTP: health [default: 9091]
    #[arg(long, value_name = "PORT")]
    pub http_port: Option<u16>,
    /// Port of the demo provider [default: 9092]
    #[arg(long, value_name = "PORT")]
    pub provider_port: Option<u16>,
    #[command(flatten)]
    pub state: StateArgs,
}

/// Where the state is.
#[derive(Debug, Clone, Args)]
pub struct StateArgs {
    /// Folder of everything that is kept [default: .turnpike in the checkout]
    #[arg(long)]
    pub state_dir: Option<PathBuf>,
}

impl StateArgs {
    fn open(&self) -> Result<StateDir> {
        StateDir::open(&self.state_dir.clone().unwrap_or_else(StateDir::usual))
    }
}

/// The ports that a running stack took.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Ports {
    gateway: u16,
    envoy_admin: u16,
    admin: u16,
    http: u16,
    provider: u16,
}

impl Ports {
    const USUAL: Self = Self {
        gateway: 8080,
        envoy_admin: 9901,
        admin: 9090,
        http: 9091,
        provider: 9092,
    };

    /// Each with the port that was asked for and the option that asks for it.
    fn with_wishes(self, args: &UpArgs) -> [(u16, Option<u16>, &'static str); 5] {
        [
            (self.gateway, args.gateway_port, "--gateway-port"),
            (
                self.envoy_admin,
                args.envoy_admin_port,
                "--envoy-admin-port",
            ),
            (self.admin, args.admin_port, "--admin-port"),
            (self.http, args.http_port, "--http-port"),
            (self.provider, args.provider_port, "--provider-port"),
        ]
    }

    /// Takes the wanted ports, and names the option that moves one that is taken.
    fn choose(args: &UpArgs) -> Result<Self> {
        let mut chosen = [0; 5];
        for (chosen, (usual, asked, option)) in chosen.iter_mut().zip(Self::USUAL.with_wishes(args))
        {
            let wanted = asked.unwrap_or(usual);
            ensure!(
                wanted == 0 || ports::is_free(wanted),
                "port {wanted} is taken: stop what listens there, or choose another with {option}"
            );
            *chosen = ports::or_free(wanted)?;
        }
        let [gateway, envoy_admin, admin, http, provider] = chosen;
        Ok(Self {
            gateway,
            envoy_admin,
            admin,
            http,
            provider,
        })
    }

    /// Fails when what runs has not the ports that are asked for.
    fn agree_with(self, args: &UpArgs) -> Result<()> {
        for (has, asked, option) in self.with_wishes(args) {
            if let Some(asked) = asked.filter(|&asked| asked != 0 && asked != has) {
                bail!(
                    "it runs already, with {option} {has} and not {asked}: `cargo xtask down` \
                     first, or --state-dir for another one beside it"
                );
            }
        }
        Ok(())
    }

    fn file(state: &StateDir) -> PathBuf {
        state.run().join("ports.json")
    }

    fn save(self, state: &StateDir) -> Result<()> {
        let path = Self::file(state);
        fs::write(&path, serde_json::to_string(&self)?)
            .with_context(|| format!("writing {}", path.display()))
    }

    fn load(state: &StateDir) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(Self::file(state)).ok()?).ok()
    }

    /// The port to show for a process, and whether it is ready. None: it has no port.
    fn ready(self, name: &str) -> (Option<u16>, bool) {
        match name {
            ENVOY => (Some(self.gateway), http::is_ok(self.envoy_admin, "/ready")),
            CONTROL_PLANE => (Some(self.admin), http::is_ok(self.http, "/readyz")),
            PROVIDER => (Some(self.provider), http::is_ok(self.provider, "/healthz")),
            _ => (None, true),
        }
    }
}

/// Starts everything and ends by printing a key and a request that was just answered.
pub fn up(args: &UpArgs) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let state = args.state.open()?;
    let lock = state.lock()?;
    if let Some(ports) = already_up(&state) {
        ports.agree_with(args)?;
        say(&format!(
            "Turnpike runs already, in {}.",
            state.path().display()
        ));
        return say_how_to_call(&state);
    }
    stop_all(&state, false);

    let mut steps = Steps::default();
    let mut started = Started::default();
    let brought_up = bring_up(args, &state, &mut steps, &mut started, &interrupt);
    if let Err(error) = brought_up {
        say("Stopping what was started.");
        return Err(error);
    }
    steps.summary();
    say("");
    say_how_to_call(&state)?;
    drop(lock);
    if args.detach {
        started.detach();
        say("\n`cargo xtask status` shows what runs, `cargo xtask down` stops it.");
        return Ok(());
    }
    say("\nCtrl-C stops everything.");
    follow(&state, &mut started, &interrupt)
}

fn bring_up(
    args: &UpArgs,
    state: &StateDir,
    steps: &mut Steps,
    started: &mut Started,
    interrupt: &Interrupt,
) -> Result<()> {
    let ports = Ports::choose(args)?;
    let envoy = steps.run("Fetch Envoy", || Ok(Pin::envoy()?.fetch()?.join("envoy")))?;
    let database_url = steps.run("Start Postgres", || start_postgres(state, started))?;
    let bin_dir = steps.run("Build control plane, CLI and provider", build::programs)?;
    interrupt.check()?;
    let module_dir = steps.run("Build libturnpike.so (release)", build::module)?;
    interrupt.check()?;
    let programs = Programs::new(&bin_dir, &module_dir, &envoy)?;

    let control_plane = steps.run("Start the control plane and migrate", || {
        ControlPlane::start(
            &programs,
            state,
            &ControlPlaneOptions {
                name: CONTROL_PLANE.to_owned(),
                database_url,
                grpc_port: ports.admin,
                http_port: ports.http,
                env: Vec::new(),
            },
        )
    })?;
    let access = control_plane.access;
    started.push(control_plane.process, Ask::Term);
    steps.run("Start the demo provider", || {
        let provider = Provider::start(
            &programs,
            state,
            PROVIDER,
            ports.provider,
            &["--demo-tokens"],
        )?;
        started.push(provider.process, Ask::Term);
        Ok(())
    })?;
    interrupt.check()?;
    let key = steps.run("Seed the demo config", || {
        seed::run(&access, &programs, state, ports.provider)
    })?;
    steps.run("Start Envoy", || {
        let envoy = Envoy::start(
            &programs,
            state,
            &EnvoyOptions {
                name: ENVOY.to_owned(),
                gateway_port: ports.gateway,
                admin_port: ports.envoy_admin,
                control_plane: access.url(),
                tokens: access.tokens.clone(),
                concurrency: 2,
                start_deadline_ms: 15_000,
                log_level: "info".to_owned(),
            },
        )?;
        started.push(envoy.process, Ask::Term);
        Ok(())
    })?;
    steps.run("Ask the gateway", || first_answer(ports.gateway, &key))?;
    ports.save(state)?;
    write_env(state, ports, &key, &access.tokens.admin_token()?)
}

fn start_postgres(state: &StateDir, started: &mut Started) -> Result<String> {
    if let Ok(url) = std::env::var("DATABASE_URL") {
        say("  DATABASE_URL is set: no Postgres is started");
        return Ok(url);
    }
    let wanted = state.path().join("postgres");
    let server = Server::start(&Options {
        dir: wanted.clone(),
        logs: state.logs(),
        run_dir: state.run(),
        durable: true,
    })?;
    say(&format!("  Postgres {}", server.origin));
    if server.dir != wanted {
        let dir = server.dir.display();
        say(&format!(
            "  its data is in {dir}, since user `nobody` cannot reach the state folder"
        ));
    }
    started.push(server.process, Ask::Int);
    Ok(server.url)
}

/// Waits until a chat request with the demo key is answered.
fn first_answer(gateway: u16, key: &str) -> Result<()> {
    let authorization = format!("Bearer {key}");
    let headers = [
        ("authorization", authorization.as_str()),
        ("content-type", "application/json"),
    ];
    let body = r#"{"model":"demo","messages":[{"role":"user","content":"Hello"}]}"#;
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = http::request(gateway, "POST", "/v1/chat/completions", &headers, body);
        match answer {
            Ok(answer) if answer.status == 200 => return Ok(()),
            Ok(answer) if is_for_its_owner(answer.status, Instant::now() > end) => {
                let answer = answer.body.trim();
                say(&format!("  it runs and refuses the demo key: {answer}"));
                return Ok(());
            }
            Ok(answer) if Instant::now() > end => {
                bail!(
                    "the gateway answers {}: {}",
                    answer.status,
                    answer.body.trim()
                )
            }
            Err(error) if Instant::now() > end => return Err(error).context("asking the gateway"),
            _ => sleep(Duration::from_millis(50)),
        }
    }
}

/// Whether a refusal is the doing of who made limits, or changed the demo config: a limit refuses at
/// once, while other refusals may only mean that the config has not come yet.
fn is_for_its_owner(status: u16, is_late: bool) -> bool {
    status == 429 || (is_late && (400..500).contains(&status))
}

fn write_env(state: &StateDir, ports: Ports, key: &str, admin_token: &str) -> Result<()> {
    let text = format!(
        "TURNPIKE_URL=http://127.0.0.1:{}\nTURNPIKE_KEY={key}\nTURNPIKE_ADMIN_ADDR=127.0.0.1:{}\n\
         TURNPIKE_ADMIN_TOKEN={admin_token}\nTURNPIKE_CONSOLE_URL=http://127.0.0.1:{}\n",
        ports.gateway, ports.admin, ports.http
    );
    write_secret(&state.env_file(), &text)
}

fn say_how_to_call(state: &StateDir) -> Result<()> {
    let path = state.env_file();
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let value = |name: &str| {
        let mut pairs = text.lines().filter_map(|line| line.split_once('='));
        let found = pairs
            .find(|(n, _)| *n == name)
            .map(|(_, value)| value.to_owned());
        found.with_context(|| format!("{} has no {name}", path.display()))
    };
    let (url, key) = (value("TURNPIKE_URL")?, value("TURNPIKE_KEY")?);
    say(&format!("Key:       {key}"));
    say(&format!("Gateway:   {url}/v1"));
    say(&format!("Variables: {}", path.display()));
    say("Try:");
    say(&format!(
        "  curl {url}/v1/chat/completions -H 'Authorization: Bearer {key}' \
         -H 'Content-Type: application/json' \
         -d '{{\"model\":\"demo\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hello\"}}]}}'"
    ));
    say("  (add \"stream\":true for a stream, or \"model\":\"auto:low\" to let the rules choose)");
    Ok(())
}

/// The ports of what runs, if everything does.
fn already_up(state: &StateDir) -> Option<Ports> {
    let ports = Ports::load(state)?;
    let healthy =
        |name: &str| Process::recorded(&state.run(), name).is_some() && ports.ready(name).1;
    let postgres = std::env::var_os("DATABASE_URL").is_some() || healthy(POSTGRES);
    let all = postgres && [ENVOY, PROVIDER, CONTROL_PLANE].into_iter().all(healthy);
    all.then_some(ports)
}

/// Shows the logs until Ctrl-C, `down` from elsewhere, or the end of one of the processes.
fn follow(state: &StateDir, started: &mut Started, interrupt: &Interrupt) -> Result<()> {
    let logs = STOP_ORDER.map(|name| (name.to_owned(), state.logs().join(format!("{name}.log"))));
    let access = (
        "access".to_owned(),
        state.logs().join(format!("{ENVOY}.access.log")),
    );
    let mut tail = Tail::new(logs.into_iter().chain([access]));
    while !interrupt.raised() {
        tail.show();
        if let Some(ended) = started.first_ended() {
            let name = ended.name().to_owned();
            if Process::names(&state.run()).contains(&name) {
                bail!("{name} ended by itself; its log: {}", ended.log().display());
            }
            say("Stopped from elsewhere.");
            return Ok(());
        }
        sleep(Duration::from_millis(200));
    }
    say("\nStopping.");
    Ok(())
}

/// Stops everything that an `up` on this state started.
pub fn down(args: &StateArgs) -> Result<()> {
    let state = args.open()?;
    let _lock = state.lock()?;
    if !stop_all(&state, true) {
        say("Nothing runs.");
    }
    Ok(())
}

/// True: something ran.
fn stop_all(state: &StateDir, tell: bool) -> bool {
    let mut names: Vec<String> = Process::names(&state.run());
    names.sort_by_key(|name| STOP_ORDER.iter().position(|known| known == name));
    let mut any = false;
    for name in names {
        let Some(mut process) = Process::recorded(&state.run(), &name) else {
            continue;
        };
        any = true;
        let ask = if name == POSTGRES {
            Ask::Int
        } else {
            Ask::Term
        };
        let went = process.stop(ask, Duration::from_secs(20));
        if tell {
            say(&format!(
                "{} {name}",
                if went { "Stopped" } else { "Killed" }
            ));
        }
    }
    any
}

/// Shows what runs. Fails when something is missing or not ready.
pub fn status(args: &StateArgs) -> Result<()> {
    let state = args.open()?;
    let ports = Ports::load(&state);
    say(&format!("{:<14} {:>8} {:>6}  ready", "name", "pid", "port"));
    let mut all_ready = true;
    for name in STOP_ORDER.into_iter().rev() {
        let (pid, port, ready) = match (Process::recorded(&state.run(), name), ports) {
            (Some(process), Some(ports)) => {
                let (port, ready) = ports.ready(name);
                let port = port.map_or_else(|| "-".to_owned(), |port| port.to_string());
                (
                    process.pid().to_string(),
                    port,
                    if ready { "yes" } else { "no" },
                )
            }
            (Some(process), None) => (process.pid().to_string(), "-".to_owned(), "starting"),
            (None, _) => ("-".to_owned(), "-".to_owned(), "not running"),
        };
        let elsewhere =
            name == POSTGRES && pid == "-" && std::env::var_os("DATABASE_URL").is_some();
        let ready = if elsewhere { "DATABASE_URL" } else { ready };
        all_ready &= elsewhere || ready == "yes";
        say(&format!("{name:<14} {pid:>8} {port:>6}  {ready}"));
    }
    ensure!(
        all_ready,
        "not everything is ready; `cargo xtask up` starts it"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_the_owners_does_not_keep_it_from_starting() {
        assert!(is_for_its_owner(429, false));
        assert!(!is_for_its_owner(403, false) && is_for_its_owner(403, true));
        assert!(!is_for_its_owner(503, true));
    }

    #[test]
    fn what_runs_on_other_ports_than_asked_for_is_told() {
        let mut args = UpArgs {
            detach: true,
            gateway_port: None,
            envoy_admin_port: None,
            admin_port: Some(9090),
            http_port: Some(0),
            provider_port: None,
            state: StateArgs { state_dir: None },
        };
        let running = Ports {
            gateway: 18080,
            ..Ports::USUAL
        };
        running
            .agree_with(&args)
            .expect("nothing else is asked for");
        args.gateway_port = Some(18081);
        let error = running.agree_with(&args).expect_err("other ports");
        assert!(
            error
                .to_string()
                .contains("--gateway-port 18080 and not 18081"),
            "{error}"
        );
    }
}
