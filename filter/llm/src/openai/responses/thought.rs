//! How a client of responses gets thinking with its signatures, and sends it back.
//!
//! - Thinking is an item `reasoning`: its text is the summary, which clients show, and what proves
//!   or hides it is `encrypted_content`, which clients keep and send back as it is. In front of it
//!   stands a mark, so that it can be told from what OpenAI encrypted, which no other provider can
//!   take, and a signature from thinking that is hidden altogether.
//! - A signature that belongs to a tool's call is in the call's id, as with chat completions.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::conversation::Thinking;

const SIGNATURE: &str = "turnpike.signature.";
const REDACTED: &str = "turnpike.redacted.";

/// What stands in `encrypted_content`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sealed<'a> {
    Signature(Cow<'a, str>),
    Redacted(Cow<'a, str>),
}

impl<'a> Sealed<'a> {
    /// Of thinking; `None`: it is neither signed nor hidden.
    pub(super) fn of(thinking: &'a Thinking<'_>) -> Option<Self> {
        match thinking {
            Thinking::Shown { signature, .. } => {
                let signature = signature.as_deref()?;
                Some(Self::Signature(signature.into()))
            }
            Thinking::Redacted { data } => Some(Self::Redacted(data.as_ref().into())),
        }
    }

    /// What a client sent back; `None`: another has written it.
    pub(super) fn read(content: Cow<'a, str>) -> Option<Self> {
        if content.starts_with(SIGNATURE) {
            return Some(Self::Signature(without(content, SIGNATURE.len())));
        }
        let is_redacted = content.starts_with(REDACTED);
        is_redacted.then(|| Self::Redacted(without(content, REDACTED.len())))
    }
}

fn without(text: Cow<'_, str>, prefix_bytes: usize) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => text.get(prefix_bytes..).unwrap_or_default().into(),
        Cow::Owned(mut text) => {
            text.drain(..prefix_bytes);
            text.into()
        }
    }
}

impl fmt::Display for Sealed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mark, content) = match self {
            Self::Signature(signature) => (SIGNATURE, signature),
            Self::Redacted(data) => (REDACTED, data),
        };
        f.write_str(mark)?;
        f.write_str(content)
    }
}

impl Serialize for Sealed<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_read_back_and_what_others_wrote_is_not() {
        let sealed = [
            (Sealed::Signature("c2ln".into()), "turnpike.signature.c2ln"),
            (Sealed::Redacted("ZGF0".into()), "turnpike.redacted.ZGF0"),
        ];
        for (sealed, text) in sealed {
            assert_eq!(sealed.to_string(), text);
            assert_eq!(Sealed::read(text.into()), Some(sealed.clone()));
            assert_eq!(Sealed::read(text.to_owned().into()), Some(sealed));
        }
        assert_eq!(Sealed::read("gAAAAABo".into()), None);
    }
}
