//! Any sequence of what workers and the agent do, against the sums that it must keep.

use proptest::prelude::*;

use super::super::rate::{Pace, Rate};
use super::*;

#[derive(Clone, Debug)]
enum Step {
    Reserve([u64; 2]),
    Drop(usize),
    Settle(usize, u64),
    Extend(usize, u64),
    Shrink(usize, u64),
    Grant(usize, u64),
    /// Says again what was granted once.
    Repeat(usize),
    Recall(usize, u64),
    Fence(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let amount = 0_u64..60;
    let which = 0_usize..2;
    prop_oneof![
        4 => [amount.clone(), amount.clone()].prop_map(Step::Reserve),
        1 => (0_usize..8).prop_map(Step::Drop),
        2 => (0_usize..8, 0_u64..90).prop_map(|(at, used)| Step::Settle(at, used)),
        1 => (0_usize..8, amount.clone()).prop_map(|(at, more)| Step::Extend(at, more)),
        1 => (0_usize..8, amount.clone()).prop_map(|(at, to)| Step::Shrink(at, to)),
        3 => (which.clone(), 0_u64..100).prop_map(|(at, more)| Step::Grant(at, more)),
        1 => which.clone().prop_map(Step::Repeat),
        1 => (which, amount).prop_map(|(at, keep)| Step::Recall(at, keep)),
        1 => (0_u64..50).prop_map(Step::Fence),
    ]
}

struct World {
    accounts: Vec<Arc<Account>>,
    leases: Vec<Vec<Arc<Lease>>>,
    open: Vec<Reservation>,
    charged: Vec<Charged>,
    epoch: u64,
}

impl World {
    fn new() -> Self {
        let accounts = connected();
        let accounts = ["a", "b"].map(|id| accounts.account(&terms(id, Kind::Credit), ""));
        let mut world = Self {
            accounts: accounts.to_vec(),
            leases: vec![Vec::new(), Vec::new()],
            open: Vec::new(),
            charged: Vec::new(),
            epoch: 0,
        };
        world.fence(50);
        world
    }

    fn fence(&mut self, granted: u64) {
        self.epoch += 1;
        for (account, leases) in self.accounts.iter().zip(&mut self.leases) {
            if let Some(old) = leases.last() {
                old.retire();
            }
            let lease = lease(self.epoch, 0, granted);
            account.set_current(Some(Arc::clone(&lease)));
            leases.push(lease);
        }
    }

    fn take(&mut self, step: Step) {
        let pick = |at: usize, len: usize| (len > 0).then(|| at % len.max(1));
        match step {
            Step::Reserve(amounts) => {
                let accounts = self.accounts.iter().zip(amounts);
                let needs: Vec<Need> = accounts.map(|(a, amount)| need(a, amount)).collect();
                self.open.extend(reserve(&needs, 1));
            }
            Step::Drop(at) => {
                if let Some(at) = pick(at, self.open.len()) {
                    drop(self.open.remove(at));
                }
            }
            Step::Settle(at, used) => {
                if let Some(at) = pick(at, self.open.len()) {
                    self.charged.extend(settle_all(self.open.remove(at), used));
                }
            }
            Step::Extend(at, more) => {
                if let Some(at) = pick(at, self.open.len()) {
                    self.open[at].extend(at % 2, more, 1);
                }
            }
            Step::Shrink(at, to) => {
                if let Some(at) = pick(at, self.open.len()) {
                    self.open[at].shrink(at % 2, to);
                }
            }
            Step::Grant(at, more) => {
                let lease = self.leases[at].last().unwrap();
                lease.raise(lease.granted() + more, lease.returned());
            }
            Step::Repeat(at) => {
                let lease = self.leases[at].last().unwrap();
                lease.raise(lease.granted() / 2, lease.returned() / 2);
            }
            Step::Recall(at, keep) => drop(self.leases[at].last().unwrap().give_back(keep)),
            Step::Fence(granted) => self.fence(granted),
        }
    }

    fn check(&self) {
        for (need, leases) in self.leases.iter().enumerate() {
            let limit = self.accounts[need].limit();
            let reserved: u64 = leases.iter().map(|lease| lease.reserved()).sum();
            assert_eq!(
                reserved,
                self.open
                    .iter()
                    .map(|open| open.reserved(need))
                    .sum::<u64>()
            );
            for lease in leases {
                let own = self.charged.iter().filter(|charged| {
                    charged.limit == *limit && charged.epoch == lease.span().epoch
                });
                let settled: u64 = own.map(|charged| charged.settled).sum();
                let out = i128::from(lease.reserved() + settled + lease.returned());
                let sum = i128::from(lease.available()) + out;
                assert_eq!(sum, i128::from(lease.granted()), "{lease:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn what_is_granted_is_available_reserved_settled_or_returned(
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut world = World::new();
        for step in steps {
            world.take(step);
            world.check();
        }
    }

    #[test]
    fn a_share_lets_through_its_burst_and_its_pace_and_no_more(
        share in 1_u64..=600,
        takes in proptest::collection::vec((0_u64..400_000, 1_u64..8), 1..200),
    ) {
        let pace = Pace { window_us: 60 * SECOND, burst: 150, amount: 600 };
        let rate = Rate::new(pace);
        rate.set(pace, share, 0);
        let (mut now_us, mut passed, mut largest) = (0, 0, 0);
        for (later_us, units) in takes {
            now_us += later_us;
            if rate.take(units, now_us).is_ok() {
                passed += units;
                largest = largest.max(units);
            }
        }
        let burst = (150 * share / 600).max(largest);
        let paced = share * now_us / (60 * SECOND);
        prop_assert!(passed <= burst + paced + 1, "{passed} > {burst} + {paced}");
    }

    #[test]
    fn what_is_owed_stays_owed_to_the_unit_when_shares_change(
        shares in proptest::collection::vec((1_u64..=600, 0_u64..1_000_000), 1..20),
    ) {
        let pace = Pace { window_us: 60 * SECOND, burst: 600, amount: 600 };
        let rate = Rate::new(pace);
        rate.set(pace, 600, 0);
        rate.take(600, 0).unwrap();
        let (mut now_us, mut share_now, mut earned) = (0, 600, 0.0);
        for (share, later_us) in shares {
            now_us += later_us;
            earned += share_now as f64 * later_us as f64 / 60e6;
            rate.set(pace, share, now_us);
            share_now = share;
        }
        rate.set(pace, 600, now_us);
        let (left, _) = rate.left(now_us);
        prop_assert!((left as f64 - earned.min(600.0)).abs() <= 1.5, "{left} != {earned}");
    }
}
