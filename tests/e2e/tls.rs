//! TLS between a node and the control plane, and between `turnpike` and the control plane.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Output,
    time::Duration,
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{
    http::Request,
    stack::{Options, Stack},
    wait,
};
use xtask::{
    ports::free_port,
    stack::{Envoy, EnvoyOptions, Tokens, Variation},
};

/// Longer than the longest pause between two attempts to connect.
const RECONNECTED: Duration = Duration::from_secs(60);

/// A certificate authority, and where its certificate lies.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// Files of a certificate and of its key.
struct Pair {
    cert: PathBuf,
    key: PathBuf,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let folder = tempfile::tempdir().expect("made");
        fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("written");
        Self { issuer, folder }
    }

    fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    fn pem(&self) -> String {
        self.issuer.pem()
    }

    fn issue(&self, name: &str, names: &[&str], purpose: ExtendedKeyUsagePurpose) -> Pair {
        self.issue_until(name, names, purpose, 4_000)
    }

    fn issue_until(
        &self,
        name: &str,
        names: &[&str],
        purpose: ExtendedKeyUsagePurpose,
        year: i32,
    ) -> Pair {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.extended_key_usages = vec![purpose];
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &self.issuer).expect("signed");
        let pair = Pair {
            cert: self.folder.path().join(format!("{name}.pem")),
            key: self.folder.path().join(format!("{name}-key.pem")),
        };
        replace(&pair.cert, &cert.pem());
        replace(&pair.key, &key.serialize_pem());
        pair
    }

    fn server(&self) -> Pair {
        let names = ["localhost", "127.0.0.1"];
        self.issue("server", &names, ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn node(&self, name: &str, year: i32) -> Pair {
        let purpose = ExtendedKeyUsagePurpose::ClientAuth;
        self.issue_until(&format!("node-{name}"), &[name], purpose, year)
    }
}

/// Puts a file in the place of another in one step.
fn replace(file: &Path, text: &str) {
    let beside = file.with_extension("new");
    fs::write(&beside, text).expect("written");
    fs::rename(&beside, file).expect("renamed");
}

/// A control plane that serves TLS, and no Envoy yet.
fn secured_stack(authority: &Authority, server: &Pair, client_ca: Option<PathBuf>) -> Stack {
    let variable = |name: &str, file: PathBuf| (name.to_owned(), OsString::from(file));
    let mut env = vec![
        variable("TURNPIKE_TLS_CERT_FILE", server.cert.clone()),
        variable("TURNPIKE_TLS_KEY_FILE", server.key.clone()),
    ];
    env.extend(client_ca.map(|file| variable("TURNPIKE_TLS_CLIENT_CA_FILE", file)));
    Stack::start(&Options {
        envoys: 0,
        control_plane_env: env,
        control_plane_ca_file: Some(authority.ca_file()),
        ..Options::default()
    })
}

/// Starts an Envoy with this `control_plane_tls`, and does not wait.
fn spawn(stack: &mut Stack, name: &str, tls: &Value, with_token: bool) -> usize {
    let place = "/bootstrap_extensions/0/typed_config/extension_config/value";
    let edit = |bootstrap: &mut Value| {
        let value = bootstrap
            .pointer_mut(place)
            .expect("the extension's config");
        let mut settings: Value =
            serde_json::from_str(value.as_str().expect("text")).expect("JSON");
        let fields = settings.as_object_mut().expect("an object");
        fields.insert("control_plane_tls".to_owned(), tls.clone());
        if !with_token {
            fields.remove("node_token_file");
        }
        *value = json!(settings.to_string());
    };
    let envoy = Envoy::spawn(
        &stack.programs,
        &stack.state,
        &EnvoyOptions {
            name: name.to_owned(),
            gateway_port: free_port().expect("a port"),
            admin_port: free_port().expect("a port"),
            control_plane: stack.control_plane.access.url(),
            tokens: Tokens::open(&stack.state).expect("tokens"),
            concurrency: 1,
            start_deadline_ms: 3_000,
            log_level: "info".to_owned(),
        },
        &Variation {
            bootstrap: Some(&edit),
            ..Variation::default()
        },
    );
    stack.envoys.push(envoy.expect("spawned"));
    stack.envoys.len() - 1
}

fn log(stack: &Stack, name: &str) -> String {
    fs::read_to_string(stack.state.logs().join(format!("{name}.log"))).unwrap_or_default()
}

fn wait_for_line(stack: &Stack, name: &str, text: &str) {
    wait::until(
        RECONNECTED,
        &format!("`{text}` in the log of {name}"),
        || log(stack, name).contains(text).then_some(()),
    );
}

/// The status of a chat, none as long as Envoy does not listen.
fn chat(stack: &Stack, envoy: usize, key: &str) -> Option<(u16, String)> {
    let body = json!({"model": "small", "messages": [{"role": "user", "content": "Hello"}]});
    let port = stack.envoys.get(envoy).expect("an Envoy").gateway_port;
    let answer = Request::chat(key, &body).send(port).ok()?;
    let id = answer.header("x-request-id").unwrap_or_default().to_owned();
    Some((answer.status, id))
}

/// The request id of a chat that is answered at last.
fn answered(stack: &Stack, envoy: usize, key: &str) -> String {
    wait::until(RECONNECTED, "an answer", || {
        match chat(stack, envoy, key)? {
            (200, id) => Some(id),
            _ => None,
        }
    })
}

fn turnpike(stack: &Stack, ca_file: Option<&Path>, address: &str) -> (bool, String) {
    let mut command = stack.turnpike_command(&["teams", "list"]);
    command.env("TURNPIKE_ADMIN_ADDR", address);
    match ca_file {
        Some(file) => command.env("TURNPIKE_ADMIN_CA_FILE", file),
        None => command.env_remove("TURNPIKE_ADMIN_CA_FILE"),
    };
    let Output { status, stderr, .. } = command.output().expect("turnpike runs");
    (
        status.success(),
        String::from_utf8_lossy(&stderr).into_owned(),
    )
}

/// The one record of a request, as `turnpike` shows it.
/// A node that could not connect before tries again within 5 s; then a record takes as long.
fn record(stack: &Stack, request_id: &str) -> Value {
    wait::until(Duration::from_secs(10), "a usage record", || {
        let list = ["usage", "records", "--request-id", request_id, "-o", "json"];
        let found: Value = serde_json::from_str(&stack.turnpike(&list)).expect("JSON");
        found.as_array().and_then(|found| found.first().cloned())
    })
}

#[test]
fn over_tls_requests_are_answered_records_arrive_and_a_new_certificate_needs_no_restart() {
    let authority = Authority::new("first");
    let server = authority.server();
    let mut stack = secured_stack(&authority, &server, None);
    let node_ca = authority.folder.path().join("node-ca.pem");
    replace(&node_ca, &authority.pem());
    let envoy = spawn(&mut stack, "gw-1", &json!({"ca_file": node_ca}), true);
    let key = stack.key("tls");
    let id = answered(&stack, envoy, &key);
    assert_eq!(record(&stack, &id)["requestId"], id.as_str());

    let url = stack.control_plane.access.url();
    assert!(url.starts_with("https://"));
    let (trusted, said) = turnpike(&stack, None, &url);
    assert!(!trusted && said.contains("--admin-ca-file"), "{said}");
    let (reached, said) = turnpike(&stack, None, &url.replace("https", "http"));
    assert!(!reached && said.contains("https"), "{said}");

    // Another authority: a node that knows both goes on, `turnpike` needs to be told.
    let second = Authority::new("second");
    let renewed = second.server();
    for (old, new) in [(&server.cert, &renewed.cert), (&server.key, &renewed.key)] {
        replace(old, &fs::read_to_string(new).expect("PEM"));
    }
    replace(&node_ca, &(authority.pem() + &second.pem()));
    wait::until(Duration::from_secs(10), "the new certificate", || {
        let (trusted, _) = turnpike(&stack, Some(&second.ca_file()), &url);
        trusted.then_some(())
    });
    let (trusted, _) = turnpike(&stack, Some(&authority.ca_file()), &url);
    assert!(!trusted, "the old certificate is still served");
    stack.control_plane.access.ca_file = Some(second.ca_file());
    let key = stack.key("renewed");
    let (status, _) = chat(&stack, envoy, &key).expect("an answer");
    assert_eq!(status, 200, "{}", log(&stack, "gw-1"));
}

#[test]
fn a_node_that_does_not_trust_the_control_plane_says_so_and_recovers_with_its_ca_file() {
    let authority = Authority::new("ours");
    let server = authority.server();
    let mut stack = secured_stack(&authority, &server, None);
    let key = stack.key("trust");
    let node_ca = authority.folder.path().join("node-ca.pem");
    replace(&node_ca, &Authority::new("another").pem());
    let envoy = spawn(&mut stack, "gw-1", &json!({"ca_file": node_ca}), true);
    // It serves without a config, and does not know that the key is good.
    let (status, _) = wait::until(Duration::from_secs(30), "Envoy listens", || {
        chat(&stack, envoy, &key)
    });
    assert_eq!(status, 503);
    let (status, _) = chat(&stack, envoy, "sk-test-unknown-key").expect("an answer");
    assert_eq!(status, 503, "not known is not unknown");
    let reason = "the control plane's certificate is signed by none of the authorities in";
    wait_for_line(&stack, "gw-1", reason);
    wait_for_line(&stack, "gw-1", &node_ca.display().to_string());

    replace(&node_ca, &authority.pem());
    let id = answered(&stack, envoy, &key);
    record(&stack, &id);
    let token = fs::read_to_string(&stack.control_plane.access.tokens.node).expect("a token");
    assert!(!log(&stack, "gw-1").contains(token.trim()));
}

#[test]
fn a_node_with_a_certificate_for_its_name_needs_no_token_and_no_other_certificate_does() {
    let authority = Authority::new("servers");
    let nodes = Authority::new("nodes");
    let server = authority.server();
    let mut stack = secured_stack(&authority, &server, Some(nodes.ca_file()));
    let ca_file = authority.ca_file();
    let tls =
        |pair: &Pair| json!({"ca_file": ca_file, "cert_file": pair.cert, "key_file": pair.key});
    let known = spawn(&mut stack, "gw-1", &tls(&nodes.node("gw-1", 4_000)), false);
    let by_token = spawn(&mut stack, "gw-2", &json!({"ca_file": ca_file}), true);
    let strangers = Authority::new("strangers");
    spawn(
        &mut stack,
        "gw-3",
        &tls(&strangers.node("gw-3", 4_000)),
        false,
    );
    spawn(&mut stack, "gw-4", &tls(&nodes.node("gw-4", 2_002)), false);
    spawn(&mut stack, "gw-5", &tls(&nodes.node("gw-1", 4_000)), false);

    let key = stack.key("mtls");
    for envoy in [known, by_token] {
        let id = answered(&stack, envoy, &key);
        record(&stack, &id);
    }
    let refused = "refused this node's certificate (control_plane_tls.cert_file): ";
    for (name, why) in [
        (
            "gw-3",
            format!("{refused}it is signed by no authority that it trusts"),
        ),
        ("gw-4", format!("{refused}it has expired")),
        ("gw-5", "not for a node named `gw-5`".to_owned()),
    ] {
        wait_for_line(&stack, name, &why);
        assert!(!log(&stack, name).contains("PRIVATE"));
    }
    wait_for_line(&stack, "control-plane", "a client's certificate is refused");
    let listed = stack.turnpike(&["nodes", "list"]);
    for (name, expected) in [
        ("gw-1", true),
        ("gw-2", true),
        ("gw-3", false),
        ("gw-5", false),
    ] {
        assert_eq!(listed.contains(name), expected, "{name} in {listed}");
    }
}
