//! How a request asks to be answered.
//!
//! A script is JSON in the request header `x-provider-script`, or, for clients that set no
//! headers, a string in the body's `metadata.provider_script`. An array scripts a request's
//! attempts one by one (attempts share an `x-request-id`); its last entry holds for all later ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tokens::Tokens;

/// One answer, described. Every field has a default that is the friendly case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Response status. From 400 on, an OpenAI-shaped error is the body, unless `error_body` is set.
    pub status: u16,
    /// Body of an error answer: a string is sent as it is, anything else as JSON.
    pub error_body: Option<Value>,
    /// Response headers to add.
    pub headers: BTreeMap<String, String>,
    /// Value of `retry-after`.
    pub retry_after: Option<String>,
    /// Value of `location`, for redirects.
    pub location: Option<String>,
    /// Request headers to send back as `x-echo-<name>`, credentials masked.
    pub echo_headers: Vec<String>,
    /// Milliseconds between the request's last byte and the response headers.
    pub delay_ms: u64,
    /// Milliseconds between the response headers and the first byte of the body.
    pub first_event_delay_ms: u64,
    /// Milliseconds between two writes of the body.
    pub chunk_delay_ms: u64,
    /// Text of the answer.
    pub text: Option<String>,
    /// Times that `text` is said.
    pub text_times: usize,
    /// Parts that the text is cut into when streamed. Default 6.
    pub chunks: Option<usize>,
    /// Reasoning text, sent before the answer as `reasoning_content`.
    pub reasoning_content: Option<String>,
    /// Function calls to answer with, instead of text unless `text` is set too.
    pub tool_calls: Vec<ToolCall>,
    /// `finish_reason`. Default `stop`, or `tool_calls` where there are any.
    pub finish_reason: Option<String>,
    /// Where usage is told.
    pub usage: UsagePlacement,
    /// Token counts to report instead of drawn ones.
    pub tokens: Option<Tokens>,
    /// How the bytes of a stream are laid into HTTP chunks and writes.
    pub framing: Framing,
    /// How the body's end is marked.
    pub transfer: Transfer,
    /// Trailers of a stream in HTTP chunks.
    pub trailers: BTreeMap<String, String>,
    /// Event lines end in CRLF.
    pub crlf: bool,
    /// A comment line before each event, as keep-alives are.
    pub comments: bool,
    /// Leave out `data: [DONE]`.
    pub no_done: bool,
    /// An error event after so many events of a stream, in place of the rest.
    pub error_event: Option<ErrorEvent>,
    /// Break the connection after so many events of a stream (the first carries only the role); a
    /// plain body counts as one.
    pub cut_after_chunks: Option<usize>,
    /// With `cut_after_chunks`: send half of the next event, or of the plain body, before the cut.
    pub cut_mid_line: bool,
    /// Break the connection instead of answering.
    pub cut_before_headers: bool,
    /// How a connection is broken.
    pub cut: Cut,
    /// Send the body with `content-encoding: gzip`. Plain answers only.
    pub gzip: bool,
    /// Replay a recorded case of `--cases-dir`: the folder's name, or its number.
    pub case: Option<String>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            status: 200,
            error_body: None,
            headers: BTreeMap::new(),
            retry_after: None,
            location: None,
            echo_headers: Vec::new(),
            delay_ms: 0,
            first_event_delay_ms: 0,
            chunk_delay_ms: 0,
            text: None,
            text_times: 1,
            chunks: None,
            reasoning_content: None,
            tool_calls: Vec::new(),
            finish_reason: None,
            usage: UsagePlacement::default(),
            tokens: None,
            framing: Framing::default(),
            transfer: Transfer::default(),
            trailers: BTreeMap::new(),
            crlf: false,
            comments: false,
            no_done: false,
            error_event: None,
            cut_after_chunks: None,
            cut_mid_line: false,
            cut_before_headers: false,
            cut: Cut::default(),
            gzip: false,
            case: None,
        }
    }
}

/// A function call of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// Default: `call_<request>_<index>`.
    #[serde(default)]
    pub id: Option<String>,
    pub name: String,
    /// A string is sent as it is, anything else as JSON.
    pub arguments: Value,
    /// Fragments that the arguments are cut into when streamed.
    #[serde(default = "three")]
    pub fragments: usize,
}

fn three() -> usize {
    3
}

/// An error inside a stream that began well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorEvent {
    pub after_chunks: usize,
    /// Default: an OpenAI-shaped `server_error`.
    #[serde(default)]
    pub body: Option<Value>,
}

