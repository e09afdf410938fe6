use super::*;
use proptest::prelude::*;

/// What came out: every event's data lines joined, and all bytes in order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Of each event with data: its name and its data.
    events: Vec<(String, String)>,
    bytes: Vec<u8>,
    oversized: usize,
}

impl Seen {
    fn take(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Event(event) => {
                self.bytes.extend_from_slice(event);
                let mut name = String::new();
                let mut data = Vec::new();
                for (field, range) in fields(event) {
                    let value = String::from_utf8_lossy(&event[range]).into_owned();
                    match field {
                        Field::Data => data.push(value),
                        Field::Name => name = value,
                        Field::Other => {}
                    }
                }
                if !data.is_empty() {
                    self.events.push((name, data.join("\n")));
                }
            }
            Piece::LineFeed => self.bytes.push(b'\n'),
            Piece::Excess { bytes, is_first } => {
                self.bytes.extend_from_slice(bytes);
                self.oversized += usize::from(is_first);
            }
        }
    }
}

fn see(pieces: &[&[u8]], max_event_bytes: usize) -> Seen {
    let mut stream = EventStream::new(max_event_bytes);
    let mut seen = Seen::default();
    for piece in pieces {
        stream.push(piece, |piece| seen.take(piece));
    }
    stream.finish(|piece| seen.take(piece));
    seen
}

fn data_of(stream: &str) -> Vec<String> {
    let seen = see(&[stream.as_bytes()], 1_000);
    seen.events.into_iter().map(|(_, data)| data).collect()
}

#[test]
fn events_are_found_with_every_line_end() {
    for stream in [
        "data: a\n\ndata: b\n\n",
        "data: a\r\n\r\ndata: b\r\n\r\n",
        "data: a\r\rdata: b\r\r",
        "data: a\n\r\ndata: b\r\n\n",
        "data:a\n\n\n\ndata:b\n\n",
    ] {
        assert_eq!(data_of(stream), ["a", "b"], "{stream:?}");
    }
}

#[test]
fn comments_names_and_ids_are_no_data() {
    let stream = ": OPENROUTER PROCESSING\n\nevent: error\nid: 7\nretry: 3\ndata: x\n\n:\n\n";
    let seen = see(&[stream.as_bytes()], 1_000);
    assert_eq!(seen.events, [("error".to_owned(), "x".to_owned())]);
    assert_eq!(seen.bytes, stream.as_bytes());
}

#[test]
fn lines_of_data_are_one_text() {
    assert_eq!(
        data_of("data: {\ndata:  \"a\"\ndata\ndata: }\n\n"),
        ["{\n \"a\"\n\n}"]
    );
    assert_eq!(data_of("dataset: x\ndata x\n\n"), Vec::<String>::new());
}

#[test]
fn a_missing_last_blank_line_and_a_byte_order_mark_are_no_harm() {
    assert_eq!(data_of("\u{feff}data: a\n\ndata: b"), ["a", "b"]);
    assert_eq!(data_of("data: a\n\ndata: b\n"), ["a", "b"]);
}

#[test]
fn an_event_is_handed_on_as_soon_as_it_is_whole() {
    let mut stream = EventStream::new(1_000);
    let mut seen = Seen::default();
    stream.push(b"data: a\r\n\r", |piece| seen.take(piece));
    assert_eq!(seen.events.len(), 1);
    assert!(stream.is_at_boundary());
    stream.push(b"\n", |piece| seen.take(piece));
    assert!(stream.is_at_boundary());
    stream.push(b"data: b\r\n", |piece| seen.take(piece));
    assert!(!stream.is_at_boundary());
    assert_eq!(
        (seen.events.len(), seen.bytes.as_slice()),
        (1, &b"data: a\r\n\r\n"[..])
    );
}

#[test]
fn an_event_beyond_the_cap_passes_unread_and_the_next_is_read() {
    let stream = format!("data: a\n\ndata: {}\n\ndata: b\n\n", "x".repeat(50));
    let seen = see(&[stream.as_bytes()], 20);
    assert_eq!(seen.events.len(), 2);
    assert_eq!(seen.oversized, 1);
    assert_eq!(seen.bytes, stream.as_bytes());
}

#[test]
fn bytes_of_an_event_beyond_the_cap_are_not_held_back() {
    let mut stream = EventStream::new(10);
    let mut seen = Seen::default();
    stream.push(b"data: 0", |piece| seen.take(piece));
    assert_eq!(seen.bytes, b"");
    stream.push(b"1234567", |piece| seen.take(piece));
    assert_eq!(seen.bytes, b"data: 01234567");
    stream.push(b"8", |piece| seen.take(piece));
    assert_eq!(seen.bytes, b"data: 012345678");
    assert!(stream.is_in_excess() && !stream.is_at_boundary());
    stream.push(b"\n\n", |piece| seen.take(piece));
    assert!(stream.is_at_boundary());
    assert_eq!(seen.oversized, 1);
}

#[test]
fn a_large_buffer_is_given_back() {
    let mut stream = EventStream::new(1_000_000);
    stream.push(&[b'x'; 100_000], |_| {});
    stream.push(b"\n\n", |_| {});
    assert!(stream.pending.capacity() <= KEPT_BUFFER_BYTES);
}

fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let part = proptest::sample::select(vec![
        "data: {\"a\":1}",
        "data:",
        "data",
        ": c",
        "event: error",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "\r\n\r\n",
        "\u{feff}",
        "é",
        "x",
        "data: longer than the others are",
    ]);
    proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat().into_bytes())
}

proptest! {
    #[test]
    fn the_cuts_change_nothing(
        stream in any_stream(),
        cuts in proptest::collection::vec(0_usize..200, 0..12),
        max_event_bytes in prop_oneof![Just(1_000_usize), 0_usize..40],
    ) {
        let whole = see(&[&stream], max_event_bytes);
        prop_assert_eq!(&whole.bytes, &stream);
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= stream.len()).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
        prop_assert_eq!(&see(&pieces, max_event_bytes), &whole);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(&see(&bytes, max_event_bytes), &whole);
    }

    #[test]
    fn any_bytes_pass(stream in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(see(&[&stream], 100).bytes, stream);
    }
}
