//! What is read and written to price usage anew.

use control_plane_core::ledger::{Corrected, Correction, Repricing, RollupSums};
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Corrections, KeyColumns, Span, slot_of};
use crate::Error;
use crate::stored::to_unix_us;

/// Records read at a time.
const PAGE: i64 = 2_000;
/// Corrections written at a time.
const WRITTEN: usize = 5_000;

/// Adds every record of the span. Those that don't decode are in no sum, and so not here.
pub(super) async fn add_records(
    tx: &mut PgConnection,
    span: Span,
    repricing: &mut Repricing<'_>,
) -> Result<(), Error> {
    let mut after = (span.start, Uuid::nil(), 0_i64, 0_i64);
    loop {
        let (admitted_at, boot_id, shard, seq) = after;
        let rows = sqlx::query!(
            "select admitted_at, boot_id, shard, seq, record from usage_record
             where admitted_at < $1 and decoded
               and day between ($2::timestamptz at time zone 'UTC')::date
                 and ($1::timestamptz at time zone 'UTC')::date
               and (admitted_at, boot_id, shard, seq) > ($2, $3, $4, $5)
             order by admitted_at, boot_id, shard, seq limit $6",
            span.end,
            admitted_at,
            boot_id,
            shard,
            seq,
            PAGE,
        )
        .fetch_all(&mut *tx)
        .await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = (last.admitted_at, last.boot_id, last.shard, last.seq);
        for row in rows {
            let added = repricing.add_record(&row.record, to_unix_us(row.admitted_at));
            if let Err(undecodable) = added {
                tracing::warn!(seq = row.seq, %undecodable, "a record is left as it is");
            }
        }
    }
}

/// Adds the roll-ups of days of the span whose records are gone.
pub(super) async fn add_sums(
    tx: &mut PgConnection,
    span: Span,
    repricing: &mut Repricing<'_>,
) -> Result<(), Error> {
    let rows = sqlx::query!(
        r#"select slot, team_id, virtual_key_id, rule, model, provider_id, upstream_model,
                  estimated, price_version, attempts, input_tokens, cached_input_tokens,
                  cache_write_tokens, output_tokens, reasoning_tokens, estimated_attempts,
                  unpriced_attempts, cost_nusd
           from usage_rollup
           where slot >= $1 and slot < $2
             and (slot at time zone 'UTC')::date not in (
               select d::date from generate_series(
                 ($1::timestamptz at time zone 'UTC')::date,
                 ($2::timestamptz at time zone 'UTC')::date, interval '1 day') as d
               where exists (select from usage_record where day = d::date))"#,
        span.start,
        span.end,
    )
    .fetch_all(tx)
    .await?;
    for row in rows {
        let sums = RollupSums {
            requests: 0,
            attempts: row.attempts,
            input_tokens: row.input_tokens,
            cached_input_tokens: row.cached_input_tokens,
            cache_write_tokens: row.cache_write_tokens,
            output_tokens: row.output_tokens,
            reasoning_tokens: row.reasoning_tokens,
            estimated_attempts: row.estimated_attempts,
            unpriced_attempts: row.unpriced_attempts,
            cost_nusd: row.cost_nusd,
        };
        let key = KeyColumns {
            slot: row.slot,
            team: row.team_id,
            virtual_key: row.virtual_key_id,
            rule: row.rule,
            model: row.model,
            provider: row.provider_id,
            upstream_model: row.upstream_model,
            estimated: row.estimated,
            price_version: row.price_version,
        };
        repricing.add_sums(key.into_key(), &sums);
    }
    Ok(())
}

/// What was corrected so far, by row.
pub(super) async fn corrected(tx: &mut PgConnection, span: Span) -> Result<Corrections, Error> {
    let rows = sqlx::query!(
        r#"select slot, team_id, virtual_key_id, rule, model, provider_id, upstream_model,
                  estimated, price_version,
                  sum(delta_nusd)::bigint as "delta_nusd!",
                  sum(priced_attempts)::bigint as "priced_attempts!"
           from usage_correction where slot >= $1 and slot < $2
           group by 1, 2, 3, 4, 5, 6, 7, 8, 9"#,
        span.start,
        span.end,
    )
    .fetch_all(tx)
    .await?;
    let each = rows.into_iter().map(|row| {
        let key = KeyColumns {
            slot: row.slot,
            team: row.team_id,
            virtual_key: row.virtual_key_id,
            rule: row.rule,
            model: row.model,
            provider: row.provider_id,
            upstream_model: row.upstream_model,
            estimated: row.estimated,
            price_version: row.price_version,
        };
        let corrected = Corrected {
            delta_nusd: row.delta_nusd,
            priced_attempts: row.priced_attempts,
        };
        (key.into_key(), corrected)
    });
    Ok(each.collect())
}

/// Enters corrections.
pub(super) async fn insert(
    tx: &mut PgConnection,
    reprice_id: i64,
    corrections: &[Correction],
) -> Result<(), Error> {
    for page in corrections.chunks(WRITTEN) {
        let texts = |of: fn(&Correction) -> &String| -> Vec<String> {
            page.iter().map(|it| of(it).clone()).collect()
        };
        let numbers = |of: fn(&Correction) -> i64| -> Vec<i64> { page.iter().map(of).collect() };
        let slots: Vec<OffsetDateTime> = page.iter().map(|it| slot_of(&it.key)).collect();
        let estimated: Vec<bool> = page.iter().map(|it| it.key.estimated).collect();
        sqlx::query!(
            "insert into usage_correction (slot, team_id, virtual_key_id, rule, model, provider_id,
               upstream_model, estimated, price_version, delta_nusd, priced_attempts,
               usage_reprice_id)
             select t.*, $12::bigint from unnest($1::timestamptz[], $2::text[], $3::text[],
               $4::text[], $5::text[], $6::text[], $7::text[], $8::boolean[], $9::bigint[],
               $10::bigint[], $11::bigint[]) as t",
            &slots,
            &texts(|it| &it.key.team),
            &texts(|it| &it.key.virtual_key),
            &texts(|it| &it.key.rule),
            &texts(|it| &it.key.model),
            &texts(|it| &it.key.provider),
            &texts(|it| &it.key.upstream_model),
            &estimated,
            &numbers(|it| it.key.price_version),
            &numbers(|it| it.delta_nusd),
            &numbers(|it| it.priced_attempts),
            reprice_id,
        )
        .execute(&mut *tx)
        .await?;
    }
    Ok(())
}
