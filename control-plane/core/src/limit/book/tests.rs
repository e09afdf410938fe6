use proptest::prelude::*;

use super::*;
use crate::limit::{Calendar, DenyKind, MAX_AMOUNT, Window};

const START_US: i64 = 1_800_000_000_000_000;
const S: i64 = 1_000_000;

fn terms(kind: Kind, window: Window, amount: u64, strict: bool) -> Terms {
    Terms {
        kind,
        calendar: Calendar::new(window, "").unwrap(),
        amount,
        strict,
    }
}

fn strict_day(amount: u64) -> LeaseBook {
    let mut book = LeaseBook::new();
    let terms = terms(Kind::Counted, Window::Day, amount, true);
    book.set_limit("l", Some(terms), START_US);
    book
}

fn boot(number: u8) -> BootId {
    BootId([number; 16])
}

fn key(limit: &str, window_start_s: i64) -> BucketKey {
    BucketKey {
        limit: limit.into(),
        subject: String::new(),
        window_start_s,
    }
}

fn want(granted_total: u64, min_useful: u64) -> Want {
    Want {
        bucket: key("l", -1),
        granted_total,
        returned_total: 0,
        available: 0,
        demand_per_minute: 0,
        min_useful,
        urgent: true,
        next_window: false,
    }
}

fn live(book: &mut LeaseBook, number: u8) {
    assert_eq!(book.hello(boot(number), 0, false, &[], START_US).epoch, 1);
}

fn ask(book: &mut LeaseBook, number: u8, epoch: u64, want: Want, now_us: i64) -> Answer {
    book.want(boot(number), epoch, &[want], now_us)
        .unwrap()
        .remove(0)
}

fn charge(book: &LeaseBook, number: u8, epoch: u64, amount: u64) -> Charge {
    Charge {
        bucket: book.buckets().next().unwrap().key.clone(),
        boot_id: boot(number),
        epoch,
        amount,
    }
}

fn sums(book: &LeaseBook) -> (i64, u64, u64) {
    let sums = book.buckets().next().unwrap().sums;
    (sums.settled, sums.held, sums.suspended)
}

#[test]
fn a_want_that_is_repeated_grants_once() {
    let mut book = strict_day(1000);
    live(&mut book, 1);
    for _ in 0..3 {
        let answer = ask(&mut book, 1, 1, want(10, 10), START_US);
        assert_eq!(answer.grant.unwrap().granted_total, 10);
        assert_eq!(sums(&book), (0, 10, 0));
    }
}

#[test]
fn a_refusal_is_reserved_while_others_hold_room_and_spent_after() {
    let mut book = strict_day(100);
    live(&mut book, 1);
    live(&mut book, 2);
    ask(&mut book, 1, 1, want(60, 60), START_US);
    let refused = ask(&mut book, 2, 1, want(60, 60), START_US).deny.unwrap();
    assert_eq!((refused.kind, refused.left), (DenyKind::Reserved, 40));
    assert_eq!(book.recalls(boot(1), 1, START_US)[0].keep, 0);
    assert_eq!(book.recalls(boot(2), 1, START_US), []);
    assert_eq!(book.recalls(boot(1), 1, START_US + 4 * S), []);
    book.settle(&[charge(&book, 1, 1, 60)]);
    let refused = ask(&mut book, 2, 1, want(60, 60), START_US).deny.unwrap();
    assert_eq!((refused.kind, refused.left), (DenyKind::Spent, 40));
    assert!(ask(&mut book, 2, 1, want(40, 40), START_US).deny.is_none());
}

#[test]
fn what_a_node_holds_itself_is_part_of_what_its_request_needs() {
    let mut book = strict_day(100);
    live(&mut book, 1);
    ask(&mut book, 1, 1, want(100, 100), START_US);
    book.settle(&[charge(&book, 1, 1, 95)]);
    let whole = Want {
        available: 5,
        ..want(105, 5)
    };
    let refused = ask(&mut book, 1, 1, whole, START_US).deny.unwrap();
    assert_eq!(refused.kind, DenyKind::Spent);
}

