//! The places where a request is edited before it goes to a provider of the same dialect.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::json::write_text;
use crate::splice::Splice;

/// Where a request's body is edited, in bytes from its start. Good for that body alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EditPoints {
    /// `None`: the body does not name it.
    pub(crate) model: Option<Span>,
    /// What makes a stream tell its usage; `None`: it does.
    pub(crate) usage: Option<Edit>,
    pub(crate) output: OutputPoints,
}

/// Where the most tokens of output are said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputPoints {
    pub(crate) said: [Option<Span>; 2],
    /// Where it goes if it is not said.
    pub(crate) missing: Option<MissingOutput>,
}

/// A place for the most tokens of output, and what stands around the number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissingOutput {
    pub(crate) at: usize,
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
}

/// A fixed edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) span: Span,
    pub(crate) with: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) fn range(self) -> Range<usize> {
        self.start..self.end
    }

    pub(crate) fn at(start: usize) -> Self {
        Self { start, end: start }
    }

    /// Where `value`, which was borrowed from `body`, lies in it.
    pub(crate) fn of(body: &[u8], value: &RawValue) -> Self {
        let start = (value.get().as_ptr() as usize).saturating_sub(body.as_ptr() as usize);
        let end = start + value.get().len();
        Self { start, end }
    }

    /// Where a body that is an object can take a member before its others.
    pub(crate) fn first_member(body: &[u8]) -> Self {
        let brace = body.iter().position(|byte| *byte == b'{');
        Self::at(brace.unwrap_or_default() + 1)
    }
}

impl EditPoints {
    /// Bounds the output of one choice to `tokens`, in whichever members the request says it.
    pub fn limit_output(&self, tokens: u64) -> impl Iterator<Item = Splice> + use<> {
        let OutputPoints { said, missing } = self.output;
        let is_said = said.iter().any(Option::is_some);
        let inserted = missing.filter(|_| !is_said).map(|missing| Splice {
            range: Span::at(missing.at).range(),
            with: Cow::Owned(format!("{}{tokens}{}", missing.before, missing.after).into_bytes()),
        });
        let replaced = said.into_iter().flatten().map(move |span| Splice {
            range: span.range(),
            with: Cow::Owned(tokens.to_string().into_bytes()),
        });
        replaced.chain(inserted)
    }

    /// Puts the provider's name of the model in the place of the one asked for; `None`: they are
    /// the same, or the body names none.
    pub fn rename_model(&self, asked: &str, upstream: &str) -> Option<Splice> {
        let span = self.model.filter(|_| asked != upstream)?;
        let mut with = Vec::with_capacity(upstream.len() + 2);
        write_text(&mut with, upstream);
        Some(Splice {
            range: span.range(),
            with: Cow::Owned(with),
        })
    }

    /// Asks for a stream's usage; `None`: it comes without.
    pub fn include_usage(&self) -> Option<Splice> {
        let Edit { span, with } = self.usage?;
        Some(Splice {
            range: span.range(),
            with: Cow::Borrowed(with.as_bytes()),
        })
    }
}
