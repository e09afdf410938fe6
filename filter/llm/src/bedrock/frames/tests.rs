use proptest::prelude::*;

use super::*;

const MOST: usize = 1 << 16;

type Told = Result<(Vec<String>, Vec<u8>), FrameFault>;

fn told(stream: &[u8], chunk_bytes: usize) -> Vec<Told> {
    let mut frames = FrameStream::new(MOST);
    let mut told = Vec::new();
    for chunk in stream.chunks(chunk_bytes) {
        frames.push(chunk, |frame| {
            told.push(frame.map(|frame| {
                let headers = frame.headers().map(|header| format!("{header:?}"));
                (headers.collect(), frame.payload.to_vec())
            }));
        });
    }
    told
}

fn event(name: &str, json: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_event(name, json.as_bytes(), &mut out).unwrap();
    out
}

/// The prelude's sums right, whatever the lengths say.
fn frame_of_lengths(frame: u32, headers: u32) -> Vec<u8> {
    let mut bytes = [frame.to_be_bytes(), headers.to_be_bytes()].concat();
    bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend([0; 32]);
    bytes
}

#[test]
fn every_type_of_header_is_read_as_it_was_printed() {
    let headers = [
        ("yes", HeaderValue::Bool(true)),
        ("no", HeaderValue::Bool(false)),
        ("byte", HeaderValue::Byte(-3)),
        ("short", HeaderValue::Short(-300)),
        ("int", HeaderValue::Int(-70_000)),
        ("long", HeaderValue::Long(-5_000_000_000)),
        ("bytes", HeaderValue::Bytes(&[0, 1, 255])),
        ("text", HeaderValue::Text("ü")),
        ("time", HeaderValue::Timestamp(1_700_000_000_000)),
        ("uuid", HeaderValue::Uuid(*b"0123456789abcdef")),
    ];
    let mut out = Vec::new();
    write_frame(&headers, b"payload", &mut out).unwrap();
    let mut frames = FrameStream::new(MOST);
    let mut seen = 0;
    frames.push(&out, |frame| {
        let frame = frame.unwrap();
        assert_eq!(frame.headers().collect::<Vec<_>>(), headers);
        assert_eq!((frame.text("text"), frame.text("int")), (Some("ü"), None));
        assert_eq!(frame.payload, b"payload");
        seen += 1;
    });
    assert!(seen == 1 && frames.is_at_boundary());
}

#[test]
fn any_flipped_bit_is_a_fault_and_nothing_is_read_behind_it() {
    let whole = [event("a", "{}"), event("b", "{}")].concat();
    let first = event("a", "{}").len();
    for bit in 0..first * 8 {
        let mut broken = whole.clone();
        broken[bit / 8] ^= 1 << (bit % 8);
        let told = told(&broken, 7);
        assert!(matches!(told.as_slice(), [Err(_)]), "bit {bit}: {told:?}");
    }
}

#[test]
fn lengths_that_cannot_be_are_told_apart() {
    for (frame, headers, fault) in [
        (
            15,
            0,
            FrameFault::Lengths {
                frame: 15,
                headers: 0,
            },
        ),
        (
            40,
            25,
            FrameFault::Lengths {
                frame: 40,
                headers: 25,
            },
        ),
        (
            u32::MAX,
            0,
            FrameFault::TooLarge {
                bytes: u32::MAX as usize,
                most: MOST,
            },
        ),
    ] {
        let bytes = frame_of_lengths(frame, headers);
        assert_eq!(told(&bytes, 64), [Err(fault)]);
        assert_eq!(told(&bytes, 1), [Err(fault)]);
    }
    let text = FrameFault::TooLarge { bytes: 9, most: 8 }.to_string();
    assert_eq!(text, "a frame has 9 bytes, more than the 8 that are read");
}

#[test]
fn headers_that_cannot_be_read_are_a_fault() {
    // Type 10 is none.
    for headers in [
        &b"\x01a\x0a"[..],
        b"\x05a\x00",
        b"\x01a\x07\x00\x09x",
        b"\x01\xff\x00",
    ] {
        let mut frame = Vec::new();
        let len = u32::try_from(headers.len()).unwrap();
        frame.extend((len + 16).to_be_bytes());
        frame.extend(len.to_be_bytes());
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        frame.extend(headers);
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        assert_eq!(told(&frame, 64), [Err(FrameFault::Headers)]);
    }
}

#[test]
fn what_does_not_fit_a_header_is_not_printed() {
    let mut out = Vec::new();
    let long = "n".repeat(70_000);
    let value = HeaderValue::Text(&long);
    assert_eq!(
        write_frame(&[("n", value)], b"", &mut out),
        Err(FrameFault::Headers)
    );
    let name = (long.as_str(), HeaderValue::Bool(true));
    assert_eq!(
        write_frame(&[name], b"", &mut out),
        Err(FrameFault::Headers)
    );
    assert!(out.is_empty());
}

proptest! {
    #[test]
    fn a_stream_is_the_same_wherever_it_is_cut(
        payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..5),
        chunk_bytes in 1..64_usize,
    ) {
        let mut stream = Vec::new();
        for payload in &payloads {
            write_event("metadata", payload, &mut stream).unwrap();
        }
        let whole = told(&stream, stream.len());
        let read: Vec<_> = whole.iter().map(|told| told.clone().unwrap().1).collect();
        prop_assert_eq!(&read, &payloads);
        prop_assert_eq!(told(&stream, chunk_bytes), whole);
    }

    #[test]
    fn any_bytes_can_be_read(
        bytes in proptest::collection::vec(any::<u8>(), 1..300),
        chunk_bytes in 1..64_usize,
    ) {
        prop_assert_eq!(told(&bytes, chunk_bytes), told(&bytes, bytes.len()));
    }
}
