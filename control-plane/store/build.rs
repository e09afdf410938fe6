//! Tells cargo that the migrations are compiled in; without it a new file would go unnoticed.

#![forbid(unsafe_code)]

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
