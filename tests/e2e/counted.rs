//! Every attempt that reached the provider is in exactly one record, over two Envoys and whatever
//! clients and providers do.

use std::{collections::BTreeMap, thread, time::Duration};

use proto::metering::v1::{End, UsageSource, Verdict};
use serde_json::{Value, json};
use tests::{
    http::Request,
    ledger::Stored,
    stack::{Options, Stack},
    truth::Served,
    wait,
};

const PER_CLASS: usize = 100;
const CLIENTS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Plain,
    Stream,
    AbortBeforeHeaders,
    AbortMidStream,
    ProviderCut,
    Provider500,
}

const CLASSES: [Class; 6] = [
    Class::Plain,
    Class::Stream,
    Class::AbortBeforeHeaders,
    Class::AbortMidStream,
    Class::ProviderCut,
    Class::Provider500,
];

impl Class {
    /// From the request id, which begins with the class's place.
    fn of(request_id: &str) -> Self {
        let at = request_id
            .split('-')
            .next()
            .and_then(|at| at.parse::<usize>().ok());
        *at.and_then(|at| CLASSES.get(at))
            .expect("a request id of ours")
    }

    fn script(self) -> Value {
        match self {
            Self::Plain | Self::Stream => json!({}),
            Self::AbortBeforeHeaders => json!({"delay_ms": 400}),
            Self::AbortMidStream => json!({"chunk_delay_ms": 40, "chunks": 20}),
            Self::ProviderCut => json!({"cut_after_chunks": 4, "chunk_delay_ms": 2}),
            Self::Provider500 => json!({"status": 500}),
        }
    }

    fn streams(self) -> bool {
        matches!(
            self,
            Self::Stream | Self::AbortMidStream | Self::ProviderCut
        )
    }
}

/// One request of a class, to its end.
fn play(class: Class, id: &str, key: &str, port: u16) {
    let body = json!({
        "model": "small", "stream": class.streams(),
        "messages": [{"role": "user", "content": format!("request {id}")}],
    });
    let request = Request::chat(key, &body)
        .header("x-request-id", id)
        .script(&class.script());
    match class {
        Class::AbortBeforeHeaders => {
            let open = request.open(port).expect("sent");
            // Long enough to reach the provider, which answers after 400 ms.
            thread::sleep(Duration::from_millis(120));
            open.abort();
        }
        Class::AbortMidStream => {
            let mut open = request.open(port).expect("sent");
            open.read_until(|seen| seen.windows(9).any(|window| window == b"\"content\""))
                .expect("content");
            open.abort();
        }
        Class::Plain | Class::Stream | Class::ProviderCut | Class::Provider500 => {
            let answer = request.send(port).expect("an answer");
            let expected = if class == Class::Provider500 {
                500
            } else {
                200
            };
            assert_eq!(answer.status, expected, "{id}: {}", answer.text());
            assert_eq!(answer.complete, class != Class::ProviderCut, "{id}");
        }
    }
}

/// What differs between the truth and the ledger, in words.
fn differences(served: &[Served], records: &[Stored]) -> Vec<String> {
    let mut by_id: BTreeMap<&str, Vec<&Stored>> = BTreeMap::new();
    for stored in records {
        by_id
            .entry(&stored.record.request_id)
            .or_default()
            .push(stored);
    }
    let mut found = Vec::new();
    for attempt in served {
        let id = attempt.request_id.as_str();
        match by_id.get(id).map(Vec::as_slice) {
            Some([stored]) => found.extend(compare(attempt, stored)),
            Some(several) => found.push(format!("{id} is in {} records", several.len())),
            None => found.push(format!("{id} is in no record")),
        }
    }
    found
}

fn compare(served: &Served, stored: &Stored) -> Option<String> {
    let id = &served.request_id;
    let record = &stored.record;
    let [attempt] = record.attempts.as_slice() else {
        return Some(format!("{id} has {} attempts", record.attempts.len()));
    };
    let usage = attempt.usage.clone().unwrap_or_default();
    let told = (
        usage.input,
        usage.cached_input,
        usage.output,
        usage.reasoning,
    );
    let truth = &served.tokens;
    let drawn = (
        truth.input,
        truth.cached_input,
        truth.output,
        truth.reasoning,
    );
    let seen = (record.end(), attempt.verdict(), usage.source());
    let right = match Class::of(id) {
        Class::Plain | Class::Stream => {
            told == drawn && seen == (End::Complete, Verdict::Billed, UsageSource::Reported)
        }
        Class::AbortBeforeHeaders | Class::AbortMidStream => {
            seen == (End::ClientGone, Verdict::Unknown, UsageSource::Estimated) && usage.input > 0
        }
        Class::ProviderCut => {
            seen == (End::ProviderCut, Verdict::Unknown, UsageSource::Estimated) && usage.output > 0
        }
        Class::Provider500 => {
            attempt.status == 500 && seen.1 == Verdict::NotBilled && told == (0, 0, 0, 0)
        }
    };
    (!right).then(|| format!("{id}: {seen:?} with {told:?}, the provider drew {drawn:?}"))
}

#[test]
fn every_attempt_that_reached_the_provider_is_in_exactly_one_record() {
    let stack = Stack::start(&Options {
        envoys: 2,
        concurrency: 2,
        ..Options::default()
    });
    let key = stack.key("counted");
    let ports: Vec<u16> = stack
        .envoys
        .iter()
        .map(|envoy| envoy.gateway_port)
        .collect();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (key, ports) = (&key, &ports);
            scope.spawn(move || {
                for at in (0..PER_CLASS * CLASSES.len()).filter(|at| at % CLIENTS == client) {
                    let place = at % CLASSES.len();
                    let class = *CLASSES.get(place).expect("a class");
                    let port = *ports.get(at / CLASSES.len() % ports.len()).expect("a port");
                    play(class, &format!("{place}-{at}"), key, port);
                }
            });
        }
    });
    let served = stack.served();
    assert!(
        served.len() >= PER_CLASS * 5,
        "only {} reached the provider",
        served.len()
    );
    for class in CLASSES {
        let count = served
            .iter()
            .filter(|served| Class::of(&served.request_id) == class)
            .count();
        assert!(
            count >= 80,
            "only {count} of {class:?} reached the provider"
        );
    }
    let mut last = Vec::new();
    let mut records = wait::until(
        Duration::from_secs(5),
        "the ledger equals the truth",
        || {
            let records = stack.records();
            last = differences(&stack.served(), &records);
            last.is_empty().then_some(records)
        },
    );
    assert_eq!(last, Vec::<String>::new());

    let billed = records
        .iter_mut()
        .filter(|stored| Class::of(&stored.record.request_id) == Class::Plain)
        .find_map(|stored| stored.record.attempts.first_mut()?.usage.as_mut());
    billed.expect("a billed attempt").output += 1;
    assert_eq!(
        differences(&stack.served(), &records).len(),
        1,
        "the tampering is found"
    );
}
