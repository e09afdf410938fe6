use super::*;
use crate::reading::Finish;
use crate::usage::Usage;
use proptest::prelude::*;

const NO_CAP: usize = 1 << 20;

fn metered(usage_members: UsageMembers, pieces: &[&[u8]], cap: usize) -> (Vec<u8>, Reading) {
    let mut meter = StreamMeter::new(Api::ChatCompletions, usage_members, cap);
    let mut out = Vec::new();
    for piece in pieces {
        meter.transform(piece, &mut out);
    }
    meter.finish(&mut out);
    (out, meter.reading().clone())
}

fn read(stream: &str) -> Reading {
    metered(UsageMembers::Keep, &[stream.as_bytes()], NO_CAP).1
}

fn strip(stream: &str) -> String {
    let (out, _) = metered(UsageMembers::Strip, &[stream.as_bytes()], NO_CAP);
    String::from_utf8(out).unwrap()
}

fn counts(reading: &Reading) -> Option<(u64, u64)> {
    let Usage { input, output, .. } = reading.usage?;
    Some((input, output))
}

#[test]
fn usage_reported_again_and_again_is_never_summed() {
    let stream: String = (1..=4)
        .map(|output| {
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"content\":\"x\"}}}}],\"usage\":\
                 {{\"prompt_tokens\":12,\"completion_tokens\":{output}}}}}\n\n"
            )
        })
        .collect();
    assert_eq!(counts(&read(&stream)), Some((12, 4)));
}

#[test]
fn a_null_or_empty_report_after_a_real_one_takes_nothing_back() {
    let reading = read(
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n\
         data: {\"usage\":{}}\n\n",
    );
    assert_eq!(counts(&reading), Some((5, 2)));
    assert_eq!(reading.finish, Some(Finish::Stop));
}

#[test]
fn usage_after_the_end_marker_is_read_too() {
    let reading =
        read("data: [DONE]\n\ndata: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n");
    assert!(reading.is_done);
    assert_eq!(counts(&reading), Some((5, 2)));
}

#[test]
fn a_stream_of_null_usage_has_no_report_but_an_output_to_estimate_from() {
    let stream =
        "data: {\"choices\":[{\"delta\":{\"content\":\"four\"}}],\"usage\":null}\n\n".repeat(150);
    let reading = read(&stream);
    assert_eq!(reading.usage, None);
    assert_eq!((reading.visible_bytes, reading.events), (600, 150));
}

#[test]
fn an_error_event_is_kept_whatever_its_form() {
    let in_data = read("data: {\"error\":{\"message\":\"overloaded\",\"code\":529}}\n\n");
    assert_eq!(in_data.error.unwrap().code, "529");
    let by_name = read("event: error\ndata: {\"message\":\"overloaded\",\"type\":\"x\"}\n\n");
    assert_eq!(by_name.error.unwrap().message, "overloaded");
    let bare = read("event: error\ndata: overloaded\n\n");
    assert_eq!(bare.error.unwrap().message, "overloaded");
    let first = read("data: {\"error\":\"first\"}\n\ndata: {\"error\":\"second\"}\n\n");
    assert_eq!(first.error.unwrap().message, "first");
}

#[test]
fn what_cannot_be_read_is_counted_and_passes() {
    let stream = "data: {\"choices\":[}\n\ndata: hello\n\ndata:\n\ndata: {}\n\n";
    let (out, reading) = metered(UsageMembers::Strip, &[stream.as_bytes()], NO_CAP);
    assert_eq!(out, stream.as_bytes());
    assert_eq!((reading.unreadable_events, reading.events), (2, 4));
}

#[test]
fn an_event_beyond_the_cap_passes_and_is_counted() {
    let stream = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n\
         data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":1}}}}\n\n",
        "y".repeat(500)
    );
    for usage_members in [UsageMembers::Keep, UsageMembers::Strip] {
        for step in [1, 7, 1_000] {
            let pieces: Vec<&[u8]> = stream.as_bytes().chunks(step).collect();
            let (out, reading) = metered(usage_members, &pieces, 200);
            assert!(out.starts_with(&stream.as_bytes()[..540]));
            assert_eq!(
                (reading.oversized_events, counts(&reading)),
                (1, Some((1, 1)))
            );
        }
    }
}

#[test]
fn a_chunk_that_carries_only_usage_is_left_out_with_its_blank_line() {
    let before = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let done = "data: [DONE]\n\n";
    for usage_only in [
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n",
        "data: {\"id\":\"c\",\"usage\":{\"prompt_tokens\":1},\"choices\":null}\n\n",
        "data: {\"id\":\"c\",\"usage\":{\"prompt_tokens\":1}}\r\n\r\n",
        "id: 3\ndata: {\"choices\":[],\ndata: \"usage\":{\"prompt_tokens\":1}}\n\n",
        "data: {\"usage\":null}\n\n",
    ] {
        assert_eq!(
            strip(&format!("{before}{usage_only}{done}")),
            format!("{before}{done}")
        );
    }
}

