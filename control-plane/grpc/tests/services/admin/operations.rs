//! The admin API: prices, settings, usage, the audit log, and who may call.

use super::refused;
use crate::harness::{Database, NODE_TOKEN, Replica, bearer, replica};
use prost_types::Timestamp;
use proto::admin::v1::teams_client::TeamsClient;
use proto::admin::v1::{
    GetPriceBookRequest, GetSettingsRequest, ListAuditEntriesRequest, ListTeamsRequest, PriceBook,
    QueryUsageRequest, RepriceUsageRequest, Settings, UpdatePriceBookRequest,
    UpdateSettingsRequest,
};
use proto::config::v1::{
    LongContext, OnUnknownPrice, OnUnknownUsage, Price, Rates, Settings as SettingsValues,
    TierPrice, TimeOfDayPrice,
};
use tonic::Code;

#[tokio::test]
async fn the_price_book_and_the_settings() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica.create_provider("acme").await;
    let mut books = replica.price_books();
    let empty = books
        .get_price_book(GetPriceBookRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!((empty.name.as_str(), empty.version), ("priceBook", 0));
    let price = Price {
        provider: "acme".into(),
        upstream_model: "upstream-1".into(),
        input_pusd: Some(1_000_000),
        ..Price::default()
    };
    let update = |prices: Vec<Price>| UpdatePriceBookRequest {
        price_book: Some(PriceBook {
            prices,
            ..PriceBook::default()
        }),
    };
    let book = books
        .update_price_book(update(vec![price.clone()]))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (book.version, book.prices.as_slice()),
        (1, [price.clone()].as_slice())
    );
    let book = books
        .update_price_book(update(vec![price.clone()]))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(book.version, 2);
    let twice = books
        .update_price_book(update(vec![price.clone(), price]))
        .await;
    refused(twice, Code::InvalidArgument, "prices[1]");

    let mut settings = replica.settings();
    let values = SettingsValues {
        max_stale_s: 60,
        on_unknown_usage: OnUnknownUsage::Void.into(),
        ..SettingsValues::default()
    };
    let update = UpdateSettingsRequest {
        settings: Some(Settings {
            values: Some(values),
            ..Settings::default()
        }),
    };
    let updated = settings.update_settings(update).await.unwrap().into_inner();
    assert_eq!(updated.values, Some(values));
    let got = settings
        .get_settings(GetSettingsRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(got, updated);
    let wrong = UpdateSettingsRequest {
        settings: Some(Settings {
            values: Some(SettingsValues {
                on_unknown_usage: 9,
                ..SettingsValues::default()
            }),
            ..Settings::default()
        }),
    };
    refused(
        settings.update_settings(wrong).await,
        Code::InvalidArgument,
        "values.on_unknown_usage: ",
    );
}

#[tokio::test]
async fn a_price_with_all_its_parts_comes_back_as_it_went() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica.create_provider("acme").await;
    let rates = Rates {
        input_pusd: Some(5),
        output_pusd: Some(6),
        cache_write_1h_pusd: Some(7),
        ..Rates::default()
    };
    let price = Price {
        provider: "acme".into(),
        upstream_model: "upstream-1".into(),
        input_pusd: Some(1),
        output_pusd: Some(2),
        output_audio_pusd: Some(3),
        long_context: Some(LongContext {
            above_input_tokens: 9,
            rates: Some(rates),
        }),
        tiers: vec![TierPrice {
            tier: "flex".into(),
            factor_permille: 500,
            ..TierPrice::default()
        }],
        times_of_day: vec![TimeOfDayPrice {
            from_minute: 60,
            to_minute: 240,
            weekdays: vec![1],
            rates: Some(rates),
            ..TimeOfDayPrice::default()
        }],
        ..Price::default()
    };
    let update = |price: &Price| UpdatePriceBookRequest {
        price_book: Some(PriceBook {
            prices: vec![price.clone()],
            ..PriceBook::default()
        }),
    };
    let mut books = replica.price_books();
    let book = books.update_price_book(update(&price)).await.unwrap();
    assert_eq!(book.into_inner().prices, std::slice::from_ref(&price));
    let mut wrong = price;
    wrong.tiers[0].factor_permille = 0;
    refused(
        books.update_price_book(update(&wrong)).await,
        Code::InvalidArgument,
        "prices[0].tiers[0].rates: ",
    );
}

#[tokio::test]
async fn a_default_price_is_kept_and_wanted_where_it_is_to_be_charged() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let rates = Rates {
        input_pusd: Some(5),
        output_pusd: Some(6),
        ..Rates::default()
    };
    let settings = |default_price| UpdateSettingsRequest {
        settings: Some(Settings {
            values: Some(SettingsValues {
                on_unknown_price: OnUnknownPrice::Default.into(),
                default_price,
                ..SettingsValues::default()
            }),
            ..Settings::default()
        }),
    };
    let mut client = replica.settings();
    let updated = client.update_settings(settings(Some(rates))).await.unwrap();
    let values = updated.into_inner().values.unwrap();
    assert_eq!(values.default_price, Some(rates));
    refused(
        client.update_settings(settings(None)).await,
        Code::InvalidArgument,
        "values.default_price: ",
    );
}

