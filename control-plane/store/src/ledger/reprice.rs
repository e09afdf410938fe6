//! Usage priced anew: corrections beside the roll-ups, in one transaction.

use std::collections::BTreeMap;

use control_plane_core::fault::Faults;
use control_plane_core::ledger::{
    Corrected, Correction, PriceList, RepriceFilter, Repriced, Repricing, RollupKey, SLOT_S,
};
use serde::{Deserialize, Serialize};
use sqlx::{PgConnection, PgTransaction};
use time::{Duration, OffsetDateTime};

use super::query::slot_start;
use crate::audit::{self, Entry};
use crate::config::{from_json, load_price_book, load_settings, to_json};
use crate::store::retry;
use crate::stored::{from_unix_s, signed, unsigned};
use crate::{Actor, Error, Store};

mod rows;

/// Which usage to price anew, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepriceRequest {
    /// From this moment, rounded down to its slot.
    pub start: OffsetDateTime,
    /// Before this moment, rounded up to a slot; none: now.
    pub end: Option<OffsetDateTime>,
    pub filter: RepriceFilter,
    pub reason: String,
    /// Computes the same and enters nothing.
    pub dry_run: bool,
    /// A request that was made before under the same id changes nothing. Empty: none.
    pub request_id: String,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepriceAnswer {
    /// Version of the price book that was used; 0: there is none.
    pub price_version: u64,
    /// Attempts with tokens.
    pub attempts: i64,
    /// Of these, those whose cost stays as it was booked.
    pub skipped_attempts: i64,
    /// Nano-USD, earlier corrections included.
    pub from_nusd: i64,
    pub to_nusd: i64,
    pub entries: u64,
    /// Largest difference first, at most 100.
    pub targets: Vec<RepricedTarget>,
    /// The answer of an earlier request.
    #[serde(skip)]
    pub is_repeated: bool,
}

/// The difference at one target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepricedTarget {
    pub provider: String,
    pub upstream_model: String,
    /// Attempts that had no known price and have one now.
    pub priced_attempts: i64,
    pub delta_nusd: i64,
}

const MAX_TARGETS: usize = 100;
const MAX_REASON_BYTES: usize = 256;
const MAX_REQUEST_ID_BYTES: usize = 64;
const MAX_SPAN: Duration = Duration::days(400);
const RESOURCE: &str = "usage";

/// Slots from, inclusive, to, exclusive.
#[derive(Clone, Copy)]
struct Span {
    start: OffsetDateTime,
    end: OffsetDateTime,
}

impl Store {
    /// Computes what usage costs by the newest price book and settings, and enters the difference
    /// to what is booked and was corrected so far.
    ///
    /// # Errors
    /// [`Error::Invalid`], also when the id belongs to another request; or when Postgres is away.
    pub async fn reprice_usage(
        &self,
        actor: &Actor,
        request: &RepriceRequest,
    ) -> Result<RepriceAnswer, Error> {
        check(request)?;
        retry(|| self.reprice_once(actor, request)).await
    }

    async fn reprice_once(
        &self,
        actor: &Actor,
        request: &RepriceRequest,
    ) -> Result<RepriceAnswer, Error> {
        let mut tx = self.begin_reprice().await?;
        if let Some(answer) = earlier_answer(&mut tx, request).await? {
            return Ok(answer);
        }
        let span = span(&mut tx, request).await?;
        let prices = prices(&mut tx).await?;
        let mut repricing = Repricing::new(&prices, &request.filter);
        rows::add_records(&mut tx, span, &mut repricing).await?;
        rows::add_sums(&mut tx, span, &mut repricing).await?;
        let corrected = rows::corrected(&mut tx, span).await?;
        let repriced = repricing.finish(&corrected);
        let answer = answer(prices.version(), &repriced);
        if request.dry_run {
            return Ok(answer);
        }
        let id = enter(&mut tx, actor, request, &answer).await?;
        rows::insert(&mut tx, id, &repriced.corrections).await?;
        audit(&mut tx, actor, request, &answer).await?;
        tx.commit().await?;
        Ok(answer)
    }

    /// One after the other, each on a view of everything as of one moment after those before.
    async fn begin_reprice(&self) -> Result<PgTransaction<'static>, Error> {
        let mut tx = self.pool.begin().await?;
        sqlx::raw_sql("set transaction isolation level repeatable read")
            .execute(&mut *tx)
            .await?;
        // The view is that of the first statement that reads: the lock comes before it.
        sqlx::raw_sql("lock table usage_reprice in share row exclusive mode")
            .execute(&mut *tx)
            .await?;
        sqlx::query!("select set_config('turnpike.transaction', 'reprice_usage', true)")
            .fetch_one(&mut *tx)
            .await?;
        Ok(tx)
    }
}

fn check(request: &RepriceRequest) -> Result<(), Error> {
    let mut faults = Faults::default();
    let is_text = |text: &str| !text.chars().any(char::is_control);
    faults.require(
        (1..=MAX_REASON_BYTES).contains(&request.reason.len()) && is_text(&request.reason),
        "reason",
        "must be 1-256 bytes without controls",
    );
    faults.require(
        request.request_id.len() <= MAX_REQUEST_ID_BYTES && is_text(&request.request_id),
        "request_id",
        "must be at most 64 bytes without controls",
    );
    faults.into_result().map_err(Error::Invalid)
}

