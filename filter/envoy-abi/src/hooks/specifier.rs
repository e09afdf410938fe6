//! Cluster specifier hooks.

use crate::envoy_specifier::{EnvoySpecifier, SpecifierInstance};
use crate::guard::{Panicked, contain, guard};
use crate::hooks::text;
use crate::module::{callbacks, module};
use crate::raw::{Buffer, Ptr};
use crate::selection;

const NULL: Ptr = std::ptr::null_mut();

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_cluster_specifier_config_new(
    _config: Ptr,
    name: Buffer,
    bytes: Buffer,
) -> Ptr {
    guard("specifier.config_new", || {
        crate::fault_point!("specifier.config_new");
        let (Some(callbacks), Some(module)) = (callbacks(), module()) else {
            return NULL;
        };
        // SAFETY: Envoy keeps both for the length of the hook.
        let (name, bytes) = unsafe { (text(name), bytes.bytes()) };
        let made = name.and_then(|name| (module.cluster_specifier)(name, bytes));
        made.map_or(NULL, |specifier| {
            let instance = SpecifierInstance {
                callbacks,
                specifier,
            };
            Box::into_raw(Box::new(instance)).cast()
        })
    })
    .unwrap_or(NULL)
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_cluster_specifier_config_destroy(specifier: Ptr) {
    contain("specifier.config_destroy", || {
        crate::fault_point!("specifier.config_destroy");
        if !specifier.is_null() {
            // SAFETY: made by `config_new`; Envoy has given it up.
            drop(unsafe { Box::from_raw(specifier.cast::<SpecifierInstance>()) });
        }
    });
}

/// False keeps Envoy's previous choice; so does a panic, unless a filter's call runs this.
#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_cluster_specifier_select(
    specifier: Ptr,
    context: Ptr,
) -> bool {
    guard("specifier.select", || {
        // SAFETY: made by `config_new`, and Envoy keeps it longer than its requests.
        let Some(instance) = (unsafe { specifier.cast::<SpecifierInstance>().as_ref() }) else {
            return false;
        };
        let mut host = EnvoySpecifier {
            callbacks: instance.callbacks,
            context,
        };
        #[cfg(feature = "fault-injection")]
        crate::fault::trip("specifier.select", crate::fault::asked_of_specifier(&host));
        instance.specifier.select(&mut host)
    })
    .unwrap_or_else(|Panicked| {
        selection::note_failure();
        false
    })
}
