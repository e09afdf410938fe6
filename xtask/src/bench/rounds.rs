//! Rounds: in each, every subject is loaded in every way, one after the other.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result};

use super::{
    Bed, BenchArgs,
    load::Figures,
    subjects::{Subject, Subjects},
};
use crate::interrupt::Interrupt;

/// The processors' time of an Envoy, beside what the client measures.
pub(super) const CPU_US: &str = "cpu_us_per_request";
/// Ticks of `/proc/<pid>/stat` in a second: on Linux the same for every program (proc(5)).
const TICKS_PER_S: u32 = 100;

/// A way to load a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    One,
    Plain,
    Streams,
}

impl Work {
    pub(super) const ALL: [Self; 3] = [Self::One, Self::Plain, Self::Streams];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::One => "plain, one at a time",
            Self::Plain => "plain, as many as go",
            Self::Streams => "streams of 20 events, 2 ms apart",
        }
    }

    /// For a file's name.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Plain => "plain",
            Self::Streams => "streams",
        }
    }

    /// Arguments of `turnpike-load` without an extent.
    pub(super) fn args(self, connections: u32) -> Vec<String> {
        let (kind, connections) = match self {
            Self::One => ("plain", 1),
            Self::Plain => ("plain", connections),
            Self::Streams => ("streams", connections),
        };
        let mut args = [kind, "--connections", &connections.to_string()]
            .map(str::to_owned)
            .to_vec();
        if self == Self::Streams {
            args.extend(["--events", "20", "--gap-us", "2000"].map(str::to_owned));
        }
        args
    }
}

/// Figures of each way and subject, a round each.
#[derive(Debug, Default)]
pub(super) struct Rounds(BTreeMap<(Work, Subject), Vec<Figures>>);

impl Rounds {
    /// Measures; a short round before the first is not counted.
    pub(super) fn run(
        args: &BenchArgs,
        bed: &Bed,
        subjects: &Subjects,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let mut rounds = Self::default();
        let warm = (args.seconds / 4.0).min(1.0);
        for work in Work::ALL {
            for subject in Subject::ALL {
                measure(args, bed, subjects, (work, subject), warm)?;
            }
        }
        for round in 0..args.rounds {
            for work in Work::ALL {
                // Each subject goes first as often as any other.
                let first = usize::try_from(round)? % Subject::ALL.len();
                let order = Subject::ALL.iter().cycle().skip(first);
                for subject in order.take(Subject::ALL.len()) {
                    interrupt.check()?;
                    let cell = (work, *subject);
                    let figures = measure(args, bed, subjects, cell, args.seconds)?;
                    rounds.0.entry(cell).or_default().push(figures);
                }
            }
        }
        Ok(rounds)
    }

    /// One figure of every round.
    pub(super) fn figure(&self, work: Work, subject: Subject, name: &str) -> Vec<f64> {
        let rounds = self.0.get(&(work, subject)).into_iter().flatten();
        rounds
            .filter_map(|figures| figures.get(name).copied())
            .collect()
    }

    /// Everything, for the file.
    pub(super) fn all(&self) -> impl Iterator<Item = (Work, Subject, &[Figures])> {
        self.0
            .iter()
            .map(|((work, subject), figures)| (*work, *subject, figures.as_slice()))
    }
}

fn measure(
    args: &BenchArgs,
    bed: &Bed,
    subjects: &Subjects,
    (work, subject): (Work, Subject),
    seconds: f64,
) -> Result<Figures> {
    let pid = subjects.envoy(subject).map(|envoy| envoy.pid);
    let before = pid.map(cpu_us).transpose()?;
    let mut load = work.args(args.connections);
    load.extend(["--seconds".to_owned(), seconds.to_string()]);
    let mut figures = bed.load.send(&subjects.target(subject), &load)?;
    if let (Some(pid), Some(before), Some(requests)) = (pid, before, figures.get("requests")) {
        let spent = cpu_us(pid)? - before;
        let each = spent / requests.max(1.0);
        figures.insert(CPU_US.to_owned(), each);
    }
    Ok(figures)
}

/// User and system time that a process has used so far.
fn cpu_us(pid: i32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    // The name, in parentheses, may hold anything: state is field 3, utime and stime 14 and 15.
    let fields = stat.rsplit_once(')').context("no name")?.1;
    let ticks: Vec<u32> = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse().ok())
        .collect();
    let ticks: f64 = ticks.into_iter().map(f64::from).sum();
    Ok(ticks * 1e6 / f64::from(TICKS_PER_S))
}
