//! What one request uses at most.

use proto::config::v1::{
    Limit, LimitUnit, LongContext, Model, OnUnknownPrice, Price, Rates, Target,
};

use super::Deployment;

/// Each class of tokens may have been rounded up once.
const ROUNDED_NUSD: u128 = 8;
const PERMILLE: u128 = 1000;
const PUSD_PER_NUSD: u128 = 1000;

impl Deployment {
    /// In the limit's unit, for a request with one answer, over every target that it may get.
    /// Targets without a price are left out.
    ///
    /// # Errors
    /// A model without a context window, as `models/{model}`.
    pub(super) fn most_of_a_request(&self, limit: &Limit) -> Result<u64, String> {
        let mut most = 0;
        for (model, target) in self.targets(limit) {
            if model.context_window == 0 {
                return Err(format!("models/{}", model.id));
            }
            // Input and output share the window.
            let tokens = model.context_window;
            let amount = match limit.unit() {
                LimitUnit::Money => self.dearest(model, target).map_or(0, |it| it.nusd(tokens)),
                _ => tokens,
            };
            most = most.max(amount);
        }
        Ok(most)
    }

    /// A target without a price, as `<provider>/<upstream model>`.
    pub(super) fn first_unpriced(&self, limit: &Limit) -> Option<String> {
        let mut targets = self.targets(limit);
        let (model, target) = targets.find(|(model, it)| self.dearest(model, it).is_none())?;
        Some(format!("{}/{}", target.provider, upstream(model, target)))
    }

    /// Whether requests go to targets without a price, and cost nothing that is counted.
    pub(super) fn lets_unpriced_through(&self) -> bool {
        match self.settings.on_unknown_price() {
            OnUnknownPrice::Unspecified | OnUnknownPrice::Allow => true,
            OnUnknownPrice::Deny | OnUnknownPrice::Default => false,
        }
    }

    fn targets<'a>(&'a self, limit: &'a Limit) -> impl Iterator<Item = (&'a Model, &'a Target)> {
        self.models
            .iter()
            .filter(|model| !model.disabled && admits(&limit.models, &model.id))
            .flat_map(|model| model.targets.iter().map(move |target| (model, target)))
            .filter(|(_, target)| {
                limit.providers.is_empty() || limit.providers.contains(&target.provider)
            })
    }

    /// The dearest rate of a target, now or later; none: it has no price.
    fn dearest(&self, model: &Model, target: &Target) -> Option<Dearest> {
        let upstream = upstream(model, target);
        let of_target =
            |it: &&Price| it.provider == target.provider && it.upstream_model == upstream;
        let prices = || self.prices.prices.iter().filter(of_target);
        let begun = prices().map(|it| it.effective_from_s);
        let in_force = begun.filter(|from_s| *from_s <= self.now_s).max();
        let coming = prices().filter(|it| Some(it.effective_from_s) >= in_force);
        let known: Option<Vec<Dearest>> = coming.map(Dearest::of).collect();
        match known?.into_iter().reduce(Dearest::or) {
            // A price that is yet to come is none now.
            Some(dearest) if in_force.is_some() => Some(dearest),
            _ => self.default_price(),
        }
    }

    fn default_price(&self) -> Option<Dearest> {
        let rates = self.settings.default_price.as_ref();
        let is_used = self.settings.on_unknown_price() == OnUnknownPrice::Default;
        rates.filter(|_| is_used).map(|rates| Dearest {
            pusd: dearest_of(rates),
            factor: PERMILLE * PERMILLE,
        })
    }
}

/// At least what any token costs.
#[derive(Clone, Copy, Debug)]
struct Dearest {
    /// Pico-USD a token, before factors.
    pusd: u64,
    /// Of a tier and of a time of day, multiplied, in millionths.
    factor: u128,
}

impl Dearest {
    /// None: input or output has no standard rate.
    fn of(price: &Price) -> Option<Self> {
        let standard = [price.input_pusd?, price.output_pusd?];
        let others = [
            price.cached_input_pusd,
            price.cache_write_pusd,
            price.reasoning_pusd,
            price.cache_write_1h_pusd,
            price.input_audio_pusd,
            price.output_audio_pusd,
        ];
        let standard = standard.into_iter().chain(others.into_iter().flatten());
        let tiers = price.tiers.iter();
        let times = price.times_of_day.iter();
        let own = tiers
            .clone()
            .map(|it| (&it.rates, &it.long_context))
            .chain(times.clone().map(|it| (&it.rates, &it.long_context)))
            .flat_map(|(rates, long)| [rates.as_ref(), of_length(long.as_ref())])
            .chain([of_length(price.long_context.as_ref())])
            .flatten()
            .map(dearest_of);
        let factor = |permille: Option<u32>| u128::from(permille.unwrap_or(0)).max(PERMILLE);
        Some(Self {
            pusd: standard.chain(own).max().unwrap_or(0),
            factor: factor(tiers.map(|it| it.factor_permille).max())
                * factor(times.map(|it| it.factor_permille).max()),
        })
    }

    fn or(self, other: Self) -> Self {
        Self {
            pusd: self.pusd.max(other.pusd),
            factor: self.factor.max(other.factor),
        }
    }

    fn nusd(self, tokens: u64) -> u64 {
        let parts = u128::from(tokens)
            .saturating_mul(u128::from(self.pusd))
            .saturating_mul(self.factor);
        let nusd = parts.div_ceil(PUSD_PER_NUSD * PERMILLE * PERMILLE);
        u64::try_from(nusd.saturating_add(ROUNDED_NUSD)).unwrap_or(u64::MAX)
    }
}

fn of_length(long: Option<&LongContext>) -> Option<&Rates> {
    long.and_then(|long| long.rates.as_ref())
}

fn dearest_of(rates: &Rates) -> u64 {
    let classes = [
        rates.input_pusd,
        rates.cached_input_pusd,
        rates.cache_write_pusd,
        rates.output_pusd,
        rates.reasoning_pusd,
        rates.cache_write_1h_pusd,
        rates.input_audio_pusd,
        rates.output_audio_pusd,
    ];
    classes.into_iter().flatten().max().unwrap_or(0)
}

fn upstream<'a>(model: &'a Model, target: &'a Target) -> &'a str {
    match target.upstream_model.as_str() {
        "" => &model.id,
        upstream => upstream,
    }
}

/// As nodes read it: names, and prefixes that end in `/*`; empty: all.
fn admits(patterns: &[String], public_name: &str) -> bool {
    let admits = |pattern: &String| match pattern.strip_suffix('*') {
        Some(prefix) => public_name
            .strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty()),
        None => pattern == public_name,
    };
    patterns.is_empty() || patterns.iter().any(admits)
}
