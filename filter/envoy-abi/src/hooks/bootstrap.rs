//! Bootstrap extension hooks, all on the main thread.

use crate::bootstrap::{Bootstrap, BootstrapHost};
use crate::bootstrap_instance::BootstrapInstance;
use crate::guard::{contain, guard};
use crate::hooks::text;
use crate::module::{callbacks, module};
use crate::raw::{Buffer, DoneFn, Ptr};
use crate::shutdown::ShutdownDone;
use crate::timer::{TimerId, while_firing};

const NULL: Ptr = std::ptr::null_mut();

/// Runs a hook of the instance behind `extension`, which is null or came from `config_new`.
///
/// # Safety
/// The instance must not have been destroyed.
unsafe fn run(
    extension: Ptr,
    hook: &'static str,
    body: impl FnOnce(&mut dyn Bootstrap, &mut dyn BootstrapHost),
) {
    // SAFETY: as the caller says.
    let instance = unsafe { extension.cast::<BootstrapInstance>().as_ref() };
    contain(hook, || {
        if let Some(instance) = instance {
            instance.run(hook, |module, host| body(module, host));
        }
    });
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_config_new(
    config: Ptr,
    name: Buffer,
    bytes: Buffer,
) -> Ptr {
    guard("bootstrap.config_new", || {
        let (Some(callbacks), Some(module)) = (callbacks(), module()) else {
            return NULL;
        };
        // SAFETY: Envoy keeps both for the length of the hook.
        let (Some(name), bytes) = (unsafe { (text(name), bytes.bytes()) }) else {
            return NULL;
        };
        let instance = Box::new(BootstrapInstance::new(callbacks, config));
        if instance.fill(|host| (module.bootstrap)(host, name, bytes)) {
            Box::into_raw(instance).cast()
        } else {
            instance.close();
            NULL
        }
    })
    .unwrap_or(NULL)
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_config_destroy(config: Ptr) {
    contain("bootstrap.config_destroy", || {
        if config.is_null() {
            return;
        }
        // SAFETY: made by `config_new`; Envoy has given it up.
        let instance = unsafe { Box::from_raw(config.cast::<BootstrapInstance>()) };
        instance.close();
    });
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_new(
    config: Ptr,
    extension: Ptr,
) -> Ptr {
    // SAFETY: made by `config_new`, and Envoy keeps it longer than the extension.
    if let Some(instance) = unsafe { config.cast::<BootstrapInstance>().as_ref() } {
        instance.set_extension(extension);
    }
    // SAFETY: as above.
    unsafe {
        run(config, "bootstrap.extension_new", |module, host| {
            module.on_extension_created(host);
        });
    }
    config
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_destroy(extension: Ptr) {
    // SAFETY: the configuration's pointer, which outlives the extension.
    let instance = unsafe { extension.cast::<BootstrapInstance>().as_ref() };
    contain("bootstrap.extension_destroy", || {
        if let Some(instance) = instance {
            instance.close_extension();
        }
        crate::fault_point!("bootstrap.extension_destroy");
    });
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_server_initialized(
    _envoy: Ptr,
    extension: Ptr,
) {
    // SAFETY: Envoy calls it between the new and destroy hooks.
    unsafe {
        run(extension, "bootstrap.server_initialized", |module, host| {
            module.on_server_initialized(host);
        });
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_worker_thread_initialized(
    _envoy: Ptr,
    extension: Ptr,
) {
    // SAFETY: Envoy calls it between the new and destroy hooks, on the main thread.
    unsafe {
        run(
            extension,
            "bootstrap.worker_thread_initialized",
            |module, host| module.on_worker_thread_initialized(host),
        );
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_drain_started(
    _envoy: Ptr,
    extension: Ptr,
) {
    // SAFETY: Envoy calls it between the new and destroy hooks.
    unsafe {
        run(extension, "bootstrap.drain_started", |module, host| {
            module.on_drain_started(host);
        });
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_shutdown(
    _envoy: Ptr,
    extension: Ptr,
    done: DoneFn,
    context: Ptr,
) {
    // SAFETY: Envoy calls it between the new and destroy hooks.
    let instance = unsafe { extension.cast::<BootstrapInstance>().as_ref() };
    let calls = instance.map(BootstrapInstance::shutdown_calls);
    // A panic or a missing instance drops the token, which completes it.
    let done = ShutdownDone::new(done, context, calls.unwrap_or_default());
    // SAFETY: as above.
    unsafe {
        run(extension, "bootstrap.shutdown", |module, host| {
            module.on_shutdown(host, done);
        });
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_config_scheduled(
    _envoy: Ptr,
    config: Ptr,
    event_id: u64,
) {
    // SAFETY: Envoy calls it between the new and destroy hooks of the configuration.
    unsafe {
        run(config, "bootstrap.scheduled", |module, host| {
            module.on_scheduled(host, event_id);
        });
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_timer_fired(
    _envoy: Ptr,
    config: Ptr,
    timer: Ptr,
) {
    // SAFETY: Envoy calls it between the new and destroy hooks of the configuration.
    let instance = unsafe { config.cast::<BootstrapInstance>().as_ref() };
    contain("bootstrap.timer_fired", || {
        let Some(instance) = instance else { return };
        let id = TimerId(timer.addr());
        while_firing(timer, || {
            instance.fire(timer, |module, host| module.on_timer_fired(host, id));
        });
    });
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_cluster_add_or_update(
    _envoy: Ptr,
    config: Ptr,
    name: Buffer,
) {
    // SAFETY: Envoy calls it between the new and destroy hooks, and keeps the name during it.
    unsafe {
        run(config, "bootstrap.cluster_add_or_update", |module, host| {
            if let Some(name) = text(name) {
                module.on_cluster_add_or_update(host, name);
            }
        });
    }
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_cluster_removal(
    _envoy: Ptr,
    config: Ptr,
    name: Buffer,
) {
    // SAFETY: Envoy calls it between the new and destroy hooks, and keeps the name during it.
    unsafe {
        run(config, "bootstrap.cluster_removal", |module, host| {
            if let Some(name) = text(name) {
                module.on_cluster_removal(host, name);
            }
        });
    }
}
