//! The C side: plain data of the ABI and the table of Envoy's callbacks.
//!
//! Every callback is looked up by name when the module is loaded, so that the module loads on
//! any Envoy and can say what is missing, and so that test binaries link without one.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;

use thiserror::Error;

/// An opaque handle, Envoy's or ours.
pub(crate) type Ptr = *mut c_void;

/// Pointer and length of bytes; Envoy's `envoy_buffer` and `module_buffer` share this layout.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Buffer {
    pub(crate) ptr: *const u8,
    pub(crate) len: usize,
}

impl Buffer {
    /// Nothing; as a header value it means removal.
    pub(crate) const NULL: Self = Self {
        ptr: std::ptr::null(),
        len: 0,
    };

    /// A view of bytes for a callback that only reads them during the call.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self {
            ptr: bytes.as_ptr(),
            len: bytes.len(),
        }
    }

    /// The bytes again.
    ///
    /// # Safety
    /// The buffer must be null or readable, and unchanged, for all of `'a`.
    pub(crate) unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.ptr.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: the caller vouches for pointer, length and lifetime.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

/// A key and a value: headers of both sides, and metadata batch entries.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Pair {
    pub(crate) key: Buffer,
    pub(crate) value: Buffer,
}

impl Pair {
    /// A view of a pair for a callback that only reads it during the call.
    pub(crate) fn new(key: &str, value: &[u8]) -> Self {
        Self {
            key: Buffer::new(key.as_bytes()),
            value: Buffer::new(value),
        }
    }
}

/// Envoy's function that ends the wait for a shutdown hook.
pub(crate) type DoneFn = unsafe extern "C" fn(Ptr);

/// The loaded Envoy lacks a callback that this crate uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("envoy does not offer `{name}`: this module needs Envoy 1.40 or newer")]
pub(crate) struct MissingCallback {
    pub(crate) name: &'static str,
}

/// A non-null address that claims to be a function of type `F`.
struct Resolved<F> {
    address: Ptr,
    kind: PhantomData<F>,
}

impl<F: Copy> Resolved<F> {
    fn find(find: &impl Fn(&CStr) -> Ptr, name: &'static CStr) -> Result<Self, MissingCallback> {
        let address = find(name);
        if address.is_null() {
            return Err(MissingCallback {
                name: name.to_str().unwrap_or_default(),
            });
        }
        Ok(Self {
            address,
            kind: PhantomData,
        })
    }

    /// The address as a function pointer.
    ///
    /// # Safety
    /// `F` must be a function pointer type that fits the symbol's C declaration.
    unsafe fn function(self) -> F {
        const { assert!(size_of::<F>() == size_of::<Ptr>()) };
        // SAFETY: sizes are equal (checked above); the caller vouches for the type.
        unsafe { std::mem::transmute_copy::<Ptr, F>(&self.address) }
    }
}

