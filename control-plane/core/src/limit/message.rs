//! What holders say and are told; see `turnpike.metering.v1` for the meaning of each field.

use proto::metering::v1 as metering;

use crate::nodes::BootId;

/// Names a bucket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketKey {
    /// Id of the limit.
    pub limit: String,
    /// Empty for everything; else team or key id, or `<team>/<user>`.
    pub subject: String,
    /// Unix seconds; 0: the one bucket of a rate, of in-flight or of a lifetime. In a want, below
    /// 0: the window that is now.
    pub window_start_s: i64,
}

/// What a holder has of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    pub bucket: BucketKey,
    pub granted_total: u64,
    pub returned_total: u64,
}

/// Asks for credit, or gives some back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    pub bucket: BucketKey,
    /// Wished; at or below what is granted: nothing is asked for.
    pub granted_total: u64,
    pub returned_total: u64,
    /// Idle on the node.
    pub available: u64,
    pub demand_per_minute: u64,
    /// The smallest raise that helps.
    pub min_useful: u64,
    /// A request waits.
    pub urgent: bool,
    /// Of the window after the one named.
    pub next_window: bool,
}

/// What a record charges a bucket.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Charge {
    pub bucket: BucketKey,
    pub boot_id: BootId,
    /// 0: on no lease.
    pub epoch: u64,
    pub amount: u64,
}

/// A lease as it stands, with what is left in its bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// With the window that it is for.
    pub bucket: BucketKey,
    pub granted_total: u64,
    pub returned_total: u64,
    /// Free in the bucket; negative when it was exceeded.
    pub left: i64,
    /// 0: it has begun.
    pub starts_in_ms: u32,
    /// 0: it never ends.
    pub ends_in_ms: u64,
    pub amount: u64,
}

/// Why a want got nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DenyKind {
    /// What is settled leaves no room for the request.
    Spent,
    /// Others hold what it lacks.
    Reserved,
    /// There is no such limit.
    NoLimit,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deny {
    pub bucket: BucketKey,
    pub kind: DenyKind,
    pub retry_in_ms: u32,
    pub valid_for_ms: u32,
    /// Free in the bucket; negative when it was exceeded.
    pub left: i64,
    /// 0: it never ends.
    pub ends_in_ms: u64,
    pub amount: u64,
    /// What the want needed in all: who needs less was not refused.
    pub asked: u64,
}

/// What a want gets: at least one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub grant: Option<Grant>,
    pub deny: Option<Deny>,
}

/// A limit that is not there is asked about again this late.
const NO_LIMIT_MS: u32 = 10_000;

impl Answer {
    /// To a want of a limit that is not known.
    pub fn no_limit(bucket: BucketKey) -> Self {
        Self {
            grant: None,
            deny: Some(Deny {
                bucket,
                kind: DenyKind::NoLimit,
                retry_in_ms: NO_LIMIT_MS,
                valid_for_ms: NO_LIMIT_MS,
                left: 0,
                ends_in_ms: 0,
                amount: 0,
                asked: 0,
            }),
        }
    }
}

impl From<metering::BucketKey> for BucketKey {
    fn from(key: metering::BucketKey) -> Self {
        Self {
            limit: key.limit,
            subject: key.subject,
            window_start_s: key.window_start_s,
        }
    }
}

impl From<BucketKey> for metering::BucketKey {
    fn from(key: BucketKey) -> Self {
        Self {
            limit: key.limit,
            subject: key.subject,
            window_start_s: key.window_start_s,
        }
    }
}

impl Holding {
    /// Whether it has the totals of a lease.
    pub fn says(&self, grant: &Grant) -> bool {
        self.bucket == grant.bucket
            && self.granted_total == grant.granted_total
            && self.returned_total == grant.returned_total
    }

    /// What was used of it, once nothing is reserved.
    pub fn used(&self) -> u64 {
        self.granted_total.saturating_sub(self.returned_total)
    }

    /// From the wire; none without a bucket.
    pub fn from_wire(holding: metering::Holding) -> Option<Self> {
        Some(Self {
            bucket: holding.bucket?.into(),
            granted_total: holding.granted_total,
            returned_total: holding.returned_total,
        })
    }
}

impl Want {
    /// From the wire; none without a bucket.
    pub fn from_wire(want: metering::Want) -> Option<Self> {
        Some(Self {
            bucket: want.bucket?.into(),
            granted_total: want.granted_total,
            returned_total: want.returned_total,
            available: want.available,
            demand_per_minute: want.demand_per_minute,
            min_useful: want.min_useful,
            urgent: want.urgent,
            next_window: want.next_window,
        })
    }
}

impl From<Grant> for metering::Grant {
    fn from(grant: Grant) -> Self {
        Self {
            bucket: Some(grant.bucket.into()),
            granted_total: grant.granted_total,
            returned_total: grant.returned_total,
            left: grant.left,
            starts_in_ms: grant.starts_in_ms,
            ends_in_ms: grant.ends_in_ms,
            amount: grant.amount,
        }
    }
}

impl From<Deny> for metering::Deny {
    fn from(deny: Deny) -> Self {
        let kind = match deny.kind {
            DenyKind::Spent => metering::DenyKind::Spent,
            DenyKind::Reserved => metering::DenyKind::Reserved,
            DenyKind::NoLimit => metering::DenyKind::NoLimit,
        };
        Self {
            bucket: Some(deny.bucket.into()),
            kind: kind.into(),
            retry_in_ms: deny.retry_in_ms,
            valid_for_ms: deny.valid_for_ms,
            left: deny.left,
            ends_in_ms: deny.ends_in_ms,
            amount: deny.amount,
            asked: deny.asked,
        }
    }
}

impl Charge {
    /// The charges of a record of a process, whose exchange was admitted at a moment in Unix
    /// microseconds: one without a window is charged to the one of then, which its key names by
    /// that moment.
    pub fn of_record(
        boot_id: BootId,
        admitted_at_us: i64,
        charges: &[metering::Charge],
    ) -> Vec<Self> {
        let admitted_at_s = admitted_at_us.div_euclid(1_000_000).max(0);
        charges
            .iter()
            .map(|charge| Self {
                bucket: BucketKey {
                    limit: charge.limit.replace('\0', "\u{fffd}"),
                    // Postgres holds no NUL in a text, and a record that it refuses stops its shard.
                    subject: charge.subject.replace('\0', "\u{fffd}"),
                    window_start_s: match charge.window_start_s {
                        ..0 => admitted_at_s,
                        start_s => start_s,
                    },
                },
                boot_id,
                epoch: charge.epoch,
                amount: charge.settled.min(super::MAX_AMOUNT),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_in_a_charge_is_replaced_so_that_its_record_can_be_stored() {
        let charge = metering::Charge {
            limit: "l\0".into(),
            subject: "team/a\0b".into(),
            settled: 7,
            ..metering::Charge::default()
        };
        let charges = Charge::of_record(BootId([1; 16]), 0, &[charge]);
        let bucket = &charges[0].bucket;
        assert_eq!(bucket.limit, "l\u{fffd}");
        assert_eq!(bucket.subject, "team/a\u{fffd}b");
    }
}
