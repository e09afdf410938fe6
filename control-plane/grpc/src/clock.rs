//! The control plane's clock, and its times on the wire.

use prost_types::Timestamp;
use time::OffsetDateTime;

/// Unix time in microseconds.
pub(crate) fn now_us() -> i64 {
    to_us(OffsetDateTime::now_utc())
}

/// Unix time in microseconds of a moment.
pub(crate) fn to_us(moment: OffsetDateTime) -> i64 {
    i64::try_from(moment.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX)
}

pub(crate) fn to_timestamp(moment: OffsetDateTime) -> Timestamp {
    Timestamp {
        seconds: moment.unix_timestamp(),
        nanos: i32::try_from(moment.nanosecond()).unwrap_or(0),
    }
}

/// The wire form of Unix time in microseconds.
pub(crate) fn us_to_timestamp(us: i64) -> Timestamp {
    Timestamp {
        seconds: us.div_euclid(1_000_000),
        nanos: i32::try_from(us.rem_euclid(1_000_000) * 1000).unwrap_or(0),
    }
}

/// A moment from the wire; none when it is no valid one of the years 1 to 9999.
pub(crate) fn from_timestamp(timestamp: Timestamp) -> Option<OffsetDateTime> {
    let nanos = u32::try_from(timestamp.nanos).ok()?;
    OffsetDateTime::from_unix_timestamp(timestamp.seconds)
        .ok()
        .filter(|moment| moment.year() >= 1)?
        .replace_nanosecond(nanos)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_survive_the_wire() {
        for (seconds, nanos) in [(0, 0), (1_700_000_000, 123_456_789), (-1, 999_999_999)] {
            let timestamp = Timestamp { seconds, nanos };
            assert_eq!(to_timestamp(from_timestamp(timestamp).unwrap()), timestamp);
        }
        assert_eq!(
            us_to_timestamp(-1),
            Timestamp {
                seconds: -1,
                nanos: 999_999_000
            }
        );
        let moment = from_timestamp(us_to_timestamp(1_700_000_000_000_001)).unwrap();
        assert_eq!(to_us(moment), 1_700_000_000_000_001);
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for (seconds, nanos) in [(0, -1), (0, 1_000_000_000), (i64::MAX, 0), (i64::MIN, 0)] {
            assert_eq!(from_timestamp(Timestamp { seconds, nanos }), None);
        }
    }
}
