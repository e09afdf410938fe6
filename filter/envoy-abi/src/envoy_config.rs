//! The host of a filter configuration over Envoy's callbacks.

use crate::envoy_stream::label_buffers;
use crate::http::HttpConfigHost;
use crate::metrics::{CounterId, GaugeId, HistogramId, MetricsError, check};
use crate::raw::{Buffer, Callbacks, Ptr};

/// One of Envoy's functions that define a metric.
pub(crate) type DefineFn =
    unsafe extern "C" fn(Ptr, Buffer, *const Buffer, usize, *mut usize) -> u32;

/// Defines a metric with one of Envoy's functions.
///
/// # Safety
/// `define` must fit `config`, which must be alive.
pub(crate) unsafe fn define(
    define: DefineFn,
    config: Ptr,
    name: &str,
    labels: &[&str],
) -> Result<usize, MetricsError> {
    let mut id = 0;
    let labels = label_buffers(labels);
    let labels = labels.as_slice();
    // SAFETY: the caller vouches for both; buffers live during the call and are copied.
    let code = unsafe {
        define(
            config,
            Buffer::new(name.as_bytes()),
            labels.as_ptr(),
            labels.len(),
            &raw mut id,
        )
    };
    check(code).map(|()| id)
}

/// Envoy's side of a filter configuration while it is created.
pub(crate) struct EnvoyConfig {
    pub(crate) callbacks: &'static Callbacks,
    pub(crate) config: Ptr,
}

impl HttpConfigHost for EnvoyConfig {
    fn define_counter(&mut self, name: &str, labels: &[&str]) -> Result<CounterId, MetricsError> {
        let function = self.callbacks.http_filter_config_define_counter;
        // SAFETY: function and configuration belong together; it is alive during config_new.
        unsafe { define(function, self.config, name, labels) }.map(CounterId)
    }

    fn define_gauge(&mut self, name: &str, labels: &[&str]) -> Result<GaugeId, MetricsError> {
        let function = self.callbacks.http_filter_config_define_gauge;
        // SAFETY: as for the counter.
        unsafe { define(function, self.config, name, labels) }.map(GaugeId)
    }

    fn define_histogram(
        &mut self,
        name: &str,
        labels: &[&str],
    ) -> Result<HistogramId, MetricsError> {
        let function = self.callbacks.http_filter_config_define_histogram;
        // SAFETY: as for the counter.
        unsafe { define(function, self.config, name, labels) }.map(HistogramId)
    }

    fn validation_mode(&self) -> bool {
        // SAFETY: Envoy allows this on the main thread, where configurations are created.
        unsafe { (self.callbacks.is_validation_mode)() }
    }

    fn concurrency(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (self.callbacks.get_concurrency)() }
    }
}
