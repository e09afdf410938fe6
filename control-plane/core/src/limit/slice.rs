//! How much is granted at a time.

use super::Kind;

/// What a holder asks for beyond what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The whole raise that is wished.
    pub raise: u64,
    /// The smallest raise that helps; less is nothing.
    pub min_useful: u64,
    pub demand_per_minute: u64,
    /// A request waits for it.
    pub urgent: bool,
    /// What the holder has out already.
    pub outstanding: u64,
}

/// A holder whose pace is not known yet is given this many of the smallest useful raise.
const FIRST_SLICE: u64 = 8;

/// How much to grant of what is free, to one of `active` holders (at least 1).
///
/// Never more than the raise or what is free, and nothing at all below `min_useful`. Counted
/// credit goes out in slices of half a minute's demand, at most half of a holder's even part, so
/// that nobody sits on what others need; once even parts get small, only what a waiting request
/// lacks. Shares are given whole as long as one holder is alone, and to the even part after. Slots
/// of a lost holder stay suspended for long, so that nobody has many more than it uses: a holder's
/// slots double at most.
pub fn slice(kind: Kind, amount: u64, free: u64, active: u64, ask: &Ask) -> u64 {
    let need = ask.min_useful.min(ask.raise);
    if free < need || ask.raise == 0 {
        return 0;
    }
    let half_part = free / active.max(1).saturating_mul(2);
    let most = match kind {
        Kind::Counted if half_part < need => {
            return if ask.urgent { need } else { 0 };
        }
        Kind::Counted => {
            let paced = (ask.demand_per_minute / 2).max(need.saturating_mul(FIRST_SLICE));
            paced.min(half_part)
        }
        Kind::InFlight => {
            let doubled = ask.outstanding.max(need.saturating_mul(FIRST_SLICE));
            doubled.min(half_part)
        }
        Kind::Rate => {
            let even = amount / active.max(1);
            even.saturating_sub(ask.outstanding).max(half_part)
        }
    };
    most.max(need).min(ask.raise).min(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(raise: u64, min_useful: u64) -> Ask {
        Ask {
            raise,
            min_useful,
            demand_per_minute: 0,
            urgent: true,
            outstanding: 0,
        }
    }

    #[test]
    fn credit_far_from_the_limit_follows_demand() {
        let pace = Ask {
            demand_per_minute: 1000,
            ..ask(10_000, 10)
        };
        assert_eq!(slice(Kind::Counted, 1 << 20, 1 << 20, 4, &pace), 500);
        assert_eq!(
            slice(Kind::Counted, 1 << 20, 1 << 20, 4, &ask(10_000, 10)),
            80
        );
    }

    #[test]
    fn near_the_limit_only_what_a_waiting_request_lacks_is_given() {
        let pace = Ask {
            demand_per_minute: 1000,
            ..ask(10_000, 10)
        };
        assert_eq!(slice(Kind::Counted, 1000, 79, 4, &pace), 10);
        let idle = Ask {
            urgent: false,
            ..pace
        };
        assert_eq!(slice(Kind::Counted, 1000, 79, 4, &idle), 0);
    }

    #[test]
    fn a_raise_that_helps_nobody_is_not_given() {
        assert_eq!(slice(Kind::Counted, 100, 9, 1, &ask(50, 10)), 0);
        assert_eq!(slice(Kind::InFlight, 5, 0, 1, &ask(1, 1)), 0);
    }

    #[test]
    fn shares_are_whole_for_one_and_even_for_several() {
        assert_eq!(slice(Kind::Rate, 60, 60, 1, &ask(60, 1)), 60);
        assert_eq!(slice(Kind::Rate, 60, 60, 3, &ask(60, 1)), 20);
        let holder = Ask {
            outstanding: 20,
            ..ask(40, 1)
        };
        assert_eq!(slice(Kind::Rate, 60, 3, 3, &holder), 1);
    }

    #[test]
    fn slots_double_and_leave_half_of_an_even_part() {
        assert_eq!(slice(Kind::InFlight, 100, 100, 1, &ask(100, 1)), 8);
        let holder = Ask {
            outstanding: 20,
            ..ask(80, 1)
        };
        assert_eq!(slice(Kind::InFlight, 100, 80, 1, &holder), 20);
        assert_eq!(slice(Kind::InFlight, 100, 30, 1, &holder), 15);
        assert_eq!(slice(Kind::InFlight, 100, 3, 4, &holder), 1);
    }
}
