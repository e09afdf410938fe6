//! Programs that come from the system, by the name of their Debian package: what a test needs and
//! no registry has as a pinned file.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::{build::run, steps::say};

/// A program and the package it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    pub name: &'static str,
    /// What it puts on the `PATH`.
    pub program: &'static str,
    /// What it is needed for, for whoever has to install it.
    pub purpose: &'static str,
}

/// Counts instructions, which unlike time do not depend on what else the machine does.
pub const VALGRIND: Package = Package {
    name: "valgrind",
    program: "valgrind",
    purpose: "counting instructions",
};

impl Package {
    /// The program's path. One that is missing is installed where we may: as root, with apt-get.
    pub fn ensure(&self) -> Result<PathBuf> {
        let path = env::var_os("PATH").unwrap_or_default();
        if let Some(program) = find(self.program, &path) {
            return Ok(program);
        }
        let apt = find("apt-get", &path);
        match apt {
            Some(apt) if rustix::process::geteuid().is_root() => self.install(&apt)?,
            _ => bail!("{}", self.missing()),
        }
        find(self.program, &path).with_context(|| self.missing())
    }

    fn install(&self, apt: &Path) -> Result<()> {
        say(&format!(
            "  installing Debian's {} for {}",
            self.name, self.purpose
        ));
        let apt_get = |args: &[&str]| {
            let mut command = Command::new(apt);
            command.args(["-qq", "-o", "Dpkg::Use-Pty=0"]).args(args);
            command.env("DEBIAN_FRONTEND", "noninteractive");
            run(&mut command)
        };
        let install = ["install", "-y", "--no-install-recommends", self.name];
        // A fresh image has no package lists.
        apt_get(&install)
            .or_else(|_| apt_get(&["update"]).and_then(|()| apt_get(&install)))
            .with_context(|| self.missing())
    }

    fn missing(&self) -> String {
        format!(
            "{} was not found; it is needed for {}: install it (Debian, Ubuntu: apt-get install {})",
            self.program, self.purpose, self.name
        )
    }
}

/// The first folder of `path` that has `program` in it, with the program's name.
fn find(program: &str, path: &OsStr) -> Option<PathBuf> {
    env::split_paths(path)
        .map(|dir| dir.join(program))
        .find(|candidate| candidate.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_any_folder_of_the_path() {
        let dir = tempfile::tempdir().expect("made");
        std::fs::write(dir.path().join("tool"), "").expect("written");
        let path = env::join_paths([Path::new("/nowhere"), dir.path()]).expect("joined");
        assert_eq!(find("tool", &path), Some(dir.path().join("tool")));
        assert_eq!(find("other", &path), None);
    }

    #[test]
    fn what_is_missing_names_the_package_to_install() {
        let text = VALGRIND.missing();
        assert!(text.contains("apt-get install valgrind"), "{text}");
    }
}
