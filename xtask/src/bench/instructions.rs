//! User-space instructions of a whole Envoy per request, counted by callgrind: the one figure that
//! does not depend on what else the machine does. The kernel's share is not in it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::{
    Bed,
    load::Target,
    rounds::Work,
    subjects::{Running, Subject, Subjects},
};
use crate::{debian::VALGRIND, interrupt::Interrupt, stack::Started};

mod profile;

use profile::Profile;

/// How callgrind's files begin. A dump's number comes next, then its thread; a file without a number
/// is not of a dump.
const PROFILE: &str = "profile";
const DUMP: &str = "profile.";
/// Requests of the two runs whose difference is counted: what a run has once, such as its
/// connection, falls out.
const FEW: u32 = 50;
const MANY: u32 = 250;
/// So that tables are filled and code is translated.
const WARM: u32 = 100;

/// Instructions per request, by work and subject.
#[derive(Debug, Default)]
pub(super) struct Counted(pub(super) BTreeMap<(Work, Subject), PerRequest>);

/// Thousands of instructions per request.
#[derive(Debug, Clone, Copy)]
pub(super) struct PerRequest {
    /// All threads: what the agent does with usage records is in it.
    pub(super) all_k: f64,
    /// The worker that served the requests.
    pub(super) worker_k: f64,
    /// Code of `libturnpike.so` on the worker, without what it calls elsewhere.
    pub(super) module_k: f64,
}

impl Counted {
    pub(super) const WORK: [Work; 2] = [Work::One, Work::Streams];

    /// Starts one Envoy after the other under callgrind and counts.
    pub(super) fn count(bed: &Bed, subjects: &Subjects, interrupt: &Interrupt) -> Result<Self> {
        let mut counted = Self::default();
        for subject in Subject::ENVOYS {
            let profiles = bed.state.path().join("callgrind").join(match subject {
                Subject::Module => "module",
                Subject::Bare | Subject::Direct => "bare",
            });
            if profiles.exists() {
                fs::remove_dir_all(&profiles)?;
            }
            fs::create_dir_all(&profiles)?;
            let program = wrapper(bed, &profiles)?;
            let mut started = Started::default();
            let (running, target) = subjects.start_another(bed, subject, &program, &mut started)?;
            let counter = Counter {
                bed,
                running,
                target,
                profiles,
            };
            counter.control(&["instrumentation", "on"])?;
            for work in Self::WORK {
                interrupt.check()?;
                let of = counter.per_request(work)?;
                counted.0.insert((work, subject), of);
            }
        }
        Ok(counted)
    }
}

/// A program to start in Envoy's place: Envoy under callgrind, counting when told to. A script,
/// so that whoever starts Envoys need not know.
fn wrapper(bed: &Bed, profiles: &Path) -> Result<PathBuf> {
    let valgrind = VALGRIND.ensure()?;
    let script = format!(
        "#!/bin/sh\nexec '{}' --tool=callgrind --instr-atstart=no --separate-threads=yes \
         --callgrind-out-file='{}/{PROFILE}' '{}' \"$@\"\n",
        valgrind.display(),
        profiles.display(),
        bed.programs.envoy.display()
    );
    let path = profiles.join("envoy");
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// An Envoy under callgrind.
struct Counter<'a> {
    bed: &'a Bed,
    running: Running,
    target: Target,
    profiles: PathBuf,
}

impl Counter<'_> {
    fn per_request(&self, work: Work) -> Result<PerRequest> {
        self.profile(work, WARM)?;
        let (few, many) = (self.profile(work, FEW)?, self.profile(work, MANY)?);
        let each =
            |of: fn(&Profile) -> f64| (of(&many) - of(&few)) / f64::from(MANY - FEW) / 1000.0;
        Ok(PerRequest {
            all_k: each(Profile::all),
            worker_k: each(Profile::worker),
            module_k: each(Profile::of_the_module),
        })
    }

    /// What so many requests took. The files stay, for whoever wants to know where it went.
    fn profile(&self, work: Work, requests: u32) -> Result<Profile> {
        let folder = self.profiles.join(work.word());
        fs::create_dir_all(&folder)?;
        for left in files(&folder)? {
            fs::remove_file(left)?;
        }
        self.control(&["zero"])?;
        let mut load = work.args(1);
        load.extend(["--requests".to_owned(), requests.to_string()]);
        self.bed.load.send(&self.target, &load)?;
        self.control(&["dump"])?;
        let mut profile = Profile::default();
        for file in files(&self.profiles)? {
            let name = file.file_name().unwrap_or_default();
            if !name.to_string_lossy().starts_with(DUMP) {
                continue;
            }
            let text = fs::read_to_string(&file)?;
            let read = profile.add_thread(&text);
            read.with_context(|| file.display().to_string())?;
            fs::rename(&file, folder.join(name))?;
        }
        ensure!(profile.all() > 0.0, "callgrind counted nothing");
        Ok(profile)
    }

    /// Tells callgrind something.
    fn control(&self, words: &[&str]) -> Result<()> {
        let mut vgdb = Command::new("vgdb");
        vgdb.arg(format!("--pid={}", self.running.pid)).args(words);
        let output = vgdb
            .output()
            .context("running vgdb, which is part of valgrind")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "vgdb: {}", errors.trim());
        Ok(())
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let files = entries.flatten().map(|entry| entry.path());
    Ok(files.filter(|path| path.is_file()).collect())
}
