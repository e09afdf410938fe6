//! What stands behind the filter pointers that Envoy holds.

use std::cell::{Cell, RefCell};

use crate::cell::FilterCell;
use crate::envoy_stream::EnvoyStream;
use crate::guard::{contain, guard};
use crate::http::{DownstreamFilter, HttpFilterConfig, UpstreamFilter};
use crate::raw::{Callbacks, Ptr};
use crate::scheduler::StreamScheduler;

/// A filter configuration and the callbacks its filters use.
pub(crate) struct ConfigInstance {
    pub(crate) callbacks: &'static Callbacks,
    pub(crate) config: HttpFilterConfig,
}

/// A filter of one stream.
pub(crate) struct HttpInstance {
    callbacks: &'static Callbacks,
    pub(crate) filter: Side,
    scheduler: RefCell<Option<StreamScheduler>>,
    /// Hooks of this instance that are on the stack.
    depth: Cell<u32>,
}

/// A filter on its side of the router.
pub(crate) enum Side {
    Down(FilterCell<dyn DownstreamFilter>),
    Up(FilterCell<dyn UpstreamFilter>),
}

impl HttpInstance {
    /// Makes the filter of a stream; never fails, a panic makes a broken one that replies 500.
    pub(crate) fn new(config: &ConfigInstance, stream: Ptr) -> Self {
        let callbacks = config.callbacks;
        let scheduler = RefCell::new(None);
        let mut host = EnvoyStream::new(callbacks, stream, &scheduler);
        let filter = match &config.config {
            HttpFilterConfig::Downstream(config) => {
                let made = guard("downstream.new_filter", || {
                    crate::fault_point!("downstream.new_filter");
                    config.new_filter(&mut host)
                });
                Side::Down(FilterCell::new(made))
            }
            HttpFilterConfig::Upstream(config) => {
                let made = guard("upstream.new_filter", || {
                    crate::fault_point!("upstream.new_filter");
                    config.new_filter(&mut host)
                });
                Side::Up(FilterCell::new(made))
            }
        };
        Self {
            callbacks,
            filter,
            scheduler,
            depth: Cell::new(0),
        }
    }

    fn is_destroyed(&self) -> bool {
        match &self.filter {
            Side::Down(cell) => cell.is_destroyed(),
            Side::Up(cell) => cell.is_destroyed(),
        }
    }

    fn destroy(&self) {
        if let Some(scheduler) = self.scheduler.take() {
            scheduler.close();
        }
        match &self.filter {
            Side::Down(cell) => cell.destroy("downstream.destroy"),
            Side::Up(cell) => cell.destroy("upstream.destroy"),
        }
    }
}

/// Runs a hook of the instance behind `filter`; the default, which passes on, is answered when
/// nothing else can be.
///
/// # Safety
/// `filter` is null or came from `http_filter_new` and was not destroyed; `stream` is the
/// Envoy side of it.
pub(crate) unsafe fn with_instance<R: Default>(
    stream: Ptr,
    filter: Ptr,
    hook: impl FnOnce(&Side, &mut EnvoyStream<'_>) -> R,
) -> R {
    let raw = filter.cast::<HttpInstance>();
    // SAFETY: alive until `http_filter_destroy`, and then as long as a hook is on the stack.
    let Some(instance) = (unsafe { raw.as_ref() }) else {
        return R::default();
    };
    instance.depth.set(instance.depth.get() + 1);
    let answer = guard("http_filter", || {
        let mut host = EnvoyStream::new(instance.callbacks, stream, &instance.scheduler);
        hook(&instance.filter, &mut host)
    });
    instance.depth.set(instance.depth.get() - 1);
    // SAFETY: as above; `instance` is not used after this.
    unsafe { free_if_done(raw) };
    answer.unwrap_or_default()
}

/// Destroys the instance behind `filter`, at once or when its last running hook ends.
///
/// # Safety
/// `filter` is null or came from `http_filter_new` and was not destroyed.
pub(crate) unsafe fn destroy(filter: Ptr) {
    let raw = filter.cast::<HttpInstance>();
    // SAFETY: as the caller says.
    let Some(instance) = (unsafe { raw.as_ref() }) else {
        return;
    };
    instance.destroy();
    // SAFETY: as above; `instance` is not used after this.
    unsafe { free_if_done(raw) };
}

/// Frees a destroyed instance that has no hook on the stack.
///
/// # Safety
/// `raw` points to a live instance.
unsafe fn free_if_done(raw: *mut HttpInstance) {
    // SAFETY: as the caller says.
    let done = unsafe { (*raw).depth.get() == 0 && (*raw).is_destroyed() };
    if !done {
        return;
    }
    // SAFETY: made by `Box::into_raw`; Envoy has given it up and no hook uses it.
    contain("http_filter.destroy", || {
        drop(unsafe { Box::from_raw(raw) })
    });
}
