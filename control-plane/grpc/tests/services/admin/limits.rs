//! The admin API: limits, their buckets, and corrections.

use super::{mask, refused};
use crate::harness::{Database, Replica, replica};
use proto::admin::v1::{
    AdjustBucketRequest, Bucket, CreateLimitRequest, DeleteLimitRequest, DeleteTeamRequest,
    DeliveryState, GetLimitRequest, Limit, LimitStatus, ListAuditEntriesRequest,
    ListBucketsRequest, ListLimitEventsRequest, ListLimitStatusesRequest, ListLimitsRequest,
    ListUnaccountedRequest, OvershootCause, UpdateLimitRequest,
};
use proto::config::v1 as config;
use proto::config::v1::{Enforcement, LimitSubject, LimitUnit, LimitWindow};
use tonic::Code;

fn create(limit_id: &str, values: config::Limit) -> CreateLimitRequest {
    CreateLimitRequest {
        limit_id: limit_id.into(),
        limit: Some(Limit {
            values: Some(values),
            ..Limit::default()
        }),
    }
}

fn daily_money(amount: u64) -> config::Limit {
    config::Limit {
        subject: LimitSubject::Team.into(),
        unit: LimitUnit::Money.into(),
        amount,
        window: LimitWindow::Day.into(),
        ..config::Limit::default()
    }
}

async fn buckets(replica: &Replica, limit: &str) -> Vec<Bucket> {
    let request = ListBucketsRequest {
        limit: limit.into(),
        ..ListBucketsRequest::default()
    };
    let listed = replica.limits().list_buckets(request).await.unwrap();
    listed.into_inner().buckets
}

#[tokio::test]
async fn limits_are_made_and_changed() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut limits = replica.limits();
    let created = limits
        .create_limit(create("daily", daily_money(1000)))
        .await;
    let created = created.unwrap().into_inner();
    assert_eq!(created.name, "limits/daily");
    assert!(created.config_version > 0 && created.create_time.is_some());
    let values = created.values.clone().unwrap();
    // What was not set stays so: the default may be another one day.
    assert_eq!((values.id.as_str(), values.enforcement), ("daily", 0));
    let again = limits.create_limit(create("daily", daily_money(1))).await;
    refused(again, Code::AlreadyExists, "limits/daily");

    let got = limits.get_limit(GetLimitRequest {
        name: "limits/daily".into(),
    });
    assert_eq!(got.await.unwrap().into_inner(), created);
    let change = |amount, change: fn(&mut config::Limit)| {
        let mut values = daily_money(amount);
        values.id = "ignored".into();
        change(&mut values);
        UpdateLimitRequest {
            limit: Some(Limit {
                name: "limits/daily".into(),
                values: Some(values),
                display_name: "Every day".into(),
                ..Limit::default()
            }),
            update_mask: None,
        }
    };
    let updated = limits.update_limit(change(2000, |_| {})).await.unwrap();
    let updated = updated.into_inner();
    assert_eq!(updated.values.unwrap().amount, 2000);
    assert_eq!(updated.display_name, "Every day");
    assert!(updated.config_version > created.config_version);
    let other_unit = change(2000, |values| values.unit = LimitUnit::Tokens.into());
    refused(
        limits.update_limit(other_unit).await,
        Code::InvalidArgument,
        "values.unit: ",
    );
    let masked = UpdateLimitRequest {
        update_mask: Some(mask()),
        ..change(1, |_| {})
    };
    refused(
        limits.update_limit(masked).await,
        Code::InvalidArgument,
        "update_mask: ",
    );
}

#[tokio::test]
async fn limits_are_listed_by_page_and_deleted_once() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut limits = replica.limits();
    for id in ["daily", "another"] {
        let created = limits.create_limit(create(id, daily_money(1)));
        created.await.unwrap();
    }
    let page = limits.list_limits(ListLimitsRequest {
        page_size: 1,
        page_token: String::new(),
    });
    let page = page.await.unwrap().into_inner();
    assert_eq!(page.limits[0].name, "limits/another");
    let rest = limits.list_limits(ListLimitsRequest {
        page_size: 1,
        page_token: page.next_page_token,
    });
    assert_eq!(
        rest.await.unwrap().into_inner().limits[0].name,
        "limits/daily"
    );

    let delete = || DeleteLimitRequest {
        name: "limits/daily".into(),
    };
    let deleted = limits.delete_limit(delete()).await.unwrap().into_inner();
    assert!(deleted.config_version > 2);
    refused(
        limits.delete_limit(delete()).await,
        Code::NotFound,
        "limits/daily",
    );
    let teams = DeleteLimitRequest {
        name: "teams/daily".into(),
    };
    refused(
        limits.delete_limit(teams).await,
        Code::InvalidArgument,
        "name: must have the form limits/{id}",
    );
}

