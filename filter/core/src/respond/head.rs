//! The head of a provider's answer, and what of it must not reach a client.

use crate::host::HeaderSink;

/// Headers that describe the provider's account, hops or site rather than the answer.
const LEAKS: [&str; 34] = [
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
    "alt-svc",
    "cf-cache-status",
    "cf-ray",
    "expect-ct",
    "nel",
    "openai-model",
    "openai-organization",
    "openai-processing-ms",
    "openai-project",
    "openai-version",
    "report-to",
    "server",
    "set-cookie",
    "strict-transport-security",
    "via",
    "www-authenticate",
    "x-envoy-upstream-service-time",
    "x-powered-by",
    "x-ratelimit-limit",
    "x-ratelimit-limit-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "x-served-by",
];

/// Any other header that starts so is a leak too. A provider's `x-envoy-*` would steer the router's
/// retries, its `x-turnpike-*` would speak in our name.
const LEAK_PREFIXES: [&str; 4] = ["x-ratelimit-", "openai-", "x-envoy-", "x-turnpike-"];

/// What of a head decides.
#[derive(Default)]
pub(super) struct AnswerHead {
    pub(super) status: u16,
    pub(super) kind: BodyKind,
    pub(super) is_compressed: bool,
    pub(super) retry_after_s: Option<u32>,
    pub(super) leaks: Leaks,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum BodyKind {
    /// Also taken for an answer that does not say.
    #[default]
    Json,
    EventStream,
    Other,
}

impl AnswerHead {
    pub(super) fn read(headers: &[(&[u8], &[u8])]) -> Self {
        let mut head = Self::default();
        for &(name, value) in headers {
            match name {
                b":status" => head.status = number(value).unwrap_or(0),
                b"content-type" => head.kind = BodyKind::of(value),
                b"content-encoding" => {
                    head.is_compressed = !value.trim_ascii().eq_ignore_ascii_case(b"identity");
                }
                b"retry-after" => head.retry_after_s = number(value),
                _ => head.leaks.add(name),
            }
        }
        head
    }
}

impl BodyKind {
    fn of(content_type: &[u8]) -> Self {
        let media_type = content_type
            .split(|&byte| byte == b';')
            .next()
            .unwrap_or_default();
        let media_type = media_type.trim_ascii();
        if media_type.eq_ignore_ascii_case(b"text/event-stream") {
            Self::EventStream
        } else if media_type
            .last_chunk::<4>()
            .is_some_and(|end| end.eq_ignore_ascii_case(b"json"))
        {
            Self::Json
        } else {
            Self::Other
        }
    }
}

fn number<N: std::str::FromStr>(value: &[u8]) -> Option<N> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// The leaking headers that a head has.
#[derive(Default)]
pub(super) struct Leaks {
    /// Bit `n`: `LEAKS[n]`.
    known: u64,
    others: Vec<Box<str>>,
}

impl Leaks {
    fn add(&mut self, name: &[u8]) {
        if let Ok(at) = LEAKS.binary_search_by(|leak| leak.as_bytes().cmp(name)) {
            self.known |= 1 << at;
        } else if LEAK_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix.as_bytes()))
        {
            self.others.extend(std::str::from_utf8(name).map(Box::from));
        }
    }

    pub(super) fn remove(&self, sink: &mut dyn HeaderSink) {
        for (at, name) in LEAKS.into_iter().enumerate() {
            if self.known & 1 << at != 0 {
                sink.remove(name);
            }
        }
        for name in &self.others {
            sink.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_leaks_can_be_searched() {
        assert!(LEAKS.is_sorted());
        assert!(LEAKS.len() <= 64, "one bit each");
    }

    #[test]
    fn an_answer_without_a_content_type_is_read_as_json() {
        let head = AnswerHead::read(&[(b":status", b"200")]);
        assert!(head.kind == BodyKind::Json && head.status == 200);
        for (value, kind) in [
            (&b"application/json; charset=utf-8"[..], BodyKind::Json),
            (b"application/problem+json", BodyKind::Json),
            (b"Text/Event-Stream;charset=utf-8", BodyKind::EventStream),
            (b"text/html", BodyKind::Other),
        ] {
            assert!(
                BodyKind::of(value) == kind,
                "{}",
                String::from_utf8_lossy(value)
            );
        }
    }
}
