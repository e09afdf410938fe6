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
    /// What makes it a request of Vertex's; `None`: it is the same there.
    pub(crate) vertex: Option<Edit>,
}

/// Where the most tokens of output are said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputPoints {
    pub(crate) said: [Option<Span>; 2],
    /// Where it goes if it is not said.
    pub(crate) missing: Option<MissingOutput>,
    /// The name of the one member that says it, if that is `max_completion_tokens`.
    pub(crate) completion_name: Option<Span>,
}

/// A place for the most tokens of output, and what stands around the number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissingOutput {
    pub(crate) at: usize,
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
}

/// What stands before the number that OpenAI's chat is given by default.
pub(crate) const MAX_COMPLETION_TOKENS: &str = r#""max_completion_tokens":"#;

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

    /// The whole member that has this value: its name too, which may have no quote in it.
    pub(crate) fn with_name(self, body: &[u8]) -> Self {
        Self {
            start: self.name_of(body).unwrap_or(self).start,
            end: self.end,
        }
    }

    /// The name of the member that has this value, in its quotes; it has no quote in it.
    pub(crate) fn name_of(self, body: &[u8]) -> Option<Self> {
        let mut quotes = memchr::memrchr_iter(b'"', body.get(..self.start)?);
        let (closing, opening) = (quotes.next()?, quotes.next()?);
        Some(Self {
            start: opening,
            end: closing + 1,
        })
    }

    fn covers(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
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
        let OutputPoints { said, missing, .. } = self.output;
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

    /// For a provider of chat that knows no bound of the output but `max_tokens`: a bound that is
    /// put in goes there.
    #[must_use]
    pub fn with_max_tokens(mut self) -> Self {
        if let Some(missing) = &mut self.output.missing
            && missing.before == MAX_COMPLETION_TOKENS
        {
            missing.before = r#""max_tokens":"#;
        }
        self
    }

    /// For the same: `max_completion_tokens` becomes `max_tokens`; `None`: the request does not say
    /// it, or both.
    pub fn rename_output(&self) -> Option<Splice> {
        self.output.completion_name.map(|name| Splice {
            range: name.range(),
            with: Cow::Borrowed(br#""max_tokens""#),
        })
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

    /// The same for Vertex, which is told the API's version in the body, and the model there only
    /// if it is not in the path.
    pub fn rename_model_for_vertex(&self, asked: &str, upstream: &str) -> [Option<Splice>; 2] {
        let is_in_path = self
            .vertex
            .zip(self.model)
            .is_some_and(|(edit, model)| edit.span.covers(model));
        let rename = self.rename_model(asked, upstream).filter(|_| !is_in_path);
        let version = self.vertex.map(|Edit { span, with }| Splice {
            range: span.range(),
            with: Cow::Borrowed(with.as_bytes()),
        });
        [version, rename]
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
