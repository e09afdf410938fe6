//! Points in time and lengths of time, as people write and read them. Always UTC.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use prost_types::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::format_description::BorrowedFormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, OffsetDateTime, UtcOffset};

const DATE: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");
const HUMAN: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second]Z");

/// A point in time: RFC 3339 in JSON and YAML, `2026-12-01 08:30:00Z` in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(OffsetDateTime);

/// A point in time relative to now or absolute, as a flag gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relative {
    Length(Duration),
    At(Moment),
}

/// When a key ends, as a flag gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    Never,
    On(Relative),
}

/// Why a text is not a time.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidTime {
    #[error("`{0}` is not a length of time: write for example 90d, 24h, 15m or 1h30m")]
    Length(String),
    #[error(
        "`{0}` is not a point in time: write RFC 3339 or a date, for example 2026-12-31T18:00:00Z or 2026-12-31"
    )]
    Moment(String),
    #[error(
        "`{0}` is neither a length of time, such as 90d or 12h, nor a point in time, such as 2026-12-31T18:00:00Z or 2026-12-31"
    )]
    Relative(String),
    #[error("`{0}` lies outside of the years 1970 to 9999")]
    OutOfRange(String),
}

// === impl Moment ===

impl Moment {
    pub(crate) fn now() -> Self {
        Self(OffsetDateTime::now_utc())
    }

    pub(crate) fn from_unix_s(unix_s: i64) -> Option<Self> {
        OffsetDateTime::from_unix_timestamp(unix_s).ok().map(Self)
    }

    pub(crate) fn from_unix_us(unix_us: i64) -> Option<Self> {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_us) * 1000)
            .ok()
            .map(Self)
    }

    /// None for an absent timestamp and for one that is no date.
    pub(crate) fn from_wire(timestamp: Option<&Timestamp>) -> Option<Self> {
        let timestamp = timestamp?;
        let whole = OffsetDateTime::from_unix_timestamp(timestamp.seconds).ok()?;
        let nanos = u32::try_from(timestamp.nanos).ok()?;
        whole.replace_nanosecond(nanos).ok().map(Self)
    }

    pub(crate) fn to_wire(self) -> Timestamp {
        Timestamp {
            seconds: self.unix_s(),
            nanos: i32::try_from(self.0.nanosecond()).unwrap_or(0),
        }
    }

    pub(crate) fn unix_s(self) -> i64 {
        self.0.unix_timestamp()
    }

    /// The same moment without a fraction of a second: configs count whole seconds.
    pub(crate) fn whole_second(self) -> Self {
        Self(self.0.replace_nanosecond(0).unwrap_or(self.0))
    }

    /// The UTC day, `2026-12-01`.
    pub(crate) fn date(self) -> String {
        self.0.date().to_string()
    }

    /// How long before `now`, for example `4s ago`.
    pub(crate) fn age(self, now: Self) -> String {
        let seconds = (now.0 - self.0).whole_seconds().max(0);
        match seconds {
            0..120 => format!("{seconds}s ago"),
            120..7_200 => format!("{}m ago", seconds / 60),
            7_200..172_800 => format!("{}h ago", seconds / 3_600),
            _ => format!("{}d ago", seconds / 86_400),
        }
    }
}

impl FromStr for Moment {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let parsed = match Date::parse(text, DATE) {
            Ok(date) => date.midnight().assume_utc(),
            Err(_) => OffsetDateTime::parse(text, &Rfc3339)
                .map_err(|_| InvalidTime::Moment(text.to_owned()))?,
        };
        // A time near the year 10000 may leave the range when it is moved to UTC.
        match parsed.checked_to_offset(UtcOffset::UTC) {
            Some(utc) if utc.unix_timestamp() >= 0 => Ok(Self(utc)),
            Some(_) | None => Err(InvalidTime::OutOfRange(text.to_owned())),
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.format(HUMAN).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.format(&Rfc3339).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

// === impl Relative ===

impl Relative {
    /// The moment this length before `now`, or the absolute one.
    pub(crate) fn before(self, now: Moment) -> anyhow::Result<Moment> {
        match self {
            Self::At(moment) => Ok(moment),
            Self::Length(length) => time::Duration::try_from(length)
                .ok()
                .and_then(|length| now.0.checked_sub(length))
                .filter(|then| then.unix_timestamp() >= 0)
                .map(Moment)
                .ok_or_else(|| anyhow::anyhow!("{} s ago lies before 1970", length.as_secs())),
        }
    }

    /// The moment this length after `now`, or the absolute one.
    pub(crate) fn after(self, now: Moment) -> anyhow::Result<Moment> {
        match self {
            Self::At(moment) => Ok(moment),
            Self::Length(length) => time::Duration::try_from(length)
                .ok()
                .and_then(|length| now.0.checked_add(length))
                .map(Moment)
                .ok_or_else(|| anyhow::anyhow!("{} s from now is after 9999", length.as_secs())),
        }
    }
}

impl FromStr for Relative {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        match parse_length(text) {
            Ok(length) => Ok(Self::Length(length)),
            Err(_) => match text.parse() {
                Ok(moment) => Ok(Self::At(moment)),
                Err(InvalidTime::Moment(text)) => Err(InvalidTime::Relative(text)),
                Err(error) => Err(error),
            },
        }
    }
}

// === impl Expiry ===

impl Expiry {
    pub(crate) fn resolve(self, now: Moment) -> anyhow::Result<Option<Moment>> {
        match self {
            Self::Never => Ok(None),
            Self::On(relative) => Ok(Some(relative.after(now)?.whole_second())),
        }
    }
}

impl FromStr for Expiry {
    type Err = InvalidTime;

    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        match text {
            "never" => Ok(Self::Never),
            text => text.parse().map(Self::On),
        }
    }
}

