//! Rules, prices and settings: read from a file, sent whole, printed back.

use std::fs;

use proto::config::v1 as config;

use super::fake::Fake;
use super::{Run, turnpike};

fn lines(run: &Run) -> Vec<&str> {
    run.out.lines().collect()
}

#[tokio::test]
async fn rules_are_replaced_whole_and_what_is_printed_can_be_put_back() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.yaml");
    let path = file.to_str().unwrap();
    fs::write(
        &file,
        "rules:\n  - name: night\n    priority: 10\n    attributes: {job: nightly}\n    \
         models: [cheap, fast]\n    efforts: [low]\n  - {name: default, models: [fast], maxAttempts: 2}\n",
    )
    .unwrap();
    let run = turnpike(&fake, &["rules", "replace", "-f", path])
        .await
        .ok();
    assert_eq!(run.out, "rule set replaced\n");
    let before = fake.state().rule_set.rules.clone();
    assert_eq!(before[0].attributes["job"], "nightly");
    assert_eq!(
        (before[0].priority, before[0].efforts.as_slice()),
        (10, &[1][..])
    );
    assert_eq!(before[1].max_attempts, 2);

    let run = turnpike(&fake, &["rules", "get"]).await.ok();
    assert_eq!(
        lines(&run),
        [
            "RULE     PRIORITY  MATCHES           EFFORTS  MODELS      ATTEMPTS  DISABLED",
            "night          10  auto job=nightly  low      cheap,fast         3  -",
            "default         0  auto              all      fast               2  -"
        ]
    );
    let run = turnpike(&fake, &["rules", "get", "-o", "json"]).await.ok();
    fs::write(&file, &run.out).unwrap();
    turnpike(&fake, &["rules", "replace", "-f", path])
        .await
        .ok();
    assert_eq!(fake.state().rule_set.rules, before);
}

#[tokio::test]
async fn prices_go_out_as_pico_usd_and_come_back_as_decimals() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prices.yaml");
    let path = file.to_str().unwrap();
    fs::write(
        &file,
        "prices:\n  - provider: openai\n    upstreamModel: gpt-4o-mini\n    \
         effectiveFrom: 2026-12-01\n    input: 0.15\n    cachedInput: \"0.075\"\n    output: 0.60\n",
    )
    .unwrap();
    turnpike(&fake, &["prices", "replace", "-f", path])
        .await
        .ok();
    let price = config::Price {
        provider: "openai".into(),
        upstream_model: "gpt-4o-mini".into(),
        effective_from_s: 1_796_083_200,
        input_pusd: Some(150_000),
        cached_input_pusd: Some(75_000),
        cache_write_pusd: None,
        output_pusd: Some(600_000),
        reasoning_pusd: None,
    };
    assert_eq!(fake.state().price_book.prices, [price]);
    let run = turnpike(&fake, &["prices", "get"]).await.ok();
    assert_eq!(
        lines(&run)[1].split_whitespace().collect::<Vec<_>>(),
        [
            "openai",
            "gpt-4o-mini",
            "2026-12-01",
            "00:00:00Z",
            "0.15",
            "0.075",
            "-",
            "0.60",
            "-"
        ]
    );
    let json = turnpike(&fake, &["prices", "get", "-o", "json"])
        .await
        .ok()
        .json();
    assert_eq!(json["spec"]["prices"][0]["input"], "0.15");
    assert_eq!(
        json["spec"]["prices"][0]["reasoning"],
        serde_json::Value::Null
    );
    assert_eq!(json["status"]["version"], 1);
}

#[tokio::test]
async fn settings_that_a_file_leaves_out_get_their_defaults() {
    let fake = Fake::start().await;
    fake.state().settings.values = Some(config::Settings {
        first_token_hold_ms: 5,
        ..Default::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.yaml");
    fs::write(&file, "maxStaleS: 3600\nonUnknownUsage: void\n").unwrap();
    let update = ["settings", "update", "-f", file.to_str().unwrap()];
    turnpike(&fake, &update).await.ok();
    let sent = config::Settings {
        max_stale_s: 3600,
        on_unknown_usage: config::OnUnknownUsage::Void.into(),
        ..Default::default()
    };
    assert_eq!(fake.state().settings.values, Some(sent));
    let run = turnpike(&fake, &["settings", "get"]).await.ok();
    let cells = |setting: &str| -> Vec<String> {
        let line = run
            .out
            .lines()
            .find(|line| line.starts_with(setting))
            .unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(cells("maxStaleS"), ["maxStaleS", "3600", "86400"]);
    assert_eq!(
        cells("onUnknownUsage"),
        ["onUnknownUsage", "void", "estimate"]
    );
    assert_eq!(
        cells("firstTokenHoldMs"),
        ["firstTokenHoldMs", "60000", "60000"]
    );
}
