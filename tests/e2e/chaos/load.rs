//! Clients of every kind, for as long as it takes.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tests::http::{Open, Request};

use super::schedule::Dice;

/// How a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Plain,
    Stream,
    AbortBeforeHeaders,
    AbortMidStream,
    ProviderCut,
    Provider500,
    /// The first target fails, the second answers.
    Retry,
}

const CLASSES: [Class; 7] = [
    Class::Plain,
    Class::Stream,
    Class::AbortBeforeHeaders,
    Class::AbortMidStream,
    Class::ProviderCut,
    Class::Provider500,
    Class::Retry,
];

impl Class {
    /// From the request id, which begins with the class's place.
    pub(crate) fn of(request_id: &str) -> Self {
        let place = request_id.split('-').next();
        let class = place.and_then(|place| CLASSES.get(place.parse::<usize>().ok()?));
        *class.unwrap_or_else(|| panic!("{request_id} is none of ours"))
    }

    /// The client does not wait for the answer.
    pub(crate) fn leaves_early(self) -> bool {
        matches!(self, Self::AbortBeforeHeaders | Self::AbortMidStream)
    }

    fn script(self) -> Value {
        match self {
            Self::Plain => json!({"delay_ms": 20}),
            Self::Stream => json!({"chunk_delay_ms": 30, "chunks": 10}),
            Self::AbortBeforeHeaders => json!({"delay_ms": 300}),
            Self::AbortMidStream => json!({"chunk_delay_ms": 40, "chunks": 20}),
            Self::ProviderCut => json!({"cut_after_chunks": 4, "chunk_delay_ms": 10}),
            Self::Provider500 => json!({"status": 500}),
            Self::Retry => json!([{"status": 503}, {"delay_ms": 20}]),
        }
    }

    fn streams(self) -> bool {
        matches!(
            self,
            Self::Stream | Self::AbortMidStream | Self::ProviderCut
        )
    }

    fn request(self, key: &str, id: &str) -> Request {
        let model = if self == Self::Retry { "pair" } else { "small" };
        let body = json!({
            "model": model, "stream": self.streams(), "max_tokens": 1_000,
            "messages": [{"role": "user", "content": format!("request {id}")}],
        });
        Request::chat(key, &body)
            .header("x-request-id", id)
            .script(&self.script())
    }

    /// Sees a request to its end; what went wrong, in words.
    fn follow(self, mut open: Open) -> Result<(), String> {
        let in_words = |error: anyhow::Error| format!("{error:#}");
        match self {
            Self::AbortBeforeHeaders => {
                thread::sleep(Duration::from_millis(100));
                open.abort();
                return Ok(());
            }
            Self::AbortMidStream => {
                let has = |seen: &[u8], what: &[u8]| seen.windows(what.len()).any(|at| at == what);
                // An error has no content, and may leave the connection open.
                let enough = |seen: &[u8]| has(seen, b"\"content\"") || has(seen, b"\"error\"");
                let seen = open.read_until(enough).map_err(in_words)?;
                let is_answer = seen.starts_with(b"HTTP/1.1 200 ");
                let said = String::from_utf8_lossy(seen).into_owned();
                open.abort();
                return if is_answer { Ok(()) } else { Err(said) };
            }
            _ => {}
        }
        let answer = open.finish().map_err(in_words)?;
        let (status, is_complete) = match self {
            Self::Provider500 => (500, true),
            Self::ProviderCut => (200, false),
            _ => (200, true),
        };
        if (answer.status, answer.complete) == (status, is_complete) {
            return Ok(());
        }
        Err(format!(
            "{} complete={}: {}",
            answer.status,
            answer.complete,
            answer.text()
        ))
    }
}

/// A client that did not get what its request asks for.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) request_id: String,
    pub(crate) envoy: usize,
    pub(crate) at: Instant,
    /// Shown when it is not explained.
    #[expect(dead_code, reason = "for Debug")]
    pub(crate) what: String,
}

/// What all clients share.
#[derive(Debug)]
pub(crate) struct Load {
    seed: u64,
    key: String,
    ports: Vec<u16>,
    is_over: AtomicBool,
    sent: AtomicUsize,
    failures: Mutex<Vec<Failure>>,
}

impl Load {
    pub(crate) fn new(seed: u64, key: String, ports: Vec<u16>) -> Self {
        Self {
            seed,
            key,
            ports,
            is_over: AtomicBool::new(false),
            sent: AtomicUsize::new(0),
            failures: Mutex::default(),
        }
    }

    pub(crate) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn failures(&self) -> Vec<Failure> {
        self.failures.lock().expect("no client panics").clone()
    }

    /// One client, until [`Self::stop`].
    pub(crate) fn run(&self, client: usize) {
        let salt = u64::try_from(client).unwrap_or(0);
        let mut dice = Dice::new(self.seed ^ (salt << 32));
        let mut draw = |bound: usize| {
            usize::try_from(dice.below(u64::try_from(bound).unwrap_or(1))).unwrap_or(0)
        };
        for turn in 0.. {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let place = draw(CLASSES.len());
            let class = *CLASSES.get(place).expect("a class");
            let Some(envoy) = self.reachable(draw(self.ports.len())) else {
                // Nobody has the request yet: a balancer waits too.
                thread::sleep(Duration::from_millis(20));
                continue;
            };
            let id = format!("{place}-{client}-{turn}");
            let port = *self.ports.get(envoy).expect("a port");
            let request = class.request(&self.key, &id);
            self.sent.fetch_add(1, Ordering::Relaxed);
            let opened = request.open(port).map_err(|error| format!("{error:#}"));
            if let Err(what) = opened.and_then(|open| class.follow(open)) {
                let failure = Failure {
                    request_id: id,
                    envoy,
                    at: Instant::now(),
                    what,
                };
                self.failures
                    .lock()
                    .expect("no client panics")
                    .push(failure);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The first Envoy from `first` on that takes connections, as a balancer finds it.
    fn reachable(&self, first: usize) -> Option<usize> {
        let envoys = self.ports.iter().enumerate();
        let mut in_turn = envoys.cycle().skip(first).take(self.ports.len());
        in_turn.find_map(|(envoy, port)| {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
            let connected = TcpStream::connect_timeout(&address, Duration::from_millis(500));
            connected.is_ok().then_some(envoy)
        })
    }
}
