//! What a request's head says: which API is called, by which keys, and what must be stripped.

use std::borrow::Cow;

use filter_llm::api::Dialect;

use crate::error::Refusal;
use crate::exchange::Head;
use crate::host::HeaderSink;
use crate::text;

mod endpoint;

pub(crate) use endpoint::{ClientApi, Endpoint};

/// Headers in which client libraries send a key, each removed before a provider sees the request.
const KEY_HEADERS: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];
/// Headers that Envoy itself adds to most requests before the filters see them.
const ENVOYS_HEADERS: [&str; 4] = [
    "x-forwarded-proto",
    "x-envoy-internal",
    "x-envoy-external-address",
    "x-envoy-expected-rq-timeout-ms",
];
const MAX_REQUEST_ID_LEN: usize = 128;
const MAX_ATTRIBUTES: usize = 16;
const MAX_ATTRIBUTES_LEN: usize = 1024;
/// The fields of a request's head that decide, borrowed from it.
#[derive(Default)]
pub(crate) struct RequestHead<'a> {
    method: &'a [u8],
    path: &'a [u8],
    query: Option<&'a [u8]>,
    pub(crate) authority: &'a [u8],
    key: Option<&'a [u8]>,
    has_several_keys: bool,
    content_type: Option<&'a [u8]>,
    content_encoding: Option<&'a [u8]>,
    content_length: Option<&'a [u8]>,
    attributes: Option<&'a [u8]>,
    request_id: Option<&'a [u8]>,
    has_anthropic_version: bool,
    strip: Strip,
}

impl<'a> RequestHead<'a> {
    pub(crate) fn read(head: &Head<'a>) -> Self {
        let mut read = Self::default();
        for &(name, value) in head.headers {
            read.read_header(name, value);
        }
        if let Some(query) = read.query {
            for (name, value) in query_fields(query) {
                if name == b"key" {
                    read.add_key(value);
                    read.strip.query_key = true;
                }
            }
        }
        read
    }

    fn read_header(&mut self, name: &'a [u8], value: &'a [u8]) {
        match name {
            b":method" => self.method = value,
            b":path" => {
                let mut halves = value.splitn(2, |&byte| byte == b'?');
                self.path = halves.next().unwrap_or_default();
                self.query = halves.next();
            }
            b":authority" => self.authority = value,
            b"authorization" => self.add_key_header(0, bearer(value).unwrap_or_default()),
            b"x-api-key" => self.add_key_header(1, value),
            b"api-key" => self.add_key_header(2, value),
            b"x-goog-api-key" => self.add_key_header(3, value),
            b"anthropic-version" => self.has_anthropic_version = true,
            b"content-type" => self.content_type = Some(value),
            b"content-encoding" => self.content_encoding = Some(value),
            b"content-length" => self.content_length = Some(value),
            b"x-request-id" => self.request_id = Some(value).filter(|id| is_request_id(id)),
            _ if is_internal(name) || tells_of_client(name) => {
                if name == b"x-turnpike-attributes" {
                    self.attributes = Some(value);
                }
                self.strip.add_internal(name);
            }
            _ => {}
        }
    }

    fn add_key_header(&mut self, header: usize, value: &'a [u8]) {
        self.strip.key_headers |= 1 << header;
        self.add_key(value.trim_ascii());
    }

    fn add_key(&mut self, key: &'a [u8]) {
        if key.is_empty() {
            return;
        }
        self.has_several_keys |= self.key.is_some_and(|other| other != key);
        self.key = Some(key);
    }

    /// What is called.
    pub(crate) fn endpoint(&self) -> Result<Endpoint<'a>, Refusal> {
        endpoint::of(self.method, self.path, self.dialect())
    }

    /// The client's dialect, for what its path does not tell: the shape of errors and of the list
    /// of models.
    pub(crate) fn dialect(&self) -> Dialect {
        if self.path.starts_with(b"/v1beta/") {
            Dialect::Gemini
        } else if self.has_anthropic_version {
            Dialect::Anthropic
        } else {
            Dialect::OpenAi
        }
    }

    /// The caller's key, wherever its library puts it.
    pub(crate) fn key(&self) -> Result<&'a [u8], Refusal> {
        if self.has_several_keys {
            return Err(Refusal::SeveralApiKeys);
        }
        self.key.ok_or(Refusal::MissingApiKey)
    }

    /// Refuses a body that could not be read, before it arrives.
    pub(crate) fn check_body(&self, max_bytes: u64) -> Result<(), Refusal> {
        let media_type = self
            .content_type
            .and_then(|value| value.split(|&byte| byte == b';').next());
        if media_type
            .is_some_and(|value| !value.trim_ascii().eq_ignore_ascii_case(b"application/json"))
        {
            return Err(Refusal::UnsupportedContentType);
        }
        if self
            .content_encoding
            .is_some_and(|value| !value.eq_ignore_ascii_case(b"identity"))
        {
            return Err(Refusal::UnsupportedContentEncoding);
        }
        let length = self
            .content_length
            .and_then(|value| std::str::from_utf8(value).ok());
        match length.map(str::parse::<u64>) {
            Some(Ok(bytes)) if bytes > max_bytes => Err(Refusal::BodyTooLarge),
            _ => Ok(()),
        }
    }

    /// Attributes for clients that can't set `metadata`: `name=value,name=value`, percent-encoded.
    pub(crate) fn attributes(&self) -> Result<Vec<(String, String)>, Refusal> {
        let header = self.attributes.unwrap_or_default();
        if header.len() > MAX_ATTRIBUTES_LEN {
            return Err(Refusal::InvalidAttributes);
        }
        let mut attributes = Vec::new();
        for pair in header.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            if pair.is_empty() {
                continue;
            }
            let attribute = attribute(pair).ok_or(Refusal::InvalidAttributes)?;
            attributes.push(attribute);
        }
        if attributes.len() > MAX_ATTRIBUTES {
            return Err(Refusal::InvalidAttributes);
        }
        Ok(attributes)
    }

    /// The client's request id if it may be kept, else a new one that looks like a UUID.
    pub(crate) fn request_id(&self, entropy: &[u8; 16]) -> String {
        match self.request_id.and_then(|id| std::str::from_utf8(id).ok()) {
            Some(id) => id.to_owned(),
            None => uuid(entropy),
        }
    }

    /// What must go before a provider sees the request, and the path as logs may show it.
    pub(crate) fn into_strip(mut self) -> Strip {
        self.strip.makes_request_id = self.request_id.is_none();
        self.strip.path = match self.query {
            None => path_of(self.path),
            Some(query) if !self.strip.query_key => Cow::Owned([self.path, query].join(&b'?')),
            Some(query) => Cow::Owned(path_without_key(self.path, query)),
        };
        self.strip
    }
}