#[test]
fn usage_is_taken_out_of_chunks_that_carry_more() {
    let table = [
        (r#"{"a":1,"usage":null}"#, r#"{"a":1}"#),
        (r#"{"usage":null,"a":1}"#, r#"{"a":1}"#),
        (r#"{ "usage" : null , "a":1}"#, r#"{  "a":1}"#),
        (
            r#"{"a":1 , "usage":{"prompt_tokens":2} , "b":[]}"#,
            r#"{"a":1  , "b":[]}"#,
        ),
        (r#"{"usage":1,"usage":2,"a":3}"#, r#"{"a":3}"#),
        (r#"{"a":3,"usage":1,"usage":2}"#, r#"{"a":3}"#),
        (r#"{"usage":1,"a":3,"usage":2,"b":4}"#, r#"{"a":3,"b":4}"#),
    ];
    let choices = r#""choices":[{"delta":{}}]"#;
    for (chunk, expected) in table {
        let with_choices = |chunk: &str| {
            let open = chunk.strip_suffix('}').unwrap();
            format!("{open},{choices}}}")
        };
        let (chunk, expected) = (with_choices(chunk), with_choices(expected));
        let stripped = strip(&format!(": c\nid: 1\ndata: {chunk}\r\n\r\n"));
        assert_eq!(stripped, format!(": c\nid: 1\ndata: {expected}\r\n\r\n"));
        let json = stripped
            .lines()
            .nth(2)
            .unwrap()
            .strip_prefix("data: ")
            .unwrap();
        serde_json::from_str::<serde_json::Value>(json).unwrap();
    }
}

#[test]
fn usage_that_spans_lines_of_data_leaves_a_document() {
    let event = "data: {\"choices\":[{}],\ndata: \"usage\":\ndata:  {\"prompt_tokens\":\n\
                 data: 3} ,\"b\":1}\n\n";
    let stripped = strip(event);
    assert_eq!(
        stripped,
        "data: {\"choices\":[{}]\ndata: \ndata: \ndata:  ,\"b\":1}\n\n"
    );
}

#[test]
fn an_error_with_usage_reaches_the_client() {
    let event = "data: {\"error\":{\"message\":\"x\"},\"usage\":{\"prompt_tokens\":1}}\n\n";
    assert_eq!(strip(event), "data: {\"error\":{\"message\":\"x\"}}\n\n");
}

#[test]
fn chunks_that_never_had_usage_and_azures_first_one_stay() {
    let stream = "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n: keep-alive\n\n\n\n\
                  data: {\"x_groq\":{\"usage\":{\"prompt_tokens\":2}},\"choices\":[{}]}\n\n";
    assert_eq!(strip(stream), stream);
}

#[test]
fn a_stream_without_its_last_blank_line_is_read_to_the_end() {
    let content = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}";
    let stream = format!("{content}{usage}");
    assert_eq!(counts(&read(&stream)), Some((3, 1)));
    assert_eq!(strip(&stream), content);
    assert_eq!(
        strip(&format!("{content}data: [DONE]")),
        format!("{content}data: [DONE]")
    );
}

#[test]
fn the_meter_knows_whether_the_client_is_at_an_events_boundary() {
    let mut keeping = StreamMeter::new(Api::ChatCompletions, UsageMembers::Keep, NO_CAP);
    let mut stripping = StreamMeter::new(Api::ChatCompletions, UsageMembers::Strip, NO_CAP);
    let mut out = Vec::new();
    assert!(keeping.at_event_boundary() && stripping.at_event_boundary());
    keeping.observe(b"data: {}\n\ndata: {");
    stripping.transform(b"data: {}\n\ndata: {", &mut out);
    assert_eq!(out, b"data: {}\n\n");
    assert!(!keeping.at_event_boundary());
    assert!(stripping.at_event_boundary());
    stripping.finish(&mut out);
    keeping.finish(&mut Vec::new());
    assert_eq!(out, b"data: {}\n\ndata: {");
    assert!(!keeping.at_event_boundary() && !stripping.at_event_boundary());
}

#[test]
fn a_plain_answer_is_read_at_every_cut() {
    let answer = br#"{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{
        "role":"assistant","content":"a\"b\u00e9","tool_calls":[{"function":{"name":"f",
        "arguments":"{}"}}]},"logprobs":{"content":[{"token":"a"}]},"finish_reason":"tool_calls"}],
        "service_tier":"default","usage":{"prompt_tokens":21,"completion_tokens":8,
        "prompt_tokens_details":{"cached_tokens":16}}}"#;
    let meter = |pieces: &[&[u8]]| {
        let mut meter = PlainMeter::new(Api::ChatCompletions);
        for piece in pieces {
            meter.observe(piece);
        }
        meter.finish();
        meter.reading().clone()
    };
    let whole = meter(&[answer]);
    assert_eq!(counts(&whole), Some((21, 8)));
    assert_eq!(whole.usage.unwrap().cached_input, 16);
    assert_eq!(whole.finish, Some(Finish::ToolCalls));
    assert_eq!((whole.is_done, whole.visible_bytes), (true, 8));
    for cut in 0..=answer.len() {
        let (head, tail) = answer.split_at(cut);
        assert_eq!(meter(&[head, tail]), whole, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = answer.chunks(1).collect();
    assert_eq!(meter(&bytes), whole);
}

#[test]
fn a_plain_answer_of_45_megabytes_keeps_nothing_of_itself() {
    let mut meter = PlainMeter::new(Api::ChatCompletions);
    meter.observe(br#"{"choices":[{"message":{"audio":{"data":""#);
    let frame = [b'A'; 16 * 1024];
    for _ in 0..45 * 64 {
        meter.observe(&frame);
    }
    assert!(!meter.reading().is_done);
    meter.observe(
        br#""}},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
    );
    meter.finish();
    assert_eq!(counts(meter.reading()), Some((1, 2)));
    assert!(meter.reading().is_done && meter.reading().has_content);
}

#[test]
fn a_plain_answer_cut_off_is_not_done_and_leaves_bytes_to_estimate_from() {
    let mut meter = PlainMeter::new(Api::ChatCompletions);
    meter.observe(br#"{"choices":[{"message":{"content":"hello","refusal":"#);
    meter.finish();
    assert!(!meter.reading().is_done);
    assert_eq!(
        (meter.reading().usage, meter.reading().visible_bytes),
        (None, 5)
    );
}

fn any_event() -> impl Strategy<Value = String> {
    let usage = "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}";
    let data = proptest::sample::select(vec![
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\u{8336}\\n\"}}],\"usage\":null}"
            .to_owned(),
        format!("{{\"choices\":[],{usage}}}"),
        format!("{{{usage},\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}"),
        "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{\"}}]}}]}"
            .to_owned(),
        "[DONE]".to_owned(),
        "{\"error\":{\"message\":\"x\"}}".to_owned(),
        "{\"broken".to_owned(),
    ]);
    let start = proptest::sample::select(vec!["", ": c\n", "event: x\r\n", "\n", "id: 1\r"]);
    let end = proptest::sample::select(vec!["\n\n", "\r\n\r\n", "\r\r", "\n\r\n"]);
    (start, data, end).prop_map(|(start, data, end)| format!("{start}data: {data}{end}"))
}

proptest! {
    #[test]
    fn neither_reading_nor_output_depends_on_the_cuts(
        events in proptest::collection::vec(any_event(), 0..8),
        ends_early in 0_usize..20,
        steps in proptest::collection::vec(1_usize..60, 1..40),
        cap in prop_oneof![Just(NO_CAP), 20_usize..90],
    ) {
        let mut stream = events.concat().into_bytes();
        stream.truncate(stream.len() - ends_early.min(stream.len()));
        for usage_members in [UsageMembers::Keep, UsageMembers::Strip] {
            let whole = metered(usage_members, &[&stream], cap);
            if usage_members == UsageMembers::Keep {
                prop_assert_eq!(&whole.0, &stream);
            }
            let mut rest = stream.as_slice();
            let mut pieces = Vec::new();
            for step in steps.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, later) = rest.split_at((*step).min(rest.len()));
                pieces.push(piece);
                rest = later;
            }
            prop_assert_eq!(&metered(usage_members, &pieces, cap), &whole);
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            prop_assert_eq!(&metered(usage_members, &bytes, cap), &whole);
        }
    }

    #[test]
    fn a_stripped_stream_has_nothing_left_to_strip(
        events in proptest::collection::vec(any_event(), 0..8),
    ) {
        let once = strip(&events.concat());
        prop_assert_eq!(strip(&once), once);
    }

    #[test]
    fn any_bytes_can_be_metered(
        stream in proptest::collection::vec(any::<u8>(), 0..400),
        step in 1_usize..50,
    ) {
        let with_data = [b"data: ", stream.as_slice(), b"\n\n"].concat();
        for stream in [&stream, &with_data] {
            let pieces: Vec<&[u8]> = stream.chunks(step).collect();
            let (out, _) = metered(UsageMembers::Keep, &pieces, 100);
            prop_assert_eq!(&out, stream);
            metered(UsageMembers::Strip, &pieces, 100);
            let mut meter = PlainMeter::new(Api::ChatCompletions);
            pieces.iter().for_each(|piece| meter.observe(piece));
            meter.finish();
        }
    }
}
