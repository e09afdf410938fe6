//! A replica's end of the streams: from messages to transactions and back.
//!
//! It stands for `control-plane-grpc`, which does the same over sockets and Postgres.

use std::collections::BTreeMap;

use control_plane_core::ledger::{Answer, Content, Delivery, Shard};
use control_plane_core::limit::{
    Answer as Answered, BEAT_MS, BucketKey, DenyKind, Holding, Refusal, TTL_MS, Want,
};
use control_plane_core::nodes::BootId;
use proto::metering::v1::{
    Ack, Close, Deny, Fenced, Grant, Grants, Hello, LeaseDown, LeaseUp, Recall, RecalledBucket,
    Resume, Unavailable, UsageDown, UsageUp, Wants, Welcome, lease_down, lease_up, usage_down,
    usage_up,
};

use crate::database::Database;

/// A replica's end of a Lease stream.
#[derive(Debug, Default)]
pub struct LeaseEnd {
    boot: Option<BootId>,
    epoch: u64,
    /// When each bucket's recall was marked that was told last.
    told: BTreeMap<BucketKey, i64>,
    closes: Vec<PendingClose>,
}

#[derive(Debug)]
struct PendingClose {
    epoch: u64,
    holdings: Vec<Holding>,
    ends: Vec<(u32, u64)>,
}

/// What a replica does about a message.
#[derive(Debug, Default)]
pub struct Reply<M> {
    pub say: Vec<M>,
    /// The stream ends.
    pub hangs_up: bool,
    /// Buckets refused as RESERVED.
    pub reserved: Vec<BucketKey>,
}

/// The database as it can be reached: none while it is away.
pub type Reached<'a> = Option<&'a mut Database>;

impl<M> Reply<M> {
    fn nothing() -> Self {
        Self {
            say: Vec::new(),
            hangs_up: false,
            reserved: Vec::new(),
        }
    }

    fn say(message: M) -> Self {
        Self {
            say: vec![message],
            ..Self::nothing()
        }
    }

    fn hang_up() -> Self {
        Self {
            hangs_up: true,
            ..Self::nothing()
        }
    }
}

impl LeaseEnd {
    /// Takes a message in.
    pub fn on_up(&mut self, up: LeaseUp, db: Reached<'_>, now_us: i64) -> Reply<LeaseDown> {
        match up.message.expect("a message") {
            lease_up::Message::Hello(hello) => self.on_hello(hello, db, now_us),
            lease_up::Message::Wants(wants) => self.on_wants(wants, db, now_us),
            lease_up::Message::Beat(beat) => {
                let (Some(boot), Some(db)) = (self.boot, db) else {
                    return Reply::nothing();
                };
                match db.beat(boot, beat.epoch, now_us) {
                    Ok(()) => Reply::say(grants(Grants {
                        epoch: beat.epoch,
                        ..Grants::default()
                    })),
                    Err(refusal) => self.refuse(refusal),
                }
            }
            lease_up::Message::Close(close) => {
                self.on_close(close);
                if let Some(db) = db {
                    self.close(db, now_us);
                }
                Reply::nothing()
            }
        }
    }

    fn on_hello(&mut self, hello: Hello, db: Reached<'_>, now_us: i64) -> Reply<LeaseDown> {
        let Some(db) = db else {
            return Reply::hang_up();
        };
        let boot = BootId::from_slice(&hello.boot_id).expect("a boot");
        let holdings = hello.holdings.into_iter().filter_map(Holding::from_wire);
        let holdings: Vec<Holding> = holdings.collect();
        let welcome = db.hello(boot, hello.epoch, hello.draining, &holdings, now_us);
        self.boot = Some(boot);
        self.epoch = welcome.epoch;
        let mut reply = Reply::say(down(lease_down::Message::Welcome(Welcome {
            epoch: welcome.epoch,
            ttl_ms: TTL_MS,
            beat_ms: BEAT_MS,
            lineage: String::new(),
            server_unix_ms: now_us / 1000,
        })));
        if !welcome.grants.is_empty() {
            let known = welcome.grants.into_iter().map(Grant::from);
            reply.say.push(grants(Grants {
                grants: known.collect(),
                denials: Vec::new(),
                epoch: welcome.epoch,
            }));
        }
        reply
    }

