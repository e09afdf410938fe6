//! By how much a limit can be exceeded at worst, for whoever pays the bill.

use proto::admin::v1 as pb;
use proto::admin::v1::OvershootCause as Cause;
use serde::Serialize;

use crate::amount::Amount;
use crate::resource::{LimitSpec, LimitUnit, LimitWindow};

const MODEL_PREFIX: &str = "models/";
const NUSD_PER_CENT: u64 = 10_000_000;

/// The bound as `-o json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorstView<'a> {
    /// Null: no number bounds it.
    amount: Option<Amount>,
    parts: Vec<PartView<'a>>,
    /// The same in words, as the table has it.
    words: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PartView<'a> {
    cause: &'static str,
    /// Null: no number bounds it.
    each: Option<Amount>,
    /// Requests or nodes; null: no number bounds it.
    count: Option<u64>,
    missing: &'a str,
}

pub(super) fn view<'a>(
    overshoot: &'a pb::Overshoot,
    bucket: &pb::Bucket,
    spec: &LimitSpec,
) -> WorstView<'a> {
    let amount = |value: Option<u64>| value.map(|value| Amount::from_wire(spec.unit, value));
    let parts = overshoot.parts.iter().map(|part| PartView {
        cause: word(part.cause()),
        each: amount(part.each),
        count: part.count,
        missing: &part.missing,
    });
    WorstView {
        amount: amount(overshoot.amount),
        parts: parts.collect(),
        words: words(overshoot, bucket, spec),
    }
}

fn word(cause: Cause) -> &'static str {
    match cause {
        Cause::Unspecified => "unknown",
        Cause::Disabled => "disabled",
        Cause::Warning => "warning",
        Cause::Estimates => "estimates",
        Cause::Unpriced => "unpriced",
        Cause::Outage => "outage",
        Cause::Burst => "burst",
    }
}

/// One line that says it, and one for each cause.
pub(super) fn words(
    overshoot: &pb::Overshoot,
    bucket: &pb::Bucket,
    spec: &LimitSpec,
) -> Vec<String> {
    let first = match overshoot.amount {
        Some(0) => exact(spec),
        Some(over) => {
            // After a correction or a lower amount, more than the amount may be used or lent.
            let taken = bucket.amount.saturating_sub(bucket.remaining.min(0));
            let whole = u64::try_from(taken).unwrap_or(0);
            let (over, all) = (shown(spec, over), shown(spec, whole.saturating_add(over)));
            let when = when(spec.window);
            format!("exceeded by at most {over}: no more than {all} {when}")
        }
        None => "no number bounds it".to_owned(),
    };
    let causes = overshoot.parts.iter().flat_map(|part| because(part, spec));
    std::iter::once(first).chain(causes).collect()
}

fn when(window: LimitWindow) -> String {
    match window {
        LimitWindow::None => "at a time".to_owned(),
        LimitWindow::Second | LimitWindow::Minute => format!("in any {window}"),
        LimitWindow::Hour
        | LimitWindow::Day
        | LimitWindow::Week
        | LimitWindow::Month
        | LimitWindow::Lifetime => "in all".to_owned(),
    }
}

fn exact(spec: &LimitSpec) -> String {
    match spec.unit {
        LimitUnit::Requests | LimitUnit::InFlight => "never exceeded".to_owned(),
        _ => "never exceeded, as long as providers keep to `max_tokens` and report what they used"
            .to_owned(),
    }
}

fn because(part: &pb::OvershootPart, spec: &LimitSpec) -> Vec<String> {
    let each = part.each.map(|each| shown(spec, each));
    match part.cause() {
        Cause::Unspecified => vec!["a cause that this `turnpike` does not know".to_owned()],
        Cause::Disabled => vec!["the limit is disabled and holds nobody".to_owned()],
        Cause::Warning => {
            vec!["the limit only warns: --on-exceed warn lets all through".to_owned()]
        }
        Cause::Estimates => estimates(part, each),
        Cause::Unpriced => vec![format!(
            "{} has no price: what it costs is not counted; enter it in the price book, or set \
             onUnknownPrice to deny or default",
            part.missing
        )],
        Cause::Outage => vec![format!(
            "{} on each of {} Envoys, anew in each outage: what --on-unavailable allow lets \
             through while no control plane can be asked",
            each.unwrap_or_default(),
            part.count.unwrap_or_default(),
        )],
        Cause::Burst => vec![format!(
            "{} may come at once before the even pace holds: --burst",
            each.unwrap_or_default()
        )],
    }
}

fn estimates(part: &pb::OvershootPart, each: Option<String>) -> Vec<String> {
    let mut lines = vec![match (&each, part.count) {
        (Some(each), Some(count)) => format!(
            "{each} by each of {count} requests that may be open at a time: they reserve what such \
             requests usually use, and each may use up to its model's context window for each \
             answer that it asks for; streams of a guarded limit are cut long before"
        ),
        _ => "requests that are open when the amount is reached: they reserve what such requests \
              usually use, and may use more; --enforcement strict reserves the most that they can"
            .to_owned(),
    }];
    if let (Some(each), None) = (&each, part.count) {
        lines.push(format!(
            "each of them may use up to {each} for each answer that it asks for, but nothing bounds \
             how many are open: make a limit with --unit in-flight for the same subject"
        ));
    }
    if each.is_none() {
        let model = part.missing.strip_prefix(MODEL_PREFIX);
        let model = model.unwrap_or(&part.missing);
        lines.push(format!(
            "model {model} has no context window, so that nothing bounds one request: \
             `turnpike models update {model} --context-window TOKENS`"
        ));
    }
    lines
}

/// Money is rounded up to the cent.
fn shown(spec: &LimitSpec, value: u64) -> String {
    let value = match spec.unit {
        LimitUnit::Money => value.div_ceil(NUSD_PER_CENT).saturating_mul(NUSD_PER_CENT),
        _ => value,
    };
    let amount = Amount::from_wire(spec.unit, value);
    match spec.unit {
        LimitUnit::Money => amount.to_string(),
        LimitUnit::InFlight => format!("{amount} requests"),
        unit => format!("{amount} {unit}"),
    }
}
