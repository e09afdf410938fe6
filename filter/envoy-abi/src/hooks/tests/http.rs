use super::stand_in::*;
use crate::hooks::http::*;
use crate::hooks::specifier::*;
use crate::raw::{Buffer, Ptr};
use crate::status::*;

const REPLY: &str = "send_response 500 1 112 dynamic_module_panic";
const CUT: &str = "reset_stream 0 dynamic_module_panic";

fn panic_line(hook: &str, calls: &[String]) -> usize {
    let wanted = format!("log panic in {hook} at");
    calls
        .iter()
        .filter(|call| call.starts_with(&wanted))
        .count()
}

/// Calls one hook by its short name.
fn call(hook: &str, filter: Ptr) {
    match hook {
        "request_headers" => drop_status(envoy_dynamic_module_on_http_filter_request_headers(
            STREAM, filter, false,
        )),
        "request_body" => drop_status(envoy_dynamic_module_on_http_filter_request_body(
            STREAM, filter, false,
        )),
        "request_trailers" => drop_status(envoy_dynamic_module_on_http_filter_request_trailers(
            STREAM, filter,
        )),
        "response_headers" => drop_status(envoy_dynamic_module_on_http_filter_response_headers(
            STREAM, filter, false,
        )),
        "response_body" => drop_status(envoy_dynamic_module_on_http_filter_response_body(
            STREAM, filter, false,
        )),
        "response_trailers" => drop_status(envoy_dynamic_module_on_http_filter_response_trailers(
            STREAM, filter,
        )),
        "local_reply" => drop_status(local_reply(filter)),
        "stream_complete" => envoy_dynamic_module_on_http_filter_stream_complete(STREAM, filter),
        "scheduled" => envoy_dynamic_module_on_http_filter_scheduled(STREAM, filter, 1),
        "above_watermark" => {
            envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(
                STREAM, filter,
            )
        }
        "below_watermark" => {
            envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(
                STREAM, filter,
            )
        }
        "drop" => envoy_dynamic_module_on_http_filter_destroy(filter),
        other => panic!("no hook {other}"),
    }
}

fn drop_status<T: Copy>(_: T) {}

fn local_reply(filter: Ptr) -> LocalReplyStatus {
    envoy_dynamic_module_on_http_filter_local_reply(
        STREAM,
        filter,
        502,
        Buffer::new(b"gone"),
        false,
    )
}

#[test]
fn a_panic_in_any_downstream_hook_is_answered_once_and_later_hooks_pass() {
    let cases = [
        ("request_headers", Some(REPLY)),
        ("request_body", Some(REPLY)),
        ("request_trailers", Some(REPLY)),
        ("response_headers", Some(REPLY)),
        ("response_body", Some(CUT)),
        ("response_trailers", Some(CUT)),
        ("local_reply", None),
        ("stream_complete", None),
        ("scheduled", Some(REPLY)),
        ("above_watermark", None),
        ("below_watermark", None),
    ];
    for (hook, answer) in cases {
        let filter = new_filter("down", hook);
        call(hook, filter);
        let made = calls();
        assert_eq!(
            panic_line(&format!("downstream.{hook}"), &made),
            1,
            "{made:?}"
        );
        assert!(!made.iter().any(|call| call.contains("secret")), "{made:?}");
        let answers: Vec<_> = made
            .iter()
            .filter(|call| !call.starts_with("log"))
            .collect();
        assert_eq!(answers, Vec::from_iter(answer), "{hook}");
        seen();
        if answer.is_some() {
            call("response_body", filter);
            call("stream_complete", filter);
            assert_eq!((calls(), seen()), (vec![], vec![]), "{hook}");
        }
        call("drop", filter);
        assert_eq!(seen(), ["drop"], "{hook}: the filter is freed");
    }
}

#[test]
fn a_filter_that_broke_silently_does_not_let_the_request_through() {
    let filter = new_filter("down", "above_watermark");
    call("above_watermark", filter);
    calls();
    let status = envoy_dynamic_module_on_http_filter_request_body(STREAM, filter, true);
    assert_eq!(status, BodyStatus::StopIterationNoBuffer);
    assert_eq!(calls(), [REPLY]);
    call("drop", filter);
}

#[test]
fn a_panic_while_a_filter_is_made_replies_500_to_its_request() {
    for side in ["down", "up"] {
        let filter = new_filter(side, "new_filter");
        assert!(!filter.is_null());
        calls();
        let status = envoy_dynamic_module_on_http_filter_request_headers(STREAM, filter, true);
        assert_eq!(status, HeadersStatus::StopIteration);
        assert_eq!(calls(), [REPLY], "{side}");
        call("drop", filter);
    }
}

#[test]
fn a_panic_after_the_response_began_is_cut_when_scheduled() {
    let filter = new_filter("down", "scheduled");
    call("response_headers", filter);
    call("scheduled", filter);
    assert!(calls().iter().any(|call| call == CUT));
    call("drop", filter);
}

