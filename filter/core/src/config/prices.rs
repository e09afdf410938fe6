//! The price book, by target and date.

use std::ops::Range;

use filter_llm::price::{self, PriceAt};
use proto::config::v1::{OnUnknownPrice, Price, PriceBook, Rates, Settings};

use super::compile::Faults;
use super::{ResourceKind, SINGLETON_NAME};

mod check;
mod list;
mod terms;

pub use check::{PriceFault, price_faults};
pub use list::PriceList;
pub(crate) use terms::terms_of;

/// Every price, sorted by provider, upstream model and date.
#[derive(Default)]
pub(crate) struct Prices {
    /// 0: there is no price book.
    pub(crate) version: u64,
    entries: Vec<Entry>,
    /// What is not known costs this.
    default: Option<Entry>,
    /// What is not known is not used.
    pub(crate) denies_unknown: bool,
}

/// A price as it came, and as it is computed with.
struct Entry {
    wire: Price,
    terms: price::Price,
}

impl Prices {
    /// The entries of one target, oldest first.
    pub(super) fn entries_of(&self, provider: &str, upstream_model: &str) -> Range<usize> {
        let target = (provider, upstream_model);
        let of = |entry: &Entry| -> std::cmp::Ordering {
            let Price {
                provider,
                upstream_model,
                ..
            } = &entry.wire;
            (provider.as_str(), upstream_model.as_str()).cmp(&target)
        };
        let start = self.entries.partition_point(|entry| of(entry).is_lt());
        start..self.entries.partition_point(|entry| of(entry).is_le())
    }

    /// What holds at a moment: the latest entry that is not after it, or the default where it does
    /// not tell what input and output cost.
    pub(crate) fn at(&self, entries: &Range<usize>, unix_s: u64) -> Option<PriceAt<'_>> {
        let price = &self.entry_at(entries, unix_s)?.terms;
        let soon = self.entry_at(entries, unix_s.saturating_add(PriceAt::OUTLOOK_S));
        let next = soon.map(|entry| &entry.terms);
        Some(PriceAt {
            price,
            unix_s,
            next: next.filter(|next| !std::ptr::eq(*next, price)),
        })
    }

    /// The same as it came.
    pub(crate) fn wire_at(&self, entries: &Range<usize>, unix_s: u64) -> Option<&Price> {
        Some(&self.entry_at(entries, unix_s)?.wire)
    }

    /// False where a target is not to be used, since its price is not known.
    pub(crate) fn allow(&self, entries: &Range<usize>, unix_s: u64) -> bool {
        !self.denies_unknown
            || self
                .entry_at(entries, unix_s)
                .is_some_and(|entry| entry.terms.is_known())
    }

    fn entry_at(&self, entries: &Range<usize>, unix_s: u64) -> Option<&Entry> {
        let entries = self.entries.get(entries.clone()).unwrap_or_default();
        let mut newest_first = entries.iter().rev();
        let held = newest_first.find(|entry| entry.wire.effective_from_s <= unix_s);
        match &self.default {
            Some(default) => held
                .filter(|entry| entry.terms.is_known())
                .or(Some(default)),
            None => held,
        }
    }
}

/// The price book with what the settings say of prices that are not in it.
pub(super) fn compile(
    book: Option<&PriceBook>,
    settings: Option<&Settings>,
    faults: &mut Faults,
) -> Prices {
    let mut prices = book.map_or_else(Prices::default, |book| compile_book(book, faults));
    let Some(settings) = settings else {
        return prices;
    };
    match OnUnknownPrice::try_from(settings.on_unknown_price) {
        Ok(OnUnknownPrice::Unspecified | OnUnknownPrice::Allow) => {}
        Ok(OnUnknownPrice::Deny) => prices.denies_unknown = true,
        Ok(OnUnknownPrice::Default) => {
            prices.default = compile_default(settings.default_price.as_ref(), faults);
        }
        Err(_) => faults.add(
            ResourceKind::Settings,
            SINGLETON_NAME,
            "on_unknown_price",
            "no such choice",
        ),
    }
    prices
}

fn compile_default(rates: Option<&Rates>, faults: &mut Faults) -> Option<Entry> {
    const KIND: ResourceKind = ResourceKind::Settings;
    let wire = rates.map(price_of).unwrap_or_default();
    let found = price_faults(&wire);
    for fault in &found {
        let place = format!("default_price.{}", fault.place);
        faults.add(KIND, SINGLETON_NAME, place, fault.reason);
    }
    let terms = terms_of(&wire);
    if !terms.is_known() {
        faults.add(
            KIND,
            SINGLETON_NAME,
            "default_price",
            "must have the prices of input and output",
        );
        return None;
    }
    found.is_empty().then_some(Entry { wire, terms })
}

/// The price that depends on nothing.
fn price_of(rates: &Rates) -> Price {
    Price {
        input_pusd: rates.input_pusd,
        cached_input_pusd: rates.cached_input_pusd,
        cache_write_pusd: rates.cache_write_pusd,
        output_pusd: rates.output_pusd,
        reasoning_pusd: rates.reasoning_pusd,
        cache_write_1h_pusd: rates.cache_write_1h_pusd,
        input_audio_pusd: rates.input_audio_pusd,
        output_audio_pusd: rates.output_audio_pusd,
        ..Price::default()
    }
}

fn compile_book(book: &PriceBook, faults: &mut Faults) -> Prices {
    const KIND: ResourceKind = ResourceKind::PriceBook;
    if book.version == 0 {
        faults.add(KIND, SINGLETON_NAME, "version", "must not be 0");
    }
    let mut entries = Vec::with_capacity(book.prices.len());
    for (at, price) in book.prices.iter().enumerate() {
        if price.provider.is_empty() || price.upstream_model.is_empty() {
            let place = format!("prices[{at}]");
            let reason = "must name a provider and an upstream model";
            faults.add(KIND, SINGLETON_NAME, place, reason);
            continue;
        }
        let found = price_faults(price);
        for fault in &found {
            let place = format!("prices[{at}].{}", fault.place);
            faults.add(KIND, SINGLETON_NAME, place, fault.reason);
        }
        if found.is_empty() {
            entries.push(Entry {
                wire: price.clone(),
                terms: terms_of(price),
            });
        }
    }
    let date = |Entry { wire, .. }: &Entry| {
        (
            wire.provider.clone(),
            wire.upstream_model.clone(),
            wire.effective_from_s,
        )
    };
    entries.sort_by_cached_key(date);
    entries.dedup_by(|later, kept| {
        let same = date(later) == date(kept);
        if same {
            let model = &later.wire.upstream_model;
            let reason = format!("{model} has two prices from one moment");
            faults.add(KIND, SINGLETON_NAME, "prices", reason);
        }
        same
    });
    Prices {
        version: book.version,
        entries,
        ..Prices::default()
    }
}
