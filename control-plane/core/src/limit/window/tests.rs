use jiff::tz;
use proptest::prelude::*;

use super::*;

fn calendar(window: Window, zone: &str) -> Calendar {
    Calendar::new(window, zone).unwrap()
}

fn second(moment: &str) -> i64 {
    moment.parse::<Timestamp>().unwrap().as_second()
}

fn span(start: &str, end: &str) -> Span {
    Span {
        start_s: second(start),
        end_s: Some(second(end)),
    }
}

#[test]
fn a_day_is_the_local_one_and_not_counted_from_the_first_request() {
    let tokyo = calendar(Window::Day, "Asia/Tokyo");
    let day = span("2026-03-09T00:00:00+09:00", "2026-03-10T00:00:00+09:00");
    assert_eq!(tokyo.span_at(second("2026-03-09T15:43:00+09:00")), day);
    // 15:00 UTC is the local midnight: the window is over, to the second.
    assert_eq!(tokyo.span_at(second("2026-03-09T14:59:59Z")), day);
    assert_eq!(
        tokyo.span_at(second("2026-03-09T15:00:00Z")).start_s,
        day.end_s.unwrap()
    );
}

#[test]
fn days_are_23_and_25_hours_long_where_the_clock_is_moved() {
    let berlin = calendar(Window::Day, "Europe/Berlin");
    for (noon, hours) in [
        ("2026-03-29T12:00:00+02:00", 23),
        ("2026-10-25T12:00:00+01:00", 25),
        ("2026-10-26T12:00:00+01:00", 24),
    ] {
        let day = berlin.span_at(second(noon));
        assert_eq!(day.end_s.unwrap() - day.start_s, hours * 3600, "{noon}");
    }
}

#[test]
fn an_hour_that_comes_twice_is_two_windows() {
    let berlin = calendar(Window::Hour, "Europe/Berlin");
    let summer = berlin.span_at(second("2026-10-25T02:30:00+02:00"));
    let winter = berlin.span_at(second("2026-10-25T02:30:00+01:00"));
    assert_eq!(
        summer,
        span("2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00")
    );
    assert_eq!(
        winter,
        span("2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00")
    );
}

#[test]
fn an_hour_inside_which_the_clock_is_moved_is_cut_there() {
    let island = calendar(Window::Hour, "Australia/Lord_Howe");
    // At 02:00 summer time the clock goes back by half an hour.
    assert_eq!(
        island.span_at(second("2026-04-05T01:45:00+10:30")),
        span("2026-04-05T02:00:00+11:00", "2026-04-05T02:00:00+10:30"),
    );
    assert_eq!(
        island.span_at(second("2026-04-05T01:45:00+11:00")),
        span("2026-04-05T01:00:00+11:00", "2026-04-05T02:00:00+11:00"),
    );
    let nepal = calendar(Window::Hour, "Asia/Kathmandu");
    assert_eq!(
        nepal.span_at(second("2026-04-05T10:20:00+05:45")),
        span("2026-04-05T10:00:00+05:45", "2026-04-05T11:00:00+05:45"),
    );
}

#[test]
fn a_day_that_has_no_midnight_begins_where_it_begins() {
    let beirut = calendar(Window::Day, "Asia/Beirut");
    // The clock goes from 00:00 to 01:00 on 29 March 2026.
    let day = beirut.span_at(second("2026-03-29T12:00:00+03:00"));
    assert_eq!(
        day,
        span("2026-03-29T01:00:00+03:00", "2026-03-30T00:00:00+03:00")
    );
}

#[test]
fn a_day_that_was_leapt_over_is_no_window() {
    let samoa = calendar(Window::Day, "Pacific/Apia");
    let last = samoa.span_at(second("2011-12-29T23:00:00-10:00"));
    assert_eq!(
        last,
        span("2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00")
    );
}

#[test]
fn weeks_begin_on_monday_and_months_on_the_first() {
    let utc = calendar(Window::Week, "");
    let week = span("2026-02-23T00:00:00Z", "2026-03-02T00:00:00Z");
    assert_eq!(utc.span_at(second("2026-03-01T23:59:59Z")), week);
    assert_eq!(utc.span_at(second("2026-02-23T00:00:00Z")), week);
    let month = calendar(Window::Month, "America/New_York");
    assert_eq!(
        month.span_at(second("2028-02-29T23:59:59-05:00")),
        span("2028-02-01T00:00:00-05:00", "2028-03-01T00:00:00-05:00"),
    );
    assert_eq!(
        month.span_at(second("2026-01-31T23:59:59-05:00")),
        span("2026-01-01T00:00:00-05:00", "2026-02-01T00:00:00-05:00"),
    );
}

#[test]
fn what_has_no_window_has_one_for_ever() {
    for window in [
        Window::None,
        Window::Second,
        Window::Minute,
        Window::Lifetime,
    ] {
        let for_ever = calendar(window, "Europe/Berlin");
        assert_eq!(for_ever.span_at(1_800_000_000), Span::FOR_EVER);
        assert_eq!(for_ever.span_after(Span::FOR_EVER), None);
    }
}

#[test]
fn a_zone_that_does_not_exist_is_refused() {
    for name in ["Europe/Atlantis", "+01:00", "../etc/passwd", " "] {
        assert!(Calendar::new(Window::Day, name).is_err(), "{name}");
    }
}

fn zones() -> Vec<String> {
    tz::db().available().map(|name| name.to_string()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn windows_of_every_zone_hold_their_moment_and_join_without_a_seam(
        zone in proptest::sample::select(zones()),
        at_s in prop_oneof![0_i64..4_100_000_000, Just(252_700_000_000)],
    ) {
        for window in [Window::Hour, Window::Day, Window::Week, Window::Month] {
            let calendar = calendar(window, &zone);
            let span = calendar.span_at(at_s);
            let end_s = span.end_s.unwrap();
            prop_assert!(span.start_s <= at_s && at_s < end_s, "{zone} {window:?} {span:?}");
            prop_assert_eq!(calendar.span_at(span.start_s.max(0)), span);
            prop_assert_eq!(calendar.span_at(end_s - 1), span);
            prop_assert_eq!(calendar.span_after(span).unwrap().start_s, end_s);
        }
    }
}
