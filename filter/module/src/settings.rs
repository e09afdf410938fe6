//! What the Envoy bootstrap tells the module: the JSON in the extension's config.

use std::{net::Ipv4Addr, path::PathBuf};

use serde::Deserialize;
use thiserror::Error;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::transport::Uri;

/// The bootstrap extension's config. Unknown fields are refused.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// The control plane's gRPC: `https://host:port`, or `http://host:port` on this machine.
    pub(crate) control_plane: String,
    /// What to trust and to present over `https://`; without it, the system's authorities.
    #[serde(default)]
    pub(crate) control_plane_tls: Option<ControlPlaneTls>,
    /// File that holds this node's token; a node with a client certificate needs none.
    #[serde(default)]
    pub(crate) node_token_file: Option<PathBuf>,
    /// Local directory of this node: snapshot, clusters, spool. Made if it does not exist.
    pub(crate) state_dir: PathBuf,
    /// Name of this node, a label in the ledger and in `turnpike nodes list`.
    pub(crate) node: String,
    /// File with a 32-byte key, raw or in hexadecimal, that encrypts the snapshot. Without one,
    /// no credentials are in it.
    #[serde(default)]
    pub(crate) snapshot_key_file: Option<PathBuf>,
    /// How long Envoy's listeners wait for a first config, in milliseconds.
    #[serde(default = "default_start_deadline_ms")]
    pub(crate) start_deadline_ms: u64,
    /// How long a shutdown waits for open exchanges, in milliseconds.
    #[serde(default = "default_drain_deadline_ms")]
    pub(crate) drain_deadline_ms: u64,
}

/// TLS to the control plane. The files are PEM, and read anew for every connection.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ControlPlaneTls {
    /// The certificate authorities to trust; without it, the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// A name in the control plane's certificate; without it, the host in `control_plane`.
    pub(crate) server_name: Option<String>,
    /// This node's certificate chain, its own first.
    pub(crate) cert_file: Option<PathBuf>,
    /// The private key of that certificate.
    pub(crate) key_file: Option<PathBuf>,
}

const fn default_start_deadline_ms() -> u64 {
    15_000
}

const fn default_drain_deadline_ms() -> u64 {
    10_000
}

/// Why the extension's config is refused.
#[derive(Debug, Error)]
pub(crate) enum SettingsError {
    #[error("extension_config: {0}")]
    Json(#[from] serde_json::Error),
    #[error(
        "extension_config: control_plane must be https://host:port (or http://host:port on this machine)"
    )]
    Address,
    #[error(
        "extension_config: control_plane must start with https://, since tokens and provider credentials cross it: http:// is for this machine only (127.0.0.1, [::1], localhost), which {0} is not"
    )]
    Plaintext(String),
    #[error("extension_config: control_plane_tls is for https://, and control_plane is http://")]
    NoTls,
    #[error("extension_config: control_plane_tls: cert_file and key_file come together")]
    HalfCertificate,
    #[error("extension_config: control_plane_tls.server_name is no DNS name and no IP address")]
    ServerName,
    #[error(
        "extension_config: node_token_file is missing; only a node with control_plane_tls.cert_file needs none"
    )]
    NoToken,
    #[error("extension_config: node must have 1 to 128 visible characters")]
    Node,
}

impl Settings {
    /// Reads the JSON, which Envoy passes as the raw bytes of a StringValue.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, SettingsError> {
        let settings: Self = serde_json::from_slice(json)?;
        settings.check_control_plane()?;
        let visible = settings.node.bytes().all(|byte| byte.is_ascii_graphic());
        if settings.node.is_empty() || settings.node.len() > 128 || !visible {
            return Err(SettingsError::Node);
        }
        Ok(settings)
    }

    /// The control plane's address, `host:port`.
    pub(crate) fn control_plane_authority(&self) -> &str {
        let authority = self.control_plane.split_once("://");
        authority.map_or("", |(_, authority)| authority.trim_end_matches('/'))
    }

    /// TLS to the control plane, if it is reached by `https://`.
    pub(crate) fn tls(&self) -> Option<ControlPlaneTls> {
        let encrypted = self.control_plane.starts_with("https://");
        encrypted.then(|| self.control_plane_tls.clone().unwrap_or_default())
    }

    /// The name that the control plane's certificate must have.
    ///
    /// # Errors
    /// When that is neither a DNS name nor an IP address.
    pub(crate) fn server_name(&self) -> Result<ServerName<'static>, SettingsError> {
        let named = self.control_plane_tls.as_ref();
        let named = named.and_then(|tls| tls.server_name.as_deref());
        let name = named.unwrap_or_else(|| host(self.control_plane_authority()));
        ServerName::try_from(name.to_owned()).map_err(|_| match named {
            Some(_) => SettingsError::ServerName,
            None => SettingsError::Address,
        })
    }

    fn check_control_plane(&self) -> Result<(), SettingsError> {
        let authority = self.control_plane_authority();
        let uri: Uri = self
            .control_plane
            .parse()
            .map_err(|_| SettingsError::Address)?;
        let bare = uri.authority().is_some_and(|found| found == authority);
        if !bare || authority.contains('@') || uri.port_u16().is_none() {
            return Err(SettingsError::Address);
        }
        let tls = self.control_plane_tls.as_ref();
        let has_certificate = tls.is_some_and(|tls| tls.cert_file.is_some());
        match uri.scheme_str() {
            Some("https") => drop(self.server_name()?),
            Some("http") if tls.is_some() => return Err(SettingsError::NoTls),
            Some("http") if is_loopback(host(authority)) => {}
            Some("http") => return Err(SettingsError::Plaintext(host(authority).to_owned())),
            Some(_) | None => return Err(SettingsError::Address),
        }
        if tls.is_some_and(|tls| tls.cert_file.is_some() != tls.key_file.is_some()) {
            return Err(SettingsError::HalfCertificate);
        }
        if self.node_token_file.is_none() && !has_certificate {
            return Err(SettingsError::NoToken);
        }
        Ok(())
    }

    /// The file that Envoy watches for clusters.
    pub(crate) fn clusters_file(&self) -> PathBuf {
        self.state_dir.join("clusters.pb")
    }

    /// The last config that was applied.
    pub(crate) fn snapshot_file(&self) -> PathBuf {
        self.state_dir.join("snapshot.bin")
    }
}