    fn on_wants(&mut self, wants: Wants, db: Reached<'_>, now_us: i64) -> Reply<LeaseDown> {
        let Some(boot) = self.boot else {
            return Reply::hang_up();
        };
        let Some(db) = db else {
            let buckets = wants.wants.into_iter().filter_map(|want| want.bucket);
            let buckets = buckets.collect();
            return Reply::say(down(lease_down::Message::Unavailable(Unavailable {
                buckets,
            })));
        };
        let epoch = wants.epoch;
        let wants = wants.wants.into_iter().filter_map(Want::from_wire);
        let wants: Vec<Want> = wants.collect();
        let answers = match db.want(boot, epoch, &wants, now_us) {
            Ok(answers) => answers,
            Err(refusal) => return self.refuse(refusal),
        };
        let denied = answers.iter().filter_map(|answer| answer.deny.as_ref());
        let reserved = denied.filter(|deny| deny.kind == DenyKind::Reserved);
        let reserved = reserved.map(|deny| deny.bucket.clone()).collect();
        Reply {
            reserved,
            ..Reply::say(grants(told(answers, epoch)))
        }
    }

    fn on_close(&mut self, close: Close) {
        let holdings = close.holdings.into_iter().filter_map(Holding::from_wire);
        self.closes.push(PendingClose {
            epoch: close.epoch,
            holdings: holdings.collect(),
            ends: close
                .shards
                .iter()
                .map(|end| (end.shard, end.last_seq))
                .collect(),
        });
    }

    fn refuse(&mut self, refusal: Refusal) -> Reply<LeaseDown> {
        match refusal {
            Refusal::Fenced { epoch } => {
                self.epoch = epoch;
                Reply::say(down(lease_down::Message::Fenced(Fenced { epoch })))
            }
            Refusal::Unknown => Reply::hang_up(),
        }
    }

    /// Does what waits for records.
    pub fn close(&mut self, db: &mut Database, now_us: i64) {
        let Some(boot) = self.boot else {
            return;
        };
        self.closes
            .retain(|close| !db.close(boot, close.epoch, &close.holdings, &close.ends, now_us));
    }

    /// What is to be given back, each mark told once.
    pub fn recall(&mut self, db: &Database, now_us: i64) -> Option<LeaseDown> {
        let recalls = db.book.recalls(self.boot?, self.epoch, now_us);
        let told = &mut self.told;
        let fresh = recalls.into_iter().filter(|recall| {
            let last = told.insert(recall.bucket.clone(), recall.marked_at_us);
            last != Some(recall.marked_at_us)
        });
        let buckets: Vec<RecalledBucket> = fresh
            .map(|recall| RecalledBucket {
                bucket: Some(recall.bucket.into()),
                keep: recall.keep,
            })
            .collect();
        if buckets.is_empty() {
            return None;
        }
        Some(down(lease_down::Message::Recall(Recall { buckets })))
    }
}

/// Takes a message of a Usage stream in.
pub fn on_usage(up: UsageUp, db: Reached<'_>, at_us: u64, now_us: i64) -> Reply<UsageDown> {
    let Some(db) = db else {
        return Reply::hang_up();
    };
    let (boot, number, content) = match up.message.expect("a message") {
        usage_up::Message::Open(open) => {
            let shard = shard(&open.boot_id, open.shard);
            let next_seq = db.cursor(shard) + 1;
            return Reply::say(answer(Answer::Resume { shard, next_seq }));
        }
        usage_up::Message::Batch(batch) => {
            let (first_seq, records) = (batch.first_seq, batch.records);
            (
                batch.boot_id,
                batch.shard,
                Content::Records { first_seq, records },
            )
        }
        usage_up::Message::Gap(gap) => {
            let (from_seq, to_seq, reason) = (gap.from_seq, gap.to_seq, gap.reason);
            (
                gap.boot_id,
                gap.shard,
                Content::Gap {
                    from_seq,
                    to_seq,
                    reason,
                },
            )
        }
    };
    let shard = shard(&boot, number);
    Reply::say(answer(db.deliver(
        &Delivery { shard, content },
        at_us,
        now_us,
    )))
}

fn shard(boot: &[u8], number: u32) -> Shard {
    let boot_id = BootId::from_slice(boot).expect("a boot");
    Shard { boot_id, number }
}

fn answer(answer: Answer) -> UsageDown {
    let message = match answer {
        Answer::Ack { shard, through_seq } => usage_down::Message::Ack(Ack {
            boot_id: shard.boot_id.0.to_vec(),
            shard: shard.number,
            through_seq,
        }),
        Answer::Resume { shard, next_seq } => usage_down::Message::Resume(Resume {
            boot_id: shard.boot_id.0.to_vec(),
            shard: shard.number,
            next_seq,
        }),
    };
    UsageDown {
        message: Some(message),
    }
}

fn told(answers: Vec<Answered>, epoch: u64) -> Grants {
    let mut grants = Grants {
        epoch,
        ..Grants::default()
    };
    for answer in answers {
        grants.grants.extend(answer.grant.map(Grant::from));
        grants.denials.extend(answer.deny.map(Deny::from));
    }
    grants
}

fn grants(grants: Grants) -> LeaseDown {
    down(lease_down::Message::Grants(grants))
}

fn down(message: lease_down::Message) -> LeaseDown {
    LeaseDown {
        message: Some(message),
    }
}
