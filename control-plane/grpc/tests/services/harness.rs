//! A control plane of its own for each test.

use std::sync::Arc;
use std::time::Duration;

use control_plane_core::seal::Keyring;
use control_plane_grpc::{BearerToken, ControlPlane, Metrics, Policy, provider_cluster, shutdown};
use control_plane_store::{Options, Store};
use proto::admin::v1::config_client::ConfigClient;
use proto::admin::v1::credentials_client::CredentialsClient;
use proto::admin::v1::limits_client::LimitsClient;
use proto::admin::v1::models_client::ModelsClient;
use proto::admin::v1::price_books_client::PriceBooksClient;
use proto::admin::v1::providers_client::ProvidersClient;
use proto::admin::v1::rule_sets_client::RuleSetsClient;
use proto::admin::v1::settings_service_client::SettingsServiceClient;
use proto::admin::v1::teams_client::TeamsClient;
use proto::admin::v1::usage_client::UsageClient;
use proto::admin::v1::virtual_keys_client::VirtualKeysClient;
use proto::admin::v1::{
    CreateCredentialRequest, CreateModelRequest, CreateProviderRequest, CreateTeamRequest,
    CreateVirtualKeyRequest, Credential, Model, Plaintext, Provider, Team, UpdateRuleSetRequest,
    VirtualKey, credential,
};
use proto::config::v1::{Dialect, Rule, Target};
use sqlx::Connection as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Status};

pub(crate) const ADMIN_TOKEN: &str = "test-admin-token-1";
pub(crate) const NODE_TOKEN: &str = "test-node-token-01";
pub(crate) const PROVIDER_SECRET: &str = "sk-test-provider-secret-1";

pub(crate) type Authenticated = InterceptedService<Channel, Bearer>;

#[derive(Clone)]
pub(crate) struct Bearer(MetadataValue<Ascii>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request
            .metadata_mut()
            .insert("authorization", self.0.clone());
        Ok(request)
    }
}

pub(crate) fn bearer(token: &str) -> Bearer {
    Bearer(format!("Bearer {token}").parse().unwrap())
}

/// A database that goes away with the test.
pub(crate) struct Database {
    server_url: String,
    name: String,
    pub(crate) secrets: tempfile::TempDir,
}

impl Database {
    pub(crate) async fn create() -> Self {
        let server_url = std::env::var("TURNPIKE_TEST_DATABASE_URL")
            .expect("TURNPIKE_TEST_DATABASE_URL must hold the URL of a Postgres superuser");
        let mut random = [0; 8];
        getrandom::fill(&mut random).unwrap();
        let name = format!("turnpike_test_{:016x}", u64::from_be_bytes(random));
        execute(&server_url, &format!("create database {name}")).await;
        let secrets = tempfile::tempdir().unwrap();
        Self {
            server_url,
            name,
            secrets,
        }
    }

    pub(crate) fn url(&self) -> String {
        let (base, options) = match self.server_url.split_once('?') {
            Some((base, options)) => (base, format!("?{options}")),
            None => (self.server_url.as_str(), String::new()),
        };
        let (scheme, rest) = base.split_once("://").unwrap();
        let server = rest.split('/').next().unwrap_or_default();
        format!("{scheme}://{server}/{}{options}", self.name)
    }
}

impl Database {
    /// Runs a statement past the control plane.
    pub(crate) async fn execute(&self, statement: &str) {
        execute(&self.url(), statement).await;
    }

    /// A connection of one's own.
    pub(crate) async fn connect(&self) -> sqlx::PgConnection {
        sqlx::PgConnection::connect(&self.url()).await.unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let url = self.server_url.clone();
        let statement = format!("drop database {} with (force)", self.name);
        let dropped = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(execute(&url, &statement));
        })
        .join();
        assert!(dropped.is_ok() || std::thread::panicking());
    }
}

async fn execute(url: &str, statement: &str) {
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement.to_owned()))
        .execute(&mut connection)
        .await
        .unwrap();
}

