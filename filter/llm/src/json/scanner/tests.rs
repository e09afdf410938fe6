use super::*;
use proptest::prelude::*;
use serde_json::Value;

const ITEM: u8 = b'*';

/// Writes down everything it is told. A name is the first byte of its key.
#[derive(Default, Debug, PartialEq)]
struct Recorder {
    told: Vec<String>,
    wanted: usize,
}

impl Recorder {
    fn tell(&mut self, what: &str, path: &[u8], detail: &str) {
        let path = String::from_utf8_lossy(path);
        self.told.push(format!("{what} {path} {detail}"));
    }
}

impl Reader for Recorder {
    type Name = u8;
    const UNKNOWN: u8 = b'?';
    const ITEM: u8 = ITEM;

    fn name(key: &[u8]) -> u8 {
        key.first().copied().unwrap_or(b'?')
    }

    fn text_bytes_wanted(&self, _path: &[u8]) -> usize {
        self.wanted
    }

    fn leaf(&mut self, path: &[u8], leaf: Leaf<'_>) {
        let detail = match leaf {
            Leaf::Text { shown, bytes } => format!("{bytes} {}", String::from_utf8_lossy(shown)),
            Leaf::Number(digits) => String::from_utf8_lossy(digits).into_owned(),
            Leaf::Bool(value) => value.to_string(),
            Leaf::Null => "null".to_owned(),
        };
        self.tell("leaf", path, &detail);
    }

    fn open(&mut self, path: &[u8]) {
        self.tell("open", path, "");
    }

    fn close(&mut self, path: &[u8]) {
        self.tell("close", path, "");
    }

    fn member(&mut self, name: u8, span: Range<usize>) {
        self.tell("member", &[name], &format!("{span:?}"));
    }

    fn comma(&mut self, at: usize) {
        self.tell("comma", &[], &at.to_string());
    }
}

use std::ops::Range;

fn record(pieces: &[&[u8]], wanted: usize) -> (Vec<String>, bool) {
    let mut recorder = Recorder {
        wanted,
        ..Recorder::default()
    };
    let mut scanner = Scanner::new::<Recorder>();
    for piece in pieces {
        scanner.feed(piece, &mut recorder);
    }
    let is_whole = scanner.finish(&mut recorder);
    (recorder.told, is_whole)
}

