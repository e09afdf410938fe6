//! What a session says, against a control plane of a few lines.

mod lossy;
mod server;

use std::sync::atomic::{AtomicUsize, Ordering};

use filter_core::credit::{
    Cause, Kind, LimitTerms, Mode, Need, Refusal, Reservation, Wake, reserve,
};
use proto::metering::v1::{
    BucketKey, Close, Deny, DenyKind, Fenced, Grant, RecalledBucket, Unavailable,
};

use self::server::Server;
use super::*;

const SECOND: u64 = 1_000_000;

#[derive(Debug, Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A session with its accounts, on a stream to a server that answers at once.
struct Node {
    accounts: Arc<Accounts>,
    session: Session,
    now_us: u64,
}

impl Node {
    fn new() -> Self {
        let accounts = Arc::new(Accounts::new());
        let session = Session::new(BootId([7; 16]), "node", Arc::clone(&accounts));
        Self {
            accounts,
            session,
            now_us: SECOND,
        }
    }

    fn connected(server: &mut Server) -> Self {
        let mut node = Self::new();
        node.session.connected();
        node.talk(server);
        node
    }

    fn account(&self, limit: &str, kind: Kind) -> Arc<Account> {
        let terms = LimitTerms {
            id: limit.into(),
            kind,
            amount: 1_000,
            on_unavailable_allowance: None,
        };
        self.accounts.account(&terms, "key")
    }

    fn credit(&self) -> Arc<Account> {
        self.account("day", Kind::Credit)
    }

    /// All that the session has to say now.
    fn says(&mut self) -> Vec<lease_up::Message> {
        let next = || self.session.next_up(self.now_us, 11);
        let said = std::iter::from_fn(next).filter_map(|up| up.message);
        said.take(100).collect()
    }

    /// Exchanges messages until nobody has more to say; gives what the session said.
    fn talk(&mut self, server: &mut Server) -> Vec<lease_up::Message> {
        let mut said = Vec::new();
        loop {
            let messages = self.says();
            if messages.is_empty() {
                return said;
            }
            for message in messages {
                for down in server.take(message.clone()) {
                    self.hears(down);
                }
                said.push(message);
            }
            assert!(
                said.len() < 1_000,
                "they don't come to an end: {:?}",
                said.last()
            );
        }
    }

    fn hears(&mut self, message: lease_down::Message) {
        let message = Some(message);
        self.session.on_down(LeaseDown { message }, self.now_us);
    }

    /// Lets time pass, a second at a time, and the session talk; gives what it said.
    fn passes(&mut self, seconds: u64, server: &mut Server) -> Vec<lease_up::Message> {
        let mut said = Vec::new();
        for _ in 0..seconds {
            self.now_us += SECOND;
            server.now_us += SECOND;
            said.extend(self.talk(server));
        }
        said
    }

    fn take(&self, account: &Arc<Account>, amount: u64) -> Result<Reservation, Cause> {
        let need = Need {
            account: Arc::clone(account),
            amount,
            mode: Mode::Must,
        };
        reserve(&[need], self.now_us).map_err(|shortage| shortage.cause)
    }

    /// Reserves, asking the server if need be.
    fn gets(&mut self, account: &Arc<Account>, amount: u64, server: &mut Server) -> Reservation {
        self.take(account, amount).unwrap_or_else(|cause| {
            assert_eq!(cause, Cause::Lacking);
            self.talk(server);
            self.take(account, amount).unwrap()
        })
    }
}

fn wants(said: &[lease_up::Message]) -> Vec<Want> {
    let wants = said.iter().filter_map(|message| match message {
        lease_up::Message::Wants(wants) => Some(wants.wants.clone()),
        _ => None,
    });
    wants.flatten().collect()
}

fn asks(said: &[lease_up::Message]) -> Vec<Want> {
    let mut wants = wants(said);
    wants.retain(|want| want.min_useful > 0);
    wants
}

fn closes(said: &[lease_up::Message]) -> Vec<Close> {
    let closes = said.iter().filter_map(|message| match message {
        lease_up::Message::Close(close) => Some(close.clone()),
        _ => None,
    });
    closes.collect()
}

fn bucket(window_start_s: i64) -> BucketKey {
    BucketKey {
        limit: "day".to_owned(),
        subject: "key".to_owned(),
        window_start_s,
    }
}

fn settle(reservation: Reservation, used: u64, server: &mut Server) {
    reservation
        .settle(&mut |_| used)
        .for_each(|charged| server.charge(&charged));
}

