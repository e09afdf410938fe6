//! From a member's untouched bytes to the value that decides.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::RequestFault;

/// Members of `metadata` that are looked at; more is a fault. OpenAI takes 16.
const MOST_METADATA: usize = 128;

type Member<'a> = Option<&'a RawValue>;
type Texts<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// The member unless it is null, which is as good as missing.
pub(crate) fn set(member: Member<'_>) -> Member<'_> {
    member.filter(|value| value.get() != "null")
}

pub(crate) fn model(member: &RawValue) -> Result<Cow<'_, str>, RequestFault> {
    let name = string(member, "model")?;
    if name.is_empty() {
        return Err(RequestFault::wrong_value(
            "model",
            "the name of a model, not empty",
        ));
    }
    Ok(name)
}

pub(crate) fn text<'a>(
    member: Member<'a>,
    param: &'static str,
) -> Result<Option<Cow<'a, str>>, RequestFault> {
    set(member).map(|value| string(value, param)).transpose()
}

pub(crate) fn boolean(
    member: Member<'_>,
    param: &'static str,
) -> Result<Option<bool>, RequestFault> {
    set(member)
        .map(|value| match value.get() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(RequestFault::wrong_kind(param, "a boolean", value)),
        })
        .transpose()
}

pub(crate) fn count(member: Member<'_>, param: &'static str) -> Result<Option<u64>, RequestFault> {
    set(member)
        .map(|value| {
            let digits = value.get();
            let is_number =
                digits.starts_with(|first: char| first == '-' || first.is_ascii_digit());
            match digits.parse() {
                Ok(count) => Ok(count),
                Err(_) if is_number => Err(RequestFault::wrong_value(
                    param,
                    "a whole number of at least 0",
                )),
                Err(_) => Err(RequestFault::wrong_kind(param, "a whole number", value)),
            }
        })
        .transpose()
}

pub(crate) fn choices(member: Member<'_>) -> Result<u64, RequestFault> {
    match count(member, "n")? {
        Some(0) => Err(RequestFault::wrong_value("n", "at least 1")),
        choices => Ok(choices.unwrap_or(1)),
    }
}

fn string<'a>(value: &'a RawValue, param: &'static str) -> Result<Cow<'a, str>, RequestFault> {
    let quoted = value.get();
    let Some(inner) = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    else {
        return Err(RequestFault::wrong_kind(param, "a string", value));
    };
    if !inner.contains('\\') {
        return Ok(Cow::Borrowed(inner));
    }
    serde_json::from_str(quoted)
        .map(Cow::Owned)
        .map_err(|_| RequestFault::wrong_value(param, "a string of Unicode characters"))
}

/// The string members of `metadata`. Others match no attribute, and providers that take them get
/// them as they are.
pub(crate) fn metadata<'a>(member: Member<'a>) -> Result<Texts<'a>, RequestFault> {
    let Some(value) = set(member) else {
        return Ok(Vec::new());
    };
    if !value.get().starts_with('{') {
        return Err(RequestFault::wrong_kind("metadata", "an object", value));
    }
    let wanted = "an object of at most 128 members, none of them twice";
    let pairs: Pairs<'a> = serde_json::from_str(value.get())
        .map_err(|_| RequestFault::wrong_value("metadata", wanted))?;
    let is_text = |(_, value): &(Key<'a>, &'a RawValue)| value.get().starts_with('"');
    pairs
        .0
        .into_iter()
        .filter(is_text)
        .map(|(key, value)| Ok((key.0, string(value, "metadata")?)))
        .collect()
}

#[derive(Deserialize, PartialEq)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

struct Pairs<'a>(Vec<(Key<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs: Vec<(Key<'de>, &'de RawValue)> = Vec::new();
        while let Some((key, value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
            if pairs.len() >= MOST_METADATA || pairs.iter().any(|(earlier, _)| *earlier == key) {
                return Err(serde::de::Error::custom("too many members, or one twice"));
            }
            pairs.push((key, value));
        }
        Ok(Pairs(pairs))
    }
}
