//! The price book: what targets cost, in USD per million tokens, exactly.

use proto::admin::v1 as pb;
use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

use super::{Kind, Singleton, Status, Stored};
use crate::failure::CallError;
use crate::link::Link;
use crate::moment::Moment;
use crate::money::UsdPerMillion;
use crate::table::{Column, Table};

pub(crate) mod defaults;
mod rates;
mod text;
mod variants;

pub(crate) use rates::{LongContextSpec, RatesSpec};
pub(crate) use variants::{TierSpec, TimeOfDaySpec};

use rates::{pusd, usd};

#[derive(Debug)]
pub(crate) enum PriceBook {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PriceBookSpec {
    pub(crate) prices: Vec<PriceSpec>,
}

/// Prices of one upstream model; an absent class is unknown, which is not zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PriceSpec {
    pub(crate) provider: String,
    pub(crate) upstream_model: String,
    /// From this moment on, in whole seconds. None: always.
    #[serde(default)]
    pub(crate) effective_from: Option<Moment>,
    #[serde(default)]
    pub(crate) input: Option<UsdPerMillion>,
    /// None: as input.
    #[serde(default)]
    pub(crate) cached_input: Option<UsdPerMillion>,
    /// None: as input.
    #[serde(default)]
    pub(crate) cache_write: Option<UsdPerMillion>,
    #[serde(default)]
    pub(crate) output: Option<UsdPerMillion>,
    /// None: as output.
    #[serde(default)]
    pub(crate) reasoning: Option<UsdPerMillion>,
    /// None: as cache_write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write_1h: Option<UsdPerMillion>,
    /// None: as input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input_audio: Option<UsdPerMillion>,
    /// None: as output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_audio: Option<UsdPerMillion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) long_context: Option<LongContextSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tiers: Vec<TierSpec>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) times_of_day: Vec<TimeOfDaySpec>,
}

impl Singleton for PriceBook {
    type Spec = PriceBookSpec;
    const KIND: Kind = Kind::PriceBook;

    fn table(stored: &Stored<PriceBookSpec>) -> Table {
        let mut table = Table::new(&[
            Column::text("PROVIDER"),
            Column::text("UPSTREAM MODEL"),
            Column::text("FROM"),
            Column::number("INPUT"),
            Column::number("CACHED"),
            Column::number("WRITE"),
            Column::number("OUTPUT"),
            Column::number("REASONING"),
            Column::text("OTHERWISE"),
        ]);
        let money =
            |price: Option<UsdPerMillion>| price.map(|price| price.to_string()).unwrap_or_default();
        for price in &stored.spec.prices {
            table.push(vec![
                price.provider.clone(),
                price.upstream_model.clone(),
                price
                    .effective_from
                    .map(|from| from.to_string())
                    .unwrap_or_default(),
                money(price.input),
                money(price.cached_input),
                money(price.cache_write),
                money(price.output),
                money(price.reasoning),
                price.otherwise(),
            ]);
        }
        table
    }

    async fn get(link: &Link) -> Result<Stored<PriceBookSpec>, CallError> {
        let answer = link
            .price_books()
            .get_price_book(pb::GetPriceBookRequest {})
            .await?;
        Ok(decode(answer.into_inner()))
    }

    async fn replace(
        link: &Link,
        spec: &PriceBookSpec,
    ) -> Result<Stored<PriceBookSpec>, CallError> {
        let request = pb::UpdatePriceBookRequest {
            price_book: Some(pb::PriceBook {
                name: "priceBook".to_owned(),
                prices: spec.prices.iter().map(encode).collect(),
                ..Default::default()
            }),
        };
        let answer = link.price_books().update_price_book(request).await?;
        Ok(decode(answer.into_inner()))
    }

    fn is_same(stored: &PriceBookSpec, wanted: &PriceBookSpec) -> bool {
        // Order means nothing in a book of dated entries.
        let sorted = |spec: &PriceBookSpec| {
            let mut prices: Vec<config::Price> = spec.prices.iter().map(encode).collect();
            prices.sort_by(|left, right| {
                let key = |price: &config::Price| {
                    (
                        price.provider.clone(),
                        price.upstream_model.clone(),
                        price.effective_from_s,
                    )
                };
                key(left).cmp(&key(right))
            });
            prices
        };
        sorted(stored) == sorted(wanted)
    }
}

impl PriceSpec {
    /// What else decides what it costs, in few words.
    fn otherwise(&self) -> String {
        let long = self.long_context.iter();
        let long = long.map(|long| format!(">{} tokens", long.above_input_tokens));
        let tiers = self.tiers.iter().map(|tier| tier.tier.clone());
        let times = self.times_of_day.iter();
        let times = times.map(|time| format!("{}-{}", time.from, time.to));
        let classes = [
            ("1h write", self.cache_write_1h),
            ("audio", self.input_audio.or(self.output_audio)),
        ];
        let classes = classes.into_iter().filter(|(_, price)| price.is_some());
        let classes = classes.map(|(class, _)| class.to_owned());
        let parts: Vec<String> = classes.chain(long).chain(tiers).chain(times).collect();
        parts.join(", ")
    }
}

fn encode(price: &PriceSpec) -> config::Price {
    let from_s = price.effective_from.map_or(0, Moment::unix_s);
    config::Price {
        provider: price.provider.clone(),
        upstream_model: price.upstream_model.clone(),
        effective_from_s: u64::try_from(from_s).unwrap_or(0),
        input_pusd: pusd(price.input),
        cached_input_pusd: pusd(price.cached_input),
        cache_write_pusd: pusd(price.cache_write),
        output_pusd: pusd(price.output),
        reasoning_pusd: pusd(price.reasoning),
        cache_write_1h_pusd: pusd(price.cache_write_1h),
        input_audio_pusd: pusd(price.input_audio),
        output_audio_pusd: pusd(price.output_audio),
        long_context: price.long_context.as_ref().map(LongContextSpec::encode),
        tiers: price.tiers.iter().map(TierSpec::encode).collect(),
        times_of_day: price
            .times_of_day
            .iter()
            .map(TimeOfDaySpec::encode)
            .collect(),
    }
}

fn decode(book: pb::PriceBook) -> Stored<PriceBookSpec> {
    Stored {
        id: String::new(),
        status: Status {
            config_version: book.config_version,
            update_time: Moment::from_wire(book.update_time.as_ref()),
            version: Some(book.version),
            ..Default::default()
        },
        spec: PriceBookSpec {
            prices: book.prices.into_iter().map(decode_price).collect(),
        },
    }
}

fn decode_price(price: config::Price) -> PriceSpec {
    PriceSpec {
        provider: price.provider,
        upstream_model: price.upstream_model,
        effective_from: i64::try_from(price.effective_from_s)
            .ok()
            .filter(|&from_s| from_s > 0)
            .and_then(Moment::from_unix_s),
        input: usd(price.input_pusd),
        cached_input: usd(price.cached_input_pusd),
        cache_write: usd(price.cache_write_pusd),
        output: usd(price.output_pusd),
        reasoning: usd(price.reasoning_pusd),
        cache_write_1h: usd(price.cache_write_1h_pusd),
        input_audio: usd(price.input_audio_pusd),
        output_audio: usd(price.output_audio_pusd),
        long_context: price.long_context.as_ref().map(LongContextSpec::decode),
        tiers: price.tiers.iter().map(TierSpec::decode).collect(),
        times_of_day: price
            .times_of_day
            .iter()
            .map(TimeOfDaySpec::decode)
            .collect(),
    }
}