#[tokio::test]
async fn every_fault_of_a_limit_is_told_at_its_place() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut limits = replica.limits();
    let nothing = CreateLimitRequest {
        limit_id: "a".into(),
        limit: None,
    };
    refused(
        limits.create_limit(nothing).await,
        Code::InvalidArgument,
        "limit: is required",
    );
    let unset = limits
        .create_limit(create("a", config::Limit::default()))
        .await;
    let message = refused(unset, Code::InvalidArgument, "values.subject: ");
    assert!(message.contains("values.unit: ") && message.contains("values.window: "));
    let wrong = config::Limit {
        subject_id: "Not an id".into(),
        time_zone: "Mars/Olympus".into(),
        enforcement: Enforcement::Guarded.into(),
        unit: LimitUnit::Requests.into(),
        thresholds: vec![90, 80],
        ..daily_money(u64::MAX)
    };
    let message = refused(
        limits.create_limit(create("A", wrong)).await,
        Code::InvalidArgument,
        "limit_id: ",
    );
    for field in [
        "values.subject_id",
        "values.time_zone",
        "values.amount",
        "values.enforcement",
        "values.thresholds",
    ] {
        assert!(message.contains(&format!("{field}: ")), "{message}");
    }
}

#[tokio::test]
async fn whom_and_what_a_limit_names_has_to_be_there() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica.create_team("blue").await;
    replica.create_key("app", "blue").await;
    let mut limits = replica.limits();
    let of = |subject: LimitSubject, subject_id: &str| config::Limit {
        subject: subject.into(),
        subject_id: subject_id.into(),
        ..daily_money(1000)
    };
    for (limit_id, subject, subject_id) in [
        ("team", LimitSubject::Team, "blue"),
        ("key", LimitSubject::Key, "app"),
        ("user", LimitSubject::EndUser, "blue/joe/1"),
    ] {
        let created = limits.create_limit(create(limit_id, of(subject, subject_id)));
        created.await.unwrap();
    }
    for (subject, subject_id) in [
        (LimitSubject::Team, "app"),
        (LimitSubject::Key, "blue"),
        (LimitSubject::EndUser, "red/joe"),
    ] {
        let created = limits.create_limit(create("none", of(subject, subject_id)));
        refused(
            created.await,
            Code::InvalidArgument,
            "values.subject_id: names nobody",
        );
    }
    let no_rule = config::Limit {
        rules: vec!["ghost".into()],
        ..daily_money(1000)
    };
    refused(
        limits.create_limit(create("none", no_rule)).await,
        Code::InvalidArgument,
        "values.rules[0]: ",
    );
}

#[tokio::test]
async fn a_correction_moves_what_is_settled_and_is_audited() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica
        .limits()
        .create_limit(create("daily", daily_money(1000)))
        .await
        .unwrap();
    assert!(buckets(&replica, "").await.is_empty());
    let adjust = |delta, reason: &str| AdjustBucketRequest {
        limit: "limits/daily".into(),
        subject: "blue".into(),
        delta,
        reason: reason.into(),
    };
    let mut limits = replica.limits();
    let bucket = limits.adjust_bucket(adjust(1200, "billed elsewhere"));
    let bucket = bucket.await.unwrap().into_inner();
    assert_eq!((bucket.settled, bucket.remaining), (1200, -200));
    let bucket = limits.adjust_bucket(adjust(-300, "too much"));
    let bucket = bucket.await.unwrap().into_inner();
    assert_eq!(
        (bucket.limit.as_str(), bucket.subject.as_str()),
        ("limits/daily", "blue")
    );
    assert_eq!(
        (bucket.amount, bucket.settled, bucket.remaining),
        (1000, 900, 100)
    );
    let starts_s = bucket.window_start_time.unwrap().seconds;
    assert_eq!(bucket.reset_time.unwrap().seconds, starts_s + 86_400);
    assert_eq!(buckets(&replica, "limits/daily").await, [bucket]);

    let mut config = replica.config();
    let page = config.list_audit_entries(ListAuditEntriesRequest {
        page_size: 1,
        page_token: String::new(),
    });
    let entry = page.await.unwrap().into_inner().entries.remove(0);
    assert_eq!(
        (entry.method.as_str(), entry.resource.as_str()),
        ("AdjustBucket", "limits/daily")
    );
    assert!(entry.state.contains("too much"), "{}", entry.state);

    let wrong = limits.adjust_bucket(adjust(0, "")).await;
    let message = refused(wrong, Code::InvalidArgument, "delta: ");
    assert!(message.contains("reason: "), "{message}");
    let unknown = AdjustBucketRequest {
        limit: "limits/nightly".into(),
        ..adjust(1, "why")
    };
    refused(
        limits.adjust_bucket(unknown).await,
        Code::NotFound,
        "limits/nightly",
    );
}