/// Where usage is told. A plain answer tells it except under `none` and `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsagePlacement {
    /// In a chunk of its own if `stream_options.include_usage` asked for it, as OpenAI does.
    #[default]
    WhenAsked,
    /// In a chunk of its own, asked or not.
    FinalChunk,
    /// In each chunk, growing.
    EveryChunk,
    /// In the chunk that carries the finish reason.
    InFinishChunk,
    /// As Groq does: `x_groq.usage` in the chunk that carries the finish reason.
    #[serde(rename = "x_groq")]
    XGroq,
    /// Nowhere.
    None,
    /// `usage: null` in each chunk, and nothing else.
    Null,
}

/// How the bytes of a stream are laid into HTTP chunks and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Framing {
    #[default]
    EventPerWrite,
    /// So many payload bytes a chunk, wherever that cuts.
    Bytes(usize),
    /// Everything in one chunk and one write.
    Coalesced,
}

impl TryFrom<String> for Framing {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "event-per-write" => Ok(Self::EventPerWrite),
            None if text == "coalesced" => Ok(Self::Coalesced),
            Some(("bytes", n)) => match n.parse() {
                Ok(n) if n > 0 => Ok(Self::Bytes(n)),
                _ => Err(format!("framing `{text}`: not a positive number of bytes")),
            },
            _ => Err(format!(
                "framing `{text}`: not event-per-write, bytes:N or coalesced"
            )),
        }
    }
}

impl From<Framing> for String {
    fn from(framing: Framing) -> Self {
        match framing {
            Framing::EventPerWrite => "event-per-write".to_owned(),
            Framing::Bytes(n) => format!("bytes:{n}"),
            Framing::Coalesced => "coalesced".to_owned(),
        }
    }
}

/// How the body's end is marked. Plain answers use a length unless `close` is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transfer {
    #[default]
    Chunked,
    ContentLength,
    Close,
}

/// How a connection is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    #[default]
    Fin,
    Rst,
}

/// Why a script was refused.
#[derive(Debug, thiserror::Error)]
#[error("provider script: {0}")]
pub struct ScriptError(String);

/// The script of attempt number `attempt` (from 1) of a request, if it carries one.
pub fn find(
    header: Option<&str>,
    body: &Value,
    attempt: u64,
) -> Result<Option<Script>, ScriptError> {
    let in_body = || {
        body.pointer("/metadata/provider_script")
            .and_then(Value::as_str)
    };
    let Some(text) = header.or_else(in_body) else {
        return Ok(None);
    };
    let value: Value = serde_json::from_str(text).map_err(|e| ScriptError(e.to_string()))?;
    let value = match value {
        Value::Array(mut attempts) => {
            let wanted = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
            if attempts.is_empty() {
                return Err(ScriptError("an empty list".to_owned()));
            }
            let at = wanted.min(attempts.len() - 1);
            attempts.swap_remove(at)
        }
        single => single,
    };
    serde_json::from_value(value)
        .map(Some)
        .map_err(|e| ScriptError(e.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_header_comes_before_the_body() {
        let body = json!({"metadata": {"provider_script": "{\"status\": 500}"}});
        let from_header = find(Some("{\"status\": 429}"), &body, 1).expect("valid");
        assert_eq!(from_header.expect("present").status, 429);
        let from_body = find(None, &body, 1).expect("valid");
        assert_eq!(from_body.expect("present").status, 500);
        assert_eq!(find(None, &json!({}), 1).expect("valid"), None);
    }

    #[test]
    fn a_list_scripts_the_attempts_one_by_one_and_its_last_holds_on() {
        let list = "[{\"status\": 500}, {\"text\": \"hi\"}]";
        let status = |attempt| {
            let script = find(Some(list), &Value::Null, attempt).expect("valid");
            script.expect("present").status
        };
        assert_eq!((status(1), status(2), status(9)), (500, 200, 200));
        assert!(find(Some("[]"), &Value::Null, 1).is_err());
    }

    #[test]
    fn an_unknown_field_is_refused_by_name() {
        let error = find(Some("{\"statsu\": 500}"), &Value::Null, 1).expect_err("refused");
        assert!(error.to_string().contains("statsu"), "{error}");
    }

    #[test]
    fn framings_read_as_they_are_written() {
        for text in ["event-per-write", "bytes:7", "coalesced"] {
            let framing = Framing::try_from(text.to_owned()).expect("valid");
            assert_eq!(String::from(framing), text);
        }
        assert!(Framing::try_from("bytes:0".to_owned()).is_err());
        assert!(Framing::try_from("word".to_owned()).is_err());
    }
}
