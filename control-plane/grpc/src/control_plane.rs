//! Everything behind one start and one set of routes.

use control_plane_store::{Error, Store};
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::AggregatedDiscoveryServiceServer;
use proto::admin::v1::config_server::ConfigServer;
use proto::admin::v1::credentials_server::CredentialsServer;
use proto::admin::v1::limits_server::LimitsServer;
use proto::admin::v1::models_server::ModelsServer;
use proto::admin::v1::price_books_server::PriceBooksServer;
use proto::admin::v1::providers_server::ProvidersServer;
use proto::admin::v1::rule_sets_server::RuleSetsServer;
use proto::admin::v1::settings_service_server::SettingsServiceServer;
use proto::admin::v1::teams_server::TeamsServer;
use proto::admin::v1::usage_server::UsageServer;
use proto::admin::v1::virtual_keys_server::VirtualKeysServer;
use proto::metering::v1::metering_server::MeteringServer;
use tonic::service::interceptor::InterceptedService;
use tonic::service::{Routes, RoutesBuilder};

use crate::admin::Admin;
use crate::ads::Ads;
use crate::auth::{BearerToken, RequireBearer};
use crate::feed::Feed;
use crate::fleet::Fleet;
use crate::leases::Leases;
use crate::metering::{Collector, Usage};
use crate::metrics::Metrics;
use crate::node_certificate::RequireNode;
use crate::shutdown::Shutdown;

// A batch of usage records, which the node cuts well below.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// What this deployment allows.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Whether there is a master key, without which no credential can be kept.
    pub credentials: bool,
}

/// The running control plane: its config in memory, its nodes, its services.
#[derive(Clone, Debug)]
pub struct ControlPlane {
    admin: Admin,
    ads: Ads,
    usage: Usage,
    metrics: Metrics,
}

impl ControlPlane {
    /// Loads the published config and starts following it; the schema must be there.
    ///
    /// # Errors
    /// When the store cannot be read now.
    pub async fn start(store: Store, policy: Policy, shutdown: Shutdown) -> Result<Self, Error> {
        let publication = store.publish_pending().await?;
        for reason in &publication.unpublished {
            tracing::warn!(%reason, "a stored change is not published");
        }
        let feed = Feed::start(&store, shutdown.clone()).await?;
        let fleet = Fleet::default();
        store.disconnect_own_nodes().await?;
        fleet.refresh(&store).await?;
        tokio::spawn(
            fleet
                .clone()
                .keep_stored(store.clone(), feed.clone(), shutdown.clone()),
        );
        let metrics = Metrics::new(store.clone(), fleet.clone(), feed.clone());
        Ok(Self {
            ads: Ads {
                feed: feed.clone(),
                fleet: fleet.clone(),
                metrics: metrics.clone(),
                shutdown: shutdown.clone(),
            },
            usage: Usage {
                store: store.clone(),
                collector: Collector::start(store.clone()),
                leases: Leases::start(store.clone(), feed.clone(), &metrics, shutdown.clone()),
                shutdown: shutdown.clone(),
            },
            admin: Admin {
                store,
                feed,
                fleet,
                policy,
                shutdown,
            },
            metrics,
        })
    }

    /// Tells other replicas that no node is connected here any more; to be called when the routes
    /// are not served any longer.
    ///
    /// # Errors
    /// When the store cannot be written now.
    pub async fn leave(&self) -> Result<(), Error> {
        self.admin.store.disconnect_own_nodes().await
    }

    /// What is counted here.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The newest published config version in memory.
    pub fn config_version(&self) -> u64 {
        self.admin.feed.current().version()
    }

    /// Every service behind its token: the admin's for the admin API, the nodes' for the rest. A
    /// node whose certificate the TLS layer has verified needs none.
    pub fn routes(
        &self,
        admin_token: BearerToken,
        node_token: Option<BearerToken>,
    ) -> RoutesBuilder {
        let mut routes = Routes::builder();
        macro_rules! admin {
            ($($server:ident),+ $(,)?) => {
                $(routes.add_service($server::with_interceptor(
                    self.admin.clone(),
                    RequireBearer(admin_token.clone()),
                ));)+
            };
        }
        admin!(
            TeamsServer,
            VirtualKeysServer,
            ProvidersServer,
            CredentialsServer,
            ModelsServer,
            RuleSetsServer,
            LimitsServer,
            PriceBooksServer,
            SettingsServiceServer,
            UsageServer,
            ConfigServer,
        );
        let node = RequireNode(node_token);
        routes.add_service(AggregatedDiscoveryServiceServer::with_interceptor(
            self.ads.clone(),
            node.clone(),
        ));
        routes.add_service(InterceptedService::new(
            MeteringServer::new(self.usage.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES),
            node,
        ));
        routes
    }
}
