//! Where things stand in a checkout and in a state folder.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

/// The checkout that this program was built from.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Cargo's target folder.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// What `up` keeps: `.turnpike/`, or the folder named instead.
#[derive(Debug, Clone)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// Makes the folder, for its owner only below its first level.
    pub fn open(path: &Path) -> Result<Self> {
        let make = |dir: &Path| {
            fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))
        };
        make(path)?;
        let path = path
            .canonicalize()
            .with_context(|| format!("finding {}", path.display()))?;
        for dir in ["run", "logs", "envoy", "secrets"] {
            make(&path.join(dir))?;
        }
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(path.join("secrets"), private).context("closing the secrets folder")?;
        Ok(Self(path))
    }

    /// The usual place: `.turnpike/` in the checkout.
    pub fn usual() -> PathBuf {
        root().join(".turnpike")
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Holds off any other command on this folder until the file is dropped.
    pub fn lock(&self) -> Result<fs::File> {
        let path = self.0.join("lock");
        let file =
            fs::File::create(&path).with_context(|| format!("opening {}", path.display()))?;
        if file.try_lock().is_err() {
            bail!(
                "another `cargo xtask` works on {} right now",
                self.0.display()
            );
        }
        Ok(file)
    }

    /// Pid files.
    pub fn run(&self) -> PathBuf {
        self.0.join("run")
    }

    /// Output of the processes, one file each.
    pub fn logs(&self) -> PathBuf {
        self.0.join("logs")
    }

    /// Tokens and keys, readable by the owner only.
    pub fn secrets(&self) -> PathBuf {
        self.0.join("secrets")
    }

    /// The folder of one Envoy: its bootstrap and the module's own disk.
    pub fn envoy(&self, name: &str) -> PathBuf {
        self.0.join("envoy").join(name)
    }

    /// Shell assignments for people and clients.
    pub fn env_file(&self) -> PathBuf {
        self.0.join("env")
    }
}

/// Whether other users can reach `path`: every folder above it lets them through.
pub fn open_to_others(path: &Path) -> bool {
    path.ancestors()
        .filter(|dir| !dir.as_os_str().is_empty())
        .all(|dir| {
            // What does not exist yet will be made by us, and open.
            fs::metadata(dir).map_or(true, |found| found.permissions().mode() & 0o001 != 0)
        })
}

/// A folder that every user can reach, in the place of `wanted`, which not all can: the same one
/// each time.
pub fn reachable_stand_in(wanted: &Path) -> PathBuf {
    let short = crate::hash::sha256_hex(wanted.as_os_str().as_encoded_bytes());
    let name = format!("turnpike-{}", short.get(..12).unwrap_or_default());
    Path::new("/var/tmp").join(name)
}

/// Writes a file that only its owner can read.
pub fn write_secret(path: &Path, text: &str) -> Result<()> {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let beside = path.with_extension("new");
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .with_context(|| format!("writing {}", beside.display()))?;
    file.write_all(text.as_bytes())?;
    fs::rename(&beside, path).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_below_a_closed_one_is_not_open_to_others() {
        let dir = tempfile::tempdir().expect("made");
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).expect("made");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("set");
        assert!(open_to_others(&inner));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).expect("set");
        assert!(!open_to_others(&inner));
    }

    #[test]
    fn a_secret_is_readable_by_its_owner_only() {
        let dir = tempfile::tempdir().expect("made");
        let path = dir.path().join("token");
        write_secret(&path, "x").expect("written");
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
