//! Usage: counted once, shown when lost, summed exactly.

use control_plane_core::ledger::{Answer, Content, Delivery, RollupSums, Shard};
use control_plane_core::nodes::BootId;
use control_plane_store::{GroupBy, PageRequest, RecordFilter, Store, UsageQuery};
use prost::Message as _;
use proto::metering::v1::{self as metering, UsageRecord, UsageSource};
use time::OffsetDateTime;
use time::macros::datetime;

use crate::database::{TestDatabase, first_page};

pub(crate) fn shard(number: u32) -> Shard {
    Shard {
        boot_id: BootId([7; 16]),
        number,
    }
}

pub(crate) fn batch(shard: Shard, first_seq: u64, records: Vec<Vec<u8>>) -> Delivery {
    Delivery {
        shard,
        content: Content::Records { first_seq, records },
    }
}

fn gap(from_seq: u64, to_seq: u64) -> Delivery {
    Delivery {
        shard: shard(0),
        content: Content::Gap {
            from_seq,
            to_seq,
            reason: 2,
        },
    }
}

pub(crate) const ADMITTED: OffsetDateTime = datetime!(2026-11-30 23:50 UTC);

/// A record with one priced attempt; distinct by its number.
pub(crate) fn record(number: u64) -> UsageRecord {
    let admitted_at_us = i64::try_from(ADMITTED.unix_timestamp_nanos() / 1000).unwrap();
    UsageRecord {
        request_id: format!("r-{number}"),
        admitted_at_us: admitted_at_us + i64::try_from(number).unwrap() * 60_000_000,
        caller: Some(metering::Caller {
            key: format!("k{}", number % 3),
            team: "t".into(),
            end_user: "u".into(),
        }),
        decision: Some(metering::Decision {
            model: "m".into(),
            ..Default::default()
        }),
        attempts: vec![metering::Attempt {
            provider: "p".into(),
            model: "m".into(),
            usage: Some(metering::Usage {
                input: 100 + number,
                output: 10,
                source: UsageSource::Reported.into(),
                ..Default::default()
            }),
            costs: vec![metering::ClassCost {
                token_class: 1,
                tokens: 100,
                cost_nusd: Some(1000 + number),
            }],
            ..Default::default()
        }],
        price_version: 1,
        status: 200,
        ..Default::default()
    }
}

pub(crate) fn records(numbers: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    numbers
        .map(|number| record(number).encode_to_vec())
        .collect()
}

pub(crate) async fn total(store: &Store) -> RollupSums {
    let query = UsageQuery {
        start: Some(datetime!(2026-01-01 0:00 UTC)),
        ..UsageQuery::default()
    };
    let rows = store.query_usage(&query).await.unwrap();
    rows.first().map(|row| row.sums).unwrap_or_default()
}

/// Whether every sum of the roll-ups is the sum of the records.
pub(crate) async fn assert_rollups_are_the_records(database: &TestDatabase) {
    for (rollup, of_records) in [
        ("requests", "count(*) filter (where decoded)"),
        ("attempts", "sum(attempts)"),
        ("input_tokens", "sum(input_tokens)"),
        ("cached_input_tokens", "sum(cached_input_tokens)"),
        ("cache_write_tokens", "sum(cache_write_tokens)"),
        ("output_tokens", "sum(output_tokens)"),
        ("reasoning_tokens", "sum(reasoning_tokens)"),
        ("estimated_attempts", "sum(estimated_attempts)"),
        ("unpriced_attempts", "sum(unpriced_attempts)"),
        ("cost_nusd", "sum(cost_nusd)"),
    ] {
        let query = format!(
            "select ((select coalesce(sum({rollup}), 0) from usage_rollup)
               - (select coalesce({of_records}, 0) from usage_record))::bigint"
        );
        assert_eq!(database.number(&query).await, 0, "{rollup}");
    }
}

fn ack(through_seq: u64) -> Answer {
    Answer::Ack {
        shard: shard(0),
        through_seq,
    }
}

fn resume(next_seq: u64) -> Answer {
    Answer::Resume {
        shard: shard(0),
        next_seq,
    }
}

#[tokio::test]
async fn duplicates_and_overlaps_count_once() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    assert_eq!(
        store.open_shard(shard(0), "envoy-1").await.unwrap(),
        resume(1)
    );
    let first = batch(shard(0), 1, records(1..4));
    assert_eq!(
        store.apply_usage(vec![first.clone()]).await.unwrap(),
        [ack(3)]
    );
    assert_eq!(
        store.apply_usage(vec![first.clone(), first]).await.unwrap(),
        [ack(3), ack(3)]
    );
    let overlap = batch(shard(0), 2, records(2..6));
    assert_eq!(store.apply_usage(vec![overlap]).await.unwrap(), [ack(5)]);
    assert_eq!(
        store.open_shard(shard(0), "envoy-1").await.unwrap(),
        resume(6)
    );
    assert_eq!(
        database.number("select count(*) from usage_record").await,
        5
    );
    assert_rollups_are_the_records(&database).await;
    assert_eq!(total(store).await.input_tokens, (101..=105).sum::<i64>());
    database.drop().await;
}