#[test]
fn use_beyond_a_lease_is_covered_by_the_next_grant_and_counted_once() {
    let mut book = strict_day(100);
    live(&mut book, 1);
    ask(&mut book, 1, 1, want(10, 10), START_US);
    book.settle(&[charge(&book, 1, 1, 15)]);
    assert_eq!(sums(&book), (15, 0, 0));
    // The node knows that it lacks 5 + 10; only 10 of that are new credit.
    let grant = ask(&mut book, 1, 1, want(25, 15), START_US).grant.unwrap();
    assert_eq!(grant.granted_total, 25);
    assert_eq!(sums(&book), (15, 10, 0));
    book.check().unwrap();
}

#[test]
fn use_beyond_a_lease_is_no_part_of_what_a_request_lacks() {
    let mut book = strict_day(100);
    live(&mut book, 1);
    ask(&mut book, 1, 1, want(60, 60), START_US);
    book.settle(&[charge(&book, 1, 1, 90)]);
    // It wishes for 30 that it used beyond its lease, and what a request needs; 10 are left.
    let refused = ask(&mut book, 1, 1, want(101, 11), START_US).deny.unwrap();
    assert_eq!((refused.kind, refused.asked), (DenyKind::Spent, 11));
    let grant = ask(&mut book, 1, 1, want(100, 10), START_US).grant.unwrap();
    assert_eq!(grant.granted_total, 100);
}

#[test]
fn a_fenced_holder_gets_a_new_epoch_and_its_late_records_free_what_was_suspended() {
    let mut book = strict_day(100);
    live(&mut book, 1);
    ask(&mut book, 1, 1, want(50, 50), START_US);
    assert_eq!(book.fence_expired(START_US + 19 * S), []);
    assert_eq!(book.fence_expired(START_US + 20 * S), [boot(1)]);
    assert_eq!(sums(&book), (0, 0, 50));
    assert_eq!(
        book.beat(boot(1), 1, START_US + 21 * S),
        Err(Refusal::Fenced { epoch: 2 })
    );
    book.settle(&[charge(&book, 1, 1, 20)]);
    assert_eq!(sums(&book), (20, 0, 30));
    let welcome = book.hello(boot(1), 1, false, &[], START_US + 22 * S);
    assert_eq!((welcome.epoch, welcome.fenced), (2, true));
    ask(&mut book, 1, 2, want(10, 10), START_US + 22 * S);
    assert_eq!(sums(&book), (20, 10, 30));
    book.close(boot(1), 1, &[], START_US);
    assert_eq!(sums(&book), (20, 10, 0));
    assert_eq!(book.beat(boot(1), 2, START_US + 23 * S), Ok(()));
}

#[test]
fn nobody_is_fenced_for_beats_that_could_not_be_stored() {
    let mut book = strict_day(100);
    live(&mut book, 1);
    book.was_deaf(START_US + 30 * S);
    assert_eq!(book.fence_expired(START_US + 49 * S), []);
    assert_eq!(book.fence_expired(START_US + 50 * S), [boot(1)]);
}

#[test]
fn strict_credit_of_a_lost_holder_stays_suspended_and_is_written_down() {
    let mut book = strict_day(100);
    live(&mut book, 1);
    ask(&mut book, 1, 1, want(50, 50), START_US);
    book.fence_expired(START_US + 20 * S);
    assert_eq!(book.expire_lost(START_US + 3600 * S), 0);
    assert_eq!(book.expire_lost(START_US + 86_400 * S), 1);
    assert_eq!(book.expire_lost(START_US + 86_400 * S), 0);
    assert_eq!(sums(&book), (0, 0, 50));
    let unaccounted = |book: &LeaseBook| {
        let bucket = book.buckets().next().unwrap();
        bucket.leases.values().next().unwrap().unaccounted
    };
    assert_eq!(unaccounted(&book), 50);
    book.settle(&[charge(&book, 1, 1, 30)]);
    assert_eq!((unaccounted(&book), sums(&book)), (20, (30, 0, 20)));
    book.close(boot(1), 1, &[], START_US);
    assert_eq!((unaccounted(&book), sums(&book)), (0, (30, 0, 0)));
}

