//! How models differ in what they take. Nothing in the API says it but the model's name.

/// How a model may be told to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thinks {
    /// Within a budget of tokens, if it is told to. Takes sampling.
    WithinBudget,
    /// As much as an effort is worth, unless it is told not to. Takes no budget and no sampling.
    Adaptively,
    /// The same, and refuses to be told not to.
    Always,
}

type Version = (u32, u32);

/// The first version that refuses budgets and sampling (Anthropic's migration guide to Opus 4.7).
const FIRST_ADAPTIVE: Version = (4, 7);
/// Families that refuse to be told not to think, from a version on.
const ALWAYS: [(&str, Version); 3] = [("fable", (0, 0)), ("mythos", (0, 0)), ("opus", (5, 5))];

impl Thinks {
    /// Of a model by its name at any provider: `claude-opus-4-7`, `claude-sonnet-4-5@20250929`,
    /// `us.anthropic.claude-3-7-sonnet-20250219-v1:0`. One that tells no version is taken to be old.
    pub(super) fn of(model: &str) -> Self {
        let Some((_, name)) = model.split_once("claude") else {
            return Self::WithinBudget;
        };
        let version = version(name);
        let always = |(family, since): &(&str, Version)| name.contains(family) && version >= *since;
        if ALWAYS.iter().any(always) {
            Self::Always
        } else if version >= FIRST_ADAPTIVE {
            Self::Adaptively
        } else {
            Self::WithinBudget
        }
    }
}

/// The first one or two numbers that follow each other; dates are longer. Zeros: there are none.
fn version(name: &str) -> Version {
    let is_number =
        |part: &&str| (1..=2).contains(&part.len()) && part.bytes().all(|it| it.is_ascii_digit());
    let parts = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let numbers = parts
        .skip_while(|part| !is_number(part))
        .take_while(is_number);
    let mut numbers = numbers.filter_map(|number| number.parse().ok());
    let mut next = || numbers.next().unwrap_or_default();
    (next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_tells_how_it_thinks() {
        for (model, thinks) in [
            ("claude-3-7-sonnet-20250219", Thinks::WithinBudget),
            ("claude-sonnet-4-20250514", Thinks::WithinBudget),
            ("claude-sonnet-4-5@20250929", Thinks::WithinBudget),
            (
                "us.anthropic.claude-haiku-4-5-20251001-v1:0",
                Thinks::WithinBudget,
            ),
            ("claude-opus-4-6", Thinks::WithinBudget),
            ("claude-2.1", Thinks::WithinBudget),
            ("our-claude", Thinks::WithinBudget),
            ("gpt-5", Thinks::WithinBudget),
            ("claude-opus-4-7", Thinks::Adaptively),
            ("anthropic/claude-opus-4.8", Thinks::Adaptively),
            ("claude-sonnet-5", Thinks::Adaptively),
            ("claude-opus-5@20260724", Thinks::Adaptively),
            ("claude-opus-5-5", Thinks::Always),
            ("claude-fable-5", Thinks::Always),
            ("claude-mythos-preview", Thinks::Always),
        ] {
            assert_eq!(Thinks::of(model), thinks, "{model}");
        }
    }
}
