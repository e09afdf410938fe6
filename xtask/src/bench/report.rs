//! The table for the terminal, and the same as JSON.

use std::{
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{
    BenchArgs, Found,
    rounds::{CPU_US, Work},
    subjects::Subject,
};
use crate::{layout::target, steps::say};

/// A figure by its name in the rounds, with its name for people. Of which subjects a ratio is made
/// is the same for all: the module's Envoy against the bare one.
const ROWS: [(&str, &str); 6] = [
    ("requests_per_s", "requests/s"),
    ("first_p50_us", "to first byte, p50 µs"),
    ("first_p99_us", "to first byte, p99 µs"),
    ("whole_p50_us", "to the end, p50 µs"),
    ("whole_p99_us", "to the end, p99 µs"),
    (CPU_US, "Envoy's CPU, µs/request"),
];

/// Prints the table.
pub(super) fn show(args: &BenchArgs, found: &Found) {
    say(&format!(
        "\nMedians of {} rounds of {} s; ratios are made within a round: median (least–most).",
        args.rounds, args.seconds
    ));
    for work in Work::ALL {
        say(&format!("\n{}", heading(work.name())));
        for (name, shown) in ROWS {
            // A plain answer is one piece: its first bytes are its end.
            if work == Work::Streams || !name.starts_with("first") {
                say(&row(found, work, name, shown));
            }
        }
    }
    show_memory(found);
    show_instructions(found);
}

fn heading(name: &str) -> String {
    let names = Subject::ALL.map(|subject| format!("{:>15}", subject.name()));
    format!("{name:<34}{}   module / bare", names.concat())
}

fn row(found: &Found, work: Work, name: &str, shown: &str) -> String {
    let of = |subject| found.rounds.figure(work, subject, name);
    let cells = Subject::ALL.map(|subject| cell(median(&of(subject))));
    let ratio = Ratio::new(&of(Subject::Module), &of(Subject::Bare));
    let ratio = ratio.map_or_else(String::new, |ratio| ratio.to_string());
    format!("  {shown:<32}{}   {ratio}", cells.concat())
}

fn show_memory(found: &Found) {
    let Some(memory) = &found.memory else { return };
    let name = format!("memory, {} streams held", memory.streams);
    say(&format!("\n{}", heading(&name)));
    let line = |shown: &str, of: &dyn Fn(Subject) -> Option<f64>| {
        let cells = Subject::ALL.map(|subject| cell(of(subject)));
        let ratio = of(Subject::Module).zip(of(Subject::Bare));
        let ratio = ratio.map_or_else(String::new, |(module, bare)| {
            format!("{:.2}", module / bare)
        });
        say(&format!("  {shown:<32}{}   {ratio}", cells.concat()));
    };
    let rss = |subject| memory.of.get(&subject).copied();
    line("resident before, MiB", &|subject| {
        rss(subject).map(|rss| rss.before_kib / 1024.0)
    });
    line("resident per open stream, KiB", &|subject| {
        rss(subject).map(|rss| rss.per_stream_kib(memory.streams))
    });
}

fn show_instructions(found: &Found) {
    let Some(counted) = &found.counted else {
        return;
    };
    for work in super::instructions::Counted::WORK {
        let name = format!("{}: k instr.", work.word());
        say(&format!("\n{}", heading(&name)));
        let of = |subject| counted.0.get(&(work, subject)).copied();
        let line = |shown: &str, pick: &dyn Fn(super::instructions::PerRequest) -> f64| {
            let cells = Subject::ALL.map(|subject| cell(of(subject).map(pick)));
            let pair = of(Subject::Module)
                .map(pick)
                .zip(of(Subject::Bare).map(pick));
            let ratio = pair.filter(|(_, bare)| *bare > 0.0);
            let ratio =
                ratio.map_or_else(String::new, |(ours, bare)| format!("{:.2}", ours / bare));
            say(&format!("  {shown:<32}{}   {ratio}", cells.concat()));
        };
        line("all threads, with their polling", &|each| each.all_k);
        line("worker, per request", &|each| each.worker_k);
        line("  of it in libturnpike.so", &|each| each.module_k);
    }
}

fn cell(value: Option<f64>) -> String {
    let text = match value {
        None => "–".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.1}"),
    };
    format!("{text:>15}")
}

/// Of the rounds in which both were measured.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ratio {
    median: f64,
    least: f64,
    most: f64,
}

impl Ratio {
    fn new(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        let pairs = ours.iter().zip(theirs);
        let ratios: Vec<f64> = pairs
            .filter(|(_, theirs)| **theirs > 0.0)
            .map(|(ours, theirs)| ours / theirs)
            .collect();
        Some(Self {
            median: median(&ratios)?,
            least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            most: ratios.iter().copied().fold(0.0, f64::max),
        })
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            median,
            least,
            most,
        } = self;
        write!(formatter, "{median:.2} ({least:.2}–{most:.2})")
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied()?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = sorted.get(middle.checked_sub(1)?).copied()?;
    Some(f64::midpoint(lower, upper))
}

/// Writes everything, round by round, into `target/bench`.
pub(super) fn write(args: &BenchArgs, found: &Found) -> Result<()> {
    let dir = target().join("bench");
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let path = dir.join(format!("{now}.json"));
    let text = serde_json::to_string_pretty(&document(args, found, now))?;
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    say(&format!("\nEvery round is in {}", path.display()));
    Ok(())
}

fn document(args: &BenchArgs, found: &Found, unix_s: u64) -> Value {
    let rounds: Vec<Value> = found
        .rounds
        .all()
        .map(|(work, subject, figures)| {
            json!({"work": work.name(), "subject": subject.name(), "rounds": figures})
        })
        .collect();
    let memory = found.memory.as_ref().map(|memory| {
        let of = memory.of.iter().map(|(subject, rss)| {
            json!({
                "subject": subject.name(),
                "before_kib": rss.before_kib,
                "open_kib": rss.open_kib,
            })
        });
        json!({"streams": memory.streams, "of": of.collect::<Vec<_>>()})
    });
    let counted = found.counted.as_ref().map(|counted| {
        let of = counted.0.iter().map(|((work, subject), each)| {
            json!({
                "work": work.name(),
                "subject": subject.name(),
                "all_k": each.all_k,
                "worker_k": each.worker_k,
                "module_k": each.module_k,
            })
        });
        of.collect::<Vec<_>>()
    });
    json!({
        "unix_s": unix_s,
        "processors": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "seconds": args.seconds,
        "connections": args.connections,
        "rounds": rounds,
        "memory": memory,
        "thousand_instructions_per_request": counted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_made_within_its_round() {
        let ratio = Ratio::new(&[11.0, 24.0, 60.0], &[10.0, 20.0, 40.0]).expect("some");
        assert_eq!(ratio.to_string(), "1.20 (1.10–1.50)");
        assert_eq!(Ratio::new(&[1.0], &[]), None);
        assert_eq!(Ratio::new(&[1.0], &[0.0]), None);
    }

    #[test]
    fn the_median_of_two_lies_between_them() {
        assert_eq!(median(&[4.0, 2.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }
}
