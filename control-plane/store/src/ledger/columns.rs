//! Rows of the ledger as columns: one statement inserts any number of them.

use control_plane_core::ledger::{RollupSums, Rollups, Shard, Summary};
use sqlx::PgConnection;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use crate::Error;
use crate::stored::{from_unix_us, signed};

/// Sums of rows, one column a sum.
#[derive(Default)]
struct SumColumns {
    requests: Vec<i64>,
    attempts: Vec<i64>,
    input_tokens: Vec<i64>,
    cached_input_tokens: Vec<i64>,
    cache_write_tokens: Vec<i64>,
    output_tokens: Vec<i64>,
    reasoning_tokens: Vec<i64>,
    estimated_attempts: Vec<i64>,
    unpriced_attempts: Vec<i64>,
    cost_nusd: Vec<i64>,
}

impl SumColumns {
    fn push(&mut self, sums: &RollupSums) {
        self.requests.push(sums.requests);
        self.attempts.push(sums.attempts);
        self.input_tokens.push(sums.input_tokens);
        self.cached_input_tokens.push(sums.cached_input_tokens);
        self.cache_write_tokens.push(sums.cache_write_tokens);
        self.output_tokens.push(sums.output_tokens);
        self.reasoning_tokens.push(sums.reasoning_tokens);
        self.estimated_attempts.push(sums.estimated_attempts);
        self.unpriced_attempts.push(sums.unpriced_attempts);
        self.cost_nusd.push(sums.cost_nusd);
    }
}

/// Rows of `usage_record`.
#[derive(Default)]
pub(super) struct RecordColumns {
    days: Vec<Date>,
    boot_ids: Vec<Uuid>,
    shards: Vec<i64>,
    seqs: Vec<i64>,
    admitted_at: Vec<OffsetDateTime>,
    received_at: Vec<OffsetDateTime>,
    decoded: Vec<bool>,
    request_ids: Vec<String>,
    teams: Vec<String>,
    virtual_keys: Vec<String>,
    end_users: Vec<String>,
    models: Vec<String>,
    providers: Vec<String>,
    statuses: Vec<i32>,
    ended: Vec<i32>,
    price_versions: Vec<i64>,
    sums: SumColumns,
    records: Vec<Vec<u8>>,
}

impl RecordColumns {
    /// Adds a record.
    pub(super) fn push(
        &mut self,
        shard: Shard,
        seq: u64,
        received_at_us: i64,
        summary: &Summary,
        record: &[u8],
    ) {
        let admitted_at = from_unix_us(summary.admitted_at_us);
        self.days.push(admitted_at.date());
        self.boot_ids.push(Uuid::from_bytes(shard.boot_id.0));
        self.shards.push(i64::from(shard.number));
        self.seqs.push(signed(seq));
        self.admitted_at.push(admitted_at);
        self.received_at.push(from_unix_us(received_at_us));
        self.decoded.push(true);
        self.request_ids.push(summary.request_id.clone());
        self.teams.push(summary.team.clone());
        self.virtual_keys.push(summary.virtual_key.clone());
        self.end_users.push(summary.end_user.clone());
        self.models.push(summary.model.clone());
        self.providers.push(summary.provider.clone());
        self.statuses.push(summary.status);
        self.ended.push(summary.ended);
        self.price_versions.push(summary.price_version);
        self.sums.push(&summary.sums);
        self.records.push(record.to_vec());
    }

    /// Adds bytes that are no record, filed by their arrival.
    pub(super) fn push_raw(&mut self, shard: Shard, seq: u64, received_at_us: i64, record: &[u8]) {
        let nothing = Summary {
            admitted_at_us: received_at_us,
            request_id: String::new(),
            team: String::new(),
            virtual_key: String::new(),
            end_user: String::new(),
            model: String::new(),
            provider: String::new(),
            status: 0,
            ended: 0,
            price_version: 0,
            sums: RollupSums::default(),
            charges: Vec::new(),
        };
        self.push(shard, seq, received_at_us, &nothing, record);
        if let Some(decoded) = self.decoded.last_mut() {
            *decoded = false;
        }
    }

