//! Processes that outlive us: started in groups of their own, found again by pid files, and never
//! mistaken for a stranger with a recycled pid.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// What to start.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Names the process in messages, its pid file and its log.
    pub name: String,
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub env: Vec<(String, OsString)>,
    /// User and group to run as, if not ours.
    pub user: Option<(u32, u32)>,
    /// Gets standard output and error, appended.
    pub log: PathBuf,
    /// Folder of the pid file.
    pub run_dir: PathBuf,
}

/// A process that was started by us or by an earlier run of us.
#[derive(Debug)]
pub struct Process {
    record: Record,
    log: PathBuf,
    pid_file: PathBuf,
    child: Option<Child>,
}

/// A pid file's content. The start time makes a recycled pid visible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    name: String,
    pid: i32,
    /// In clock ticks since boot, from `/proc/<pid>/stat`.
    start_ticks: u64,
    log: PathBuf,
}

/// How to ask a process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// SIGTERM.
    Term,
    /// SIGINT; Postgres calls it a fast shutdown.
    Int,
    /// SIGKILL: no chance to tidy up.
    Kill,
}

impl Process {
    /// Starts `spec` and writes its pid file.
    pub fn start(spec: &Spec) -> Result<Self> {
        let log = OpenOptions::new().create(true).append(true).open(&spec.log);
        let log = log.with_context(|| format!("opening {}", spec.log.display()))?;
        let mut command = Command::new(&spec.program);
        command.args(&spec.args).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        // Output goes to a file.
        command.env("NO_COLOR", "1");
        command.envs(spec.env.iter().map(|(name, value)| (name, value)));
        // Ctrl-C in our terminal is for us alone.
        command.process_group(0);
        if let Some((uid, gid)) = spec.user {
            command.uid(uid).gid(gid);
        }
        let child = command
            .spawn()
            .with_context(|| format!("starting {} ({})", spec.name, spec.program.display()))?;
        let pid = i32::try_from(child.id())?;
        let start_ticks = start_ticks(pid).unwrap_or_default();
        let record = Record {
            name: spec.name.clone(),
            pid,
            start_ticks,
            log: spec.log.clone(),
        };
        let pid_file = pid_file(&spec.run_dir, &spec.name);
        fs::write(&pid_file, serde_json::to_string(&record)?)
            .with_context(|| format!("writing {}", pid_file.display()))?;
        Ok(Self {
            record,
            log: spec.log.clone(),
            pid_file,
            child: Some(child),
        })
    }

    /// The process that an earlier run recorded under `name`, if it still lives.
    pub fn recorded(run_dir: &Path, name: &str) -> Option<Self> {
        let pid_file = pid_file(run_dir, name);
        let text = fs::read_to_string(&pid_file).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        let mut found = Self {
            log: record.log.clone(),
            record,
            pid_file,
            child: None,
        };
        found.alive().then_some(found)
    }

