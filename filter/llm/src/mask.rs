//! Takes a secret out of bytes that somebody else wrote.

use std::borrow::Cow;

const MASK: &[u8] = b"***";
/// Shorter secrets are no secrets, and masking them would tear ordinary words.
const SHORTEST_SECRET: usize = 8;

/// `bytes` with every occurrence of `secret` replaced by `***`, also where any of its bytes are
/// percent-encoded or JSON-escaped. Secrets under 8 bytes are left alone.
pub fn mask<'a>(bytes: &'a [u8], secret: &[u8]) -> Cow<'a, [u8]> {
    let mut masked = Vec::new();
    let mut kept_from = 0;
    let mut from = 0;
    let Some(&first) = secret.first().filter(|_| secret.len() >= SHORTEST_SECRET) else {
        return Cow::Borrowed(bytes);
    };
    while let Some(found) = memchr::memchr3(first, b'%', b'\\', rest(bytes, from)) {
        let start = from + found;
        let Some(len) = match_len(rest(bytes, start), secret) else {
            from = start + 1;
            continue;
        };
        masked.extend_from_slice(bytes.get(kept_from..start).unwrap_or_default());
        masked.extend_from_slice(MASK);
        from = start + len;
        kept_from = from;
    }
    if kept_from == 0 {
        return Cow::Borrowed(bytes);
    }
    masked.extend_from_slice(rest(bytes, kept_from));
    Cow::Owned(masked)
}

fn rest(bytes: &[u8], from: usize) -> &[u8] {
    bytes.get(from..).unwrap_or_default()
}

/// How many bytes in front stand for the whole secret, in one of the ways it can be written.
fn match_len(bytes: &[u8], secret: &[u8]) -> Option<usize> {
    WRITINGS.iter().find_map(|writing| {
        secret.iter().try_fold(0, |len, &wanted| {
            Some(len + writing.byte_len(rest(bytes, len), wanted)?)
        })
    })
}

/// Which escapes are understood. Where one is, its own sign in the secret stands escaped too; so
/// each way has to be tried by itself.
struct Writing {
    percent: bool,
    json: bool,
}

const WRITINGS: [Writing; 4] = [
    Writing {
        percent: false,
        json: false,
    },
    Writing {
        percent: true,
        json: false,
    },
    Writing {
        percent: false,
        json: true,
    },
    Writing {
        percent: true,
        json: true,
    },
];

impl Writing {
    /// How many bytes in front stand for `wanted`.
    fn byte_len(&self, bytes: &[u8], wanted: u8) -> Option<usize> {
        match bytes {
            [b'%', digits @ ..] if self.percent => is_hex(digits.get(..2)?, wanted).then_some(3),
            [b'\\', b'u', digits @ ..] if self.json => {
                is_hex(digits.get(..4)?, wanted).then_some(6)
            }
            [b'\\', escaped, ..] if self.json => {
                (matches!(escaped, b'/' | b'"' | b'\\') && *escaped == wanted).then_some(2)
            }
            [byte, ..] => (*byte == wanted).then_some(1),
            [] => None,
        }
    }
}

/// Whether the digits are the number of `wanted`.
fn is_hex(digits: &[u8], wanted: u8) -> bool {
    let number = digits.iter().try_fold(0, |number, digit| {
        Some(number << 4 | char::from(*digit).to_digit(16)?)
    });
    number == Some(u32::from(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: &[u8] = b"sk-test/a+b=\"c\\d";

    #[test]
    fn a_secret_is_masked_in_each_of_its_forms() {
        let forms: [&[u8]; 5] = [
            SECRET,
            b"sk-test%2Fa%2Bb%3D%22c%5Cd",
            b"sk-test%2fa%2bb%3d%22c%5cd",
            br#"sk-test\/a+b=\"c\\d"#,
            br"sk-test\u002Fa\u002bb=\u0022c\u005cd",
        ];
        for form in forms {
            let body = [b"Incorrect key: ", form, b". See ", form].concat();
            assert_eq!(
                mask(&body, SECRET).as_ref(),
                b"Incorrect key: ***. See ***",
                "{}",
                String::from_utf8_lossy(form)
            );
        }
    }

    #[test]
    fn other_bytes_are_left_as_they_are() {
        let body = b"sk-test and 100% of \\ it";
        assert!(matches!(mask(body, SECRET), Cow::Borrowed(_)));
        assert!(matches!(mask(b"short short", b"short"), Cow::Borrowed(_)));
        assert!(matches!(mask(b"body", b""), Cow::Borrowed(_)));
    }

    #[test]
    fn a_secret_that_looks_escaped_itself_is_masked() {
        let secret = br"sk-%25\\u0041";
        let forms: [&[u8]; 3] = [secret, br"sk-%2525\\u0041", br"sk-%25\\\\u0041"];
        for form in forms {
            assert_eq!(mask(form, secret).as_ref(), MASK);
        }
    }

    #[test]
    fn a_false_start_does_not_hide_the_secret() {
        assert_eq!(mask(b"aaaaaaaaab", b"aaaaaaab").as_ref(), b"aa***");
    }

    proptest! {
        #[test]
        fn the_secret_is_gone_and_the_rest_stands(
            before in proptest::collection::vec(any::<u8>(), 0..40),
            secret in "[a-zA-Z0-9/+=%\\\\_-]{8,40}",
            after in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let percent: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
            let json = serde_json::to_string(&secret).unwrap();
            for form in [secret.as_str(), &percent, json.trim_matches('"')] {
                let body = [&before, form.as_bytes(), &after].concat();
                let masked = mask(&body, secret.as_bytes());
                prop_assert!(memchr::memmem::find(&masked, form.as_bytes()).is_none());
                prop_assert!(memchr::memmem::find(&masked, MASK).is_some());
            }
        }
    }
}
