//! Headers of a frame: a name's length in one byte, the name, a type in one byte, the value.

/// A header's value, one of the ten types that the format knows; true and false are two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderValue<'a> {
    Bool(bool),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Bytes(&'a [u8]),
    Text(&'a str),
    /// Milliseconds since 1970.
    Timestamp(i64),
    Uuid([u8; 16]),
}

/// The headers of a frame, one after the other; ends at one that can't be read.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    rest: &'a [u8],
}

impl<'a> Headers<'a> {
    pub(super) const fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether all of them can be read.
    pub(super) fn are_sound(mut self) -> bool {
        while self.next().is_some() {}
        self.rest.is_empty()
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a str, HeaderValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = self.rest;
        let [name_bytes] = array(&mut rest)?;
        let name = text(&mut rest, usize::from(name_bytes))?;
        let [kind] = array(&mut rest)?;
        let value = value(&mut rest, kind)?;
        self.rest = rest;
        Some((name, value))
    }
}

fn value<'a>(rest: &mut &'a [u8], kind: u8) -> Option<HeaderValue<'a>> {
    Some(match kind {
        0 => HeaderValue::Bool(true),
        1 => HeaderValue::Bool(false),
        2 => HeaderValue::Byte(i8::from_be_bytes(array(rest)?)),
        3 => HeaderValue::Short(i16::from_be_bytes(array(rest)?)),
        4 => HeaderValue::Int(i32::from_be_bytes(array(rest)?)),
        5 => HeaderValue::Long(i64::from_be_bytes(array(rest)?)),
        6 => {
            let len = usize::from(u16::from_be_bytes(array(rest)?));
            HeaderValue::Bytes(take(rest, len)?)
        }
        7 => {
            let len = usize::from(u16::from_be_bytes(array(rest)?));
            HeaderValue::Text(text(rest, len)?)
        }
        8 => HeaderValue::Timestamp(i64::from_be_bytes(array(rest)?)),
        9 => HeaderValue::Uuid(array(rest)?),
        _ => return None,
    })
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, later) = rest.split_at_checked(len)?;
    *rest = later;
    Some(taken)
}

fn array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    take(rest, N)?.try_into().ok()
}

fn text<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a str> {
    std::str::from_utf8(take(rest, len)?).ok()
}
