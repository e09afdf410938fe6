//! Strings of JSON and the text they stand for.

/// The text of an escaped string without its quotes. Never fails: what is no escape, no character
/// or cut off becomes U+FFFD.
pub fn unescape(escaped: &[u8]) -> String {
    let mut text = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(at);
        text.extend_from_slice(plain);
        let (character, used) = escaped_character(escape);
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = escape.get(used..).unwrap_or_default();
    }
    text.extend_from_slice(rest);
    String::from_utf8(text)
        .unwrap_or_else(|invalid| String::from_utf8_lossy(invalid.as_bytes()).into_owned())
}

/// The character that begins with the backslash in front, and how many bytes it takes.
fn escaped_character(escape: &[u8]) -> (char, usize) {
    let simple = |character| (character, 2);
    match escape.get(1) {
        Some(b'n') => simple('\n'),
        Some(b't') => simple('\t'),
        Some(b'r') => simple('\r'),
        Some(b'b') => simple('\u{8}'),
        Some(b'f') => simple('\u{c}'),
        Some(b'u') => code_point(escape),
        Some(&byte) if matches!(byte, b'"' | b'\\' | b'/') => simple(char::from(byte)),
        _ => (char::REPLACEMENT_CHARACTER, 1),
    }
}

fn code_point(escape: &[u8]) -> (char, usize) {
    let Some(unit) = hex_unit(escape) else {
        return (char::REPLACEMENT_CHARACTER, 2);
    };
    if let Some(character) = char::from_u32(u32::from(unit)) {
        return (character, 6);
    }
    let low = escape.get(6..).and_then(hex_unit);
    let pair = low.and_then(|low| char::decode_utf16([unit, low]).next()?.ok());
    match pair {
        Some(character) => (character, 12),
        None => (char::REPLACEMENT_CHARACTER, 6),
    }
}

/// The code unit of a `\uXXXX` in front.
fn hex_unit(escape: &[u8]) -> Option<u16> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })
}

/// Appends `text` as a JSON string with its quotes.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for &byte in text.as_bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1f => {
                let low = HEX.get(usize::from(byte & 0xf)).copied();
                out.extend_from_slice(b"\\u00");
                out.push(b'0' + (byte >> 4));
                out.extend(low);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_of_every_kind_are_resolved() {
        let escaped = br#"a\"b\\c\/d\n\t\r\b\f\u00e9\u8336\ud83c\udf75"#;
        assert_eq!(
            unescape(escaped),
            "a\"b\\c/d\n\t\r\u{8}\u{c}\u{e9}\u{8336}\u{1f375}"
        );
    }

    #[test]
    fn what_is_no_character_becomes_the_replacement() {
        assert_eq!(unescape(b"x\\"), "x\u{fffd}");
        assert_eq!(unescape(br"\ud83cx"), "\u{fffd}x");
        assert_eq!(unescape(br"\u12"), "\u{fffd}12");
        assert_eq!(unescape(b"\xe6\xb8"), "\u{fffd}");
    }

    proptest! {
        #[test]
        fn a_written_text_reads_back_as_itself(text in any::<String>()) {
            let mut written = Vec::new();
            write_text(&mut written, &text);
            prop_assert_eq!(&serde_json::from_slice::<String>(&written).unwrap(), &text);
            prop_assert_eq!(unescape(&written[1..written.len() - 1]), text);
        }

        #[test]
        fn any_bytes_can_be_unescaped(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            unescape(&bytes);
        }
    }
}
