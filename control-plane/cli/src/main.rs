//! The `turnpike` command; everything is in the library, so that tests can run it in-process.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    control_plane_cli::run()
}