fn wait(account: &Arc<Account>, need: u64) -> (filter_core::credit::Waiting, Arc<Bell>) {
    let bell = Arc::new(Bell::default());
    let waiting = account.wait(need, Arc::clone(&bell) as Arc<dyn Wake>);
    (waiting.unwrap(), bell)
}

#[test]
fn the_first_word_is_hello_and_nothing_follows_until_it_is_answered() {
    let mut node = Node::new();
    let account = node.credit();
    assert_eq!(node.take(&account, 5).unwrap_err(), Cause::Unavailable);
    assert!(node.says().is_empty(), "there is no stream");
    node.session.connected();
    let said = node.says();
    assert!(matches!(&said[..], [lease_up::Message::Hello(hello)] if hello.epoch == 0));
    let mut server = Server::new(100);
    for down in server.take(said[0].clone()) {
        node.hears(down);
    }
    assert_eq!(
        asks(&node.says())[0].min_useful,
        5,
        "what was missed before is not forgotten"
    );
}

#[test]
fn a_miss_is_asked_for_and_who_waits_is_woken_with_something_to_reserve() {
    let mut server = Server::new(1_000);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    assert_eq!(node.take(&account, 5).unwrap_err(), Cause::Lacking);
    let (waiting, bell) = wait(&account, 5);
    let said = node.talk(&mut server);
    let want = &asks(&said)[0];
    assert_eq!(
        (want.min_useful, want.urgent, want.granted_total),
        (5, true, 40)
    );
    assert_eq!(want.bucket, Some(bucket(-1)));
    assert_eq!(bell.0.load(Ordering::SeqCst), 1);
    settle(node.take(&account, 5).unwrap(), 5, &mut server);
    drop(waiting);
    assert!(asks(&node.talk(&mut server)).is_empty());
}

#[test]
fn a_busy_account_asks_ahead_of_its_use_and_never_misses() {
    let mut server = Server::new(1 << 40);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    let mut misses = 0;
    for _ in 0..60 {
        for _ in 0..20 {
            let got = node.take(&account, 10);
            misses += u32::from(got.is_err());
            settle(
                got.unwrap_or_else(|_| node.gets(&account, 10, &mut server)),
                10,
                &mut server,
            );
            node.talk(&mut server);
        }
        node.passes(1, &mut server);
    }
    assert!(misses <= 2, "{misses}");
    let lease = account.current().unwrap();
    assert!(
        (2_000..30_000).contains(&lease.available()),
        "half a minute's use: {lease:?}"
    );
}

#[test]
fn grants_that_come_twice_late_or_of_another_epoch_add_nothing() {
    let mut server = Server::new(1_000);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    let _held = node.gets(&account, 5, &mut server);
    let lease = account.current().unwrap();
    let (granted, available) = (lease.granted(), lease.available());
    for (total, epoch) in [(granted, 1), (granted / 2, 1), (900, 2)] {
        let grant = Grant {
            bucket: Some(bucket(server.window())),
            granted_total: total,
            ..Grant::default()
        };
        let grants = vec![grant];
        node.hears(lease_down::Message::Grants(Grants {
            grants,
            epoch,
            ..Grants::default()
        }));
    }
    assert_eq!((lease.granted(), lease.available()), (granted, available));
}

#[test]
fn a_refusal_is_the_answer_to_who_waits_and_is_not_asked_about_again_before_its_time() {
    let mut server = Server::new(10);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    assert_eq!(node.take(&account, 11).unwrap_err(), Cause::Lacking);
    let (waiting, bell) = wait(&account, 11);
    node.talk(&mut server);
    assert_eq!(bell.0.load(Ordering::SeqCst), 1);
    let refused = node.take(&account, 11).unwrap_err();
    assert!(matches!(
        refused,
        Cause::Refused {
            kind: Refusal::Spent,
            ..
        }
    ));
    drop(waiting);
    assert!(asks(&node.passes(9, &mut server)).is_empty());
    settle(node.gets(&account, 10, &mut server), 10, &mut server);
}

#[test]
fn a_recall_takes_idle_credit_out_of_use_before_it_says_so() {
    let mut server = Server::new(1_000);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    let _held = node.gets(&account, 5, &mut server);
    let lease = account.current().unwrap();
    let idle = lease.available().unsigned_abs();
    let recalled = RecalledBucket {
        bucket: Some(bucket(server.window())),
        keep: 3,
    };
    let recall = lease_down::Message::Recall(Recall {
        buckets: vec![recalled],
    });
    node.hears(recall.clone());
    assert_eq!(
        lease.available(),
        3,
        "nobody can take it while the message is on its way"
    );
    node.hears(recall);
    let said = wants(&node.says());
    assert_eq!(
        (said.len(), said[0].returned_total, said[0].min_useful),
        (1, idle - 3, 0)
    );
}

