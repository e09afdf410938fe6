//! Secrets: sealed, referred to, published, never shown.

use std::sync::{Arc, Mutex};

use control_plane_core::published::Kind;
use control_plane_core::resource::{Credential, CredentialSource};
use control_plane_core::secret::Secret;
use control_plane_store::{Error, Store};
use prost::Message as _;
use proto::config::v1 as config;
use sqlx::Row as _;

use crate::database::{TestDatabase, actor, credential, keyring, options, provider};

const CANARY: &str = "sk-test-canary-0123456789";

async fn sent(store: &Store, id: &str) -> config::Credential {
    let published = store.load_published().await.unwrap();
    let body = published.body(Kind::Credential, id).expect("published");
    config::Credential::decode(body.bytes()).unwrap()
}

fn sealed(id: &str) -> Credential {
    credential(id, "p", CredentialSource::Sealed)
}

fn canary() -> Secret {
    Secret::new(CANARY.into())
}

#[tokio::test]
async fn a_sealed_secret_reaches_nodes_and_lies_in_no_row() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store
        .create_provider(&actor(), provider("p"))
        .await
        .unwrap();
    let created = store
        .create_credential(&actor(), sealed("main"), Some(canary()))
        .await
        .unwrap();
    assert_eq!(sent(store, "main").await.secret, CANARY);

    let tables = sqlx::query("select tablename from pg_tables where schemaname = 'public'")
        .fetch_all(&database.sql)
        .await
        .unwrap();
    assert!(tables.len() > 15);
    for table in tables {
        let table: String = table.get(0);
        // Rows as text: bytes appear in hexadecimal.
        let hex: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
        let found = format!(
            "select count(*) from {table} t where t::text like '%{CANARY}%' or t::text like '%{hex}%'"
        );
        assert_eq!(database.number(&found).await, 0, "{table}");
    }
    let shown = format!(
        "{created:?} {:?} {store:?}",
        store.load_published().await.unwrap()
    );
    assert!(!shown.contains("canary"), "{shown}");
    database.drop().await;
}

#[tokio::test]
async fn an_empty_secret_keeps_the_one_before_and_a_new_one_replaces_it() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store
        .create_provider(&actor(), provider("p"))
        .await
        .unwrap();
    store
        .create_credential(&actor(), sealed("main"), Some(canary()))
        .await
        .unwrap();
    let mut heavier = sealed("main");
    heavier.weight = 5;
    store
        .update_credential(&actor(), heavier.clone(), None)
        .await
        .unwrap();
    let kept = sent(store, "main").await;
    assert_eq!((kept.secret.as_str(), kept.weight), (CANARY, 5));
    let rotated = Some(Secret::new(" sk-test-rotated \n".into()));
    store
        .update_credential(&actor(), heavier, rotated)
        .await
        .unwrap();
    assert_eq!(sent(store, "main").await.secret, "sk-test-rotated");
    database.drop().await;
}

#[tokio::test]
async fn a_secret_that_cannot_be_one_is_refused_and_not_repeated() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store
        .create_provider(&actor(), provider("p"))
        .await
        .unwrap();
    for text in [" ", "sk-test-two\nsk-test-lines"] {
        let secret = Some(Secret::new(text.into()));
        let error = store
            .create_credential(&actor(), sealed("x"), secret)
            .await
            .unwrap_err();
        assert!(matches!(&error, Error::Invalid(faults) if faults[0].field == "secret"));
        assert!(!format!("{error} {error:?}").contains("sk-test"), "{error}");
    }
    let none = store
        .create_credential(&actor(), sealed("x"), None)
        .await
        .unwrap_err();
    assert!(matches!(none, Error::Invalid(faults) if faults[0].field == "source"));
    database.drop().await;
}

