use std::collections::HashMap;

use envoy_types::pb::{
    envoy::{config::core::v3 as core, service::discovery::v3 as discovery},
    google::{protobuf, rpc},
};
use prost::Message as _;

use super::*;

#[test]
fn envoy_reads_our_requests_and_we_read_envoys() {
    let ours = DeltaDiscoveryRequest {
        node: Some(Node {
            id: "node-1".to_owned(),
            cluster: "edge".to_owned(),
            user_agent_name: "turnpike".to_owned(),
            user_agent_version: "0.1.0".to_owned(),
        }),
        type_url: "type".to_owned(),
        resource_names_subscribe: vec!["*".to_owned(), "a".to_owned()],
        resource_names_unsubscribe: vec!["b".to_owned()],
        initial_resource_versions: BTreeMap::from([("default".to_owned(), "12/ab".to_owned())]),
        response_nonce: "7".to_owned(),
        error_detail: Some(Status {
            code: 3,
            message: "Model/m: bad".to_owned(),
            details: vec![Any {
                type_url: "detail".to_owned(),
                value: vec![1, 2],
            }],
        }),
    };
    let envoys = discovery::DeltaDiscoveryRequest {
        node: Some(core::Node {
            id: "node-1".to_owned(),
            cluster: "edge".to_owned(),
            user_agent_name: "turnpike".to_owned(),
            user_agent_version_type: Some(core::node::UserAgentVersionType::UserAgentVersion(
                "0.1.0".to_owned(),
            )),
            ..core::Node::default()
        }),
        type_url: "type".to_owned(),
        resource_names_subscribe: vec!["*".to_owned(), "a".to_owned()],
        resource_names_unsubscribe: vec!["b".to_owned()],
        initial_resource_versions: HashMap::from([("default".to_owned(), "12/ab".to_owned())]),
        response_nonce: "7".to_owned(),
        error_detail: Some(rpc::Status {
            code: 3,
            message: "Model/m: bad".to_owned(),
            details: vec![protobuf::Any {
                type_url: "detail".to_owned(),
                value: vec![1, 2],
            }],
        }),
        ..discovery::DeltaDiscoveryRequest::default()
    };
    let read = discovery::DeltaDiscoveryRequest::decode(ours.encode_to_vec().as_slice()).unwrap();
    assert_eq!(read, envoys);
    let read = DeltaDiscoveryRequest::decode(envoys.encode_to_vec().as_slice()).unwrap();
    assert_eq!(read, ours);
}

#[test]
fn envoy_reads_our_responses_and_we_read_envoys() {
    let ours = DeltaDiscoveryResponse {
        system_version_info: "delta 11..12/ab".to_owned(),
        resources: vec![WireResource {
            version: "12".to_owned(),
            resource: Some(Any {
                type_url: "type".to_owned(),
                value: vec![9; 300],
            }),
            name: "m".to_owned(),
        }],
        type_url: "type".to_owned(),
        nonce: "3".to_owned(),
        removed_resources: vec!["gone".to_owned()],
    };
    let envoys = discovery::DeltaDiscoveryResponse {
        system_version_info: "delta 11..12/ab".to_owned(),
        resources: vec![discovery::Resource {
            version: "12".to_owned(),
            resource: Some(protobuf::Any {
                type_url: "type".to_owned(),
                value: vec![9; 300],
            }),
            name: "m".to_owned(),
            ..discovery::Resource::default()
        }],
        type_url: "type".to_owned(),
        nonce: "3".to_owned(),
        removed_resources: vec!["gone".to_owned()],
        ..discovery::DeltaDiscoveryResponse::default()
    };
    let read = discovery::DeltaDiscoveryResponse::decode(ours.encode_to_vec().as_slice()).unwrap();
    assert_eq!(read, envoys);
    let read = DeltaDiscoveryResponse::decode(envoys.encode_to_vec().as_slice()).unwrap();
    assert_eq!(read, ours);
}

#[test]
fn fields_that_we_do_not_know_are_passed_over() {
    let envoys = discovery::DeltaDiscoveryResponse {
        nonce: "3".to_owned(),
        control_plane: Some(core::ControlPlane {
            identifier: "other".to_owned(),
        }),
        ..discovery::DeltaDiscoveryResponse::default()
    };
    let read = DeltaDiscoveryResponse::decode(envoys.encode_to_vec().as_slice()).unwrap();
    assert_eq!(
        read,
        DeltaDiscoveryResponse {
            nonce: "3".to_owned(),
            ..Default::default()
        }
    );
}

#[test]
fn debug_output_shows_no_body() {
    let any = Any {
        type_url: "type".to_owned(),
        value: b"sk-test-canary".to_vec(),
    };
    let response = DeltaDiscoveryResponse {
        resources: vec![WireResource {
            resource: Some(any),
            ..WireResource::default()
        }],
        ..DeltaDiscoveryResponse::default()
    };
    let printed = format!("{response:?}");
    assert!(printed.contains("value_bytes: 14"), "{printed}");
    assert!(
        !printed.contains("canary") && !printed.contains("115, 107"),
        "{printed}"
    );
}
