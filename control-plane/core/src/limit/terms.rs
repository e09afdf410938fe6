//! What the arithmetic needs to know of a limit.

use proto::config::v1::{Enforcement, Limit, LimitUnit};

use super::{
    BucketKey, Calendar, LOST_IN_FLIGHT_US, LOST_KEPT_US, LOST_RELEASED_US, MAX_AMOUNT, Span,
    Window,
};

/// Whether credit is used up or lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Used up by charges, until the window ends.
    Counted,
    /// Lent as shares of a pace; nothing is ever charged.
    Rate,
    /// Lent as slots; nothing is ever charged.
    InFlight,
}

/// The terms of a limit.
#[derive(Clone, Debug)]
pub struct Terms {
    pub kind: Kind,
    pub calendar: Calendar,
    /// In the limit's unit, at most [`MAX_AMOUNT`].
    pub amount: u64,
    /// Whether the amount is never exceeded, so that lost credit stays suspended.
    pub strict: bool,
}

/// What becomes of the credit of a lost holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It stays suspended for now.
    Kept,
    /// It is free again.
    Released,
    /// It stays suspended, and is written down.
    Noted,
}

impl Terms {
    /// The terms of a published limit; none when it is not one that compiles.
    pub fn of(limit: &Limit) -> Option<Self> {
        let window = Window::from_wire(limit.window)?;
        let unit = LimitUnit::try_from(limit.unit).ok()?;
        let enforcement = Enforcement::try_from(limit.enforcement).ok()?;
        let kind = match (unit, window) {
            (LimitUnit::InFlight, _) => Kind::InFlight,
            (_, Window::Second | Window::Minute) => Kind::Rate,
            _ => Kind::Counted,
        };
        Some(Self {
            kind,
            calendar: Calendar::new(window, &limit.time_zone).ok()?,
            amount: limit.amount.min(MAX_AMOUNT),
            strict: unit == LimitUnit::Requests || enforcement == Enforcement::Strict,
        })
    }

    /// The bucket that a key names, its window start below 0 standing for now, or the one after
    /// it, with its window.
    pub fn bucket_of(&self, key: &BucketKey, next: bool, now_us: i64) -> (BucketKey, Span) {
        let at_s = match key.window_start_s {
            ..0 => now_us.div_euclid(1_000_000),
            start_s => start_s,
        };
        let mut span = self.calendar.span_at(at_s);
        if next {
            span = self.calendar.span_after(span).unwrap_or(span);
        }
        let named = BucketKey {
            window_start_s: span.start_s,
            ..key.clone()
        };
        (named, span)
    }

    /// What becomes of credit that was lost at a moment, as of now.
    pub(super) fn fate(&self, span: Span, lost_at_us: i64, now_us: i64) -> Fate {
        let lost_for_us = now_us.saturating_sub(lost_at_us);
        match self.kind {
            // The node's ttl is over once it is lost; what it let through is out of the window
            // after one more.
            Kind::Rate => released(lost_for_us >= self.rate_window_us()),
            Kind::InFlight => released(lost_for_us >= LOST_IN_FLIGHT_US),
            Kind::Counted if !self.strict => released(lost_for_us >= LOST_RELEASED_US),
            Kind::Counted => {
                let over = span.end_s.is_some_and(|end_s| end_s <= now_us / 1_000_000);
                if over || lost_for_us >= LOST_KEPT_US {
                    Fate::Noted
                } else {
                    Fate::Kept
                }
            }
        }
    }

    fn rate_window_us(&self) -> i64 {
        match self.calendar.window() {
            Window::Second => 1_000_000,
            _ => 60_000_000,
        }
    }
}

fn released(due: bool) -> Fate {
    if due { Fate::Released } else { Fate::Kept }
}
