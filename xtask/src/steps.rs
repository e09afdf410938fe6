//! Steps with their times, as they are shown to the person who waits.

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use anyhow::Result;

/// Runs steps one after the other and remembers how long each took.
#[derive(Debug)]
pub struct Steps {
    start: Instant,
    done: Vec<(String, Duration)>,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            done: Vec::new(),
        }
    }
}

impl Steps {
    /// Runs one step; says its name before and its time after.
    pub fn run<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        say(&format!("» {name}"));
        let start = Instant::now();
        let result = work();
        let took = start.elapsed();
        let mark = if result.is_ok() { "✓" } else { "✗" };
        say(&format!("{mark} {name}: {}", seconds(took)));
        self.done.push((name.to_owned(), took));
        result
    }

    /// Says where the time went.
    pub fn summary(&self) {
        let all = self.start.elapsed();
        say(&format!("\nTime: {}", seconds(all)));
        for (name, took) in &self.done {
            say(&format!("  {:>9}  {name}", seconds(*took)));
        }
    }
}

/// One line on standard output. A closed pipe is nobody's loss.
pub fn say(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