async fn earlier_answer(
    tx: &mut PgConnection,
    request: &RepriceRequest,
) -> Result<Option<RepriceAnswer>, Error> {
    if request.dry_run || request.request_id.is_empty() {
        return Ok(None);
    }
    let row = sqlx::query!(
        r#"select request::text as "request!", answer::text as "answer!"
           from usage_reprice where request_id = $1"#,
        request.request_id,
    )
    .fetch_optional(tx)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let earlier: serde_json::Value = from_json(&row.request, RESOURCE)?;
    if earlier != asked(request) {
        let message = "was used for another request";
        return Err(Error::invalid("request_id", message));
    }
    let answer: RepriceAnswer = from_json(&row.answer, RESOURCE)?;
    Ok(Some(RepriceAnswer {
        is_repeated: true,
        ..answer
    }))
}

/// The request as it is kept, to know it again.
fn asked(request: &RepriceRequest) -> serde_json::Value {
    let micros = |moment: OffsetDateTime| crate::stored::to_unix_us(moment);
    serde_json::json!({
        "start_us": micros(request.start),
        "end_us": request.end.map(micros),
        "model": request.filter.model,
        "provider": request.filter.provider,
        "reason": request.reason,
    })
}

async fn span(tx: &mut PgConnection, request: &RepriceRequest) -> Result<Span, Error> {
    let row = sqlx::query!(r#"select turnpike_now() as "now!""#)
        .fetch_one(tx)
        .await?;
    let last = request.end.unwrap_or(row.now) + Duration::seconds(SLOT_S);
    let span = Span {
        start: slot_start(request.start),
        end: slot_start(last - Duration::microseconds(1)),
    };
    let mut faults = Faults::default();
    faults.require(
        span.start < span.end,
        "end_time",
        "must be after start_time",
    );
    faults.require(
        span.end - span.start <= MAX_SPAN,
        "start_time",
        "must be at most 400 days before end_time",
    );
    faults.into_result().map_err(Error::Invalid)?;
    Ok(span)
}

async fn prices(tx: &mut PgConnection) -> Result<PriceList, Error> {
    let book = load_price_book(&mut *tx).await?.resource;
    let settings = load_settings(tx).await?.resource;
    let book = (book.version > 0).then(|| book.to_config());
    // What nodes leave out is left out here.
    let (prices, _) = PriceList::new(book.as_ref(), Some(&settings.to_config()));
    Ok(prices)
}

fn answer(price_version: u64, repriced: &Repriced) -> RepriceAnswer {
    let mut by_target = BTreeMap::<(&str, &str), RepricedTarget>::new();
    for Correction {
        key,
        delta_nusd,
        priced_attempts,
    } in &repriced.corrections
    {
        let target = by_target
            .entry((&key.provider, &key.upstream_model))
            .or_default();
        target.delta_nusd = target.delta_nusd.saturating_add(*delta_nusd);
        target.priced_attempts = target.priced_attempts.saturating_add(*priced_attempts);
    }
    let named = by_target.into_iter();
    let mut targets: Vec<_> = named
        .map(|((provider, upstream_model), sums)| RepricedTarget {
            provider: provider.to_owned(),
            upstream_model: upstream_model.to_owned(),
            ..sums
        })
        .collect();
    targets.sort_by_key(|target| std::cmp::Reverse(target.delta_nusd.unsigned_abs()));
    targets.truncate(MAX_TARGETS);
    RepriceAnswer {
        price_version,
        attempts: repriced.attempts,
        skipped_attempts: repriced.skipped_attempts,
        from_nusd: repriced.from_nusd,
        to_nusd: repriced.to_nusd,
        entries: repriced.corrections.len() as u64,
        targets,
        is_repeated: false,
    }
}

async fn enter(
    tx: &mut PgConnection,
    actor: &Actor,
    request: &RepriceRequest,
    answer: &RepriceAnswer,
) -> Result<i64, Error> {
    let row = sqlx::query!(
        "insert into usage_reprice (request_id, request, answer, price_version, reason, actor)
         values (nullif($1, ''), $2::text::jsonb, $3::text::jsonb, $4, $5, $6)
         returning usage_reprice_id",
        request.request_id,
        asked(request).to_string(),
        to_json(answer, RESOURCE)?,
        signed(answer.price_version),
        request.reason,
        actor.name(),
    )
    .fetch_one(tx)
    .await?;
    Ok(row.usage_reprice_id)
}

async fn audit(
    tx: &mut PgConnection,
    actor: &Actor,
    request: &RepriceRequest,
    answer: &RepriceAnswer,
) -> Result<(), Error> {
    let row = sqlx::query!("select version from config_state")
        .fetch_one(&mut *tx)
        .await?;
    let state = serde_json::json!({ "request": asked(request), "answer": answer });
    let entry = Entry {
        actor: actor.name(),
        method: "RepriceUsage",
        resource: RESOURCE,
        config_version: unsigned(row.version),
        state: &state.to_string(),
    };
    audit::write(tx, &entry).await
}

/// The row of the roll-ups that a line of SQL names.
struct KeyColumns {
    slot: OffsetDateTime,
    team: String,
    virtual_key: String,
    rule: String,
    model: String,
    provider: String,
    upstream_model: String,
    estimated: bool,
    price_version: i64,
}

impl KeyColumns {
    fn into_key(self) -> RollupKey {
        RollupKey {
            slot_s: self.slot.unix_timestamp(),
            team: self.team,
            virtual_key: self.virtual_key,
            rule: self.rule,
            model: self.model,
            provider: self.provider,
            upstream_model: self.upstream_model,
            estimated: self.estimated,
            price_version: self.price_version,
        }
    }
}

fn slot_of(key: &RollupKey) -> OffsetDateTime {
    from_unix_s(unsigned(key.slot_s))
}

type Corrections = BTreeMap<RollupKey, Corrected>;