#[test]
fn lost_credit_that_is_not_strict_is_free_after_its_time() {
    for (kind, window, due_s) in [
        (Kind::Counted, Window::Day, 600),
        (Kind::Rate, Window::Minute, 60),
        (Kind::Rate, Window::Second, 1),
        (Kind::InFlight, Window::None, 3600),
    ] {
        let mut book = LeaseBook::new();
        book.set_limit("l", Some(terms(kind, window, 100, false)), START_US);
        live(&mut book, 1);
        ask(&mut book, 1, 1, want(50, 50), START_US);
        let lost_us = START_US + 20 * S;
        book.fence_expired(lost_us);
        assert_eq!(book.expire_lost(lost_us + due_s * S - 1), 0, "{kind:?}");
        assert_eq!(book.expire_lost(lost_us + due_s * S), 1, "{kind:?}");
        assert_eq!(sums(&book), (0, 0, 0), "{kind:?}");
        let bucket = book.buckets().next().unwrap();
        let noted = bucket.leases.values().next().unwrap().unaccounted;
        assert_eq!(noted > 0, kind == Kind::Counted, "{kind:?}");
    }
}

#[test]
fn a_grant_whose_commit_was_lost_is_declared_by_its_holder() {
    let mut book = strict_day(100);
    let bucket = key("l", START_US / S / 86_400 * 86_400);
    let holding = Holding {
        bucket,
        granted_total: 70,
        returned_total: 10,
    };
    let welcome = book.hello(boot(1), 3, false, &[holding], START_US);
    assert_eq!(
        (welcome.epoch, welcome.fenced, welcome.grants),
        (3, false, vec![])
    );
    assert_eq!(sums(&book), (0, 60, 0));
    let welcome = book.hello(boot(1), 3, false, &[], START_US);
    assert_eq!(
        welcome.grants[0].granted_total, 70,
        "a grant that never arrived is told"
    );
}

#[test]
fn a_lowered_amount_recalls_and_a_raised_one_is_free_at_once() {
    let mut book = strict_day(100);
    live(&mut book, 1);
    ask(&mut book, 1, 1, want(80, 80), START_US);
    book.set_limit(
        "l",
        Some(terms(Kind::Counted, Window::Day, 50, true)),
        START_US,
    );
    assert_eq!(book.recalls(boot(1), 1, START_US)[0].keep, 0);
    let back = Want {
        returned_total: 60,
        ..want(80, 0)
    };
    let grant = ask(&mut book, 1, 1, back, START_US).grant.unwrap();
    assert_eq!((grant.left, grant.amount), (30, 50));
    book.set_limit(
        "l",
        Some(terms(Kind::Counted, Window::Day, 200, true)),
        START_US,
    );
    assert!(ask(&mut book, 1, 1, want(160, 80), START_US).deny.is_none());
}

#[test]
fn the_next_window_is_granted_ahead_and_told_when_it_starts() {
    let mut book = strict_day(100);
    live(&mut book, 1);
    let day_end_s = (START_US / S / 86_400 + 1) * 86_400;
    let now_us = day_end_s * S - 10 * S;
    let next = Want {
        next_window: true,
        ..want(40, 40)
    };
    let grant = ask(&mut book, 1, 1, next, now_us).grant.unwrap();
    assert_eq!(grant.bucket, key("l", day_end_s));
    assert_eq!((grant.starts_in_ms, grant.ends_in_ms), (10_000, 86_410_000));
    let late = ask(
        &mut book,
        1,
        1,
        Want {
            bucket: key("l", day_end_s - 86_400),
            ..want(40, 40)
        },
        day_end_s * S,
    );
    assert_eq!(
        late.grant.unwrap().granted_total,
        0,
        "a window that is over grants nothing"
    );
}

