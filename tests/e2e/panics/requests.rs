//! A panic in a hook that a request reaches: the client gets a 500 or a cut, and the same Envoy
//! serves the next request.

use std::time::{Duration, Instant};

use filter_envoy_abi::request_faults;
use serde_json::{Value, json};
use tests::{
    http::{Answer, Request},
    wait,
};
use xtask::stack::Variation;

use super::{Running, START_DEADLINE_MS, chat_body, show, stack_of_faults};

/// No client may be left waiting longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// A provider at a cluster of the bootstrap's, and a model there.
const CONFIG: &str = "\
kind: Provider
id: reached
spec:
  baseUrl: http://127.0.0.1/v1
  credentialPlace: none
  existingCluster: reached
---
kind: Model
id: reached
spec:
  targets:
  - provider: reached
    upstreamModel: reached
";
/// More than the kernel holds for a client that does not read.
const LONG_TEXT_BYTES: usize = 8 << 20;

/// What a panic costs the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cost {
    /// A 500 in the API's own shape.
    Failed,
    /// A stream that began well and broke off.
    Cut,
    /// Nothing: the hook comes after the answer.
    Nothing,
}

fn cost(hook: &str) -> Cost {
    match hook {
        "downstream.response_body"
        | "downstream.response_trailers"
        | "downstream.local_reply"
        | "downstream.above_watermark"
        | "downstream.below_watermark"
        | "upstream.response_trailers" => Cost::Cut,
        "downstream.stream_complete" | "downstream.destroy" | "upstream.destroy" => Cost::Nothing,
        _ => Cost::Failed,
    }
}

/// Trailers in both directions, which Envoy drops unless told otherwise, and little held for slow
/// readers.
fn let_every_hook_be_reached(config: &mut Value, provider_port: u16) {
    let mut put = |pointer: &str, key: &str, value: Value| {
        let place = config.pointer_mut(pointer).and_then(Value::as_object_mut);
        place.expect(pointer).insert(key.to_owned(), value);
    };
    let trailers = json!({"enable_trailers": true});
    let listener = "/static_resources/listeners/0";
    put(listener, "per_connection_buffer_limit_bytes", json!(32_768));
    let manager = format!("{listener}/filter_chains/0/filters/0/typed_config");
    put(&manager, "http_protocol_options", trailers.clone());

    let clusters = config.pointer_mut("/static_resources/clusters");
    let clusters = clusters.and_then(Value::as_array_mut).expect("clusters");
    let mut cluster = clusters.first().expect("the stop cluster").clone();
    let mut set = |pointer: &str, value: Value| {
        *cluster.pointer_mut(pointer).expect(pointer) = value;
    };
    set("/name", json!("reached"));
    set("/load_assignment/cluster_name", json!("reached"));
    set(
        "/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address",
        json!({"socket_address": {"address": "127.0.0.1", "port_value": provider_port}}),
    );
    let options =
        "/typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    set(
        &format!("{options}/explicit_http_config/http_protocol_options"),
        trailers,
    );
    set(
        &format!("{options}/http_filters/0/typed_config/filter_config/value"),
        json!(r#"{"provider": "reached"}"#),
    );
    clusters.push(cluster);
}

/// Whether only a slow reader of a long answer comes to the hook.
fn needs_slow_reader(hook: &str) -> bool {
    matches!(
        hook,
        "downstream.above_watermark" | "downstream.below_watermark"
    )
}

/// A request that comes to the hook, and reads its answer slowly if need be.
fn request(hook: &str, key: &str) -> Request {
    let script = match hook {
        // A local reply needs a provider that breaks off.
        "downstream.local_reply" => json!({"cut_after_chunks": 2, "chunk_delay_ms": 5}),
        "downstream.response_trailers" | "upstream.response_trailers" => {
            json!({"trailers": {"x-checksum": "1"}})
        }
        _ if needs_slow_reader(hook) => {
            let line = "0123456789abcde ";
            let times = LONG_TEXT_BYTES / line.len();
            json!({"text": line, "text_times": times, "chunks": 100})
        }
        _ => json!({}),
    };
    let request = Request::chat(key, &chat_body("reached")).script(&script);
    match hook {
        "downstream.request_trailers" | "upstream.request_trailers" => {
            request.trailer("x-checksum", "1")
        }
        _ if needs_slow_reader(hook) => request.receive_buffer(64 * 1024),
        _ => request,
    }
}