/// Reads `90d`, `1h30m`, `2w`; units w, d, h, m, s.
pub(crate) fn parse_length(text: &str) -> Result<Duration, InvalidTime> {
    let invalid = || InvalidTime::Length(text.to_owned());
    let mut total_s: u64 = 0;
    let mut count: Option<u64> = None;
    for character in text.chars() {
        if let Some(digit) = character.to_digit(10) {
            let shifted = count.unwrap_or(0).checked_mul(10).ok_or_else(invalid)?;
            count = Some(shifted.checked_add(u64::from(digit)).ok_or_else(invalid)?);
            continue;
        }
        let unit_s = match character {
            'w' => 604_800,
            'd' => 86_400,
            'h' => 3_600,
            'm' => 60,
            's' => 1,
            _ => return Err(invalid()),
        };
        let part_s = count.take().and_then(|count| count.checked_mul(unit_s));
        total_s = part_s
            .and_then(|part_s| total_s.checked_add(part_s))
            .ok_or_else(invalid)?;
    }
    match (count, total_s) {
        (None, 1..) => Ok(Duration::from_secs(total_s)),
        _ => Err(invalid()),
    }
}

/// A length of time in the fewest words: `41 ms`, `12.5 s`.
pub(crate) fn brief(length: Duration) -> String {
    let ms = length.as_millis();
    if ms < 10_000 {
        format!("{ms} ms")
    } else {
        format!("{}.{} s", ms / 1000, ms % 1000 / 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Moment {
        text.parse().unwrap()
    }

    #[test]
    fn lengths_are_read_with_their_units() {
        let seconds = |text| parse_length(text).unwrap().as_secs();
        assert_eq!(seconds("90d"), 7_776_000);
        assert_eq!(seconds("24h"), 86_400);
        assert_eq!(seconds("1h30m"), 5_400);
        assert_eq!(seconds("2w1d"), 1_296_000);
        assert_eq!(seconds("45s"), 45);
    }

    #[test]
    fn a_length_without_a_unit_or_above_any_clock_is_refused() {
        for text in [
            "",
            "90",
            "d",
            "-1d",
            "1.5h",
            "1y",
            "1h30",
            "0s",
            "99999999999999999999d",
            "9999999999999999999d",
        ] {
            assert_eq!(
                parse_length(text),
                Err(InvalidTime::Length(text.into())),
                "{text}"
            );
        }
    }

    #[test]
    fn an_expiry_is_never_a_length_or_a_moment() {
        let now = moment("2026-12-01T00:00:00.5Z");
        let resolve = |text: &str| text.parse::<Expiry>().unwrap().resolve(now).unwrap();
        assert_eq!(resolve("never"), None);
        assert_eq!(resolve("90d"), Some(moment("2027-03-01")));
        assert_eq!(
            resolve("2026-12-31T18:00:00+01:00"),
            Some(moment("2026-12-31T17:00:00Z"))
        );
        assert_eq!(
            "tomorrow".parse::<Expiry>(),
            Err(InvalidTime::Relative("tomorrow".into()))
        );
        assert_eq!(
            "1969-12-31".parse::<Expiry>(),
            Err(InvalidTime::OutOfRange("1969-12-31".into()))
        );
    }

    #[test]
    fn a_length_beyond_the_calendar_is_an_error_not_a_wrap() {
        let now = moment("2026-12-01");
        let far = "99999999w".parse::<Relative>().unwrap();
        assert!(far.before(now).is_err());
        assert!(far.after(now).is_err());
    }

    #[test]
    fn a_moment_goes_to_the_wire_and_back() {
        let then = moment("2026-12-31T18:00:00.25Z");
        assert_eq!(Moment::from_wire(Some(&then.to_wire())), Some(then));
        assert_eq!(then.to_string(), "2026-12-31 18:00:00Z");
        assert_eq!(
            serde_json::to_string(&then).unwrap(),
            r#""2026-12-31T18:00:00.25Z""#
        );
        assert_eq!(Moment::from_wire(None), None);
        assert_eq!(
            Moment::from_wire(Some(&Timestamp {
                seconds: i64::MAX,
                nanos: 0
            })),
            None
        );
    }

    #[test]
    fn ages_are_told_in_one_unit() {
        let now = moment("2026-12-31T18:00:00Z");
        assert_eq!(moment("2026-12-31T17:59:56Z").age(now), "4s ago");
        assert_eq!(moment("2026-12-31T17:30:00Z").age(now), "30m ago");
        assert_eq!(moment("2026-12-31T08:00:00Z").age(now), "10h ago");
        assert_eq!(moment("2026-12-01").age(now), "30d ago");
        assert_eq!(moment("2027-01-01").age(now), "0s ago");
    }

    #[test]
    fn elapsed_time_is_brief() {
        assert_eq!(brief(Duration::from_micros(41_900)), "41 ms");
        assert_eq!(brief(Duration::from_millis(12_560)), "12.5 s");
    }
}
