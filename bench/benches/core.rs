//! Micro benches of the core: a whole request, and the parts that take most of it.
//!
//! `cargo bench -p bench`. Times here wobble with the machine; the budget is held in instructions,
//! by `tests/instructions`.

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use filter_core::key;
use filter_llm::api::Api;
use filter_llm::request::{PathFacts, Request};

#[path = "../../filter/core/examples/one_request/script.rs"]
mod script;

use script::{STREAM_EVENT, Script};

fn requests(criterion: &mut Criterion) {
    let mut script = Script::new();
    let mut group = criterion.benchmark_group("request of 1 KB");
    group.bench_function("plain, begin to settle", |bencher| {
        bencher.iter(|| script.plain_request());
    });
    group.bench_function("stream without events, begin to settle", |bencher| {
        bencher.iter(|| script.stream_request(true, 0));
    });
    group.finish();
}

fn bodies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read a chat request");
    for (name, bytes) in [("1 KB", 1 << 10), ("100 KB", 100 << 10)] {
        let body = body(bytes);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                black_box(
                    Request::parse(Api::ChatCompletions, PathFacts::default(), body.as_bytes())
                        .is_ok(),
                )
            });
        });
    }
    group.finish();
}

fn events(criterion: &mut Criterion) {
    let mut script = Script::new();
    let mut group = criterion.benchmark_group("event of a stream");
    group.throughput(Throughput::Bytes(STREAM_EVENT.len() as u64));
    for (name, asks_usage) in [("passed on", true), ("that may be stripped", false)] {
        let mut exchange = script.open_stream(asks_usage);
        let mut out = Vec::with_capacity(STREAM_EVENT.len());
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                Script::stream_frame(&mut exchange, STREAM_EVENT, &mut out);
                black_box(&out);
            });
        });
        script.end(exchange);
    }
    group.finish();
}

fn keys(criterion: &mut Criterion) {
    let secret = key::mint("k0000001", &[7; 32]);
    let mut group = criterion.benchmark_group("virtual key");
    group.bench_function("check its form", |bencher| {
        bencher.iter(|| key::check(black_box(secret.as_bytes())));
    });
    group.bench_function("hash", |bencher| {
        bencher.iter(|| key::hash(black_box(secret.as_bytes())));
    });
    group.finish();
}

/// A chat of many short messages.
fn body(bytes: usize) -> String {
    let mut messages = r#"{"role":"user","content":"Words, and more words."}"#.to_owned();
    while messages.len() < bytes {
        messages.push_str(r#",{"role":"assistant","content":"An answer of a few words."}"#);
    }
    format!(r#"{{"messages":[{messages}],"stream":true,"model":"public-1"}}"#)
}

/// A third of what criterion takes by itself: what decides is counted, not timed.
fn quick() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! {
    name = core;
    config = quick();
    targets = requests, bodies, events, keys
}
criterion_main!(core);
