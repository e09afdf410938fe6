//! The Envoy cluster of a provider, built here so that a node passes it on unread.
//!
//! It holds no credential and nothing that changes in operation, so that a node's connections
//! survive every config change but one of the endpoint itself.

use std::collections::HashMap;
use std::net::IpAddr;

use base64::Engine as _;
use control_plane_core::fault::Fault;
use control_plane_core::resource::{Endpoint, Provider};
use envoy_types::pb::envoy::{
    config::{
        cluster::v3::{
            CircuitBreakers, Cluster, OutlierDetection,
            circuit_breakers::Thresholds,
            cluster::{ClusterDiscoveryType, DiscoveryType, DnsLookupFamily},
        },
        core::v3::{
            Address, DataSource, Http1ProtocolOptions, Http2ProtocolOptions, SocketAddress,
            TransportSocket, address, data_source, socket_address,
            transport_socket::ConfigType as TransportConfig,
        },
        endpoint::v3::{
            ClusterLoadAssignment, Endpoint as EnvoyEndpoint, LbEndpoint, LocalityLbEndpoints,
            lb_endpoint::HostIdentifier,
        },
    },
    extensions::{
        dynamic_modules::v3::DynamicModuleConfig,
        filters::{
            http::{dynamic_modules::v3::DynamicModuleFilter, upstream_codec::v3::UpstreamCodec},
            network::http_connection_manager::v3::{
                HttpFilter, http_filter::ConfigType as FilterConfig,
            },
        },
        transport_sockets::tls::v3::{
            CertificateValidationContext, CommonTlsContext, SubjectAltNameMatcher,
            UpstreamTlsContext, common_tls_context::ValidationContextType,
            subject_alt_name_matcher::SanType,
        },
        upstreams::http::v3::{
            HttpProtocolOptions,
            http_protocol_options::{
                AutoHttpConfig, ExplicitHttpConfig, UpstreamProtocolOptions,
                explicit_http_config::ProtocolConfig,
            },
        },
    },
    r#type::matcher::v3::{StringMatcher, string_matcher::MatchPattern},
};
use envoy_types::pb::google::protobuf::{Any, BoolValue, Duration, StringValue, UInt32Value};
use envoy_types::util::pack_any;
use prost::Message as _;
use thiserror::Error;

/// Why a provider's `ca_pem` is refused; never repeats any of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
enum CaError {
    #[error("needs a base_url with https")]
    WithoutTls,
    #[error("must be at most 262,144 bytes")]
    TooLong,
    #[error("must hold a PEM block `CERTIFICATE`")]
    Missing,
    #[error("must hold no PEM block but `CERTIFICATE`")]
    OtherBlock,
    #[error("must be well-formed PEM")]
    Malformed,
}

// Where Debian, Ubuntu, Alpine and Envoy's own images keep the authorities they trust.
const SYSTEM_CA_PATH: &str = "/etc/ssl/certs/ca-certificates.crt";
const MAX_CA_BYTES: usize = 256 * 1024;
const CONNECT_TIMEOUT_S: i64 = 5;
// Envoy's defaults (1,024, and 3 concurrent retries) would turn load into refusals and lose
// fallbacks; what bounds a provider's load here is Turnpike's own limits.
const UNBOUNDED: u32 = 1_000_000;

