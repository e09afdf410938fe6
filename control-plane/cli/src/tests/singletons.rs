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
        ..Default::default()
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
            "-",
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

const TIERED: &str = r#"
prices:
  - provider: p
    upstreamModel: m
    input: 1
    output: 2
    cacheWrite1h: 3
    inputAudio: 4
    longContext: {aboveInputTokens: 200000, rates: {input: 2, output: 3.5}}
    tiers:
      - {tier: flex, factor: 0.5}
      - {tier: priority, rates: {input: 5, output: 6, cachedInput: 0.1}}
    timesOfDay:
      - {from: "16:30", to: "00:30", weekdays: [mon, sun], factor: 1.25}
"#;

#[tokio::test]
async fn a_price_with_tiers_times_and_long_context_goes_there_and_back() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prices.yaml");
    fs::write(&file, TIERED).unwrap();
    let replace = ["prices", "replace", "-f", file.to_str().unwrap()];
    turnpike(&fake, &replace).await.ok();
    let sent = fake.state().price_book.prices.clone();
    let rates = |input: u64, cached: Option<u64>, output: u64| {
        Some(config::Rates {
            input_pusd: Some(input),
            cached_input_pusd: cached,
            output_pusd: Some(output),
            ..Default::default()
        })
    };
    let expected = config::Price {
        provider: "p".into(),
        upstream_model: "m".into(),
        input_pusd: Some(1_000_000),
        output_pusd: Some(2_000_000),
        cache_write_1h_pusd: Some(3_000_000),
        input_audio_pusd: Some(4_000_000),
        long_context: Some(config::LongContext {
            above_input_tokens: 200_000,
            rates: rates(2_000_000, None, 3_500_000),
        }),
        tiers: vec![
            config::TierPrice {
                tier: "flex".into(),
                factor_permille: 500,
                ..Default::default()
            },
            config::TierPrice {
                tier: "priority".into(),
                rates: rates(5_000_000, Some(100_000), 6_000_000),
                ..Default::default()
            },
        ],
        times_of_day: vec![config::TimeOfDayPrice {
            from_minute: 990,
            to_minute: 30,
            weekdays: vec![1, 7],
            factor_permille: 1_250,
            ..Default::default()
        }],
        ..Default::default()
    };
    assert_eq!(sent, [expected]);
    let run = turnpike(&fake, &["prices", "get"]).await.ok();
    let otherwise = "1h write, audio, >200000 tokens, flex, priority, 16:30-00:30";
    assert!(
        lines(&run)[1].trim_end().ends_with(otherwise),
        "{}",
        run.out
    );
    // What was printed can be put back.
    let json = turnpike(&fake, &["prices", "get", "-o", "json"]).await.ok();
    fs::write(&file, json.out).unwrap();
    turnpike(&fake, &["apply", "-f", file.to_str().unwrap()])
        .await
        .ok();
    assert_eq!(fake.state().price_book.prices, sent);
}

#[tokio::test]
async fn list_prices_are_put_into_the_book_for_a_provider() {
    let fake = Fake::start().await;
    let shown = turnpike(&fake, &["prices", "defaults", "--vendor", "deepseek"]).await;
    assert!(shown.ok().out.contains("api-docs.deepseek.com"));
    let import = [
        "prices",
        "import-defaults",
        "--provider",
        "ds",
        "--vendor",
        "deepseek",
    ];
    let dry = [import.as_slice(), &["--dry-run"]].concat();
    turnpike(&fake, &dry).await.ok();
    assert_eq!(fake.state().price_book.prices, []);
    turnpike(&fake, &import).await.ok();
    let prices = fake.state().price_book.prices.clone();
    assert_eq!(prices.len(), 3);
    assert!(prices.iter().all(|price| price.provider == "ds"));
    assert_eq!(prices[0].times_of_day[0].weekdays, [1, 2, 3, 4, 5]);
    let version = fake.state().price_book.version;
    turnpike(&fake, &import).await.ok();
    assert_eq!(fake.state().price_book.version, version, "nothing to do");
    let unknown = ["prices", "import-defaults", "--provider", "nobody"];
    let failed = turnpike(&fake, &unknown).await;
    assert!(failed.error().contains("name one of openai, anthropic"));
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