#[test]
fn a_panic_in_an_upstream_request_hook_replies_500() {
    for hook in ["request_headers", "request_body", "request_trailers"] {
        let filter = new_filter("up", hook);
        call(hook, filter);
        let made = calls();
        assert_eq!(panic_line(&format!("upstream.{hook}"), &made), 1);
        assert_eq!(made.last().unwrap(), REPLY);
        call("drop", filter);
    }
}

#[test]
fn a_panic_in_upstream_response_headers_turns_the_response_into_a_500() {
    let filter = new_filter("up", "response_headers");
    let status = envoy_dynamic_module_on_http_filter_response_headers(STREAM, filter, false);
    assert_eq!(status, HeadersStatus::Continue);
    assert_eq!(
        calls()[1..],
        [
            "set_header :status 500",
            "set_header content-type application/json",
            "set_header content-length (removed)",
            "set_header content-encoding (removed)",
        ]
    );
    call("response_body", filter);
    assert_eq!(calls(), ["drain_body 5", "append_body 112"]);
    call("response_body", filter);
    assert_eq!(calls(), ["drain_body 5"]);
    call("drop", filter);
}

#[test]
fn a_panic_in_upstream_response_body_makes_the_downstream_filter_cut_the_stream() {
    let down = new_filter("down", "");
    call("response_headers", down);
    let up = new_filter("up", "response_body");
    call("response_headers", up);
    let status = envoy_dynamic_module_on_http_filter_response_body(STREAM, up, false);
    assert_eq!(status, BodyStatus::Continue);
    assert_eq!(
        calls()[1..],
        ["drain_body 5"],
        "no reset and no reply from here"
    );
    seen();
    let status = envoy_dynamic_module_on_http_filter_response_body(STREAM, down, false);
    assert_eq!(status, BodyStatus::StopIterationNoBuffer);
    assert_eq!(calls(), [CUT]);
    call("stream_complete", down);
    assert_eq!(
        seen(),
        ["stream_complete"],
        "the downstream filter still settles"
    );
    call("drop", up);
    call("drop", down);
}

#[test]
fn a_panic_in_upstream_response_trailers_makes_the_downstream_filter_cut_the_stream() {
    let down = new_filter("down", "");
    call("response_headers", down);
    let up = new_filter("up", "response_trailers");
    call("response_headers", up);
    call("response_body", up);
    calls();
    call("response_trailers", up);
    assert_eq!(panic_line("upstream.response_trailers", &calls()), 1);
    let status = envoy_dynamic_module_on_http_filter_response_trailers(STREAM, down);
    assert_eq!(status, TrailersStatus::StopIteration);
    assert_eq!(calls(), [CUT]);
    call("drop", up);
    call("drop", down);
}

#[test]
fn a_panic_in_upstream_response_trailers_with_the_head_held_turns_the_response_into_a_500() {
    let up = new_filter("up", "hold, then response_trailers");
    call("response_headers", up);
    calls();
    call("response_trailers", up);
    let made = calls();
    assert_eq!(made[1], "set_header :status 500");
    assert_eq!(made.last().unwrap(), "append_body 112");
    call("drop", up);
}

#[test]
fn an_upstream_reply_after_the_response_began_is_not_made() {
    let filter = new_filter("up", "");
    call("response_headers", filter);
    call("scheduled", filter);
    let made = calls();
    assert!(
        !made.iter().any(|call| call.starts_with("send_response")),
        "{made:?}"
    );
    assert!(
        made.iter()
            .any(|call| call.starts_with("log an upstream filter replied"))
    );
    assert_eq!(made.last().unwrap(), "continue_encoding");
    call("drop", filter);
}

#[test]
fn a_panic_in_drop_is_caught_and_the_instance_freed() {
    for side in ["down", "up"] {
        let filter = new_filter(side, "drop");
        call("drop", filter);
        let made = calls();
        assert!(
            made.iter().any(|call| call.contains("stream.destroy at")),
            "{made:?}"
        );
    }
}

#[test]
fn a_body_replaced_in_trailers_takes_the_place_of_what_was_held() {
    let filter = new_filter("down", "replace bodies");
    IN_TRAILERS.set(true);
    call("request_trailers", filter);
    assert_eq!(calls().last().unwrap(), "append_body 3");
    call("response_trailers", filter);
    assert_eq!(calls().last().unwrap(), "append_body 5");
    IN_TRAILERS.set(false);
    call("drop", filter);
}

