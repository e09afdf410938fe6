//! Fixed words of the config protos, the same in flags, YAML, JSON and tables.

use std::fmt;

use clap::ValueEnum;
use proto::config::v1 as pb;
use serde::{Deserialize, Serialize};

use crate::failure::CallError;

/// Ties a set of words to a wire enum; wire values without a word are refused.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $name:ident = $wire:ident as $field:literal {
            $($(#[$word_meta:meta])* $word:ident = $text:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum,
        )]
        pub(crate) enum $name {
            $(
                $(#[$word_meta])*
                #[serde(rename = $text)]
                #[value(name = $text)]
                $word,
            )*
        }

        impl $name {
            pub(crate) fn to_wire(self) -> i32 {
                match self {
                    $(Self::$word => pb::$wire::$word.into(),)*
                }
            }

            pub(crate) fn from_wire(value: i32) -> Result<Self, CallError> {
                match pb::$wire::try_from(value) {
                    $(Ok(pb::$wire::$word) => Ok(Self::$word),)*
                    Ok(pb::$wire::Unspecified) | Err(_) => {
                        Err(CallError::Unknown { field: $field, value })
                    }
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$word => $text,)*
                })
            }
        }
    };
}

words! {
    /// The wire protocol that a provider speaks.
    #[derive(Default)]
    Dialect = Dialect as "dialect" {
        /// OpenAI, and every provider compatible with it
        #[default]
        Openai = "openai",
        /// Anthropic's Messages, of Anthropic, Vertex or Azure
        Anthropic = "anthropic",
        /// Google's generateContent, of AI Studio or Vertex
        Gemini = "gemini",
        /// Bedrock's Converse
        Converse = "converse",
    }
}

words! {
    /// The header that carries a provider's credential.
    CredentialPlace = CredentialPlace as "credential place" {
        /// `authorization: Bearer SECRET`
        Bearer = "bearer",
        /// `api-key: SECRET` (Azure)
        ApiKey = "api-key",
        /// `x-api-key: SECRET`
        XApiKey = "x-api-key",
        /// `x-goog-api-key: SECRET`
        XGoogApiKey = "x-goog-api-key",
        /// AWS Signature Version 4; SECRET is `KEY_ID:SECRET_KEY[:SESSION_TOKEN]`
        Sigv4 = "sigv4",
        /// The provider takes none
        None = "none",
    }
}

words! {
    /// In what a provider differs from the first of its dialect.
    Quirk = Quirk as "quirk" {
        /// Takes `max_tokens` where OpenAI has `max_completion_tokens`
        MaxTokensMember = "max-tokens-member",
        /// Knows no JSON schema as an answer's form
        NoJsonSchema = "no-json-schema",
        /// Knows no reasoning effort, no thinking
        NoReasoning = "no-reasoning",
        /// Knows no `parallel_tool_calls`
        NoParallelToolCalls = "no-parallel-tool-calls",
        /// Has `any` for the tool choice `required`
        ToolChoiceAny = "tool-choice-any",
        /// Fetches no links: images must be in the request
        NoLinks = "no-links",
        /// Vertex's form of Anthropic's and Gemini's APIs
        Vertex = "vertex",
        /// Does not serve `/v1/responses`: such requests are translated
        NoResponses = "no-responses",
        /// Wants its reasoning back with the calls that it led to
        WantsReasoningBack = "wants-reasoning-back",
    }
}

words! {
    /// What a model can do.
    Capability = Capability as "capability" {
        Tools = "tools",
        ImageInput = "image-input",
        AudioInput = "audio-input",
        JsonSchema = "json-schema",
        FileInput = "file-input",
    }
}

words! {
    /// How hard a model thinks about a request.
    Effort = Effort as "effort" {
        Low = "low",
        Medium = "medium",
        High = "high",
    }
}

words! {
    /// What an attempt costs whose provider reported nothing after bytes were sent.
    OnUnknownUsage = OnUnknownUsage as "onUnknownUsage" {
        /// Charge an estimate, marked as one
        Estimate = "estimate",
        /// Charge nothing
        Void = "void",
    }
}

words! {
    /// What becomes of requests to a target whose price is not known.
    OnUnknownPrice = OnUnknownPrice as "onUnknownPrice" {
        /// Let them through; the cost stays unknown
        Allow = "allow",
        /// Leave the target out
        Deny = "deny",
        /// Charge `defaultPrice`
        Default = "default",
    }
}

words! {
    /// Who shares a limit's buckets.
    LimitSubject = LimitSubject as "subject" {
        /// One bucket for the whole deployment
        Everything = "everything",
        Team = "team",
        Key = "key",
        /// `user` of the request, within its team
        EndUser = "end-user",
    }
}

words! {
    /// What a limit counts.
    LimitUnit = LimitUnit as "unit" {
        Requests = "requests",
        /// Requests that are open at a time
        InFlight = "in-flight",
        /// Input and output
        Tokens = "tokens",
        InputTokens = "input-tokens",
        /// Input that was not read from a cache
        UncachedInputTokens = "uncached-input-tokens",
        OutputTokens = "output-tokens",
        Money = "money",
    }
}

words! {
    /// Over what a limit holds.
    LimitWindow = LimitWindow as "window" {
        /// For in-flight only
        None = "none",
        Second = "second",
        Minute = "minute",
        Hour = "hour",
        Day = "day",
        /// From Monday on
        Week = "week",
        Month = "month",
        /// Never ends
        Lifetime = "lifetime",
    }
}

words! {
    /// How a request is kept within a limit.
    Enforcement = Enforcement as "enforcement" {
        /// Reserves an upper bound and never exceeds it
        Strict = "strict",
        /// Reserves an estimate, extends it, and cuts the stream when it can't
        Guarded = "guarded",
        /// Reserves an estimate; what is in flight may exceed the amount
        Estimated = "estimated",
    }
}

words! {
    /// What happens to a request that does not fit.
    OnExceed = OnExceed as "onExceed" {
        /// 429
        Reject = "reject",
        /// Goes on with the next target that fits
        SkipTarget = "skip-target",
        /// Let through and counted
        Warn = "warn",
    }
}

words! {
    /// What happens at a limit's edge while no control plane can be asked.
    OnUnavailable = OnUnavailable as "onUnavailable" {
        /// 503
        Reject = "reject",
        /// Let through, up to the outage allowance
        Allow = "allow",
    }
}

words! {
    /// What happens to a request whose cost has no upper bound.
    OnUnbounded = OnUnbounded as "onUnbounded" {
        /// 400 that names the field
        Reject = "reject",
        /// Reserve the estimate instead
        Estimate = "estimate",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_to_the_wire_and_back_and_unspecified_does_not() {
        for capability in Capability::value_variants() {
            assert_eq!(
                Capability::from_wire(capability.to_wire()).unwrap(),
                *capability
            );
        }
        assert_eq!(CredentialPlace::XApiKey.to_wire(), 3);
        assert!(Effort::from_wire(0).is_err());
        let error = Dialect::from_wire(99).unwrap_err().to_string();
        assert!(error.contains("dialect (99)"), "{error}");
    }
}
