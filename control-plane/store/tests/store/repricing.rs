//! Usage priced anew: entered beside what was booked, once, and never instead of it.

use control_plane_core::ledger::RepriceFilter;
use control_plane_core::resource::{OnUnknownPrice, Price, Rates, Settings, TierPrice};
use control_plane_store::{
    Error, RepriceAnswer, RepriceRequest, RepricedTarget, Store, UsageQuery, UsageRow,
};
use prost::Message as _;
use proto::metering::v1::{self as metering, UsageRecord, UsageSource};
use time::macros::datetime;

use crate::database::{TestDatabase, actor};
use crate::ledger::{ADMITTED, batch, record, shard};

fn priced(upstream_model: &str, input_pusd: u64) -> Price {
    Price {
        provider: "p".into(),
        upstream_model: upstream_model.into(),
        rates: Rates {
            input_pusd: Some(input_pusd),
            output_pusd: Some(0),
            ..Rates::default()
        },
        ..Price::default()
    }
}

/// One attempt of 1,000 input tokens, booked at `cost_nusd`.
fn used(number: u64, upstream_model: &str, cost_nusd: Option<u64>) -> UsageRecord {
    let usage = metering::Usage {
        input: 1_000,
        source: UsageSource::Reported.into(),
        ..metering::Usage::default()
    };
    UsageRecord {
        attempts: vec![metering::Attempt {
            provider: "p".into(),
            upstream_model: upstream_model.into(),
            model: "m".into(),
            usage: Some(usage),
            costs: vec![metering::ClassCost {
                token_class: 1,
                tokens: 1_000,
                cost_nusd,
            }],
            ..metering::Attempt::default()
        }],
        ..record(number)
    }
}

async fn book(store: &Store, prices: Vec<Price>) -> u64 {
    let stored = store.update_price_book(&actor(), prices).await.unwrap();
    stored.resource.version
}

async fn take(store: &Store, records: &[UsageRecord]) {
    let records = records.iter().map(UsageRecord::encode_to_vec).collect();
    store
        .apply_usage(vec![batch(shard(0), 1, records)])
        .await
        .unwrap();
}

fn everything(request_id: &str) -> RepriceRequest {
    RepriceRequest {
        start: ADMITTED,
        end: Some(datetime!(2026-12-02 0:00 UTC)),
        filter: RepriceFilter::default(),
        reason: "price off by 10^3".into(),
        dry_run: false,
        request_id: request_id.into(),
    }
}

async fn reprice(store: &Store, request: &RepriceRequest) -> RepriceAnswer {
    store.reprice_usage(&actor(), request).await.unwrap()
}

async fn sums(store: &Store) -> UsageRow {
    let query = UsageQuery {
        start: Some(datetime!(2026-01-01 0:00 UTC)),
        ..UsageQuery::default()
    };
    let mut rows = store.query_usage(&query).await.unwrap();
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

/// Booked, corrected, unpriced.
async fn money(store: &Store) -> (i64, i64, i64) {
    let row = sums(store).await;
    let sums = row.sums;
    (sums.cost_nusd, row.correction_nusd, sums.unpriced_attempts)
}

#[tokio::test]
async fn a_price_booked_wrong_is_healed_by_corrections_through_the_api() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    take(
        store,
        &[
            used(0, "wrong", Some(1_000_000_000)),
            used(1, "wrong", Some(1_000_000_000)),
            used(2, "new", None),
            used(3, "unknown", None),
        ],
    )
    .await;
    assert_eq!(money(store).await, (2_000_000_000, 0, 2));
    let version = book(store, vec![priced("wrong", 1_000), priced("new", 2_000)]).await;

    let mut dry = everything("id-1");
    dry.dry_run = true;
    let expected = RepriceAnswer {
        price_version: version,
        attempts: 4,
        skipped_attempts: 1,
        from_nusd: 2_000_000_000,
        to_nusd: 4_000,
        entries: 3,
        targets: vec![
            RepricedTarget {
                provider: "p".into(),
                upstream_model: "wrong".into(),
                priced_attempts: 0,
                delta_nusd: -1_999_998_000,
            },
            RepricedTarget {
                provider: "p".into(),
                upstream_model: "new".into(),
                priced_attempts: 1,
                delta_nusd: 2_000,
            },
        ],
        is_repeated: false,
    };
    assert_eq!(reprice(store, &dry).await, expected);
    assert_eq!(money(store).await, (2_000_000_000, 0, 2), "nothing entered");

    assert_eq!(reprice(store, &everything("id-1")).await, expected);
    assert_eq!(money(store).await, (2_000_000_000, -1_999_996_000, 1));
    let booked = "select sum(cost_nusd)::bigint from usage_rollup";
    assert_eq!(database.number(booked).await, 2_000_000_000);
    let audited = "select count(*) from audit_entry where method = 'RepriceUsage'";
    assert_eq!(database.number(audited).await, 1);
    database.drop().await;
}

