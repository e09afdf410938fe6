use super::*;
use crate::openai::answer::read_whole;

fn usage(members: &str) -> Option<Usage> {
    read_whole(format!(r#"{{"choices":[],"usage":{{{members}}}}}"#).as_bytes()).usage
}

fn counts(members: &str) -> [u64; 5] {
    let usage = usage(members).expect("a report");
    let Usage {
        input,
        cached_input,
        cache_write,
        output,
        reasoning,
        ..
    } = usage;
    [input, cached_input, cache_write, output, reasoning]
}

#[test]
fn openai_counts_cached_and_reasoning_tokens_inside() {
    let members = r#""prompt_tokens":1500,"completion_tokens":300,"total_tokens":1800,
        "prompt_tokens_details":{"cached_tokens":1400,"audio_tokens":7},
        "completion_tokens_details":{"reasoning_tokens":120,"audio_tokens":9,
        "accepted_prediction_tokens":3}"#;
    assert_eq!(counts(members), [1500, 1400, 0, 300, 120]);
    let usage = usage(members).unwrap();
    assert_eq!((usage.input_audio, usage.output_audio), (7, 9));
}

#[test]
fn xai_counts_reasoning_beside_the_completion() {
    let by_total = r#""prompt_tokens":30,"completion_tokens":100,"total_tokens":180,
        "completion_tokens_details":{"reasoning_tokens":50}"#;
    assert_eq!(counts(by_total), [30, 0, 0, 150, 50]);
    let by_size = r#""prompt_tokens":30,"completion_tokens":10,
        "completion_tokens_details":{"reasoning_tokens":50}"#;
    assert_eq!(counts(by_size), [30, 0, 0, 60, 50]);
}

#[test]
fn deepseek_counts_cache_hits_and_misses() {
    let members = r#""prompt_tokens":100,"prompt_cache_hit_tokens":64,
        "prompt_cache_miss_tokens":36,"completion_tokens":5,"total_tokens":105"#;
    assert_eq!(counts(members), [100, 64, 0, 5, 0]);
    let without_prompt = r#""prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36,
        "completion_tokens":5"#;
    assert_eq!(counts(without_prompt), [100, 64, 0, 5, 0]);
}

#[test]
fn cache_counters_are_read_inside_or_beside_the_prompt() {
    let inside = r#""prompt_tokens":100,"completion_tokens":1,
        "prompt_tokens_details":{"cached_tokens":20,"cache_write_tokens":30}"#;
    assert_eq!(counts(inside), [100, 20, 30, 1, 0]);
    let beside = r#""prompt_tokens":4,"completion_tokens":3,
        "cache_creation_input_tokens":900,"cache_read_input_tokens":50"#;
    assert_eq!(counts(beside), [954, 50, 900, 3, 0]);
    let hour = r#""prompt_tokens":4,"completion_tokens":3,"cache_creation_input_tokens":900,
        "cache_creation":{"ephemeral_5m_input_tokens":800,"ephemeral_1h_input_tokens":100}"#;
    let usage = usage(hour).unwrap();
    assert_eq!((usage.cache_write, usage.cache_write_1h), (900, 100));
    let top_level = r#""prompt_tokens":10,"completion_tokens":3,"cached_tokens":6"#;
    assert_eq!(counts(top_level), [10, 6, 0, 3, 0]);
}

#[test]
fn a_missing_half_is_taken_from_the_total() {
    assert_eq!(
        counts(r#""prompt_tokens":9,"total_tokens":12"#),
        [9, 0, 0, 3, 0]
    );
    assert_eq!(
        counts(r#""completion_tokens":5,"total_tokens":12"#),
        [7, 0, 0, 5, 0]
    );
    assert_eq!(counts(r#""prompt_tokens":9"#), [9, 0, 0, 0, 0]);
}

#[test]
fn numbers_in_odd_forms_are_read_or_absent_and_never_panic() {
    assert_eq!(
        counts(r#""prompt_tokens":"12","completion_tokens":3.9"#),
        [12, 0, 0, 3, 0]
    );
    assert_eq!(
        counts(r#""prompt_tokens":1.2e1,"completion_tokens":-3"#),
        [12, 0, 0, 0, 0]
    );
    let huge = "9".repeat(30);
    let members = format!(r#""prompt_tokens":5,"completion_tokens":{huge}"#);
    assert_eq!(counts(&members), [5, 0, 0, 0, 0]);
    let huger = "9".repeat(400);
    let members = format!(r#""prompt_tokens":5,"completion_tokens":{huger}"#);
    assert_eq!(counts(&members), [5, 0, 0, 0, 0]);
    assert_eq!(
        usage(r#""prompt_tokens":true,"completion_tokens":[1]"#),
        None
    );
    assert_eq!(usage(r#""prompt_tokens":"\u0031""#), None);
}

#[test]
fn an_object_without_tokens_is_no_report() {
    assert_eq!(usage(""), None);
    assert_eq!(
        usage(r#""prompt_tokens":0,"completion_tokens":0,"total_tokens":0"#),
        None
    );
    assert_eq!(
        usage(r#""prompt_tokens":null,"completion_tokens":null"#),
        None
    );
}

#[test]
fn parts_larger_than_their_whole_are_cut() {
    let members = r#""prompt_tokens":10,"completion_tokens":2,
        "prompt_tokens_details":{"cached_tokens":11}"#;
    assert_eq!(counts(members), [10, 10, 0, 2, 0]);
}
