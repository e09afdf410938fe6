//! Resources: created, read, listed, replaced, deleted.

use control_plane_core::resource::{Price, PriceBook, Rates, Settings};
use control_plane_core::seal::Keyring;
use control_plane_store::{Error, Options, PageRequest, Store};

use crate::database::{
    TestDatabase, actor, clusters, credential, first_page, key, model, provider, rule, rules,
    secret, team,
};
use control_plane_core::resource::CredentialSource;

fn fields(error: Error) -> Vec<String> {
    match error {
        Error::Invalid(faults) => faults.into_iter().map(|fault| fault.field).collect(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_resource_reads_back_as_it_was_written() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let mut written = team("a");
    written.display_name = "Ärzte ohne Grenzen".into();
    written.models = vec!["acme/*".into(), "large".into()];
    let created = store.create_team(&actor(), written.clone()).await.unwrap();
    assert_eq!(created.resource, written);
    assert_eq!(store.team("a").await.unwrap(), created);

    let mut held = key("k", "a");
    held.expires_at_s = Some(1_900_000_000);
    store
        .create_virtual_key(&actor(), held.clone(), secret(1))
        .await
        .unwrap();
    let read = store.virtual_key("k").await.unwrap().resource;
    assert_eq!((read.key, read.secret_hint), (held, secret(1).hint));

    store
        .create_provider(&actor(), provider("p"))
        .await
        .unwrap();
    assert_eq!(store.provider("p").await.unwrap().resource, provider("p"));
    store
        .create_provider(&actor(), provider("q"))
        .await
        .unwrap();
    let mut two = model("acme/large", "p");
    two.targets.extend(model("x", "q").targets);
    two.context_window = 200_000;
    store.create_model(&actor(), two.clone()).await.unwrap();
    assert_eq!(store.model("acme/large").await.unwrap().resource, two);

    let set = rules(vec![rule("all", &["acme/large"])]);
    store.update_rule_set(&actor(), set.clone()).await.unwrap();
    assert_eq!(store.rule_set().await.unwrap().resource, set);
    let settings = Settings {
        max_stale_s: 60,
        ..Settings::default()
    };
    store
        .update_settings(&actor(), settings.clone())
        .await
        .unwrap();
    assert_eq!(store.settings().await.unwrap().resource, settings);
    database.drop().await;
}

#[tokio::test]
async fn ids_are_unique_and_unknown_ones_are_not_found() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store.create_team(&actor(), team("a")).await.unwrap();
    let twice = store.create_team(&actor(), team("a")).await.unwrap_err();
    assert!(matches!(twice, Error::AlreadyExists(name) if name == "teams/a"));
    for error in [
        store.team("ghost").await.unwrap_err(),
        store
            .update_team(&actor(), team("ghost"))
            .await
            .unwrap_err(),
        store.delete_team(&actor(), "ghost").await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::NotFound(name) if name == "teams/ghost"));
    }
    let orphan = store
        .create_virtual_key(&actor(), key("k", "ghost"), secret(1))
        .await;
    assert_eq!(fields(orphan.unwrap_err()), ["team"]);
    assert_eq!(fields(store.team("a\0b").await.unwrap_err()), ["request"]);
    database.drop().await;
}

#[tokio::test]
async fn a_secret_opens_one_key_only() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store.create_team(&actor(), team("a")).await.unwrap();
    store
        .create_virtual_key(&actor(), key("k1", "a"), secret(1))
        .await
        .unwrap();
    let taken = store
        .create_virtual_key(&actor(), key("k2", "a"), secret(1))
        .await;
    assert_eq!(fields(taken.unwrap_err()), ["import_secret"]);
    assert!(matches!(
        store.virtual_key("k2").await,
        Err(Error::NotFound(_))
    ));
    database.drop().await;
}

#[tokio::test]
async fn what_is_in_use_stays_and_its_user_is_named() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store.create_team(&actor(), team("a")).await.unwrap();
    store
        .create_virtual_key(&actor(), key("k", "a"), secret(1))
        .await
        .unwrap();
    store
        .create_provider(&actor(), provider("p"))
        .await
        .unwrap();
    store.create_model(&actor(), model("m", "p")).await.unwrap();
    store
        .update_rule_set(&actor(), rules(vec![rule("all", &["m"])]))
        .await
        .unwrap();
    for (deletion, user) in [
        (store.delete_team(&actor(), "a").await, "virtualKeys/k"),
        (store.delete_provider(&actor(), "p").await, "models/m"),
        (store.delete_model(&actor(), "m").await, "rule all"),
    ] {
        assert!(
            matches!(deletion, Err(Error::InUse { by, .. }) if by == user),
            "{user}"
        );
    }
    store
        .update_rule_set(&actor(), rules(vec![]))
        .await
        .unwrap();
    store.delete_model(&actor(), "m").await.unwrap();
    store.delete_provider(&actor(), "p").await.unwrap();
    store.delete_virtual_key(&actor(), "k").await.unwrap();
    store.delete_team(&actor(), "a").await.unwrap();
    database.drop().await;
}

