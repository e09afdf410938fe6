//! The demo config, put in by the `turnpike` command like anybody's config.

use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{
    layout::{StateDir, write_secret},
    stack::{Access, Programs},
};

mod vendors;

/// The `turnpike` command, opened for one control plane.
struct Turnpike<'a> {
    access: &'a Access,
    programs: &'a Programs,
}

impl Turnpike<'_> {
    fn command(&self, args: &[&str]) -> Result<Command> {
        let mut cli = self.access.cli(self.programs)?;
        cli.args(args);
        Ok(cli)
    }
}

/// Puts the demo config in and returns the demo key's plaintext. What a person changed since the
/// first time stays: only the providers are set anew, since ports move.
pub fn run(
    access: &Access,
    programs: &Programs,
    state: &StateDir,
    provider_port: u16,
) -> Result<String> {
    let turnpike = Turnpike { access, programs };
    let first_time = !succeeds(&mut turnpike.command(&["teams", "get", "demo"])?)?;
    let mut documents = demo_provider(provider_port);
    if first_time {
        documents.push_str("---\n");
        documents.push_str(include_str!("demo.yaml"));
    }
    apply(&mut turnpike.command(&["apply", "-f", "-"])?, &documents)?;
    vendors::register(&turnpike, state)?;

    let key_file = state.secrets().join("demo-key");
    let known = succeeds(&mut turnpike.command(&["keys", "get", "demo"])?)?;
    if known && key_file.exists() {
        let key = fs::read_to_string(&key_file);
        return Ok(key
            .with_context(|| format!("reading {}", key_file.display()))?
            .trim()
            .to_owned());
    }
    if known {
        // Its plaintext is lost, and only its hash is in the database.
        output(&mut turnpike.command(&["keys", "delete", "demo"])?)?;
    }
    let key = output(&mut turnpike.command(&["keys", "create", "demo", "--team", "demo"])?)?;
    let key = key.trim().to_owned();
    ensure!(
        key.starts_with("tp_"),
        "`turnpike keys create` printed no key"
    );
    write_secret(&key_file, &key)?;
    Ok(key)
}

fn demo_provider(port: u16) -> String {
    format!(
        "kind: Provider\nid: demo\nspec:\n  displayName: Demo provider\n  \
         baseUrl: http://127.0.0.1:{port}/v1\n  credentialPlace: none\n  \
         quirks: [no-responses]\n"
    )
}

fn apply(command: &mut Command, documents: &str) -> Result<()> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("running turnpike apply")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin
            .write_all(documents.as_bytes())
            .context("writing to turnpike apply")?;
    }
    let output = child.wait_with_output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "turnpike apply failed: {}",
        errors.trim()
    );
    Ok(())
}

/// Runs `turnpike … get`. False: there is no such resource.
fn succeeds(command: &mut Command) -> Result<bool> {
    let output = command.output().context("running turnpike")?;
    let errors = String::from_utf8_lossy(&output.stderr).to_lowercase();
    if output.status.success() {
        return Ok(true);
    }
    if errors.contains("not found") || errors.contains("not_found") {
        return Ok(false);
    }
    bail!("turnpike failed: {}", errors.trim())
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().context("running turnpike")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "turnpike failed: {}",
        errors.trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
