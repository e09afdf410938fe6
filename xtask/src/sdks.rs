//! OpenAI's SDKs, for tests only: the versions and hashes that the lock files in `tests/sdks` name,
//! installed below the target folder by the ordinary clients of their registries.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{
    foreign::output,
    hash::sha256_hex,
    layout::{root, target},
};

/// Says which locks and which runtime a folder was installed with.
const STAMP: &str = ".installed-with";

const PYTHON_OLDEST: Version = Version(3, 10);
const NODE_OLDEST: Version = Version(20, 0);

const GET_PYTHON: &str =
    "install Python 3.10 or newer with pip (Debian: apt-get install python3-pip)";
const GET_NODE: &str = "install Node.js 20 or newer with npm (it is needed for tests only)";

/// The folder for `PYTHONPATH` that holds OpenAI's Python SDK; installed if it is not there yet.
pub fn python() -> Result<PathBuf> {
    let mut ask = Command::new("python3");
    ask.args(["-c", "import sys, platform; print(platform.python_version(), sys.implementation.cache_tag, platform.machine())"]);
    let runtime = output(&mut ask, "asking python3 for its version", GET_PYTHON)?;
    PYTHON_OLDEST.check("python3", &runtime, GET_PYTHON)?;
    let lock = root().join("tests/sdks/python/requirements.txt");
    Place::usual("python").installed(std::slice::from_ref(&lock), &runtime, |into| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--no-user"]);
        pip.args(["--disable-pip-version-check", "--no-warn-conflicts"]);
        pip.args(["--require-hashes", "--only-binary", ":all:", "--target"]);
        pip.arg(into).arg("-r").arg(&lock);
        let what = format!("installing {} with pip", lock.display());
        output(&mut pip, &what, GET_PYTHON).map(drop)
    })
}

/// The folder whose `node_modules` holds OpenAI's Node SDK; installed if it is not there yet.
pub fn node() -> Result<PathBuf> {
    let mut ask = Command::new("node");
    let runtime = output(
        ask.arg("--version"),
        "asking node for its version",
        GET_NODE,
    )?;
    NODE_OLDEST.check("node", runtime.trim_start_matches('v'), GET_NODE)?;
    let sources = root().join("tests/sdks/node");
    let locks = ["package.json", "package-lock.json"].map(|name| sources.join(name));
    Place::usual("node").installed(&locks, &runtime, |into| {
        for lock in &locks {
            fs::copy(lock, into.join(lock.file_name().unwrap_or_default()))
                .with_context(|| format!("copying {}", lock.display()))?;
        }
        let mut npm = Command::new("npm");
        npm.current_dir(into)
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        let what = format!("installing {} with npm", sources.display());
        output(&mut npm, &what, GET_NODE).map(drop)
    })
}

/// Where one SDK is installed.
struct Place {
    base: PathBuf,
    name: &'static str,
}

impl Place {
    fn usual(name: &'static str) -> Self {
        let base = target().join("sdks");
        Self { base, name }
    }

    /// The folder, after `install` into it unless these locks and this runtime already were. One
    /// that failed half-way is never taken for whole.
    fn installed(
        &self,
        locks: &[PathBuf],
        runtime: &str,
        install: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        fs::create_dir_all(&self.base)
            .with_context(|| format!("making {}", self.base.display()))?;
        // Tests that run at once may all find it missing.
        let turn = fs::File::create(self.base.join(format!("{}.lock", self.name)))?;
        turn.lock().context("waiting for another installation")?;

        let home = self.base.join(self.name);
        let stamp = stamp(locks, runtime)?;
        if fs::read_to_string(home.join(STAMP)).is_ok_and(|found| found == stamp) {
            return Ok(home);
        }
        let fresh = self.base.join(format!("{}.new", self.name));
        for old in [&home, &fresh] {
            if old.exists() {
                fs::remove_dir_all(old).with_context(|| format!("removing {}", old.display()))?;
            }
        }
        fs::create_dir(&fresh).with_context(|| format!("making {}", fresh.display()))?;
        install(&fresh)?;
        fs::write(fresh.join(STAMP), stamp)?;
        fs::rename(&fresh, &home).with_context(|| format!("making {}", home.display()))?;
        Ok(home)
    }
}

