//! `turnpike usage reprice`.

use clap::Args;
use proto::admin::v1 as pb;
use serde_json::{Value, json};

use super::named;
use crate::command::Session;
use crate::moment::{Moment, Relative};
use crate::money::signed_usd;
use crate::output::Format;
use crate::table::{Column, Table};

#[derive(Debug, Args)]
pub(crate) struct Reprice {
    /// From: a length before now (24h, 7d; units w, d, h, m, s), RFC 3339, or a UTC date; rounded
    /// down to its 15-minute slot
    #[arg(long, value_name = "WHEN")]
    since: Relative,

    /// Up to, written as for --since, rounded up [default: now]
    #[arg(long, value_name = "WHEN")]
    until: Option<Relative>,

    /// Only this public model name
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// Only this provider
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,

    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// Show what would be entered
    #[arg(long)]
    dry_run: bool,

    /// A name of your own for this request: given again with the same request, nothing is entered
    /// twice
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    request_id: String,
}

// === impl Reprice ===

impl Reprice {
    pub(super) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let now = Moment::now();
        let until = self.until.map(|until| until.before(now)).transpose()?;
        let request = pb::RepriceUsageRequest {
            start_time: Some(self.since.before(now)?.to_wire()),
            end_time: until.map(Moment::to_wire),
            model: named("models/", self.model.as_deref()),
            provider: named("providers/", self.provider.as_deref()),
            reason: self.reason,
            dry_run: self.dry_run,
            request_id: self.request_id,
        };
        let link = session.link().await?;
        let answer = link.usage().reprice_usage(request).await;
        let answer = answer.map_err(|status| link.explain("reprice usage", status.into()))?;
        let answer = answer.into_inner();
        let output = &mut session.output;
        match output.format {
            Format::Json => output.json(&view(&answer))?,
            Format::Table => output.table(&table(&answer))?,
        }
        output.note(format_args!("{}", summary(&answer, self.dry_run)))?;
        Ok(())
    }
}

fn summary(answer: &pb::RepriceUsageResponse, dry_run: bool) -> String {
    let pb::RepriceUsageResponse {
        price_version,
        attempts,
        skipped_attempts,
        entries,
        ..
    } = answer;
    let entered = match (answer.repeated_request, dry_run) {
        (true, _) => "were entered when this request was made first",
        (false, true) => "would be entered",
        (false, false) => "entered",
    };
    let (from, to) = (signed_usd(answer.from_nusd), signed_usd(answer.to_nusd));
    format!(
        "{attempts} attempts, {skipped_attempts} left as they are; {from} USD is {to} USD by price \
         book {price_version}; {entries} corrections {entered}"
    )
}

fn table(answer: &pb::RepriceUsageResponse) -> Table {
    let mut table = Table::new(&[
        Column::text("PROVIDER"),
        Column::text("UPSTREAM MODEL"),
        Column::number("NEWLY PRICED"),
        Column::number("CORRECTION"),
    ]);
    for target in &answer.targets {
        table.push(vec![
            target.provider.clone(),
            target.upstream_model.clone(),
            target.priced_attempts.to_string(),
            signed_usd(target.correction_nusd),
        ]);
    }
    table
}

fn view(answer: &pb::RepriceUsageResponse) -> Value {
    let targets = answer.targets.iter().map(|target| {
        json!({
            "provider": target.provider,
            "upstreamModel": target.upstream_model,
            "pricedAttempts": target.priced_attempts,
            "correctionNusd": target.correction_nusd,
        })
    });
    json!({
        "priceVersion": answer.price_version,
        "attempts": answer.attempts,
        "skippedAttempts": answer.skipped_attempts,
        "fromNusd": answer.from_nusd,
        "toNusd": answer.to_nusd,
        "entries": answer.entries,
        "repeatedRequest": answer.repeated_request,
        "targets": targets.collect::<Vec<_>>(),
    })
}
