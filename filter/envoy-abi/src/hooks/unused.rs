//! Hooks that Envoy looks for and the safe API has no use for.
//!
//! Nothing here can be reached: callouts, streams, watches and admin handlers are never started,
//! and a per-route configuration is refused.

use crate::log::log;
use crate::raw::{Buffer, Pair, Ptr};
use crate::status::LogLevel;

/// Refused: everything is configured on the filter itself.
#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_http_filter_per_route_config_new(
    _name: Buffer,
    _config: Buffer,
) -> Ptr {
    log(
        LogLevel::Error,
        "this module takes no per-route filter configuration",
    );
    std::ptr::null_mut()
}

macro_rules! unused {
    ($($hook:ident($($arg:ty),*);)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(super) extern "C" fn $hook($(_: $arg),*) {}
        )*
    };
}

unused! {
    envoy_dynamic_module_on_http_filter_per_route_config_destroy(Ptr);
    envoy_dynamic_module_on_http_filter_config_scheduled(Ptr, Ptr, u64);
    envoy_dynamic_module_on_http_filter_http_callout_done(Ptr, Ptr, u64, u32, *const Pair, usize, *const Buffer, usize);
    envoy_dynamic_module_on_http_filter_http_stream_headers(Ptr, Ptr, u64, *const Pair, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_data(Ptr, Ptr, u64, *const Buffer, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_trailers(Ptr, Ptr, u64, *const Pair, usize);
    envoy_dynamic_module_on_http_filter_http_stream_complete(Ptr, Ptr, u64);
    envoy_dynamic_module_on_http_filter_http_stream_reset(Ptr, Ptr, u64, u32);
    envoy_dynamic_module_on_http_filter_config_http_callout_done(Ptr, Ptr, u64, u32, *const Pair, usize, *const Buffer, usize);
    envoy_dynamic_module_on_http_filter_config_http_stream_headers(Ptr, Ptr, u64, *const Pair, usize, bool);
    envoy_dynamic_module_on_http_filter_config_http_stream_data(Ptr, Ptr, u64, *const Buffer, usize, bool);
    envoy_dynamic_module_on_http_filter_config_http_stream_trailers(Ptr, Ptr, u64, *const Pair, usize);
    envoy_dynamic_module_on_http_filter_config_http_stream_complete(Ptr, Ptr, u64);
    envoy_dynamic_module_on_http_filter_config_http_stream_reset(Ptr, Ptr, u64, u32);
    envoy_dynamic_module_on_bootstrap_extension_http_callout_done(Ptr, Ptr, u64, u32, *const Pair, usize, *const Buffer, usize);
    envoy_dynamic_module_on_bootstrap_extension_file_changed(Ptr, Ptr, Buffer, u32);
    envoy_dynamic_module_on_bootstrap_extension_listener_add_or_update(Ptr, Ptr, Buffer);
    envoy_dynamic_module_on_bootstrap_extension_listener_removal(Ptr, Ptr, Buffer);
}

/// No handler is registered, so nothing can ask.
#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_admin_request(
    _envoy: Ptr,
    _config: Ptr,
    _method: Buffer,
    _path: Buffer,
    _body: Buffer,
) -> u32 {
    404
}
