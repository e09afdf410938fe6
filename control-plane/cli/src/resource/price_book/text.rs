//! Factors, times of day and weekdays, as people write them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::money::is_digits;

/// Decimal places of a factor.
const FACTOR_PLACES: usize = 3;

/// A factor in thousandths, read and written as a decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Factor {
    /// Not 0, which stands for none on the wire.
    pub(crate) permille: u32,
}

/// A minute of the UTC day, read and written as `HH:MM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeOfDay {
    pub(crate) minute: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Weekday {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

// === impl Factor ===

impl Factor {
    /// `None` for 0.
    pub(crate) fn of(permille: u32) -> Option<Self> {
        (permille > 0).then_some(Self { permille })
    }

    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let fraction_digits = fraction.trim_end_matches('0');
        let fits = fraction_digits.len() <= FACTOR_PLACES;
        if !is_digits(whole) || !is_digits(fraction) || !fits {
            return None;
        }
        let permille = format!("{whole}{fraction_digits:0<FACTOR_PLACES$}");
        permille.parse().ok().and_then(Self::of)
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.permille / 1000, self.permille % 1000);
        let fraction = format!("{rest:03}");
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            fraction => write!(f, "{whole}.{fraction}"),
        }
    }
}

impl Serialize for Factor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Factor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // YAML hands a plain number over as the text that was written when a string is asked for.
        deserializer.deserialize_str(FactorText)
    }
}

struct FactorText;

impl de::Visitor<'_> for FactorText {
    type Value = Factor;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a factor as a decimal with at most 3 places, for example 0.5")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Factor::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

// === impl TimeOfDay ===

impl TimeOfDay {
    fn parse(text: &str) -> Option<Self> {
        let (hour, minute) = text.split_once(':')?;
        let number = |text: &str, below: u32| -> Option<u32> {
            let is_two_digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse().ok()?;
            (is_two_digits && number < below).then_some(number)
        };
        let minute = number(hour, 24)? * 60 + number(minute, 60)?;
        Some(Self { minute })
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.minute / 60, self.minute % 60)
    }
}

impl Serialize for TimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimeOfDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TimeText)
    }
}

struct TimeText;

impl de::Visitor<'_> for TimeText {
    type Value = TimeOfDay;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time of day, UTC, as `HH:MM`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        TimeOfDay::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

// === impl Weekday ===

impl Weekday {
    const ALL: [Self; 7] = [
        Self::Mon,
        Self::Tue,
        Self::Wed,
        Self::Thu,
        Self::Fri,
        Self::Sat,
        Self::Sun,
    ];

    /// 1 for Monday.
    pub(crate) fn number(self) -> u32 {
        (1..)
            .zip(Self::ALL)
            .find(|&(_, day)| day == self)
            .map_or(0, |(number, _)| number)
    }

    pub(crate) fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|day| day.number() == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_exact_thousandths() {
        for (text, permille, shown) in [
            ("0.5", 500, "0.5"),
            ("2", 2_000, "2"),
            ("1.80", 1_800, "1.8"),
            ("0.001", 1, "0.001"),
        ] {
            let factor = Factor::parse(text).unwrap();
            assert_eq!(
                (factor.permille, factor.to_string()),
                (permille, shown.into())
            );
        }
        for text in ["0", "0.0001", "-1", "", ".5", "1.", "50%", "5000000"] {
            assert_eq!(Factor::parse(text), None, "{text}");
        }
        let read: Vec<Factor> = serde_norway::from_str("[0.5, \"2\"]").unwrap();
        assert_eq!(
            read.iter().map(|it| it.permille).collect::<Vec<_>>(),
            [500, 2_000]
        );
    }

    #[test]
    fn times_of_day_are_minutes() {
        let read: Vec<TimeOfDay> = serde_norway::from_str("[\"01:00\", 23:59]").unwrap();
        assert_eq!(
            read.iter().map(|it| it.minute).collect::<Vec<_>>(),
            [60, 1_439]
        );
        assert_eq!(read.first().unwrap().to_string(), "01:00");
        for text in ["24:00", "1:00", "01:60", "0100", "+1:00", ""] {
            assert_eq!(TimeOfDay::parse(text), None, "{text}");
        }
    }

    #[test]
    fn weekdays_begin_on_monday() {
        assert_eq!((Weekday::Mon.number(), Weekday::Sun.number()), (1, 7));
        assert_eq!(Weekday::of(5), Some(Weekday::Fri));
        assert_eq!(Weekday::of(8), None);
    }
}
