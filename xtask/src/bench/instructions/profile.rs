//! Callgrind's files, as far as they say how much was executed where.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

/// Instructions of a process, thread by thread.
#[derive(Debug, Default)]
pub(super) struct Profile {
    threads: Vec<Thread>,
}

#[derive(Debug)]
struct Thread {
    all: f64,
    of_envoy: f64,
    of_the_module: f64,
}

impl Profile {
    /// Adds what one thread's file says.
    pub(super) fn add_thread(&mut self, text: &str) -> Result<()> {
        let totals = text.lines().find_map(|line| line.strip_prefix("totals: "));
        let totals = totals.context("a profile without totals")?;
        let by_object = by_object(text);
        let of = |ending: &str| {
            let ours = by_object.iter().filter(|(name, _)| name.ends_with(ending));
            ours.map(|(_, instructions)| instructions).sum()
        };
        self.threads.push(Thread {
            all: totals.trim().parse()?,
            of_envoy: of("/envoy"),
            of_the_module: of("/libturnpike.so"),
        });
        Ok(())
    }

    pub(super) fn all(&self) -> f64 {
        self.threads.iter().map(|thread| thread.all).sum()
    }

    /// The one worker: no other thread runs so much of Envoy's own code.
    pub(super) fn worker(&self) -> f64 {
        self.worker_thread().map_or(0.0, |thread| thread.all)
    }

    pub(super) fn of_the_module(&self) -> f64 {
        self.worker_thread()
            .map_or(0.0, |thread| thread.of_the_module)
    }

    fn worker_thread(&self) -> Option<&Thread> {
        let by_envoy = |a: &&Thread, b: &&Thread| a.of_envoy.total_cmp(&b.of_envoy);
        self.threads.iter().max_by(by_envoy)
    }
}

/// Instructions by the object file that their code is in. What its calls took is not in it.
fn by_object(text: &str) -> BTreeMap<String, f64> {
    // A name is given once and stands for itself by its number from then on: `ob=(4) /usr/…`.
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut found: BTreeMap<String, f64> = BTreeMap::new();
    let mut object = "";
    let mut is_of_a_call = false;
    for line in text.lines() {
        if let Some(rest) = line
            .strip_prefix("ob=")
            .or_else(|| line.strip_prefix("cob="))
        {
            let (number, name) = rest.split_once(' ').unwrap_or((rest, ""));
            if !name.is_empty() {
                names.insert(number, name);
            }
            if line.starts_with("ob=") {
                object = names.get(number).copied().unwrap_or("");
            }
        } else if line.starts_with("calls=") {
            is_of_a_call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let cost = line
                .split(' ')
                .nth(1)
                .and_then(|cost| cost.parse::<f64>().ok());
            if !std::mem::take(&mut is_of_a_call) {
                *found.entry(object.to_owned()).or_default() += cost.unwrap_or(0.0);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: &str = "\
positions: line
events: Ir

ob=(1) /opt/envoy
fl=(1) ???
fn=(1) serve
0 100
cob=(2) /opt/libturnpike.so
cfi=(2) lib.rs
cfn=(2) begin
calls=3 0
0 70
+2 5

ob=(2)
fl=(2)
fn=(2)
7 40
* 2
cob=(1)
cfn=(3) malloc
calls=1 0
7 28

totals: 175
";

    #[test]
    fn a_calls_cost_is_not_that_of_its_caller() {
        let by_object = by_object(THREAD);
        let of = |name: &str| by_object.get(name).copied().unwrap_or_default();
        assert!((of("/opt/envoy") - 105.0).abs() < f64::EPSILON);
        assert!((of("/opt/libturnpike.so") - 42.0).abs() < f64::EPSILON);
    }

    #[test]
    fn threads_add_up_and_the_worker_is_the_one_that_runs_envoy() {
        let mut profile = Profile::default();
        profile.add_thread(THREAD).expect("read");
        let agent = "ob=(1) /lib/libc.so.6\n0 250\ntotals: 250\n";
        profile.add_thread(agent).expect("read");
        assert!((profile.all() - 425.0).abs() < f64::EPSILON);
        assert!((profile.worker() - 175.0).abs() < f64::EPSILON);
        assert!((profile.of_the_module() - 42.0).abs() < f64::EPSILON);
        assert!(profile.add_thread("events: Ir\n").is_err());
    }
}
