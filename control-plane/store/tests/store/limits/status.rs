//! How limits stand.

use control_plane_core::resource::LimitUnit;
use control_plane_store::{LimitStatus, Page, PageRequest, StatusFilter};

use super::*;

async fn statuses(store: &Store, filter: &StatusFilter) -> Vec<LimitStatus> {
    let mut all = Vec::new();
    let mut token = String::new();
    loop {
        let request = PageRequest { size: 1, token };
        let listed = store.limit_statuses(filter, &request).await;
        let Page {
            items,
            next_page_token,
        } = listed.unwrap();
        all.extend(items);
        token = next_page_token;
        if token.is_empty() {
            return all;
        }
    }
}

#[tokio::test]
async fn a_limit_stands_as_its_buckets_do_and_as_it_is_while_nobody_uses_it() {
    let database = budget(1000, 1).await;
    let (store, actor) = (&database.store, actor());
    let unused = limit("unused", LimitUnit::Tokens, LimitWindow::Month, 77);
    store.create_limit(&actor, unused).await.unwrap();
    assert!(
        ask(store, 1, 1, want("daily", 300, 1))
            .await
            .grant
            .is_some()
    );
    let adjusted = store.adjust_bucket(&actor, "daily", "z", 1200, "a test");
    adjusted.await.unwrap();
    // Neither a window that is over nor one that is to come.
    for shift in ["-", "+"] {
        database
            .execute(&format!(
                "insert into limit_bucket (limit_id, subject, window_start, window_end, amount)
                 select limit_id, subject, window_start {shift} interval '1 day',
                        window_end {shift} interval '1 day', amount
                 from limit_bucket where subject = 'k' and window_start = (
                   select max(window_start) from limit_bucket
                   where subject = 'k' and window_start <= turnpike_now())"
            ))
            .await;
    }
    let all = statuses(store, &StatusFilter::default()).await;
    let seen: Vec<_> = all
        .iter()
        .map(|it| {
            (
                it.bucket.limit.as_str(),
                it.bucket.subject.as_str(),
                it.is_used,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("daily", "k", true),
            ("daily", "z", true),
            ("unused", "", false)
        ]
    );
    assert!(all[0].bucket.held > 0 && all[0].bucket.free < 1000);
    assert_eq!((all[1].bucket.settled, all[1].bucket.free), (1200, -200));
    assert_eq!((all[2].bucket.amount, all[2].bucket.free), (77, 77));
    assert_eq!(all[2].bucket.window_end, None);
    let filter = StatusFilter {
        limit: Some("daily".into()),
        subject: Some("z".into()),
    };
    assert_eq!(statuses(store, &filter).await, all[1..2]);
}

#[tokio::test]
async fn what_was_given_up_on_is_shown_as_part_of_what_is_suspended() {
    let database = budget(1000, 2).await;
    let store = &database.store;
    assert!(ask(store, 1, 1, want("daily", 40, 1)).await.grant.is_some());
    database
        .execute(
            "update limit_lease set lost_at = turnpike_now(), unaccounted = granted;
             update limit_bucket set suspended = held, held = 0",
        )
        .await;
    assert_balanced(&database).await;
    let status = statuses(store, &StatusFilter::default()).await.remove(0);
    assert!(status.unaccounted > 0);
    assert_eq!(status.unaccounted, status.bucket.suspended);
}
