//! From a model's name to a plan: the targets that may answer, in the order they are tried.

use filter_llm::api::Api;
use filter_llm::estimate;
use filter_llm::request::Needs;
use proto::config::v1::{Capability, Effort};

use crate::authenticate::Caller;
use crate::config::Compiled;
use crate::config::models::{AUTO, Capabilities, Model, Target};
use crate::config::providers::Provider;
use crate::config::rules::PLAN_ATTEMPTS;
use crate::error::Refusal;
use crate::forward;
use crate::health::{Health, Standing};
use crate::text;

/// What routing looks at.
pub(crate) struct Wish<'a> {
    /// The API that the client calls.
    pub(crate) api: Api,
    /// `model` as the client wrote it.
    pub(crate) model: &'a str,
    pub(crate) reasoning_effort: Option<&'a str>,
    pub(crate) attributes: &'a Attributes,
    pub(crate) needs: Needs,
    pub(crate) text_bytes: u64,
    /// When it is asked, which prices depend on.
    pub(crate) unix_s: u64,
    /// The same, by the monotonic clock.
    pub(crate) mono_us: u64,
    /// Who has failed.
    pub(crate) health: &'a Health,
}

/// Attributes of a request; of two with one name the first counts.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Vec<(String, String)>);

impl Attributes {
    pub(crate) const fn new(attributes: Vec<(String, String)>) -> Self {
        Self(attributes)
    }

    pub(crate) fn push(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// Takes every one of a name out, to be used as something other than an attribute.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let mut taken = None;
        self.0.retain_mut(|(other, value)| {
            let is_kept = other != name;
            if !is_kept && taken.is_none() {
                taken = Some(std::mem::take(value));
            }
            is_kept
        });
        taken
    }

    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.iter()
            .find(|&(other, _)| other == name)
            .map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// What routing decided.
#[derive(Debug)]
pub(crate) struct Route {
    /// At least one. Those without hosts are passed over, so there may be more than attempts.
    pub(crate) plan: Vec<Planned>,
    /// Of those of a plan without models for requests that others refuse.
    max_attempts: usize,
    /// Index of the rule that matched.
    pub(crate) rule: Option<usize>,
    pub(crate) effort: Effort,
}

impl Route {
    /// Attempts that may be made, before or after a provider said that the request itself is not
    /// for it: twice as many then, if there are models for such requests.
    pub(crate) fn most_attempts(&self, has_turned: bool) -> usize {
        let has_chain = || {
            self.plan
                .iter()
                .any(|planned| planned.after != After::Failure)
        };
        let times = 1 + usize::from(has_turned && has_chain());
        self.max_attempts.saturating_mul(times)
    }
}

/// One attempt that may be made, by index into the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) model: usize,
    /// Index into the model's targets.
    pub(crate) target: usize,
    /// `None`: the provider takes none.
    pub(crate) credential: Option<usize>,
    pub(crate) after: After,
}

/// What an attempt may follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing, or any failure of those before that another target may do better at.
    #[default]
    Failure,
    /// A prompt that was too long for those before.
    ContextLength,
    /// Content that a policy of those before refused.
    ContentPolicy,
}

/// Makes the plan. `draw` chooses among a caller's credentials and is uniform over all of `u64`.
pub(crate) fn route(
    config: &Compiled,
    caller: Caller,
    wish: &Wish<'_>,
    draw: u64,
) -> Result<Route, Refusal> {
    let asked_effort = wish.reasoning_effort.and_then(effort_of);
    let choice = match auto_suffix(wish.model) {
        Some(suffix) => choose_by_rules(config, suffix.or(asked_effort), wish)?,
        None => choose_by_name(config, caller, asked_effort, wish)?,
    };
    let mut plan = Planning {
        config,
        caller,
        wish,
        draw,
        after: After::Failure,
        plan: Vec::new(),
        rejected: Rejected::default(),
    };
    for &model in choice.models(config) {
        plan.add_model(model, choice.required_effort);
    }
    plan.add_other_credentials();
    plan.order_by_health();
    if plan.plan.is_empty() {
        return Err(plan.rejected.refusal(wish));
    }
    let mut all = std::mem::take(&mut plan.plan);
    for (after, models) in choice.chains(config) {
        if models.is_empty() {
            continue;
        }
        plan.after = after;
        for &model in models {
            plan.add_model(model, choice.required_effort);
        }
        plan.order_by_health();
        all.append(&mut plan.plan);
    }
    Ok(Route {
        plan: all,
        max_attempts: choice.max_attempts,
        rule: choice.rule,
        effort: choice.effort,
    })
}

/// The models that answer, and how they were found.
struct Choice {
    rule: Option<usize>,
    /// The one model of a public name that no rule claims.
    named: [usize; 1],
    effort: Effort,
    /// The effort that models must serve; a named model need serve only one that was asked for.
    required_effort: Option<Effort>,
    max_attempts: usize,
}

