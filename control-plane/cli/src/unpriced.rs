//! Tells which targets have no price: what they cost would be in no budget and on no bill.

use std::collections::BTreeSet;

use crate::link::Link;
use crate::moment::Moment;
use crate::output::Output;
use crate::resource::{ModelSpec, PriceBook, PriceBookSpec, Singleton, defaults};

/// Notes each target without a price on stderr, with what puts one in. Silent where the price book
/// cannot be read: this is advice.
pub(crate) async fn note<'a>(
    link: &Link,
    output: &mut Output<'_>,
    models: impl IntoIterator<Item = (&'a str, &'a ModelSpec)>,
) -> anyhow::Result<()> {
    let targets: BTreeSet<(&str, &str)> = models
        .into_iter()
        .flat_map(|(name, spec)| spec.targets.iter().map(move |target| (name, target)))
        .map(|(name, target)| match target.upstream_model.as_str() {
            "" => (target.provider.as_str(), name),
            upstream => (target.provider.as_str(), upstream),
        })
        .collect();
    if targets.is_empty() {
        return Ok(());
    }
    let Ok(book) = PriceBook::get(link).await else {
        return Ok(());
    };
    let now = Moment::now();
    for (provider, model) in targets {
        if !is_priced(&book.spec, provider, model, now) {
            let remedy = remedy(provider, model)?;
            output.note(format_args!(
                "note: {provider}:{model} has no price, so its cost counts nowhere: {remedy}"
            ))?;
        }
    }
    Ok(())
}

fn is_priced(book: &PriceBookSpec, provider: &str, model: &str, now: Moment) -> bool {
    book.prices.iter().any(|price| {
        let is_of_target = price.provider == provider && price.upstream_model == model;
        let holds = price.effective_from.is_none_or(|from| from <= now);
        is_of_target && holds && price.input.is_some() && price.output.is_some()
    })
}

/// The list price, where this program comes with one.
fn remedy(provider: &str, model: &str) -> anyhow::Result<String> {
    let vendors = defaults::vendors()?;
    let vendor = vendors.iter().find(|vendor| {
        let mut prices = vendor.prices.iter();
        prices.any(|price| price.upstream_model == model)
    });
    Ok(match vendor {
        Some(vendor) if vendor.vendor == provider => {
            format!("turnpike prices import-defaults --provider {provider}")
        }
        Some(vendor) => format!(
            "turnpike prices import-defaults --provider {provider} --vendor {}",
            vendor.vendor
        ),
        None => "turnpike prices get -o json, add it, turnpike prices replace".to_owned(),
    })
}
