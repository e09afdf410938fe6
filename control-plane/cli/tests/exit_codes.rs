//! The binary itself: exit codes, and which stream says what.

use std::io;
use std::net::TcpListener;
use std::process::{Command, Output};

fn turnpike(args: &[&str]) -> io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_turnpike"))
        .args(args)
        .env_remove("TURNPIKE_ADMIN_ADDR")
        .env("TURNPIKE_ADMIN_TOKEN", "admin-test")
        .output()
}

#[test]
fn a_failure_exits_with_1_and_one_line_on_stderr() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let output = turnpike(&["teams", "list", "--admin-addr", &address]).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr.starts_with("error: cannot reach the control plane at http://127.0.0.1:"),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1);
    assert!(!stderr.contains("admin-test"));
    assert!(output.stdout.is_empty());
}

#[test]
fn wrong_usage_exits_with_2_on_stderr() {
    let output = turnpike(&["keys", "create"]).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("--team <TEAM>")
    );
}

#[test]
fn help_exits_with_0_on_stdout_and_hides_the_token() {
    let output = turnpike(&["--help"]).unwrap();
    assert_eq!(output.status.code(), Some(0));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("[env: TURNPIKE_ADMIN_TOKEN]"), "{stdout}");
    assert!(!stdout.contains("admin-test"));
}