#[tokio::test]
async fn references_are_read_where_they_point() {
    let database = TestDatabase::new().await;
    let secrets = tempfile::tempdir().unwrap();
    std::fs::write(secrets.path().join("openai"), "sk-test-file\n").unwrap();
    let variable = Arc::new(Mutex::new("sk-test-variable".to_owned()));
    let mut with_references = options(database.url());
    with_references.secrets_dir = Some(secrets.path().to_owned());
    let environment = Arc::clone(&variable);
    with_references.environment = Arc::new(move |name| {
        (name == "TURNPIKE_SECRET_ONE").then(|| environment.lock().unwrap().clone())
    });
    let store = Store::connect(with_references).await.unwrap();
    store
        .create_provider(&actor(), provider("p"))
        .await
        .unwrap();
    let file = credential("file", "p", CredentialSource::File("openai".into()));
    let env = CredentialSource::EnvironmentVariable("TURNPIKE_SECRET_ONE".into());
    store
        .create_credential(&actor(), file.clone(), None)
        .await
        .unwrap();
    store
        .create_credential(&actor(), credential("env", "p", env), None)
        .await
        .unwrap();
    assert_eq!(sent(&store, "file").await.secret, "sk-test-file");
    assert_eq!(sent(&store, "env").await.secret, "sk-test-variable");
    assert_eq!(store.credential("file").await.unwrap().resource, file);

    // What they point at changes: the next publish sends it.
    std::fs::write(secrets.path().join("openai"), "sk-test-rotated").unwrap();
    store.publish_pending().await.unwrap();
    assert_eq!(sent(&store, "file").await.secret, "sk-test-rotated");

    // It is gone: the last one stays with the nodes, and the status says why.
    std::fs::remove_file(secrets.path().join("openai")).unwrap();
    let told = store.publish_pending().await.unwrap().unpublished;
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("credential file: file: openai cannot be read"),
        "{told:?}"
    );
    assert_eq!(sent(&store, "file").await.secret, "sk-test-rotated");
    let absent = credential("absent", "p", CredentialSource::File("absent".into()));
    let error = store
        .create_credential(&actor(), absent, None)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Invalid(faults) if faults[0].field == "file"));
    database.drop().await;
}

#[tokio::test]
async fn master_keys_rotate_and_a_lost_one_stops_only_its_secrets() {
    let database = TestDatabase::new().await;
    database
        .store
        .create_provider(&actor(), provider("p"))
        .await
        .unwrap();
    database
        .store
        .create_credential(&actor(), sealed("old"), Some(canary()))
        .await
        .unwrap();
    let with_keys = |digits: &'static [char]| {
        let mut changed = options(database.url());
        changed.keyring = keyring(digits);
        async move { Store::connect(changed).await.unwrap() }
    };
    let rotated = with_keys(&['b', 'a']).await;
    assert_eq!(sent(&rotated, "old").await.secret, CANARY);
    rotated
        .create_credential(&actor(), sealed("new"), Some(canary()))
        .await
        .unwrap();

    let lost = with_keys(&['b']).await;
    let published = lost.load_published().await.unwrap();
    assert!(published.body(Kind::Credential, "old").is_none());
    assert!(published.body(Kind::Provider, "p").is_some());
    assert_eq!(sent(&lost, "new").await.secret, CANARY);
    let told = lost.publish_pending().await.unwrap().unpublished;
    assert!(
        told.iter()
            .any(|why| why.starts_with("credential old: secret: ")),
        "{told:?}"
    );
    // A new secret heals it.
    lost.update_credential(&actor(), sealed("old"), Some(canary()))
        .await
        .unwrap();
    assert_eq!(sent(&lost, "old").await.secret, CANARY);
    database.drop().await;
}

#[tokio::test]
async fn an_envelope_copied_to_another_credential_does_not_open() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store
        .create_provider(&actor(), provider("p"))
        .await
        .unwrap();
    store
        .create_credential(&actor(), sealed("a"), Some(canary()))
        .await
        .unwrap();
    store
        .create_credential(&actor(), sealed("b"), Some(Secret::new("sk-test-b".into())))
        .await
        .unwrap();
    database
        .execute("update credential set envelope = (select envelope from credential where credential_id = 'a')
                  where credential_id = 'b'")
        .await;
    let told = store.publish_pending().await.unwrap().unpublished;
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("belongs to something else"), "{told:?}");
    assert_eq!(sent(store, "b").await.secret, "sk-test-b");
    database.drop().await;
}
