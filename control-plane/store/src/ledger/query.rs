//! Sums over the roll-ups.

use control_plane_core::ledger::{RollupSums, SLOT_S};
use time::{Duration, OffsetDateTime};

use crate::{Error, Store};

/// What usage to sum up, and by what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// From this moment, rounded down to its slot; none: 24 hours ago.
    pub start: Option<OffsetDateTime>,
    /// Before this moment; none: no end.
    pub end: Option<OffsetDateTime>,
    pub group_by: GroupBy,
    /// Only of this team, this key, this model.
    pub team: Option<String>,
    pub virtual_key: Option<String>,
    pub model: Option<String>,
}

/// The dimensions of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a set of dimensions, each in or out"
)]
pub struct GroupBy {
    pub team: bool,
    pub virtual_key: bool,
    pub model: bool,
    pub provider: bool,
    /// By 15 minutes.
    pub slot: bool,
    /// By UTC day; of no effect with `slot`.
    pub day: bool,
}

/// A sum; dimensions that are not grouped by are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    pub team: String,
    pub virtual_key: String,
    pub model: String,
    pub provider: String,
    /// Start of the slot or day.
    pub slot: Option<OffsetDateTime>,
    /// As booked, but for attempts that corrections found a price for: these are not unpriced.
    pub sums: RollupSums,
    /// Nano-USD that corrections add.
    pub correction_nusd: i64,
}

const MAX_ROWS: usize = 100_000;

impl Store {
    /// Sums over roll-ups, in the order of their dimensions.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there would be more than 100,000 rows, or when Postgres is away.
    pub async fn query_usage(&self, query: &UsageQuery) -> Result<Vec<UsageRow>, Error> {
        let by = query.group_by;
        let rows = sqlx::query_as!(
            Row,
            r#"select
                 case when $6 then team_id else '' end as "team!",
                 case when $7 then virtual_key_id else '' end as "virtual_key!",
                 case when $8 then model else '' end as "model!",
                 case when $9 then provider_id else '' end as "provider!",
                 case when $10 then slot when $11 then date_trunc('day', slot, 'UTC') end as slot,
                 least(sum(requests), 9223372036854775807)::bigint as "requests!",
                 least(sum(attempts), 9223372036854775807)::bigint as "attempts!",
                 least(sum(input_tokens), 9223372036854775807)::bigint as "input_tokens!",
                 least(sum(cached_input_tokens), 9223372036854775807)::bigint
                   as "cached_input_tokens!",
                 least(sum(cache_write_tokens), 9223372036854775807)::bigint
                   as "cache_write_tokens!",
                 least(sum(output_tokens), 9223372036854775807)::bigint as "output_tokens!",
                 least(sum(reasoning_tokens), 9223372036854775807)::bigint as "reasoning_tokens!",
                 least(sum(estimated_attempts), 9223372036854775807)::bigint
                   as "estimated_attempts!",
                 greatest(least(sum(unpriced_attempts), 9223372036854775807), 0)::bigint
                   as "unpriced_attempts!",
                 least(sum(cost_nusd), 9223372036854775807)::bigint as "cost_nusd!",
                 greatest(least(sum(delta_nusd), 9223372036854775807),
                   -9223372036854775808)::bigint as "correction_nusd!"
               from (
                 select slot, team_id, virtual_key_id, model, provider_id, requests, attempts,
                        input_tokens, cached_input_tokens, cache_write_tokens, output_tokens,
                        reasoning_tokens, estimated_attempts, unpriced_attempts, cost_nusd,
                        0::bigint as delta_nusd
                 from usage_rollup
                 union all
                 select slot, team_id, virtual_key_id, model, provider_id, 0, 0, 0, 0, 0, 0, 0, 0,
                        -priced_attempts, 0, delta_nusd
                 from usage_correction
               ) as booked_and_corrected
               where slot >= coalesce($1, turnpike_now() - interval '24 hours 15 minutes')
                 and slot < coalesce($2, 'infinity'::timestamptz)
                 and ($3::text is null or team_id = $3)
                 and ($4::text is null or virtual_key_id = $4)
                 and ($5::text is null or model = $5)
               group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5 limit 100001"#,
            query.start.map(slot_start),
            query.end,
            query.team,
            query.virtual_key,
            query.model,
            by.team,
            by.virtual_key,
            by.model,
            by.provider,
            by.slot,
            by.day,
        )
        .fetch_all(&self.pool)
        .await?;
        if rows.len() > MAX_ROWS {
            return Err(Error::invalid(
                "group_by",
                "gives more than 100,000 rows: choose a shorter time or fewer dimensions",
            ));
        }
        Ok(rows.into_iter().map(Row::into_usage).collect())
    }
}

pub(super) fn slot_start(moment: OffsetDateTime) -> OffsetDateTime {
    let into_slot = moment.unix_timestamp().rem_euclid(SLOT_S);
    moment - Duration::seconds(into_slot) - Duration::nanoseconds(i64::from(moment.nanosecond()))
}

struct Row {
    team: String,
    virtual_key: String,
    model: String,
    provider: String,
    slot: Option<OffsetDateTime>,
    requests: i64,
    attempts: i64,
    input_tokens: i64,
    cached_input_tokens: i64,
    cache_write_tokens: i64,
    output_tokens: i64,
    reasoning_tokens: i64,
    estimated_attempts: i64,
    unpriced_attempts: i64,
    cost_nusd: i64,
    correction_nusd: i64,
}

impl Row {
    fn into_usage(self) -> UsageRow {
        UsageRow {
            team: self.team,
            virtual_key: self.virtual_key,
            model: self.model,
            provider: self.provider,
            slot: self.slot,
            sums: RollupSums {
                requests: self.requests,
                attempts: self.attempts,
                input_tokens: self.input_tokens,
                cached_input_tokens: self.cached_input_tokens,
                cache_write_tokens: self.cache_write_tokens,
                output_tokens: self.output_tokens,
                reasoning_tokens: self.reasoning_tokens,
                estimated_attempts: self.estimated_attempts,
                unpriced_attempts: self.unpriced_attempts,
                cost_nusd: self.cost_nusd,
            },
            correction_nusd: self.correction_nusd,
        }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::slot_start;

    #[test]
    fn a_start_is_rounded_down_to_its_slot() {
        for (moment, slot) in [
            (
                datetime!(2026-03-01 10:14:59.999999 UTC),
                datetime!(2026-03-01 10:00 UTC),
            ),
            (
                datetime!(2026-03-01 10:15 UTC),
                datetime!(2026-03-01 10:15 UTC),
            ),
            (
                datetime!(1969-12-31 23:59:59.5 UTC),
                datetime!(1969-12-31 23:45 UTC),
            ),
        ] {
            assert_eq!(slot_start(moment), slot);
        }
    }
}
