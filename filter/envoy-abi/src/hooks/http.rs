//! HTTP filter hooks, for both sides of the router.

use crate::envoy_config::EnvoyConfig;
use crate::guard::{contain, guard};
use crate::hooks::text;
use crate::http::LocalReply;
use crate::http_instance::{ConfigInstance, HttpInstance, Side, destroy, with_instance};
use crate::module::{callbacks, module};
use crate::raw::{Buffer, Ptr};
use crate::status::{BodyStatus, HeadersStatus, LocalReplyStatus, TrailersStatus};
use crate::{down, up};

const NULL: Ptr = std::ptr::null_mut();

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_config_new(
    config: Ptr,
    name: Buffer,
    bytes: Buffer,
) -> Ptr {
    guard("http_filter.config_new", || {
        crate::fault_point!("http_filter.config_new");
        let (Some(callbacks), Some(module)) = (callbacks(), module()) else {
            return NULL;
        };
        let mut host = EnvoyConfig { callbacks, config };
        // SAFETY: Envoy keeps both for the length of the hook.
        let (name, bytes) = unsafe { (text(name), bytes.bytes()) };
        let made = name.and_then(|name| (module.http_filter)(&mut host, name, bytes));
        made.map_or(NULL, |config| {
            Box::into_raw(Box::new(ConfigInstance { callbacks, config })).cast()
        })
    })
    .unwrap_or(NULL)
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_config_destroy(config: Ptr) {
    contain("http_filter.config_destroy", || {
        crate::fault_point!("http_filter.config_destroy");
        if !config.is_null() {
            // SAFETY: made by `config_new`; Envoy has given it up.
            drop(unsafe { Box::from_raw(config.cast::<ConfigInstance>()) });
        }
    });
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_new(config: Ptr, stream: Ptr) -> Ptr {
    guard("http_filter.new", || {
        // SAFETY: made by `config_new`, and Envoy keeps it longer than its filters.
        let config = unsafe { config.cast::<ConfigInstance>().as_ref() };
        config.map_or(NULL, |config| {
            Box::into_raw(Box::new(HttpInstance::new(config, stream))).cast()
        })
    })
    .unwrap_or(NULL)
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_request_headers(
    stream: Ptr,
    filter: Ptr,
    end: bool,
) -> HeadersStatus {
    let pass = HeadersStatus::Continue;
    // SAFETY: the pointers are Envoy's pair for this stream.
    unsafe {
        with_instance(stream, filter, pass, |side, host| match side {
            Side::Down(cell) => down::request_headers(cell, host, end),
            Side::Up(cell) => up::request_headers(cell, host, end),
        })
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_request_body(
    stream: Ptr,
    filter: Ptr,
    end: bool,
) -> BodyStatus {
    let pass = BodyStatus::Continue;
    // SAFETY: the pointers are Envoy's pair for this stream.
    unsafe {
        with_instance(stream, filter, pass, |side, host| match side {
            Side::Down(cell) => down::request_body(cell, host, end),
            Side::Up(cell) => up::request_body(cell, host, end),
        })
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_request_trailers(
    stream: Ptr,
    filter: Ptr,
) -> TrailersStatus {
    let pass = TrailersStatus::Continue;
    // SAFETY: the pointers are Envoy's pair for this stream.
    unsafe {
        with_instance(stream, filter, pass, |side, host| match side {
            Side::Down(cell) => down::request_trailers(cell, host),
            Side::Up(cell) => up::request_trailers(cell, host),
        })
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_response_headers(
    stream: Ptr,
    filter: Ptr,
    end: bool,
) -> HeadersStatus {
    let pass = HeadersStatus::Continue;
    // SAFETY: the pointers are Envoy's pair for this stream.
    unsafe {
        with_instance(stream, filter, pass, |side, host| match side {
            Side::Down(cell) => down::response_headers(cell, host, end),
            Side::Up(cell) => up::response_headers(cell, host, end),
        })
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_response_body(
    stream: Ptr,
    filter: Ptr,
    end: bool,
) -> BodyStatus {
    let pass = BodyStatus::Continue;
    // SAFETY: the pointers are Envoy's pair for this stream.
    unsafe {
        with_instance(stream, filter, pass, |side, host| match side {
            Side::Down(cell) => down::response_body(cell, host, end),
            Side::Up(cell) => up::response_body(cell, host, end),
        })
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_response_trailers(
    stream: Ptr,
    filter: Ptr,
) -> TrailersStatus {
    let pass = TrailersStatus::Continue;
    // SAFETY: the pointers are Envoy's pair for this stream.
    unsafe {
        with_instance(stream, filter, pass, |side, host| match side {
            Side::Down(cell) => down::response_trailers(cell, host),
            Side::Up(cell) => up::response_trailers(cell, host),
        })
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_local_reply(
    stream: Ptr,
    filter: Ptr,
    status: u32,
    details: Buffer,
    reset_imminent: bool,
) -> LocalReplyStatus {
    let pass = LocalReplyStatus::Continue;
    // SAFETY: the pointers are Envoy's pair for this stream; details live during the hook.
    unsafe {
        with_instance(stream, filter, pass, |side, host| match side {
            Side::Down(cell) => {
                let reply = LocalReply {
                    status,
                    details: details.bytes(),
                    reset_imminent,
                };
                down::local_reply(cell, host, reply)
            }
            Side::Up(_) => pass,
        })
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_stream_complete(
    stream: Ptr,
    filter: Ptr,
) {
    // SAFETY: the pointers are Envoy's pair for this stream.
    unsafe {
        with_instance(stream, filter, (), |side, host| match side {
            Side::Down(cell) => down::stream_complete(cell, host),
            Side::Up(_) => {}
        });
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_destroy(filter: Ptr) {
    // SAFETY: Envoy gives the filter up.
    contain("http_filter.destroy", || unsafe { destroy(filter) });
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_scheduled(
    stream: Ptr,
    filter: Ptr,
    event_id: u64,
) {
    // SAFETY: the pointers are Envoy's pair for this stream.
    unsafe {
        with_instance(stream, filter, (), |side, host| match side {
            Side::Down(cell) => down::scheduled(cell, host, event_id),
            Side::Up(cell) => up::scheduled(cell, host, event_id),
        });
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(
    stream: Ptr,
    filter: Ptr,
) {
    // SAFETY: the pointers are Envoy's pair for this stream.
    unsafe {
        with_instance(stream, filter, (), |side, host| match side {
            Side::Down(cell) => down::above_watermark(cell, host),
            Side::Up(_) => {}
        });
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(
    stream: Ptr,
    filter: Ptr,
) {
    // SAFETY: the pointers are Envoy's pair for this stream.
    unsafe {
        with_instance(stream, filter, (), |side, host| match side {
            Side::Down(cell) => down::below_watermark(cell, host),
            Side::Up(_) => {}
        });
    }
}
