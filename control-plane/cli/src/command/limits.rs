//! `turnpike limits`.

mod buckets;
mod change;
mod events;
mod status;
mod worst;

use clap::{Args, Subcommand};

use self::buckets::{AdjustBucket, ListBuckets};
use self::change::UpdateLimit;
use self::events::{ListEvents, ListUnaccounted};
use self::status::LimitStatus;
use super::Session;
use super::collection::{self, DeleteArgs, GetArgs};
use crate::amount::Amount;
use crate::link::Link;
use crate::presence::Presence;
use crate::resource::{
    Enforcement, Kind, Limit, LimitSpec, LimitSubject, LimitUnit, LimitWindow, OnExceed,
    OnUnavailable, OnUnbounded,
};
use crate::wait::WaitArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum LimitsCommand {
    /// Create a limit
    ///
    /// Every limit that applies to a request must hold. Amounts of money are written as 25usd or
    /// 0.50usd, all others as 10000, 10k or 2M.
    ///
    /// `--enforcement strict` reserves the most that a request can use before it is sent: its bytes
    /// as input tokens, its `max_tokens` as output, at the target's highest price. It is never
    /// exceeded as long as the provider keeps to `max_tokens` and reports what it used; a provider
    /// that does neither is outside of what a gateway can bound.
    ///
    /// While no control plane can be asked, nodes go on with the credit that they hold of a limit.
    /// Beyond that they answer 503, unless `--on-unavailable allow` lets each node go on up to
    /// `--outage-allowance` more.
    #[command(after_help = "\
Examples:
  turnpike limits create acme-monthly --subject team --subject-id acme --unit money \\
    --amount 250usd --window month --time-zone Europe/Berlin --thresholds 80,100
  turnpike limits create key-rpm --subject key --unit requests --amount 600 --window minute
  turnpike limits create in-flight --subject everything --unit in-flight --amount 200 --window none
  turnpike limits create user-tokens --subject end-user --unit tokens --amount 2M --window day \\
    --on-exceed reject --wait")]
    Create(Box<CreateLimit>),
    /// List every limit with its buckets: what is settled, lent out and left of each
    ///
    /// SETTLED is used and recorded. HELD is lent to running Envoys, for requests that are under
    /// way and those to come; what they do not use comes back. SUSPENDED was held by an Envoy that
    /// was lost: it counts as used until that one's records arrive, and what was on a lost disk stays so.
    /// REMAINING is the amount less these three.
    ///
    /// With -o json, limits are printed without buckets, so that they can be applied again;
    /// `turnpike limits buckets -o json` has the buckets.
    #[command(after_help = "\
Examples:
  turnpike limits list
  turnpike limits list -o json | jq -r '.[] | select(.spec.unit == \"money\") | .id'")]
    List(ListLimits),
    /// Show one limit, with the defaults that hold where it sets nothing
    ///
    /// With -o json, only what it sets is printed, so that it can be applied again.
    #[command(after_help = "Examples:\n  turnpike limits get acme-monthly")]
    Get(GetArgs),
    /// Change a limit; what is not named stays as it is
    ///
    /// Subject, unit, window and time zone are fixed: make another limit for another of these.
    #[command(
        override_usage = "turnpike limits update [OPTIONS] <ID>",
        after_help = "\
Examples:
  turnpike limits update acme-monthly --amount 400usd --wait
  turnpike limits update key-rpm --disable"
    )]
    Update(Box<UpdateLimit>),
    /// Delete a limit; its buckets are kept, and count again if it comes back
    #[command(after_help = "Examples:\n  turnpike limits delete key-rpm --wait")]
    Delete(DeleteArgs),
    /// Show how limits stand, and by how much each can be exceeded at worst
    ///
    /// Used is in the ledger. Lent is held by running Envoys, for requests that are under way and
    /// those to come. Suspended was held by an Envoy that was lost; what was given up on stays so
    /// until the window ends. Left is the amount less these three.
    ///
    /// The worst case is what may be used beyond the amount from now on, by the published config and
    /// the Envoys known now. It counts on providers that keep to `max_tokens` and to their models'
    /// context windows, and report what they used. Money is rounded up to the cent; -o json is exact.
    #[command(after_help = "\