/// The host of `host:port`, an IPv6 address without its brackets.
fn host(authority: &str) -> &str {
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

fn is_loopback(host: &str) -> bool {
    let is_v4 = |host: &str| host.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback());
    host.eq_ignore_ascii_case("localhost") || host == "::1" || is_v4(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(fields: &str) -> Result<Settings, SettingsError> {
        let json = format!(r#"{{"state_dir": "/s", "node": "gw-1", {fields}}}"#);
        Settings::parse(json.as_bytes())
    }

    fn refused(fields: &str) -> String {
        parse(fields).expect_err(fields).to_string()
    }

    fn at(control_plane: &str) -> Result<Settings, SettingsError> {
        parse(&format!(
            r#""control_plane": "{control_plane}", "node_token_file": "/t""#
        ))
    }

    #[test]
    fn plain_http_reaches_this_machine_only() {
        for here in ["127.0.0.1", "127.8.8.8", "[::1]", "localhost", "LocalHost"] {
            let settings = at(&format!("http://{here}:9090")).expect(here);
            assert!(settings.tls().is_none());
        }
        for elsewhere in [
            "10.0.0.1",
            "0.0.0.0",
            "[::]",
            "[2001:db8::1]",
            "turnpike",
            "localhost.example",
            "127.0.0.1.example",
        ] {
            let error = at(&format!("http://{elsewhere}:9090")).expect_err(elsewhere);
            let error = error.to_string();
            assert!(error.contains("https://"), "{error}");
            assert!(at(&format!("https://{elsewhere}:9090")).is_ok());
        }
    }

    #[test]
    fn an_address_is_a_scheme_a_host_and_a_port() {
        assert!(at("https://turnpike.internal:9090/").is_ok());
        for wrong in [
            "",
            "turnpike:9090",
            "https://turnpike",
            "https://:9090",
            "https://turnpike:0x1",
            "https://me@turnpike:9090",
            "https://turnpike:9090/grpc",
            "https://turnpike:9090?x",
            "unix:///run/turnpike",
            "ftp://turnpike:21",
        ] {
            let error = at(wrong).expect_err(wrong).to_string();
            assert!(error.contains("https://host:port"), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_certificate_is_for_the_host_unless_another_name_is_given() {
        let name = |address: &str| {
            let settings = at(address).expect(address);
            settings
                .server_name()
                .expect("a name")
                .to_str()
                .into_owned()
        };
        assert_eq!(name("https://turnpike.internal:9090"), "turnpike.internal");
        assert_eq!(name("https://[2001:db8::1]:9090"), "2001:db8::1");
        let settings = parse(
            r#""control_plane": "https://10.0.0.1:9090", "node_token_file": "/t",
               "control_plane_tls": {"server_name": "turnpike.internal"}"#,
        );
        let named = settings.expect("settings").server_name().expect("a name");
        assert_eq!(named.to_str(), "turnpike.internal");
    }

    #[test]
    fn tls_that_cannot_be_meant_is_refused_by_name() {
        let https = r#""control_plane": "https://h:9090", "node_token_file": "/t""#;
        let with = |tls: &str| refused(&format!(r#"{https}, "control_plane_tls": {tls}"#));
        assert!(with(r#"{"ca": "/ca"}"#).contains("unknown field `ca`"));
        assert!(with(r#"{"cert_file": "/c"}"#).contains("come together"));
        assert!(with(r#"{"key_file": "/k"}"#).contains("come together"));
        assert!(with(r#"{"server_name": "a b"}"#).contains("server_name"));
        let http = r#""control_plane": "http://127.0.0.1:9090", "node_token_file": "/t",
                      "control_plane_tls": {"ca_file": "/ca"}"#;
        assert!(refused(http).contains("control_plane_tls is for https://"));
    }

    #[test]
    fn a_node_has_a_token_or_a_certificate() {
        let https = r#""control_plane": "https://h:9090""#;
        assert!(refused(https).contains("node_token_file is missing"));
        let certificate = r#""control_plane_tls": {"cert_file": "/c", "key_file": "/k"}"#;
        assert!(parse(&format!("{https}, {certificate}")).is_ok());
    }
}
