//! The exported hooks, called as Envoy calls them, over a table of stand-in callbacks.

mod bootstrap;
mod http;
mod stand_in;

use super::names::{HOOKS, Reach, process_faults, request_faults};
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
    let mut listed: Vec<&str> = HOOKS.iter().map(|hook| hook.symbol).collect();
    listed.sort_unstable();
    assert_eq!(found, listed);
    assert_eq!(listed.len(), 51);
}

#[test]
fn every_fault_name_is_listed_once_and_set_off_somewhere_in_the_source() {
    let mut names: Vec<&str> = request_faults().chain(process_faults()).collect();
    let sources = [
        include_str!("http.rs"),
        include_str!("bootstrap.rs"),
        include_str!("specifier.rs"),
        include_str!("../module.rs"),
        include_str!("../http_instance.rs"),
        include_str!("../bootstrap_instance.rs"),
        include_str!("../down.rs"),
        include_str!("../up.rs"),
    ];
    for name in &names {
        let quoted = format!("{name:?}");
        assert!(
            sources.iter().any(|source| source.contains(&quoted)),
            "{name}"
        );
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn a_hook_without_code_of_the_module_is_exported_by_the_file_of_unused_ones() {
    let unused = include_str!("unused.rs");
    for hook in HOOKS {
        let symbol = format!("envoy_dynamic_module_on_{}(", hook.symbol);
        assert_eq!(
            unused.contains(&symbol),
            hook.reach == Reach::Unused,
            "{symbol}"
        );
    }
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
