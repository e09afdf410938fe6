//! What an open stream costs an Envoy in memory.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result};

use super::{
    Bed,
    subjects::{Subject, Subjects},
};

/// Memory of the Envoys, by subject.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) streams: u32,
    pub(super) of: BTreeMap<Subject, Rss>,
}

/// Resident memory in KiB.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rss {
    /// Before the streams were opened.
    pub(super) before_kib: f64,
    /// While all of them are open.
    pub(super) open_kib: f64,
}

impl Rss {
    pub(super) fn per_stream_kib(self, streams: u32) -> f64 {
        (self.open_kib - self.before_kib) / f64::from(streams.max(1))
    }
}

impl Memory {
    /// Holds streams open at one Envoy after the other. To be asked before the Envoys have been
    /// loaded: an allocator keeps what was freed, and would serve streams from it.
    pub(super) fn measure(bed: &Bed, subjects: &Subjects, streams: u32) -> Result<Self> {
        let mut of = BTreeMap::new();
        for subject in Subject::ENVOYS {
            let envoy = subjects.envoy(subject).context("an Envoy")?;
            let target = subjects.target(subject);
            let before_kib = rss_kib(envoy.pid)?;
            let held = bed.load.hold(&target, streams)?;
            let open_kib = rss_kib(envoy.pid)?;
            drop(held);
            let rss = Rss {
                before_kib,
                open_kib,
            };
            of.insert(subject, rss);
        }
        Ok(Self { streams, of })
    }
}

fn rss_kib(pid: i32) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .with_context(|| format!("{path} has no VmRSS"))
}
