//! Lease messages on the wire.

use control_plane_core::limit::{
    Answer, BEAT_MS, BucketKey, Grant, Holding, Recall, Refusal, TTL_MS, Want, Welcome,
};
use control_plane_core::name::is_id;
use control_plane_core::nodes::BootId;
use control_plane_store::{HolderWants, ShardEnd};
use proto::metering::v1 as metering;
use proto::metering::v1::lease_down::Message;
use proto::metering::v1::lease_up;
use proto::metering::v1::{Deny, DenyKind, Fenced, Grants, LeaseDown, LeaseUp, Unavailable};
use tonic::Status;

use super::wants::Asked;
use crate::clock::now_us;
use crate::status;

/// A process's Hello.
#[derive(Debug)]
pub(super) struct Greeting {
    pub(super) boot_id: BootId,
    pub(super) node: String,
    /// 0: it never had one.
    pub(super) epoch: u64,
    pub(super) draining: bool,
    pub(super) holdings: Vec<Holding>,
}

/// The end of an epoch of a process.
#[derive(Clone, Debug)]
pub(super) struct EpochEnd {
    pub(super) epoch: u64,
    pub(super) holdings: Vec<Holding>,
    pub(super) shards: Vec<ShardEnd>,
}

// Ten times what a node puts into one message.
const MAX_WANTS: usize = 5_000;
const MAX_SUBJECT_BYTES: usize = 400;
// The end of the year 9999.
const MAX_WINDOW_START_S: i64 = 253_402_300_799;
// A subject that cannot be kept is not looked at again sooner.
const UNFIT_MS: u32 = 10_000;

/// The Hello that a stream begins with.
pub(super) fn hello(first: LeaseUp) -> Result<Greeting, Status> {
    let Some(lease_up::Message::Hello(hello)) = first.message else {
        return Err(status::invalid("hello", "must be the first message"));
    };
    let boot_id = BootId::from_slice(&hello.boot_id)
        .ok_or_else(|| status::invalid("hello.boot_id", "must be 16 bytes"))?;
    let is_label = hello.node.len() <= 256 && !hello.node.chars().any(char::is_control);
    if !is_label {
        let message = "must be at most 256 bytes without controls";
        return Err(status::invalid("hello.node", message));
    }
    Ok(Greeting {
        boot_id,
        node: hello.node,
        epoch: epoch(hello.epoch, "hello.epoch")?,
        draining: hello.draining,
        holdings: holdings(hello.holdings, "hello.holdings")?,
    })
}

/// What a process wants. A subject that the store cannot keep is refused right here: it came from a
/// client's request, which must not be let through for it, nor end the stream.
pub(super) fn wants(boot_id: BootId, message: metering::Wants) -> Result<Asked, Status> {
    if message.wants.len() > MAX_WANTS {
        return Err(status::invalid("wants", "must be at most 5000"));
    }
    let mut fit = Vec::with_capacity(message.wants.len());
    let mut denied = Vec::new();
    for (position, want) in message.wants.into_iter().enumerate() {
        let field = || format!("wants[{position}].bucket");
        let want = Want::from_wire(want).ok_or_else(|| status::invalid(&field(), "is required"))?;
        check(&want.bucket, field)?;
        if is_fit(&want.bucket.subject) {
            fit.push(want);
        } else {
            denied.push(unfit(want));
        }
    }
    Ok(Asked {
        holder: HolderWants {
            boot_id,
            epoch: epoch(message.epoch, "wants.epoch")?,
            wants: fit,
        },
        denied,
    })
}

/// The end of an epoch.
pub(super) fn closing(close: metering::Close) -> Result<EpochEnd, Status> {
    let shards = close.shards.into_iter().map(|end| ShardEnd {
        shard: end.shard,
        last_seq: end.last_seq,
    });
    Ok(EpochEnd {
        epoch: epoch(close.epoch, "close.epoch")?,
        holdings: holdings(close.holdings, "close.holdings")?,
        shards: shards.collect(),
    })
}

