//! The module runs on the systems that the README names.

use std::process::Command;

use xtask::stack::Programs;

/// README.md: glibc 2.34 or newer.
const NEWEST: (u32, u32) = (2, 34);

#[test]
fn the_module_needs_no_symbol_newer_than_glibc_2_34() {
    let programs = Programs::for_tests().expect("the module is built");
    let module = programs.module_dir.join("libturnpike.so");
    let output = Command::new("objdump")
        .arg("-T")
        .arg(&module)
        .output()
        .expect("objdump, which comes with the C compiler (binutils)");
    assert!(output.status.success(), "objdump -T {}", module.display());
    let symbols = String::from_utf8_lossy(&output.stdout);
    let versions: Vec<((u32, u32), &str)> = symbols
        .lines()
        .filter_map(|line| Some((version(line)?, line)))
        .collect();
    assert!(versions.len() > 10, "no symbols in {symbols}");
    let newer: Vec<&str> = versions
        .iter()
        .filter(|(version, _)| *version > NEWEST)
        .map(|(_, line)| *line)
        .collect();
    assert!(newer.is_empty(), "{newer:#?}");
}

/// `…(GLIBC_2.33) stat64` needs 2.33.
fn version(line: &str) -> Option<(u32, u32)> {
    let (_, rest) = line.split_once("GLIBC_")?;
    let digits = rest.split_once(')').map_or(rest, |(version, _)| version);
    let mut parts = digits.split_whitespace().next()?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
