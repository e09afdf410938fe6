//! Programs of others that we call: one that is missing is named, with the way to get it.

use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// Runs `command` and returns its standard output. Its errors are shown when it fails; when it, or
/// Python's `pip`, is not there, the error ends in `remedy`.
pub fn output(command: &mut Command, what: &str, remedy: &str) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("{what}: {program} was not found; {remedy}")
        }
        Err(error) => return Err(error).context(what.to_owned()),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("No module named pip") {
        bail!("{what}: {program} has no pip; {remedy}");
    }
    ensure!(
        output.status.success(),
        "{what} failed ({}):\n{}",
        output.status,
        errors.trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_remedy() {
        let mut missing = Command::new("no-such-program");
        let error = output(&mut missing, "asking it", "get it").expect_err("missing");
        assert_eq!(
            error.to_string(),
            "asking it: no-such-program was not found; get it"
        );
        let mut without_pip = Command::new("sh");
        without_pip.args(["-c", "echo 'sh: No module named pip' >&2; exit 1"]);
        let error = output(&mut without_pip, "asking it", "get it").expect_err("no pip");
        assert_eq!(error.to_string(), "asking it: sh has no pip; get it");
    }

    #[test]
    fn a_failure_shows_what_the_program_said() {
        let mut failing = Command::new("sh");
        failing.args(["-c", "echo no disk >&2; exit 3"]);
        let error = output(&mut failing, "copying", "").expect_err("failed");
        assert_eq!(
            error.to_string(),
            "copying failed (exit status: 3):\nno disk"
        );
    }
}