/// A control plane that is served on a loopback port.
pub(crate) struct Replica {
    pub(crate) channel: Channel,
    metrics: Metrics,
    stop: watch::Sender<bool>,
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// Starts one on a database that may be in use by another one already.
pub(crate) async fn replica(database: &Database, credentials: bool) -> Replica {
    replica_named("", database, credentials).await
}

/// One that is known again when it is started again.
pub(crate) async fn replica_named(name: &str, database: &Database, credentials: bool) -> Replica {
    let store = store_named(name, database).await;
    store.migrate().await.unwrap();
    let (stop, stopping) = shutdown();
    let policy = Policy { credentials };
    let control_plane = ControlPlane::start(store.clone(), policy, stopping.clone())
        .await
        .unwrap();
    let routes = control_plane.routes(
        BearerToken::new(ADMIN_TOKEN).unwrap(),
        Some(BearerToken::new(NODE_TOKEN).unwrap()),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut stopped = stopping;
    tokio::spawn(
        Server::builder()
            .layer(control_plane.metrics().rpc_layer())
            .add_routes(routes.routes())
            .serve_with_incoming_shutdown(TcpIncoming::from(listener), async move {
                stopped.requested().await;
            }),
    );
    let channel = Endpoint::from_shared(format!("http://{address}"))
        .unwrap()
        .connect()
        .await
        .unwrap();
    Replica {
        channel,
        metrics: control_plane.metrics().clone(),
        stop,
    }
}

/// What a replica of this name has of the database.
pub(crate) async fn store_named(name: &str, database: &Database) -> Store {
    let keyring = Keyring::parse(&"a1".repeat(32)).unwrap();
    let options = Options {
        max_connections: 6,
        replica: name.to_owned(),
        secrets_dir: Some(database.secrets.path().to_owned()),
        environment: Arc::new(|name| {
            (name == "TURNPIKE_SECRET_SET").then(|| PROVIDER_SECRET.to_owned())
        }),
        ..Options::new(database.url(), keyring, Arc::new(provider_cluster))
    };
    Store::connect(options).await.unwrap()
}

macro_rules! clients {
    ($($method:ident: $client:ident),+ $(,)?) => {
        $(pub(crate) fn $method(&self) -> $client<Authenticated> {
            $client::with_interceptor(self.channel.clone(), bearer(ADMIN_TOKEN))
        })+
    };
}

impl Replica {
    /// The value of a metric, without the beginning that all of them have.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let text = self.metrics.render().unwrap();
        let start = format!("turnpike_control_plane_{series} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        let value = line.unwrap_or_else(|| panic!("no {series} in {text}"));
        value.parse().unwrap()
    }

    clients! {
        teams: TeamsClient,
        virtual_keys: VirtualKeysClient,
        providers: ProvidersClient,
        credentials: CredentialsClient,
        models: ModelsClient,
        rule_sets: RuleSetsClient,
        limits: LimitsClient,
        price_books: PriceBooksClient,
        settings: SettingsServiceClient,
        usage: UsageClient,
        config: ConfigClient,
    }

    pub(crate) async fn create_team(&self, team_id: &str) -> u64 {
        let request = CreateTeamRequest {
            team_id: team_id.into(),
            team: Some(Team::default()),
        };
        let team = self.teams().create_team(request).await.unwrap();
        team.into_inner().config_version
    }

    /// Answers with the version and the plaintext.
    pub(crate) async fn create_key(&self, key_id: &str, team_id: &str) -> (u64, String) {
        let request = CreateVirtualKeyRequest {
            virtual_key_id: key_id.into(),
            virtual_key: Some(VirtualKey {
                team: format!("teams/{team_id}"),
                ..VirtualKey::default()
            }),
            import_secret: String::new(),
        };
        let created = self.virtual_keys().create_virtual_key(request).await;
        let created = created.unwrap().into_inner();
        (created.virtual_key.unwrap().config_version, created.secret)
    }

    pub(crate) async fn create_provider(&self, provider_id: &str) -> u64 {
        let request = CreateProviderRequest {
            provider_id: provider_id.into(),
            provider: Some(Provider {
                dialect: Dialect::Openai.into(),
                base_url: "http://127.0.0.1:9700/v1".into(),
                ..Provider::default()
            }),
        };
        let provider = self.providers().create_provider(request).await.unwrap();
        provider.into_inner().config_version
    }

    pub(crate) async fn create_credential(&self, credential_id: &str, provider_id: &str) -> u64 {
        let request = CreateCredentialRequest {
            credential_id: credential_id.into(),
            credential: Some(Credential {
                provider: format!("providers/{provider_id}"),
                source: Some(credential::Source::Secret(Plaintext {
                    value: PROVIDER_SECRET.into(),
                })),
                ..Credential::default()
            }),
        };
        let created = self.credentials().create_credential(request).await;
        created.unwrap().into_inner().config_version
    }

    pub(crate) async fn create_model(&self, model_id: &str, provider_id: &str) -> u64 {
        let request = CreateModelRequest {
            model_id: model_id.into(),
            model: Some(Model {
                targets: vec![Target {
                    provider: provider_id.into(),
                    upstream_model: "upstream-1".into(),
                    first_token_timeout_ms: 0,
                }],
                ..Model::default()
            }),
        };
        let model = self.models().create_model(request).await.unwrap();
        model.into_inner().config_version
    }

    /// One catch-all rule.
    pub(crate) async fn route_all_to(&self, model_id: &str) -> u64 {
        let request = UpdateRuleSetRequest {
            rule_set: Some(proto::admin::v1::RuleSet {
                rules: vec![Rule {
                    name: "default".into(),
                    models: vec![model_id.into()],
                    ..Rule::default()
                }],
                ..proto::admin::v1::RuleSet::default()
            }),
        };
        let rules = self.rule_sets().update_rule_set(request).await.unwrap();
        rules.into_inner().config_version
    }

    /// A team, a key, a provider with its credential, a model, a rule; answers with the version,
    /// which nodes that connect from now on are sent first.
    pub(crate) async fn seed(&self) -> u64 {
        self.create_team("blue").await;
        self.create_key("app", "blue").await;
        self.create_provider("acme").await;
        self.create_credential("acme-main", "acme").await;
        self.create_model("large", "acme").await;
        let version = self.route_all_to("large").await;
        crate::wait::wait(self, version, 10).await;
        version
    }
}

/// Fails the test when something that must come soon does not.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(10), future)
        .await
        .expect("nothing came within 10 s")
}
