//! A request's objects, read member by member, so that no member goes unnoticed.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::RequestFault;

/// Where a value stands. Displays as a path: `messages[2].content`; the body itself as nothing.
#[derive(Clone, Copy)]
pub(crate) enum Place<'p> {
    Body,
    Member(&'p Self, &'static str),
    Element(&'p Self, usize),
}

impl Place<'_> {
    /// A fault of the value here.
    pub(crate) fn fault(&self, wanted: &str) -> RequestFault {
        RequestFault {
            param: self.outermost(),
            message: format!("`{self}` must be {wanted}"),
            code: Some("invalid_value"),
        }
    }

    fn outermost(&self) -> Option<&'static str> {
        match self {
            Place::Body => None,
            Place::Member(Place::Body, name) => Some(name),
            Place::Member(parent, _) | Place::Element(parent, _) => parent.outermost(),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Body => Ok(()),
            Place::Member(Place::Body, name) => f.write_str(name),
            Place::Member(parent, name) => write!(f, "{parent}.{name}"),
            Place::Element(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// An object's members, in order; null ones are as good as missing, and left out.
#[derive(Debug, Default)]
pub(crate) struct Members<'a>(Vec<Member<'a>>);

/// A name, and its value until that is taken.
type Member<'a> = (Cow<'a, str>, Option<&'a RawValue>);

impl<'a> Members<'a> {
    /// An object to take members of.
    pub(crate) fn at<'p>(self, place: &'p Place<'p>) -> Object<'a, 'p> {
        let Self(members) = self;
        Object { members, place }
    }
}

/// An object whose members are taken one by one; what is left in the end has no meaning to us.
pub(crate) struct Object<'a, 'p> {
    members: Vec<Member<'a>>,
    place: &'p Place<'p>,
}

impl<'a, 'p> Object<'a, 'p> {
    /// The object in `value`.
    pub(crate) fn read(value: &'a RawValue, place: &'p Place<'p>) -> Result<Self, RequestFault> {
        let members: Members<'a> =
            serde_json::from_str(value.get()).map_err(|_| place.fault("an object"))?;
        Ok(members.at(place))
    }

    /// Takes a member; one that is there twice is a fault.
    pub(crate) fn take(
        &mut self,
        name: &'static str,
    ) -> Result<Option<&'a RawValue>, RequestFault> {
        let mut named = self.members.iter_mut().filter(|(key, _)| key == name);
        let value = named.next().and_then(|(_, value)| value.take());
        if named.next().is_some() {
            let mut fault = self.member(name).fault("there once only");
            fault.code = Some("duplicate_parameter");
            return Err(fault);
        }
        Ok(value)
    }

    /// Takes a member only if it is as wanted.
    pub(crate) fn take_if(
        &mut self,
        name: &'static str,
        is_wanted: impl FnOnce(&RawValue) -> bool,
    ) {
        let member = self.members.iter_mut().find(|(key, _)| key == name);
        if let Some((_, value)) = member
            && value.is_some_and(is_wanted)
        {
            *value = None;
        }
    }

    pub(crate) fn take_text(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Cow<'a, str>>, RequestFault> {
        self.take_as(name, "a string", text)
    }

    pub(crate) fn take_flag(&mut self, name: &'static str) -> Result<Option<bool>, RequestFault> {
        self.take_as(name, "a boolean", |value| value.get().parse().ok())
    }

    pub(crate) fn take_count(&mut self, name: &'static str) -> Result<Option<u64>, RequestFault> {
        let wanted = "a whole number of at least 0";
        self.take_as(name, wanted, |value| value.get().parse().ok())
    }

    pub(crate) fn take_integer(&mut self, name: &'static str) -> Result<Option<i64>, RequestFault> {
        self.take_as(name, "a whole number", |value| value.get().parse().ok())
    }

    pub(crate) fn take_number(&mut self, name: &'static str) -> Result<Option<f64>, RequestFault> {
        self.take_as(name, "a number", |value| {
            value
                .get()
                .parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
        })
    }

    /// Takes an array of objects.
    pub(crate) fn take_objects(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Vec<Members<'a>>>, RequestFault> {
        self.take_as(name, "an array of objects", objects)
    }

    pub(crate) fn take_as<T>(
        &mut self,
        name: &'static str,
        wanted: &str,
        convert: impl FnOnce(&'a RawValue) -> Option<T>,
    ) -> Result<Option<T>, RequestFault> {
        let Some(value) = self.take(name)? else {
            return Ok(None);
        };
        let fault = || self.member(name).fault(wanted);
        convert(value).map(Some).ok_or_else(fault)
    }

    /// A fault of a member that is missing.
    pub(crate) fn missing(&self, name: &'static str) -> RequestFault {
        let mut fault = self.member(name).fault("there");
        fault.code = Some("missing_required_parameter");
        fault
    }

    /// Names what has not been taken.
    pub(crate) fn leave(self, left_out: &mut Vec<Cow<'a, str>>) {
        let Self { members, place } = self;
        let left = members.into_iter().filter(|(_, value)| value.is_some());
        left_out.extend(left.map(|(key, _)| match place {
            Place::Body => key,
            place => format!("{place}.{key}").into(),
        }));
    }

    /// How an object of another kind than is read is named among what was left out.
    pub(crate) fn told_as(&self, kind: &str) -> String {
        format!("{} ({kind})", self.place)
    }

    pub(crate) fn member(&self, name: &'static str) -> Place<'p> {
        Place::Member(self.place, name)
    }
}

/// The text of a string; `None`: the value is no string of Unicode characters.
pub(crate) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let quoted = value.get();
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(quoted).ok().map(Cow::Owned)
}

/// The elements of an array of objects.
pub(crate) fn objects(value: &RawValue) -> Option<Vec<Members<'_>>> {
    serde_json::from_str(value.get()).ok()
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
            if value.get() != "null" {
                members.push((key, Some(value)));
            }
        }
        Ok(Members(members))
    }
}
