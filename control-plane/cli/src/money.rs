//! Money as people write it and as the ledger counts it, without a float in between.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Decimal places of USD per million tokens that pico-USD per token can hold.
const PRICE_PLACES: usize = 6;
/// Decimal places of USD that nano-USD can hold.
pub(crate) const COST_PLACES: usize = 9;

/// A price: integer pico-USD per token, read and written as a decimal of USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UsdPerMillion {
    pub(crate) pusd_per_token: u64,
}

/// Why a text is not a price.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidPrice {
    #[error("`{0}` is not a price: write USD per million tokens as a decimal, for example 0.15")]
    NotDecimal(String),
    #[error(
        "`{0}` is finer than a price can be: at most 6 decimal places of USD per million tokens"
    )]
    TooFine(String),
    #[error(
        "`{0}` is larger than a price can be: at most 18446744073709.551615 USD per million tokens"
    )]
    TooLarge(String),
}

// === impl UsdPerMillion ===

impl UsdPerMillion {
    /// Reads `0.15`, `3`, `12.50`; refuses signs, exponents, and what does not fit exactly.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidPrice> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        if !is_digits(whole) || !is_digits(fraction) {
            return Err(InvalidPrice::NotDecimal(text.to_owned()));
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > PRICE_PLACES {
            return Err(InvalidPrice::TooFine(text.to_owned()));
        }
        // `0.15` is the digits `0` and `150000`, read as one integer.
        format!("{whole}{fraction:0<PRICE_PLACES$}")
            .parse()
            .map(|pusd_per_token| Self { pusd_per_token })
            .map_err(|_| InvalidPrice::TooLarge(text.to_owned()))
    }
}

impl fmt::Display for UsdPerMillion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal(self.pusd_per_token, PRICE_PLACES))
    }
}

impl Serialize for UsdPerMillion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UsdPerMillion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // YAML hands a plain number over as the text that was written when a string is asked for.
        deserializer.deserialize_str(PriceText)
    }
}

struct PriceText;

impl de::Visitor<'_> for PriceText {
    type Value = UsdPerMillion;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("USD per million tokens as a decimal")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        UsdPerMillion::parse(text).map_err(E::custom)
    }
}

/// Nano-USD as a decimal of USD, exact, with at least two places.
pub(crate) fn usd(nusd: u64) -> String {
    decimal(nusd, COST_PLACES)
}

/// The same with a sign where it is negative.
pub(crate) fn signed_usd(nusd: i64) -> String {
    let sign = if nusd < 0 { "-" } else { "" };
    format!("{sign}{}", usd(nusd.unsigned_abs()))
}

pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn decimal(value: u64, places: usize) -> String {
    let digits = format!("{value:0>width$}", width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let fraction = fraction.trim_end_matches('0');
    format!("{whole}.{fraction:0<2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pusd(text: &str) -> u64 {
        UsdPerMillion::parse(text).unwrap().pusd_per_token
    }

    #[test]
    fn a_decimal_price_becomes_exact_pico_usd() {
        assert_eq!(pusd("0.15"), 150_000);
        assert_eq!(pusd("3"), 3_000_000);
        assert_eq!(pusd("0"), 0);
        assert_eq!(pusd("12.50"), 12_500_000);
        assert_eq!(pusd("0.000001"), 1);
        assert_eq!(pusd("0.0750000000"), 75_000);
        assert_eq!(pusd("007.5"), 7_500_000);
        assert_eq!(pusd("18446744073709.551615"), u64::MAX);
        // 0.1 + 0.2 has no exact float; its text has.
        assert_eq!(pusd("0.3"), pusd("0.1") + pusd("0.2"));
    }

    #[test]
    fn a_price_that_does_not_fit_exactly_is_refused() {
        assert_eq!(
            UsdPerMillion::parse("0.0000001"),
            Err(InvalidPrice::TooFine("0.0000001".into()))
        );
        for text in ["18446744073709.551616", "99999999999999999999"] {
            assert_eq!(
                UsdPerMillion::parse(text),
                Err(InvalidPrice::TooLarge(text.into()))
            );
        }
        for text in [
            "", ".", "1.", ".5", "-1", "+1", "1e-3", "0x10", "1,5", " 1", "1_000", "$3", "nan",
        ] {
            assert_eq!(
                UsdPerMillion::parse(text),
                Err(InvalidPrice::NotDecimal(text.into()))
            );
        }
    }

    #[test]
    fn yaml_prices_are_read_from_their_text() {
        let prices: Vec<UsdPerMillion> =
            serde_norway::from_str("[0.15, \"0.15\", 3, 9007199254740.993]").unwrap();
        let pusd: Vec<u64> = prices.iter().map(|price| price.pusd_per_token).collect();
        // No float64 holds the last one.
        assert_eq!(
            pusd,
            [150_000, 150_000, 3_000_000, 9_007_199_254_740_993_000]
        );
    }

    #[test]
    fn prices_and_costs_are_written_exactly() {
        assert_eq!(
            UsdPerMillion {
                pusd_per_token: 150_000
            }
            .to_string(),
            "0.15"
        );
        assert_eq!(
            UsdPerMillion {
                pusd_per_token: 3_000_000
            }
            .to_string(),
            "3.00"
        );
        assert_eq!(UsdPerMillion { pusd_per_token: 1 }.to_string(), "0.000001");
        assert_eq!(usd(0), "0.00");
        assert_eq!(usd(1), "0.000000001");
        assert_eq!(usd(12_345_678_900), "12.3456789");
        assert_eq!(usd(u64::MAX), "18446744073.709551615");
        assert_eq!(signed_usd(0), "0.00");
        assert_eq!(signed_usd(-1_500_000_000), "-1.50");
        assert_eq!(signed_usd(i64::MIN), "-9223372036.854775808");
    }
}