/// What is taken out of the client's head, remembered by name.
#[derive(Default)]
pub(crate) struct Strip {
    /// Bit `n`: the client sent `KEY_HEADERS[n]`.
    key_headers: u8,
    query_key: bool,
    makes_request_id: bool,
    /// Bit `n`: there is `ENVOYS_HEADERS[n]`.
    envoys: u8,
    /// The other internal headers, and those that tell of the client.
    internal: Vec<Box<str>>,
    /// The client's path, without its key.
    pub(crate) path: Cow<'static, [u8]>,
}

impl Strip {
    fn add_internal(&mut self, name: &[u8]) {
        match ENVOYS_HEADERS
            .iter()
            .position(|known| known.as_bytes() == name)
        {
            Some(at) => self.envoys |= 1 << at,
            None => self
                .internal
                .extend(std::str::from_utf8(name).map(Box::from)),
        }
    }

    pub(crate) fn apply(&self, request_id: &str, sink: &mut dyn HeaderSink) {
        for (names, present) in [
            (&KEY_HEADERS[..], self.key_headers),
            (&ENVOYS_HEADERS[..], self.envoys),
        ] {
            for (at, name) in names.iter().enumerate() {
                if present & 1 << at != 0 {
                    sink.remove(name);
                }
            }
        }
        for name in &self.internal {
            sink.remove(name);
        }
        if self.query_key {
            sink.set(":path", &self.path);
        }
        if self.makes_request_id {
            sink.set("x-request-id", request_id.as_bytes());
        }
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_first_chunk::<7>()?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

fn is_request_id(id: &[u8]) -> bool {
    (1..=MAX_REQUEST_ID_LEN).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

/// Headers between our own parts and Envoy's: a client that could set one would steer them.
fn is_internal(name: &[u8]) -> bool {
    name.starts_with(b"x-envoy-") || name.starts_with(b"x-turnpike-")
}

/// Headers by which proxies, this Envoy among them, tell where a request comes from: a client's
/// address and way here do not concern a provider.
/// Headers about the client, its hops, or its sessions at this host.
fn tells_of_client(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 5] = [
        b"cookie",
        b"forwarded",
        b"proxy-authorization",
        b"via",
        b"x-real-ip",
    ];
    name.starts_with(b"x-forwarded-") || NAMES.contains(&name)
}

fn query_fields(query: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    query.split(|&byte| byte == b'&').map(|field| {
        let at = field
            .iter()
            .position(|&byte| byte == b'=')
            .unwrap_or(field.len());
        let (name, value) = field.split_at_checked(at).unwrap_or((field, b""));
        (name, value.strip_prefix(b"=").unwrap_or(value))
    })
}

fn path_without_key(path: &[u8], query: &[u8]) -> Vec<u8> {
    let mut stripped = path.to_vec();
    let mut separator = b'?';
    for field in query.split(|&byte| byte == b'&') {
        let is_key = query_fields(field).any(|(name, _)| name == b"key");
        if !is_key {
            stripped.push(separator);
            stripped.extend_from_slice(field);
            separator = b'&';
        }
    }
    stripped
}

/// The usual paths cost no allocation.
fn path_of(path: &[u8]) -> Cow<'static, [u8]> {
    match endpoint::known_path(path) {
        Some(known) => Cow::Borrowed(known.as_bytes()),
        None => Cow::Owned(path.to_vec()),
    }
}

fn attribute(pair: &[u8]) -> Option<(String, String)> {
    let at = pair.iter().position(|&byte| byte == b'=')?;
    let (name, value) = pair.split_at_checked(at)?;
    let name = text::percent_decode(name.trim_ascii())?;
    let value = text::percent_decode(value.strip_prefix(b"=")?.trim_ascii())?;
    (!name.is_empty()).then(|| (name.into_owned(), value.into_owned()))
}

/// Version 4 in form; the bits are the shell's entropy.
fn uuid(entropy: &[u8; 16]) -> String {
    let mut id = String::with_capacity(36);
    for (at, &byte) in entropy.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        let byte = match at {
            6 => byte & 0x0f | 0x40,
            8 => byte & 0x3f | 0x80,
            _ => byte,
        };
        for nibble in [byte >> 4, byte & 0x0f] {
            id.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    id
}

#[cfg(test)]
mod tests;
