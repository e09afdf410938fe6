//! The bare Envoy: the bootstrap and the cluster that the module's Envoy runs with, and everything
//! of ours taken out. So the two differ by the module and by nothing else.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const MANAGER: &str = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
const ROUTE: &str = "/route_config/virtual_hosts/0/routes/0/route";
const PROTOCOL_OPTIONS: &str =
    "/typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// Where a bare Envoy listens and logs.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) gateway_port: u16,
    pub(super) admin_port: u16,
    pub(super) access_log: &'a Path,
}

/// The bootstrap, from that of an Envoy with the module and what its admin interface says of its
/// clusters (`/config_dump?resource=dynamic_active_clusters`).
pub(super) fn bootstrap(ours: &str, clusters: &str, place: &Place<'_>) -> Result<String> {
    let mut config: Value = serde_norway::from_str(ours)?;
    let cluster = bare_cluster(clusters)?;
    let name = cluster.get("name").cloned().context("a cluster's name")?;
    let root = config.as_object_mut().context("a bootstrap")?;
    for ours in ["bootstrap_extensions", "dynamic_resources"] {
        ensure!(root.remove(ours).is_some(), "the bootstrap has no {ours}");
    }
    *at(&mut config, "/static_resources/clusters")? = json!([cluster]);
    set_port(&mut config, "/admin", place.admin_port)?;
    set_port(
        &mut config,
        "/static_resources/listeners/0",
        place.gateway_port,
    )?;

    let manager = at(&mut config, MANAGER)?;
    *at(manager, "/access_log/0/typed_config/path")? = json!(place.access_log);
    without_ours(at(manager, "/http_filters")?)?;
    let route = at(manager, ROUTE)?.as_object_mut().context("a route")?;
    let specifier = route.remove("inline_cluster_specifier_plugin");
    ensure!(specifier.is_some(), "the route asks no specifier");
    route.insert("cluster".to_owned(), name);

    let text = serde_norway::to_string(&config)?;
    for ours in ["dynamic_module", "libturnpike"] {
        ensure!(!text.contains(ours), "{ours} is left in the bare bootstrap");
    }
    Ok(text)
}

/// The one provider's cluster, without the upstream filter.
fn bare_cluster(clusters: &str) -> Result<Value> {
    let dump: Value = serde_json::from_str(clusters).context("Envoy's config dump")?;
    let found = dump.pointer("/configs").and_then(Value::as_array);
    let found = found.context("Envoy's config dump has no clusters")?;
    ensure!(found.len() == 1, "{} clusters, not one", found.len());
    let cluster = dump.pointer("/configs/0/cluster");
    let mut cluster = cluster.cloned().context("a cluster in the config dump")?;
    let members = cluster.as_object_mut().context("a cluster")?;
    // What it is stands in the place that it is put in.
    members.remove("@type");
    let options = at(&mut cluster, PROTOCOL_OPTIONS)?;
    without_ours(at(options, "/http_filters")?)?;
    Ok(cluster)
}

/// Takes the filters out that the module runs.
fn without_ours(filters: &mut Value) -> Result<()> {
    let filters = filters.as_array_mut().context("HTTP filters")?;
    let before = filters.len();
    filters.retain(|filter| {
        let kind = filter
            .pointer("/typed_config/@type")
            .and_then(Value::as_str);
        !kind.is_some_and(|kind| kind.ends_with("DynamicModuleFilter"))
    });
    ensure!(filters.len() + 1 == before, "no filter of ours to take out");
    Ok(())
}

fn set_port(config: &mut Value, owner: &str, port: u16) -> Result<()> {
    let place = format!("{owner}/address/socket_address/port_value");
    *at(config, &place)? = json!(port);
    Ok(())
}

fn at<'a>(config: &'a mut Value, pointer: &str) -> Result<&'a mut Value> {
    config
        .pointer_mut(pointer)
        .with_context(|| format!("no {pointer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTERS: &str = r#"{"configs": [{"cluster": {
        "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
        "name": "turnpike-provider-load",
        "typed_extension_protocol_options": {
          "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {"http_filters": [
            {"name": "turnpike-upstream",
             "typed_config": {"@type": "type.googleapis.com/x.DynamicModuleFilter"}},
            {"name": "codec", "typed_config": {"@type": "type.googleapis.com/x.UpstreamCodec"}}
        ]}}}}]}"#;

    #[test]
    fn nothing_of_ours_is_left_of_the_shipped_bootstrap() {
        let path = crate::layout::root().join("envoy/bootstrap.yaml");
        let shipped = std::fs::read_to_string(path).expect("shipped");
        let place = Place {
            gateway_port: 18080,
            admin_port: 19901,
            access_log: Path::new("/s/access.log"),
        };
        let text = bootstrap(&shipped, CLUSTERS, &place).expect("made");
        let config: Value = serde_norway::from_str(&text).expect("YAML");
        let clusters = config.pointer("/static_resources/clusters").expect("some");
        assert_eq!(clusters.as_array().map(Vec::len), Some(1));
        let route = config.pointer(&format!("{MANAGER}{ROUTE}/cluster"));
        assert_eq!(route, Some(&json!("turnpike-provider-load")));
        let filters = config.pointer(&format!("{MANAGER}/http_filters"));
        assert_eq!(filters.and_then(Value::as_array).map(Vec::len), Some(1));
    }

    #[test]
    fn a_bootstrap_that_is_bare_already_is_refused() {
        let place = Place {
            gateway_port: 1,
            admin_port: 2,
            access_log: Path::new("/s/access.log"),
        };
        let error = bootstrap("{static_resources: {}}", CLUSTERS, &place).expect_err("refused");
        assert!(
            error.to_string().contains("bootstrap_extensions"),
            "{error}"
        );
    }
}