#[tokio::test]
async fn what_is_fixed_at_creation_does_not_change() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    for id in ["a", "b"] {
        store.create_team(&actor(), team(id)).await.unwrap();
        store.create_provider(&actor(), provider(id)).await.unwrap();
    }
    store
        .create_virtual_key(&actor(), key("k", "a"), secret(1))
        .await
        .unwrap();
    let moved = store.update_virtual_key(&actor(), key("k", "b")).await;
    assert_eq!(fields(moved.unwrap_err()), ["team"]);
    let mut renamed = key("k", "");
    renamed.display_name = "new".into();
    let kept = store
        .update_virtual_key(&actor(), renamed)
        .await
        .unwrap()
        .resource;
    assert_eq!(
        (kept.key.team.as_str(), kept.key.display_name.as_str()),
        ("a", "new")
    );
    assert_eq!(kept.secret_hint, secret(1).hint);

    let held = credential("c", "a", CredentialSource::Sealed);
    let text = control_plane_core::secret::Secret::new("sk-test-1".into());
    store
        .create_credential(&actor(), held.clone(), Some(text))
        .await
        .unwrap();
    let mut moved = held;
    moved.provider = "b".into();
    let moved = store.update_credential(&actor(), moved, None).await;
    assert_eq!(fields(moved.unwrap_err()), ["provider"]);
    database.drop().await;
}

#[tokio::test]
async fn pages_tell_every_resource_once_while_others_come_and_go() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    for number in 0..7 {
        store
            .create_team(&actor(), team(&format!("t{number}")))
            .await
            .unwrap();
    }
    let mut seen = Vec::new();
    let mut request = first_page(3);
    loop {
        let page = store.teams(&request).await.unwrap();
        seen.extend(page.items.into_iter().map(|team| team.resource.id));
        if page.next_page_token.is_empty() {
            break;
        }
        if seen.len() == 3 {
            store.delete_team(&actor(), "t2").await.unwrap();
            store
                .create_team(&actor(), team("a-late-one"))
                .await
                .unwrap();
        }
        request = PageRequest {
            size: 3,
            token: page.next_page_token,
        };
    }
    assert_eq!(seen, ["t0", "t1", "t2", "t3", "t4", "t5", "t6"]);
    database.drop().await;
}

#[tokio::test]
async fn lists_are_filtered_by_their_parent() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    for (team_id, key_id, seed) in [("a", "k1", 1), ("b", "k2", 2)] {
        store.create_team(&actor(), team(team_id)).await.unwrap();
        store
            .create_virtual_key(&actor(), key(key_id, team_id), secret(seed))
            .await
            .unwrap();
    }
    let of_b = store.virtual_keys(Some("b"), &first_page(0)).await.unwrap();
    let ids: Vec<_> = of_b
        .items
        .iter()
        .map(|key| key.resource.key.id.as_str())
        .collect();
    assert_eq!(ids, ["k2"]);
    assert_eq!(
        store
            .virtual_keys(None, &first_page(0))
            .await
            .unwrap()
            .items
            .len(),
        2
    );
    assert_eq!(of_b.items[0], store.virtual_key("k2").await.unwrap());
    database.drop().await;
}

#[tokio::test]
async fn every_version_of_the_price_book_is_kept() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    assert_eq!(
        store.price_book().await.unwrap().resource,
        PriceBook::default()
    );
    let price = |input| Price {
        provider: "p".into(),
        upstream_model: "m".into(),
        rates: Rates {
            input_pusd: Some(input),
            ..Rates::default()
        },
        ..Price::default()
    };
    for (version, input) in [(1, 100), (2, 200)] {
        let book = store
            .update_price_book(&actor(), vec![price(input)])
            .await
            .unwrap();
        assert_eq!(book.resource.version, version);
        assert!(book.config_version > 0);
    }
    assert_eq!(
        store.price_book_version(1).await.unwrap().prices,
        [price(100)]
    );
    assert_eq!(
        store.price_book().await.unwrap().resource.prices,
        [price(200)]
    );
    assert!(matches!(
        store.price_book_version(3).await,
        Err(Error::NotFound(_))
    ));
    database.drop().await;
}

#[tokio::test]
async fn a_database_that_is_away_is_said_to_be_unavailable_in_time() {
    let ring = || Keyring::parse(&"a".repeat(64)).unwrap();
    let url = "postgres://nobody:sk-test-password@127.0.0.1:1/none";
    let started = std::time::Instant::now();
    let error = Store::connect(Options::new(url.into(), ring(), clusters()))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    assert!(started.elapsed().as_secs() < 30);
    for url in [
        "sqlite://file.db",
        "not a url",
        "postgres://user:sk-test-password@[half",
    ] {
        let options = Options::new(url.into(), ring(), clusters());
        let error = Store::connect(options).await.unwrap_err();
        assert!(matches!(error, Error::Options(_)), "{error}");
        assert!(!format!("{error} {error:?}").contains("sk-test-password"));
    }
}
