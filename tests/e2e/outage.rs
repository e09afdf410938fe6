//! With the control plane away, known keys work, Envoy starts from its own disk, and usage waits.

use std::time::Duration;

use serde_json::json;
use tests::{
    http::Request,
    stack::{Options, Stack},
};
use xtask::{
    process::Ask,
    stack::{ControlPlane, ControlPlaneOptions},
};

#[test]
fn without_a_control_plane_known_keys_work_and_no_usage_is_lost() {
    let options = Options::default();
    let mut stack = Stack::start(&options);
    let key = stack.key("outage");
    let body = json!({"model": "small", "messages": [{"role": "user", "content": "Hello"}]});
    let ask = |port: u16| Request::chat(&key, &body).send(port).expect("an answer");

    stack
        .control_plane
        .process
        .stop(Ask::Kill, Duration::from_secs(5));
    let mut ids = Vec::new();
    let answer = ask(stack.port());
    assert_eq!(answer.status, 200, "{}", answer.text());
    ids.extend(answer.header("x-request-id").map(str::to_owned));

    // A new process of the same node has nothing but its disk.
    let mut first = stack.envoys.remove(0);
    first.process.stop(Ask::Kill, Duration::from_secs(5));
    let again = stack
        .start_envoy("envoy-0", &options)
        .expect("it starts from its snapshot");
    let answer = ask(again.gateway_port);
    assert_eq!(answer.status, 200, "{}", answer.text());
    ids.extend(answer.header("x-request-id").map(str::to_owned));
    let unknown = Request::chat("sk-test-unknown-key", &body).send(again.gateway_port);
    assert_eq!(
        unknown.expect("an answer").status,
        503,
        "not known is not unknown"
    );
    stack.envoys.push(again);

    let access = &stack.control_plane.access;
    stack.control_plane = ControlPlane::start(
        &stack.programs,
        &stack.state,
        &ControlPlaneOptions {
            name: "control-plane".to_owned(),
            database_url: stack.database_url.clone(),
            grpc_port: access.grpc_port,
            http_port: stack.control_plane.http_port,
            env: Vec::new(),
        },
    )
    .expect("the control plane comes back");
    assert_eq!(ids.len(), 2);
    for id in &ids {
        stack.record_within(Duration::from_secs(40), id);
    }
}
