//! Processes at several replicas that spend one budget.

use super::*;

const NEED: u64 = 7;

/// A process that spends as nodes do: what it has; then what it is granted; when that is refused,
/// again, until nobody has anything left to give.
struct Spender {
    process: Process,
    granted: u64,
    returned: u64,
    spent: u64,
}

impl Spender {
    async fn new(replica: &Replica, boot: u8) -> Self {
        Self {
            process: Process::connect(replica, boot).await,
            granted: 0,
            returned: 0,
            spent: 0,
        }
    }

    fn idle(&self) -> u64 {
        self.granted - self.returned - self.spent
    }

    async fn run(mut self) -> Self {
        let mut refusals = 0;
        while refusals < 6 {
            if self.idle() >= NEED {
                self.spent += NEED;
                continue;
            }
            let lacking = NEED - self.idle();
            let wish = Want {
                available: self.idle(),
                returned_total: self.returned,
                demand_per_minute: 1000,
                ..want("all", self.granted + 100, lacking)
            };
            match self.ask(wish).await {
                None => refusals = 0,
                Some(deny) => {
                    assert_eq!(deny.kind(), DenyKind::Reserved);
                    refusals += 1;
                    let retry_in = Duration::from_millis(u64::from(deny.retry_in_ms).min(250));
                    tokio::time::sleep(retry_in).await;
                }
            }
        }
        self.give_back().await;
        self
    }

    async fn ask(&mut self, wish: Want) -> Option<Deny> {
        self.process
            .send(Up::Wants(Wants {
                wants: vec![wish],
                epoch: 1,
            }))
            .await;
        loop {
            match self.process.next().await {
                Down::Grants(mut grants) => {
                    if let Some(grant) = grants.grants.pop() {
                        self.granted = self.granted.max(grant.granted_total);
                    }
                    return grants.denials.pop();
                }
                // What is idle goes out with the next want.
                Down::Recall(_) => self.returned = self.granted - self.spent,
                other => panic!("{other:?}"),
            }
        }
    }

    async fn give_back(&mut self) {
        self.returned = self.granted - self.spent;
        let rest = Want {
            returned_total: self.returned,
            ..want("all", 0, 0)
        };
        self.ask(rest).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_at_two_replicas_share_a_strict_budget_to_the_last_request() {
    let database = Database::create().await;
    let here = replica(&database, true).await;
    let there = replica(&database, true).await;
    create_limit(&here, "all", LimitUnit::Tokens, 1000).await;
    let one = tokio::spawn(Spender::new(&here, 1).await.run());
    let other = tokio::spawn(Spender::new(&there, 2).await.run());
    let (one, mut other) = (one.await.unwrap(), other.await.unwrap());
    assert_eq!(one.spent + other.spent, 1000 / NEED * NEED);
    assert!(one.spent > 0 && other.spent > 0);
    for spender in [&one, &other] {
        let charge = Charge {
            limit: "all".into(),
            epoch: 1,
            reserved: spender.spent,
            settled: spender.spent,
            ..Charge::default()
        };
        spender.process.deliver(&here, vec![charge]).await;
    }
    let bucket = the_bucket(&there).await;
    assert_eq!((bucket.settled, bucket.held, bucket.suspended), (994, 0, 0));
    let wish = want("all", other.granted + 100, NEED);
    let deny = other.ask(wish).await.unwrap();
    assert_eq!((deny.kind(), deny.left), (DenyKind::Spent, 6));
    // A request that fits is not refused for one that does not.
    let wish = want("all", other.granted + 6, 6);
    assert_eq!(other.ask(wish).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_processes_take_no_slot_that_is_not_there() {
    let database = Database::create().await;
    let here = replica(&database, true).await;
    let there = replica(&database, true).await;
    create_limit(&here, "slots", LimitUnit::InFlight, 5).await;
    let mut asking = Vec::new();
    for boot in 1..=12 {
        let replica = if boot % 2 == 0 { &here } else { &there };
        let mut process = Process::connect(replica, boot).await;
        asking.push(tokio::spawn(async move {
            let (grant, deny) = process.want(want("slots", 1, 1)).await;
            assert!(deny.is_none_or(|deny| deny.kind() == DenyKind::Reserved));
            (process, grant.unwrap().granted_total)
        }));
    }
    let mut taken = 0;
    let mut processes = Vec::new();
    for one in asking {
        let (process, granted) = one.await.unwrap();
        taken += granted;
        processes.push(process);
    }
    assert_eq!(taken, 5);
    assert_eq!(the_bucket(&here).await.remaining, 0);
}
