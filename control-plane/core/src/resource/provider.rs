//! A provider: where models are served, and how that is reached.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use proto::config::v1 as config;
use serde::Serialize;

use super::{CredentialPlace, Dialect, Quirk, check_display_name, check_id};
use crate::fault::{Fault, Faults};

/// A provider as edited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Provider {
    pub id: String,
    pub display_name: String,
    pub dialect: Dialect,
    /// Base URL as SDKs write it, for example `https://api.openai.com/v1`.
    pub base_url: String,
    /// Name of an Envoy cluster that the mesh owns; empty: one is built.
    pub existing_cluster: String,
    /// PEM of the certificate authorities to trust; empty: the node's system store.
    pub ca_pem: String,
    pub credential_place: CredentialPlace,
    /// Whether the provider accepts `stream_options.include_usage`.
    pub stream_usage_option: bool,
    /// Query of every request, without its question mark.
    pub query: String,
    /// Name and value of each header that is sent with every request.
    pub headers: Vec<(String, String)>,
    /// AWS region that requests are signed for.
    pub region: String,
    pub quirks: Vec<Quirk>,
}

impl Dialect {
    /// Where the first provider of the dialect wants its credential.
    pub fn credential_place(self) -> CredentialPlace {
        match self {
            Self::Openai => CredentialPlace::Bearer,
            Self::Anthropic => CredentialPlace::XApiKey,
            Self::Gemini => CredentialPlace::XGoogApiKey,
            Self::Converse => CredentialPlace::Sigv4,
        }
    }
}

/// A base URL taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub tls: bool,
    /// DNS name or IP address, without the brackets of IPv6.
    pub host: String,
    pub port: u16,
    /// `host` or `host:port`, as in `:authority`; the scheme's own port is left out.
    pub authority: String,
    /// Empty, or starting with `/` and not ending in one.
    pub path_prefix: String,
}

/// Builds the Envoy cluster of a provider: a serialized `google.protobuf.Any`.
pub type ClusterBuilder = Arc<dyn Fn(&Provider, &Endpoint) -> Result<Vec<u8>, Fault> + Send + Sync>;

impl Provider {
    /// Checks every field.
    ///
    /// # Errors
    /// All faults at once.
    pub fn validate(&self) -> Result<(), Vec<Fault>> {
        let mut faults = Faults::default();
        check_id(&mut faults, "provider_id", &self.id);
        check_display_name(&mut faults, &self.display_name);
        let endpoint = self.endpoint();
        if let Err(fault) = &endpoint {
            faults.push(fault.field.clone(), fault.message.clone());
        }
        faults.require(
            self.existing_cluster.len() <= 256
                && self.existing_cluster.bytes().all(|b| b.is_ascii_graphic()),
            "existing_cluster",
            "must be at most 256 visible ASCII characters",
        );
        faults.require(
            !self.existing_cluster.starts_with("turnpike"),
            "existing_cluster",
            "must not be one of Turnpike's own",
        );
        faults.require(
            self.query.len() <= 1024
                && self.query.bytes().all(|b| b.is_ascii_graphic())
                && !self.query.contains(['?', '#']),
            "query",
            "must be at most 1024 visible ASCII characters without ? and #",
        );
        faults.require(
            self.credential_place != CredentialPlace::Sigv4 || !self.region.is_empty(),
            "region",
            "is required with sigv4",
        );
        if !self.ca_pem.is_empty() {
            faults.require(
                self.ca_pem.contains("-----BEGIN CERTIFICATE-----"),
                "ca_pem",
                "must hold PEM certificates",
            );
            faults.require(
                endpoint.as_ref().map_or(true, |endpoint| endpoint.tls),
                "ca_pem",
                "needs a base_url with https",
            );
            faults.require(
                self.existing_cluster.is_empty(),
                "ca_pem",
                "has no effect on an existing cluster",
            );
        }
        faults.into_result()
    }

