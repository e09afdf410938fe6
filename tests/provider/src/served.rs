//! What was served: the ground truth that a usage ledger is compared with.

use std::{
    collections::{HashMap, VecDeque},
    fs::File,
    io::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use crate::{script::Script, tokens::Tokens};

/// Entries kept before the oldest are forgotten.
const KEPT: usize = 200_000;

/// How a request ended, as the provider saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It is still being read or answered.
    #[default]
    Open,
    /// The whole answer was handed to the socket while the client was still there.
    Complete,
    /// The client closed before the answer was out.
    ClientClosed,
    /// The script broke the connection.
    Cut,
    /// Only headers, or a part of the body, came before the client closed.
    RequestIncomplete,
}

/// One request that reached the provider: one attempt of the gateway.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Served {
    /// Counts up from 1 over all faces.
    pub seq: u64,
    /// The `<name>` of a path that began with `/face/<name>`, else empty.
    pub face: String,
    /// `x-request-id`, empty if there was none.
    pub request_id: String,
    /// How many requests with this id came so far, over all faces; 1 for the first.
    pub attempt: u64,
    /// Unix time in microseconds at which the head was read.
    pub received_at_us: u64,
    /// Unix time in microseconds; 0 while open.
    pub ended_at_us: u64,
    pub ended: Ended,
    pub method: String,
    /// As received, with a `key` parameter masked.
    pub target: String,
    /// In order, names in lower case, credentials masked as `sha256:<12 hex digits>`.
    pub headers: Vec<(String, String)>,
    /// False: the client left before its body was whole.
    pub body_complete: bool,
    pub body_bytes: u64,
    pub body_sha256: String,
    /// Kept with `--keep-bodies` only.
    pub body: Option<String>,
    pub model: String,
    pub stream: bool,
    pub include_usage: bool,
    pub script: Option<Script>,
    /// 0: nothing was answered.
    pub status: u16,
    /// What the answer costs as a whole; absent for errors.
    pub tokens: Option<Tokens>,
    /// The last usage object that went out whole: what a reader of the bytes can know.
    pub usage_sent: Option<Tokens>,
    pub events_sent: u64,
    pub bytes_sent: u64,
}

impl Served {
    /// The first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }
}

/// Unix time in microseconds.
pub fn now_us() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// All entries, newest last.
#[derive(Debug)]
pub struct Log {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last_seq: u64,
    entries: VecDeque<Served>,
    attempts: HashMap<String, u64>,
    file: Option<File>,
}

impl Log {
    /// An empty log that appends each ended entry to `file`, if there is one.
    pub fn new(file: Option<File>) -> Self {
        Self {
            inner: Mutex::new(Inner {
                file,
                ..Inner::default()
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens an entry: gives it its number and its attempt, which are set in what is returned.
    pub fn begin(&self, mut served: Served) -> Served {
        let mut inner = self.lock();
        inner.last_seq += 1;
        served.seq = inner.last_seq;
        served.attempt = 1;
        if !served.request_id.is_empty() {
            let count = inner.attempts.entry(served.request_id.clone()).or_default();
            *count += 1;
            served.attempt = *count;
        }
        if inner.entries.len() >= KEPT
            && let Some(old) = inner.entries.pop_front()
        {
            inner.attempts.remove(&old.request_id);
        }
        inner.entries.push_back(served.clone());
        served
    }

    /// Puts `served` in the place of its entry, unless that was forgotten meanwhile.
    pub fn update(&self, served: &Served) {
        let mut inner = self.lock();
        if served.ended != Ended::Open
            && let Some(file) = &mut inner.file
            && let Ok(line) = serde_json::to_string(served)
        {
            // A full disk must not stop the provider; the entry stays readable over HTTP.
            drop(writeln!(file, "{line}"));
        }
        let at = inner
            .entries
            .binary_search_by_key(&served.seq, |entry| entry.seq);
        if let Some(entry) = at.ok().and_then(|at| inner.entries.get_mut(at)) {
            entry.clone_from(served);
        }
    }

    /// Entries with a number above `since`, open ones among them, as JSON lines.
    pub fn lines(&self, since: u64) -> String {
        let inner = self.lock();
        let wanted = inner.entries.iter().filter(|entry| entry.seq > since);
        wanted
            .filter_map(|entry| serde_json::to_string(entry).ok())
            .map(|line| line + "\n")
            .collect()
    }

    /// Entries still open.
    pub fn open(&self) -> usize {
        self.lock()
            .entries
            .iter()
            .filter(|entry| entry.ended == Ended::Open)
            .count()
    }

    /// Forgets all entries and attempts; numbers go on.
    pub fn clear(&self) {
        let mut inner = self.lock();
        inner.entries.clear();
        inner.attempts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: &str) -> Served {
        Served {
            request_id: id.to_owned(),
            ..Served::default()
        }
    }

    #[test]
    fn attempts_are_counted_by_request_id() {
        let log = Log::new(None);
        let attempts: Vec<u64> = ["a", "b", "a", "", "a"]
            .map(|id| log.begin(request(id)).attempt)
            .to_vec();
        assert_eq!(attempts, [1, 1, 2, 1, 3]);
    }

    #[test]
    fn what_was_forgotten_stays_forgotten_and_numbers_go_on() {
        let log = Log::new(None);
        let mut first = log.begin(request("a"));
        log.clear();
        first.ended = Ended::Complete;
        log.update(&first);
        assert_eq!(log.lines(0), "");
        assert_eq!(log.begin(request("a")).seq, 2);
    }

    #[test]
    fn since_gives_the_later_ones_as_json_lines() {
        let log = Log::new(None);
        for id in ["a", "b", "c"] {
            log.begin(request(id));
        }
        assert_eq!(log.open(), 3);
        let lines = log.lines(1);
        let ids: Vec<String> = lines
            .lines()
            .map(|line| {
                serde_json::from_str::<Served>(line)
                    .expect("an entry")
                    .request_id
            })
            .collect();
        assert_eq!(ids, ["b", "c"]);
    }
}
