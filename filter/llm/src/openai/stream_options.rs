//! `stream_options`: whether a stream tells its usage, and how to make it.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::request::{Edit, RequestFault, Span, convert, present};

const INCLUDE_USAGE: &str = "stream_options.include_usage";

/// `stream_options`, read as far as usage goes.
#[derive(Clone, Copy)]
pub(super) enum StreamOptions<'a> {
    Missing,
    Null(&'a RawValue),
    WithoutUsage(&'a RawValue),
    /// `include_usage` is false or null.
    Unset(&'a RawValue),
    Set,
}

#[derive(Deserialize)]
struct Options<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    include_usage: Option<&'a RawValue>,
}

impl<'a> StreamOptions<'a> {
    pub(super) fn read(member: Option<&'a RawValue>) -> Result<Self, RequestFault> {
        let Some(options) = member else {
            return Ok(Self::Missing);
        };
        if convert::set(member).is_none() {
            return Ok(Self::Null(options));
        }
        if !options.get().starts_with('{') {
            return Err(RequestFault::wrong_kind(
                "stream_options",
                "an object",
                options,
            ));
        }
        let read: Options<'a> = serde_json::from_str(options.get())
            .map_err(|error| RequestFault::unreadable(&error))?;
        let Some(include) = read.include_usage else {
            return Ok(Self::WithoutUsage(options));
        };
        let is_set = convert::boolean(Some(include), INCLUDE_USAGE)?.unwrap_or(false);
        Ok(if is_set {
            Self::Set
        } else {
            Self::Unset(include)
        })
    }

    /// What makes `include_usage` true.
    pub(super) fn edit(&self, body: &[u8]) -> Option<Edit> {
        let (span, with) = match *self {
            Self::Set => return None,
            Self::Missing => (
                Span::first_member(body),
                r#""stream_options":{"include_usage":true},"#,
            ),
            Self::Null(options) => (Span::of(body, options), r#"{"include_usage":true}"#),
            Self::WithoutUsage(options) => {
                let inner = options.get().get(1..).unwrap_or_default();
                let is_only = inner.trim_ascii_start().starts_with('}');
                let with = if is_only {
                    r#""include_usage":true"#
                } else {
                    r#""include_usage":true,"#
                };
                (Span::at(Span::of(body, options).start + 1), with)
            }
            Self::Unset(include) => (Span::of(body, include), "true"),
        };
        Some(Edit { span, with })
    }

    pub(super) fn asks_usage(&self) -> bool {
        matches!(self, Self::Set)
    }
}
