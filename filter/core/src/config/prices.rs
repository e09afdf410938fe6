//! The price book, by target and date.

use std::ops::Range;

use proto::config::v1::{Price, PriceBook};

use super::compile::Faults;
use super::{ResourceKind, SINGLETON_NAME};

/// Every price, sorted by provider, upstream model and date.
#[derive(Default)]
pub(crate) struct Prices {
    /// 0: there is no price book.
    pub(crate) version: u64,
    entries: Vec<Price>,
}

impl Prices {
    /// The entries of one target, oldest first.
    pub(super) fn entries_of(&self, provider: &str, upstream_model: &str) -> Range<usize> {
        let target = (provider, upstream_model);
        let of = |price: &Price| -> std::cmp::Ordering {
            (price.provider.as_str(), price.upstream_model.as_str()).cmp(&target)
        };
        let start = self.entries.partition_point(|price| of(price).is_lt());
        start..self.entries.partition_point(|price| of(price).is_le())
    }

    /// The entry that holds at a moment: the latest that is not after it.
    pub(crate) fn at(&self, entries: &Range<usize>, unix_s: u64) -> Option<&Price> {
        let entries = self.entries.get(entries.clone())?;
        entries
            .iter()
            .rev()
            .find(|price| price.effective_from_s <= unix_s)
    }
}

pub(super) fn compile(wire: Option<&PriceBook>, faults: &mut Faults) -> Prices {
    const KIND: ResourceKind = ResourceKind::PriceBook;
    let Some(wire) = wire else {
        return Prices::default();
    };
    if wire.version == 0 {
        faults.add(KIND, SINGLETON_NAME, "version", "must not be 0");
    }
    let mut entries = Vec::with_capacity(wire.prices.len());
    for (at, price) in wire.prices.iter().enumerate() {
        if price.provider.is_empty() || price.upstream_model.is_empty() {
            let place = format!("prices[{at}]");
            faults.add(
                KIND,
                SINGLETON_NAME,
                place,
                "must name a provider and an upstream model",
            );
            continue;
        }
        entries.push(price.clone());
    }
    let date = |price: &Price| {
        (
            price.provider.clone(),
            price.upstream_model.clone(),
            price.effective_from_s,
        )
    };
    entries.sort_by_cached_key(date);
    entries.dedup_by(|later, kept| {
        let same = date(later) == date(kept);
        if same {
            let reason = format!("{} has two prices from one moment", later.upstream_model);
            faults.add(KIND, SINGLETON_NAME, "prices", reason);
        }
        same
    });
    Prices {
        version: wire.version,
        entries,
    }
}
