use std::cell::{Cell, RefCell};

use super::stand_in::{STREAM, calls, new_bootstrap as configure};
use crate::hooks::bootstrap::*;
use crate::raw::{Buffer, Ptr};
use crate::*;

thread_local! {
    static COMPLETED: Cell<u32> = const { Cell::new(0) };
    static COMPLETED_IN_HOOK: Cell<u32> = const { Cell::new(0) };
    static TOKENS: RefCell<Vec<ShutdownDone>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn done(_: Ptr) {
    COMPLETED.set(COMPLETED.get() + 1);
}

struct Probe {
    wish: String,
    timer: Option<Timer>,
    scheduler: BootstrapScheduler,
    gauge: Option<u64>,
}

/// The factory of the tests' module.
pub(super) fn new_bootstrap(
    host: &mut dyn BootstrapHost,
    _: &str,
    config: &[u8],
) -> Option<Box<dyn Bootstrap>> {
    let wish = std::str::from_utf8(config).ok()?.to_owned();
    assert!(wish != "config_new");
    if wish == "refuse" {
        return None;
    }
    if wish == "signal" {
        host.signal_init_complete();
    }
    assert_eq!(host.gauge_value("server.version"), None);
    Some(Box::new(Probe {
        timer: Some(host.new_timer()),
        scheduler: host.new_scheduler(),
        gauge: None,
        wish,
    }))
}

impl Bootstrap for Probe {
    fn on_extension_created(&mut self, host: &mut dyn BootstrapHost) {
        self.gauge = host.gauge_value("server.version");
    }
    fn on_scheduled(&mut self, host: &mut dyn BootstrapHost, event_id: u64) {
        assert_eq!(self.gauge, Some(0x30));
        host.signal_init_complete();
        self.scheduler.commit(event_id);
        assert!(event_id != 13, "an unlucky event");
    }
    fn on_timer_fired(&mut self, _: &mut dyn BootstrapHost, timer: TimerId) {
        assert!(self.wish != "panic in timer");
        assert_eq!(self.timer.take().map(|own| own.id()), Some(timer));
        self.scheduler.commit(9);
    }
    fn on_shutdown(&mut self, _: &mut dyn BootstrapHost, done: ShutdownDone) {
        match self.wish.as_str() {
            "keep" => TOKENS.with_borrow_mut(|tokens| tokens.push(done)),
            "panic" => panic!("with the token in hand"),
            _ => done.complete(),
        }
        COMPLETED_IN_HOOK.set(COMPLETED.get());
    }
}

const EXTENSION: Ptr = std::ptr::without_provenance_mut(0x30);

fn extension(wish: &str) -> Ptr {
    let config = configure(wish);
    assert!(!config.is_null());
    let extension = envoy_dynamic_module_on_bootstrap_extension_new(config, EXTENSION);
    assert_eq!(extension, config);
    calls();
    extension
}

fn shut_down(extension: Ptr) {
    envoy_dynamic_module_on_bootstrap_extension_shutdown(EXTENSION, extension, done, STREAM);
}

fn destroy(extension: Ptr) {
    envoy_dynamic_module_on_bootstrap_extension_destroy(extension);
    envoy_dynamic_module_on_bootstrap_extension_config_destroy(extension);
}

#[test]
fn init_is_signalled_once_and_after_the_hook() {
    let extension = extension("");
    let expected: [&[&str]; 2] = [&["commit 1", "signal_init_complete"], &["commit 2"]];
    for (event, expected) in (1..).zip(expected) {
        envoy_dynamic_module_on_bootstrap_extension_config_scheduled(STREAM, extension, event);
        assert_eq!(calls(), expected);
    }
    destroy(extension);
    assert_eq!(calls(), ["delete", "delete"], "scheduler and timer");

    let extension = configure("signal");
    assert_eq!(calls(), ["new", "new", "signal_init_complete"]);
    destroy(extension);
}

#[test]
fn a_panic_is_logged_and_the_extension_lives_on() {
    let extension = extension("");
    envoy_dynamic_module_on_bootstrap_extension_config_scheduled(STREAM, extension, 13);
    let made = calls();
    assert_eq!(made[0], "commit 13");
    assert!(
        made[1].starts_with("log panic in bootstrap.scheduled at"),
        "{made:?}"
    );
    assert_eq!(made[2], "signal_init_complete", "asked for before it");
    envoy_dynamic_module_on_bootstrap_extension_config_scheduled(STREAM, extension, 1);
    assert_eq!(calls(), ["commit 1"]);
    destroy(extension);
}

#[test]
fn a_shutdown_completed_in_its_hook_takes_effect_after_it() {
    let extension = extension("");
    COMPLETED.set(0);
    shut_down(extension);
    assert_eq!((COMPLETED_IN_HOOK.get(), COMPLETED.get()), (0, 1));
    destroy(extension);
}

#[test]
fn a_kept_shutdown_is_completed_later_and_never_after_the_extension() {
    let extension = extension("keep");
    COMPLETED.set(0);
    shut_down(extension);
    shut_down(extension);
    assert_eq!(COMPLETED.get(), 0);
    let (first, second) = TOKENS.with_borrow_mut(|tokens| (tokens.remove(0), tokens.remove(0)));
    first.complete();
    assert_eq!(COMPLETED.get(), 1);
    destroy(extension);
    drop(second);
    assert_eq!(COMPLETED.get(), 1);
}

#[test]
fn a_panic_in_the_shutdown_hook_completes_it() {
    let extension = extension("panic");
    COMPLETED.set(0);
    shut_down(extension);
    assert_eq!(COMPLETED.get(), 1);
    destroy(extension);
}

#[test]
fn a_timer_dropped_by_its_own_hook_is_deleted_by_the_next_one() {
    let extension = extension("");
    let raw = std::ptr::without_provenance_mut(0x20);
    envoy_dynamic_module_on_bootstrap_extension_timer_fired(STREAM, extension, raw);
    assert_eq!(calls(), ["commit 9"]);
    envoy_dynamic_module_on_bootstrap_extension_drain_started(EXTENSION, extension);
    assert_eq!(calls(), ["delete"]);
    destroy(extension);
    assert_eq!(calls(), ["delete"], "the scheduler's");
}

#[test]
fn a_refused_or_panicking_extension_is_null() {
    assert!(configure("refuse").is_null());
    assert!(configure("config_new").is_null());
    let made = calls();
    assert!(
        made[0].starts_with("log panic in bootstrap.config_new at"),
        "{made:?}"
    );
}

#[test]
fn cluster_names_reach_the_extension() {
    let extension = extension("");
    let name = Buffer::new(b"provider");
    envoy_dynamic_module_on_bootstrap_extension_cluster_add_or_update(STREAM, extension, name);
    envoy_dynamic_module_on_bootstrap_extension_cluster_removal(STREAM, extension, name);
    assert_eq!(calls(), Vec::<String>::new());
    destroy(extension);
}

#[test]
fn a_timer_whose_hook_panics_fires_again_after_a_second() {
    let extension = extension("panic in timer");
    let raw = std::ptr::without_provenance_mut(0x20);
    envoy_dynamic_module_on_bootstrap_extension_timer_fired(STREAM, extension, raw);
    assert_eq!(calls().last().unwrap(), "commit 1000", "enabled again");
    destroy(extension);
}
