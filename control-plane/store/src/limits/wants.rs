//! Wants: one transaction answers those of any number of holders.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_core::limit::{Answer, BucketKey, Holder, LeaseKey, Refusal, Standing, Want};
use control_plane_core::nodes::BootId;
use sqlx::PgConnection;

use super::holders;
use super::locked::{self, Locked};
use super::published::{self, Published};
use super::{Attempt, Missing};
use crate::stored::{from_unix_us, signed};
use crate::{Error, Store};

/// What one process wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderWants {
    pub boot_id: BootId,
    pub epoch: u64,
    pub wants: Vec<Want>,
}

/// The answers to one process, in the order of its wants; or why it has to say Hello first.
type Answers = Result<Vec<Answer>, Refusal>;

impl Store {
    /// Answers the wants of some processes, in order, in one transaction; a process may be named
    /// once. They may be repeated, at any replica.
    ///
    /// # Errors
    /// When Postgres is away; then there is no verdict, and what is held may be used on.
    pub async fn want(&self, asked: &[HolderWants]) -> Result<Vec<Answers>, Error> {
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        self.with_buckets(|| async {
            let mut tx = self.begin("want").await?;
            let attempt = answer_all(&mut tx, asked).await?;
            if matches!(attempt, Attempt::Done(_)) {
                tx.commit().await?;
            }
            Ok(attempt)
        })
        .await
    }
}

async fn answer_all(
    tx: &mut PgConnection,
    asked: &[HolderWants],
) -> Result<Attempt<Vec<Answers>>, Error> {
    let known = holders::hold(tx, asked.iter().map(|one| one.boot_id)).await?;
    let heard: Vec<Result<Holder, Refusal>> = asked
        .iter()
        .map(|one| {
            let holder = known.get(&one.boot_id).ok_or(Refusal::Unknown)?;
            holder.hear(one.epoch).map(|()| *holder)
        })
        .collect();
    let wants = || {
        let heard = asked.iter().zip(&heard).filter(|(_, heard)| heard.is_ok());
        heard.flat_map(|(one, _)| &one.wants)
    };
    let limits = wants().map(|want| want.bucket.limit.as_str()).collect();
    let published = published::read(tx, limits).await?;
    let mut keys = Missing::new();
    for want in wants() {
        if let Some(terms) = published.terms.get(&want.bucket.limit) {
            let (key, span) = terms.bucket_of(&want.bucket, want.next_window, published.now_us);
            keys.insert(key, span);
        }
    }
    let mut locked = locked::by_keys(tx, &keys.keys().cloned().collect()).await?;
    keys.retain(|key, _| !locked.contains(key));
    if !keys.is_empty() {
        return Ok(Attempt::Missing(keys));
    }
    let lease_keys: BTreeSet<LeaseKey> = asked.iter().map(HolderWants::key).collect();
    locked.read_leases(tx, &lease_keys).await?;
    locked
        .count_others(tx, &lease_keys, published.now_us)
        .await?;
    let mut recalls = BTreeMap::new();
    let mut answers = Vec::new();
    for (one, heard) in asked.iter().zip(heard) {
        answers.push(match heard {
            Err(refusal) => Err(refusal),
            Ok(holder) => {
                if holder.standing == Standing::Lost {
                    holders::revive(tx, one.boot_id, published.now_us).await?;
                }
                Ok(answer_one(
                    one,
                    holder,
                    &mut locked,
                    &published,
                    &mut recalls,
                ))
            }
        });
    }
    locked.write(tx).await?;
    mark(tx, &recalls, published.now_us).await?;
    Ok(Attempt::Done(answers))
}

fn answer_one(
    one: &HolderWants,
    holder: Holder,
    locked: &mut Locked,
    published: &Published,
    recalls: &mut BTreeMap<i64, u64>,
) -> Vec<Answer> {
    let answer = |want: &Want| {
        let terms = published.terms.get(&want.bucket.limit)?;
        let now_us = published.now_us;
        let (key, _): (BucketKey, _) = terms.bucket_of(&want.bucket, want.next_window, now_us);
        let bucket_id = locked.id_of(&key)?;
        let bucket = locked.get_mut(&key)?;
        let (answer, keep) = bucket.want(terms, one.key(), holder.draining, want, now_us);
        if let Some(keep) = keep {
            recalls.insert(bucket_id, keep);
        }
        Some(answer)
    };
    let mut answer = answer;
    one.wants
        .iter()
        .map(|want| answer(want).unwrap_or_else(|| Answer::no_limit(want.bucket.clone())))
        .collect()
}

/// Marks buckets for the recall of idle credit.
async fn mark(
    tx: &mut PgConnection,
    recalls: &BTreeMap<i64, u64>,
    now_us: i64,
) -> Result<(), Error> {
    if recalls.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = recalls.keys().copied().collect();
    let keeps: Vec<i64> = recalls.values().map(|keep| signed(*keep)).collect();
    sqlx::query!(
        "insert into limit_recall (bucket_id, keep, marked_at)
         select bucket_id, keep, $3 from unnest($1::bigint[], $2::bigint[]) as m (bucket_id, keep)
         on conflict on constraint limit_recall_pkey
         do update set keep = excluded.keep, marked_at = excluded.marked_at",
        &ids,
        &keeps,
        from_unix_us(now_us),
    )
    .execute(tx)
    .await?;
    Ok(())
}

impl HolderWants {
    fn key(&self) -> LeaseKey {
        LeaseKey {
            boot_id: self.boot_id,
            epoch: self.epoch,
        }
    }
}
