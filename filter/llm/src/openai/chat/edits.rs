//! The places where a request is edited before it goes to a provider of the same dialect.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{RequestFault, convert, present};
use crate::json::write_text;
use crate::splice::Splice;

const INCLUDE_USAGE: &str = "stream_options.include_usage";

/// Where a request's body is edited, in bytes from its start. Good for that body alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EditPoints {
    model: Span,
    usage: UsagePoint,
    output: OutputPoints,
}

/// Where the most tokens of output are said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OutputPoints {
    max_tokens: Option<Span>,
    max_completion_tokens: Option<Span>,
    /// Where a member can be put first.
    first_member: usize,
}

/// The members that bound a request's output.
#[derive(Clone, Copy, Default)]
pub(super) struct OutputMembers<'a> {
    pub(super) max_tokens: Option<&'a RawValue>,
    pub(super) max_completion_tokens: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

impl Span {
    fn range(self) -> Range<usize> {
        self.start..self.end
    }

    fn at(start: usize) -> Self {
        Self { start, end: start }
    }

    /// Where `value`, which was borrowed from `body`, lies in it.
    fn of(body: &[u8], value: &RawValue) -> Self {
        let start = (value.get().as_ptr() as usize).saturating_sub(body.as_ptr() as usize);
        let end = start + value.get().len();
        Self { start, end }
    }
}

/// How `include_usage` comes to be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsagePoint {
    /// It is.
    Set,
    /// No `stream_options`: they are inserted as the first member, before the others.
    WholeMember(usize),
    /// `stream_options` is null and is replaced.
    Options(Span),
    /// `stream_options` lacks it; it is inserted as the first member.
    Member { at: usize, is_only: bool },
    /// It is false or null and is replaced.
    Value(Span),
}

impl EditPoints {
    pub(super) fn new(
        body: &[u8],
        model: &RawValue,
        options: &StreamOptions<'_>,
        output: OutputMembers<'_>,
    ) -> Self {
        let brace = body.iter().position(|byte| *byte == b'{');
        let first_member = brace.unwrap_or_default() + 1;
        let span_of = |member: Option<&RawValue>| member.map(|member| Span::of(body, member));
        let usage = match *options {
            StreamOptions::Missing => UsagePoint::WholeMember(first_member),
            StreamOptions::Null(options) => UsagePoint::Options(Span::of(body, options)),
            StreamOptions::WithoutUsage(options) => UsagePoint::Member {
                at: Span::of(body, options).start + 1,
                is_only: options
                    .get()
                    .bytes()
                    .skip(1)
                    .find(|byte| !byte.is_ascii_whitespace())
                    == Some(b'}'),
            },
            StreamOptions::Unset(include) => UsagePoint::Value(Span::of(body, include)),
            StreamOptions::Set => UsagePoint::Set,
        };
        Self {
            model: Span::of(body, model),
            usage,
            output: OutputPoints {
                max_tokens: span_of(output.max_tokens),
                max_completion_tokens: span_of(output.max_completion_tokens),
                first_member,
            },
        }
    }

    /// Bounds the output of one choice to `tokens`, in whichever members the request says it; one
    /// that says nothing gets `max_completion_tokens`, which reasoning counts towards.
    pub fn limit_output(&self, tokens: u64) -> impl Iterator<Item = Splice> + use<> {
        let OutputPoints {
            max_tokens,
            max_completion_tokens,
            first_member,
        } = self.output;
        let is_missing = max_tokens.is_none() && max_completion_tokens.is_none();
        let inserted = is_missing.then(|| Splice {
            range: Span::at(first_member).range(),
            with: Cow::Owned(format!(r#""max_completion_tokens":{tokens},"#).into_bytes()),
        });
        let members = [max_tokens, max_completion_tokens].into_iter().flatten();
        let replaced = members.map(move |span| Splice {
            range: span.range(),
            with: Cow::Owned(tokens.to_string().into_bytes()),
        });
        replaced.chain(inserted)
    }

    /// Puts the provider's name of the model in the place of the one asked for; `None`: they are
    /// the same.
    pub fn rename_model(&self, asked: &str, upstream: &str) -> Option<Splice> {
        if asked == upstream {
            return None;
        }
        let mut with = Vec::with_capacity(upstream.len() + 2);
        write_text(&mut with, upstream);
        Some(Splice {
            range: self.model.range(),
            with: Cow::Owned(with),
        })
    }

    /// Asks for a stream's usage; `None`: the request does.
    pub fn include_usage(&self) -> Option<Splice> {
        let (span, with): (Span, &'static [u8]) = match self.usage {
            UsagePoint::Set => return None,
            UsagePoint::WholeMember(at) => {
                (Span::at(at), br#""stream_options":{"include_usage":true},"#)
            }
            UsagePoint::Options(span) => (span, br#"{"include_usage":true}"#),
            UsagePoint::Member { at, is_only: true } => (Span::at(at), br#""include_usage":true"#),
            UsagePoint::Member { at, is_only: false } => {
                (Span::at(at), br#""include_usage":true,"#)
            }
            UsagePoint::Value(span) => (span, b"true"),
        };
        Some(Splice {
            range: span.range(),
            with: Cow::Borrowed(with),
        })
    }
}

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

    pub(super) fn asks_usage(&self) -> bool {
        matches!(self, Self::Set)
    }
}
