//! Workers and the agent at the same time, on real threads.

use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;

const WORKERS: u64 = 4;
const ROUNDS: u64 = 2_000;

/// Numbers that need no more than to differ (xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// What a worker had charged, by epoch.
fn work(accounts: &[Arc<Account>], seed: u64, sums: &[[AtomicUsize; 8]]) {
    let mut state = seed;
    for _ in 0..ROUNDS {
        let needs: Vec<Need> = accounts
            .iter()
            .map(|a| need(a, next(&mut state) % 20))
            .collect();
        let mut reservation = loop {
            match reserve(&needs, 1) {
                Ok(reservation) => break reservation,
                Err(_) => thread::yield_now(),
            }
        };
        match next(&mut state) % 4 {
            0 => drop(reservation),
            1 => {
                reservation.shrink(0, next(&mut state) % 10);
                count(reservation, sums, |reserved| reserved);
            }
            2 => {
                reservation.extend(1, next(&mut state) % 10, 1);
                count(reservation, sums, |reserved| reserved / 2);
            }
            _ => count(reservation, sums, |reserved| reserved),
        }
    }
}

fn count(reservation: Reservation, sums: &[[AtomicUsize; 8]], used: impl Fn(u64) -> u64) {
    let reserved: Vec<u64> = (0..2).map(|need| reservation.reserved(need)).collect();
    for charged in reservation.settle(&mut |need| used(reserved[need])) {
        let settled = usize::try_from(charged.settled).unwrap();
        let epoch = usize::try_from(charged.epoch).unwrap();
        sums[charged.need][epoch].fetch_add(settled, Ordering::SeqCst);
    }
}

/// Grants, recalls and fences until the workers are done; gives all leases by account and epoch.
fn supply(accounts: &[Arc<Account>], is_done: &AtomicBool) -> Vec<Vec<Arc<Lease>>> {
    let mut state = 7;
    let mut is_over = false;
    let mut leases: Vec<Vec<Arc<Lease>>> = accounts.iter().map(|_| Vec::new()).collect();
    for epoch in 1..8 {
        for (account, leases) in accounts.iter().zip(&mut leases) {
            if let Some(old) = leases.last() {
                old.retire();
            }
            let lease = lease(epoch, 0, 100);
            account.set_current(Some(Arc::clone(&lease)));
            leases.push(lease);
        }
        let is_last = epoch == 7;
        let mut rounds = 0;
        while (rounds < 500 || is_last) && !is_done.load(Ordering::SeqCst) {
            rounds += 1;
            for lease in leases.iter().filter_map(|leases| leases.last()) {
                if next(&mut state).is_multiple_of(16) {
                    lease.give_back(next(&mut state) % 50);
                } else if lease.available() < 500 {
                    lease.raise(lease.granted() + next(&mut state) % 200, 0);
                }
                is_over |= lease.available() < 0;
            }
            thread::yield_now();
        }
    }
    assert!(!is_over);
    leases
}

#[test]
fn credit_is_neither_made_nor_lost_by_any_interleaving() {
    let accounts = connected();
    let accounts: Vec<Arc<Account>> = ["a", "b"]
        .map(|id| accounts.account(&terms(id, Kind::Credit), ""))
        .to_vec();
    let sums: [[AtomicUsize; 8]; 2] = Default::default();
    let is_done = AtomicBool::new(false);
    let leases = thread::scope(|scope| {
        let (accounts, sums, is_done) = (&accounts, &sums, &is_done);
        let agent = scope.spawn(move || supply(accounts, is_done));
        let workers: Vec<_> = (1..=WORKERS)
            .map(|worker| scope.spawn(move || work(accounts, worker * 977, sums)))
            .collect();
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
        is_done.store(true, Ordering::SeqCst);
        agent.join().unwrap()
    });
    let mut settled_in_all = 0;
    for (need, leases) in leases.iter().enumerate() {
        for lease in leases {
            let epoch = usize::try_from(lease.span().epoch).unwrap();
            let settled = sums[need][epoch].load(Ordering::SeqCst);
            settled_in_all += settled;
            let available = usize::try_from(lease.available()).unwrap();
            let returned = usize::try_from(lease.returned()).unwrap();
            let granted = usize::try_from(lease.granted()).unwrap();
            assert_eq!(lease.reserved(), 0);
            assert_eq!(granted, available + settled + returned, "epoch {epoch}");
        }
    }
    assert!(settled_in_all > 5_000, "{settled_in_all}: it was not used");
}

#[test]
fn a_retired_lease_with_nothing_reserved_stays_so() {
    let accounts = connected();
    let (account, _) = funded(&accounts, "day", 0);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let reservation = reserve(&[need(&account, 1)], 1);
                    drop(reservation);
                }
            });
        }
        // Asserted when the workers have an end, which they would not have after a panic here.
        let stays = (1..400).all(|epoch| {
            let lease = lease(epoch, 0, 3);
            account.set_current(Some(Arc::clone(&lease)));
            thread::yield_now();
            lease.retire();
            while lease.reserved() > 0 {
                thread::yield_now();
            }
            // A miss shows as reserved for a moment; a reservation would be missing here.
            (0..20).all(|_| lease.available() == 3)
        });
        is_done.store(true, Ordering::Relaxed);
        assert!(stays);
    });
}

#[test]
fn a_share_that_changes_while_it_is_spent_lets_no_more_through() {
    let accounts = connected();
    let kind = Kind::Rate {
        window_us: 60 * SECOND,
        burst: 100,
        amount: 6_000,
    };
    let account = accounts.account(&terms("rpm", kind), "");
    let share = lease(1, 0, 6_000);
    account.set_current(Some(Arc::clone(&share)));
    account.follow_share(0);
    let passed = AtomicUsize::new(0);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        if let Ok(reservation) = reserve(&[need(&account, 1)], 0) {
                            settle_all(reservation, 1);
                            passed.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                share.give_back(3_000);
                account.follow_share(0);
                share.raise(share.returned() + 6_000, 0);
                account.follow_share(0);
            }
        });
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
        is_done.store(true, Ordering::SeqCst);
    });
    assert!(
        (50..=100).contains(&passed.load(Ordering::SeqCst)),
        "{passed:?}"
    );
}
