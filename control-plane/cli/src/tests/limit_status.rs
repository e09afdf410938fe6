//! How limits stand, in words and as JSON; what happened to them.

use prost_types::Timestamp;
use proto::admin::v1 as pb;
use proto::admin::v1::OvershootCause as Cause;

use super::fake::Fake;
use super::{Run, turnpike};

fn lines(run: &Run) -> Vec<String> {
    let lines = run.out.lines();
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

async fn limit(fake: &Fake, id: &str, unit: &str, amount: &str, window: &str) {
    let create = [
        "limits",
        "create",
        id,
        "--subject",
        "team",
        "--unit",
        unit,
        "--amount",
        amount,
        "--window",
        window,
    ];
    turnpike(fake, &create).await.ok();
}

fn part(cause: Cause, each: Option<u64>, count: Option<u64>) -> pb::OvershootPart {
    pb::OvershootPart {
        cause: cause.into(),
        each,
        count,
        missing: String::new(),
    }
}

fn status(limit: &str, parts: Vec<pb::OvershootPart>) -> pb::LimitStatus {
    let amounts = parts.iter().map(|part| Some(part.each? * part.count?));
    pb::LimitStatus {
        bucket: Some(pb::Bucket {
            limit: format!("limits/{limit}"),
            subject: "acme".into(),
            window_start_time: Some(Timestamp::default()),
            reset_time: Some(Timestamp {
                seconds: 1_798_761_600,
                nanos: 0,
            }),
            amount: 25_000_000_000,
            settled: 24_500_000_000,
            held: 1_000_000_000,
            suspended: 250_000_000,
            remaining: -750_000_000,
        }),
        unaccounted: 250_000_000,
        overshoot: Some(pb::Overshoot {
            amount: amounts.sum(),
            parts,
        }),
    }
}

async fn one(status_of: pb::LimitStatus) -> (Fake, Run) {
    let fake = Fake::start().await;
    limit(&fake, "budget", "money", "25usd", "month").await;
    fake.state().statuses.insert("1".into(), status_of);
    let run = turnpike(&fake, &["limits", "status", "budget"]).await.ok();
    (fake, run)
}

#[tokio::test]
async fn a_limit_is_told_in_words_with_what_it_can_cost_at_worst() {
    let requests = part(Cause::Estimates, Some(1_000_000_008), Some(20));
    let outage = part(Cause::Outage, Some(2_000_000_000), Some(3));
    let (fake, run) = one(status("budget", vec![requests, outage])).await;
    let told = lines(&run);
    assert_eq!(
        told[..6],
        [
            "budget: team acme, at most 25.00usd a month",
            "used 24.50usd in the ledger",
            "lent 1.00usd to running Envoys; what they do not use comes back",
            "suspended 0.25usd held by Envoys that were lost; 0.25usd of it was given up on: its \
             records are gone",
            "left -0.75usd more than the amount is used or lent; full again at 2027-01-01 00:00:00Z",
            // What is used and lent already is 25.75 USD.
            "at worst exceeded by at most 26.01usd: no more than 51.76usd in all",
        ]
    );
    assert!(
        told[6].starts_with("- 1.01usd by each of 20 requests"),
        "{}",
        told[6]
    );
    assert!(
        told[7].starts_with("- 2.00usd on each of 3 Envoys"),
        "{}",
        told[7]
    );
    let json = turnpike(&fake, &["limits", "status", "-o", "json"]).await;
    let json = json.ok().json();
    assert_eq!(json[0]["remaining"], "-0.75usd");
    assert_eq!(json[0]["overshoot"]["amount"], "26.00000016usd");
    assert_eq!(json[0]["overshoot"]["parts"][1]["cause"], "outage");
    assert_eq!(json[0]["overshoot"]["parts"][1]["count"], 3);
}

#[tokio::test]
async fn what_nothing_bounds_is_told_with_what_would_bound_it() {
    let (_, run) = one(status("budget", vec![])).await;
    assert!(
        run.out.contains("never exceeded, as long as providers"),
        "{}",
        run.out
    );
    let open = part(Cause::Estimates, Some(1_000_000_000), None);
    let (_, run) = one(status("budget", vec![open])).await;
    assert!(run.out.contains("no number bounds it"), "{}", run.out);
    assert!(run.out.contains("--unit in-flight"), "{}", run.out);
    let windowless = pb::OvershootPart {
        missing: "models/large".into(),
        ..part(Cause::Estimates, None, Some(20))
    };
    let unpriced = pb::OvershootPart {
        missing: "acme/l\u{1b}-1".into(),
        ..part(Cause::Unpriced, None, None)
    };
    let (fake, run) = one(status("budget", vec![windowless, unpriced])).await;
    assert!(
        run.out.contains("turnpike models update large"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("acme/l\u{fffd}-1 has no price"),
        "{}",
        run.out
    );
    let json = turnpike(&fake, &["limits", "status", "-o", "json"]).await;
    let json = json.ok().json();
    assert_eq!(json[0]["overshoot"]["amount"], serde_json::Value::Null);
    assert_eq!(json[0]["overshoot"]["parts"][0]["missing"], "models/large");
}

#[tokio::test]
async fn a_limit_that_nobody_uses_stands_too_and_all_are_listed() {
    let fake = Fake::start().await;
    limit(&fake, "rpm", "requests", "600", "minute").await;
    let unused = pb::LimitStatus {
        bucket: Some(pb::Bucket {
            limit: "limits/rpm".into(),
            amount: 600,
            remaining: 600,
            ..Default::default()
        }),
        unaccounted: 0,
        overshoot: Some(pb::Overshoot {
            amount: Some(150),
            parts: vec![part(Cause::Burst, Some(150), Some(1))],
        }),
    };
    fake.state().statuses.insert("1".into(), unused);
    // More than a page of them, one of a limit that is gone by now.
    for (key, id) in [("2", "a"), ("3", "b"), ("4", "gone")] {
        if id != "gone" {
            limit(&fake, id, "money", "25usd", "day").await;
        }
        let status = status(id, vec![part(Cause::Warning, None, None)]);
        fake.state().statuses.insert(key.into(), status);
    }
    let run = turnpike(&fake, &["limits", "status"]).await.ok();
    let told = lines(&run);
    assert_eq!(told[0], "rpm: each team, at most 600 requests a minute");
    assert_eq!(
        told[5],
        "at worst exceeded by at most 150 requests: no more than 750 requests in any minute"
    );
    let heads = run
        .out
        .lines()
        .filter(|line| line.starts_with(['r', 'a', 'b']));
    assert_eq!(heads.count(), 3, "{}", run.out);
    assert!(!run.out.contains("gone:"), "{}", run.out);
    let run = turnpike(&fake, &["limits", "status", "nosuch"]).await;
    assert!(run.error().contains("nosuch"), "{}", run.error());
}

fn event(limit: &str, state: pb::DeliveryState) -> pb::LimitEvent {
    pb::LimitEvent {
        id: "5d1c".into(),
        limit: format!("limits/{limit}"),
        subject: "acme".into(),
        threshold: 80,
        settled: 20_000_000_000,
        amount: 25_000_000_000,
        raise_time: Some(Timestamp {
            seconds: 1_798_761_600,
            nanos: 0,
        }),
        state: state.into(),
        tries: 2,
        failure: "the receiver answered with 500".into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn thresholds_that_were_passed_are_listed_with_their_deliveries() {
    let fake = Fake::start().await;
    limit(&fake, "budget", "money", "25usd", "month").await;
    for (key, event) in [
        ("1", event("budget", pb::DeliveryState::GivenUp)),
        ("2", event("budget", pb::DeliveryState::Delivered)),
        ("3", event("gone", pb::DeliveryState::Pending)),
    ] {
        fake.state().events.insert(key.into(), event);
    }
    let run = turnpike(&fake, &["limits", "events"]).await.ok();
    let told = lines(&run);
    assert_eq!(
        told[1],
        "2027-01-01 00:00:00Z budget team acme 80 20.00usd 25.00usd given-up 2 the receiver \
         answered with 500"
    );
    assert!(told[3].contains("gone acme 80 20000000000 "), "{}", told[3]);
    let run = turnpike(&fake, &["limits", "events", "--limit=2"])
        .await
        .ok();
    assert_eq!(lines(&run).len(), 3);
    assert_eq!(run.notes, "the newest 2 are shown; all: --limit 0\n");
    let all = ["limits", "events", "budget", "--undelivered", "-o", "json"];
    let json = turnpike(&fake, &all).await.ok().json();
    assert_eq!(json.as_array().unwrap().len(), 1);
    assert_eq!(json[0]["state"], "given-up");
    assert_eq!(json[0]["settled"], "20.00usd");
}

#[tokio::test]
async fn what_lost_envoys_took_with_them_is_listed() {
    let fake = Fake::start().await;
    limit(&fake, "budget", "money", "25usd", "month").await;
    for key in ["1", "2", "3"] {
        let lost = pb::Unaccounted {
            limit: "limits/budget".into(),
            subject: "acme".into(),
            window_start_time: Some(Timestamp::default()),
            boot_id: vec![0xab; 2],
            node: format!("gw-{key}"),
            epoch: 1,
            amount: 500_000_000,
            loss_time: None,
        };
        fake.state().unaccounted.insert(key.into(), lost);
    }
    let run = turnpike(&fake, &["limits", "unaccounted"]).await.ok();
    assert_eq!(
        lines(&run)[3],
        "budget team acme 1970-01-01 00:00:00Z 0.50usd gw-3 abab -"
    );
    let json = ["limits", "unaccounted", "budget", "--limit=1", "-o", "json"];
    let json = turnpike(&fake, &json).await.ok().json();
    assert_eq!(
        (json.as_array().unwrap().len(), &json[0]["amount"]),
        (1, &"0.50usd".into())
    );
}
