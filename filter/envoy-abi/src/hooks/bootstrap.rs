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

/// The instance behind a pointer that Envoy holds; configuration and extension share one.
///
/// # Safety
/// The pointer is null or came from `config_new`, and the instance was not destroyed.
unsafe fn instance<'a>(extension: Ptr) -> Option<&'a BootstrapInstance> {
    // SAFETY: as the caller says.
    unsafe { extension.cast::<BootstrapInstance>().as_ref() }
}

/// Runs a hook of an instance.
fn run(
    instance: Option<&BootstrapInstance>,
    hook: &'static str,
    body: impl FnOnce(&mut dyn Bootstrap, &mut dyn BootstrapHost),
) {
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
    let instance = unsafe { instance(config) };
    if let Some(instance) = instance {
        instance.set_extension(extension);
    }
    run(instance, "bootstrap.extension_new", |module, host| {
        module.on_extension_created(host);
    });
    config
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_destroy(extension: Ptr) {
    // SAFETY: the configuration's pointer, which outlives the extension.
    let instance = unsafe { instance(extension) };
    contain("bootstrap.extension_destroy", || {
        if let Some(instance) = instance {
            instance.close_extension();
        }
        crate::fault_point!("bootstrap.extension_destroy");
    });
}

/// Exports hooks of an instance; Envoy gives some of them the extension, some the configuration.
macro_rules! instance_hooks {
    ($($symbol:ident($($arg:ident: $type:ty),*), $hook:literal, $body:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(super) extern "C" fn $symbol(_envoy: Ptr, extension: Ptr, $($arg: $type),*) {
                // SAFETY: Envoy calls it between the hooks that make and destroy the instance.
                let instance = unsafe { instance(extension) };
                run(instance, $hook, $body);
            }
        )*
    };
}

instance_hooks! {
    envoy_dynamic_module_on_bootstrap_extension_server_initialized(),
        "bootstrap.server_initialized", |module, host| module.on_server_initialized(host);
    envoy_dynamic_module_on_bootstrap_extension_worker_thread_initialized(),
        "bootstrap.worker_thread_initialized", |module, host| module.on_worker_thread_initialized(host);
    envoy_dynamic_module_on_bootstrap_extension_drain_started(),
        "bootstrap.drain_started", |module, host| module.on_drain_started(host);
    envoy_dynamic_module_on_bootstrap_extension_config_scheduled(event_id: u64),
        "bootstrap.scheduled", |module, host| module.on_scheduled(host, event_id);
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_shutdown(
    _envoy: Ptr,
    extension: Ptr,
    done: DoneFn,
    context: Ptr,
) {
    // SAFETY: Envoy calls it between the new and destroy hooks.
    let instance = unsafe { instance(extension) };
    let calls = instance.map(BootstrapInstance::shutdown_calls);
    // A panic or a missing instance drops the token, which completes it.
    let done = ShutdownDone::new(done, context, calls.unwrap_or_default());
    run(instance, "bootstrap.shutdown", |module, host| {
        module.on_shutdown(host, done);
    });
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_timer_fired(
    _envoy: Ptr,
    config: Ptr,
    timer: Ptr,
) {
    // SAFETY: Envoy calls it between the new and destroy hooks of the configuration.
    let instance = unsafe { instance(config) };
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
    let (instance, name) = unsafe { (instance(config), text(name)) };
    run(
        instance,
        "bootstrap.cluster_add_or_update",
        |module, host| {
            if let Some(name) = name {
                module.on_cluster_add_or_update(host, name);
            }
        },
    );
}

#[unsafe(no_mangle)]
pub(super) extern "C" fn envoy_dynamic_module_on_bootstrap_extension_cluster_removal(
    _envoy: Ptr,
    config: Ptr,
    name: Buffer,
) {
    // SAFETY: Envoy calls it between the new and destroy hooks, and keeps the name during it.
    let (instance, name) = unsafe { (instance(config), text(name)) };
    run(instance, "bootstrap.cluster_removal", |module, host| {
        if let Some(name) = name {
            module.on_cluster_removal(host, name);
        }
    });
}
