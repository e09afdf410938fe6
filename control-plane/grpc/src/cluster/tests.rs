use control_plane_core::resource::{CredentialPlace, Dialect};

use super::*;

fn bytes(url: &str, ca_pem: &str) -> Result<Vec<u8>, Fault> {
    let provider = Provider {
        id: "acme".into(),
        display_name: String::new(),
        dialect: Dialect::Openai,
        base_url: url.into(),
        existing_cluster: String::new(),
        ca_pem: ca_pem.into(),
        credential_place: CredentialPlace::Bearer,
        stream_usage_option: true,
        query: String::new(),
        headers: Vec::new(),
        region: String::new(),
        quirks: Vec::new(),
    };
    provider_cluster(&provider, &provider.endpoint().unwrap())
}

fn built(url: &str, ca_pem: &str) -> Cluster {
    let bytes = bytes(url, ca_pem).unwrap();
    let any = Any::decode(bytes.as_slice()).unwrap();
    assert_eq!(
        any.type_url,
        "type.googleapis.com/envoy.config.cluster.v3.Cluster"
    );
    Cluster::decode(any.value.as_slice()).unwrap()
}

fn protocol(cluster: &Cluster) -> HttpProtocolOptions {
    let any = &cluster.typed_extension_protocol_options["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"];
    HttpProtocolOptions::decode(any.value.as_slice()).unwrap()
}

fn typed<M: prost::Message + Default>(filter: &HttpFilter) -> M {
    let Some(FilterConfig::TypedConfig(any)) = &filter.config_type else {
        panic!("{} has no typed config", filter.name);
    };
    M::decode(any.value.as_slice()).unwrap()
}

fn tls(cluster: &Cluster) -> UpstreamTlsContext {
    let socket = cluster.transport_socket.as_ref().unwrap();
    let Some(TransportConfig::TypedConfig(any)) = &socket.config_type else {
        panic!("no typed config");
    };
    UpstreamTlsContext::decode(any.value.as_slice()).unwrap()
}

fn validation(context: &UpstreamTlsContext) -> CertificateValidationContext {
    match context
        .common_tls_context
        .clone()
        .unwrap()
        .validation_context_type
    {
        Some(ValidationContextType::ValidationContext(validation)) => validation,
        other => panic!("{other:?}"),
    }
}

// A self-signed certificate made for this test; its key was thrown away.
pub(crate) const CA: &str = include_str!("ca.pem");

#[test]
fn a_name_is_resolved_and_an_address_is_not() {
    let named = built("http://vllm.internal:8000/v1", "");
    assert_eq!(
        named.cluster_discovery_type,
        Some(ClusterDiscoveryType::Type(DiscoveryType::StrictDns.into()))
    );
    let address = built("http://127.0.0.1:9700", "");
    assert_eq!(
        address.cluster_discovery_type,
        Some(ClusterDiscoveryType::Type(DiscoveryType::Static.into()))
    );
    assert_eq!(address.name, "turnpike-provider-acme");
    assert_eq!(
        address.load_assignment.unwrap().cluster_name,
        "turnpike-provider-acme"
    );
}

#[test]
fn a_dead_name_never_holds_the_listeners() {
    for url in ["http://a.invalid", "https://a.invalid", "http://127.0.0.1"] {
        let cluster = built(url, "");
        assert_eq!(
            cluster.wait_for_warm_on_init,
            Some(BoolValue { value: false })
        );
        assert_eq!(cluster.connect_timeout.unwrap().seconds, 5);
    }
}

#[test]
fn no_circuit_breaker_of_envoy_loses_a_fallback() {
    let breakers = built("http://127.0.0.1", "").circuit_breakers.unwrap();
    let [thresholds] = breakers.thresholds.as_slice() else {
        panic!("{breakers:?}");
    };
    for threshold in [
        thresholds.max_connections,
        thresholds.max_pending_requests,
        thresholds.max_requests,
        thresholds.max_retries,
    ] {
        assert!(threshold.unwrap().value >= 100_000);
    }
}