async fn statuses(replica: &Replica, limit: &str) -> Vec<LimitStatus> {
    let request = ListLimitStatusesRequest {
        limit: limit.into(),
        ..ListLimitStatusesRequest::default()
    };
    let listed = replica.limits().list_limit_statuses(request).await;
    listed.unwrap().into_inner().statuses
}

#[tokio::test]
async fn a_limit_stands_with_the_worst_that_the_published_config_allows() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let version = replica.seed().await;
    let mut limits = replica.limits();
    let strict = config::Limit {
        enforcement: Enforcement::Strict.into(),
        ..daily_money(1000)
    };
    let slots = config::Limit {
        unit: LimitUnit::InFlight.into(),
        window: LimitWindow::None.into(),
        ..daily_money(7)
    };
    for (id, values) in [
        ("guarded", daily_money(1000)),
        ("slots", slots),
        ("strict", strict),
    ] {
        limits.create_limit(create(id, values)).await.unwrap();
    }
    crate::wait::wait(&replica, version + 3, 10).await;
    let adjusted = limits.adjust_bucket(AdjustBucketRequest {
        limit: "limits/guarded".into(),
        subject: "blue".into(),
        delta: 1200,
        reason: "billed elsewhere".into(),
    });
    adjusted.await.unwrap();

    let all = statuses(&replica, "").await;
    let names: Vec<_> = all
        .iter()
        .map(|status| status.bucket.as_ref().unwrap().limit.as_str())
        .collect();
    assert_eq!(names, ["limits/guarded", "limits/slots", "limits/strict"]);
    let guarded = &all[0];
    let bucket = guarded.bucket.as_ref().unwrap();
    assert_eq!((bucket.settled, bucket.remaining), (1200, -200));
    assert!(bucket.window_start_time.is_some());
    let worst = guarded.overshoot.as_ref().unwrap();
    let part = &worst.parts[0];
    assert_eq!((worst.amount, part.count), (None, Some(7)));
    assert_eq!(part.cause(), OvershootCause::Estimates);
    // The model has no context window.
    assert_eq!((part.each, part.missing.as_str()), (None, "models/large"));
    for exact in &all[1..] {
        assert_eq!(exact.overshoot.as_ref().unwrap().amount, Some(0));
        let bucket = exact.bucket.as_ref().unwrap();
        assert_eq!(bucket.window_start_time, None);
        assert_eq!(bucket.remaining, bucket.amount);
    }
    assert_eq!(statuses(&replica, "limits/guarded").await, all[..1]);
    let wrong = ListLimitStatusesRequest {
        limit: "teams/blue".into(),
        ..ListLimitStatusesRequest::default()
    };
    let wrong = limits.list_limit_statuses(wrong).await;
    refused(wrong, Code::InvalidArgument, "limit: must have the form");
}

#[tokio::test]
async fn a_team_that_a_limit_names_is_not_deleted() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica.create_team("blue").await;
    let blue = config::Limit {
        subject_id: "blue".into(),
        ..daily_money(1000)
    };
    let mut limits = replica.limits();
    limits.create_limit(create("daily", blue)).await.unwrap();
    let delete = DeleteTeamRequest {
        name: "teams/blue".into(),
    };
    refused(
        replica.teams().delete_team(delete).await,
        Code::FailedPrecondition,
        "teams/blue is in use by limits/daily",
    );
}

#[tokio::test]
async fn thresholds_that_were_passed_are_listed_by_page() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut limits = replica.limits();
    let watched = config::Limit {
        thresholds: vec![50, 100],
        ..daily_money(1000)
    };
    limits.create_limit(create("daily", watched)).await.unwrap();
    let adjusted = limits.adjust_bucket(AdjustBucketRequest {
        limit: "limits/daily".into(),
        subject: "blue".into(),
        delta: 1200,
        reason: "billed elsewhere".into(),
    });
    adjusted.await.unwrap();
    let request = |page_size, page_token| ListLimitEventsRequest {
        limit: "limits/daily".into(),
        undelivered: true,
        page_size,
        page_token,
    };
    // They are raised within seconds.
    let raised = crate::harness::soon(async {
        loop {
            let mut limits = replica.limits();
            let listed = limits.list_limit_events(request(0, String::new())).await;
            let events = listed.unwrap().into_inner().events;
            if events.len() == 2 {
                return events;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    })
    .await;
    assert_eq!(raised[0].state(), DeliveryState::Pending);
    assert!(raised[0].next_try_time.is_some() && raised[0].reset_time.is_some());
    assert_eq!((raised[0].settled, raised[0].amount), (1200, 1000));
    let first = limits.list_limit_events(request(1, String::new())).await;
    let first = first.unwrap().into_inner();
    let second = limits.list_limit_events(request(1, first.next_page_token));
    let second = second.await.unwrap().into_inner();
    assert_eq!([first.events, second.events].concat(), raised);
    let lost = limits.list_unaccounted(ListUnaccountedRequest::default());
    assert_eq!(lost.await.unwrap().into_inner().unaccounted, []);
}