/// Sends a request and takes its answer, if there is one, the way the hook needs it.
fn ask(envoy: &Running, request: &Request, hook: &str) -> Option<Answer> {
    let port = envoy.0.gateway_port;
    let (panics, paused) = (envoy.panics().len(), paused_reading(envoy));
    let mut open = request.open(port).expect("a connection");
    if needs_slow_reader(hook) {
        open.read_until(|bytes| bytes.len() > 1_000)
            .expect("a first event");
        // Reads on when Envoy has had to stop the provider, or the panic is already there.
        wait::until(PATIENCE, "a provider that is held up", || {
            let held_up = paused_reading(envoy) > paused || envoy.panics().len() > panics;
            held_up.then_some(())
        });
    }
    open.finish().ok()
}

/// How often Envoy has stopped reading from the provider for the sake of a slow client.
fn paused_reading(envoy: &Running) -> u64 {
    let path = "/stats?filter=cluster.reached.upstream_flow_control_paused_reading_total";
    let answer = xtask::http::get(envoy.0.admin_port, path).expect("the admin endpoint answers");
    let value = answer.body.trim().rsplit(' ').next().map(str::to_owned);
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

fn outcome(answer: Option<&Answer>) -> (String, Option<Cost>) {
    let Some(answer) = answer else {
        return ("a cut before the head".to_owned(), Some(Cost::Cut));
    };
    if !answer.complete {
        return (format!("{} and a cut", answer.status), Some(Cost::Cut));
    }
    if answer.status == 200 {
        return ("200, whole".to_owned(), Some(Cost::Nothing));
    }
    let shown = format!("{} {:?}", answer.status, answer.text());
    if answer.status != 500 || answer.body.is_empty() {
        return (shown, None);
    }
    let json = answer.json();
    let text = |field: &str| {
        json.pointer(field)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let failed = text("/error/type").as_deref() == Some("server_error")
        && text("/error/message").is_some_and(|message| !message.is_empty());
    (shown, failed.then_some(Cost::Failed))
}

/// Makes one request panic in `hook`; what its client got, and whether that is what it may cost.
fn panic_in(hook: &str, envoy: &Running, key: &str) -> (String, bool) {
    let before = envoy.panics().len();
    let request = request(hook, key).header("x-turnpike-test-fault", hook);
    let asked = Instant::now();
    let answer = ask(envoy, &request, hook);
    let took = asked.elapsed();
    assert!(took < PATIENCE, "{hook} leaves the client waiting");
    let panics = wait::until(PATIENCE, &format!("a panic in {hook}"), || {
        let panics = envoy.panics();
        (panics.len() > before).then_some(panics)
    });
    let new: Vec<&String> = panics.iter().skip(before).collect();
    assert!(new.iter().all(|name| *name == hook), "{hook}: {new:?}");
    let next = Request::chat(key, &chat_body("reached"))
        .send(envoy.0.gateway_port)
        .expect("an answer");
    assert_eq!(next.status, 200, "after {hook}: {}", next.text());
    assert!(next.complete, "after {hook}");
    let (shown, got) = outcome(answer.as_ref());
    let line = format!("{hook}: {shown}, after {} ms", took.as_millis());
    (line, got == Some(cost(hook)))
}

/// Without a panic, trailers cost nothing and arrive.
fn trailers_pass(envoy: &Running, key: &str) {
    let request = request("upstream.response_trailers", key).trailer("x-checksum", "1");
    let answer = request.send(envoy.0.gateway_port).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.complete, "{}", answer.text());
    assert_eq!(answer.trailers, [("x-checksum".to_owned(), "1".to_owned())]);
}

#[test]
fn a_panic_in_a_hook_costs_one_request_and_not_the_process() {
    let stack = stack_of_faults();
    stack.apply(CONFIG);
    let key = stack.key("panics");
    let provider_port = stack.provider.port;
    let edit = |config: &mut Value| let_every_hook_be_reached(config, provider_port);
    let variation = Variation {
        bootstrap: Some(&edit),
        ..Variation::default()
    };
    let mut envoy = Running::spawn(&stack, "envoy-0", START_DEADLINE_MS, &variation);
    envoy.wait_ready();
    stack.turnpike(&["wait"]);
    trailers_pass(&envoy, &key);

    let seen: Vec<(String, bool)> = request_faults()
        .map(|hook| panic_in(hook, &envoy, &key))
        .collect();
    let lines: Vec<String> = seen.iter().map(|(line, _)| line.clone()).collect();
    show("a panic in a hook, and what its client got", &lines);
    let wrong: Vec<String> = seen
        .into_iter()
        .filter_map(|(line, right)| (!right).then_some(line))
        .collect();
    assert!(wrong.is_empty(), "not what it may cost: {wrong:#?}");
    for served in stack.served() {
        stack.record(&served.request_id);
    }
    assert!(envoy.0.process.alive(), "the same process serves");
}
