//! No exported hook is forgotten: what the linker made is what the list of hooks says.

use std::{collections::BTreeSet, path::Path, process::Command};

use filter_envoy_abi::HOOKS;
use xtask::stack::Programs;

use super::fault_module;

const PREFIX: &str = "envoy_dynamic_module_on_";

/// The hooks that a built module exports, as binutils' `nm` sees them.
fn exported(module: &Path) -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(module)
        .output()
        .expect("`nm` runs: it comes with the C compiler's linker");
    assert!(output.status.success(), "nm {}", module.display());
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split(' ').next()?.strip_prefix(PREFIX))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_hook_that_the_module_exports_is_listed_and_no_other() {
    let listed: BTreeSet<String> = HOOKS.iter().map(|hook| hook.symbol.to_owned()).collect();
    assert_eq!(listed.len(), HOOKS.len(), "one is listed twice");
    let shipped = Programs::for_tests().expect("built").module_dir;
    for folder in [shipped, fault_module()] {
        let module = folder.join("libturnpike.so");
        assert_eq!(exported(&module), listed, "{}", module.display());
    }
}
