//! The enumerations of resources: one word each in JSON and SQL, one number each on the wire.

use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident as $wire:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $(
                #[serde(rename = $word)]
                $variant,
            )+
        }

        impl $name {
            /// Every word, in wire order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word in JSON and SQL.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The value of a word, if it is one.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// The number on the wire.
            pub fn to_wire(self) -> i32 {
                match self {
                    $(Self::$variant => config::$wire::$variant.into(),)+
                }
            }

            /// The value of a number on the wire; none for 0 and for numbers not known here.
            pub fn from_wire(number: i32) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.to_wire() == number)
            }
        }
    };
}

words! {
    /// The protocol a provider speaks.
    Dialect as Dialect {
        Openai = "openai",
        Anthropic = "anthropic",
        Gemini = "gemini",
        Converse = "converse",
    }
}
words! {
    /// Where a provider's credential goes.
    CredentialPlace as CredentialPlace {
        Bearer = "bearer",
        ApiKey = "api_key",
        XApiKey = "x_api_key",
        None = "none",
        XGoogApiKey = "x_goog_api_key",
        Sigv4 = "sigv4",
    }
}
words! {
    /// In what a provider differs from the first of its dialect.
    Quirk as Quirk {
        MaxTokensMember = "max_tokens_member",
        NoJsonSchema = "no_json_schema",
        NoReasoning = "no_reasoning",
        NoParallelToolCalls = "no_parallel_tool_calls",
        ToolChoiceAny = "tool_choice_any",
        NoLinks = "no_links",
        Vertex = "vertex",
        NoResponses = "no_responses",
        WantsReasoningBack = "wants_reasoning_back",
    }
}
words! {
    /// What a model offers.
    Capability as Capability {
        Tools = "tools",
        ImageInput = "image_input",
        AudioInput = "audio_input",
        JsonSchema = "json_schema",
        FileInput = "file_input",
    }
}
words! {
    /// How hard a model should think.
    Effort as Effort { Low = "low", Medium = "medium", High = "high" }
}
words! {
    /// What an attempt costs whose provider reported nothing after bytes were sent.
    OnUnknownUsage as OnUnknownUsage { Estimate = "estimate", Void = "void" }
}
words! {
    /// What becomes of requests to a target whose price is not known.
    OnUnknownPrice as OnUnknownPrice { Allow = "allow", Deny = "deny", Default = "default" }
}

words! {
    /// Who shares a limit's buckets.
    LimitSubject as LimitSubject {
        Everything = "everything",
        Team = "team",
        Key = "key",
        EndUser = "end_user",
    }
}
words! {
    /// What a limit counts.
    LimitUnit as LimitUnit {
        Requests = "requests",
        InFlight = "in_flight",
        Tokens = "tokens",
        InputTokens = "input_tokens",
        UncachedInputTokens = "uncached_input_tokens",
        OutputTokens = "output_tokens",
        Money = "money",
    }
}
words! {
    /// Over what a limit holds.
    LimitWindow as LimitWindow {
        None = "none",
        Second = "second",
        Minute = "minute",
        Hour = "hour",
        Day = "day",
        Week = "week",
        Month = "month",
        Lifetime = "lifetime",
    }
}
words! {
    /// How a request is kept within a limit on tokens or money.
    Enforcement as Enforcement {
        Strict = "strict",
        Guarded = "guarded",
        Estimated = "estimated",
    }
}
words! {
    /// What happens to a request that does not fit.
    OnExceed as OnExceed {
        Reject = "reject",
        SkipTarget = "skip_target",
        Warn = "warn",
    }
}
words! {
    /// What happens at a limit's edge while no control plane can be asked.
    OnUnavailable as OnUnavailable { Reject = "reject", Allow = "allow" }
}
words! {
    /// What a limit does with a request whose cost has no upper bound.
    OnUnbounded as OnUnbounded { Reject = "reject", Estimate = "estimate" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_wire_numbers_are_one_to_one() {
        for effort in Effort::ALL {
            assert_eq!(Effort::from_word(effort.word()), Some(*effort));
            assert_eq!(Effort::from_wire(effort.to_wire()), Some(*effort));
        }
        assert_eq!(Capability::from_wire(0), None);
        assert_eq!(Capability::from_wire(99), None);
        assert_eq!(Dialect::from_word("unspecified"), None);
    }
}