fn stamp(locks: &[PathBuf], runtime: &str) -> Result<String> {
    let mut stamp = format!("{}\n", runtime.trim());
    for lock in locks {
        let bytes = fs::read(lock).with_context(|| format!("reading {}", lock.display()))?;
        stamp.push_str(&sha256_hex(&bytes));
        stamp.push('\n');
    }
    Ok(stamp)
}

/// Major and minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

impl Version {
    /// Of a text that begins `<major>.<minor>.`.
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(str::parse);
        Some(Self(parts.next()?.ok()?, parts.next()?.ok()?))
    }

    fn check(self, program: &str, found: &str, remedy: &str) -> Result<()> {
        let Some(version) = Self::read(found) else {
            bail!("{program} says it is version `{}`: {remedy}", found.trim());
        };
        ensure!(
            version >= self,
            "{program} is {}.{}, too old for OpenAI's SDK: {remedy}",
            version.0,
            version.1
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(base: &Path) -> Place {
        Place {
            base: base.join("sdks"),
            name: "some",
        }
    }

    #[test]
    fn what_is_installed_is_kept_until_its_lock_or_runtime_changes() {
        let dir = tempfile::tempdir().expect("made");
        let lock = dir.path().join("lock");
        let count = std::cell::Cell::new(0);
        let install = |runtime: &str| {
            place(dir.path())
                .installed(std::slice::from_ref(&lock), runtime, |into| {
                    count.set(count.get() + 1);
                    Ok(fs::write(into.join("package"), count.get().to_string())?)
                })
                .expect("installed")
        };
        for (lock_text, runtime, installed) in
            [("a", "1", 1), ("a", "1", 1), ("b", "1", 2), ("b", "2", 3)]
        {
            fs::write(&lock, lock_text).expect("written");
            let home = install(runtime);
            let package = fs::read_to_string(home.join("package")).expect("there");
            assert_eq!(package, installed.to_string());
            assert_eq!(count.get(), installed);
        }
    }

    #[test]
    fn an_installation_that_failed_is_made_again() {
        let dir = tempfile::tempdir().expect("made");
        let lock = dir.path().join("lock");
        fs::write(&lock, "a").expect("written");
        let failed = place(dir.path()).installed(std::slice::from_ref(&lock), "1", |into| {
            fs::write(into.join("half"), "")?;
            bail!("the network went away")
        });
        assert!(failed.is_err());
        let home = place(dir.path())
            .installed(std::slice::from_ref(&lock), "1", |_| Ok(()))
            .expect("installed");
        assert!(!home.join("half").exists());
    }

    #[test]
    fn a_runtime_that_is_too_old_is_named_with_the_remedy() {
        let check = |found| Version(3, 10).check("python3", found, "get it");
        assert!(check("3.10.0 cpython-310 x86_64\n").is_ok());
        assert!(check("4.0.1").is_ok());
        let error = check("3.9.18").expect_err("too old").to_string();
        assert_eq!(error, "python3 is 3.9, too old for OpenAI's SDK: get it");
        assert!(check("three").is_err());
    }

    #[test]
    fn lock_files_pin_by_hash_and_name_no_host() {
        let sdks = root().join("tests/sdks");
        let read = |name: &str| fs::read_to_string(sdks.join(name)).expect("a lock file");
        let python = read("python/requirements.txt");
        let node = read("node/package-lock.json");
        assert!(python.contains("openai==") && python.contains("--hash=sha256:"));
        assert!(node.contains("\"node_modules/openai\"") && node.contains("\"integrity\""));
        for lock in [python, node] {
            assert!(!lock.contains("://"), "a lock file names a host");
        }
    }
}
