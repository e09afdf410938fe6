//! Limits, their buckets, and corrections.

use prost_types::Timestamp;
use proto::admin::v1 as pb;
use proto::config::v1 as config;

use super::fake::Fake;
use super::{Run, turnpike};

const CREATE: [&str; 14] = [
    "limits",
    "create",
    "acme-monthly",
    "--subject",
    "team",
    "--subject-id",
    "acme",
    "--unit",
    "money",
    "--amount",
    "25usd",
    "--window",
    "month",
    "--thresholds=80,100",
];

fn lines(run: &Run) -> Vec<String> {
    let lines = run.out.lines();
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

fn values(fake: &Fake, id: &str) -> config::Limit {
    let state = fake.state();
    state.limits[&format!("limits/{id}")]
        .values
        .clone()
        .unwrap()
}

fn bucket(limit: &str, subject: &str, settled: i64) -> pb::Bucket {
    pb::Bucket {
        limit: format!("limits/{limit}"),
        subject: subject.into(),
        window_start_time: Some(Timestamp::default()),
        reset_time: Some(Timestamp {
            seconds: 1_798_761_600,
            nanos: 0,
        }),
        amount: 25_000_000_000,
        settled,
        held: 1_000_000_000,
        suspended: 0,
        remaining: 24_000_000_000 - settled,
    }
}

#[tokio::test]
async fn a_limit_is_created_changed_and_deleted() {
    let fake = Fake::start().await;
    let run = turnpike(&fake, &CREATE).await.ok();
    assert_eq!(run.out, "limit acme-monthly created\n");
    let created = values(&fake, "acme-monthly");
    let expected = config::Limit {
        subject: config::LimitSubject::Team.into(),
        subject_id: "acme".into(),
        unit: config::LimitUnit::Money.into(),
        amount: 25_000_000_000,
        window: config::LimitWindow::Month.into(),
        thresholds: vec![80, 100],
        ..config::Limit::default()
    };
    assert_eq!(created, expected);

    let update = |flags: &[&'static str]| -> Vec<&'static str> {
        [&["limits", "update", "acme-monthly"], flags].concat()
    };
    let outage = update(&[
        "--amount=0.5usd",
        "--on-unavailable=allow",
        "--outage-allowance=1usd",
        "--models=a,b/*",
        "--enforcement=strict",
        "--clamp",
        "--disable",
    ]);
    turnpike(&fake, &outage).await.ok();
    let updated = values(&fake, "acme-monthly");
    let expected = config::Limit {
        id: "acme-monthly".into(),
        amount: 500_000_000,
        on_unavailable: config::OnUnavailable::Allow.into(),
        outage_allowance: 1_000_000_000,
        models: vec!["a".into(), "b/*".into()],
        enforcement: config::Enforcement::Strict.into(),
        clamp: true,
        disabled: true,
        ..expected
    };
    assert_eq!(updated, expected);
    let back = update(&[
        "--on-unavailable=reject",
        "--all-models",
        "--no-clamp",
        "--no-thresholds",
        "--enable",
    ]);
    turnpike(&fake, &back).await.ok();
    let updated = values(&fake, "acme-monthly");
    assert_eq!((updated.outage_allowance, updated.amount), (0, 500_000_000));
    assert!(updated.models.is_empty() && updated.thresholds.is_empty());
    assert!(!updated.clamp && !updated.disabled);

    let run = turnpike(&fake, &["limits", "get", "acme-monthly"])
        .await
        .ok();
    assert!(
        lines(&run).contains(&"amount 0.50usd".to_owned()),
        "{}",
        run.out
    );
    let run = turnpike(&fake, &["limits", "delete", "acme-monthly"])
        .await
        .ok();
    assert_eq!(run.out, "limit acme-monthly deleted\n");
}

#[tokio::test]
async fn an_amount_of_another_unit_is_refused_before_anything_is_sent() {
    let fake = Fake::start().await;
    let mut create = CREATE;
    create[10] = "25";
    let run = turnpike(&fake, &create).await;
    assert_eq!(
        run.error(),
        "create limit acme-monthly: amount: `25` is a count, and the unit is money: write 25usd"
    );
    create[8] = "tokens";
    create[10] = "2M";
    turnpike(&fake, &create).await.ok();
    assert_eq!(values(&fake, "acme-monthly").amount, 2_000_000);
    let run = turnpike(
        &fake,
        &["limits", "update", "acme-monthly", "--amount=1usd"],
    )
    .await;
    assert!(
        run.error().contains("tokens are counted"),
        "{}",
        run.error()
    );
    assert_eq!(values(&fake, "acme-monthly").amount, 2_000_000);
}

/// Two limits, none of them used.
async fn two_limits() -> Fake {
    let fake = Fake::start().await;
    turnpike(&fake, &CREATE).await.ok();
    let per_minute = [
        "limits",
        "create",
        "rpm",
        "--subject",
        "key",
        "--unit",
        "requests",
        "--amount",
        "10k",
        "--window",
        "minute",
    ];
    turnpike(&fake, &per_minute).await.ok();
    fake
}

/// A bucket of each limit, and one whose limit is gone.
fn use_them(fake: &Fake) {
    for (key, bucket) in [
        ("1", bucket("acme-monthly", "acme", 24_500_000_000)),
        ("2", bucket("gone", "x", 7)),
        ("3", bucket("rpm", "ci", 0)),
    ] {
        fake.state().buckets.insert(key.into(), bucket);
    }
}

#[tokio::test]
async fn limits_are_listed_with_what_is_left_of_each_bucket() {
    let fake = two_limits().await;
    let run = turnpike(&fake, &["limits", "list"]).await.ok();
    let heading = "LIMIT SUBJECT UNIT WINDOW AMOUNT SETTLED HELD SUSPENDED REMAINING RESET";
    assert_eq!(
        lines(&run),
        [
            heading,
            "acme-monthly team acme money month 25.00usd 0.00usd 0.00usd 0.00usd 25.00usd -",
            "rpm each key requests minute 10000 0 0 0 10000 -",
        ]
    );
    use_them(&fake);
    let run = turnpike(&fake, &["limits", "list"]).await.ok();
    assert_eq!(
        lines(&run)[1],
        "acme-monthly team acme money month 25.00usd 24.50usd 1.00usd 0.00usd -0.50usd \
         2027-01-01 00:00:00Z"
    );
    assert!(lines(&run)[2].starts_with("rpm key ci requests minute "));
    assert_eq!(lines(&run).len(), 3);
    let run = turnpike(&fake, &["limits", "buckets"]).await.ok();
    assert_eq!(lines(&run).len(), 3, "{}", run.out);
    assert!(!run.out.contains("gone"), "{}", run.out);
    let run = turnpike(&fake, &["limits", "buckets", "--limit=2"])
        .await
        .ok();
    assert!(lines(&run)[2].starts_with("rpm "), "{}", run.out);
    let run = turnpike(&fake, &["limits", "buckets", "--all"]).await.ok();
    assert_eq!(lines(&run).len(), 4);
    let gone = ["limits", "buckets", "gone", "--all"];
    assert_eq!(lines(&turnpike(&fake, &gone).await.ok()).len(), 2);
    assert!(
        lines(&run)[2].starts_with("gone x - - 25000000000 7 "),
        "{}",
        run.out
    );
}

#[tokio::test]
async fn limits_and_buckets_are_printed_as_json() {
    let fake = two_limits().await;
    use_them(&fake);
    let json = turnpike(&fake, &["limits", "list", "-o", "json"])
        .await
        .ok()
        .json();
    assert_eq!(json[0]["spec"]["amount"], "25.00usd");
    assert_eq!(json[1]["spec"]["amount"], 10_000);
    let buckets = [
        "limits",
        "buckets",
        "acme-monthly",
        "--subject",
        "acme",
        "--past",
        "-o",
        "json",
    ];
    let json = turnpike(&fake, &buckets).await.ok().json();
    assert_eq!(json.as_array().unwrap().len(), 1);
    assert_eq!(json[0]["limit"], "acme-monthly");
    assert_eq!(json[0]["remaining"], "-0.50usd");
    assert_eq!(json[0]["resetTime"], "2027-01-01T00:00:00Z");
    let request = fake.state().buckets_request.clone().unwrap();
    assert_eq!(
        (
            request.limit.as_str(),
            request.subject.as_str(),
            request.include_past
        ),
        ("limits/acme-monthly", "acme", true)
    );
}

#[tokio::test]
async fn a_bucket_is_corrected_with_a_reason() {
    let fake = Fake::start().await;
    turnpike(&fake, &CREATE).await.ok();
    let adjust = |delta| {
        [
            "limits",
            "adjust",
            "acme-monthly",
            "--subject",
            "acme",
            "--delta",
            delta,
            "--reason",
            "ticket 17",
        ]
    };
    let run = turnpike(&fake, &adjust("-5usd")).await.ok();
    let request = fake.state().adjust_request.clone().unwrap();
    let expected = pb::AdjustBucketRequest {
        limit: "limits/acme-monthly".into(),
        subject: "acme".into(),
        delta: -5_000_000_000,
        reason: "ticket 17".into(),
    };
    assert_eq!(request, expected);
    assert!(
        lines(&run)[1].starts_with("acme-monthly team acme money month 10.00usd -5.00usd"),
        "{}",
        run.out
    );
    let run = turnpike(&fake, &adjust("-5")).await;
    assert!(run.error().contains("write 5usd"), "{}", run.error());
}

#[tokio::test]
async fn a_limit_is_applied_from_a_document_and_then_is_the_same() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limit.yaml");
    let text = "kind: Limit\nid: daily\nspec:\n  subject: end-user\n  unit: uncached-input-tokens\n  \
                amount: 1.5M\n  window: day\n  timeZone: Europe/Berlin\n  models: [a, b]\n";
    std::fs::write(&file, text).unwrap();
    let apply = ["apply", "-f", file.to_str().unwrap()];
    let run = turnpike(&fake, &apply).await.ok();
    assert_eq!(run.out, "limit daily created\n");
    let created = values(&fake, "daily");
    assert_eq!(created.amount, 1_500_000);
    assert_eq!(created.time_zone, "Europe/Berlin");
    assert_eq!(created.subject, i32::from(config::LimitSubject::EndUser));
    std::fs::write(&file, text.replace("[a, b]", "[b, a]")).unwrap();
    let run = turnpike(&fake, &apply).await.ok();
    assert_eq!(run.out, "limit daily unchanged\n");
    let json = turnpike(&fake, &["limits", "list", "-o", "json"])
        .await
        .ok()
        .out;
    std::fs::write(&file, json).unwrap();
    let run = turnpike(&fake, &apply).await.ok();
    assert_eq!(run.out, "limit daily unchanged\n");
    std::fs::write(&file, text.replace("1.5M", "10usd")).unwrap();
    let run = turnpike(&fake, &apply).await;
    assert!(
        run.error().contains("amount: `10.00usd` is money"),
        "{}",
        run.error()
    );
}

#[tokio::test]
async fn a_limit_is_shown_with_the_defaults_that_hold() {
    let fake = two_limits().await;
    let run = turnpike(&fake, &["limits", "get", "rpm"]).await.ok();
    for line in [
        "enforcement strict (default)",
        "onExceed reject (default)",
        "onUnbounded reject (default)",
        "burst 2500 (default)",
        "subjectId each key (default)",
        "models all (default)",
    ] {
        assert!(
            lines(&run).contains(&line.to_owned()),
            "{line}: {}",
            run.out
        );
    }
    let run = turnpike(&fake, &["limits", "get", "acme-monthly"])
        .await
        .ok();
    for line in [
        "enforcement guarded (default)",
        "timeZone UTC (default)",
        "subjectId acme",
    ] {
        assert!(
            lines(&run).contains(&line.to_owned()),
            "{line}: {}",
            run.out
        );
    }
    assert!(!run.out.contains("burst"), "{}", run.out);
    let get = ["limits", "get", "rpm", "-o", "json"];
    let json = turnpike(&fake, &get).await.ok().json();
    assert_eq!(json["spec"]["enforcement"], serde_json::Value::Null);
}

#[tokio::test]
async fn what_a_limit_selects_and_nobody_has_is_told() {
    let fake = Fake::start().await;
    let create = [&CREATE[..], &["--models=nosuch,some/*", "--providers=none"]].concat();
    let run = turnpike(&fake, &create).await.ok();
    assert_eq!(
        run.notes,
        "note: there is no model `nosuch` now\nnote: there is no provider `none` now\n"
    );
}

#[tokio::test]
async fn a_refused_flag_is_named_as_a_flag() {
    let fake = Fake::start().await;
    fake.state().refuse = Some((
        "create_limit",
        tonic::Status::invalid_argument("values.subject_id: names nobody that exists"),
    ));
    let run = turnpike(&fake, &CREATE).await;
    assert_eq!(
        run.error(),
        "create limit acme-monthly: invalid argument: --subject-id: names nobody that exists"
    );
}
