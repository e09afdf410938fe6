//! One request after the other; `tests/threads` has many at once.

mod model;
mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const FOREVER: u64 = u64::MAX;
const SECOND: u64 = 1_000_000;

/// Counts how often it was woken.
#[derive(Debug, Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Bell {
    fn rung(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn terms(id: &str, kind: Kind) -> LimitTerms {
    LimitTerms {
        id: id.into(),
        kind,
        amount: 1_000,
        on_unavailable_allowance: None,
    }
}

fn connected() -> Accounts {
    let accounts = Accounts::new();
    accounts.usable_until(FOREVER);
    accounts
}

fn lease(epoch: u64, window_start_s: i64, granted: u64) -> Arc<Lease> {
    let lease = Lease::new(Span {
        epoch,
        window_start_s,
        starts_at_us: 0,
        ends_at_us: FOREVER,
    });
    lease.raise(granted, 0);
    Arc::new(lease)
}

/// An account of a counted limit with so much on epoch 1.
fn funded(accounts: &Accounts, id: &str, granted: u64) -> (Arc<Account>, Arc<Lease>) {
    let account = accounts.account(&terms(id, Kind::Credit), "key");
    let lease = lease(1, 100, granted);
    account.set_current(Some(Arc::clone(&lease)));
    (account, lease)
}

fn need(account: &Arc<Account>, amount: u64) -> Need {
    Need {
        account: Arc::clone(account),
        amount,
        mode: Mode::Must,
    }
}

fn warn(account: &Arc<Account>, amount: u64) -> Need {
    Need {
        mode: Mode::Warn,
        ..need(account, amount)
    }
}

fn cause(needs: &[Need], now_us: u64) -> Cause {
    reserve(needs, now_us).map(drop).unwrap_err().cause
}

fn denial(kind: Refusal, asked: u64) -> Denial {
    Denial {
        kind,
        asked,
        retry_at_us: 10 * SECOND,
        valid_until_us: 10 * SECOND,
        left: 0,
        resets_at_us: Some(60 * SECOND),
    }
}

fn settle_all(reservation: Reservation, used: u64) -> Vec<Charged> {
    reservation.settle(&mut |_| used).collect()
}

#[test]
fn what_was_not_used_comes_back_and_what_was_is_charged() {
    let accounts = connected();
    let (account, lease) = funded(&accounts, "day", 100);
    let reservation = reserve(&[need(&account, 60)], 1).unwrap();
    assert_eq!((lease.available(), lease.reserved()), (40, 60));
    let charges = settle_all(reservation, 25);
    assert_eq!((lease.available(), lease.reserved()), (75, 0));
    let charged = Charged {
        need: 0,
        limit: "day".into(),
        subject: "key".into(),
        window_start_s: 100,
        epoch: 1,
        reserved: 60,
        settled: 25,
    };
    assert_eq!(charges, [charged]);
}

#[test]
fn more_than_was_reserved_takes_the_account_below_zero() {
    let accounts = connected();
    let (account, lease) = funded(&accounts, "day", 10);
    account.watch(0);
    drop(accounts.take_needy());
    let reservation = reserve(&[need(&account, 10)], 1).unwrap();
    settle_all(reservation, 35);
    assert_eq!(lease.available(), -25);
    assert_eq!(accounts.take_needy().len(), 1, "the agent is to cover it");
}

#[test]
fn a_dropped_reservation_gives_everything_back_once() {
    let accounts = connected();
    let (a, lease_a) = funded(&accounts, "a", 100);
    let (b, lease_b) = funded(&accounts, "b", 100);
    drop(reserve(&[need(&a, 30), need(&b, 40)], 1).unwrap());
    for lease in [lease_a, lease_b] {
        assert_eq!((lease.available(), lease.reserved()), (100, 0));
    }
}

#[test]
fn nothing_is_kept_of_limits_before_the_one_that_was_missed() {
    let accounts = connected();
    let (a, lease_a) = funded(&accounts, "a", 100);
    let (b, lease_b) = funded(&accounts, "b", 10);
    let shortage = reserve(&[need(&a, 30), need(&b, 40)], 1).unwrap_err();
    assert_eq!((shortage.need, shortage.cause), (1, Cause::Lacking));
    assert_eq!((lease_a.available(), lease_a.reserved()), (100, 0));
    assert_eq!((lease_b.available(), lease_b.reserved()), (10, 0));
}

// R6
#[test]
fn credit_that_another_is_about_to_roll_back_is_lacking_and_not_refused() {
    let accounts = connected();
    let (a, _lease) = funded(&accounts, "a", 100);
    let first = reserve(&[need(&a, 100)], 1).unwrap();
    assert_eq!(cause(&[need(&a, 100)], 1), Cause::Lacking);
    let bell = Arc::new(Bell::default());
    let waiting = a.wait(100, Arc::clone(&bell) as Arc<dyn Wake>).unwrap();
    drop(accounts.take_needy());
    a.wake_waiters(2);
    assert_eq!(bell.rung(), 0);
    drop(first);
    assert_eq!(accounts.take_needy().len(), 1, "the rollback is told");
    a.wake_waiters(3);
    assert_eq!(bell.rung(), 1);
    assert!(reserve(&[need(&a, 100)], 3).is_ok());
    drop(waiting);
}

// R5
#[test]
fn a_grant_for_one_who_waited_and_went_away_stays_available() {
    let accounts = connected();
    let (account, lease) = funded(&accounts, "day", 0);
    let waiting = account.wait(50, Arc::new(Bell::default())).unwrap();
    lease.raise(50, 0);
    account.wake_waiters(1);
    drop(waiting);
    assert_eq!((lease.available(), lease.reserved()), (50, 0));
    assert_eq!(accounts.waiting(), 0);
}

// R7
#[test]
fn a_refund_after_a_fence_does_not_fill_the_new_lease() {
    let accounts = connected();
    let (account, old) = funded(&accounts, "day", 100);
    let reservation = reserve(&[need(&account, 80)], 1).unwrap();
    old.retire();
    let new = lease(2, 100, 5);
    account.set_current(Some(Arc::clone(&new)));
    let charges = settle_all(reservation, 10);
    assert_eq!(new.available(), 5);
    assert_eq!((old.available(), old.reserved()), (90, 0));
    assert_eq!((charges[0].epoch, charges[0].settled), (1, 10));
    assert_eq!(cause(&[need(&account, 6)], 2), Cause::Lacking);
}

#[test]
fn nothing_is_taken_from_a_retired_lease_whatever_it_is_granted() {
    let retired = lease(1, 0, 100);
    retired.retire();
    retired.retire();
    retired.raise(300, 0);
    assert_eq!(retired.take(1), None);
    assert!(!retired.take_anyway(1));
    assert_eq!((retired.available(), retired.reserved()), (300, 0));
    assert_eq!(retired.give_back(0), 300);
    assert_eq!((retired.available(), retired.returned()), (0, 300));
}

#[test]
fn a_total_that_was_heard_before_grants_nothing() {
    let lease = lease(1, 0, 100);
    assert_eq!(lease.raise(100, 0), 0);
    assert_eq!(lease.raise(60, 0), 0);
    assert_eq!(lease.raise(130, 0), 30);
    assert_eq!(lease.available(), 130);
}

#[test]
fn only_idle_credit_is_given_back() {
    let lease = lease(1, 0, 100);
    lease.take(70).unwrap();
    assert_eq!(lease.give_back(10), 20);
    assert_eq!(lease.give_back(10), 0);
    assert_eq!((lease.available(), lease.returned()), (10, 20));
}

#[test]
fn a_window_that_is_over_is_left_for_the_next_without_the_agent() {
    let accounts = connected();
    let account = accounts.account(&terms("day", Kind::Credit), "");
    let span = |window_start_s, starts_at_us, ends_at_us| Span {
        epoch: 1,
        window_start_s,
        starts_at_us,
        ends_at_us,
    };
    let old = Arc::new(Lease::new(span(0, 0, 10)));
    old.raise(10, 0);
    let new = Arc::new(Lease::new(span(1, 10, 20)));
    new.raise(10, 0);
    account.set_current(Some(Arc::clone(&old)));
    account.set_next(Some(Arc::clone(&new)));
    let before = reserve(&[need(&account, 4)], 9).unwrap();
    let after = reserve(&[need(&account, 3)], 10).unwrap();
    assert_eq!((old.available(), new.available()), (6, 7));
    assert_eq!(cause(&[need(&account, 1)], 20), Cause::Lacking);
    assert_eq!(settle_all(before, 4)[0].window_start_s, 0);
    assert_eq!(settle_all(after, 3)[0].window_start_s, 1);
}

#[test]
fn a_refusal_is_repeated_while_it_holds_and_only_for_needs_as_large() {
    let accounts = connected();
    let (account, _lease) = funded(&accounts, "day", 3);
    account.deny(denial(Refusal::Spent, 50), 0);
    let refused = Cause::Refused {
        kind: Refusal::Spent,
        retry_in_us: 9 * SECOND,
        left: 0,
        resets_in_us: Some(59 * SECOND),
    };
    assert_eq!(cause(&[need(&account, 50)], SECOND), refused);
    assert_eq!(cause(&[need(&account, 49)], SECOND), Cause::Lacking);
    assert!(reserve(&[need(&account, 3)], SECOND).is_ok());
    assert_eq!(cause(&[need(&account, 50)], 10 * SECOND), Cause::Lacking);
}

#[test]
fn a_refusal_of_less_is_not_forgotten_for_one_of_more_nor_made_to_last() {
    let accounts = connected();
    let (account, _lease) = funded(&accounts, "day", 0);
    account.deny(denial(Refusal::Spent, 10), 0);
    let longer = Denial {
        valid_until_us: 15 * SECOND,
        ..denial(Refusal::Spent, 100)
    };
    account.deny(longer, 5 * SECOND);
    assert!(matches!(
        cause(&[need(&account, 10)], 9 * SECOND),
        Cause::Refused { .. }
    ));
    assert_eq!(cause(&[need(&account, 10)], 11 * SECOND), Cause::Lacking);
}

#[test]
fn while_others_may_still_return_credit_one_waits_instead_of_being_refused() {
    let accounts = connected();
    let (account, _lease) = funded(&accounts, "day", 0);
    let for_those_who_wait = Denial {
        valid_until_us: 0,
        ..denial(Refusal::Reserved, 50)
    };
    account.deny(for_those_who_wait, 0);
    assert_eq!(cause(&[need(&account, 50)], SECOND), Cause::Lacking);
    account.deny(denial(Refusal::Reserved, 50), 0);
    assert!(matches!(
        cause(&[need(&account, 50)], SECOND),
        Cause::Refused {
            kind: Refusal::Reserved,
            ..
        }
    ));
}

#[test]
fn one_who_waited_in_vain_gets_the_last_refusal_and_without_one_unavailable() {
    let accounts = connected();
    let (account, _lease) = funded(&accounts, "day", 0);
    let last_try = |now_us| {
        reserve_after_wait(&[need(&account, 50)], now_us)
            .map(drop)
            .unwrap_err()
            .cause
    };
    assert_eq!(last_try(0), Cause::Unavailable);
    account.deny(denial(Refusal::Reserved, 50), 0);
    assert!(matches!(last_try(10 * SECOND), Cause::Refused { .. }));
    assert_eq!(last_try(11 * SECOND), Cause::Unavailable);
}

#[test]
fn a_refused_limit_behind_goes_before_one_that_lacks() {
    let accounts = connected();
    let (a, _a) = funded(&accounts, "a", 0);
    let (b, _b) = funded(&accounts, "b", 0);
    let (c, _c) = funded(&accounts, "c", 0);
    c.deny(denial(Refusal::Spent, 1), 0);
    drop(accounts.take_needy());
    let shortage = reserve(&[need(&a, 1), need(&b, 2), need(&c, 3)], 1).unwrap_err();
    assert_eq!(shortage.need, 2);
    let needy: Vec<_> = accounts.take_needy();
    let limits: Vec<&str> = needy.iter().map(|account| &**account.limit()).collect();
    assert_eq!(
        limits,
        ["a", "b"],
        "all that is lacking is asked for at once"
    );
    assert_eq!(b.take_lack(1).first, 2);
}

#[test]
fn new_terms_end_a_refusal_by_the_old_amount() {
    let accounts = connected();
    let (account, _lease) = funded(&accounts, "day", 0);
    account.deny(denial(Refusal::Spent, 1), 0);
    let raised = LimitTerms {
        amount: 2_000,
        ..terms("day", Kind::Credit)
    };
    assert!(Arc::ptr_eq(&accounts.account(&raised, "key"), &account));
    assert_eq!(cause(&[need(&account, 1)], 1), Cause::Lacking);
    assert_eq!(account.status(1).amount, 2_000);
}

#[test]
fn after_the_ttl_nothing_is_usable_but_the_allowance_and_that_once() {
    let accounts = Accounts::new();
    accounts.usable_until(10);
    let generous = LimitTerms {
        on_unavailable_allowance: Some(50),
        ..terms("day", Kind::Credit)
    };
    let account = accounts.account(&generous, "key");
    let granted = lease(1, 100, 1_000);
    account.set_current(Some(Arc::clone(&granted)));
    let first = reserve(&[need(&account, 30)], 10).unwrap();
    assert_eq!(granted.available(), 1_000);
    assert_eq!(cause(&[need(&account, 30)], 11), Cause::Unavailable);
    let charges = settle_all(first, 10);
    assert_eq!((charges[0].epoch, charges[0].window_start_s), (0, -1));
    assert!(reserve(&[need(&account, 40)], 12).is_ok_and(|r| settle_all(r, 40).len() == 1));
    assert_eq!(cause(&[need(&account, 1)], 13), Cause::Unavailable);
    account.end_outage();
    assert!(reserve(&[need(&account, 50)], 14).is_ok());
}

#[test]
fn without_an_allowance_an_outage_is_unavailable_and_told() {
    let accounts = Accounts::new();
    let account = accounts.account(&terms("day", Kind::Credit), "key");
    assert_eq!(cause(&[need(&account, 5)], 0), Cause::Unavailable);
    assert_eq!(accounts.take_needy().len(), 1);
    assert_eq!(account.take_lack(0).first, 5);
}

#[test]
fn a_warning_limit_lets_through_and_charges_what_it_can() {
    let accounts = connected();
    let (account, lease) = funded(&accounts, "day", 10);
    let reservation = reserve(&[warn(&account, 30)], 1).unwrap();
    assert_eq!(lease.available(), -20);
    assert_eq!(settle_all(reservation, 15)[0].epoch, 1);
    assert_eq!(lease.available(), -5);
    let bare = accounts.account(&terms("week", Kind::Credit), "key");
    let charges = settle_all(reserve(&[warn(&bare, 7)], 1).unwrap(), 9);
    assert_eq!(
        (charges[0].epoch, charges[0].reserved, charges[0].settled),
        (0, 7, 9)
    );
}

#[test]
fn an_unknown_limit_asks_for_nothing_and_charges_nothing() {
    let accounts = connected();
    let account = accounts.account(&terms("gone", Kind::Credit), "key");
    account.exempt_until(10);
    assert_eq!(settle_all(reserve(&[need(&account, 5)], 9).unwrap(), 5), []);
    assert_eq!(cause(&[need(&account, 5)], 10), Cause::Lacking);
}

#[test]
fn slots_come_back_and_are_not_charged() {
    let accounts = connected();
    let account = accounts.account(&terms("flight", Kind::InFlight), "key");
    let slots = lease(1, 0, 2);
    account.set_current(Some(Arc::clone(&slots)));
    let first = reserve(&[need(&account, 1)], 1).unwrap();
    let second = reserve(&[need(&account, 1)], 1).unwrap();
    assert_eq!(cause(&[need(&account, 1)], 1), Cause::Lacking);
    assert_eq!(settle_all(first, 1), []);
    drop(second);
    assert_eq!((slots.available(), slots.reserved()), (2, 0));
}

#[test]
fn a_reservation_is_extended_from_local_credit_only() {
    let accounts = connected();
    let (account, lease) = funded(&accounts, "day", 100);
    let mut reservation = reserve(&[need(&account, 60)], 1).unwrap();
    assert!(reservation.extend(0, 40, 2));
    assert!(!reservation.extend(0, 1, 2));
    assert!(!reservation.extend(1, 1, 2), "there is no such need");
    assert_eq!((reservation.reserved(0), lease.available()), (100, 0));
    reservation.shrink(0, 30);
    assert_eq!((reservation.reserved(0), lease.available()), (30, 70));
    assert_eq!(settle_all(reservation, 30)[0].reserved, 30);
}

#[test]
fn an_extension_after_a_fence_is_charged_to_the_new_lease() {
    let accounts = connected();
    let (account, old) = funded(&accounts, "day", 100);
    let mut reservation = reserve(&[need(&account, 60)], 1).unwrap();
    old.retire();
    let new = lease(2, 100, 50);
    account.set_current(Some(Arc::clone(&new)));
    assert!(reservation.extend(0, 20, 2));
    assert_eq!(reservation.reserved(0), 80);
    let open = reservation.open_charges();
    let open: Vec<_> = open.map(|c| (c.epoch, c.reserved, c.settled)).collect();
    assert_eq!(open, [(1, 60, 0), (2, 20, 0)]);
    let mut asked = 0;
    let charges: Vec<_> = reservation
        .settle(&mut |_| {
            asked += 1;
            90
        })
        .collect();
    assert_eq!(asked, 1);
    let settled: Vec<_> = charges
        .iter()
        .map(|c| (c.epoch, c.reserved, c.settled))
        .collect();
    assert_eq!(settled, [(1, 60, 60), (2, 20, 30)]);
    assert_eq!((old.available(), old.reserved()), (40, 0));
    assert_eq!((new.available(), new.reserved()), (20, 0));
}

#[test]
fn those_who_wait_are_woken_in_order_as_far_as_credit_goes() {
    let accounts = connected();
    let (account, lease) = funded(&accounts, "day", 0);
    let bells: Vec<Arc<Bell>> = (0..3).map(|_| Arc::default()).collect();
    let wait = |at: usize, need| {
        account
            .wait(need, Arc::clone(&bells[at]) as Arc<dyn Wake>)
            .unwrap()
    };
    let waiting = [wait(0, 30), wait(1, 30), wait(2, 5)];
    let rung = || [bells[0].rung(), bells[1].rung(), bells[2].rung()];
    lease.raise(40, 0);
    account.wake_waiters(1);
    assert_eq!(rung(), [1, 0, 0], "the third does not overtake the second");
    account.wake_waiters(1);
    assert_eq!(
        rung(),
        [1, 0, 0],
        "what the first was woken for is spoken for"
    );
    waiting[0].again(41);
    account.wake_waiters(1);
    assert_eq!(rung(), [1, 0, 0], "it kept its place");
    let [first, second, third] = waiting;
    drop(accounts.take_needy());
    drop(first);
    assert_eq!(accounts.take_needy().len(), 1);
    account.wake_waiters(1);
    assert_eq!(rung(), [1, 1, 1]);
    drop((second, third));
    assert_eq!(accounts.waiting(), 0);
}

#[test]
fn one_who_was_refused_does_not_hold_up_smaller_needs() {
    let accounts = connected();
    let (account, lease) = funded(&accounts, "day", 0);
    let (large, small) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
    let _large = account
        .wait(500, Arc::clone(&large) as Arc<dyn Wake>)
        .unwrap();
    let _small = account
        .wait(5, Arc::clone(&small) as Arc<dyn Wake>)
        .unwrap();
    assert_eq!(account.take_lack(0).first, 500);
    account.deny(
        Denial {
            left: 20,
            ..denial(Refusal::Reserved, 500)
        },
        0,
    );
    assert_eq!(account.take_lack(0).first, 5);
    lease.raise(5, 0);
    account.wake_waiters(1);
    assert_eq!((large.rung(), small.rung()), (0, 1));
    account.deny(denial(Refusal::Spent, 500), 1);
    account.wake_waiters(1);
    assert_eq!((large.rung(), small.rung()), (1, 1));
}

#[test]
fn so_many_may_wait_and_no_more() {
    let accounts = connected();
    let (account, _lease) = funded(&accounts, "day", 0);
    let wait = || account.wait(1, Arc::new(Bell::default()));
    let waiting: Vec<Waiting> = std::iter::from_fn(|| wait().ok()).take(1_000).collect();
    assert_eq!((waiting.len(), accounts.waiting()), (256, 256));
    drop(waiting);
    assert_eq!(accounts.waiting(), 0);
    assert!(wait().is_ok());
}

#[test]
fn the_agent_is_rung_for_when_the_first_account_gets_needy() {
    let accounts = connected();
    let bell = Arc::new(Bell::default());
    accounts.set_bell(Arc::clone(&bell) as Arc<dyn Wake>);
    let (a, _a) = funded(&accounts, "a", 0);
    let (b, _b) = funded(&accounts, "b", 0);
    for account in [&a, &b, &a] {
        cause(&[need(account, 1)], 1);
    }
    assert_eq!(bell.rung(), 1);
    assert_eq!(accounts.take_needy().len(), 2);
    cause(&[need(&b, 1)], 1);
    assert_eq!(bell.rung(), 2);
}

#[test]
fn an_account_that_runs_low_is_told_before_it_lacks() {
    let accounts = connected();
    let (account, _lease) = funded(&accounts, "day", 100);
    account.watch(50);
    let _first = reserve(&[need(&account, 50)], 1).unwrap();
    assert!(accounts.take_needy().is_empty());
    let _second = reserve(&[need(&account, 1)], 1).unwrap();
    assert_eq!(accounts.take_needy().len(), 1);
    assert_eq!(account.take_lack(1), Lack::default());
}

#[test]
fn an_account_that_someone_holds_is_not_forgotten() {
    let accounts = connected();
    let (account, lease) = funded(&accounts, "day", 100);
    account.set_current(None);
    drop(lease);
    let held = Arc::clone(&account);
    assert!(!accounts.forget(&account));
    drop(held);
    assert!(accounts.forget(&account));
    assert!(accounts.all().is_empty());
}

#[test]
fn all_accounts_come_by_limit_and_subject() {
    let accounts = Accounts::new();
    for (limit, subject) in [("b", "x"), ("a", "y"), ("a", "x"), ("b", "")] {
        accounts.account(&terms(limit, Kind::Credit), subject);
    }
    let all = accounts.all();
    let names: Vec<(&str, &str)> = all.iter().map(|a| (&**a.limit(), &**a.subject())).collect();
    assert_eq!(names, [("a", "x"), ("a", "y"), ("b", ""), ("b", "x")]);
}

#[test]
fn a_rate_without_a_share_is_asked_for_and_with_all_of_it_is_too_fast() {
    let accounts = connected();
    let kind = Kind::Rate {
        window_us: 60 * SECOND,
        burst: 15,
        amount: 60,
    };
    let account = accounts.account(&terms("rpm", kind), "key");
    assert_eq!(cause(&[need(&account, 1)], 0), Cause::Lacking);
    let share = lease(1, 0, 20);
    account.set_current(Some(Arc::clone(&share)));
    account.follow_share(0);
    for _ in 0..5 {
        assert_eq!(settle_all(reserve(&[need(&account, 1)], 0).unwrap(), 1), []);
    }
    assert_eq!(
        cause(&[need(&account, 1)], 0),
        Cause::Lacking,
        "there is more elsewhere"
    );
    account.deny(denial(Refusal::Reserved, 21), 0);
    assert_eq!(
        cause(&[need(&account, 1)], 0),
        Cause::TooFast {
            retry_in_us: 3 * SECOND
        }
    );
    account.clear_denial();
    share.raise(60, 0);
    account.follow_share(0);
    let burst = (0..).map_while(|_| reserve(&[need(&account, 1)], 0).ok());
    let burst: Vec<_> = burst.collect();
    assert_eq!(
        burst.len(),
        10,
        "what was spent of a smaller share stays spent"
    );
    assert_eq!(
        cause(&[need(&account, 1)], 0),
        Cause::TooFast {
            retry_in_us: SECOND
        }
    );
    drop(burst);
    assert_eq!(account.status(0).left, 10);
    assert_eq!(account.status(60 * SECOND).left, 15);
}

#[test]
fn a_node_without_a_share_waits_for_what_the_others_give_back() {
    let accounts = connected();
    let kind = Kind::Rate {
        window_us: 60 * SECOND,
        burst: 15,
        amount: 60,
    };
    let account = accounts.account(&terms("rpm", kind), "key");
    let for_those_who_wait = Denial {
        valid_until_us: 0,
        ..denial(Refusal::Reserved, 1)
    };
    account.deny(for_those_who_wait, 0);
    assert_eq!(cause(&[need(&account, 1)], SECOND), Cause::Lacking);
    account.deny(denial(Refusal::Reserved, 1), 0);
    assert!(matches!(
        cause(&[need(&account, 1)], SECOND),
        Cause::Refused {
            kind: Refusal::Reserved,
            ..
        }
    ));
}

#[test]
fn tokens_of_a_rate_that_were_not_used_are_given_back() {
    let accounts = connected();
    let kind = Kind::Rate {
        window_us: 60 * SECOND,
        burst: 1_000,
        amount: 60_000,
    };
    let account = accounts.account(&terms("tpm", kind), "key");
    account.set_current(Some(lease(1, 0, 60_000)));
    account.follow_share(0);
    let reservation = reserve(&[need(&account, 900)], 0).unwrap();
    assert!(reserve(&[need(&account, 200)], 0).is_err());
    settle_all(reservation, 100);
    assert_eq!(account.status(0).left, 900);
    assert!(
        reserve(&[need(&account, 61_000)], 0).is_err_and(|shortage| matches!(
            shortage.cause,
            Cause::Refused {
                kind: Refusal::Spent,
                ..
            }
        ))
    );
}