#[test]
fn a_limit_that_is_gone_needs_no_credit_and_its_charges_still_count() {
    let mut book = strict_day(100);
    live(&mut book, 1);
    ask(&mut book, 1, 1, want(50, 50), START_US);
    book.set_limit("l", None, START_US);
    let deny = ask(&mut book, 1, 1, want(90, 10), START_US).deny.unwrap();
    assert_eq!(deny.kind, DenyKind::NoLimit);
    let unknown = Charge {
        bucket: key("ghost", 0),
        ..charge(&book, 1, 1, 5)
    };
    assert_eq!(book.settle(&[charge(&book, 1, 1, 5), unknown]), 1);
    assert_eq!(sums(&book), (5, 45, 0));
}

#[test]
fn what_a_holder_used_and_no_record_says_is_written_down_and_not_free() {
    let mut book = strict_day(100);
    live(&mut book, 1);
    ask(&mut book, 1, 1, want(50, 50), START_US);
    book.settle(&[charge(&book, 1, 1, 20)]);
    let bucket = book.buckets().next().unwrap().key.clone();
    // It used 35 of 50: a full disk took the records of 15.
    let holding = Holding {
        bucket,
        granted_total: 50,
        returned_total: 15,
    };
    for _ in 0..2 {
        book.close(boot(1), 1, std::slice::from_ref(&holding), START_US);
        let unaccounted = |bucket: &Bucket| bucket.leases.values().next().unwrap().unaccounted;
        assert_eq!(unaccounted(book.buckets().next().unwrap()), 15);
        assert_eq!(sums(&book), (20, 0, 15));
    }
    assert_eq!(book.expire_lost(START_US + 2 * 86_400 * S), 0);
    assert_eq!(sums(&book), (20, 0, 15));
}

#[test]
fn a_process_that_closed_and_comes_back_is_fenced() {
    let mut book = strict_day(100);
    live(&mut book, 1);
    ask(&mut book, 1, 1, want(50, 50), START_US);
    book.close(boot(1), 1, &[], START_US);
    assert_eq!(sums(&book), (0, 0, 0));
    assert_eq!(book.beat(boot(1), 1, START_US), Err(Refusal::Unknown));
    let welcome = book.hello(boot(1), 1, false, &[], START_US);
    assert_eq!((welcome.epoch, welcome.fenced), (2, true));
}

#[test]
fn a_draining_holder_gets_what_a_waiting_request_lacks_and_no_more() {
    let mut book = strict_day(10_000);
    book.hello(boot(1), 0, true, &[], START_US);
    let grant = ask(&mut book, 1, 1, want(500, 10), START_US).grant.unwrap();
    assert_eq!(grant.granted_total, 10);
    let idle = Want {
        urgent: false,
        ..want(500, 10)
    };
    let grant = ask(&mut book, 1, 1, idle, START_US).grant.unwrap();
    assert_eq!(grant.granted_total, 10);
}

