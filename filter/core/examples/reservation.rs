//! What a reservation costs: `cargo run --release -p filter-core --example reservation`.

use std::sync::Arc;
use std::time::Instant;

use filter_core::credit::{Accounts, Kind, Lease, LimitTerms, Mode, Need, Span, reserve};

const ROUNDS: u32 = 1_000_000;

/// A need of each of so many limits, with more credit than will be used.
fn needs(limits: u32, kind: Kind) -> Vec<Need> {
    let accounts = Accounts::new();
    accounts.usable_until(u64::MAX);
    let need = |limit: u32| {
        let terms = LimitTerms {
            id: format!("limit-{limit}").into(),
            kind,
            amount: 1 << 50,
            on_unavailable_allowance: None,
        };
        let account = accounts.account(&terms, "key");
        let lease = Lease::new(Span {
            epoch: 1,
            window_start_s: 0,
            starts_at_us: 0,
            ends_at_us: u64::MAX,
        });
        lease.raise(1 << 50, 0);
        account.set_current(Some(Arc::new(lease)));
        account.follow_share(0);
        Need {
            account,
            amount: 100,
            mode: Mode::Must,
        }
    };
    (0..limits).map(need).collect()
}

/// Nanoseconds from reserving to having settled.
fn measure(needs: &[Need]) -> u128 {
    let start = Instant::now();
    for round in 0..ROUNDS {
        if let Ok(reservation) = reserve(needs, u64::from(round)) {
            drop(reservation.settle(&mut |_| 60));
        }
    }
    start.elapsed().as_nanos() / u128::from(ROUNDS)
}

#[expect(clippy::print_stdout, reason = "what it is for")]
fn main() {
    let rate = Kind::Rate {
        window_us: 1_000,
        burst: 1 << 50,
        amount: 1 << 50,
    };
    for (name, kind) in [("credit", Kind::Credit), ("rate", rate)] {
        for limits in [1, 3, 8] {
            let ns = measure(&needs(limits, kind));
            println!("{limits} × {name}: {ns} ns to reserve and settle");
        }
    }
    for workers in [1, 2] {
        let needs = needs(8, Kind::Credit);
        let slowest = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..workers)
                .map(|_| scope.spawn(|| measure(&needs)))
                .collect();
            let each = workers.into_iter().filter_map(|worker| worker.join().ok());
            each.max().unwrap_or_default()
        });
        println!("8 × credit, {workers} workers on the same accounts: {slowest} ns");
    }
}
