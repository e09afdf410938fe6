use proto::config::v1::{Price, PriceBook};
use proto::metering::v1::{Attempt, ClassCost, Usage};

use super::*;
use crate::ledger::{Rollups, Summary};

const ADMITTED_US: i64 = 1_796_083_200_000_000;

fn list(prices: &[(&str, u64)]) -> PriceList {
    let prices = prices.iter().map(|&(model, pusd)| Price {
        provider: "p".into(),
        upstream_model: model.into(),
        input_pusd: Some(pusd),
        output_pusd: Some(pusd),
        ..Price::default()
    });
    let book = PriceBook {
        version: 2,
        prices: prices.collect(),
    };
    PriceList::new(Some(&book), None).0
}

fn attempt(model: &str, input: u64, cost_nusd: Option<u64>) -> Attempt {
    Attempt {
        provider: "p".into(),
        upstream_model: model.into(),
        model: format!("public-{model}"),
        usage: Some(Usage {
            input,
            ..Usage::default()
        }),
        costs: vec![ClassCost {
            token_class: 1,
            tokens: input,
            cost_nusd,
        }],
        ..Attempt::default()
    }
}

fn record(attempts: Vec<Attempt>) -> Vec<u8> {
    UsageRecord {
        admitted_at_us: ADMITTED_US,
        attempts,
        price_version: 1,
        ..UsageRecord::default()
    }
    .encode_to_vec()
}

fn reprice(
    prices: &PriceList,
    filter: &RepriceFilter,
    records: &[Vec<u8>],
    corrected: &BTreeMap<RollupKey, Corrected>,
) -> Repriced {
    let mut repricing = Repricing::new(prices, filter);
    for record in records {
        repricing.add_record(record, ADMITTED_US).unwrap();
    }
    repricing.finish(corrected)
}

fn deltas(repriced: &Repriced) -> Vec<(&str, i64, i64)> {
    let each = repriced.corrections.iter();
    each.map(|it| {
        (
            it.key.upstream_model.as_str(),
            it.delta_nusd,
            it.priced_attempts,
        )
    })
    .collect()
}

#[test]
fn a_price_that_was_wrong_or_unknown_is_corrected_and_an_unknown_one_left_alone() {
    let records = [record(vec![
        attempt("cheap", 1_000, Some(1_000_000)),
        attempt("new", 1_000, None),
        attempt("still-unknown", 1_000, None),
        attempt("same", 1_000, Some(4_000)),
    ])];
    let prices = list(&[("cheap", 1_000), ("new", 2_000), ("same", 4_000)]);
    let all = RepriceFilter::default();
    let repriced = reprice(&prices, &all, &records, &BTreeMap::new());
    assert_eq!(
        deltas(&repriced),
        [("cheap", -999_000, 0), ("new", 2_000, 1)]
    );
    assert_eq!((repriced.attempts, repriced.skipped_attempts), (4, 1));
    assert_eq!((repriced.from_nusd, repriced.to_nusd), (1_004_000, 7_000));
}

#[test]
fn a_second_time_nothing_is_left_to_correct_and_a_third_price_corrects_from_the_second() {
    let records = [record(vec![attempt("m", 1_000, None)])];
    let all = RepriceFilter::default();
    let first = reprice(&list(&[("m", 2_000)]), &all, &records, &BTreeMap::new());
    let corrected: BTreeMap<_, _> = first
        .corrections
        .iter()
        .map(|it| {
            let corrected = Corrected {
                delta_nusd: it.delta_nusd,
                priced_attempts: it.priced_attempts,
            };
            (it.key.clone(), corrected)
        })
        .collect();
    let again = reprice(&list(&[("m", 2_000)]), &all, &records, &corrected);
    assert_eq!(deltas(&again), []);
    assert_eq!((again.from_nusd, again.to_nusd), (2_000, 2_000));
    let third = reprice(&list(&[("m", 5_000)]), &all, &records, &corrected);
    assert_eq!(deltas(&third), [("m", 3_000, 0)]);
    // A book that knows nothing takes nothing back.
    let unknown = reprice(&list(&[]), &all, &records, &corrected);
    assert_eq!((deltas(&unknown), unknown.skipped_attempts), (vec![], 1));
}

#[test]
fn only_what_was_asked_for_is_looked_at() {
    let records = [record(vec![
        attempt("a", 1_000, Some(0)),
        attempt("b", 1_000, Some(0)),
    ])];
    let prices = list(&[("a", 1_000), ("b", 1_000)]);
    for (model, provider, expected) in [
        (Some("public-a"), None, vec![("a", 1_000, 0)]),
        (Some("public-b"), Some("p"), vec![("b", 1_000, 0)]),
        (None, Some("q"), vec![]),
    ] {
        let filter = RepriceFilter {
            model: model.map(str::to_owned),
            provider: provider.map(str::to_owned),
        };
        let repriced = reprice(&prices, &filter, &records, &BTreeMap::new());
        assert_eq!(deltas(&repriced), expected);
    }
}

#[test]
fn sums_whose_records_are_gone_give_the_same_corrections_as_the_records() {
    let record = record(vec![
        attempt("a", 1_000, Some(7)),
        attempt("b", 500, None),
        attempt("unknown", 5, Some(3)),
    ]);
    let prices = list(&[("a", 1_000), ("b", 1_000)]);
    let all = RepriceFilter::default();
    let mut rollups = Rollups::default();
    Summary::read(&record, ADMITTED_US, &mut rollups).unwrap();
    let mut of_sums = Repricing::new(&prices, &all);
    for (key, sums) in rollups.iter() {
        of_sums.add_sums(key.clone(), sums);
    }
    let of_records = reprice(&prices, &all, &[record], &BTreeMap::new());
    assert_eq!(of_sums.finish(&BTreeMap::new()), of_records);
    assert_eq!(deltas(&of_records), [("a", 993, 0), ("b", 500, 1)]);
}