/// One step of a run; numbers are cut to what exists.
#[derive(Clone, Debug)]
enum Step {
    Hello {
        boot: u8,
        back: u64,
        granted: u64,
        returned: u64,
        draining: bool,
    },
    Want {
        boot: u8,
        raise: u64,
        back: u64,
        need: u64,
        demand: u64,
        urgent: bool,
        next: bool,
    },
    Beat {
        boot: u8,
    },
    Settle {
        boot: u8,
        back: u64,
        amount: u64,
    },
    Close {
        boot: u8,
        back: u64,
    },
    Pass {
        seconds: i64,
    },
    Amount {
        amount: u64,
    },
    Adjust {
        delta: i64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let boot = 1_u8..5;
    let amount = prop_oneof![0_u64..40, 0_u64..2000, Just(MAX_AMOUNT), Just(u64::MAX)];
    let step = prop_oneof![
        2 => (boot.clone(), 0_u64..3, 0_u64..100, 0_u64..50, any::<bool>())
            .prop_map(|(boot, back, granted, returned, draining)| Step::Hello { boot, back, granted, returned, draining }),
        8 => (boot.clone(), amount.clone(), 0_u64..30, 0_u64..200, 0_u64..500, any::<bool>(), proptest::bool::weighted(0.1))
            .prop_map(|(boot, raise, back, need, demand, urgent, next)| Step::Want { boot, raise, back, need, demand, urgent, next }),
        1 => boot.clone().prop_map(|boot| Step::Beat { boot }),
        6 => (boot.clone(), 0_u64..3, amount.clone()).prop_map(|(boot, back, amount)| Step::Settle { boot, back, amount }),
        1 => (boot, 0_u64..2).prop_map(|(boot, back)| Step::Close { boot, back }),
        3 => prop_oneof![0_i64..30, 0_i64..100_000].prop_map(|seconds| Step::Pass { seconds }),
        1 => amount.prop_map(|amount| Step::Amount { amount }),
        1 => (-500_i64..500).prop_map(|delta| Step::Adjust { delta }),
    ];
    proptest::collection::vec(step, 1..80)
}

fn epoch_of(book: &LeaseBook, number: u8) -> u64 {
    book.holder(boot(number)).map_or(0, |holder| holder.epoch)
}

/// Takes a step, and says whether it could have granted.
fn take(book: &mut LeaseBook, terms: &Terms, step: Step, now_us: &mut i64) -> bool {
    let bucket = terms.bucket_of(&key("l", -1), false, *now_us).0;
    match step {
        Step::Hello {
            boot: number,
            back,
            granted,
            returned,
            draining,
        } => {
            let epoch = epoch_of(book, number).saturating_sub(back);
            let holding = Holding {
                bucket,
                granted_total: granted,
                returned_total: returned,
            };
            book.hello(boot(number), epoch, draining, &[holding], *now_us);
        }
        Step::Want { .. } => return take_want(book, &bucket, &step, *now_us),
        Step::Beat { boot: number } => {
            let epoch = epoch_of(book, number);
            let holder = book.holder(boot(number));
            let speaks = holder.is_some_and(|holder| holder.standing != Standing::Closed);
            assert_eq!(book.beat(boot(number), epoch, *now_us).is_ok(), speaks);
        }
        Step::Settle {
            boot: number,
            back,
            amount,
        } => {
            let charge = Charge {
                bucket,
                boot_id: boot(number),
                epoch: epoch_of(book, number).saturating_sub(back),
                amount,
            };
            book.settle(&[charge]);
        }
        Step::Close { boot: number, back } => {
            let epoch = epoch_of(book, number).saturating_sub(back);
            book.close(boot(number), epoch, &[], *now_us);
        }
        Step::Pass { seconds } => {
            *now_us += seconds * S;
            book.fence_expired(*now_us);
            book.expire_lost(*now_us);
        }
        Step::Amount { amount } => {
            let amount = amount.min(MAX_AMOUNT);
            let terms = Terms {
                amount,
                ..terms.clone()
            };
            book.set_limit("l", Some(terms), *now_us);
        }
        Step::Adjust { delta } => {
            book.adjust("l", "", delta, *now_us);
        }
    }
    false
}

fn take_want(book: &mut LeaseBook, bucket: &BucketKey, step: &Step, now_us: i64) -> bool {
    let &Step::Want {
        boot: number,
        raise,
        back,
        need,
        demand,
        urgent,
        next,
    } = step
    else {
        return false;
    };
    let boot_id = boot(number);
    let epoch = epoch_of(book, number);
    let bucket = book.bucket(bucket);
    let lease = bucket.map(|bucket| bucket.lease(LeaseKey { boot_id, epoch }));
    let lease = lease.unwrap_or_default();
    let want = Want {
        granted_total: lease.granted.saturating_add(raise),
        returned_total: lease.returned.saturating_add(back),
        demand_per_minute: demand,
        urgent,
        next_window: next,
        ..want(0, need)
    };
    book.want(boot_id, epoch, &[want], now_us).is_ok()
}

#[test]
fn a_hello_is_told_nothing_of_leases_in_past_windows() {
    let mut book = strict_day(100);
    live(&mut book, 1);
    ask(&mut book, 1, 1, want(10, 10), START_US);
    assert_eq!(book.hello(boot(1), 1, false, &[], START_US).grants.len(), 1);
    let tomorrow_us = START_US + 86_400 * S;
    assert_eq!(book.hello(boot(1), 1, false, &[], tomorrow_us).grants, []);
}

#[test]
fn a_charge_without_a_window_is_counted_in_the_one_of_its_admission() {
    let mut book = strict_day(100);
    let charge = proto::metering::v1::Charge {
        limit: "l".into(),
        window_start_s: -1,
        settled: 7,
        ..Default::default()
    };
    assert_eq!(
        book.settle(&Charge::of_record(boot(1), START_US, &[charge])),
        0
    );
    live(&mut book, 2);
    let today = ask(&mut book, 2, 1, want(10, 10), START_US).grant.unwrap();
    assert_eq!(today.left, 100 - 7 - 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn sums_are_those_of_the_leases_and_no_grant_goes_beyond_the_amount(
        kind in prop_oneof![Just(Kind::Counted), Just(Kind::Rate), Just(Kind::InFlight)],
        strict in any::<bool>(),
        amount in prop_oneof![0_u64..300, Just(MAX_AMOUNT)],
        steps in steps(),
    ) {
        let window = match kind {
            Kind::Counted => Window::Day,
            Kind::Rate => Window::Minute,
            Kind::InFlight => Window::None,
        };
        let terms = terms(kind, window, amount, strict);
        let mut book = LeaseBook::new();
        book.set_limit("l", Some(terms.clone()), START_US);
        let mut now_us = START_US;
        for step in steps {
            let before = book.clone();
            let may_grant = take(&mut book, &terms, step.clone(), &mut now_us);
            prop_assert_eq!(book.check(), Ok(()), "after {:?}", step);
            for bucket in book.buckets() {
                let empty = Bucket::new(bucket.key.clone(), bucket.span, bucket.sums.amount);
                let was = before.bucket(&bucket.key).unwrap_or(&empty);
                for (key, lease) in &bucket.leases {
                    let was = was.lease(*key);
                    prop_assert!(lease.granted >= was.granted && lease.consumed >= was.consumed && lease.returned >= was.returned);
                }
                let lent = |bucket: &Bucket| bucket.sums.held + bucket.sums.suspended;
                if may_grant && lent(bucket) > lent(was) {
                    prop_assert!(bucket.sums.free() >= 0, "{:?} after {:?}", bucket.sums, step);
                }
            }
        }
    }

    #[test]
    fn what_is_asked_again_and_settled_is_answered_or_spent(
        amount in 1_u64..500,
        price in 1_u64..60,
        nodes in 1_u8..6,
        raise in 0_u64..200,
    ) {
        let mut book = strict_day(amount);
        (1..=nodes).for_each(|number| live(&mut book, number));
        let mut admitted = 0;
        let mut asked = 0_u32;
        'all: loop {
            for number in 1..=nodes {
                let lease_key = LeaseKey { boot_id: boot(number), epoch: 1 };
                let lease = book.buckets().next().map(|b| b.lease(lease_key)).unwrap_or_default();
                let available = lease.outstanding();
                let lacking = price.saturating_sub(available);
                let wish = Want { available, ..want(lease.granted + lacking.max(raise), lacking) };
                let answer = ask(&mut book, number, 1, wish, START_US);
                let lease = book.buckets().next().unwrap().lease(lease_key);
                asked += 1;
                prop_assert!(asked < 20_000, "no end");
                if lease.outstanding() >= price {
                    admitted += 1;
                    book.settle(&[charge(&book, number, 1, price)]);
                } else if answer.deny.unwrap().kind == DenyKind::Spent {
                    prop_assert!(amount - admitted * price < price);
                    break 'all;
                }
                // Recalls are answered at once: nothing is reserved here.
                for other in 1..=nodes {
                    for recall in book.recalls(boot(other), 1, START_US) {
                        let held = book.bucket(&recall.bucket).unwrap().lease(LeaseKey { boot_id: boot(other), epoch: 1 });
                        let back = Want { returned_total: held.returned + held.outstanding() - recall.keep, bucket: recall.bucket, ..want(0, 0) };
                        ask(&mut book, other, 1, back, START_US);
                    }
                }
            }
        }
        prop_assert_eq!(admitted, amount / price);
    }
}
