//! `turnpike limits update`.

use clap::Args;

use super::super::Session;
use super::super::collection;
use super::{Outcome, note_selected};
use crate::amount::Amount;
use crate::resource::{Limit, LimitSpec};
use crate::wait::WaitArgs;

#[derive(Debug, Args)]
pub(crate) struct UpdateLimit {
    /// Id, as `list` shows it
    id: String,

    #[command(flatten)]
    change: LimitChange,

    #[command(flatten)]
    outcome: Outcome,

    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
struct LimitChange {
    /// Name for people
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,

    /// Public model names it applies to, or `prefix/*`; several with commas; replaces the list
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    models: Option<Vec<String>>,

    /// Apply it to every model
    #[arg(long, conflicts_with = "models")]
    all_models: bool,

    /// Providers it applies to; several with commas; replaces the list
    #[arg(long, value_name = "PROVIDER", value_delimiter = ',')]
    providers: Option<Vec<String>>,

    /// Apply it to every provider
    #[arg(long, conflicts_with = "providers")]
    all_providers: bool,

    /// Rules it applies to; several with commas; replaces the list
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    rules: Option<Vec<String>>,

    /// Apply it to every rule, and to requests without one
    #[arg(long, conflicts_with = "rules")]
    all_rules: bool,

    /// How much: 25usd or 0.50usd for money, else 10000, 10k or 2M
    #[arg(long, value_name = "AMOUNT")]
    amount: Option<Amount>,

    /// Lower `max_tokens` to what is left, where the request is a stream or sets it
    #[arg(long)]
    clamp: bool,

    /// Leave `max_tokens` alone
    #[arg(long, conflicts_with = "clamp")]
    no_clamp: bool,

    /// Percents of the amount at which an event is raised, rising; several with commas; replaces
    /// the list
    #[arg(long, value_name = "PERCENT", value_delimiter = ',')]
    thresholds: Option<Vec<u32>>,

    /// Raise no events
    #[arg(long, conflicts_with = "thresholds")]
    no_thresholds: bool,

    /// Hold nobody to it
    #[arg(long)]
    disable: bool,

    /// Hold everybody to it again
    #[arg(long, conflicts_with = "disable")]
    enable: bool,
}

impl UpdateLimit {
    pub(super) async fn run(self, session: &mut Session<'_>) -> anyhow::Result<()> {
        let Self {
            id,
            change,
            outcome,
            wait,
        } = self;
        let edit = |spec: &mut LimitSpec| {
            change.edit(spec);
            outcome.edit(spec);
        };
        let link = session.link().await?;
        let spec = collection::update_on::<Limit>(&link, session, &id, None, wait, edit).await?;
        note_selected(&link, session, &spec).await
    }
}

impl LimitChange {
    fn edit(self, spec: &mut LimitSpec) {
        replace(&mut spec.display_name, self.display_name, false);
        replace(&mut spec.models, self.models, self.all_models);
        replace(&mut spec.providers, self.providers, self.all_providers);
        replace(&mut spec.rules, self.rules, self.all_rules);
        replace(&mut spec.thresholds, self.thresholds, self.no_thresholds);
        spec.amount = self.amount.unwrap_or(spec.amount);
        spec.clamp = (spec.clamp || self.clamp) && !self.no_clamp;
        spec.disabled = (spec.disabled || self.disable) && !self.enable;
    }
}

fn replace<T: Default>(field: &mut T, value: Option<T>, clear: bool) {
    match value {
        Some(value) => *field = value,
        None if clear => *field = T::default(),
        None => {}
    }
}
