//! Where the control plane is and who we are to it, from flags and environment.

use std::error::Error;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use crate::link::Link;
use crate::output::Output;
use crate::secret::Secret;

const HTTP: &str = "http";
const HTTPS: &str = "https";
/// What rustls says of an answer that is no TLS record.
const NO_TLS: &str = "InvalidContentType";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Access {
    /// Admin gRPC address of the control plane; `https://HOST:PORT` for one with a certificate
    #[arg(
        long,
        global = true,
        value_name = "HOST:PORT",
        env = "TURNPIKE_ADMIN_ADDR",
        hide_env_values = true,
        default_value = "127.0.0.1:9090"
    )]
    admin_addr: AdminAddr,

    /// PEM file of the certificate authorities to trust for https [default: the system's]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "TURNPIKE_ADMIN_CA_FILE",
        hide_env_values = true
    )]
    admin_ca_file: Option<PathBuf>,

    /// Admin token. Prefer the environment or --admin-token-file: arguments are seen by other
    /// processes
    #[arg(
        long,
        global = true,
        value_name = "TOKEN",
        env = "TURNPIKE_ADMIN_TOKEN",
        hide_env_values = true
    )]
    admin_token: Option<TokenText>,

    /// File that holds the admin token (`-`: stdin); wins over --admin-token
    #[arg(long, global = true, value_name = "FILE")]
    admin_token_file: Option<PathBuf>,
}

/// `http://host:port` or `https://host:port` of the admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
struct AdminAddr {
    scheme: &'static str,
    authority: String,
}

/// A token as a flag or variable gives it; its `Debug` does not show it.
#[derive(Clone)]
struct TokenText(String);

// === impl Access ===

impl Access {
    /// Connects now, so that an unreachable control plane is told apart from one that refuses.
    pub(crate) async fn connect(&self, output: &mut Output<'_>) -> anyhow::Result<Link> {
        let token = self.token()?;
        let address = self.admin_addr.to_string();
        let mut endpoint = Endpoint::from_shared(address.clone())
            .with_context(|| format!("admin address {address}"))?
            .connect_timeout(CONNECT_TIMEOUT);
        if self.admin_addr.scheme == HTTPS {
            endpoint = endpoint.tls_config(self.trust()?).context("TLS")?;
        } else if token.is_some() && !self.admin_addr.is_loopback() {
            output.note(format_args!(
                "warning: the admin token travels to {address} in the clear; use https or a tunnel"
            ))?;
        }
        let channel = endpoint.connect().await;
        let channel = channel.map_err(|error| unreachable_at(&address, &error))?;
        Link::new(channel, address, token.as_ref())
    }

    fn trust(&self) -> anyhow::Result<ClientTlsConfig> {
        let Some(path) = &self.admin_ca_file else {
            return Ok(ClientTlsConfig::new().with_native_roots());
        };
        let pem = fs::read(path).with_context(|| format!("--admin-ca-file {}", path.display()))?;
        Ok(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)))
    }

    fn token(&self) -> anyhow::Result<Option<Secret>> {
        if let Some(path) = &self.admin_token_file {
            return Secret::read(path).context("admin token").map(Some);
        }
        let given = self
            .admin_token
            .as_ref()
            .filter(|token| !token.0.is_empty());
        Ok(given.map(|token| Secret::new(token.0.clone())))
    }
}

/// Only the innermost cause says anything, such as `Connection refused`.
fn unreachable_at(address: &str, error: &dyn Error) -> anyhow::Error {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let cause = cause.to_string();
    let hint = if cause.contains("certificate") {
        "trust its authority with --admin-ca-file"
    } else if cause.contains(NO_TLS) {
        "it does not speak TLS there: write http:// or its TLS port"
    } else {
        "is it running? set --admin-addr or TURNPIKE_ADMIN_ADDR"
    };
    anyhow!("cannot reach the control plane at {address}: {cause} ({hint})")
}

// === impl AdminAddr ===

impl AdminAddr {
    fn is_loopback(&self) -> bool {
        ["127.", "localhost:", "[::1]:"]
            .iter()
            .any(|loopback| self.authority.starts_with(loopback))
    }
}

impl FromStr for AdminAddr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, authority) = match text.split_once("://") {
            None | Some((HTTP, _)) => (HTTP, text.trim_start_matches("http://")),
            Some((HTTPS, authority)) => (HTTPS, authority),
            Some((scheme, _)) => return Err(format!("`{scheme}` is neither http nor https")),
        };
        let authority = authority.trim_end_matches('/');
        let (host, port) = authority.rsplit_once(':').unwrap_or(("", authority));
        let is_host = !host.is_empty() && !host.contains(['/', '@', ' ']);
        match port.parse::<u16>() {
            Ok(1..) if is_host => Ok(Self {
                scheme,
                authority: authority.to_owned(),
            }),
            Ok(_) | Err(_) => Err("write HOST:PORT, for example 127.0.0.1:9090".to_owned()),
        }
    }
}

impl fmt::Display for AdminAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

// === impl TokenText ===

impl FromStr for TokenText {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.trim_end().to_owned()))
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_scheme_but_a_port() {
        let address = |text: &str| text.parse::<AdminAddr>().map(|address| address.to_string());
        for text in [
            "127.0.0.1:9090",
            "http://127.0.0.1:9090",
            "http://127.0.0.1:9090/",
        ] {
            assert_eq!(address(text), Ok("http://127.0.0.1:9090".into()));
        }
        assert_eq!(address("[::1]:9090"), Ok("http://[::1]:9090".into()));
        assert_eq!(
            address("https://cp.example:9090"),
            Ok("https://cp.example:9090".into())
        );
        let wrong = [
            "",
            "localhost",
            ":9090",
            "h:0",
            "h:99999",
            "http://u@h:1",
            "http://h:1/x",
            "unix://h:1",
        ];
        for text in wrong {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_certificate_that_is_not_trusted_has_its_own_hint() {
        let untrusted = std::io::Error::other("invalid peer certificate: UnknownIssuer");
        let error = unreachable_at("https://cp.example:9090", &untrusted).to_string();
        assert!(
            error.ends_with("(trust its authority with --admin-ca-file)"),
            "{error}"
        );
    }

    #[test]
    fn a_port_without_tls_has_its_own_hint() {
        let plain = std::io::Error::other("received corrupt message of type InvalidContentType");
        let error = unreachable_at("https://127.0.0.1:9090", &plain).to_string();
        assert!(error.contains("it does not speak TLS there"), "{error}");
    }

    #[test]
    fn only_loopback_counts_as_private() {
        let loopback = |text: &str| text.parse::<AdminAddr>().unwrap().is_loopback();
        assert!(loopback("127.0.0.1:9090") && loopback("localhost:9090") && loopback("[::1]:9090"));
        assert!(!loopback("10.0.0.1:9090") && !loopback("localhost.example:9090"));
    }

    #[test]
    fn a_token_is_not_shown_by_debug() {
        let token: TokenText = "admin-test\n".parse().unwrap();
        assert_eq!(token.0, "admin-test");
        assert_eq!(format!("{token:?}"), "<redacted>");
    }
}