macro_rules! callbacks {
    ($($name:ident($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// Addresses of the callbacks, by their name without `envoy_dynamic_module_callback_`.
        #[derive(Clone, Copy)]
        pub(crate) struct Callbacks {
            $(pub(crate) $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
        }

        impl Callbacks {
            /// Looks all of them up; stops at the first that is missing.
            pub(crate) fn load(find: &impl Fn(&CStr) -> Ptr) -> Result<Self, MissingCallback> {
                $(
                    let $name: Resolved<unsafe extern "C" fn($($arg),*) $(-> $ret)?> =
                        Resolved::find(find, callback_name!($name))?;
                )*
                // SAFETY: the types below are the declarations of `abi.h` "v0.2.0".
                Ok(unsafe { Self { $($name: $name.function(),)* } })
            }
        }
    };
}

/// The full symbol of a callback.
macro_rules! callback_name {
    ($name:ident) => {
        const {
            match CStr::from_bytes_with_nul(
                concat!("envoy_dynamic_module_callback_", stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => c"",
            }
        }
    };
}

callbacks! {
    log(u32, Buffer);
    log_enabled(u32) -> bool;
    get_concurrency() -> u32;
    is_validation_mode() -> bool;

    http_filter_config_define_counter(Ptr, Buffer, *const Buffer, usize, *mut usize) -> u32;
    http_filter_config_define_gauge(Ptr, Buffer, *const Buffer, usize, *mut usize) -> u32;
    http_filter_config_define_histogram(Ptr, Buffer, *const Buffer, usize, *mut usize) -> u32;
    http_filter_increment_counter(Ptr, usize, *const Buffer, usize, u64) -> u32;
    http_filter_increment_gauge(Ptr, usize, *const Buffer, usize, u64) -> u32;
    http_filter_decrement_gauge(Ptr, usize, *const Buffer, usize, u64) -> u32;
    http_filter_set_gauge(Ptr, usize, *const Buffer, usize, u64) -> u32;
    http_filter_record_histogram_value(Ptr, usize, *const Buffer, usize, u64) -> u32;

    http_get_header(Ptr, u32, Buffer, *mut Buffer, usize, *mut usize) -> bool;
    http_get_headers_size(Ptr, u32) -> usize;
    http_get_headers(Ptr, u32, *mut Pair) -> bool;
    http_set_header(Ptr, u32, Buffer, Buffer) -> bool;
    http_add_header(Ptr, u32, Buffer, Buffer) -> bool;

    http_get_body_size(Ptr, u32) -> usize;
    http_get_body_chunks_size(Ptr, u32) -> usize;
    http_get_body_chunks(Ptr, u32, *mut Buffer) -> bool;
    http_append_body(Ptr, u32, Buffer) -> bool;
    http_drain_body(Ptr, u32, usize) -> bool;
    http_received_buffered_request_body(Ptr) -> bool;
    http_received_buffered_response_body(Ptr) -> bool;
    http_get_buffer_limit(Ptr) -> u64;
    http_set_buffer_limit(Ptr, u64);

    http_send_response(Ptr, u32, *const Pair, usize, Buffer, Buffer);
    http_send_response_data(Ptr, Buffer, bool);
    http_send_response_trailers(Ptr, *const Pair, usize);
    http_filter_continue_decoding(Ptr);
    http_filter_continue_encoding(Ptr);
    http_clear_route_cache(Ptr);
    http_clear_route_cluster_cache(Ptr);
    http_filter_reset_stream(Ptr, u32, Buffer);

    http_set_dynamic_metadata_string(Ptr, Buffer, Buffer, Buffer);
    http_set_dynamic_metadata_number(Ptr, Buffer, Buffer, f64);
    http_set_dynamic_metadata_string_batch(Ptr, Buffer, *const Pair, usize);
    http_get_metadata_string(Ptr, u32, Buffer, Buffer, *mut Buffer) -> bool;
    http_get_metadata_number(Ptr, u32, Buffer, Buffer, *mut f64) -> bool;
    http_filter_get_attribute_int(Ptr, u32, *mut u64) -> bool;
    http_filter_get_attribute_string(Ptr, u32, *mut Buffer) -> bool;
    http_get_cluster_name(Ptr, *mut Buffer) -> bool;
    http_filter_get_worker_index(Ptr) -> u32;
    http_get_active_span(Ptr) -> Ptr;
    http_span_set_tag(Ptr, Buffer, Buffer);

    http_filter_scheduler_new(Ptr) -> Ptr;
    http_filter_scheduler_commit(Ptr, u64);
    http_filter_scheduler_delete(Ptr);

    cluster_specifier_get_request_header_value(Ptr, Buffer, *mut Buffer, usize, *mut usize) -> bool;
    cluster_specifier_get_attribute_int(Ptr, u32, *mut u64) -> bool;
    cluster_specifier_get_attribute_string(Ptr, u32, *mut Buffer) -> bool;
    cluster_specifier_get_dynamic_metadata(Ptr, Buffer, Buffer, *mut Buffer) -> bool;
    cluster_specifier_get_dynamic_metadata_number(Ptr, Buffer, Buffer, *mut f64) -> bool;
    cluster_specifier_get_cluster_host_count(Ptr, Buffer, u32, *mut usize, *mut usize, *mut usize) -> bool;
    cluster_specifier_get_random_value(Ptr) -> u64;
    cluster_specifier_set_cluster_name(Ptr, Buffer);
    cluster_specifier_set_route_action_override(Ptr, Buffer) -> bool;
    cluster_specifier_set_timeout(Ptr, u64);
    cluster_specifier_set_idle_timeout(Ptr, u64);

    bootstrap_extension_config_scheduler_new(Ptr) -> Ptr;
    bootstrap_extension_config_scheduler_commit(Ptr, u64);
    bootstrap_extension_config_scheduler_delete(Ptr);
    bootstrap_extension_config_signal_init_complete(Ptr);
    bootstrap_extension_enable_cluster_lifecycle(Ptr) -> bool;
    bootstrap_extension_get_gauge_value(Ptr, Buffer, *mut u64) -> bool;
    bootstrap_extension_timer_new(Ptr) -> Ptr;
    bootstrap_extension_timer_enable(Ptr, u64);
    bootstrap_extension_timer_disable(Ptr);
    bootstrap_extension_timer_delete(Ptr);
    bootstrap_extension_config_define_counter(Ptr, Buffer, *const Buffer, usize, *mut usize) -> u32;
    bootstrap_extension_config_define_gauge(Ptr, Buffer, *const Buffer, usize, *mut usize) -> u32;
    bootstrap_extension_config_define_histogram(Ptr, Buffer, *const Buffer, usize, *mut usize) -> u32;
    bootstrap_extension_config_increment_counter(Ptr, usize, *const Buffer, usize, u64) -> u32;
    bootstrap_extension_config_increment_gauge(Ptr, usize, *const Buffer, usize, u64) -> u32;
    bootstrap_extension_config_decrement_gauge(Ptr, usize, *const Buffer, usize, u64) -> u32;
    bootstrap_extension_config_set_gauge(Ptr, usize, *const Buffer, usize, u64) -> u32;
    bootstrap_extension_config_record_histogram_value(Ptr, usize, *const Buffer, usize, u64) -> u32;
}
