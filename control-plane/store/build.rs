//! Tells cargo that the migrations are compiled in; without it a new file would go unnoticed.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "cargo reads a build script's output")]

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
