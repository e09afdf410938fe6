//! Charges of records, in the transaction that takes the records.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_core::limit::{BucketKey, Charge, Kind, LeaseKey};
use sqlx::PgConnection;

use super::locked;
use super::published;
use super::{Attempt, Missing};
use crate::Error;

/// What came of charges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Charges on limits that are not known.
    pub(crate) unknown: u64,
}

/// Takes in the charges of records, or tells which buckets have to be made first. The cursors of
/// the records are locked.
pub(crate) async fn settle(
    tx: &mut PgConnection,
    charges: &[Charge],
) -> Result<Attempt<Settled>, Error> {
    let mut settled = Settled::default();
    if charges.is_empty() {
        return Ok(Attempt::Done(settled));
    }
    let limits = charges.iter().map(|c| c.bucket.limit.as_str()).collect();
    let terms = published::read(tx, limits).await?.terms;
    let mut makeable = Missing::new();
    let mut sums: BTreeMap<(BucketKey, LeaseKey), u64> = BTreeMap::new();
    for charge in charges {
        let terms = terms.get(&charge.bucket.limit);
        if terms.is_some_and(|terms| terms.kind != Kind::Counted) {
            continue;
        }
        let key = match terms {
            None => charge.bucket.clone(),
            Some(terms) => {
                let (key, span) = terms.bucket_of(&charge.bucket, false, 0);
                makeable.insert(key.clone(), span);
                key
            }
        };
        let lease = LeaseKey {
            boot_id: charge.boot_id,
            epoch: charge.epoch,
        };
        let sum = sums.entry((key, lease)).or_default();
        *sum = sum.saturating_add(charge.amount);
    }
    let keys: BTreeSet<BucketKey> = sums.keys().map(|(key, _)| key.clone()).collect();
    let mut locked = locked::by_keys(tx, &keys).await?;
    makeable.retain(|key, _| !locked.contains(key));
    if !makeable.is_empty() {
        return Ok(Attempt::Missing(makeable));
    }
    let leases: BTreeSet<LeaseKey> = sums.keys().map(|(_, lease)| *lease).collect();
    locked.read_leases(tx, &leases).await?;
    for ((key, lease), amount) in sums {
        match locked.get_mut(&key) {
            Some(bucket) => bucket.settle(lease, amount),
            None => settled.unknown += 1,
        }
    }
    locked.write(tx).await?;
    Ok(Attempt::Done(settled))
}
