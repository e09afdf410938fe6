//! Terms of limits as nodes have them, and what publishing them does to their buckets.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_core::limit::Terms;
use prost::Message as _;
use proto::config::v1::Limit;
use sqlx::PgConnection;

use super::Missing;
use crate::stored::{from_unix_s, signed, to_unix_us, unsigned};
use crate::{Error, Store};

/// The database's time, and published terms by limit.
pub(super) struct Published {
    /// Unix microseconds.
    pub(super) now_us: i64,
    pub(super) terms: BTreeMap<String, Terms>,
}

/// Reads the terms of some limits.
pub(super) async fn read(
    tx: &mut PgConnection,
    limits: BTreeSet<&str>,
) -> Result<Published, Error> {
    let ids: Vec<String> = limits.into_iter().map(ToOwned::to_owned).collect();
    let rows = sqlx::query!(
        r#"select t.now as "now!", r.id as "id?", r.body
           from (select turnpike_now() as now) t
           left join published_resource r
             on r.kind = 'limit' and r.id = any($1::text[]) and r.body is not null"#,
        &ids,
    )
    .fetch_all(tx)
    .await?;
    let now_us = rows.first().map_or(0, |row| to_unix_us(row.now));
    let terms = rows
        .into_iter()
        .filter_map(|row| Some((row.id?, terms_of(&row.body?)?)))
        .collect();
    Ok(Published { now_us, terms })
}

fn terms_of(body: &[u8]) -> Option<Terms> {
    Terms::of(&Limit::decode(body).ok()?)
}

/// Brings the buckets of a limit to its published amount, in the transaction that publishes it.
/// Buckets that are past keep theirs, and so do those of a limit that is removed.
pub(crate) async fn apply(tx: &mut PgConnection, id: &str, body: &[u8]) -> Result<(), Error> {
    let Some(terms) = terms_of(body) else {
        return Ok(());
    };
    let rows = sqlx::query!(
        "select bucket_id from limit_bucket
         where limit_id = $1 and (window_end is null or window_end > turnpike_now())
           and amount <> $2
         order by bucket_id for no key update",
        id,
        signed(terms.amount),
    )
    .fetch_all(&mut *tx)
    .await?;
    let ids: Vec<i64> = rows.into_iter().map(|row| row.bucket_id).collect();
    sqlx::query!(
        "with changed as (
           update limit_bucket set amount = $2 where bucket_id = any($1)
           returning bucket_id, amount - settled - held - suspended as free
         )
         insert into limit_recall (bucket_id, keep, marked_at)
         select bucket_id, 0, turnpike_now() from changed where free < 0
         on conflict on constraint limit_recall_pkey
         do update set keep = excluded.keep, marked_at = excluded.marked_at",
        &ids,
        signed(terms.amount),
    )
    .execute(tx)
    .await?;
    Ok(())
}

impl Store {
    /// Makes buckets of published limits; those of limits that are not published are left out.
    pub(super) async fn make_buckets(&self, missing: &Missing) -> Result<(), Error> {
        crate::store::retry(|| async {
            let mut tx = self.begin("make_buckets").await?;
            let ids: Vec<String> = missing.keys().map(|key| key.limit.clone()).collect();
            // Shared with others who make buckets, and against whoever publishes another amount:
            // a bucket has either the new one, or is there to be given it.
            let rows = sqlx::query!(
                r#"select id, body as "body!" from published_resource
                   where kind = 'limit' and id = any($1) and body is not null
                   order by id for share"#,
                &ids,
            )
            .fetch_all(&mut *tx)
            .await?;
            let amounts: BTreeMap<String, u64> = rows
                .into_iter()
                .filter_map(|row| Some((row.id, terms_of(&row.body)?.amount)))
                .collect();
            insert(&mut tx, missing, &amounts).await?;
            Ok(tx.commit().await?)
        })
        .await
    }
}

async fn insert(
    tx: &mut PgConnection,
    missing: &Missing,
    amounts: &BTreeMap<String, u64>,
) -> Result<(), Error> {
    let (mut limits, mut subjects) = (Vec::new(), Vec::new());
    let (mut starts, mut ends, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for (key, span) in missing {
        let Some(amount) = amounts.get(&key.limit) else {
            continue;
        };
        limits.push(key.limit.clone());
        subjects.push(key.subject.clone());
        starts.push(from_unix_s(unsigned(span.start_s)));
        ends.push(span.end_s.map(|end_s| from_unix_s(unsigned(end_s))));
        sizes.push(signed(*amount));
    }
    // In key order, so that two that make the same buckets wait for each other in one direction.
    sqlx::query!(
        "insert into limit_bucket (limit_id, subject, window_start, window_end, amount)
         select * from unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[],
           $5::bigint[])
         on conflict on constraint limit_bucket_unique do nothing",
        &limits,
        &subjects,
        &starts,
        &ends as &[Option<time::OffsetDateTime>],
        &sizes,
    )
    .execute(tx)
    .await?;
    Ok(())
}
