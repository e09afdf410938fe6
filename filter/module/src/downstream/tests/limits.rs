//! Requests that wait at a limit's edge, and streams that a limit cuts.

use super::*;

/// The account of a test's own user, as if the agent had been granted so much for it.
fn fund(limit: &str, user: &str, granted: u64) -> (Arc<Account>, Arc<Lease>) {
    let accounts = &credit::limits().accounts;
    accounts.usable_until(u64::MAX);
    let terms = LimitTerms {
        id: limit.into(),
        kind: Kind::Credit,
        amount: 1_000_000,
        on_unavailable_allowance: None,
    };
    let account = accounts.account(&terms, &format!("red/{user}"));
    let lease = Arc::new(Lease::new(Span {
        epoch: 1,
        window_start_s: 1,
        starts_at_us: 0,
        ends_at_us: u64::MAX,
    }));
    lease.raise(granted, 0);
    account.set_current(Some(Arc::clone(&lease)));
    (account, lease)
}

fn of_user(body: &str, user: &str) -> String {
    body.replacen('{', &format!(r#"{{"user":"{user}","#), 1)
}

impl Stream {
    /// Its worker handles what other threads posted.
    fn run_posted(&mut self) -> usize {
        let wakes = self.exchange.host.take_wakes();
        for &event in &wakes {
            self.exchange.scheduled(event);
        }
        wakes.len()
    }
}

#[test]
fn a_request_at_a_limits_edge_is_held_until_there_is_credit() {
    let user = "waits";
    fund("spend", user, 1_000_000);
    let (account, lease) = fund("edge", user, 0);
    let (mut stream, flow) = Stream::arrive(10, &of_user(PLAIN, user));
    assert_eq!(flow, Flow::Held);
    assert_eq!(stream.run_posted(), 0);
    lease.raise(1, 0);
    account.wake_waiters(crate::clock::mono_us());
    assert_eq!(stream.run_posted(), 1);
    stream.pass();
    assert_eq!(stream.attempt(), "turnpike-provider-a");
    let sent = std::str::from_utf8(stream.exchange.sent_upstream()).expect("text");
    let whole = of_user(PLAIN, user).replace("\"pair\"", "\"at-a\"");
    assert_eq!(
        sent, whole,
        "nothing of the held body is lost or twice there"
    );
    stream.exchange.response_headers(&JSON_HEAD, false);
    stream.exchange.response_frame(ANSWER.as_bytes(), true);
    stream.exchange.finish();
    assert_eq!(stream.client_text(), ANSWER);
    let record = stream.record();
    let charges: Vec<_> = record
        .charges
        .iter()
        .map(|it| (&*it.limit, it.settled))
        .collect();
    assert_eq!(charges, [("edge", 1), ("spend", 1)]);
    assert_eq!((lease.available(), lease.reserved()), (0, 0));
}

#[test]
fn a_request_whose_wait_is_over_is_answered() {
    let user = "over";
    fund("spend", user, 1_000_000);
    let (account, _) = fund("edge", user, 0);
    let (mut stream, flow) = Stream::arrive(11, &of_user(PLAIN, user));
    assert_eq!(flow, Flow::Held);
    let began_us = crate::clock::mono_us();
    waiting::sweep(began_us);
    assert_eq!(stream.run_posted(), 0, "not yet");
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    waiting::sweep(crate::clock::mono_us());
    assert_eq!(stream.run_posted(), 1);
    assert_eq!(stream.exchange.client.status, Some(503));
    assert!(stream.client_text().contains("limits_unavailable"));
    assert!(!account.has_waiters());
    stream.exchange.finish();
    assert_eq!(records_of(11), 0, "it was never admitted");
}

#[test]
fn a_client_that_leaves_while_it_waits_leaves_nothing_behind() {
    let user = "leaves";
    fund("spend", user, 1_000_000);
    let (account, lease) = fund("edge", user, 0);
    let (mut stream, flow) = Stream::arrive(12, &of_user(PLAIN, user));
    assert_eq!(flow, Flow::Held);
    assert!(account.has_waiters());
    lease.raise(1, 0);
    account.wake_waiters(crate::clock::mono_us());
    stream.exchange.client_abort();
    assert!(!account.has_waiters());
    assert_eq!((lease.available(), lease.reserved()), (1, 0));
    assert_eq!(records_of(12), 0);
}

#[test]
fn a_stream_that_outgrows_its_limit_is_closed_in_the_clients_dialect() {
    let user = "cut";
    fund("edge", user, 10);
    // The first estimate, and nothing to extend it by.
    let (_, lease) = fund("spend", user, 1_024);
    let mut stream = Stream::begin(13, &of_user(STREAM, user));
    stream.attempt();
    stream.exchange.response_headers(&STREAM_HEAD, false);
    let long = "x".repeat(1_024);
    let event = format!(r#"data: {{"choices":[{{"index":0,"delta":{{"content":"{long}"}}}}]}}"#);
    let event = format!("{event}\n\n");
    let mut frames = 0;
    while stream.run_posted() == 0 {
        stream.exchange.response_frame(event.as_bytes(), false);
        frames += 1;
        assert!(frames < 10, "it is never cut");
    }
    assert_eq!(frames, 4, "256 tokens each");
    assert!(stream.exchange.client.ended && !stream.exchange.client.cut);
    let text = stream.client_text();
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert!(text.contains(r#""finish_reason":"length""#));
    stream.exchange.finish();
    let record = stream.record();
    assert_eq!(
        (record.end(), record.finish.as_str()),
        (End::Complete, "length")
    );
    assert_eq!(record.error_code, "limit_cut");
    assert_eq!((lease.available(), lease.reserved()), (0, 0));
}

/// Records in a shard that has none or some.
fn records_of(shard: u32) -> usize {
    let limit = BatchLimit {
        bytes: 1 << 20,
        records: 10,
    };
    match NODE.0.reader(shard).read(limit).expect("a spool") {
        Some(Read::Records { records, .. }) => records.len(),
        _ => 0,
    }
}