    /// The names that have pid files in `run_dir`, sorted.
    pub fn names(run_dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(run_dir).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                entry
                    .file_name()
                    .into_string()
                    .ok()?
                    .strip_suffix(".pid")
                    .map(str::to_owned)
            })
            .collect();
        names.sort();
        names
    }

    pub fn name(&self) -> &str {
        &self.record.name
    }

    pub fn pid(&self) -> i32 {
        self.record.pid
    }

    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Whether it still runs; a zombie does not.
    pub fn alive(&mut self) -> bool {
        if let Some(child) = &mut self.child {
            return matches!(child.try_wait(), Ok(None));
        }
        start_ticks(self.record.pid) == Some(self.record.start_ticks)
    }

    /// How it ended. None: it still runs, or an earlier run of us started it.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.as_mut()?.try_wait().ok().flatten()
    }

    /// Sends a signal. False: the process is gone.
    pub fn signal(&mut self, ask: Ask) -> bool {
        let Some(pid) = Pid::from_raw(self.record.pid) else {
            return false;
        };
        // The descriptor holds on to one process: what is checked is what is signalled.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            return false;
        };
        if !self.alive() {
            return false;
        }
        let sent = match ask {
            Ask::Term => pidfd_send_signal(handle, Signal::TERM),
            Ask::Int => pidfd_send_signal(handle, Signal::INT),
            // What it started goes with it.
            Ask::Kill => kill_process_group(pid, Signal::KILL),
        };
        sent.is_ok()
    }

    /// Asks it to end, kills it (and its group) after `grace`, and forgets its pid file. True: it
    /// went by itself.
    pub fn stop(&mut self, ask: Ask, grace: Duration) -> bool {
        self.signal(ask);
        let went = self.wait_gone(grace);
        if !went {
            self.signal(Ask::Kill);
            self.wait_gone(Duration::from_secs(5));
        }
        drop(fs::remove_file(&self.pid_file));
        went
    }

    /// Waits until it is gone. False: it still lives after `limit`.
    pub fn wait_gone(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while self.alive() {
            if Instant::now() >= end {
                return false;
            }
            sleep(Duration::from_millis(5));
        }
        true
    }

    /// Waits until `ready` says so. The error tells what was waited for and shows the log's end.
    pub fn wait_ready(&mut self, limit: Duration, mut ready: impl FnMut() -> bool) -> Result<()> {
        let end = Instant::now() + limit;
        loop {
            if ready() {
                return Ok(());
            }
            let name = self.name().to_owned();
            if !self.alive() {
                bail!("{name} ended before it was ready{}", self.log_end());
            }
            if Instant::now() >= end {
                bail!(
                    "{name} was not ready after {} s{}",
                    limit.as_secs(),
                    self.log_end()
                );
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// The last lines of the log, for an error message.
    fn log_end(&self) -> String {
        let text = read_end(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines
            .get(lines.len().saturating_sub(15)..)
            .unwrap_or_default();
        format!(
            "; the end of {}:\n  {}",
            self.log.display(),
            last.join("\n  ")
        )
    }
}

fn read_end(path: &Path) -> std::io::Result<String> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(16 * 1024)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn pid_file(run_dir: &Path, name: &str) -> PathBuf {
    run_dir.join(format!("{name}.pid"))
}

/// When a process was started, in clock ticks since boot. None: there is none, or it is a zombie.
fn start_ticks(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything: count fields after it (proc(5): state is field
    // 3, starttime field 22).
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(dir: &Path, name: &str, script: &str) -> Spec {
        Spec {
            name: name.to_owned(),
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: Vec::new(),
            user: None,
            log: dir.join(format!("{name}.log")),
            run_dir: dir.to_owned(),
        }
    }

    #[test]
    fn a_process_is_found_again_by_its_pid_file_and_stopped() {
        let dir = tempfile::tempdir().expect("made");
        let mut process =
            Process::start(&spec(dir.path(), "sleeper", "exec sleep 60")).expect("started");
        let mut again = Process::recorded(dir.path(), "sleeper").expect("found");
        assert_eq!(again.pid(), process.pid());
        assert!(again.alive());
        assert_eq!(Process::names(dir.path()), ["sleeper"]);
        assert!(process.stop(Ask::Term, Duration::from_secs(5)));
        assert!(!again.alive());
        assert!(Process::recorded(dir.path(), "sleeper").is_none());
    }

    #[test]
    fn a_recycled_pid_is_taken_for_gone() {
        let dir = tempfile::tempdir().expect("made");
        let own = i32::try_from(std::process::id()).expect("fits");
        let record = Record {
            name: "x".to_owned(),
            pid: own,
            start_ticks: 1,
            log: dir.path().join("x.log"),
        };
        fs::write(
            dir.path().join("x.pid"),
            serde_json::to_string(&record).expect("JSON"),
        )
        .expect("written");
        assert!(Process::recorded(dir.path(), "x").is_none());
    }

    #[test]
    fn one_that_ignores_the_signal_is_killed() {
        let dir = tempfile::tempdir().expect("made");
        let script = "trap '' TERM; echo set; while :; do sleep 0.1; done";
        let mut process = Process::start(&spec(dir.path(), "deaf", script)).expect("started");
        let log = dir.path().join("deaf.log");
        let set = || fs::read_to_string(&log).is_ok_and(|text| text.contains("set"));
        process
            .wait_ready(Duration::from_secs(5), set)
            .expect("ready");
        assert!(!process.stop(Ask::Term, Duration::from_millis(200)));
        assert!(!process.alive());
    }

    #[test]
    fn one_that_ends_early_is_reported_with_its_last_words() {
        let dir = tempfile::tempdir().expect("made");
        let mut process =
            Process::start(&spec(dir.path(), "brief", "echo 'no port'; exit 3")).expect("started");
        let error = process
            .wait_ready(Duration::from_secs(5), || false)
            .expect_err("ended");
        assert!(error.to_string().contains("no port"), "{error}");
    }
}
