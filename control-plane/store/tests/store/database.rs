//! A database of its own for each test, and resources to put into it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use control_plane_core::key::{ENTROPY_BYTES, mint};
use control_plane_core::resource::{
    ClusterBuilder, Credential, CredentialPlace, CredentialSource, Dialect, KeySecret, Model,
    Provider, Rule, RuleSet, Target, Team, VirtualKey,
};
use control_plane_core::seal::Keyring;
use control_plane_store::{Actor, Options, PageRequest, Store};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};

pub(crate) struct TestDatabase {
    pub(crate) store: Store,
    /// A way past the API.
    pub(crate) sql: PgPool,
    url: String,
    name: String,
    server: String,
}

static COUNTER: AtomicU32 = AtomicU32::new(0);

impl TestDatabase {
    /// A migrated database whose defaults are published.
    pub(crate) async fn new() -> Self {
        let database = Self::empty().await;
        database.store.migrate().await.unwrap();
        database.store.publish_pending().await.unwrap();
        database
    }

    /// A database without a schema.
    pub(crate) async fn empty() -> Self {
        let server = std::env::var("TURNPIKE_TEST_DATABASE_URL").expect(
            "TURNPIKE_TEST_DATABASE_URL must name a Postgres server and a role that may create \
             databases, for example postgres://postgres@localhost/postgres; `cargo xtask test` sets it",
        );
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("turnpike_test_{}_{number}", std::process::id());
        let mut admin = PgConnection::connect(&server).await.unwrap();
        for statement in [
            format!("drop database if exists {name} with (force)"),
            format!("create database {name}"),
        ] {
            sqlx::raw_sql(AssertSqlSafe(statement))
                .execute(&mut admin)
                .await
                .unwrap();
        }
        let url = with_database(&server, &name);
        let sql = PgPoolOptions::new()
            .max_connections(2)
            .connect(&url)
            .await
            .unwrap();
        let store = connect(&url).await;
        Self {
            store,
            sql,
            url,
            name,
            server,
        }
    }

    /// Another store on the same database, as another replica has it.
    pub(crate) async fn replica(&self) -> Store {
        connect(&self.url).await
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn execute(&self, statement: &str) {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
            .execute(&self.sql)
            .await
            .unwrap();
    }

    pub(crate) async fn number(&self, query: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(query.to_owned()))
            .fetch_one(&self.sql)
            .await
            .unwrap()
    }

    /// Removes the database; a failed test leaves it to be looked at.
    pub(crate) async fn drop(self) {
        self.sql.close().await;
        let mut admin = PgConnection::connect(&self.server).await.unwrap();
        let statement = format!("drop database {} with (force)", self.name);
        sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(&mut admin)
            .await
            .unwrap();
    }
}

fn with_database(server: &str, name: &str) -> String {
    let (start, parameters) = match server.split_once('?') {
        Some((start, parameters)) => (start, format!("?{parameters}")),
        None => (server, String::new()),
    };
    let (scheme, rest) = start.split_once("://").unwrap();
    let host = rest.split('/').next().unwrap();
    let base = format!("{scheme}://{host}");
    let url = format!("{base}/{name}{parameters}");
    url.parse::<PgConnectOptions>().unwrap();
    url
}

/// A cluster that names the provider's endpoint, so that a test sees where it came from.
pub(crate) fn clusters() -> ClusterBuilder {
    Arc::new(
        |provider, endpoint| Ok(format!("{} {}", provider.id, endpoint.authority).into_bytes()),
    )
}

pub(crate) fn keyring(digits: &[char]) -> Keyring {
    let lines: Vec<String> = digits
        .iter()
        .map(|digit| digit.to_string().repeat(64))
        .collect();
    Keyring::parse(&lines.join("\n")).unwrap()
}

pub(crate) fn options(url: &str) -> Options {
    let mut options = Options::new(url.to_owned(), keyring(&['a']), clusters());
    options.max_connections = 6;
    options
}

async fn connect(url: &str) -> Store {
    Store::connect(options(url)).await.unwrap()
}

pub(crate) fn actor() -> Actor {
    Actor::new("admin-token")
}

pub(crate) fn first_page(size: i32) -> PageRequest {
    PageRequest {
        size,
        token: String::new(),
    }
}

pub(crate) fn team(id: &str) -> Team {
    Team {
        id: id.into(),
        display_name: String::new(),
        disabled: false,
        models: vec![],
    }
}

pub(crate) fn key(id: &str, team: &str) -> VirtualKey {
    VirtualKey {
        id: id.into(),
        team: team.into(),
        display_name: String::new(),
        disabled: false,
        models: vec![],
        expires_at_s: None,
    }
}

pub(crate) fn secret(seed: u8) -> KeySecret {
    mint(&[seed; ENTROPY_BYTES]).secret
}

pub(crate) fn provider(id: &str) -> Provider {
    Provider {
        id: id.into(),
        display_name: String::new(),
        dialect: Dialect::Openai,
        base_url: format!("https://{id}.example/v1"),
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

pub(crate) fn credential(id: &str, provider: &str, source: CredentialSource) -> Credential {
    Credential {
        id: id.into(),
        provider: provider.into(),
        team: None,
        virtual_key: None,
        weight: 1,
        source,
    }
}

pub(crate) fn model(id: &str, provider: &str) -> Model {
    Model {
        id: id.into(),
        targets: vec![Target {
            provider: provider.into(),
            upstream_model: String::new(),
            first_token_timeout_ms: 0,
        }],
        capabilities: vec![],
        efforts: vec![],
        context_window: 0,
        disabled: false,
    }
}

pub(crate) fn rule(name: &str, models: &[&str]) -> Rule {
    Rule {
        name: name.into(),
        priority: 0,
        disabled: false,
        efforts: vec![],
        attributes: BTreeMap::new(),
        match_model: String::new(),
        models: models.iter().map(|model| (*model).to_owned()).collect(),
        max_attempts: 0,
        context_length_models: Vec::new(),
        content_policy_models: Vec::new(),
        context_length_patterns: Vec::new(),
    }
}

pub(crate) fn rules(rules: Vec<Rule>) -> RuleSet {
    RuleSet { rules }
}
