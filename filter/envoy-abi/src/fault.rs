//! Panics on demand, for the test that Envoy survives them. Only in fault-injection builds.
//!
//! Hooks of a stream panic when the client's request asks for it by name in the header
//! `x-turnpike-test-fault`; the downstream filter passes the wish on to the upstream filter and
//! the specifier in dynamic metadata. All hooks panic at their first call when the environment
//! variable `TURNPIKE_FAULT` names them.

use std::sync::{LazyLock, Mutex, PoisonError};

use crate::hooks::names::request_faults;
use crate::http::HttpHost;
use crate::specifier::SpecifierHost;
use crate::status::{HeaderMap, MetadataSource};

const HEADER: &str = "x-turnpike-test-fault";
const NAMESPACE: &str = "turnpike_test_fault";
const KEY: &str = "hook";

static FROM_ENVIRONMENT: LazyLock<Mutex<Option<String>>> =
    LazyLock::new(|| Mutex::new(std::env::var("TURNPIKE_FAULT").ok()));

/// Panics when the stream, or the environment, wants this hook to.
pub(crate) fn trip(hook: &'static str, asked: Option<&'static str>) {
    if asked == Some(hook) || taken_from_environment(hook) {
        panic_now();
    }
}

#[expect(clippy::panic, reason = "the panic is what this build is for")]
fn panic_now() -> ! {
    panic!("injected fault")
}

fn taken_from_environment(hook: &str) -> bool {
    let mut wanted = FROM_ENVIRONMENT
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let hit = wanted.as_deref() == Some(hook);
    if hit {
        *wanted = None;
    }
    hit
}

/// What the client's header asks for; passed on in metadata.
pub(crate) fn asked_by_request(host: &mut impl HttpHost) -> Option<&'static str> {
    let asked = known(host.header(HeaderMap::Request, HEADER)?)?;
    host.set_metadata_string(NAMESPACE, KEY, asked.as_bytes());
    schedule(host, asked, "downstream.scheduled");
    Some(asked)
}

/// What the downstream filter passed on.
pub(crate) fn asked_by_metadata(host: &mut impl HttpHost) -> Option<&'static str> {
    let asked = known(host.metadata_string(MetadataSource::Dynamic, NAMESPACE, KEY)?)?;
    schedule(host, asked, "upstream.scheduled");
    Some(asked)
}

/// Makes Envoy call the hook that is to panic: filters of this module may schedule no event.
fn schedule(host: &mut impl HttpHost, asked: &str, hook: &str) {
    if asked == hook {
        host.new_scheduler().commit(0);
    }
}

/// What the downstream filter passed on, for the specifier.
pub(crate) fn asked_of_specifier(host: &impl SpecifierHost) -> Option<&'static str> {
    known(host.metadata_string(NAMESPACE, KEY)?)
}

fn known(name: &[u8]) -> Option<&'static str> {
    request_faults().find(|known| known.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use crate::fake::{Exchange, FakeHost};
    use crate::*;

    struct Filter;

    impl DownstreamFilterConfig for Filter {
        fn new_filter(&self, _: &mut dyn HttpHost) -> Box<dyn DownstreamFilter> {
            Box::new(Self)
        }
    }
    impl DownstreamFilter for Filter {}
    impl UpstreamFilterConfig for Filter {
        fn new_filter(&self, _: &mut dyn HttpHost) -> Box<dyn UpstreamFilter> {
            Box::new(Self)
        }
    }
    impl UpstreamFilter for Filter {}

    fn client_of(fault: &str) -> fake::Client {
        let mut stream = Exchange::new(&Filter, FakeHost::default());
        stream.request(&[("x-turnpike-test-fault", fault)], &[b"a"]);
        stream.attempt(&Filter);
        stream.response_headers(&[(":status", "200")], false);
        stream.response_frame(b"b", true);
        stream.finish();
        stream.client
    }

    #[test]
    fn a_request_names_the_hook_that_panics_on_either_side() {
        for (fault, status, body) in [
            ("downstream.request_headers", 500, true),
            ("downstream.request_body", 500, true),
            ("upstream.request_headers", 500, true),
            ("upstream.response_headers", 500, true),
            ("downstream.destroy", 200, false),
            ("unknown", 200, false),
        ] {
            let client = client_of(fault);
            assert_eq!(client.status, Some(status), "{fault}");
            let failed = client.body.starts_with(b"{\"error\"");
            assert_eq!(failed, body, "{fault}");
        }
        for fault in ["downstream.response_body", "upstream.response_body"] {
            let client = client_of(fault);
            assert!(client.cut && client.body.is_empty(), "{fault}");
        }
    }
}
