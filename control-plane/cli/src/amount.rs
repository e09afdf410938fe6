//! Amounts of limits as people write them: `25usd` for money, `10000`, `10k` or `2M` for the rest.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::money;
use crate::resource::LimitUnit;

/// An amount in a limit's unit; money in nano-USD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Count(u64),
    Money { nusd: u64 },
}

/// An amount that may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SignedAmount {
    is_negative: bool,
    amount: Amount,
}

/// Why a text is not an amount.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidAmount {
    #[error("`{0}` is not an amount: write 25usd or 0.50usd for money, else 10000, 10k or 2M")]
    NotAmount(String),
    #[error("`{0}` is finer than an amount can be")]
    TooFine(String),
    #[error("`{0}` is larger than an amount can be")]
    TooLarge(String),
    #[error("`{amount}` is money, and {unit} are counted")]
    Money { amount: Amount, unit: LimitUnit },
    #[error("`{0}` is a count, and the unit is money: write {0}usd")]
    Count(Amount),
}

const UNITS: [(&str, usize); 3] = [("k", 3), ("M", 6), ("G", 9)];

// === impl Amount ===

impl Amount {
    /// From the wire, in the unit.
    pub(crate) fn from_wire(unit: LimitUnit, value: u64) -> Self {
        match unit {
            LimitUnit::Money => Self::Money { nusd: value },
            _ => Self::Count(value),
        }
    }

    /// For the wire.
    ///
    /// # Errors
    /// When it is none of the unit. Zero is one of each.
    pub(crate) fn in_unit(self, unit: LimitUnit) -> Result<u64, InvalidAmount> {
        match (self, unit) {
            (Self::Money { nusd }, LimitUnit::Money) => Ok(nusd),
            (Self::Count(0), LimitUnit::Money) => Ok(0),
            (Self::Count(_), LimitUnit::Money) => Err(InvalidAmount::Count(self)),
            (Self::Count(count), _) => Ok(count),
            (Self::Money { .. }, _) => Err(InvalidAmount::Money { amount: self, unit }),
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        matches!(self, Self::Count(0) | Self::Money { nusd: 0 })
    }
}

impl Default for Amount {
    fn default() -> Self {
        Self::Count(0)
    }
}

impl FromStr for Amount {
    type Err = InvalidAmount;

    fn from_str(text: &str) -> Result<Self, InvalidAmount> {
        if let Some(usd) = text.strip_suffix("usd") {
            let nusd = whole(text, usd.trim_end(), money::COST_PLACES)?;
            return Ok(Self::Money { nusd });
        }
        let suffix = UNITS
            .into_iter()
            .find_map(|(suffix, places)| Some((text.strip_suffix(suffix)?, places)));
        let (digits, places) = suffix.unwrap_or((text, 0));
        whole(text, digits, places).map(Self::Count)
    }
}

/// A decimal with its point moved to the right.
fn whole(text: &str, decimal: &str, places: usize) -> Result<u64, InvalidAmount> {
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, "0"));
    if !money::is_digits(whole) || !money::is_digits(fraction) {
        return Err(InvalidAmount::NotAmount(text.to_owned()));
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > places {
        return Err(InvalidAmount::TooFine(text.to_owned()));
    }
    format!("{whole}{fraction:0<places$}")
        .parse()
        .map_err(|_| InvalidAmount::TooLarge(text.to_owned()))
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Money { nusd } => write!(f, "{}usd", money::usd(*nusd)),
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Money { .. } => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // YAML hands a plain number over as the text that was written when a string is asked for.
        deserializer.deserialize_str(AmountText)
    }
}

struct AmountText;

impl de::Visitor<'_> for AmountText {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse().map_err(E::custom)
    }
}

// === impl SignedAmount ===

impl SignedAmount {
    /// From the wire, in the unit.
    pub(crate) fn from_wire(unit: LimitUnit, value: i64) -> Self {
        Self {
            is_negative: value < 0,
            amount: Amount::from_wire(unit, value.unsigned_abs()),
        }
    }

