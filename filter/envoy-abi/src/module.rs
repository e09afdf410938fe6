//! What a module registers, and the moment in which Envoy loads it.

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

use crate::bootstrap::{Bootstrap, BootstrapHost};
use crate::guard::{guard, install_panic_hook};
use crate::http::{HttpConfigHost, HttpFilterConfig};
use crate::log::{log, to_stderr};
use crate::raw::{Callbacks, Ptr};
use crate::specifier::ClusterSpecifier;
use crate::status::LogLevel;

/// The ABI that this crate speaks; Envoy only warns when its own differs.
pub const ABI_VERSION: &CStr = c"v0.2.0";

/// Makes the bootstrap extension from its name and configuration; `None` refuses it.
pub type BootstrapFactory = fn(&mut dyn BootstrapHost, &str, &[u8]) -> Option<Box<dyn Bootstrap>>;
/// Makes an HTTP filter configuration from its name and bytes; `None` refuses it.
pub type HttpFilterFactory = fn(&mut dyn HttpConfigHost, &str, &[u8]) -> Option<HttpFilterConfig>;
/// Makes a cluster specifier from its name and configuration; `None` refuses it.
pub type ClusterSpecifierFactory = fn(&str, &[u8]) -> Option<Box<dyn ClusterSpecifier>>;

/// The four extension points of a module; see [`declare_module!`](crate::declare_module).
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// Runs once when Envoy loads the module; false refuses the load. Start no thread here.
    pub program_init: fn() -> bool,
    /// Runs once for each configured bootstrap extension, on the main thread.
    pub bootstrap: BootstrapFactory,
    /// Runs for each filter configuration, downstream and upstream, on the main thread.
    pub http_filter: HttpFilterFactory,
    /// Runs for each specifier configuration, on the main thread.
    pub cluster_specifier: ClusterSpecifierFactory,
}

static CALLBACKS: OnceLock<Callbacks> = OnceLock::new();
static MODULE: OnceLock<Module> = OnceLock::new();

/// Envoy's callbacks, once loaded.
pub(crate) fn callbacks() -> Option<&'static Callbacks> {
    CALLBACKS.get()
}

/// The registered module, once loaded.
pub(crate) fn module() -> Option<&'static Module> {
    MODULE.get()
}

/// Registers a module and finds Envoy's callbacks; the answer is what Envoy's `program_init`
/// hook returns: the ABI version, or null to refuse the load. Called by `declare_module!`.
#[doc(hidden)]
pub fn load(module: Module) -> *const c_char {
    guard("program_init", || {
        if !find_callbacks() || !register(module) {
            return std::ptr::null();
        }
        crate::fault_point!("program_init");
        if (module.program_init)() {
            ABI_VERSION.as_ptr()
        } else {
            std::ptr::null()
        }
    })
    .unwrap_or(std::ptr::null())
}

/// Looks the callbacks up in the running program; says what is missing.
fn find_callbacks() -> bool {
    match Callbacks::load(&symbol) {
        Ok(callbacks) => {
            CALLBACKS.get_or_init(|| callbacks);
            install_panic_hook();
            true
        }
        Err(missing) => {
            to_stderr(LogLevel::Critical, &missing.to_string());
            false
        }
    }
}

/// Puts a table and a module in place without an Envoy; the first call wins.
#[cfg(test)]
pub(crate) fn load_for_tests(callbacks: Callbacks, module: Module) -> &'static Callbacks {
    MODULE.get_or_init(|| module);
    CALLBACKS.get_or_init(|| callbacks)
}

fn register(module: Module) -> bool {
    let first = MODULE.set(module).is_ok();
    if !first {
        log(LogLevel::Error, "the module was loaded twice");
    }
    first
}

/// Address of a symbol that the running program offers, or null.
fn symbol(name: &CStr) -> Ptr {
    // SAFETY: `name` is NUL-terminated; RTLD_DEFAULT searches the program first.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Makes a cdylib an Envoy module.
///
/// Expands to the `program_init` hook; the other hooks are exported by this crate itself.
///
/// ```text
/// filter_envoy_abi::declare_module! {
///     program_init: || true,
///     bootstrap: new_bootstrap,
///     http_filter: new_http_filter,
///     cluster_specifier: new_cluster_specifier,
/// }
/// ```
#[macro_export]
macro_rules! declare_module {
    (
        program_init: $init:expr,
        bootstrap: $bootstrap:expr,
        http_filter: $http_filter:expr,
        cluster_specifier: $cluster_specifier:expr $(,)?
    ) => {
        const _: () = {
            #[unsafe(no_mangle)]
            extern "C" fn envoy_dynamic_module_on_program_init() -> *const ::std::ffi::c_char {
                $crate::load($crate::Module {
                    program_init: $init,
                    bootstrap: $bootstrap,
                    http_filter: $http_filter,
                    cluster_specifier: $cluster_specifier,
                })
            }
        };
    };
}
