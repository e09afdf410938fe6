//! Every hook by name, for tests that go through all of them.

/// An exported hook, and who can reach code of the module in it.
///
/// A fault-injection build panics on demand where there is such code: the names are those that
/// logs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Its symbol, without the prefix `envoy_dynamic_module_on_`.
    pub symbol: &'static str,
    /// Who reaches it.
    pub reach: Reach,
}

/// Who reaches a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A client's request. The names are values of its header `x-turnpike-test-fault`.
    Request(&'static [&'static str]),
    /// The life of the process. The names are values of the environment variable
    /// `TURNPIKE_FAULT`, which makes the first call panic.
    Process(&'static [&'static str]),
    /// Nobody, or there is no code of the module in it.
    Unused,
}

/// The names that a request's header can ask for.
pub fn request_faults() -> impl Iterator<Item = &'static str> {
    HOOKS.iter().flat_map(|hook| match hook.reach {
        Reach::Request(faults) => faults.iter().copied(),
        Reach::Process(_) | Reach::Unused => [].iter().copied(),
    })
}

/// The names that only the environment can ask for.
pub fn process_faults() -> impl Iterator<Item = &'static str> {
    HOOKS.iter().flat_map(|hook| match hook.reach {
        Reach::Process(faults) => faults.iter().copied(),
        Reach::Request(_) | Reach::Unused => [].iter().copied(),
    })
}

const fn request(symbol: &'static str, faults: &'static [&'static str]) -> Hook {
    Hook {
        symbol,
        reach: Reach::Request(faults),
    }
}

const fn process(symbol: &'static str, faults: &'static [&'static str]) -> Hook {
    Hook {
        symbol,
        reach: Reach::Process(faults),
    }
}

const fn unused(symbol: &'static str) -> Hook {
    Hook {
        symbol,
        reach: Reach::Unused,
    }
}

/// Every exported hook.
#[rustfmt::skip]
pub const HOOKS: &[Hook] = &[
    process("program_init", &["program_init"]),

    process("http_filter_config_new", &["http_filter.config_new"]),
    process("http_filter_config_destroy", &["http_filter.config_destroy"]),
    process("http_filter_new", &["downstream.new_filter", "upstream.new_filter"]),
    request("http_filter_request_headers", &["downstream.request_headers", "upstream.request_headers"]),
    request("http_filter_request_body", &["downstream.request_body", "upstream.request_body"]),
    request("http_filter_request_trailers", &["downstream.request_trailers", "upstream.request_trailers"]),
    request("http_filter_response_headers", &["downstream.response_headers", "upstream.response_headers"]),
    request("http_filter_response_body", &["downstream.response_body", "upstream.response_body"]),
    request("http_filter_response_trailers", &["downstream.response_trailers", "upstream.response_trailers"]),
    request("http_filter_local_reply", &["downstream.local_reply"]),
    request("http_filter_scheduled", &["downstream.scheduled", "upstream.scheduled"]),
    request("http_filter_downstream_above_write_buffer_high_watermark", &["downstream.above_watermark"]),
    request("http_filter_downstream_below_write_buffer_low_watermark", &["downstream.below_watermark"]),
    request("http_filter_stream_complete", &["downstream.stream_complete"]),
    request("http_filter_destroy", &["downstream.destroy", "upstream.destroy"]),

    process("cluster_specifier_config_new", &["specifier.config_new"]),
    process("cluster_specifier_config_destroy", &["specifier.config_destroy"]),
    request("cluster_specifier_select", &["specifier.select"]),

    process("bootstrap_extension_config_new", &["bootstrap.config_new"]),
    process("bootstrap_extension_config_destroy", &["bootstrap.config_destroy"]),
    process("bootstrap_extension_new", &["bootstrap.extension_new"]),
    process("bootstrap_extension_destroy", &["bootstrap.extension_destroy"]),
    process("bootstrap_extension_server_initialized", &["bootstrap.server_initialized"]),
    process("bootstrap_extension_worker_thread_initialized", &["bootstrap.worker_thread_initialized"]),
    process("bootstrap_extension_drain_started", &["bootstrap.drain_started"]),
    process("bootstrap_extension_shutdown", &["bootstrap.shutdown"]),
    process("bootstrap_extension_config_scheduled", &["bootstrap.scheduled"]),
    process("bootstrap_extension_timer_fired", &["bootstrap.timer_fired"]),
    process("bootstrap_extension_cluster_add_or_update", &["bootstrap.cluster_add_or_update"]),
    process("bootstrap_extension_cluster_removal", &["bootstrap.cluster_removal"]),

    unused("http_filter_per_route_config_new"),
    unused("http_filter_per_route_config_destroy"),
    unused("http_filter_config_scheduled"),
    unused("http_filter_http_callout_done"),
    unused("http_filter_http_stream_headers"),
    unused("http_filter_http_stream_data"),
    unused("http_filter_http_stream_trailers"),
    unused("http_filter_http_stream_complete"),
    unused("http_filter_http_stream_reset"),
    unused("http_filter_config_http_callout_done"),
    unused("http_filter_config_http_stream_headers"),
    unused("http_filter_config_http_stream_data"),
    unused("http_filter_config_http_stream_trailers"),
    unused("http_filter_config_http_stream_complete"),
    unused("http_filter_config_http_stream_reset"),
    unused("bootstrap_extension_http_callout_done"),
    unused("bootstrap_extension_file_changed"),
    unused("bootstrap_extension_admin_request"),
    unused("bootstrap_extension_listener_add_or_update"),
    unused("bootstrap_extension_listener_removal"),
];