/// The provider's cluster as a serialized `google.protobuf.Any`; equal arguments give equal bytes.
///
/// # Errors
/// What is wrong with `ca_pem`.
pub fn provider_cluster(provider: &Provider, endpoint: &Endpoint) -> Result<Vec<u8>, Fault> {
    check_ca(endpoint, &provider.ca_pem)
        .map_err(|error| Fault::new("ca_pem", error.to_string()))?;
    let name = provider.cluster_name();
    let discovery = match endpoint.host.parse::<IpAddr>() {
        Ok(_) => DiscoveryType::Static,
        Err(_) => DiscoveryType::StrictDns,
    };
    let cluster = Cluster {
        connect_timeout: Some(Duration {
            seconds: CONNECT_TIMEOUT_S,
            nanos: 0,
        }),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(discovery.into())),
        // A dual-stack name must not fail on a node that has no IPv6 route.
        dns_lookup_family: DnsLookupFamily::V4Preferred.into(),
        // Else one dead DNS name keeps every listener of the Envoy shut for a minute.
        wait_for_warm_on_init: Some(BoolValue { value: false }),
        load_assignment: Some(load_assignment(&name, endpoint)),
        circuit_breakers: Some(circuit_breakers()),
        outlier_detection: Some(outlier_detection()),
        typed_extension_protocol_options: HashMap::from([(
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions".to_owned(),
            pack_any(protocol_options(&provider.id, endpoint.tls)),
        )]),
        transport_socket: endpoint
            .tls
            .then(|| tls_socket(&endpoint.host, &provider.ca_pem)),
        name,
        ..Cluster::default()
    };
    Ok(pack_any(cluster).encode_to_vec())
}

fn load_assignment(name: &str, endpoint: &Endpoint) -> ClusterLoadAssignment {
    let address = Address {
        address: Some(address::Address::SocketAddress(SocketAddress {
            address: endpoint.host.clone(),
            port_specifier: Some(socket_address::PortSpecifier::PortValue(
                endpoint.port.into(),
            )),
            ..SocketAddress::default()
        })),
    };
    ClusterLoadAssignment {
        cluster_name: name.to_owned(),
        endpoints: vec![LocalityLbEndpoints {
            lb_endpoints: vec![LbEndpoint {
                host_identifier: Some(HostIdentifier::Endpoint(EnvoyEndpoint {
                    address: Some(address),
                    ..EnvoyEndpoint::default()
                })),
                ..LbEndpoint::default()
            }],
            ..LocalityLbEndpoints::default()
        }],
        ..ClusterLoadAssignment::default()
    }
}

fn circuit_breakers() -> CircuitBreakers {
    let unbounded = Some(UInt32Value { value: UNBOUNDED });
    CircuitBreakers {
        thresholds: vec![Thresholds {
            max_connections: unbounded,
            max_pending_requests: unbounded,
            max_requests: unbounded,
            max_retries: unbounded,
            ..Thresholds::default()
        }],
        ..CircuitBreakers::default()
    }
}

// Only connections that fail count against an address, so that one tenant's bad prompts eject
// nobody; half of the addresses at most, so that the last one is never ejected.
fn outlier_detection() -> OutlierDetection {
    let percent = |value| Some(UInt32Value { value });
    OutlierDetection {
        split_external_local_origin_errors: true,
        consecutive_local_origin_failure: Some(UInt32Value { value: 5 }),
        enforcing_consecutive_local_origin_failure: percent(100),
        enforcing_local_origin_success_rate: percent(0),
        enforcing_failure_percentage_local_origin: percent(0),
        enforcing_consecutive_5xx: percent(0),
        enforcing_consecutive_gateway_failure: percent(0),
        enforcing_success_rate: percent(0),
        enforcing_failure_percentage: percent(0),
        max_ejection_percent: percent(50),
        always_eject_one_host: Some(BoolValue { value: false }),
        ..OutlierDetection::default()
    }
}

fn protocol_options(provider_id: &str, tls: bool) -> HttpProtocolOptions {
    let http1 = Http1ProtocolOptions::default();
    // Over TLS the ALPN answer chooses; in the clear most model servers know HTTP/1.1 only.
    let protocol = if tls {
        UpstreamProtocolOptions::AutoConfig(AutoHttpConfig {
            http_protocol_options: Some(http1),
            http2_protocol_options: Some(Http2ProtocolOptions::default()),
            ..AutoHttpConfig::default()
        })
    } else {
        UpstreamProtocolOptions::ExplicitHttpConfig(ExplicitHttpConfig {
            protocol_config: Some(ProtocolConfig::HttpProtocolOptions(http1)),
        })
    };
    HttpProtocolOptions {
        http_filters: vec![
            http_filter("turnpike-upstream", pack_any(module_filter(provider_id))),
            http_filter(
                "envoy.filters.http.upstream_codec",
                pack_any(UpstreamCodec::default()),
            ),
        ],
        upstream_protocol_options: Some(protocol),
        ..HttpProtocolOptions::default()
    }
}