impl Choice {
    fn models<'a>(&'a self, config: &'a Compiled) -> &'a [usize] {
        match self.rule.and_then(|rule| config.rules.rule(rule)) {
            Some(rule) => &rule.models,
            None => &self.named,
        }
    }

    /// The models that answer what the others refuse.
    fn chains<'a>(&self, config: &'a Compiled) -> [(After, &'a [usize]); 2] {
        let rule = self.rule.and_then(|rule| config.rules.rule(rule));
        let (long, refused) = rule.map_or((&[][..], &[][..]), |rule| {
            (
                &rule.context_length_models[..],
                &rule.content_policy_models[..],
            )
        });
        [
            (After::ContextLength, long),
            (After::ContentPolicy, refused),
        ]
    }
}

fn choose_by_rules(
    config: &Compiled,
    effort: Option<Effort>,
    wish: &Wish<'_>,
) -> Result<Choice, Refusal> {
    let effort = effort.unwrap_or(Effort::Medium);
    if !config.rules.serve_auto() {
        return Err(Refusal::ModelNotFound {
            model: wish.model.to_owned(),
        });
    }
    let rule = config
        .rules
        .find(None, effort, |name| wish.attributes.value(name))
        .ok_or(Refusal::NoCapableModel)?;
    Ok(by_rule(config, rule, effort, Some(effort)))
}

fn choose_by_name(
    config: &Compiled,
    caller: Caller,
    asked_effort: Option<Effort>,
    wish: &Wish<'_>,
) -> Result<Choice, Refusal> {
    let shown = || text::cut(wish.model).to_owned();
    if !caller.may_use(config, wish.model) {
        return Err(Refusal::ModelNotAllowed { model: shown() });
    }
    let index = config.model_index(wish.model);
    let Some((index, _)) = index.and_then(|index| enabled(config, index)) else {
        return Err(Refusal::ModelNotFound { model: shown() });
    };
    let effort = asked_effort.unwrap_or(Effort::Medium);
    let rule = config
        .rules
        .find(Some(wish.model), effort, |name| wish.attributes.value(name));
    if let Some(rule) = rule {
        return Ok(by_rule(config, rule, effort, asked_effort));
    }
    Ok(Choice {
        rule: None,
        named: [index],
        effort,
        required_effort: asked_effort,
        max_attempts: PLAN_ATTEMPTS,
    })
}

fn by_rule(
    config: &Compiled,
    rule: usize,
    effort: Effort,
    required_effort: Option<Effort>,
) -> Choice {
    let max_attempts = config
        .rules
        .rule(rule)
        .map_or(PLAN_ATTEMPTS, |rule| rule.max_attempts);
    // `named` is not read when there is a rule.
    Choice {
        rule: Some(rule),
        named: [0],
        effort,
        required_effort,
        max_attempts,
    }
}

fn enabled(config: &Compiled, index: usize) -> Option<(usize, &Model)> {
    config
        .models
        .get(index)
        .filter(|model| !model.disabled)
        .map(|model| (index, model))
}

struct Planning<'a> {
    config: &'a Compiled,
    caller: Caller,
    wish: &'a Wish<'a>,
    draw: u64,
    after: After,
    plan: Vec<Planned>,
    rejected: Rejected,
}