// R7
#[test]
fn a_fence_voids_all_credit_and_the_epoch_is_closed_when_nothing_is_reserved_on_it() {
    let mut server = Server::new(100);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    let held = node.gets(&account, 30, &mut server);
    let old = account.current().unwrap();
    let fenced = lease_down::Message::Fenced(Fenced {
        epoch: server.fence(),
    });
    node.hears(fenced.clone());
    node.hears(fenced);
    assert_eq!(node.take(&account, 1).unwrap_err(), Cause::Lacking);
    let said = node.passes(10, &mut server);
    assert!(closes(&said).is_empty(), "something is reserved");
    assert!(matches!(&said[0], lease_up::Message::Wants(wants) if wants.epoch == 2));
    settle(held, 20, &mut server);
    assert_eq!(account.current().map_or(0, |new| new.available()).max(0), 0);
    node.session.observe(
        0,
        vec![ShardEnd {
            shard: 0,
            last_seq: 9,
        }],
    );
    assert!(
        closes(&node.talk(&mut server)).is_empty(),
        "its record may not be in the spool yet"
    );
    let closes = closes(&node.passes(2, &mut server));
    assert_eq!(
        (closes.len(), closes[0].epoch, closes[0].shards[0].last_seq),
        (1, 1, 9)
    );
    let holding = &closes[0].holdings[0];
    assert_eq!(holding.returned_total, old.granted() - 20);
    assert_eq!(server.consumed(), 20);
    settle(node.gets(&account, 80, &mut server), 80, &mut server);
    assert_eq!(server.consumed(), 100);
}

#[test]
fn a_close_is_said_once_on_each_stream_since_it_may_be_lost_with_one() {
    let mut server = Server::new(100);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    drop(node.gets(&account, 30, &mut server));
    let epoch = server.fence();
    node.hears(lease_down::Message::Fenced(Fenced { epoch }));
    node.says();
    node.now_us += 2 * SECOND;
    assert_eq!(closes(&node.says()).len(), 1, "and it is lost");
    for _ in 0..2 {
        node.session.connected();
        let mut said = node.talk(&mut server);
        said.extend(node.passes(12, &mut server));
        assert_eq!(closes(&said).len(), 1);
        assert_eq!(server.outstanding(), 0);
    }
}

#[test]
fn the_next_window_is_asked_for_ahead_at_various_moments_and_used_when_it_begins() {
    let mut server = Server::new(1_000);
    server.window_s = 100;
    let mut node = Node::connected(&mut server);
    let accounts: Vec<_> = ["a", "b", "c", "d", "e", "f"]
        .map(|limit| node.account(limit, Kind::Credit))
        .to_vec();
    let mut moments = BTreeSet::new();
    for at_s in 1..100 {
        for account in &accounts {
            settle(node.gets(account, 1, &mut server), 1, &mut server);
        }
        let said = node.passes(1, &mut server);
        if wants(&said).iter().any(|want| want.next_window) {
            assert!((69..=95).contains(&at_s), "{at_s}");
            moments.insert(at_s);
        }
    }
    assert!(moments.len() > 2, "at once: {moments:?}");
    let first = server.window();
    node.passes(1, &mut server);
    assert_ne!(server.window(), first);
    for account in &accounts {
        assert!(node.take(account, 1).is_ok(), "without asking");
        node.talk(&mut server);
        assert_eq!(
            account.current().unwrap().span().window_start_s,
            server.window()
        );
    }
    let said = node.passes(40, &mut server);
    let old = wants(&said).into_iter().filter(|want| {
        want.bucket
            .as_ref()
            .is_some_and(|bucket| bucket.window_start_s == first)
    });
    assert_eq!(
        old.count(),
        accounts.len(),
        "what was left of the old window is returned, once"
    );
}