fn record_at_every_cut(document: &[u8], wanted: usize) {
    let whole = record(&[document], wanted);
    for cut in 0..=document.len() {
        let (head, tail) = document.split_at(cut);
        assert_eq!(record(&[head, tail], wanted), whole, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = document.chunks(1).collect();
    assert_eq!(record(&bytes, wanted), whole, "one byte at a time");
}

const DOCUMENT: &str = r#" { "aa" : "x\"y" , "b":[1,-2.5e3,{"c":null}],"d":{},"e":[],
    "f":true,"g":{"h":{"i":false}},"\u006b":"\u8336\ud83c\udf75\n" } "#;

#[test]
fn a_document_is_told_member_by_member() {
    let (told, is_whole) = record(&[DOCUMENT.as_bytes()], 64);
    assert!(is_whole);
    let leaves: Vec<&str> = told
        .iter()
        .filter_map(|line| line.strip_prefix("leaf "))
        .collect();
    let expected = [
        r#"a 3 x\"y"#,
        "b* 1",
        "b* -2.5e3",
        "b*c null",
        "f true",
        "ghi false",
        r"? 8 \u8336\ud83c\udf75\n",
    ];
    assert_eq!(leaves, expected);
    let span = told
        .iter()
        .find(|line| line.starts_with("member d"))
        .unwrap();
    let (start, end) = span.rsplit_once(' ').unwrap().1.split_once("..").unwrap();
    let span = start.parse().unwrap()..end.parse().unwrap();
    assert_eq!(DOCUMENT.get(span).unwrap(), r#""d":{}"#);
}

#[test]
fn the_same_is_told_at_every_cut_whatever_is_wanted() {
    for wanted in [0, 1, 4, 64] {
        record_at_every_cut(DOCUMENT.as_bytes(), wanted);
    }
}

#[test]
fn only_what_is_wanted_is_shown() {
    let (told, _) = record(&[br#"{"a":"0123"#, br#"456789"}"#], 6);
    assert!(told.contains(&"leaf a 10 012345".to_owned()), "{told:?}");
}

#[test]
fn a_number_at_the_outermost_level_ends_with_the_document() {
    assert_eq!(
        record(&[b"12", b"3"], 0),
        (vec!["leaf  123".to_owned()], true)
    );
}

#[test]
fn a_number_of_any_length_takes_no_room() {
    let document = format!("[{}]", "7".repeat(100_000));
    let (told, is_whole) = record(&[document.as_bytes()], 0);
    assert!(is_whole);
    assert_eq!(told[1], "leaf * ");
    record_at_every_cut(format!("[{},1]", "7".repeat(50)).as_bytes(), 0);
}

#[test]
fn what_cannot_be_followed_is_broken() {
    for document in [
        "",
        "{",
        "[1",
        "{]",
        "[}",
        r#"{"a"}"#,
        r#"{"a" 1}"#,
        "{1:2}",
        "nul",
        "[tru]",
        "x",
        "{}}",
        "{} {}",
        r#"{"a":"b"#,
        r#"["\uzzzz"]"#,
        "[1 2]",
        "]",
        ",",
    ] {
        let (_, is_whole) = record(&[document.as_bytes()], 8);
        assert!(!is_whole, "{document}");
    }
}

#[test]
fn a_depth_bomb_takes_neither_stack_nor_memory() {
    let mut document = "[".repeat(1_000_000) + r#""x\"]""# + &"]".repeat(1_000_000);
    let (told, is_whole) = record(&[document.as_bytes()], 8);
    assert!(is_whole);
    assert!(told.len() < 40, "only so deep: {}", told.len());
    document.pop();
    assert!(!record(&[document.as_bytes()], 8).1);
}

#[test]
fn what_follows_a_deep_part_is_still_told() {
    let deep = "[".repeat(200) + "{\"a\":[1,2]}" + &"]".repeat(200);
    let document = format!(r#"{{"a":{deep},"b":1}}"#);
    let (told, is_whole) = record(&[document.as_bytes()], 8);
    assert!(is_whole);
    assert!(told.contains(&"leaf b 1".to_owned()), "{told:?}");
    record_at_every_cut(document.as_bytes(), 8);
}

#[test]
fn a_scanner_can_be_used_again() {
    let mut recorder = Recorder::default();
    let mut scanner = Scanner::new::<Recorder>();
    scanner.feed(br#"{"a":[{"b":"half"#, &mut recorder);
    scanner.reset();
    recorder.told.clear();
    assert!(scanner.is_untouched());
    scanner.feed(br#"{"c":1}"#, &mut recorder);
    assert!(scanner.finish(&mut recorder));
    assert_eq!(recorder.told, record(&[br#"{"c":1}"#], 0).0);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,3}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same told from a parsed document.
fn leaves_of(value: &Value, path: &str, leaves: &mut Vec<String>) {
    if path.len() > TRACKED_DEPTH {
        return;
    }
    match value {
        Value::Array(elements) => {
            for element in elements {
                leaves_of(element, &format!("{path}*"), leaves);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                leaves_of(member, &format!("{path}{}", key.get(..1).unwrap()), leaves);
            }
        }
        Value::String(text) => leaves.push(format!("leaf {path} {} ", text.len())),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            leaves.push(format!("leaf {path} {value}"));
        }
    }
}

proptest! {
    #[test]
    fn every_document_is_told_as_a_parser_reads_it(value in any_json(), step in 1_usize..9) {
        let document = value.to_string();
        let pieces: Vec<&[u8]> = document.as_bytes().chunks(step).collect();
        let (told, is_whole) = record(&pieces, 0);
        let mut expected = Vec::new();
        leaves_of(&value, "", &mut expected);
        let leaves: Vec<_> = told.into_iter().filter(|line| line.starts_with("leaf")).collect();
        prop_assert!(is_whole);
        prop_assert_eq!(leaves, expected);
    }

    #[test]
    fn any_bytes_can_be_scanned_and_the_cuts_do_not_matter(
        document in proptest::collection::vec(
            prop_oneof![any::<u8>(), proptest::sample::select(br#"{}[]",:\u0a 1-e.tfn"#.to_vec())],
            0..200,
        ),
        step in 1_usize..20,
    ) {
        let pieces: Vec<&[u8]> = document.chunks(step).collect();
        prop_assert_eq!(record(&pieces, 8), record(&[&document], 8));
    }
}
