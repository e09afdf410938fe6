//! `libturnpike.so`: the dynamic module that Envoy loads.
//!
//! One library, four extension points: ① [`downstream`], one filter per client stream;
//! ② [`specifier`], which names the cluster of each attempt; ③ [`upstream`], one filter per
//! attempt; ④ [`bootstrap`], one per process, with the agent that talks to the control plane.
//! ①–③ of a stream share an exchange of `filter_core`, found through [`exchanges`].
//!
//! This crate moves bytes and decides nothing: what a request is answered with is said by
//! `filter_core::exchange`, where to read next.
#![forbid(unsafe_code)]

mod agent;
mod bootstrap;
mod clock;
mod credit;
mod downstream;
mod entropy;
mod exchanges;
mod host;
mod log;
mod metrics;
mod node;
mod open_table;
mod published;
mod settings;
mod specifier;
mod upstream;
mod waiting;
mod worker;

use filter_envoy_abi::{
    Bootstrap, BootstrapHost, ClusterSpecifier, HttpConfigHost, HttpFilterConfig,
};

/// The name under which Envoy's configuration asks for ①, ② and ④.
const NAME: &str = "turnpike";
/// The name under which a cluster asks for ③.
const UPSTREAM_NAME: &str = "turnpike-upstream";

filter_envoy_abi::declare_module! {
    program_init: || true,
    bootstrap: new_bootstrap,
    http_filter: new_http_filter,
    cluster_specifier: new_cluster_specifier,
}

fn new_bootstrap(
    host: &mut dyn BootstrapHost,
    name: &str,
    config: &[u8],
) -> Option<Box<dyn Bootstrap>> {
    if name != NAME {
        return refuse("bootstrap extension", name);
    }
    match bootstrap::create(host, config) {
        Ok(extension) => Some(extension),
        Err(error) => {
            log::error(&format!("turnpike: {error}"));
            None
        }
    }
}

fn new_http_filter(
    _host: &mut dyn HttpConfigHost,
    name: &str,
    _config: &[u8],
) -> Option<HttpFilterConfig> {
    match name {
        NAME => Some(HttpFilterConfig::Downstream(Box::new(
            downstream::DownstreamConfig,
        ))),
        UPSTREAM_NAME => Some(HttpFilterConfig::Upstream(Box::new(
            upstream::UpstreamConfig,
        ))),
        _ => refuse("http filter", name),
    }
}

fn new_cluster_specifier(name: &str, _config: &[u8]) -> Option<Box<dyn ClusterSpecifier>> {
    if name != NAME {
        return refuse("cluster specifier", name);
    }
    Some(Box::new(specifier::Specifier))
}

fn refuse<T>(kind: &str, name: &str) -> Option<T> {
    log::error(&format!(
        "turnpike: no {kind} is named `{name}`; there are `{NAME}` and `{UPSTREAM_NAME}`"
    ));
    None
}
