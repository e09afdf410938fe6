//! The exported hooks, called as Envoy calls them, over a table of stand-in callbacks.

mod bootstrap;
mod http;
mod stand_in;

use super::names::{HOOKS, PROCESS_FAULTS, REQUEST_FAULTS};
use crate::raw::Callbacks;

#[test]
fn every_hook_in_the_source_is_listed_once() {
    let sources = [
        include_str!("http.rs"),
        include_str!("bootstrap.rs"),
        include_str!("specifier.rs"),
        include_str!("unused.rs"),
        include_str!("../module.rs"),
    ];
    let mut found: Vec<&str> = sources
        .iter()
        .flat_map(|source| source.split("envoy_dynamic_module_on_").skip(1))
        .filter_map(|rest| rest.split('(').next())
        .collect();
    found.sort_unstable();
    let mut listed = HOOKS.to_vec();
    listed.sort_unstable();
    assert_eq!(found, listed);
    assert_eq!(listed.len(), 51);
}

#[test]
fn no_fault_name_is_in_both_lists() {
    assert!(
        REQUEST_FAULTS
            .iter()
            .all(|name| !PROCESS_FAULTS.contains(name))
    );
}

#[test]
fn a_missing_callback_is_named_together_with_the_envoy_that_has_it() {
    let missing = Callbacks::load(&|_| std::ptr::null_mut()).err().unwrap();
    let message = missing.to_string();
    assert!(
        message.contains("envoy_dynamic_module_callback_log`"),
        "{message}"
    );
    assert!(message.contains("1.40"), "{message}");
}

#[test]
fn loading_outside_of_envoy_is_refused() {
    assert!(crate::load(stand_in::MODULE).is_null());
}