#[tokio::test]
async fn a_reprice_needs_a_start_and_a_reason_and_has_nothing_to_do_at_first() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut usage = replica.usage();
    let request = RepriceUsageRequest {
        start_time: Some(Timestamp {
            seconds: 1_796_083_200,
            nanos: 0,
        }),
        end_time: Some(Timestamp {
            seconds: 1_796_083_201,
            nanos: 0,
        }),
        reason: "why".into(),
        request_id: "r-1".into(),
        ..RepriceUsageRequest::default()
    };
    let answer = usage.reprice_usage(request.clone()).await.unwrap();
    let answer = answer.into_inner();
    assert_eq!((answer.attempts, answer.repeated_request), (0, false));
    let again = usage.reprice_usage(request.clone()).await.unwrap();
    assert!(again.into_inner().repeated_request);
    let endless = RepriceUsageRequest {
        start_time: None,
        ..request.clone()
    };
    refused(
        usage.reprice_usage(endless).await,
        Code::InvalidArgument,
        "start_time: ",
    );
    let silent = RepriceUsageRequest {
        reason: String::new(),
        ..request.clone()
    };
    refused(
        usage.reprice_usage(silent).await,
        Code::InvalidArgument,
        "reason: ",
    );
    let nameless = RepriceUsageRequest {
        model: "acme".into(),
        ..request
    };
    refused(
        usage.reprice_usage(nameless).await,
        Code::InvalidArgument,
        "model: ",
    );
}

#[tokio::test]
async fn usage_questions_that_make_no_sense_are_refused() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let ask = |request: QueryUsageRequest| {
        let mut usage = replica.usage();
        async move { usage.query_usage(request).await }
    };
    let group_by = |dimensions: &[i32]| QueryUsageRequest {
        group_by: dimensions.to_vec(),
        ..QueryUsageRequest::default()
    };
    refused(
        ask(group_by(&[1, 0])).await,
        Code::InvalidArgument,
        "group_by[1]: ",
    );
    refused(
        ask(group_by(&[5, 6])).await,
        Code::InvalidArgument,
        "group_by: ",
    );
    let nanos = QueryUsageRequest {
        start_time: Some(Timestamp {
            seconds: 0,
            nanos: -1,
        }),
        ..QueryUsageRequest::default()
    };
    refused(ask(nanos).await, Code::InvalidArgument, "start_time: ");
    let bare = QueryUsageRequest {
        team: "blue".into(),
        ..QueryUsageRequest::default()
    };
    refused(ask(bare).await, Code::InvalidArgument, "team: ");
    assert!(ask(QueryUsageRequest::default()).await.is_ok());
}

#[tokio::test]
async fn every_change_leaves_an_audit_entry() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica.seed().await;
    let list = |page_size, page_token| ListAuditEntriesRequest {
        page_size,
        page_token,
    };
    let page = replica
        .config()
        .list_audit_entries(list(4, String::new()))
        .await;
    let page = page.unwrap().into_inner();
    let methods: Vec<&str> = page
        .entries
        .iter()
        .map(|entry| entry.method.as_str())
        .collect();
    assert_eq!(
        methods,
        [
            "UpdateRuleSet",
            "CreateModel",
            "CreateCredential",
            "CreateProvider"
        ]
    );
    assert_eq!(page.entries[1].resource, "models/large");
    assert_eq!(page.entries[1].actor, "admin-token");
    assert!(page.entries[1].state.contains("upstream-1"));
    let page = replica
        .config()
        .list_audit_entries(list(4, page.next_page_token))
        .await;
    let page = page.unwrap().into_inner();
    let methods: Vec<&str> = page
        .entries
        .iter()
        .map(|entry| entry.method.as_str())
        .collect();
    // The deployment's first version is the control plane's own doing.
    assert_eq!(
        methods,
        ["CreateVirtualKey", "CreateTeam", "PublishPending"]
    );
    assert_eq!(page.next_page_token, "");
}

#[tokio::test]
async fn only_the_admin_token_opens_the_admin_api() {
    let database = Database::create().await;
    let replica: Replica = replica(&database, true).await;
    for token in ["wrong-token-0123456789", NODE_TOKEN] {
        let mut teams = TeamsClient::with_interceptor(replica.channel.clone(), bearer(token));
        let refusal = teams.list_teams(ListTeamsRequest::default()).await;
        refused(refusal, Code::Unauthenticated, "");
    }
    let mut nobody = TeamsClient::new(replica.channel.clone());
    let refusal = nobody.list_teams(ListTeamsRequest::default()).await;
    refused(refusal, Code::Unauthenticated, "");
}