#[tokio::test]
async fn a_repeated_request_changes_nothing_and_another_under_its_id_is_refused() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    take(store, &[used(0, "m", Some(7))]).await;
    book(store, vec![priced("m", 1_000)]).await;
    let first = reprice(store, &everything("id-1")).await;
    // Also when prices have changed meanwhile.
    book(store, vec![priced("m", 9_000)]).await;
    let again = reprice(store, &everything("id-1")).await;
    assert!(again.is_repeated);
    let again = RepriceAnswer {
        is_repeated: false,
        ..again
    };
    assert_eq!(again, first);
    assert_eq!(money(store).await, (7, 993, 0));

    let mut other = everything("id-1");
    other.reason = "another".into();
    let refused = store.reprice_usage(&actor(), &other).await;
    let Err(Error::Invalid(faults)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(faults[0].field, "request_id");

    // A new one goes on from there, and once more finds nothing left.
    let second = reprice(store, &everything("")).await;
    assert_eq!(
        (second.from_nusd, second.to_nusd, second.entries),
        (1_000, 9_000, 1)
    );
    assert_eq!(reprice(store, &everything("")).await.entries, 0);
    assert_eq!(money(store).await, (7, 8_993, 0));
    database.drop().await;
}

#[tokio::test]
async fn two_at_once_correct_once() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let many: Vec<_> = (0..40).map(|number| used(number, "m", Some(0))).collect();
    take(store, &many).await;
    book(store, vec![priced("m", 1_000)]).await;
    let other = database.replica().await;
    let request = everything("");
    let (here, there) = tokio::join!(reprice(store, &request), reprice(&other, &request));
    assert!(here.entries.min(there.entries) == 0 && here.entries.max(there.entries) > 0);
    assert_eq!(money(store).await, (0, 40_000, 0));
    database.drop().await;
}

#[tokio::test]
async fn only_the_slots_models_and_providers_asked_for_are_corrected() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    // Record n is admitted n minutes after 23:50.
    let records = [
        used(0, "m", Some(0)),
        used(10, "m", Some(0)),
        used(25, "m", Some(0)),
    ];
    take(store, &records).await;
    book(store, vec![priced("m", 1_000)]).await;
    let of = async |start, end, filter: RepriceFilter| {
        let request = RepriceRequest {
            start,
            end: Some(end),
            filter,
            dry_run: true,
            ..everything("")
        };
        reprice(store, &request).await.to_nusd
    };
    let all = RepriceFilter::default;
    let midnight = datetime!(2026-12-01 0:00 UTC);
    assert_eq!(of(ADMITTED, midnight, all()).await, 1_000);
    let within = (
        datetime!(2026-12-01 0:01 UTC),
        datetime!(2026-12-01 0:02 UTC),
    );
    assert_eq!(of(within.0, within.1, all()).await, 1_000, "its whole slot");
    assert_eq!(
        of(ADMITTED, datetime!(2026-12-01 0:16 UTC), all()).await,
        3_000
    );
    for (model, provider, expected) in [("m", "p", 3_000), ("other", "p", 0), ("m", "other", 0)] {
        let filter = RepriceFilter {
            model: Some(model.into()),
            provider: Some(provider.into()),
        };
        let end = datetime!(2026-12-02 0:00 UTC);
        assert_eq!(
            of(ADMITTED, end, filter).await,
            expected,
            "{model} {provider}"
        );
    }
    let backwards = RepriceRequest {
        start: midnight,
        end: Some(ADMITTED),
        ..everything("")
    };
    let refused = store.reprice_usage(&actor(), &backwards).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    database.drop().await;
}

#[tokio::test]
async fn days_whose_records_are_gone_are_corrected_by_their_sums_where_these_tell() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let records = [
        used(0, "m", Some(0)),
        used(1, "tiered", Some(5)),
        used(20, "m", Some(0)),
    ];
    take(store, &records).await;
    let mut tiered = priced("tiered", 1_000);
    tiered.tiers.push(TierPrice {
        tier: "flex".into(),
        factor_permille: 500,
        ..TierPrice::default()
    });
    book(store, vec![priced("m", 1_000), tiered]).await;
    database
        .execute("delete from usage_record where day = '2026-11-30'")
        .await;
    let answer = reprice(store, &everything("")).await;
    assert_eq!((answer.attempts, answer.skipped_attempts), (3, 1));
    assert_eq!(money(store).await, (5, 2_000, 0));
    database.drop().await;
}

#[tokio::test]
async fn the_default_price_of_the_settings_counts_where_the_book_has_none() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    take(store, &[used(0, "m", None)]).await;
    let settings = Settings {
        on_unknown_price: Some(OnUnknownPrice::Default),
        default_price: Some(priced("", 3_000).rates),
        ..Settings::default()
    };
    store.update_settings(&actor(), settings).await.unwrap();
    let answer = reprice(store, &everything("")).await;
    assert_eq!((answer.price_version, answer.to_nusd), (0, 3_000));
    assert_eq!(money(store).await, (0, 3_000, 0));
    database.drop().await;
}
