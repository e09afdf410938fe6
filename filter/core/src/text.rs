//! Small texts: cutting, percent-decoding and printing numbers without allocating.

use std::borrow::Cow;

use crate::key;

/// Longest string in a usage record, in bytes.
pub(crate) const MAX_BYTES: usize = 256;

/// The longest prefix of at most [`MAX_BYTES`] that ends between two characters.
pub(crate) fn cut(text: &str) -> &str {
    let end = text.floor_char_boundary(MAX_BYTES);
    text.get(..end).unwrap_or_default()
}

/// The text where it fits and has no NUL, which the ledger's database can't keep; else its beginning
/// and its SHA-256, so that two texts never become one.
pub(crate) fn distinct(text: &str) -> String {
    if text.len() <= MAX_BYTES && !text.contains('\0') {
        return text.to_owned();
    }
    let mut short = text.replace('\0', "\u{fffd}");
    short.truncate(short.floor_char_boundary(MAX_BYTES - 1 - 64));
    short.push('#');
    short.push_str(&hex(&key::hash(text.as_bytes())));
    short
}

/// In hexadecimal digits of lower case.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Replaces a string's text and keeps its memory.
pub(crate) fn refill(string: &mut String, text: &str) {
    string.clear();
    string.push_str(cut(text));
}

/// `text`, or `other` when it is empty.
pub(crate) fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

/// Decodes `%XX`; `None` when an escape is broken or the result is not UTF-8.
pub(crate) fn percent_decode(text: &[u8]) -> Option<Cow<'_, str>> {
    if !text.contains(&b'%') {
        return std::str::from_utf8(text).ok().map(Cow::Borrowed);
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (digits, tail) = rest.split_first_chunk::<2>()?;
        let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
        decoded.push(u8::try_from(high? << 4 | low?).ok()?);
        rest = tail;
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

/// Encodes all but letters, digits and `-._~`, so that the text is one segment of a path.
pub(crate) fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
            continue;
        }
        encoded.push('%');
        for nibble in [byte >> 4, byte & 0x0f] {
            let digit = char::from_digit(u32::from(nibble), 16).unwrap_or('0');
            encoded.push(digit.to_ascii_uppercase());
        }
    }
    encoded
}

/// Names as one header value, as many as fit into [`MAX_BYTES`]; what is no visible ASCII becomes
/// `?`. `None`: there are none.
pub(crate) fn header_list(names: &[String]) -> Option<String> {
    let mut list = String::new();
    for name in names {
        let length = list.len() + name.chars().count() + 2;
        if length > MAX_BYTES {
            list.push_str(if list.is_empty() { "..." } else { ", ..." });
            break;
        }
        if !list.is_empty() {
            list.push_str(", ");
        }
        let is_shown = |letter: &char| letter.is_ascii_graphic() || *letter == ' ';
        list.extend(
            name.chars()
                .map(|letter| Some(letter).filter(is_shown).unwrap_or('?')),
        );
    }
    (!list.is_empty()).then_some(list)
}

/// A number in decimal, on the stack.
pub(crate) struct Decimal {
    digits: [u8; 20],
    start: usize,
}

impl Decimal {
    pub(crate) fn new(mut value: u64) -> Self {
        let mut digits = [b'0'; 20];
        let mut start = digits.len();
        for (at, digit) in digits.iter_mut().enumerate().rev() {
            *digit = b'0' + u8::try_from(value % 10).unwrap_or(0);
            value /= 10;
            start = at;
            if value == 0 {
                break;
            }
        }
        Self { digits, start }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.digits.get(self.start..).unwrap_or_default()
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_to_string_does() {
        for value in [0, 1, 9, 10, 99, 100, 12_345, u64::MAX] {
            assert_eq!(Decimal::new(value).as_str(), value.to_string());
        }
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(cut("short"), "short");
        let long = "é".repeat(200);
        assert_eq!(cut(&long).len(), MAX_BYTES);
        let shifted = format!("x{long}");
        assert_eq!(cut(&shifted).len(), MAX_BYTES - 1);
    }

    #[test]
    fn names_in_a_header_are_bounded_and_visible() {
        assert_eq!(header_list(&[]), None);
        let names = ["logit_bias", "a\r\nx: é"].map(str::to_owned);
        assert_eq!(header_list(&names).as_deref(), Some("logit_bias, a??x: ?"));
        let many = vec!["n".repeat(100); 9];
        let list = header_list(&many).unwrap();
        assert!(
            list.ends_with(", ...") && list.len() <= MAX_BYTES + 5,
            "{list}"
        );
    }

    #[test]
    fn percent_decoding_refuses_broken_escapes_and_bytes_that_are_no_text() {
        assert_eq!(
            percent_decode(b"acme%2Fsmall").as_deref(),
            Some("acme/small")
        );
        assert_eq!(percent_decode(b"plain").as_deref(), Some("plain"));
        assert_eq!(percent_decode("%C3%A9".as_bytes()).as_deref(), Some("é"));
        for broken in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(percent_decode(broken.as_bytes()), None, "{broken}");
        }
    }
}