#[test]
fn credit_is_usable_for_the_ttl_after_a_beat_that_was_answered() {
    let mut server = Server::new(1_000);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    drop(node.gets(&account, 5, &mut server));
    // Answered at 1 s by the Welcome; the beat of 6 s by nothing but the store's absence.
    node.now_us = 6 * SECOND;
    assert!(matches!(&node.says()[..], [lease_up::Message::Beat(beat)] if beat.epoch == 1));
    node.hears(lease_down::Message::Unavailable(Unavailable::default()));
    node.now_us = 16 * SECOND - 1;
    assert!(node.take(&account, 5).is_ok());
    node.now_us += 1;
    assert_eq!(node.take(&account, 5).unwrap_err(), Cause::Unavailable);
    node.now_us = 17 * SECOND;
    node.hears(lease_down::Message::Grants(Grants::default()));
    assert!(node.take(&account, 5).is_ok(), "the beat of 6 s");
    node.session.disconnected();
    node.now_us = 21 * SECOND - 1;
    assert!(node.take(&account, 5).is_ok());
    node.now_us += 1;
    assert_eq!(node.take(&account, 5).unwrap_err(), Cause::Unavailable);
}

#[test]
fn while_there_is_no_stream_those_who_wait_are_still_woken_by_what_comes_back() {
    let mut server = Server::new(10);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    let held = node.gets(&account, 10, &mut server);
    node.session.disconnected();
    assert_eq!(node.take(&account, 10).unwrap_err(), Cause::Lacking);
    let (_waiting, bell) = wait(&account, 10);
    assert!(node.says().is_empty());
    drop(held);
    assert!(node.says().is_empty());
    assert_eq!(bell.0.load(Ordering::SeqCst), 1);
}

#[test]
fn a_hello_says_what_is_held() {
    let mut server = Server::new(1_000);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    let _held = node.gets(&account, 5, &mut server);
    node.session.connected();
    let said = node.says();
    let [lease_up::Message::Hello(hello)] = &said[..] else {
        panic!("{said:?}");
    };
    let holding = &hello.holdings[0];
    assert_eq!(
        (hello.epoch, hello.lineage.as_str(), hello.draining),
        (1, "lineage", false)
    );
    assert_eq!(holding.bucket, Some(bucket(server.window())));
    assert_eq!((holding.granted_total, holding.reserved), (40, 5));
}

#[test]
fn a_lease_that_nobody_remembers_is_given_back() {
    let mut server = Server::new(1_000);
    let mut node = Node::connected(&mut server);
    let grant = Grant {
        bucket: Some(bucket(server.window())),
        granted_total: 70,
        returned_total: 20,
        ..Grant::default()
    };
    let grants = vec![grant];
    node.hears(lease_down::Message::Grants(Grants {
        grants,
        epoch: 1,
        ..Grants::default()
    }));
    assert_eq!(wants(&node.says())[0].returned_total, 70);
}

// R18
#[test]
fn a_draining_process_asks_for_no_more_than_what_a_request_lacks_and_returns_the_rest() {
    let mut server = Server::new(1_000);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    let held = node.gets(&account, 5, &mut server);
    let lease = account.current().unwrap();
    assert_eq!(lease.available(), 35);
    node.session.drain();
    node.talk(&mut server);
    assert_eq!(lease.available(), 5, "as much as is reserved, to extend it");
    assert_eq!(server.outstanding(), 10);
    assert_eq!(node.take(&account, 20).unwrap_err(), Cause::Lacking);
    let (waiting, _) = wait(&account, 20);
    let want = &asks(&node.says())[0];
    assert_eq!(
        (want.min_useful, want.granted_total - lease.granted()),
        (15, 15)
    );
    drop(waiting);
    drop(held);
    node.session.connected();
    let said = node.says();
    assert!(matches!(&said[..], [lease_up::Message::Hello(hello)] if hello.draining));
}

#[test]
fn a_process_that_ends_returns_everything_and_closes_its_epoch() {
    let mut server = Server::new(1_000);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    settle(node.gets(&account, 5, &mut server), 3, &mut server);
    node.session.drain();
    node.session.observe(
        0,
        vec![ShardEnd {
            shard: 0,
            last_seq: 1,
        }],
    );
    node.session.finish(node.now_us);
    assert!(!node.session.is_closed());
    assert_eq!(node.take(&account, 1).unwrap_err(), Cause::Unavailable);
    let said = node.talk(&mut server);
    assert_eq!(closes(&said).len(), 1);
    assert!(node.session.is_closed());
    assert_eq!((server.consumed(), server.outstanding()), (3, 0));
}