Examples:
  turnpike limits status
  turnpike limits status acme-monthly --subject acme
  turnpike limits status -o json | jq '.[] | select(.overshoot.amount == null) | .limit'")]
    Status(LimitStatus),
    /// List buckets: the account of one limit for one subject in one window
    ///
    /// Buckets of limits that were deleted are left out, unless --all is given: in which unit they
    /// count is not known any more, so that money is printed in nano-USD.
    ///
    /// SETTLED is used and recorded. HELD is lent to running Envoys, for requests that are under
    /// way and those to come; what they do not use comes back. SUSPENDED was held by an Envoy that
    /// was lost: it counts as used until that one's records arrive, and what was on a lost disk stays so.
    /// REMAINING is the amount less these three.
    #[command(after_help = "\
Examples:
  turnpike limits buckets acme-monthly
  turnpike limits buckets user-tokens --subject acme/joe --past -o json")]
    Buckets(ListBuckets),
    /// List thresholds that were passed, newest first, and whether the webhook took the news
    ///
    /// Each threshold of a bucket is raised once. While the control plane has an --event-webhook, an
    /// event is tried for a day, first after seconds and then hourly; FAILURE is why the last try that
    /// failed did.
    #[command(after_help = "\
Examples:
  turnpike limits events acme-monthly
  turnpike limits events --undelivered --limit 0 -o json | jq -r '.[].failure'")]
    Events(ListEvents),
    /// List what Envoys that were lost took with them: used at most, and in no record
    ///
    /// It counts as used in its window. Records that still arrive are taken off it. What is known
    /// from elsewhere is corrected by `turnpike limits adjust`.
    #[command(after_help = "\
Examples:
  turnpike limits unaccounted
  turnpike limits unaccounted acme-monthly -o json | jq -r '.[].node'")]
    Unaccounted(ListUnaccounted),
    /// Correct what is settled in the bucket that is now
    ///
    /// The correction is kept with its reason, and audited.
    #[command(after_help = "\
Examples:
  turnpike limits adjust acme-monthly --subject acme --delta=-5usd --reason 'refund of ticket 17'
  turnpike limits adjust user-tokens --subject acme/joe --delta 20k --reason 'used elsewhere'")]
    Adjust(AdjustBucket),
}

#[derive(Debug, Args)]
pub(crate) struct ListLimits {
    /// Print at most N limits; 0: everything
    #[arg(long, value_name = "N", default_value_t = 0)]
    limit: usize,
}

#[derive(Debug, Args)]
pub(crate) struct CreateLimit {
    /// Id, 1-64 characters of a-z, 0-9 and `-`
    id: String,

    /// Name for people
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    display_name: String,

    /// Who shares a bucket
    #[arg(long, value_enum, value_name = "SUBJECT")]
    subject: LimitSubject,

    /// Team or key id, or TEAM/USER for an end user [default: each one has a bucket of its own]
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    subject_id: String,

    /// Public model names it applies to, or `prefix/*`; several with commas [default: all]
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    models: Vec<String>,

    /// Providers it applies to; several with commas [default: all]
    #[arg(long, value_name = "PROVIDER", value_delimiter = ',')]
    providers: Vec<String>,

    /// Rules it applies to; several with commas [default: all, and requests without one]
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    rules: Vec<String>,

    /// What is counted
    #[arg(long, value_enum, value_name = "UNIT")]
    unit: LimitUnit,

    /// How much: 25usd or 0.50usd for money, else 10000, 10k or 2M
    #[arg(long, value_name = "AMOUNT")]
    amount: Amount,

    /// Over what time; seconds and minutes are rates, the longer ones calendar windows
    #[arg(long, value_enum, value_name = "WINDOW")]
    window: LimitWindow,

    /// IANA name of the zone in which calendar windows begin [default: UTC]
    #[arg(
        long,
        value_name = "ZONE",
        default_value = "",
        hide_default_value = true
    )]
    time_zone: String,

    #[command(flatten)]
    outcome: Outcome,

    /// Lower `max_tokens` to what is left, where the request is a stream or sets it
    #[arg(long)]
    clamp: bool,

    /// Percents of the amount at which an event is raised, rising; several with commas
    #[arg(long, value_name = "PERCENT", value_delimiter = ',')]
    thresholds: Vec<u32>,

    #[command(flatten)]
    wait: WaitArgs,
}