impl Planning<'_> {
    fn add_model(&mut self, index: usize, effort: Option<Effort>) {
        let Some((_, model)) = enabled(self.config, index) else {
            self.rejected.incapable = true;
            return;
        };
        if !self.caller.may_use(self.config, &model.id) {
            self.rejected.not_allowed = true;
            return;
        }
        let serves_effort = effort.is_none_or(|effort| model.efforts.contains(effort));
        let fits = model.context_window == 0
            || estimate::prompt_tokens_lower(self.wish.text_bytes) <= model.context_window;
        if !serves_effort || !fits || !model.capabilities.contains_all(needed(self.wish.needs)) {
            self.rejected.incapable = true;
            return;
        }
        self.add_targets(index, model);
    }

    fn add_targets(&mut self, index: usize, model: &Model) {
        for (at, target) in model.targets.iter().enumerate() {
            let Some(provider) = self.config.providers.get(target.provider) else {
                continue;
            };
            if provider.serves(self.wish.api).is_none() {
                self.rejected.incapable = true;
                continue;
            }
            if !self.config.prices.allow(&target.prices, self.wish.unix_s) {
                self.rejected.unpriced = true;
                continue;
            }
            let Caller { key, team } = self.caller;
            let is_well = well_with(self.config, self.wish, target, provider);
            let credential =
                self.config
                    .credentials
                    .choose(target.provider, key, team, self.draw, &is_well);
            if credential.is_none() && provider.takes_credential() {
                self.rejected.no_credential = true;
                continue;
            }
            let credential = credential.filter(|_| provider.takes_credential());
            self.plan.push(Planned {
                model: index,
                target: at,
                credential,
                after: self.after,
            });
        }
    }

    /// After all targets, each once more with another credential: that one may still have room.
    fn add_other_credentials(&mut self) {
        for at in 0..self.plan.len() {
            let Some(planned) = self.plan.get(at).copied() else {
                continue;
            };
            let Some((target, provider)) = forward::target_of(self.config, planned) else {
                continue;
            };
            let is_well = well_with(self.config, self.wish, target, provider);
            let another = planned
                .credential
                .and_then(|than| self.config.credentials.another(than, self.draw, &is_well));
            if another.is_some() {
                self.plan.push(Planned {
                    credential: another,
                    ..planned
                });
            }
        }
    }

    /// Those that cool down come last, and those that are not to be asked yet do not come.
    fn order_by_health(&mut self) {
        if self.wish.health.is_all_well() {
            return;
        }
        let (config, wish) = (self.config, self.wish);
        let standing = |planned: Planned| {
            let (target, provider) = forward::target_of(config, planned)?;
            let credential = forward::credential_of(config, planned);
            let (target, provider) = (&target.label, &provider.id);
            Some(
                wish.health
                    .standing(target, provider, credential, wish.mono_us),
            )
        };
        let mut cooling = Vec::new();
        self.plan.retain(|planned| match standing(*planned) {
            Some(Standing::Told { until_us }) => {
                let earliest_us = self.rejected.told_until_us.get_or_insert(until_us);
                *earliest_us = until_us.min(*earliest_us);
                false
            }
            Some(Standing::Cooling) => {
                cooling.push(*planned);
                false
            }
            Some(Standing::Well) | None => true,
        });
        self.plan.append(&mut cooling);
    }
}

/// Tells of a credential whether a target can be asked with it, as far as is known.
fn well_with<'a>(
    config: &'a Compiled,
    wish: &'a Wish<'a>,
    target: &'a Target,
    provider: &'a Provider,
) -> impl Fn(usize) -> bool + 'a {
    move |index| {
        let credential = config.credentials.credential(index);
        let credential = credential.map_or("", |credential| &credential.id);
        let (health, now_us) = (wish.health, wish.mono_us);
        health.standing(&target.label, &provider.id, credential, now_us) == Standing::Well
    }
}

/// What stood in the way of the models that were not planned.
#[derive(Default)]
struct Rejected {
    /// When the first of those may be asked whose providers said so, by the monotonic clock.
    told_until_us: Option<u64>,
    not_allowed: bool,
    incapable: bool,
    no_credential: bool,
    unpriced: bool,
}

impl Rejected {
    /// A missing credential or price is told first: they are nothing that the caller can change.
    fn refusal(&self, wish: &Wish<'_>) -> Refusal {
        if let Some(until_us) = self.told_until_us {
            let wait_us = until_us.saturating_sub(wish.mono_us);
            Refusal::VendorsUnavailable {
                retry_after_s: u32::try_from(wait_us.div_ceil(1_000_000)).ok(),
            }
        } else if self.no_credential {
            Refusal::VendorsUnavailable {
                retry_after_s: None,
            }
        } else if self.unpriced {
            Refusal::PriceUnknown
        } else if self.not_allowed && !self.incapable {
            Refusal::ModelNotAllowed {
                model: wish.model.to_owned(),
            }
        } else {
            Refusal::NoCapableModel
        }
    }
}

/// `Some` for `auto` and `auto:<effort>`; any other suffix makes a name that no model has.
fn auto_suffix(model: &str) -> Option<Option<Effort>> {
    match model.strip_prefix(AUTO)? {
        "" => Some(None),
        ":low" => Some(Some(Effort::Low)),
        ":medium" => Some(Some(Effort::Medium)),
        ":high" => Some(Some(Effort::High)),
        _ => None,
    }
}

/// OpenAI's words for effort; `None` for one that is not known here.
fn effort_of(reasoning_effort: &str) -> Option<Effort> {
    match reasoning_effort {
        "none" | "minimal" | "low" => Some(Effort::Low),
        "medium" => Some(Effort::Medium),
        "high" | "xhigh" | "max" => Some(Effort::High),
        _ => None,
    }
}

fn needed(needs: Needs) -> Capabilities {
    let mut capabilities = Capabilities::default();
    for (is_needed, capability) in [
        (needs.tools, Capability::Tools),
        (needs.image_input, Capability::ImageInput),
        (needs.audio_input, Capability::AudioInput),
        (needs.file_input, Capability::FileInput),
        (needs.json_schema, Capability::JsonSchema),
    ] {
        if is_needed {
            capabilities.insert(capability);
        }
    }
    capabilities
}

#[cfg(test)]
mod tests;
