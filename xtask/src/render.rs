//! `envoy/bootstrap.yaml` with ports and paths moved: everything else stays as it is shipped.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::layout::root;

/// What differs from one Envoy to the next.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The node's name, for the control plane and the logs.
    pub node: String,
    pub gateway: SocketAddr,
    pub admin: SocketAddr,
    /// `http://127.0.0.1:9090`
    pub control_plane: String,
    pub node_token_file: PathBuf,
    /// The module's own disk.
    pub state_dir: PathBuf,
    pub snapshot_key_file: Option<PathBuf>,
    pub access_log: PathBuf,
    pub start_deadline_ms: u64,
}

/// Writes the bootstrap of one Envoy into `dir` and returns its path.
pub fn write(dir: &Path, placement: &Placement) -> Result<PathBuf> {
    let template = root().join("envoy/bootstrap.yaml");
    let text =
        fs::read_to_string(&template).with_context(|| format!("reading {}", template.display()))?;
    let rendered =
        render(&text, placement).with_context(|| format!("rendering {}", template.display()))?;
    for dir in [dir, &placement.state_dir] {
        fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    }
    let path = dir.join("bootstrap.yaml");
    fs::write(&path, rendered).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Changes a written bootstrap.
pub fn edit(path: &Path, change: &dyn Fn(&mut Value)) -> Result<()> {
    let mut config: Value = serde_norway::from_str(&fs::read_to_string(path)?)?;
    change(&mut config);
    fs::write(path, serde_norway::to_string(&config)?)?;
    Ok(())
}

/// The template as YAML with `placement` put in. Fails when a place is missing in the template.
pub fn render(template: &str, placement: &Placement) -> Result<String> {
    let mut config: Value = serde_norway::from_str(template)?;
    set(&mut config, "/node/id", json!(placement.node))?;
    set_address(
        &mut config,
        "/admin/address/socket_address",
        placement.admin,
    )?;
    let gateway = "/static_resources/listeners/0/address/socket_address";
    set_address(&mut config, gateway, placement.gateway)?;
    let clusters = placement.state_dir.join("clusters.pb");
    let cds = "/dynamic_resources/cds_config/path_config_source/path";
    set(&mut config, cds, json!(clusters))?;
    let manager = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
    let log = format!("{manager}/access_log/0/typed_config/path");
    set(&mut config, &log, json!(placement.access_log))?;
    let extension = "/bootstrap_extensions/0/typed_config/extension_config/value";
    let settings = config.pointer(extension).and_then(Value::as_str);
    let settings = settings.with_context(|| format!("no {extension}"))?;
    let settings = extension_config(settings, placement)?;
    set(&mut config, extension, json!(settings))?;
    Ok(serde_norway::to_string(&config)?)
}

fn extension_config(text: &str, placement: &Placement) -> Result<String> {
    let mut settings: Value = serde_json::from_str(text).context("the extension's config")?;
    set(
        &mut settings,
        "/control_plane",
        json!(placement.control_plane),
    )?;
    set(&mut settings, "/node", json!(placement.node))?;
    set(
        &mut settings,
        "/node_token_file",
        json!(placement.node_token_file),
    )?;
    set(&mut settings, "/state_dir", json!(placement.state_dir))?;
    set(
        &mut settings,
        "/start_deadline_ms",
        json!(placement.start_deadline_ms),
    )?;
    if let (Some(file), Value::Object(settings)) = (&placement.snapshot_key_file, &mut settings) {
        settings.insert("snapshot_key_file".to_owned(), json!(file));
    }
    Ok(settings.to_string())
}

fn set(config: &mut Value, pointer: &str, value: Value) -> Result<()> {
    *config
        .pointer_mut(pointer)
        .with_context(|| format!("no {pointer}"))? = value;
    Ok(())
}

fn set_address(config: &mut Value, pointer: &str, address: SocketAddr) -> Result<()> {
    set(
        config,
        &format!("{pointer}/address"),
        json!(address.ip().to_string()),
    )?;
    set(
        config,
        &format!("{pointer}/port_value"),
        json!(address.port()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement() -> Placement {
        Placement {
            node: "east".to_owned(),
            gateway: "127.0.0.1:18080".parse().expect("an address"),
            admin: "127.0.0.1:19901".parse().expect("an address"),
            control_plane: "http://127.0.0.1:19090".to_owned(),
            node_token_file: "/s/token".into(),
            state_dir: "/s/state".into(),
            snapshot_key_file: Some("/s/key".into()),
            access_log: "/s/access.log".into(),
            start_deadline_ms: 5_000,
        }
    }

    #[test]
    fn the_shipped_bootstrap_takes_every_place() {
        let template = fs::read_to_string(root().join("envoy/bootstrap.yaml")).expect("shipped");
        let rendered = render(&template, &placement()).expect("rendered");
        let config: Value = serde_norway::from_str(&rendered).expect("YAML");
        let at = |pointer: &str| config.pointer(pointer).cloned().unwrap_or_default();
        assert_eq!(at("/admin/address/socket_address/port_value"), 19901);
        let listener = at("/static_resources/listeners/0/address/socket_address");
        assert_eq!(
            listener,
            json!({"address": "127.0.0.1", "port_value": 18080})
        );
        let cds = at("/dynamic_resources/cds_config/path_config_source/path");
        assert_eq!(cds, "/s/state/clusters.pb");
        let extension = at("/bootstrap_extensions/0/typed_config/extension_config/value");
        let extension: Value =
            serde_json::from_str(extension.as_str().expect("text")).expect("JSON");
        assert_eq!(extension["snapshot_key_file"], "/s/key");
        assert_eq!(extension["start_deadline_ms"], 5_000);
        for default in ["/var/lib/turnpike", "/etc/turnpike", " 9901\n", "0.0.0.0"] {
            assert!(!rendered.contains(default), "{default} is left");
        }
    }

    #[test]
    fn a_template_without_a_place_is_refused_by_its_name() {
        let error = render("node: {id: x}", &placement()).expect_err("refused");
        assert!(error.to_string().contains("/admin/address"), "{error}");
    }
}