#[tokio::test]
async fn a_batch_beyond_a_hole_is_not_taken_until_the_hole_is_filled() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let reordered = vec![
        batch(shard(0), 3, records(3..5)),
        batch(shard(0), 1, records(1..3)),
    ];
    assert_eq!(
        store.apply_usage(reordered.clone()).await.unwrap(),
        [resume(1), ack(2)]
    );
    assert_eq!(
        store.apply_usage(reordered).await.unwrap(),
        [ack(4), ack(4)]
    );
    assert_eq!(
        database.number("select count(*) from usage_record").await,
        4
    );
    assert_rollups_are_the_records(&database).await;
    database.drop().await;
}

#[tokio::test]
async fn a_gap_moves_the_cursor_and_is_shown() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    assert_eq!(
        store.apply_usage(vec![gap(5, 9)]).await.unwrap(),
        [resume(1)]
    );
    let mixed = vec![
        batch(shard(0), 1, records(1..3)),
        gap(2, 9),
        batch(shard(0), 10, records(10..11)),
    ];
    assert_eq!(
        store.apply_usage(mixed.clone()).await.unwrap(),
        [ack(2), ack(9), ack(10)]
    );
    assert_eq!(
        store.apply_usage(mixed).await.unwrap(),
        [ack(10), ack(10), ack(10)]
    );
    let lost =
        "select (to_seq - from_seq + 1)::bigint from usage_gap where reason = 2 and from_seq = 3";
    assert_eq!(database.number(lost).await, 7);
    assert_eq!(
        database.number("select count(*) from usage_record").await,
        3
    );
    database.drop().await;
}

#[tokio::test]
async fn shards_of_many_nodes_go_in_together() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let deliveries: Vec<_> = (0..50)
        .map(|number| batch(shard(number), 1, records(1..4)))
        .collect();
    let answers = store.apply_usage(deliveries).await.unwrap();
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Answer::Ack { through_seq: 3, .. }))
    );
    assert_eq!(total(store).await.requests, 150);
    assert_rollups_are_the_records(&database).await;
    database.drop().await;
}

#[tokio::test]
async fn all_of_many_groups_of_one_flush_are_written() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let records: Vec<_> = (1..=150)
        .map(|number| {
            let mut one = record(1);
            one.caller = Some(metering::Caller {
                key: format!("k{number}"),
                ..Default::default()
            });
            one.encode_to_vec()
        })
        .collect();
    store
        .apply_usage(vec![batch(shard(0), 1, records)])
        .await
        .unwrap();
    let by_key = UsageQuery {
        start: Some(ADMITTED),
        group_by: GroupBy {
            virtual_key: true,
            ..GroupBy::default()
        },
        ..UsageQuery::default()
    };
    assert_eq!(store.query_usage(&by_key).await.unwrap().len(), 150);
    database.drop().await;
}

#[tokio::test]
async fn what_does_not_decode_is_kept_and_holds_nothing_up() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let mut odd = record(3);
    odd.request_id = "nul\0inside".into();
    odd.caller = Some(metering::Caller {
        end_user: "ü".repeat(5000),
        ..Default::default()
    });
    odd.admitted_at_us = i64::MAX;
    odd.end = 99;
    let mut absurd = record(4);
    absurd.attempts[0].usage.as_mut().unwrap().input = u64::MAX;
    let sent = vec![
        record(1).encode_to_vec(),
        vec![0xff; 40],
        odd.encode_to_vec(),
        absurd.encode_to_vec(),
        absurd.encode_to_vec(),
    ];
    let answers = store
        .apply_usage(vec![batch(shard(0), 1, sent)])
        .await
        .unwrap();
    assert_eq!(answers, [ack(5)]);
    assert_eq!(
        database
            .number("select count(*) from usage_record where not decoded")
            .await,
        1
    );
    assert_eq!(
        database
            .number("select octet_length(record)::bigint from usage_record where not decoded")
            .await,
        40
    );
    assert_eq!(
        database
            .number("select ended::bigint from usage_record where seq = 3")
            .await,
        99
    );
    assert_eq!(
        total(store).await.input_tokens,
        i64::MAX,
        "a sum stops at the largest number"
    );
    // The next ones still add up.
    store
        .apply_usage(vec![batch(shard(0), 6, vec![absurd.encode_to_vec()])])
        .await
        .unwrap();
    database.drop().await;
}

