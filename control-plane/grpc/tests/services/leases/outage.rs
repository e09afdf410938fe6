//! Processes that fall silent, and a store that does.

use sqlx::Connection as _;

use super::*;

/// Lets a test move the database's clock for everyone at once.
async fn loosen_clock(database: &Database) {
    database
        .execute(
            "create table test_clock_offset (by interval not null);
             insert into test_clock_offset values ('0');
             create or replace function turnpike_now() returns timestamptz
               language sql volatile
               return (select clock_timestamp() + max(by) from test_clock_offset);",
        )
        .await;
}

async fn ticks(connection: &mut sqlx::PgConnection) -> i64 {
    sqlx::query_scalar("select ticks from lease_clock")
        .fetch_one(connection)
        .await
        .unwrap()
}

/// Moves the clock on, never by so much between two signs of life of the control plane that it
/// would take itself for having been away.
async fn move_clock(database: &Database, seconds: u32) {
    let mut connection = database.connect().await;
    for _ in 0..seconds.div_ceil(3) {
        let before = ticks(&mut connection).await;
        database
            .execute("update test_clock_offset set by = by + interval '3 seconds'")
            .await;
        soon(async {
            while ticks(&mut connection).await == before {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_process_that_falls_silent_is_fenced_and_its_credit_suspended_until_it_closes() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    loosen_clock(&database).await;
    create_limit(&replica, "all", LimitUnit::Tokens, 1000).await;
    let mut silent = Process::connect(&replica, 1).await;
    let mut alive = Process::connect(&replica, 2).await;
    silent.want(want("all", 100, 100)).await;
    alive.want(want("all", 10, 10)).await;
    move_clock(&database, 12).await;
    assert!(matches!(alive.beat().await, Down::Grants(_)));
    move_clock(&database, 12).await;
    soon(async {
        while the_bucket(&replica).await.suspended == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let bucket = the_bucket(&replica).await;
    assert_eq!((bucket.held, bucket.suspended), (10, 100));
    assert!(matches!(alive.beat().await, Down::Grants(_)));
    // It was only slow.
    let Down::Fenced(fenced) = silent.beat().await else {
        panic!("its epoch is over");
    };
    assert_eq!(fenced.epoch, 2);
    silent.epoch = 2;
    let (grant, _) = silent.want(want("all", 5, 5)).await;
    assert_eq!(grant.unwrap().granted_total, 5);
    silent
        .send(Up::Close(Close {
            epoch: 1,
            ..Close::default()
        }))
        .await;
    until_free(&replica, 985).await;
    assert!(matches!(silent.beat().await, Down::Grants(_)));
}

#[tokio::test]
async fn while_the_store_does_not_answer_there_is_no_verdict() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    create_limit(&replica, "all", LimitUnit::Tokens, 1000).await;
    let mut process = Process::connect(&replica, 1).await;
    process.want(want("all", 10, 10)).await;
    let mut connection = database.connect().await;
    let mut tx = connection.begin().await.unwrap();
    sqlx::raw_sql("lock table limit_bucket, node_boot in access exclusive mode")
        .execute(&mut *tx)
        .await
        .unwrap();
    let wants = Wants {
        wants: vec![want("all", 20, 10)],
        epoch: 1,
    };
    process.send(Up::Wants(wants)).await;
    let Down::Unavailable(unavailable) = process.next().await else {
        panic!("no verdict is possible");
    };
    assert_eq!(unavailable.buckets, [bucket("all")]);
    let Down::Unavailable(unavailable) = process.beat().await else {
        panic!("a beat that is not stored does not count");
    };
    assert!(unavailable.buckets.is_empty());
    tx.rollback().await.unwrap();
    let (grant, deny) = process.want(want("all", 20, 10)).await;
    assert_eq!((grant.unwrap().granted_total, deny), (20, None));
    assert!(matches!(process.beat().await, Down::Grants(_)));
}

#[tokio::test]
async fn on_an_older_database_every_process_says_hello_again_with_what_it_holds() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    create_limit(&replica, "all", LimitUnit::Tokens, 1000).await;
    let mut process = Process::connect(&replica, 1).await;
    let (grant, _) = process.want(want("all", 10, 10)).await;
    let granted = grant.unwrap();
    process.beat().await;
    // A standby that did not have the grant takes over.
    database
        .execute(
            "update lease_clock set ticks = 0; delete from limit_lease; delete from node_boot;
             update limit_bucket set held = 0;",
        )
        .await;
    let end = end(process.down).await;
    assert_eq!(end.code(), Code::Unavailable);
    let holding = Holding {
        bucket: granted.bucket,
        granted_total: granted.granted_total,
        returned_total: 0,
        reserved: 10,
    };
    let again = Process::reconnect(&replica, hello(1, 1, vec![holding])).await;
    assert_eq!(again.epoch, 1);
    assert_eq!(the_bucket(&replica).await.held, 10);
}
