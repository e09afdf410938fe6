//! `apply`: upsert in order, secrets once, and nothing sent before everything is read.

use std::fs;
use std::path::Path;

use proto::admin::v1::credential::Source;

use super::fake::Fake;
use super::{Run, turnpike};

const GATEWAY: &str = "\
kind: Settings
spec: {maxStaleS: 60}
---
kind: RuleSet
spec:
  rules:
    - {name: default, models: [fast]}
---
kind: Model
id: fast
spec:
  targets: [{provider: demo, upstreamModel: demo-1}]
  capabilities: [tools, json-schema]
---
kind: PriceBook
spec:
  prices: [{provider: demo, upstreamModel: demo-1, input: 0.15, output: 0.6}]
---
kind: Credential
id: demo
spec: {provider: demo, environmentVariable: DEMO_API_KEY}
---
kind: VirtualKey
id: ci
spec: {team: acme, expireTime: 2027-01-01T00:00:00Z, models: [fast, demo/*]}
---
kind: Team
id: acme
spec: {displayName: Acme}
---
kind: Provider
id: demo
spec: {baseUrl: 'http://127.0.0.1:7000/v1'}
";

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

async fn apply(fake: &Fake, path: &str) -> Run {
    turnpike(fake, &["apply", "-f", path]).await
}

#[tokio::test]
async fn everything_is_created_in_order_and_a_second_run_changes_nothing() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "gateway.yaml", GATEWAY);
    let run = apply(&fake, &path).await.ok();
    assert_eq!(
        run.out,
        "provider demo created\n\
         team acme created\n\
         virtual key ci created\n  secret, shown this once: tp_ci_test\n\
         credential demo created\n\
         model fast created\n\
         rule set updated\n\
         price book updated\n\
         settings updated\n"
    );
    fake.state().calls.clear();
    let run = apply(&fake, &path).await.ok();
    assert!(
        run.out.lines().all(|line| line.ends_with(" unchanged")),
        "{}",
        run.out
    );
    assert_eq!(run.out.lines().count(), 8);
    assert!(
        fake.state()
            .calls
            .iter()
            .all(|call| call.starts_with("get_"))
    );
}

#[tokio::test]
async fn order_inside_sets_is_no_difference_and_order_of_targets_is() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    apply(&fake, &file(folder.path(), "a.yaml", GATEWAY))
        .await
        .ok();
    let shuffled = GATEWAY
        .replace("[tools, json-schema]", "[json-schema, tools]")
        .replace("[fast, demo/*]", "[demo/*, fast]")
        .replace("7000/v1", "7000/v1/");
    let run = apply(&fake, &file(folder.path(), "b.yaml", &shuffled))
        .await
        .ok();
    assert!(
        run.out.lines().all(|line| line.ends_with(" unchanged")),
        "{}",
        run.out
    );
    let changed = GATEWAY
        .replace(
            "[{provider: demo, upstreamModel: demo-1}]",
            "[{provider: demo}]",
        )
        .replace("displayName: Acme", "displayName: Acme Corp.");
    let run = apply(&fake, &file(folder.path(), "c.yaml", &changed))
        .await
        .ok();
    let updated: Vec<&str> = run
        .out
        .lines()
        .filter(|line| line.ends_with(" updated"))
        .collect();
    assert_eq!(updated, ["team acme updated", "model fast updated"]);
    assert_eq!(fake.state().teams["teams/acme"].display_name, "Acme Corp.");
}

#[tokio::test]
async fn what_list_prints_can_be_applied_elsewhere() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    apply(&fake, &file(folder.path(), "gateway.yaml", GATEWAY))
        .await
        .ok();
    let printed = turnpike(&fake, &["models", "list", "-o", "json"])
        .await
        .ok();
    let elsewhere = Fake::start().await;
    let path = file(folder.path(), "models.json", &printed.out);
    let run = apply(&elsewhere, &path).await.ok();
    assert_eq!(run.out, "model fast created\n");
    let model = |fake: &Fake| fake.state().models["models/fast"].targets.clone();
    assert_eq!(model(&elsewhere), model(&fake));
}

#[tokio::test]
async fn secrets_come_from_files_beside_the_document() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    file(folder.path(), "old.key", "sk-test-imported-0001\n");
    file(folder.path(), "provider.key", "sk-test-provider\n");
    let path = file(
        folder.path(),
        "secrets.yaml",
        "kind: VirtualKey\nid: old\nspec: {team: acme, importSecretFile: old.key}\n---\n\
         kind: Credential\nid: demo\nspec: {provider: demo, secretFile: provider.key}\n",
    );
    let run = apply(&fake, &path).await.ok();
    assert_eq!(
        run.out,
        "virtual key old created\ncredential demo created\n"
    );
    assert_eq!(fake.state().imported, ["sk-test-imported-0001"]);

    // The key exists, so its file is not needed; the credential's secret is sent again.
    fs::remove_file(folder.path().join("old.key")).unwrap();
    file(folder.path(), "provider.key", "sk-test-rotated\n");
    let run = apply(&fake, &path).await.ok();
    assert_eq!(
        run.out,
        "virtual key old unchanged\ncredential demo updated\n"
    );
    let source = fake.state().credentials["credentials/demo"].source.clone();
    let Some(Source::Secret(secret)) = source else {
        panic!("a secret");
    };
    assert_eq!(secret.value, "sk-test-rotated");
}

#[tokio::test]
async fn a_fault_anywhere_is_found_before_anything_is_sent() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    file(folder.path(), "a.yaml", "kind: Team\nid: a\nspec: {}\n");
    file(
        folder.path(),
        "b.yaml",
        "kind: Team\nid: b\nspec: {colour: red}\n",
    );
    let path = folder.path().to_str().unwrap();
    let run = apply(&fake, path).await;
    assert!(
        run.error()
            .contains("b.yaml, document 1: spec: unknown field `colour`"),
        "{}",
        run.error()
    );
    file(folder.path(), "b.yaml", "kind: Team\nid: a\nspec: {}\n");
    let run = apply(&fake, path).await;
    let error = run.error();
    assert!(
        error.contains("b.yaml, document 1: team a is in"),
        "{error}"
    );
    assert!(error.ends_with("a.yaml, document 1 already"), "{error}");
    assert_eq!(fake.state().calls, Vec::<String>::new());
}

#[tokio::test]
async fn a_failure_midway_still_shows_the_secrets_that_were_made() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "gateway.yaml", GATEWAY);
    fake.state().refuse = Some((
        "create_model",
        tonic::Status::invalid_argument("targets[0]: no such provider"),
    ));
    let run = turnpike(&fake, &["apply", "-f", &path, "-o", "json", "--wait"]).await;
    let error = run.error();
    assert!(
        error.ends_with(
            "gateway.yaml, document 3: create model fast: invalid argument: targets[0]: no such provider"
        ),
        "{error}"
    );
    let json = run.json();
    assert_eq!(json.as_array().unwrap().len(), 4);
    assert_eq!(json[2]["secret"], "tp_ci_test");
    assert_eq!(json[2]["outcome"], "created");
    assert_eq!(json[0]["configVersion"], 1);
}

#[tokio::test]
async fn apply_waits_for_the_newest_version_it_made() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "gateway.yaml", GATEWAY);
    let run = turnpike(&fake, &["apply", "-f", &path, "--wait"])
        .await
        .ok();
    assert_eq!(run.notes, "config 8: 0 of 0 nodes in 0 ms\n");
}