    /// The base URL taken apart.
    ///
    /// # Errors
    /// What is wrong with `base_url`.
    pub fn endpoint(&self) -> Result<Endpoint, Fault> {
        parse_base_url(&self.base_url).map_err(|message| Fault::new("base_url", message))
    }

    /// Name of the Envoy cluster that reaches the provider.
    pub fn cluster_name(&self) -> String {
        if self.existing_cluster.is_empty() {
            format!("turnpike-provider-{}", self.id)
        } else {
            self.existing_cluster.clone()
        }
    }

    /// The form nodes are sent. The cluster is built unless the mesh owns it.
    ///
    /// # Errors
    /// What is wrong with `base_url`, or why no cluster could be built.
    pub fn to_config(&self, clusters: &ClusterBuilder) -> Result<config::Provider, Fault> {
        let endpoint = self.endpoint()?;
        let cluster = if self.existing_cluster.is_empty() {
            clusters(self, &endpoint)?
        } else {
            Vec::new()
        };
        Ok(config::Provider {
            id: self.id.clone(),
            dialect: self.dialect.to_wire(),
            authority: endpoint.authority,
            path_prefix: endpoint.path_prefix,
            cluster_name: self.cluster_name(),
            cluster,
            credential_place: self.credential_place.to_wire(),
            stream_usage_option: self.stream_usage_option,
            query: self.query.clone(),
            headers: self.headers.iter().map(to_header).collect(),
            region: self.region.clone(),
            quirks: self.quirks.iter().map(|quirk| quirk.to_wire()).collect(),
        })
    }
}

fn to_header((name, value): &(String, String)) -> config::Header {
    config::Header {
        name: name.clone(),
        value: value.clone(),
    }
}

fn parse_base_url(url: &str) -> Result<Endpoint, &'static str> {
    let (tls, rest) = if let Some(rest) = url.strip_prefix("https://") {
        (true, rest)
    } else if let Some(rest) = url.strip_prefix("http://") {
        (false, rest)
    } else {
        return Err("must start with https:// or http://");
    };
    if url.len() > 2048 || !rest.bytes().all(|b| b.is_ascii_graphic()) {
        return Err("must be at most 2048 visible ASCII characters");
    }
    if rest.contains(['?', '#', '@']) {
        return Err("must have no query, fragment or user");
    }
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let segments = path.trim_end_matches('/').split('/').skip(1);
    if segments
        .into_iter()
        .any(|one| ["", ".", ".."].contains(&one))
    {
        return Err("must have a path without empty segments, `.` or `..`");
    }
    let (host, port) = split_port(authority)?;
    let default_port = if tls { 443 } else { 80 };
    let port = port.unwrap_or(default_port);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let shown = if bare.contains(':') {
        format!("[{bare}]")
    } else {
        bare.to_ascii_lowercase()
    };
    Ok(Endpoint {
        tls,
        host: bare.to_ascii_lowercase(),
        port,
        authority: if port == default_port {
            shown
        } else {
            format!("{shown}:{port}")
        },
        path_prefix: path.trim_end_matches('/').to_owned(),
    })
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), &'static str> {
    let host_end = match authority.find(']') {
        Some(bracket) => bracket + 1,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(host_end);
    if !is_host(host) {
        return Err(
            "must name a host: a DNS name, an IPv4 address, or an IPv6 address in brackets",
        );
    }
    let Some(port) = rest.strip_prefix(':') else {
        return if rest.is_empty() {
            Ok((host, None))
        } else {
            Err("must have nothing but a port after the host")
        };
    };
    match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok((host, Some(port))),
        _ => Err("must have a port of 1-65535"),
    }
}

fn is_host(host: &str) -> bool {
    if let Some(bare) = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        return bare.parse::<Ipv6Addr>().is_ok();
    }
    // What ends in digits and a dot is an address or nothing.
    if host
        .rsplit('.')
        .next()
        .is_some_and(|label| label.bytes().all(|b| b.is_ascii_digit()))
    {
        return host.parse::<Ipv4Addr>().is_ok();
    }
    host.len() <= 253
        && host.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

#[cfg(test)]
mod tests;
