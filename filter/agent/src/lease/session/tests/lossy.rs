//! A stream that loses, repeats and reorders what it carries must cost time only.

use proptest::prelude::*;

use super::*;

const AMOUNT: u64 = 500;

#[derive(Clone, Debug)]
enum Step {
    Reserve(u64),
    Drop(usize),
    Settle(usize, u64),
    Say,
    /// Delivers, repeats or loses the message at a place of the queue up or down.
    Up(usize, Fate),
    Down(usize, Fate),
    Recall(u64),
    Fence,
    Reconnect,
    Pass(u64),
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Deliver,
    Repeat,
    Lose,
}

fn step() -> impl Strategy<Value = Step> {
    let fate =
        || prop_oneof![6 => Just(Fate::Deliver), 2 => Just(Fate::Repeat), 1 => Just(Fate::Lose)];
    prop_oneof![
        4 => (1_u64..60).prop_map(Step::Reserve),
        1 => (0_usize..8).prop_map(Step::Drop),
        2 => (0_usize..8, 0_u64..60).prop_map(|(at, used)| Step::Settle(at, used)),
        4 => Just(Step::Say),
        6 => (0_usize..6, fate()).prop_map(|(at, fate)| Step::Up(at, fate)),
        6 => (0_usize..6, fate()).prop_map(|(at, fate)| Step::Down(at, fate)),
        1 => (0_u64..50).prop_map(Step::Recall),
        1 => Just(Step::Fence),
        1 => Just(Step::Reconnect),
        3 => (1_u64..4_000_000).prop_map(Step::Pass),
    ]
}

struct World {
    node: Node,
    server: Server,
    account: Arc<Account>,
    open: Vec<(u64, Reservation)>,
    up: Vec<lease_up::Message>,
    down: Vec<lease_down::Message>,
}

impl World {
    fn new() -> Self {
        let mut server = Server::new(AMOUNT);
        let node = Node::connected(&mut server);
        let account = node.credit();
        Self {
            node,
            server,
            account,
            open: Vec::new(),
            up: Vec::new(),
            down: Vec::new(),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Reserve(amount) => {
                let got = self.node.take(&self.account, amount);
                self.open
                    .extend(got.ok().map(|reservation| (amount, reservation)));
            }
            Step::Drop(at) => drop(pick(&mut self.open, at)),
            Step::Settle(at, used) => {
                if let Some((reserved, reservation)) = pick(&mut self.open, at) {
                    settle(reservation, used.min(reserved), &mut self.server);
                }
            }
            Step::Say => self.up.extend(self.node.says()),
            Step::Up(at, fate) => {
                if let Some(message) = meet(&mut self.up, at, fate) {
                    self.down.extend(self.server.take(message));
                }
            }
            Step::Down(at, fate) => {
                if let Some(message) = meet(&mut self.down, at, fate) {
                    self.node.hears(message);
                }
            }
            Step::Recall(keep) => {
                let bucket = Some(bucket(self.server.window()));
                let buckets = vec![RecalledBucket { bucket, keep }];
                self.down
                    .push(lease_down::Message::Recall(Recall { buckets }));
            }
            Step::Fence => {
                let epoch = self.server.fence();
                self.down
                    .push(lease_down::Message::Fenced(Fenced { epoch }));
            }
            Step::Reconnect => self.reconnect(),
            Step::Pass(us) => {
                self.node.now_us += us;
                self.server.now_us += us;
            }
        }
    }

    fn reconnect(&mut self) {
        self.up.clear();
        self.down.clear();
        self.node.session.connected();
    }

    fn check(&self) {
        let reserved: u64 = self.open.iter().map(|(reserved, _)| reserved).sum();
        let consumed = self.server.consumed();
        assert!(
            consumed + reserved <= AMOUNT,
            "{consumed} + {reserved}: over"
        );
        assert!(consumed + self.server.outstanding() <= AMOUNT);
    }

    /// All is well again, and what is left can be used to the last unit.
    fn heal(mut self) {
        self.open.clear();
        self.reconnect();
        self.node.talk(&mut self.server);
        self.node.passes(30, &mut self.server);
        for _ in self.server.consumed()..AMOUNT {
            let reservation = self.node.gets(&self.account, 1, &mut self.server);
            settle(reservation, 1, &mut self.server);
        }
        self.node.take(&self.account, 1).unwrap_err();
        // What was asked for in vain is not asked for again at once.
        self.node.passes(1, &mut self.server);
        let refused = self.node.take(&self.account, 1).unwrap_err();
        assert!(
            matches!(
                refused,
                Cause::Refused {
                    kind: Refusal::Spent,
                    ..
                }
            ),
            "{refused:?}"
        );
        assert_eq!(
            (self.server.consumed(), self.server.outstanding()),
            (AMOUNT, 0)
        );
    }
}

fn pick<T>(from: &mut Vec<T>, at: usize) -> Option<T> {
    (!from.is_empty()).then(|| from.remove(at % from.len()))
}

fn meet<T: Clone>(queue: &mut Vec<T>, at: usize, fate: Fate) -> Option<T> {
    let message = pick(queue, at)?;
    match fate {
        Fate::Deliver => Some(message),
        Fate::Repeat => {
            queue.push(message.clone());
            Some(message)
        }
        Fate::Lose => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_loss_repetition_or_order_of_messages_makes_or_loses_credit(
        steps in proptest::collection::vec(step(), 1..150),
    ) {
        let mut world = World::new();
        for step in steps {
            world.take(step);
            world.check();
        }
        world.heal();
    }
}