    /// For the wire.
    ///
    /// # Errors
    /// When it is none of the unit, or too large.
    pub(crate) fn in_unit(self, unit: LimitUnit) -> Result<i64, InvalidAmount> {
        let value = i64::try_from(self.amount.in_unit(unit)?)
            .map_err(|_| InvalidAmount::TooLarge(self.to_string()))?;
        Ok(if self.is_negative { -value } else { value })
    }
}

impl FromStr for SignedAmount {
    type Err = InvalidAmount;

    fn from_str(text: &str) -> Result<Self, InvalidAmount> {
        let amount = text.strip_prefix(['-', '+']).unwrap_or(text).parse();
        let amount = amount.map_err(|_| InvalidAmount::NotAmount(text.to_owned()))?;
        Ok(Self {
            is_negative: text.starts_with('-'),
            amount,
        })
    }
}

impl fmt::Display for SignedAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        write!(f, "{sign}{}", self.amount)
    }
}

impl Serialize for SignedAmount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.amount {
            Amount::Count(count) => {
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                serializer.serialize_i64(if self.is_negative { -count } else { count })
            }
            Amount::Money { .. } => serializer.collect_str(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    #[test]
    fn money_is_exact_and_counts_may_be_short() {
        assert_eq!(
            amount("25usd"),
            Amount::Money {
                nusd: 25_000_000_000
            }
        );
        assert_eq!(amount("0.5 usd"), amount("0.50usd"));
        assert_eq!(amount("0.000000001usd"), Amount::Money { nusd: 1 });
        assert_eq!(amount("10000"), Amount::Count(10_000));
        assert_eq!(amount("10k"), Amount::Count(10_000));
        assert_eq!(amount("2M"), Amount::Count(2_000_000));
        assert_eq!(amount("1.5M"), Amount::Count(1_500_000));
        assert_eq!(amount("1G"), Amount::Count(1_000_000_000));
    }

    #[test]
    fn what_does_not_fit_exactly_is_refused() {
        let error = |text: &str| text.parse::<Amount>().unwrap_err();
        for text in [
            "", "usd", "k", "-1", "1e3", "1.", ".5", "$25", "25eur", "2m", "1_000", " 1",
        ] {
            assert_eq!(error(text), InvalidAmount::NotAmount(text.into()));
        }
        for text in ["0.5", "1.0005k", "0.0000000001usd"] {
            assert_eq!(error(text), InvalidAmount::TooFine(text.into()));
        }
        for text in ["18446744073709551616", "18446744074usd", "99999999999G"] {
            assert_eq!(error(text), InvalidAmount::TooLarge(text.into()));
        }
    }

    #[test]
    fn an_amount_is_of_its_unit() {
        assert_eq!(amount("2usd").in_unit(LimitUnit::Money), Ok(2_000_000_000));
        assert_eq!(amount("0").in_unit(LimitUnit::Money), Ok(0));
        let message = |text: &str, unit| amount(text).in_unit(unit).unwrap_err().to_string();
        assert_eq!(
            message("25", LimitUnit::Money),
            "`25` is a count, and the unit is money: write 25usd"
        );
        assert_eq!(
            message("25usd", LimitUnit::InputTokens),
            "`25.00usd` is money, and input-tokens are counted"
        );
    }

    #[test]
    fn amounts_are_written_as_they_are_read() {
        for text in ["25.00usd", "0.000000001usd", "1500000"] {
            assert_eq!(amount(text).to_string(), text);
        }
        let signed: SignedAmount = "-1.50usd".parse().unwrap();
        assert_eq!(signed.to_string(), "-1.50usd");
        assert_eq!(signed.in_unit(LimitUnit::Money), Ok(-1_500_000_000));
        assert_eq!(
            SignedAmount::from_wire(LimitUnit::Tokens, -3).to_string(),
            "-3"
        );
        assert!("--3".parse::<SignedAmount>().is_err());
        let read: Vec<Amount> = serde_norway::from_str("[25usd, 2M, 7, \"7\"]").unwrap();
        assert_eq!(
            serde_json::to_string(&read).unwrap(),
            r#"["25.00usd",2000000,7,7]"#
        );
    }
}