#[tokio::test]
async fn usage_is_summed_by_what_is_asked_for() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    // 23:50 and on, one a minute: ten before midnight, ten after.
    store
        .apply_usage(vec![batch(shard(0), 1, records(0..20))])
        .await
        .unwrap();
    let query = |group_by| UsageQuery {
        start: Some(ADMITTED),
        group_by,
        ..UsageQuery::default()
    };
    let days = store
        .query_usage(&query(GroupBy {
            day: true,
            ..GroupBy::default()
        }))
        .await
        .unwrap();
    let told: Vec<_> = days
        .iter()
        .map(|row| (row.slot.unwrap(), row.sums.requests))
        .collect();
    assert_eq!(
        told,
        [
            (datetime!(2026-11-30 0:00 UTC), 10),
            (datetime!(2026-12-01 0:00 UTC), 10)
        ]
    );
    let slots = store
        .query_usage(&query(GroupBy {
            slot: true,
            ..GroupBy::default()
        }))
        .await
        .unwrap();
    assert_eq!(slots.len(), 2);
    assert_eq!(slots[0].slot, Some(datetime!(2026-11-30 23:45 UTC)));
    let keys = store
        .query_usage(&query(GroupBy {
            virtual_key: true,
            provider: true,
            ..GroupBy::default()
        }))
        .await
        .unwrap();
    let told: Vec<_> = keys
        .iter()
        .map(|row| {
            (
                row.virtual_key.as_str(),
                row.provider.as_str(),
                row.sums.requests,
            )
        })
        .collect();
    assert_eq!(told, [("k0", "p", 7), ("k1", "p", 7), ("k2", "p", 6)]);
    assert!(
        keys.iter()
            .all(|row| row.team.is_empty() && row.slot.is_none())
    );
    let one = UsageQuery {
        virtual_key: Some("k2".into()),
        ..query(GroupBy::default())
    };
    let sums = store.query_usage(&one).await.unwrap()[0].sums;
    assert_eq!(
        (sums.requests, sums.cost_nusd),
        (6, (0..20).filter(|n| n % 3 == 2).map(|n| 1000 + n).sum())
    );
    let before = UsageQuery {
        end: Some(datetime!(2026-12-01 0:00 UTC)),
        ..query(GroupBy::default())
    };
    assert_eq!(
        store.query_usage(&before).await.unwrap()[0].sums.requests,
        10
    );
    let nothing = UsageQuery {
        team: Some("ghost".into()),
        ..query(GroupBy::default())
    };
    assert!(store.query_usage(&nothing).await.unwrap().is_empty());
    database.drop().await;
}

#[tokio::test]
async fn records_are_listed_newest_first_and_each_once() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    store.open_shard(shard(0), "envoy-1").await.unwrap();
    store
        .apply_usage(vec![batch(shard(0), 1, records(0..10))])
        .await
        .unwrap();
    // Same moments from another shard: ties are told apart.
    store
        .apply_usage(vec![batch(shard(1), 1, records(0..10))])
        .await
        .unwrap();
    let mut seen = Vec::new();
    let mut request = first_page(7);
    loop {
        let page = store
            .usage_records(&RecordFilter::default(), &request)
            .await
            .unwrap();
        seen.extend(page.items.iter().map(|r| (r.seq, r.shard.number)));
        if page.next_page_token.is_empty() {
            break;
        }
        request = PageRequest {
            size: 7,
            token: page.next_page_token,
        };
    }
    let expected: Vec<_> = (1..=10)
        .rev()
        .flat_map(|seq| [(seq, 1), (seq, 0)])
        .collect();
    assert_eq!(seen, expected);

    let by_request = RecordFilter {
        request_id: Some("r-4".into()),
        ..RecordFilter::default()
    };
    let found = store
        .usage_records(&by_request, &first_page(0))
        .await
        .unwrap()
        .items;
    assert_eq!(found.len(), 2);
    assert_eq!(
        UsageRecord::decode(found[1].record.as_slice()).unwrap(),
        record(4)
    );
    assert_eq!((found[1].node.as_str(), found[1].seq), ("envoy-1", 5));
    let by_key_and_time = RecordFilter {
        virtual_key: Some("k1".into()),
        start: Some(datetime!(2026-11-30 23:52 UTC)),
        end: Some(datetime!(2026-11-30 23:55 UTC)),
        ..RecordFilter::default()
    };
    let found = store
        .usage_records(&by_key_and_time, &first_page(0))
        .await
        .unwrap()
        .items;
    assert_eq!(found.iter().map(|r| r.seq).collect::<Vec<_>>(), [5, 5]);
    database.drop().await;
}

#[tokio::test]
async fn days_have_partitions_and_a_day_without_one_is_kept_too() {
    let database = TestDatabase::new().await;
    let store = &database.store;
    let in_default = "select count(*) from usage_record_default";
    store
        .apply_usage(vec![batch(shard(0), 1, records(0..2))])
        .await
        .unwrap();
    assert_eq!(database.number(in_default).await, 2);
    let first_day =
        "set turnpike.clock_offset = '0'; select make_usage_partitions('2026-11-29', 4)";
    database.execute(first_day).await;
    // 30 November has records in the default partition and stays there; the days around it do not.
    store
        .apply_usage(vec![batch(shard(0), 3, records(2..20))])
        .await
        .unwrap();
    assert_eq!(database.number(in_default).await, 10);
    assert_eq!(
        database
            .number("select count(*) from usage_record_20261201")
            .await,
        10
    );
    let (one, two) = tokio::join!(store.make_partitions(), store.make_partitions());
    one.unwrap();
    two.unwrap();
    let ahead = "select count(*) from pg_inherits where inhparent = 'usage_record'::regclass";
    assert!(database.number(ahead).await >= 8);
    assert_rollups_are_the_records(&database).await;
    database.drop().await;
}