#[test]
fn only_connection_failures_eject_an_address() {
    let outliers = built("http://127.0.0.1", "").outlier_detection.unwrap();
    assert!(outliers.split_external_local_origin_errors);
    for enforced in [
        outliers.enforcing_consecutive_5xx,
        outliers.enforcing_consecutive_gateway_failure,
        outliers.enforcing_success_rate,
        outliers.enforcing_failure_percentage,
    ] {
        assert_eq!(enforced, Some(UInt32Value { value: 0 }));
    }
}

#[test]
fn every_cluster_ends_in_our_filter_and_the_codec() {
    for url in ["http://127.0.0.1", "https://api.example"] {
        let options = protocol(&built(url, ""));
        let [ours, codec] = options.http_filters.as_slice() else {
            panic!("{:?}", options.http_filters);
        };
        let filter: DynamicModuleFilter = typed(ours);
        assert_eq!(filter.filter_name, "turnpike-upstream");
        let module = filter.dynamic_module_config.unwrap();
        assert_eq!(
            (module.name.as_str(), module.do_not_close),
            ("turnpike", true)
        );
        let config = filter.filter_config.unwrap();
        assert_eq!(
            config.type_url,
            "type.googleapis.com/google.protobuf.StringValue"
        );
        assert_eq!(
            StringValue::decode(config.value.as_slice()).unwrap().value,
            r#"{"provider":"acme"}"#
        );
        assert_eq!(codec.name, "envoy.filters.http.upstream_codec");
    }
}

#[test]
fn plain_http_is_http1_and_tls_negotiates() {
    let plain = protocol(&built("http://127.0.0.1", ""));
    assert!(matches!(
        plain.upstream_protocol_options,
        Some(UpstreamProtocolOptions::ExplicitHttpConfig(_))
    ));
    let secure = protocol(&built("https://api.example", ""));
    assert!(matches!(
        secure.upstream_protocol_options,
        Some(UpstreamProtocolOptions::AutoConfig(AutoHttpConfig {
            http2_protocol_options: Some(_),
            ..
        }))
    ));
}

#[test]
fn tls_always_checks_authority_and_name() {
    let context = tls(&built("https://API.example/v1", ""));
    assert_eq!(context.sni, "api.example");
    let checked = validation(&context);
    assert_eq!(
        checked.trusted_ca.unwrap().specifier,
        Some(data_source::Specifier::Filename(SYSTEM_CA_PATH.into()))
    );
    let [san] = checked.match_typed_subject_alt_names.as_slice() else {
        panic!("one name expected");
    };
    assert_eq!(san.san_type, i32::from(SanType::Dns));
    assert_eq!(
        san.matcher.clone().unwrap().match_pattern,
        Some(MatchPattern::Exact("api.example".into()))
    );

    let context = tls(&built("https://[::1]:8443", CA));
    assert_eq!(context.sni, "");
    let checked = validation(&context);
    assert_eq!(
        checked.trusted_ca.unwrap().specifier,
        Some(data_source::Specifier::InlineString(CA.into()))
    );
    assert_eq!(
        checked.match_typed_subject_alt_names[0].san_type,
        i32::from(SanType::IpAddress)
    );
    assert!(built("http://api.example", "").transport_socket.is_none());
}

#[test]
fn each_fault_of_the_authorities_is_named() {
    let key = CA.replace("CERTIFICATE", "PRIVATE KEY");
    let cases = [
        ("hello", CaError::Missing),
        (key.as_str(), CaError::OtherBlock),
        ("-----BEGIN CERTIFICATE-----\nMAA=\n", CaError::Malformed),
        (
            "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----",
            CaError::Malformed,
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            CaError::Malformed,
        ),
    ];
    for (ca, error) in cases {
        let fault = bytes("https://api.example", ca).unwrap_err();
        assert_eq!(fault, Fault::new("ca_pem", error.to_string()), "{ca}");
    }
    let fault = bytes("http://api.example", CA).unwrap_err();
    assert_eq!(fault.message, CaError::WithoutTls.to_string());
    let fault = bytes("https://api.example", &CA.repeat(1000)).unwrap_err();
    assert_eq!(fault.message, CaError::TooLong.to_string());
    assert!(bytes("https://api.example", &CA.repeat(2)).is_ok());
}

#[test]
fn equal_arguments_give_equal_bytes() {
    let once = bytes("https://api.example/v1", CA);
    assert_eq!(once, bytes("https://api.example/v1", CA));
}