/// What happens near and beyond the amount; the same at creation and change.
#[derive(Debug, Args)]
pub(super) struct Outcome {
    /// How tokens and money are held [default: guarded for money, estimated for tokens]
    #[arg(long, value_enum, value_name = "HOW")]
    enforcement: Option<Enforcement>,

    /// What happens to a request that does not fit [default: reject]
    #[arg(long, value_enum, value_name = "WHAT")]
    on_exceed: Option<OnExceed>,

    /// What happens at the edge while no control plane can be asked [default: reject]
    #[arg(long, value_enum, value_name = "WHAT")]
    on_unavailable: Option<OnUnavailable>,

    /// With `--on-unavailable allow`: how much each node may let through in one outage
    #[arg(long, value_name = "AMOUNT")]
    outage_allowance: Option<Amount>,

    /// What happens to a request whose cost has no upper bound [default: reject]
    #[arg(long, value_enum, value_name = "WHAT")]
    on_unbounded: Option<OnUnbounded>,

    /// Of rates: how much may come at once [default: a quarter of the amount, at least 1]
    #[arg(long, value_name = "AMOUNT")]
    burst: Option<Amount>,
}

impl LimitsCommand {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        match self {
            Self::Create(args) => args.run(session).await,
            Self::List(args) => buckets::list_limits(session, args.limit).await,
            Self::Get(args) => args.run::<Limit>(session).await,
            Self::Update(args) => args.run(session).await,
            Self::Delete(args) => args.run::<Limit>(session).await,
            Self::Status(args) => args.run(session).await,
            Self::Buckets(args) => args.run(session).await,
            Self::Events(args) => args.run(session).await,
            Self::Unaccounted(args) => args.run(session).await,
            Self::Adjust(args) => args.run(session).await,
        }
    }
}

impl CreateLimit {
    async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let mut spec = LimitSpec {
            display_name: self.display_name,
            subject: self.subject,
            subject_id: self.subject_id,
            models: self.models,
            providers: self.providers,
            rules: self.rules,
            unit: self.unit,
            amount: self.amount,
            window: self.window,
            time_zone: self.time_zone,
            enforcement: None,
            on_exceed: None,
            on_unavailable: None,
            outage_allowance: Amount::default(),
            on_unbounded: None,
            burst: Amount::default(),
            clamp: self.clamp,
            thresholds: self.thresholds,
            disabled: false,
        };
        self.outcome.edit(&mut spec);
        let link = session.link().await?;
        let wait = self.wait;
        collection::create_on::<Limit>(&link, session, &self.id, &spec, None, wait).await?;
        note_selected(&link, session, &spec).await
    }
}

/// What a limit selects may be yet to come; a typo in it is found here or never.
async fn note_selected(
    link: &Link,
    session: &mut Session<'_>,
    spec: &LimitSpec,
) -> anyhow::Result<()> {
    let mut presence = Presence::new(link);
    for (kind, ids) in [
        (Kind::Model, &spec.models),
        (Kind::Provider, &spec.providers),
    ] {
        let ids = ids.iter().map(String::as_str);
        presence.note_absent(&mut session.output, kind, ids).await?;
    }
    Ok(())
}

impl Outcome {
    pub(super) fn edit(self, spec: &mut LimitSpec) {
        spec.enforcement = self.enforcement.or(spec.enforcement);
        spec.on_exceed = self.on_exceed.or(spec.on_exceed);
        spec.on_unavailable = self.on_unavailable.or(spec.on_unavailable);
        spec.outage_allowance = self.outage_allowance.unwrap_or(spec.outage_allowance);
        if spec.on_unavailable == Some(OnUnavailable::Reject) {
            spec.outage_allowance = Amount::default();
        }
        spec.on_unbounded = self.on_unbounded.or(spec.on_unbounded);
        spec.burst = self.burst.unwrap_or(spec.burst);
    }
}