fn http_filter(name: &str, config: Any) -> HttpFilter {
    HttpFilter {
        name: name.to_owned(),
        config_type: Some(FilterConfig::TypedConfig(config)),
        ..HttpFilter::default()
    }
}

fn module_filter(provider_id: &str) -> DynamicModuleFilter {
    let config = serde_json::json!({ "provider": provider_id }).to_string();
    DynamicModuleFilter {
        dynamic_module_config: Some(DynamicModuleConfig {
            name: "turnpike".to_owned(),
            do_not_close: true,
            ..DynamicModuleConfig::default()
        }),
        filter_name: "turnpike-upstream".to_owned(),
        filter_config: Some(pack_any(StringValue { value: config })),
        ..DynamicModuleFilter::default()
    }
}

fn tls_socket(host: &str, ca_pem: &str) -> TransportSocket {
    let trusted_ca = if ca_pem.is_empty() {
        data_source::Specifier::Filename(SYSTEM_CA_PATH.to_owned())
    } else {
        data_source::Specifier::InlineString(ca_pem.to_owned())
    };
    let (san_type, sni) = match host.parse::<IpAddr>() {
        // TLS has no server name for an address (RFC 6066 section 3).
        Ok(_) => (SanType::IpAddress, String::new()),
        Err(_) => (SanType::Dns, host.to_owned()),
    };
    let validation = CertificateValidationContext {
        trusted_ca: Some(DataSource {
            specifier: Some(trusted_ca),
            ..DataSource::default()
        }),
        match_typed_subject_alt_names: vec![SubjectAltNameMatcher {
            san_type: san_type.into(),
            matcher: Some(StringMatcher {
                match_pattern: Some(MatchPattern::Exact(host.to_owned())),
                ..StringMatcher::default()
            }),
            ..SubjectAltNameMatcher::default()
        }],
        ..CertificateValidationContext::default()
    };
    // The name is fixed: `auto_sni` would take it from what the client sent.
    let context = UpstreamTlsContext {
        sni,
        common_tls_context: Some(CommonTlsContext {
            validation_context_type: Some(ValidationContextType::ValidationContext(validation)),
            ..CommonTlsContext::default()
        }),
        ..UpstreamTlsContext::default()
    };
    TransportSocket {
        name: "envoy.transport_sockets.tls".to_owned(),
        config_type: Some(TransportConfig::TypedConfig(pack_any(context))),
    }
}

fn check_ca(endpoint: &Endpoint, ca_pem: &str) -> Result<(), CaError> {
    if ca_pem.is_empty() {
        return Ok(());
    }
    if !endpoint.tls {
        return Err(CaError::WithoutTls);
    }
    if ca_pem.len() > MAX_CA_BYTES {
        return Err(CaError::TooLong);
    }
    let mut certificates = 0;
    let mut rest = ca_pem;
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        let (label, after) = after.split_once("-----").ok_or(CaError::Malformed)?;
        if label != "CERTIFICATE" {
            return Err(CaError::OtherBlock);
        }
        let (body, after) = after
            .split_once("-----END CERTIFICATE-----")
            .ok_or(CaError::Malformed)?;
        let body: String = body.split_ascii_whitespace().collect();
        let der = base64::engine::general_purpose::STANDARD
            .decode(body)
            .map_err(|_| CaError::Malformed)?;
        // A certificate is one ASN.1 SEQUENCE.
        if der.first() != Some(&0x30) {
            return Err(CaError::Malformed);
        }
        certificates += 1;
        rest = after;
    }
    if certificates == 0 {
        return Err(CaError::Missing);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
