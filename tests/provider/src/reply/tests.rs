use super::*;
use crate::tokens::Tokens;

fn three_events() -> Vec<Event> {
    let tokens = Tokens::draw(1, 1);
    [("one", None), ("two", Some(tokens)), ("three", None)]
        .map(|(text, usage)| Event {
            bytes: format!("data: {text}\n\n").into_bytes(),
            usage,
        })
        .to_vec()
}

fn script(value: Value) -> Script {
    serde_json::from_value(value).expect("a script")
}

/// Everything that is written, and the last mark.
fn flatten(delivery: &Delivery) -> (String, Mark) {
    let mut bytes = Vec::new();
    let mut mark = Mark::default();
    for step in &delivery.steps {
        match step {
            Step::Write(more) => bytes.extend(more),
            Step::Mark(m) => mark = *m,
            Step::Pause(_) => {}
        }
    }
    (String::from_utf8(bytes).expect("UTF-8"), mark)
}

/// Takes HTTP chunk framing off.
fn unchunk(mut text: &str) -> String {
    let mut payload = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        let (piece, rest) = rest.split_at(size);
        payload.push_str(piece);
        text = rest.strip_prefix("\r\n").expect("a chunk's end");
    }
    payload
}

#[test]
fn every_framing_carries_the_same_payload() {
    let events = three_events();
    let expected: String = "data: one\n\ndata: two\n\ndata: three\n\n".to_owned();
    for framing in [
        "event-per-write",
        "bytes:1",
        "bytes:7",
        "bytes:1000",
        "coalesced",
    ] {
        let delivery = stream(&events, &script(json!({"framing": framing})), &Vec::new());
        let (text, mark) = flatten(&delivery);
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        assert_eq!(unchunk(body), expected, "{framing}");
        assert_eq!(
            mark,
            Mark {
                events: 3,
                usage: Some(Tokens::draw(1, 1))
            },
            "{framing}"
        );
        assert_eq!(delivery.ending, Ending::KeepAlive);
    }
}

#[test]
fn a_coalesced_stream_is_one_write_after_the_head() {
    let delivery = stream(
        &three_events(),
        &script(json!({"framing": "coalesced"})),
        &Vec::new(),
    );
    let writes = delivery
        .steps
        .iter()
        .filter(|step| matches!(step, Step::Write(_)))
        .count();
    assert_eq!(writes, 2);
}

#[test]
fn trailers_follow_the_last_chunk_whatever_the_framing() {
    for framing in ["event-per-write", "bytes:3", "coalesced"] {
        let script = script(json!({"framing": framing, "trailers": {"a": "1", "b": "2"}}));
        let (text, _) = flatten(&stream(&three_events(), &script, &Headers::new()));
        assert!(text.ends_with("\r\n0\r\na: 1\r\nb: 2\r\n\r\n"), "{framing}");
    }
}

#[test]
fn a_cut_stream_ends_without_its_last_chunk_and_claims_no_more_than_it_sent() {
    let cut = json!({"cut_after_chunks": 1, "cut_mid_line": true, "cut": "rst"});
    let delivery = stream(&three_events(), &script(cut), &Vec::new());
    let (text, mark) = flatten(&delivery);
    assert!(
        text.ends_with("data: \r\n") || text.ends_with("data:\r\n"),
        "{text}"
    );
    assert!(!text.contains("0\r\n\r\n"), "{text}");
    assert_eq!(
        mark,
        Mark {
            events: 1,
            usage: None
        }
    );
    assert_eq!(delivery.ending, Ending::Cut(crate::script::Cut::Rst));
}

#[test]
fn usage_counts_as_sent_only_when_its_event_is_whole() {
    let events = three_events();
    let first_two = events[0].bytes.len() + events[1].bytes.len();
    assert_eq!(mark_at(&events, first_two - 1).usage, None);
    assert_eq!(mark_at(&events, first_two).usage, Some(Tokens::draw(1, 1)));
}

#[test]
fn a_stream_with_a_length_says_the_right_one() {
    let delivery = stream(
        &three_events(),
        &script(json!({"transfer": "content-length"})),
        &Vec::new(),
    );
    let (text, _) = flatten(&delivery);
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    assert!(
        head.contains(&format!("content-length: {}", body.len())),
        "{head}"
    );
}

#[test]
fn a_plain_body_cut_in_its_middle_is_shorter_than_its_length() {
    let script = script(json!({"status": 500, "cut_after_chunks": 0, "cut_mid_line": true}));
    let delivery = error(&script, &Vec::new(), error_json);
    let (text, mark) = flatten(&delivery);
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    assert!(!body.is_empty() && !head.contains(&format!("content-length: {}\r\n", body.len())));
    assert_eq!(mark.events, 0);
}

#[test]
fn errors_have_the_shape_that_sdks_read() {
    let delivery = error(
        &script(json!({"status": 429, "retry_after": "3"})),
        &Vec::new(),
        error_json,
    );
    let (text, _) = flatten(&delivery);
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    assert!(
        head.starts_with("HTTP/1.1 429 Too Many Requests\r\n"),
        "{head}"
    );
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body["error"]["code"], "rate_limit_exceeded");
}