#[test]
fn credit_that_lies_idle_is_returned_and_an_account_that_does_is_forgotten_but_not_its_totals() {
    let mut server = Server::new(100);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    settle(node.gets(&account, 5, &mut server), 5, &mut server);
    drop(account);
    node.passes(70, &mut server);
    assert_eq!(server.outstanding(), 0);
    assert_eq!(node.accounts.all().len(), 1);
    node.passes(620, &mut server);
    assert!(node.accounts.all().is_empty());
    let account = node.credit();
    settle(node.gets(&account, 95, &mut server), 95, &mut server);
    assert_eq!(server.consumed(), 100);
    node.take(&account, 1).unwrap_err();
    node.talk(&mut server);
    assert!(matches!(node.take(&account, 1), Err(Cause::Refused { .. })));
}

#[test]
fn a_share_runs_at_what_is_granted_and_slower_when_some_is_recalled() {
    let mut server = Server::new(600);
    server.window_s = 0;
    let mut node = Node::connected(&mut server);
    let kind = Kind::Rate {
        window_us: 60 * SECOND,
        burst: 60,
        amount: 600,
    };
    let account = node.account("day", kind);
    let want_and_get = node.gets(&account, 1, &mut server);
    drop(want_and_get);
    assert_eq!(account.status(node.now_us).left, 60);
    let recalled = RecalledBucket {
        bucket: Some(bucket(0)),
        keep: 300,
    };
    node.hears(lease_down::Message::Recall(Recall {
        buckets: vec![recalled],
    }));
    assert_eq!(account.status(node.now_us).left, 30);
    node.talk(&mut server);
    assert_eq!(server.outstanding(), 300);
}

#[test]
fn a_refusal_of_the_next_window_says_nothing_about_this_one() {
    let mut server = Server::new(1_000);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    drop(node.gets(&account, 5, &mut server));
    let deny = Deny {
        bucket: Some(bucket(server.window() + 100)),
        kind: DenyKind::Spent.into(),
        valid_for_ms: 10_000,
        asked: 1,
        ..Deny::default()
    };
    let denials = vec![deny];
    node.hears(lease_down::Message::Grants(Grants {
        denials,
        epoch: 1,
        ..Grants::default()
    }));
    assert_eq!(account.denial(), None);
}

#[test]
fn what_is_said_of_a_window_that_was_let_go_of_is_no_news() {
    let mut server = Server::new(1_000);
    server.window_s = 100;
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    settle(node.gets(&account, 5, &mut server), 5, &mut server);
    let first = account.current().unwrap();
    node.passes(150, &mut server);
    assert_eq!(first.granted(), first.returned() + 5);
    // The control plane's clock is behind, or its word is late.
    let grant = Grant {
        bucket: Some(bucket(first.span().window_start_s)),
        granted_total: first.granted(),
        ends_in_ms: 1_000,
        ..Grant::default()
    };
    let grants = vec![grant];
    node.hears(lease_down::Message::Grants(Grants {
        grants,
        epoch: 1,
        ..Grants::default()
    }));
    assert_eq!(wants(&node.says()), []);
    assert_eq!(node.take(&account, 1).unwrap_err(), Cause::Lacking);
}

#[test]
fn a_process_that_has_finished_takes_nothing_on() {
    let mut server = Server::new(1_000);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    settle(node.gets(&account, 5, &mut server), 5, &mut server);
    let lease = account.current().unwrap();
    node.session.drain();
    node.session.finish(node.now_us);
    node.session.connected();
    node.talk(&mut server);
    let grant = Grant {
        bucket: Some(bucket(lease.span().window_start_s)),
        granted_total: lease.granted(),
        ..Grant::default()
    };
    let grants = vec![grant];
    node.hears(lease_down::Message::Grants(Grants {
        grants,
        epoch: 1,
        ..Grants::default()
    }));
    assert!(account.current().is_none());
}

#[test]
fn who_lacks_what_was_used_beyond_a_lease_is_refused_and_does_not_ask_on() {
    let mut server = Server::new(1_000);
    let mut node = Node::connected(&mut server);
    let account = node.credit();
    // All of the limit is used, and a good deal more, by a stream that was let go on.
    let stream = node.gets(&account, 1_000, &mut server);
    settle(stream, 1_600, &mut server);
    let (_waiting, bell) = wait(&account, 10);
    let said = node.talk(&mut server);
    assert_eq!(asks(&said).len(), 1, "{said:?}");
    assert!(bell.0.load(Ordering::Relaxed) > 0);
    let refused = node.take(&account, 10).unwrap_err();
    assert!(matches!(
        refused,
        Cause::Refused {
            kind: Refusal::Spent,
            ..
        }
    ));
}
