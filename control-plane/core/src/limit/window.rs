//! Calendar windows in a time zone.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

pub use crate::resource::LimitWindow as Window;

/// From when to when, in Unix seconds; `end_s` is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// 0: one bucket for ever.
    pub start_s: i64,
    /// None: never ends.
    pub end_s: Option<i64>,
}

/// Windows of one length in one time zone. They cover all time and do not overlap.
#[derive(Clone, Debug)]
pub struct Calendar {
    window: Window,
    zone: TimeZone,
}

/// A name that the compiled-in time zone database does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be the IANA name of a time zone, for example Europe/Berlin")]
pub struct NotATimeZone;

const HOUR_S: i64 = 3600;
/// In the year 9980: a window from there on still ends at a moment that can be told.
const LAST_S: i64 = 252_800_000_000;

impl Span {
    /// The one window of rates, in-flight and lifetime.
    pub const FOR_EVER: Self = Self {
        start_s: 0,
        end_s: None,
    };
}

impl Calendar {
    /// Windows in a zone by its IANA name; empty: UTC.
    ///
    /// # Errors
    /// When there is no such zone.
    pub fn new(window: Window, time_zone: &str) -> Result<Self, NotATimeZone> {
        let zone = match time_zone {
            "" => TimeZone::UTC,
            name => TimeZone::get(name).map_err(|_| NotATimeZone)?,
        };
        Ok(Self { window, zone })
    }

    /// The window's length.
    pub fn window(&self) -> Window {
        self.window
    }

    /// The window that holds a moment, in Unix seconds; moments before 1970 and after 9980 count
    /// as those.
    pub fn span_at(&self, at_s: i64) -> Span {
        let at_s = at_s.clamp(0, LAST_S);
        let span = match self.window {
            Window::None | Window::Second | Window::Minute | Window::Lifetime => None,
            Window::Hour => self.hour_at(at_s),
            Window::Day => self.days_at(at_s, |date| Some((date, date.tomorrow().ok()?))),
            Window::Week => self.days_at(at_s, week_of),
            Window::Month => self.days_at(at_s, |date| {
                let first = date.first_of_month();
                Some((first, first.checked_add(1.month()).ok()?))
            }),
        };
        span.unwrap_or(Span::FOR_EVER)
    }

    /// The window after one; none when it never ends.
    pub fn span_after(&self, span: Span) -> Option<Span> {
        span.end_s.map(|end_s| self.span_at(end_s))
    }

    /// Hours of the wall clock. Where the clock is moved inside an hour, that hour is two windows.
    fn hour_at(&self, at_s: i64) -> Option<Span> {
        let at = Timestamp::from_second(at_s).ok()?;
        let offset = self.zone.to_offset(at);
        let into_hour = (at_s + i64::from(offset.seconds())).rem_euclid(HOUR_S);
        let start_s = at_s - into_hour;
        let end_s = start_s + HOUR_S;
        let moved = |second: i64| {
            let before = Timestamp::from_second(second - 1).ok()?;
            Some(
                self.zone.to_offset(before)
                    != self.zone.to_offset(Timestamp::from_second(second).ok()?),
            )
        };
        // The transition that holds now may lie inside the hour, and so may the next one.
        let last = self
            .zone
            .preceding(Timestamp::from_second(at_s + 1).ok()?)
            .map(|transition| transition.timestamp().as_second())
            .take_while(|second| *second > start_s)
            .find(|second| moved(*second) == Some(true));
        let next = self
            .zone
            .following(at)
            .map(|transition| transition.timestamp().as_second())
            .take_while(|second| *second < end_s)
            .find(|second| moved(*second) == Some(true));
        Some(Span {
            start_s: last.unwrap_or(start_s),
            end_s: Some(next.unwrap_or(end_s)),
        })
    }

    /// From the start of one local day to the start of another.
    fn days_at(&self, at_s: i64, days: impl Fn(Date) -> Option<(Date, Date)>) -> Option<Span> {
        let at = Timestamp::from_second(at_s).ok()?;
        let (first, after) = days(self.zone.to_datetime(at).date())?;
        Some(Span {
            start_s: self.day_start(first)?,
            end_s: Some(self.day_start(after)?),
        })
    }

    /// The first moment of a local day; of the day after, where the zone leapt over it.
    fn day_start(&self, date: Date) -> Option<i64> {
        let midnight = date.at(0, 0, 0, 0);
        let in_day = self.zone.to_zoned_datetime(midnight).ok()?;
        Some(in_day.start_of_day().ok()?.timestamp().as_second())
    }
}

fn week_of(date: Date) -> Option<(Date, Date)> {
    let since_monday = i64::from(date.weekday().since(Weekday::Monday));
    let monday = date.checked_sub(since_monday.days()).ok()?;
    Some((monday, monday.checked_add(7.days()).ok()?))
}

#[cfg(test)]
mod tests;
