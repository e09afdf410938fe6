//! Seeds, many of them.
#![forbid(unsafe_code)]

use tests_sim::run;

#[test]
fn every_invariant_holds_for_every_seed() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|it| it.parse::<u64>().unwrap())
    };
    let seeds = match number("TURNPIKE_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TURNPIKE_SIM_SEEDS").unwrap_or(200),
    };
    let is_logged = number("TURNPIKE_SIM_SEED").is_some();
    let mut failed = Vec::new();
    let mut total = 0;
    for seed in seeds {
        let started = std::time::Instant::now();
        let outcome = run(seed, None, is_logged);
        println!(
            "seed {seed} {} steps {:?} {:?} {:?}",
            outcome.steps,
            started.elapsed(),
            outcome.tally,
            outcome.violation
        );
        total += outcome.steps;
        if let Some(violation) = outcome.violation {
            failed.push((seed, violation));
        }
        for line in outcome.log {
            println!("{line}");
        }
    }
    println!("{total} steps");
    assert!(failed.is_empty(), "{} failed", failed.len());
}
