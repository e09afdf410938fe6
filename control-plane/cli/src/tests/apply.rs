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
    let provider = ["providers", "create", "demo", "--base-url=http://p/v1"];
    turnpike(&elsewhere, &provider).await.ok();
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
        "kind: Team\nid: acme\nspec: {}\n---\n\
         kind: Provider\nid: demo\nspec: {baseUrl: 'http://p/v1'}\n---\n\
         kind: VirtualKey\nid: old\nspec: {team: acme, importSecretFile: old.key}\n---\n\
         kind: Credential\nid: demo\nspec: {provider: demo, secretFile: provider.key}\n",
    );
    let run = apply(&fake, &path).await.ok();
    assert_eq!(
        run.out,
        "provider demo created\nteam acme created\nvirtual key old created\n\
         credential demo created\n"
    );
    assert_eq!(fake.state().imported, ["sk-test-imported-0001"]);

    // The key exists, so its file is not needed; the credential's secret is sent again.
    fs::remove_file(folder.path().join("old.key")).unwrap();
    file(folder.path(), "provider.key", "sk-test-rotated\n");
    let run = apply(&fake, &path).await.ok();
    assert_eq!(
        run.out,
        "provider demo unchanged\nteam acme unchanged\nvirtual key old unchanged\n\
         credential demo updated\n"
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

/// Applies a team and `more`, which is at fault; the error, when nothing was changed.
async fn refused_whole(fake: &Fake, more: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("kind: Team\nid: acme\nspec: {{}}\n---\n{more}");
    let run = apply(fake, &file(folder.path(), "all.yaml", &text)).await;
    assert_eq!(run.out, "");
    let calls = fake.state().calls.clone();
    let changes = calls.iter().filter(|call| !call.starts_with("get_"));
    assert_eq!(changes.count(), 0, "{calls:?}");
    run.error().to_owned()
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_changes_nothing() {
    let fake = Fake::start().await;
    let credential = "kind: Credential\nid: demo\nspec: {provider: demo, secretFile: gone.key}\n";
    let error = refused_whole(&fake, credential).await;
    assert!(
        error.contains("document 2: credential demo: open "),
        "{error}"
    );
    assert!(error.contains("gone.key: No such file"), "{error}");
    let key = "kind: VirtualKey\nid: old\nspec: {team: acme, importSecretFile: gone.key}\n";
    let error = refused_whole(&fake, key).await;
    assert!(
        error.contains("document 2: virtual key old: open "),
        "{error}"
    );
    let both =
        "kind: Credential\nid: demo\nspec: {provider: demo, file: a, environmentVariable: B}\n";
    let error = refused_whole(&fake, both).await;
    assert!(
        error.ends_with("one of secretFile, file and environmentVariable"),
        "{error}"
    );
}

#[tokio::test]
async fn an_amount_that_does_not_fit_its_unit_changes_nothing() {
    let fake = Fake::start().await;
    let limit = "kind: Limit\nid: month\nspec: {subject: team, subjectId: acme, unit: money, amount: 5, \
                 window: month}\n";
    let error = refused_whole(&fake, limit).await;
    assert!(
        error.ends_with(
            "document 2: limit month: amount: `5` is a count, and the unit is money: write 5usd"
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_name_that_is_nowhere_changes_nothing() {
    let fake = Fake::start().await;
    for (document, expected) in [
        (
            "kind: VirtualKey\nid: ci\nspec: {team: acne}\n",
            "virtual key ci: team: there is no team `acne`",
        ),
        (
            "kind: Model\nid: m\nspec: {targets: [{provider: p}]}\n",
            "model m: targets[0].provider: there is no provider `p`",
        ),
        (
            "kind: RuleSet\nspec: {rules: [{name: r, models: [m]}]}\n",
            "rule set: rules[0].models[0]: there is no model `m`",
        ),
        (
            "kind: Limit\nid: l\nspec: {subject: key, subjectId: k, unit: requests, amount: 5, window: day}\n",
            "limit l: subjectId: there is no virtual key `k`",
        ),
        (
            "kind: Limit\nid: l\nspec: {subject: end-user, subjectId: acne/joe, unit: requests, amount: 5, window: day}\n",
            "limit l: subjectId: there is no team `acne`",
        ),
    ] {
        let error = refused_whole(&fake, document).await;
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_limit_may_outlive_its_subject() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let limit = "kind: Limit\nid: l\nspec: {subject: team, subjectId: acme, unit: requests, amount: 5, window: day}\n";
    let team = "kind: Team\nid: acme\nspec: {}\n";
    let both = file(folder.path(), "both.yaml", &format!("{team}---\n{limit}"));
    apply(&fake, &both).await.ok();
    turnpike(&fake, &["teams", "delete", "acme"]).await.ok();
    let raised = limit.replace("amount: 5", "amount: 6");
    let run = apply(&fake, &file(folder.path(), "limit.yaml", &raised)).await;
    assert_eq!(run.ok().out, "limit l updated\n");
}

#[tokio::test]
async fn a_target_without_a_price_is_told() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let text = GATEWAY.replace(
        "[{provider: demo, upstreamModel: demo-1}]",
        "[{provider: demo, upstreamModel: gpt-4o}, {provider: demo}]",
    );
    let path = file(folder.path(), "gateway.yaml", &text);
    let run = apply(&fake, &path).await.ok();
    assert_eq!(
        run.notes,
        "note: demo:fast has no price, so its cost counts nowhere: turnpike prices get -o json, add it, \
         turnpike prices replace\n\
         note: demo:gpt-4o has no price, so its cost counts nowhere: turnpike prices import-defaults \
         --provider demo --vendor openai\n"
    );
}

#[tokio::test]
async fn what_the_control_plane_refuses_is_named_as_the_document_has_it() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    fake.state().refuse = Some((
        "create_limit",
        tonic::Status::invalid_argument("values.time_zone: there is no such zone"),
    ));
    let limit =
        "kind: Limit\nid: l\nspec: {subject: everything, unit: requests, amount: 5, window: day}\n";
    let run = apply(&fake, &file(folder.path(), "limit.yaml", limit)).await;
    assert!(
        run.error()
            .ends_with("invalid argument: timeZone: there is no such zone"),
        "{}",
        run.error()
    );
}
