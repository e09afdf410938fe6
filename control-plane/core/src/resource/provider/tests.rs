use super::*;

fn provider(base_url: &str) -> Provider {
    Provider {
        id: "demo".into(),
        display_name: String::new(),
        dialect: Dialect::Openai,
        base_url: base_url.into(),
        existing_cluster: String::new(),
        ca_pem: String::new(),
        credential_place: CredentialPlace::Bearer,
        stream_usage_option: true,
        query: String::new(),
        headers: Vec::new(),
        region: String::new(),
        quirks: Vec::new(),
    }
}

#[test]
fn base_urls_are_taken_apart_as_sdks_write_them() {
    for (url, tls, host, port, authority, path) in [
        (
            "https://api.example.com/v1",
            true,
            "api.example.com",
            443,
            "api.example.com",
            "/v1",
        ),
        (
            "https://API.example.com:443/v1/",
            true,
            "api.example.com",
            443,
            "api.example.com",
            "/v1",
        ),
        (
            "http://localhost:8000",
            false,
            "localhost",
            8000,
            "localhost:8000",
            "",
        ),
        (
            "http://127.0.0.1:1/",
            false,
            "127.0.0.1",
            1,
            "127.0.0.1:1",
            "",
        ),
        ("http://[::1]:9/x/y", false, "::1", 9, "[::1]:9", "/x/y"),
        (
            "https://[2001:db8::1]",
            true,
            "2001:db8::1",
            443,
            "[2001:db8::1]",
            "",
        ),
    ] {
        let endpoint = provider(url).endpoint().unwrap();
        assert_eq!(
            (
                endpoint.tls,
                endpoint.host.as_str(),
                endpoint.port,
                endpoint.authority.as_str(),
                endpoint.path_prefix.as_str()
            ),
            (tls, host, port, authority, path),
            "{url}"
        );
    }
}

#[test]
fn a_base_url_that_is_none_is_refused_at_its_field() {
    for url in [
        "",
        "api.example.com",
        "ftp://x",
        "https://",
        "https:///v1",
        "https://a b",
        "https://a?k=1",
        "https://u:p@a",
        "https://a:0",
        "https://a:70000",
        "https://a:",
        "https://[::1",
        "https://[x]",
        "https://1.2.3",
        "https://-a",
        "https://a..b",
        "https://[::1]x",
        "https://a/../v1",
        "https://a/v1/./x",
        "https://a//v1",
        "https://a/v1//x/",
    ] {
        assert_eq!(
            provider(url).validate().unwrap_err()[0].field,
            "base_url",
            "{url}"
        );
    }
}

#[test]
fn clusters_of_our_own_are_no_existing_ones() {
    for name in ["turnpike_stop", "turnpike-provider-a"] {
        let mut wrong = provider("https://a.example");
        wrong.existing_cluster = name.into();
        let fault = wrong.validate().unwrap_err().swap_remove(0);
        assert_eq!(fault.field, "existing_cluster", "{name}");
    }
}

#[test]
fn every_fault_of_a_provider_is_named_at_once() {
    let mut wrong = provider("gopher://x");
    wrong.id = "Bad Id".into();
    wrong.ca_pem = "not pem".into();
    wrong.existing_cluster = "a b".into();
    let fields: Vec<_> = wrong
        .validate()
        .unwrap_err()
        .into_iter()
        .map(|f| f.field)
        .collect();
    assert_eq!(
        fields,
        [
            "provider_id",
            "base_url",
            "existing_cluster",
            "ca_pem",
            "ca_pem"
        ]
    );
}

#[test]
fn a_cluster_is_built_unless_the_mesh_owns_it() {
    let clusters: ClusterBuilder =
        Arc::new(|_, endpoint| Ok(endpoint.authority.clone().into_bytes()));
    let built = provider("https://a.example/v1")
        .to_config(&clusters)
        .unwrap();
    assert_eq!(
        (built.cluster_name.as_str(), built.cluster.as_slice()),
        ("turnpike-provider-demo", b"a.example".as_slice())
    );
    let mut meshed = provider("https://a.example/v1");
    meshed.existing_cluster = "outbound|443||a.example".into();
    let meshed = meshed.to_config(&clusters).unwrap();
    assert_eq!(
        (meshed.cluster_name.as_str(), meshed.cluster.len()),
        ("outbound|443||a.example", 0)
    );
}
