//! HTTP filter hooks, for both sides of the router.

use crate::cell::FilterCell;
use crate::envoy_config::EnvoyConfig;
use crate::envoy_stream::EnvoyStream;
use crate::guard::{contain, guard};
use crate::hooks::text;
use crate::http::{LocalReply, UpstreamFilter};
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
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_destroy(filter: Ptr) {
    // SAFETY: Envoy gives the filter up.
    contain("http_filter.destroy", || unsafe { destroy(filter) });
}

/// Exports hooks of a stream; each runs the function of the side that its filter stands on.
macro_rules! stream_hooks {
    ($($symbol:ident($($arg:ident: $type:ty),*) $(-> $answer:ty)?, $down:path, $up:path;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(super) extern "C" fn $symbol(
                stream: Ptr,
                filter: Ptr,
                $($arg: $type),*
            ) $(-> $answer)? {
                let hook = |side: &Side, host: &mut EnvoyStream<'_>| match side {
                    Side::Down(cell) => $down(cell, host, $($arg),*),
                    Side::Up(cell) => $up(cell, host, $($arg),*),
                };
                // SAFETY: the pointers are Envoy's pair for this stream.
                unsafe { with_instance(stream, filter, hook) }
            }
        )*
    };
}

stream_hooks! {
    envoy_dynamic_module_on_http_filter_request_headers(end: bool) -> HeadersStatus,
        down::request_headers, up::request_headers;
    envoy_dynamic_module_on_http_filter_request_body(end: bool) -> BodyStatus,
        down::request_body, up::request_body;
    envoy_dynamic_module_on_http_filter_request_trailers() -> TrailersStatus,
        down::request_trailers, up::request_trailers;
    envoy_dynamic_module_on_http_filter_response_headers(end: bool) -> HeadersStatus,
        down::response_headers, up::response_headers;
    envoy_dynamic_module_on_http_filter_response_body(end: bool) -> BodyStatus,
        down::response_body, up::response_body;
    envoy_dynamic_module_on_http_filter_response_trailers() -> TrailersStatus,
        down::response_trailers, up::response_trailers;
    envoy_dynamic_module_on_http_filter_scheduled(event_id: u64),
        down::scheduled, up::scheduled;
    envoy_dynamic_module_on_http_filter_stream_complete(),
        down::stream_complete, nothing;
    envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(),
        down::above_watermark, nothing;
    envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(),
        down::below_watermark, nothing;
}

/// What an upstream filter does in a hook that only downstream filters have.
fn nothing(_: &FilterCell<dyn UpstreamFilter>, _: &mut EnvoyStream<'_>) {}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_local_reply(
    stream: Ptr,
    filter: Ptr,
    status: u32,
    details: Buffer,
    reset_imminent: bool,
) -> LocalReplyStatus {
    // SAFETY: Envoy keeps the details for the length of the hook.
    let details = unsafe { details.bytes() };
    let hook = |side: &Side, host: &mut EnvoyStream<'_>| match side {
        Side::Down(cell) => {
            let reply = LocalReply {
                status,
                details,
                reset_imminent,
            };
            down::local_reply(cell, host, reply)
        }
        Side::Up(_) => LocalReplyStatus::Continue,
    };
    // SAFETY: the pointers are Envoy's pair for this stream.
    unsafe { with_instance(stream, filter, hook) }
}
