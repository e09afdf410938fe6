//! Nouns that the control plane keeps: what is sent, and what is printed.

use std::fs;

use proto::admin::v1 as pb;
use proto::admin::v1::credential::Source;
use proto::config::v1 as config;

use super::fake::Fake;
use super::{Run, turnpike};

fn lines(run: &Run) -> Vec<&str> {
    run.out.lines().collect()
}

#[tokio::test]
async fn a_team_is_created_changed_listed_and_deleted() {
    let fake = Fake::start().await;
    let create = [
        "teams",
        "create",
        "acme",
        "--display-name",
        "Acme",
        "--models",
        "a,b/*",
    ];
    let run = turnpike(&fake, &create).await.ok();
    assert_eq!(run.out, "team acme created\n");
    let team = fake.state().teams["teams/acme"].clone();
    assert_eq!(
        (team.display_name.as_str(), team.models.join(" ").as_str()),
        ("Acme", "a b/*")
    );

    let run = turnpike(&fake, &["teams", "update", "acme", "--disable"])
        .await
        .ok();
    assert_eq!(run.out, "team acme updated\n");
    let team = fake.state().teams["teams/acme"].clone();
    assert!(team.disabled);
    assert_eq!((team.display_name.as_str(), team.models.len()), ("Acme", 2));
    turnpike(
        &fake,
        &["teams", "update", "acme", "--all-models", "--enable"],
    )
    .await
    .ok();
    let team = fake.state().teams["teams/acme"].clone();
    assert!(!team.disabled && team.models.is_empty());

    let run = turnpike(&fake, &["teams", "list"]).await.ok();
    assert_eq!(
        lines(&run),
        ["ID    NAME  MODELS  DISABLED", "acme  Acme  all     -"]
    );
    let run = turnpike(&fake, &["teams", "get", "acme"]).await.ok();
    assert!(run.out.contains("displayName    Acme\n"), "{}", run.out);

    let run = turnpike(&fake, &["teams", "delete", "acme", "-o", "json"])
        .await
        .ok();
    assert_eq!(run.json()["deleted"], true);
    assert_eq!(run.json()["configVersion"], 4);
    let run = turnpike(&fake, &["teams", "list"]).await.ok();
    assert_eq!(run.out, "ID  NAME  MODELS  DISABLED\n");
    let run = turnpike(&fake, &["teams", "list", "-o", "json"]).await.ok();
    assert_eq!(run.out, "[]\n");
}

