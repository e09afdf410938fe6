//! AWS Signature Version 4 in headers, for providers that take no bearer (IAM's guide, "Create a
//! signed AWS API request"). Time is an argument, and the whole body has to be at hand.
//!
//! By hand on `sha2` and `hmac`: the crate aws-sigv4 signs without I/O too, but brings an
//! asynchronous runtime's types and half a hundred crates.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::text::{hex, percent_encode};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The header of the signature's time.
pub const DATE: &str = "x-amz-date";
/// The header of a session's token.
pub const SESSION_TOKEN: &str = "x-amz-security-token";

/// Whoever signs.
#[derive(Clone, Copy)]
pub struct Signer<'a> {
    access_key_id: &'a str,
    secret_access_key: &'a str,
    /// Goes with the request in [`SESSION_TOKEN`].
    pub session_token: Option<&'a str>,
}

/// What is signed, as it is sent.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub method: &'a str,
    pub authority: &'a str,
    /// Percent-encoded, with its query; no segment may be empty, `.` or `..`.
    pub path: &'a str,
    /// Signed beside host, time and token: names in lower case, each once.
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

/// Where a signature holds.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// Such as `eu-central-1`.
    pub region: &'a str,
    /// Such as `bedrock`.
    pub service: &'a str,
}

/// Headers to be set beside the session's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The value of [`DATE`].
    pub date: String,
    pub authorization: String,
}

impl<'a> Signer<'a> {
    /// Of `<access key id>:<secret access key>` or
    /// `<access key id>:<secret access key>:<session token>`; `None`: it is neither.
    pub fn of_secret(secret: &'a str) -> Option<Self> {
        let mut parts = secret.splitn(3, ':');
        let signer = Self {
            access_key_id: parts.next()?,
            secret_access_key: parts.next()?,
            session_token: parts.next(),
        };
        let all = [signer.access_key_id, signer.secret_access_key];
        let is_whole = all
            .into_iter()
            .chain(signer.session_token)
            .all(|part| !part.is_empty());
        is_whole.then_some(signer)
    }

    /// Signs a request at `unix_s`, seconds since 1970. The signature is taken for five minutes.
    pub fn sign(&self, request: &Request<'_>, scope: Scope<'_>, unix_s: u64) -> Signature {
        let date = date(unix_s);
        let day = date.get(..8).unwrap_or_default();
        let headers = self.signed_headers(request, &date);
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let canonical = canonical(request, &headers, &names);
        let Scope { region, service } = scope;
        let scope = format!("{day}/{region}/{service}/aws4_request");
        let summed = hex(&Sha256::digest(&canonical));
        let to_sign = format!("{ALGORITHM}\n{date}\n{scope}\n{summed}");
        let secret = format!("AWS4{}", self.secret_access_key);
        let steps = [day, region, service, "aws4_request", &to_sign];
        let signature = steps
            .iter()
            .fold(secret.into_bytes(), |key, step| keyed(&key, step));
        let signature = hex(&signature);
        let id = self.access_key_id;
        let authorization = format!(
            "{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        );
        Signature {
            date,
            authorization,
        }
    }

    /// Names and values in order, blanks in a row as one.
    fn signed_headers<'r>(&self, request: &Request<'r>, date: &'r str) -> Vec<(&'r str, String)>
    where
        'a: 'r,
    {
        let own = [("host", request.authority), (DATE, date)];
        let token = self.session_token.map(|token| (SESSION_TOKEN, token));
        let all = request.headers.iter().copied().chain(own).chain(token);
        let plain = |(name, value): (&'r str, &str)| {
            let words: Vec<&str> = value.split_ascii_whitespace().collect();
            (name, words.join(" "))
        };
        let mut headers: Vec<(&str, String)> = all.map(plain).collect();
        headers.sort_unstable();
        headers
    }
}

impl fmt::Debug for Signer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

/// The one form of a request that both sides sum.
fn canonical(request: &Request<'_>, headers: &[(&str, String)], names: &str) -> String {
    let (path, query) = request.path.split_once('?').unwrap_or((request.path, ""));
    let mut out = format!("{}\n", request.method);
    // Encoded once more than it is sent, as every service but S3 sums it.
    let segments: Vec<String> = path.split('/').map(percent_encode).collect();
    out.push_str(&segments.join("/"));
    out.push('\n');
    out.push_str(&canonical_query(query));
    out.push('\n');
    for (name, value) in headers {
        out.push_str(name);
        out.push(':');
        out.push_str(value);
        out.push('\n');
    }
    out.push('\n');
    out.push_str(names);
    out.push('\n');
    out.push_str(&hex(&Sha256::digest(request.body)));
    out
}

/// Parameters in order, as they are encoded already.
fn canonical_query(query: &str) -> String {
    let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
    let mut parameters: Vec<(&str, &str)> = parameters
        .map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")))
        .collect();
    parameters.sort_unstable();
    let told: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    told.join("&")
}

fn keyed(key: &[u8], text: &str) -> Vec<u8> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        // A key of any length is taken.
        return Vec::new();
    };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// `20150830T123600Z`.
fn date(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    // Years that begin in March, in eras of 400: a leap day then ends its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * era + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests;