#[test]
fn queued_calls_are_made_in_order_after_the_hook_and_may_re_enter_it() {
    let filter = new_filter("down", "reply");
    seen();
    inside_reply(|| {
        local_reply(FILTER.get());
        call("stream_complete", FILTER.get());
    });
    let status = envoy_dynamic_module_on_http_filter_request_headers(STREAM, filter, true);
    assert_eq!(status, HeadersStatus::StopIteration);
    assert_eq!(
        seen(),
        [
            "request_headers",
            "queued",
            "local_reply",
            "stream_complete"
        ]
    );
    assert_eq!(
        calls(),
        [
            "clear_route_cluster_cache",
            "send_response 401 1 2 mine",
            "continue_decoding"
        ]
    );
    call("drop", filter);
}

#[test]
fn a_filter_destroyed_inside_its_own_call_is_freed_after_it() {
    let filter = new_filter("down", "reply");
    seen();
    inside_reply(|| call("drop", FILTER.get()));
    envoy_dynamic_module_on_http_filter_request_headers(STREAM, filter, true);
    assert_eq!(seen(), ["request_headers", "queued", "drop"]);
    let made = calls();
    assert_eq!(
        made.last().unwrap(),
        "send_response 401 1 2 mine",
        "nothing after it"
    );
}

#[test]
fn calls_queued_before_a_panic_are_forgotten() {
    let filter = new_filter("down", "queue, then panic");
    call("request_headers", filter);
    let made = calls();
    assert!(!made.iter().any(|call| call.contains("never")), "{made:?}");
    call("drop", filter);
}

#[test]
fn an_error_event_goes_out_once_headers_are_and_is_not_seen_by_its_sender() {
    let filter = new_filter("down", "event");
    local_reply(filter);
    assert_eq!(calls(), Vec::<String>::new(), "no headers are out");
    call("response_headers", filter);
    seen();
    inside_event(|| call("response_body", FILTER.get()));
    local_reply(filter);
    assert_eq!(calls(), ["send_response_data oops false"]);
    assert_eq!(seen(), ["local_reply"]);
    call("response_body", filter);
    assert_eq!(seen(), ["response_body"]);
    call("drop", filter);
}

#[test]
fn a_commit_after_the_stream_does_nothing() {
    let filter = new_filter("down", "schedule");
    call("request_headers", filter);
    assert_eq!(calls(), ["new", "commit 1"]);
    let kept = KEPT.take().unwrap();
    std::thread::scope(|scope| scope.spawn(|| kept.commit(2)).join().unwrap());
    call("drop", filter);
    assert_eq!(calls(), ["delete"]);
    kept.commit(3);
    drop(kept);
    assert_eq!(calls(), Vec::<String>::new());
}

#[test]
fn getters_read_what_envoy_writes() {
    let filter = new_filter("down", "read headers");
    call("request_headers", filter);
    assert_eq!(seen(), ["new_filter", "request_headers"]);
    call("drop", filter);
}

#[test]
fn a_refused_or_panicking_configuration_is_null() {
    assert!(new_config("unknown", "").is_null());
    assert!(new_config("panics", "").is_null());
    assert_eq!(panic_line("http_filter.config_new", &calls()), 1);
    envoy_dynamic_module_on_http_filter_config_destroy(std::ptr::null_mut());
    let config = new_config("down", "");
    envoy_dynamic_module_on_http_filter_config_destroy(config);
    assert_eq!(seen(), ["drop"]);
}

#[test]
fn a_null_filter_passes_everything_on() {
    let null = std::ptr::null_mut();
    let status = envoy_dynamic_module_on_http_filter_request_headers(STREAM, null, true);
    assert_eq!(status, HeadersStatus::Continue);
    call("drop", null);
}

fn new_panicking_specifier() -> Ptr {
    load();
    let config = Buffer::new(b"panic");
    envoy_dynamic_module_on_cluster_specifier_config_new(STREAM, Buffer::new(b"s"), config)
}

#[test]
fn a_specifier_that_panics_inside_a_hook_fails_that_request() {
    let filter = new_filter("down", "select");
    inside_selection(|| {
        let specifier = new_panicking_specifier();
        envoy_dynamic_module_on_cluster_specifier_select(specifier, STREAM);
        envoy_dynamic_module_on_cluster_specifier_config_destroy(specifier);
    });
    let status = envoy_dynamic_module_on_http_filter_request_headers(STREAM, filter, true);
    assert_eq!(status, HeadersStatus::StopIteration);
    assert_eq!(calls().last().unwrap(), REPLY);
    call("drop", filter);

    let next = new_filter("down", "select");
    let status = envoy_dynamic_module_on_http_filter_request_headers(STREAM, next, true);
    assert_eq!(status, HeadersStatus::Continue, "and no other");
    calls();
    call("drop", next);
}

#[test]
fn a_panicking_specifier_keeps_the_previous_cluster() {
    let specifier = new_panicking_specifier();
    assert!(!envoy_dynamic_module_on_cluster_specifier_select(
        specifier, STREAM
    ));
    assert_eq!(panic_line("specifier.select", &calls()), 1);
    envoy_dynamic_module_on_cluster_specifier_config_destroy(specifier);
}