#[tokio::test]
async fn a_list_goes_through_every_page_up_to_its_limit() {
    let fake = Fake::start().await;
    for id in ["a", "b", "c", "d", "e"] {
        turnpike(&fake, &["teams", "create", id]).await.ok();
    }
    let ids = |run: &Run| -> Vec<String> {
        let teams = run.json();
        let teams = teams.as_array().unwrap().iter();
        teams
            .map(|team| team["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = turnpike(&fake, &["teams", "list", "-o", "json"]).await.ok();
    assert_eq!(ids(&all), ["a", "b", "c", "d", "e"]);
    fake.state().calls.clear();
    let three = turnpike(&fake, &["teams", "list", "-o", "json", "--limit", "3"])
        .await
        .ok();
    assert_eq!(ids(&three), ["a", "b", "c"]);
    assert_eq!(fake.state().calls.len(), 2);
}

#[tokio::test]
async fn a_new_key_has_its_secret_alone_on_stdout() {
    let fake = Fake::start().await;
    let run = turnpike(
        &fake,
        &["keys", "create", "ci", "--team", "acme", "--models", "m"],
    )
    .await;
    let run = run.ok();
    assert_eq!(run.out, "tp_ci_test\n");
    assert_eq!(
        run.notes,
        "virtual key ci created; its secret is shown this once\n\
         note: there is no model `m` now\n"
    );
    let key = fake.state().keys["virtualKeys/ci"].clone();
    assert_eq!(
        (key.team.as_str(), key.models.as_slice()),
        ("teams/acme", &["m".to_owned()][..])
    );
    assert_eq!(key.expire_time, None);

    let create = [
        "keys",
        "create",
        "--team",
        "acme",
        "--expires",
        "2027-01-01",
        "-o",
        "json",
    ];
    let json = turnpike(&fake, &create).await.ok().json();
    assert_eq!(json["secret"], "tp_made_test");
    assert_eq!(json["id"], "made");
    assert_eq!(json["kind"], "VirtualKey");
    assert_eq!(json["spec"]["team"], "acme");
    assert_eq!(json["spec"]["expireTime"], "2027-01-01T00:00:00Z");
    assert_eq!(json["status"]["configVersion"], 2);
}

#[tokio::test]
async fn a_secret_is_imported_from_a_file_and_never_printed() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("legacy.key");
    fs::write(&file, "sk-test-imported-0001\n").unwrap();
    let file = file.to_str().unwrap();
    let create = [
        "keys",
        "create",
        "old",
        "--team",
        "t",
        "--import-secret-file",
        file,
    ];
    let run = turnpike(&fake, &create).await.ok();
    assert_eq!(fake.state().imported, ["sk-test-imported-0001"]);
    assert_eq!(run.out, "");
    assert_eq!(
        run.notes,
        "virtual key old created with the imported secret\n"
    );
}

#[tokio::test]
async fn a_key_is_switched_and_changed_without_losing_the_rest() {
    let fake = Fake::start().await;
    let create = [
        "keys",
        "create",
        "k",
        "--team",
        "t",
        "--models",
        "m",
        "--expires",
        "1h",
    ];
    turnpike(&fake, &create).await.ok();
    let expire_time = fake.state().keys["virtualKeys/k"].expire_time;
    assert!(expire_time.is_some());
    turnpike(&fake, &["keys", "disable", "k"]).await.ok();
    let key = fake.state().keys["virtualKeys/k"].clone();
    assert!(key.disabled);
    assert_eq!((key.team.as_str(), key.models.len()), ("teams/t", 1));
    assert_eq!(key.expire_time, expire_time);
    turnpike(&fake, &["keys", "enable", "k"]).await.ok();
    turnpike(
        &fake,
        &["keys", "update", "k", "--all-models", "--expires", "never"],
    )
    .await
    .ok();
    let key = fake.state().keys["virtualKeys/k"].clone();
    assert!(!key.disabled && key.models.is_empty() && key.expire_time.is_none());

    turnpike(&fake, &["keys", "create", "other", "--team", "u"])
        .await
        .ok();
    let run = turnpike(&fake, &["keys", "list", "--team", "u"]).await.ok();
    assert_eq!(
        lines(&run),
        [
            "ID     TEAM  NAME  SECRET  MODELS  EXPIRES  DISABLED",
            "other  u     -     tp_…    all     never    -"
        ]
    );
    turnpike(&fake, &["keys", "delete", "k"]).await.ok();
    assert!(!fake.state().keys.contains_key("virtualKeys/k"));
}

#[tokio::test]
async fn a_provider_is_created_with_defaults_and_changed() {
    let fake = Fake::start().await;
    let create = [
        "providers",
        "create",
        "openai",
        "--base-url",
        "https://api.openai.com/v1",
    ];
    turnpike(&fake, &create).await.ok();
    let provider = fake.state().providers["providers/openai"].clone();
    assert_eq!(provider.dialect(), config::Dialect::Openai);
    assert_eq!(provider.credential_place(), config::CredentialPlace::Bearer);
    assert!(!provider.no_stream_usage_option);

    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    fs::write(&ca, "-----BEGIN CERTIFICATE-----\n").unwrap();
    let update = [
        "providers",
        "update",
        "openai",
        "--ca-file",
        ca.to_str().unwrap(),
        "--credential-place",
        "x-api-key",
        "--no-stream-usage-option",
    ];
    turnpike(&fake, &update).await.ok();
    let provider = fake.state().providers["providers/openai"].clone();
    assert_eq!(provider.base_url, "https://api.openai.com/v1");
    assert_eq!(
        provider.credential_place(),
        config::CredentialPlace::XApiKey
    );
    assert!(provider.no_stream_usage_option && provider.ca_pem.starts_with("-----BEGIN"));
    let update = [
        "providers",
        "update",
        "openai",
        "--system-ca",
        "--stream-usage-option",
    ];
    turnpike(&fake, &update).await.ok();
    let provider = fake.state().providers["providers/openai"].clone();
    assert!(!provider.no_stream_usage_option && provider.ca_pem.is_empty());
}

#[tokio::test]
async fn a_credential_takes_its_secret_from_a_file_only() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openai.key");
    fs::write(&file, "sk-test-provider\n").unwrap();
    let file = file.to_str().unwrap();
    let create = [
        "credentials",
        "create",
        "--provider",
        "openai",
        "--team",
        "acme",
        "--secret-file",
        file,
    ];
    let run = turnpike(&fake, &create).await.ok();
    assert_eq!(run.out, "credential openai-acme created\n");
    let credential = fake.state().credentials["credentials/openai-acme"].clone();
    assert_eq!(credential.provider, "providers/openai");
    assert_eq!(
        (credential.team.as_str(), credential.virtual_key.as_str()),
        ("teams/acme", "")
    );
    let Some(Source::Secret(secret)) = credential.source else {
        panic!("a secret");
    };
    assert_eq!(secret.value, "sk-test-provider");

    turnpike(
        &fake,
        &["credentials", "update", "openai-acme", "--weight", "7"],
    )
    .await
    .ok();
    let credential = fake.state().credentials["credentials/openai-acme"].clone();
    assert_eq!((credential.weight, credential.source), (7, None));

    let create = [
        "credentials",
        "create",
        "env",
        "--provider",
        "openai",
        "--env",
        "OPENAI_API_KEY",
    ];
    turnpike(&fake, &create).await.ok();
    let update = ["credentials", "update", "env", "--file", "openai/key"];
    turnpike(&fake, &update).await.ok();
    let source = fake.state().credentials["credentials/env"].source.clone();
    assert_eq!(source, Some(Source::File("openai/key".into())));
    let run = turnpike(&fake, &["credentials", "list", "--provider", "openai"])
        .await
        .ok();
    assert_eq!(
        lines(&run),
        [
            "ID           PROVIDER  FOR        WEIGHT  SOURCE",
            "env          openai    everyone        1  file openai/key",
            "openai-acme  openai    team acme       7  stored",
        ]
    );
}

#[tokio::test]
async fn a_model_is_created_with_targets_in_order() {
    let fake = Fake::start().await;
    let create = [
        "models",
        "create",
        "org/fast",
        "--target",
        "groq:llama:8b",
        "--target",
        "openai",
        "--capability",
        "tools,json-schema",
        "--effort",
        "low",
        "--effort",
        "high",
        "--context-window",
        "128000",
        "--first-token-timeout",
        "10s",
    ];
    turnpike(&fake, &create).await.ok();
    let model = fake.state().models["models/org/fast"].clone();
    let target = |provider: &str, upstream_model: &str| config::Target {
        provider: provider.into(),
        upstream_model: upstream_model.into(),
        first_token_timeout_ms: 10_000,
    };
    assert_eq!(
        model.targets,
        [target("groq", "llama:8b"), target("openai", "")]
    );
    assert_eq!(model.capabilities, [1, 4]);
    assert_eq!(model.efforts, [1, 3]);
    assert_eq!(model.context_window, 128_000);

    let update = [
        "models",
        "update",
        "org/fast",
        "--target",
        "openai:gpt",
        "--all-efforts",
        "--disable",
    ];
    turnpike(&fake, &update).await.ok();
    let run = turnpike(&fake, &["models", "list"]).await.ok();
    assert_eq!(
        lines(&run),
        [
            "ID        TARGETS     CAPABILITIES       EFFORTS  CONTEXT  DISABLED",
            "org/fast  openai:gpt  tools,json-schema  all       128000  yes"
        ]
    );
}

#[tokio::test]
async fn a_change_waits_for_the_version_it_made() {
    let fake = Fake::start().await;
    fake.state().wait_answer = pb::WaitResponse {
        connected: 2,
        acked: 2,
        elapsed: Some(prost_types::Duration {
            seconds: 0,
            nanos: 41_000_000,
        }),
        ..Default::default()
    };
    let run = turnpike(&fake, &["keys", "create", "k", "--team", "t", "--wait"])
        .await
        .ok();
    assert_eq!(run.out, "tp_k_test\n");
    assert!(
        run.notes.ends_with("config 1: 2 of 2 nodes in 41 ms\n"),
        "{}",
        run.notes
    );
    let run = turnpike(&fake, &["keys", "delete", "k", "--wait=30"])
        .await
        .ok();
    assert_eq!(run.notes, "config 2: 2 of 2 nodes in 41 ms\n");
    let request = fake.state().wait_request.unwrap();
    assert_eq!(request.timeout.unwrap().seconds, 30);
}