    /// Inserts the rows. A row that is there already is a fault of ours and fails the
    /// transaction: cursors, not conflicts, keep records single.
    pub(super) async fn insert(self, tx: &mut PgConnection) -> Result<(), Error> {
        if self.seqs.is_empty() {
            return Ok(());
        }
        sqlx::query!(
            "insert into usage_record (day, boot_id, shard, seq, admitted_at, received_at, decoded,
               request_id, team_id, virtual_key_id, end_user, model, provider_id, status, ended,
               price_version, attempts, input_tokens, cached_input_tokens, cache_write_tokens,
               output_tokens, reasoning_tokens, estimated_attempts, unpriced_attempts, cost_nusd,
               record)
             select * from unnest($1::date[], $2::uuid[], $3::bigint[], $4::bigint[],
               $5::timestamptz[], $6::timestamptz[], $7::boolean[], $8::text[], $9::text[],
               $10::text[], $11::text[], $12::text[], $13::text[], $14::integer[],
               $15::integer[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[],
               $20::bigint[], $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[],
               $25::bigint[], $26::bytea[])",
            &self.days,
            &self.boot_ids,
            &self.shards,
            &self.seqs,
            &self.admitted_at,
            &self.received_at,
            &self.decoded,
            &self.request_ids,
            &self.teams,
            &self.virtual_keys,
            &self.end_users,
            &self.models,
            &self.providers,
            &self.statuses,
            &self.ended,
            &self.price_versions,
            &self.sums.attempts,
            &self.sums.input_tokens,
            &self.sums.cached_input_tokens,
            &self.sums.cache_write_tokens,
            &self.sums.output_tokens,
            &self.sums.reasoning_tokens,
            &self.sums.estimated_attempts,
            &self.sums.unpriced_attempts,
            &self.sums.cost_nusd,
            &self.records,
        )
        .execute(tx)
        .await?;
        Ok(())
    }
}

/// Rows of `usage_rollup`, in the order of their key: two transactions that meet in several rows
/// lock them in the same order.
#[derive(Default)]
pub(super) struct RollupColumns {
    slots: Vec<OffsetDateTime>,
    teams: Vec<String>,
    virtual_keys: Vec<String>,
    rules: Vec<String>,
    models: Vec<String>,
    providers: Vec<String>,
    upstream_models: Vec<String>,
    estimated: Vec<bool>,
    price_versions: Vec<i64>,
    sums: SumColumns,
}

impl RollupColumns {
    /// The rows of some roll-ups.
    pub(super) fn new(rollups: &Rollups) -> Self {
        let mut columns = Self::default();
        for (key, sums) in rollups.iter() {
            columns
                .slots
                .push(from_unix_us(key.slot_s.saturating_mul(1_000_000)));
            columns.teams.push(key.team.clone());
            columns.virtual_keys.push(key.virtual_key.clone());
            columns.rules.push(key.rule.clone());
            columns.models.push(key.model.clone());
            columns.providers.push(key.provider.clone());
            columns.upstream_models.push(key.upstream_model.clone());
            columns.estimated.push(key.estimated);
            columns.price_versions.push(key.price_version);
            columns.sums.push(sums);
        }
        columns
    }

    /// Adds the rows to what is there.
    pub(super) async fn upsert(self, tx: &mut PgConnection) -> Result<(), Error> {
        if self.slots.is_empty() {
            return Ok(());
        }
        sqlx::query!(
            "insert into usage_rollup as r (slot, team_id, virtual_key_id, rule, model,
               provider_id, upstream_model, estimated, price_version, requests, attempts,
               input_tokens, cached_input_tokens, cache_write_tokens, output_tokens,
               reasoning_tokens, estimated_attempts, unpriced_attempts, cost_nusd)
             select * from unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[],
               $5::text[], $6::text[], $7::text[], $8::boolean[], $9::bigint[], $10::bigint[],
               $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
               $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[])
             on conflict on constraint usage_rollup_pkey do update set
               requests = saturating_add(r.requests, excluded.requests),
               attempts = saturating_add(r.attempts, excluded.attempts),
               input_tokens = saturating_add(r.input_tokens, excluded.input_tokens),
               cached_input_tokens =
                 saturating_add(r.cached_input_tokens, excluded.cached_input_tokens),
               cache_write_tokens =
                 saturating_add(r.cache_write_tokens, excluded.cache_write_tokens),
               output_tokens = saturating_add(r.output_tokens, excluded.output_tokens),
               reasoning_tokens = saturating_add(r.reasoning_tokens, excluded.reasoning_tokens),
               estimated_attempts =
                 saturating_add(r.estimated_attempts, excluded.estimated_attempts),
               unpriced_attempts =
                 saturating_add(r.unpriced_attempts, excluded.unpriced_attempts),
               cost_nusd = saturating_add(r.cost_nusd, excluded.cost_nusd)",
            &self.slots,
            &self.teams,
            &self.virtual_keys,
            &self.rules,
            &self.models,
            &self.providers,
            &self.upstream_models,
            &self.estimated,
            &self.price_versions,
            &self.sums.requests,
            &self.sums.attempts,
            &self.sums.input_tokens,
            &self.sums.cached_input_tokens,
            &self.sums.cache_write_tokens,
            &self.sums.output_tokens,
            &self.sums.reasoning_tokens,
            &self.sums.estimated_attempts,
            &self.sums.unpriced_attempts,
            &self.sums.cost_nusd,
        )
        .execute(tx)
        .await?;
        Ok(())
    }
}