fn holdings(declared: Vec<metering::Holding>, field: &str) -> Result<Vec<Holding>, Status> {
    let mut holdings = Vec::with_capacity(declared.len());
    for (position, holding) in declared.into_iter().enumerate() {
        let field = || format!("{field}[{position}].bucket");
        let holding =
            Holding::from_wire(holding).ok_or_else(|| status::invalid(&field(), "is required"))?;
        check(&holding.bucket, field)?;
        // Nothing was ever granted to the others.
        if is_fit(&holding.bucket.subject) {
            holdings.push(holding);
        }
    }
    Ok(holdings)
}

fn epoch(epoch: u64, field: &str) -> Result<u64, Status> {
    // The largest that Postgres keeps, with room to rise.
    if epoch > u64::from(u32::MAX) {
        return Err(status::invalid(field, "is larger than any epoch"));
    }
    Ok(epoch)
}

fn check(bucket: &BucketKey, field: impl Fn() -> String) -> Result<(), Status> {
    if !is_id(&bucket.limit) {
        let message = "must be 1-64 characters of [a-z0-9-]";
        return Err(status::invalid(&format!("{}.limit", field()), message));
    }
    if !(-1..=MAX_WINDOW_START_S).contains(&bucket.window_start_s) {
        let field = format!("{}.window_start_s", field());
        return Err(status::invalid(&field, "must be -1 or a moment up to 9999"));
    }
    Ok(())
}

fn is_fit(subject: &str) -> bool {
    subject.len() <= MAX_SUBJECT_BYTES && !subject.contains('\0')
}

fn unfit(want: Want) -> Deny {
    Deny {
        bucket: Some(want.bucket.into()),
        kind: DenyKind::Spent.into(),
        retry_in_ms: UNFIT_MS,
        valid_for_ms: UNFIT_MS,
        asked: want.min_useful.saturating_add(want.available),
        ..Deny::default()
    }
}

/// The answer to a Hello, and what the process does not know of its own leases.
pub(super) fn welcome(welcome: Welcome, lineage: &str) -> Vec<LeaseDown> {
    let mut messages = vec![down(Message::Welcome(metering::Welcome {
        epoch: welcome.epoch,
        ttl_ms: TTL_MS,
        beat_ms: BEAT_MS,
        lineage: lineage.to_owned(),
        server_unix_ms: now_us() / 1000,
    }))];
    if !welcome.grants.is_empty() {
        messages.push(down(Message::Grants(Grants {
            grants: welcome.grants.into_iter().map(Grant::into).collect(),
            denials: Vec::new(),
            epoch: welcome.epoch,
        })));
    }
    messages
}

/// The answer to wants.
pub(super) fn grants(
    epoch: u64,
    answers: impl Iterator<Item = Answer>,
    mut denials: Vec<Deny>,
) -> LeaseDown {
    let mut grants = Vec::new();
    for answer in answers {
        grants.extend(answer.grant.map(metering::Grant::from));
        denials.extend(answer.deny.map(Deny::from));
    }
    down(Message::Grants(Grants {
        grants,
        denials,
        epoch,
    }))
}

/// The answer to a beat that is stored: nothing is granted.
pub(super) fn heard(epoch: u64) -> LeaseDown {
    grants(epoch, std::iter::empty(), Vec::new())
}

/// Why a process is not heard.
///
/// # Errors
/// When it has to say Hello again, on another stream.
pub(super) fn refusal(refusal: Refusal) -> Result<LeaseDown, Status> {
    match refusal {
        Refusal::Fenced { epoch } => Ok(down(Message::Fenced(Fenced { epoch }))),
        Refusal::Unknown => Err(Status::failed_precondition(
            "the process is not known in this epoch; say Hello again",
        )),
    }
}

/// No verdict on some buckets, or on a beat.
pub(super) fn unavailable(buckets: impl Iterator<Item = BucketKey>) -> LeaseDown {
    down(Message::Unavailable(Unavailable {
        buckets: buckets.map(metering::BucketKey::from).collect(),
    }))
}

