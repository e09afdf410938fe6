//! The list prices of well-known models that this program comes with.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{PriceBookSpec, PriceSpec};

const TEXT: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/data/default-prices.yaml"
));

/// One vendor's list prices. `provider` of a price is the vendor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Vendor {
    pub(crate) vendor: String,
    /// Where the vendor publishes them.
    pub(crate) source: String,
    /// When they were last compared, as `YYYY-MM-DD`.
    pub(crate) date: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) note: String,
    pub(crate) prices: Vec<PriceSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Defaults {
    vendors: Vec<Vendor>,
}

/// What an import did to a book.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Imported {
    /// Upstream models whose prices were put in.
    pub(crate) added: BTreeSet<String>,
    /// Upstream models that had prices already.
    pub(crate) kept: BTreeSet<String>,
}

/// Every vendor.
pub(crate) fn vendors() -> anyhow::Result<Vec<Vendor>> {
    let defaults: Defaults = serde_norway::from_str(TEXT)?;
    Ok(defaults.vendors)
}

/// Puts a vendor's prices into a book for a provider. Models that have prices in it keep them,
/// unless they are to be overwritten.
pub(crate) fn import(
    book: &mut PriceBookSpec,
    vendor: &Vendor,
    provider: &str,
    overwrite: bool,
) -> Imported {
    let names: BTreeSet<&String> = vendor.prices.iter().map(|it| &it.upstream_model).collect();
    let is_default =
        |price: &PriceSpec| price.provider == provider && names.contains(&price.upstream_model);
    if overwrite {
        book.prices.retain(|price| !is_default(price));
    }
    let there = book.prices.iter().filter(|price| is_default(price));
    let kept: BTreeSet<String> = there.map(|price| price.upstream_model.clone()).collect();
    let mut added = BTreeSet::new();
    for price in &vendor.prices {
        if kept.contains(&price.upstream_model) {
            continue;
        }
        added.insert(price.upstream_model.clone());
        book.prices.push(PriceSpec {
            provider: provider.to_owned(),
            ..price.clone()
        });
    }
    Imported { added, kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_prices_are_whole_sourced_and_dated() {
        let vendors = vendors().unwrap();
        let names: Vec<&str> = vendors.iter().map(|it| it.vendor.as_str()).collect();
        assert_eq!(names, ["openai", "anthropic", "gemini", "deepseek"]);
        for vendor in vendors {
            assert!(!vendor.source.is_empty(), "{}", vendor.vendor);
            assert_eq!(vendor.date.len(), 10, "{}", vendor.date);
            let mut seen = BTreeSet::new();
            for price in &vendor.prices {
                assert_eq!(price.provider, vendor.vendor);
                let rates = [price.input, price.cached_input, price.output];
                let [Some(input), Some(cached), Some(output)] = rates else {
                    panic!("{}", price.upstream_model);
                };
                let [input, cached, output] =
                    [input, cached, output].map(|rate| rate.pusd_per_token);
                // What is off by a factor of a thousand is not among these.
                assert!((10_000..100_000_000).contains(&input), "{input}");
                assert!(cached < input && input < output, "{}", price.upstream_model);
                if let Some(long) = &price.long_context {
                    let dearer = long.rates.input.unwrap().pusd_per_token;
                    assert!(dearer > input, "{}", price.upstream_model);
                }
                let from = price.effective_from.map(crate::moment::Moment::unix_s);
                assert!(seen.insert((price.upstream_model.clone(), from)));
            }
        }
    }

    #[test]
    fn an_import_keeps_the_prices_that_are_there_unless_told_otherwise() {
        let vendors = vendors().unwrap();
        let deepseek = vendors.iter().find(|it| it.vendor == "deepseek").unwrap();
        let own = PriceSpec {
            provider: "ds".into(),
            input: None,
            ..deepseek.prices.first().unwrap().clone()
        };
        let other = PriceSpec {
            provider: "elsewhere".into(),
            ..own.clone()
        };
        let mut book = PriceBookSpec {
            prices: vec![own.clone(), other.clone()],
        };
        let imported = import(&mut book, deepseek, "ds", false);
        assert_eq!(imported.kept.iter().collect::<Vec<_>>(), ["deepseek-flash"]);
        assert_eq!(imported.added.len(), 2);
        assert_eq!(book.prices.len(), 4);
        assert_eq!(book.prices[..2], [own, other.clone()]);

        let imported = import(&mut book, deepseek, "ds", true);
        assert_eq!((imported.added.len(), imported.kept.len()), (3, 0));
        assert_eq!(book.prices.len(), 4);
        assert_eq!(book.prices[0], other);
        assert!(book.prices[1..].iter().all(|price| price.provider == "ds"));
        assert!(book.prices[1..].iter().all(|price| price.input.is_some()));
    }
}