/// Idle credit that is wanted back.
pub(super) fn recall(recalls: Vec<Recall>) -> LeaseDown {
    let buckets = recalls.into_iter().map(|recall| metering::RecalledBucket {
        bucket: Some(recall.bucket.into()),
        keep: recall.keep,
    });
    down(Message::Recall(metering::Recall {
        buckets: buckets.collect(),
    }))
}

fn down(message: Message) -> LeaseDown {
    LeaseDown {
        message: Some(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: BootId = BootId([1; 16]);

    fn bucket(limit: &str, subject: &str, window_start_s: i64) -> metering::BucketKey {
        metering::BucketKey {
            limit: limit.into(),
            subject: subject.into(),
            window_start_s,
        }
    }

    fn want(bucket: Option<metering::BucketKey>) -> metering::Wants {
        metering::Wants {
            epoch: 1,
            wants: vec![metering::Want {
                bucket,
                min_useful: 2,
                available: 1,
                ..metering::Want::default()
            }],
        }
    }

    #[test]
    fn what_no_node_may_send_is_refused_at_its_field() {
        let message = |result: Result<Asked, Status>| result.unwrap_err().message().to_owned();
        assert_eq!(
            message(wants(BOOT, want(None))),
            "wants[0].bucket: is required"
        );
        for limit in ["", "A", "a\0", &"a".repeat(65)] {
            let wanted = want(Some(bucket(limit, "", -1)));
            assert!(message(wants(BOOT, wanted)).starts_with("wants[0].bucket.limit: "));
        }
        for start_s in [-2, i64::MIN, MAX_WINDOW_START_S + 1, i64::MAX] {
            let wanted = want(Some(bucket("a", "", start_s)));
            assert!(message(wants(BOOT, wanted)).starts_with("wants[0].bucket.window_start_s: "));
        }
        let many = metering::Wants {
            epoch: 1,
            wants: vec![metering::Want::default(); MAX_WANTS + 1],
        };
        assert_eq!(message(wants(BOOT, many)), "wants: must be at most 5000");
        let late = metering::Wants {
            epoch: u64::MAX,
            wants: Vec::new(),
        };
        assert!(message(wants(BOOT, late)).starts_with("wants.epoch: "));
    }

    #[test]
    fn a_stream_begins_with_a_hello_that_makes_sense() {
        let refused = |message| hello(LeaseUp { message }).unwrap_err().message().to_owned();
        let ok = metering::Hello {
            boot_id: vec![1; 16],
            node: "gw-1".into(),
            ..metering::Hello::default()
        };
        assert!(refused(None).starts_with("hello: "));
        let beat = lease_up::Message::Beat(metering::Beat::default());
        assert!(refused(Some(beat)).starts_with("hello: "));
        let short = metering::Hello {
            boot_id: vec![1; 15],
            ..ok.clone()
        };
        assert_eq!(
            refused(Some(lease_up::Message::Hello(short))),
            "hello.boot_id: must be 16 bytes"
        );
        let odd = metering::Hello {
            node: "a\nb".into(),
            ..ok.clone()
        };
        assert!(refused(Some(lease_up::Message::Hello(odd))).starts_with("hello.node: "));
        let bare = metering::Hello {
            holdings: vec![metering::Holding::default()],
            ..ok
        };
        assert_eq!(
            refused(Some(lease_up::Message::Hello(bare))),
            "hello.holdings[0].bucket: is required"
        );
    }

    #[test]
    fn a_subject_that_cannot_be_kept_is_refused_and_the_rest_is_asked_for() {
        for subject in ["blue/a\0b", &"x".repeat(MAX_SUBJECT_BYTES + 1)] {
            let mut message = want(Some(bucket("a", subject, -1)));
            message
                .wants
                .extend(want(Some(bucket("a", "blue", -1))).wants);
            let asked = wants(BOOT, message).unwrap();
            assert_eq!(asked.holder.wants.len(), 1);
            let deny = &asked.denied[0];
            assert_eq!(deny.kind(), DenyKind::Spent);
            assert_eq!(deny.asked, 3);
            assert_eq!(deny.bucket.as_ref().unwrap().subject, subject);
        }
    }
}
