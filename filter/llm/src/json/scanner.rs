//! The scanner: one pass, any cut, no recursion, no allocation once its small buffer has grown.

use super::{Leaf, Reader};

/// Containers deep to which paths are told; what lies deeper is passed over.
pub const TRACKED_DEPTH: usize = 10;
/// Containers deep to which it is known which are arrays.
const KNOWN_DEPTH: usize = 64;
/// Longest key and longest number worth reading, in bytes.
const KEY_BYTES: usize = 40;
const SCALAR_BYTES: usize = 40;
/// Most strings end within this many bytes, where words beat a vectorised search.
const NEAR_BYTES: usize = 32;

/// Reads one document that arrives in pieces. [`Scanner::reset`] makes it ready for the next.
#[derive(Debug, Clone)]
pub struct Scanner<N> {
    state: State,
    /// Containers open.
    depth: usize,
    /// Bit d: the container opened at depth d is an array.
    arrays: u64,
    path: [N; TRACKED_DEPTH],
    /// Start of the string or scalar being read, as much of it as is wanted, where it does not lie
    /// in one piece.
    shown: Vec<u8>,
    shown_limit: usize,
    /// Length so far of the string being read, escapes resolved.
    text_bytes: u64,
    is_key: bool,
    /// Bytes of the document before the piece at hand.
    offset: usize,
    /// Where the outermost object's current member begins.
    member_start: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    BeforeValue,
    BeforeKey,
    BeforeColon,
    InText,
    InEscape,
    InHex {
        left: u8,
        unit: u16,
    },
    InScalar,
    AfterValue,
    /// Deeper than [`KNOWN_DEPTH`]: only strings and brackets are told apart.
    Deep,
    Complete,
    Broken,
}

impl<N: Copy> Scanner<N> {
    /// A scanner at the start of a document, for readers of this kind.
    pub fn new<R: Reader<Name = N>>() -> Self {
        Self {
            state: State::BeforeValue,
            depth: 0,
            arrays: 0,
            path: [R::UNKNOWN; TRACKED_DEPTH],
            shown: Vec::new(),
            shown_limit: 0,
            text_bytes: 0,
            is_key: false,
            offset: 0,
            member_start: 0,
        }
    }

    /// Forgets the document; buffers are kept.
    pub fn reset(&mut self) {
        self.state = State::BeforeValue;
        self.depth = 0;
        self.offset = 0;
        self.shown.clear();
        self.text_bytes = 0;
    }

    /// Reads the next piece.
    pub fn feed<R: Reader<Name = N>>(&mut self, piece: &[u8], reader: &mut R) {
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            at = match self.state {
                State::InText => self.in_text(piece, at, reader),
                State::InScalar => self.in_scalar(piece, at, reader),
                State::InEscape => self.in_escape(byte, at),
                State::InHex { left, unit } => self.in_hex(byte, left, unit, at),
                State::Broken => piece.len(),
                State::Deep => self.deep(byte, at),
                _ if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') => at + 1,
                State::BeforeKey => self.before_key(piece, byte, at, reader),
                State::BeforeColon => self.before_colon(byte, at),
                State::BeforeValue => self.before_value(piece, byte, at, reader),
                State::AfterValue => self.after_value(byte, at, reader),
                State::Complete => self.broken(at),
            };
        }
        self.offset += piece.len();
    }

    /// Tells that the document has ended; true if it was whole.
    pub fn finish<R: Reader<Name = N>>(&mut self, reader: &mut R) -> bool {
        // Only at the outermost level can a number end with the document.
        if self.state == State::InScalar && self.depth == 0 {
            self.end_scalar(&[], 0, reader);
        }
        self.is_complete()
    }

    /// Whether the document is whole.
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// Whether nothing but white space has been seen.
    pub fn is_untouched(&self) -> bool {
        self.state == State::BeforeValue && self.depth == 0
    }

    fn in_array(&self) -> bool {
        self.depth
            .checked_sub(1)
            .is_some_and(|level| self.arrays >> level & 1 == 1)
    }

    fn path(&self) -> Option<&[N]> {
        self.path.get(..self.depth)
    }

    fn broken(&mut self, at: usize) -> usize {
        self.state = State::Broken;
        at + 1
    }

    fn before_key<R: Reader<Name = N>>(
        &mut self,
        piece: &[u8],
        byte: u8,
        at: usize,
        reader: &mut R,
    ) -> usize {
        match byte {
            b'"' => {
                if self.depth == 1 {
                    self.member_start = self.offset + at;
                }
                let Some(key) = whole_text(piece, at + 1) else {
                    self.begin_text(true, KEY_BYTES);
                    return at + 1;
                };
                self.end_key::<R>(key, key.len() <= KEY_BYTES);
                self.skip_colon(piece, at + key.len() + 2)
            }
            b'}' => self.close(byte, at, reader),
            _ => self.broken(at),
        }
    }

    fn before_colon(&mut self, byte: u8, at: usize) -> usize {
        if byte != b':' {
            return self.broken(at);
        }
        self.state = State::BeforeValue;
        at + 1
    }

    fn before_value<R: Reader<Name = N>>(
        &mut self,
        piece: &[u8],
        byte: u8,
        at: usize,
        reader: &mut R,
    ) -> usize {
        match byte {
            b'"' => {
                let path = self.path();
                let wanted = path.map_or(0, |path| reader.text_bytes_wanted(path));
                let Some(text) = whole_text(piece, at + 1) else {
                    self.begin_text(false, wanted);
                    return at + 1;
                };
                let next = at + text.len() + 2;
                if let Some(path) = path {
                    let shown = text.get(..wanted).unwrap_or(text);
                    let bytes = text.len() as u64;
                    reader.leaf(path, Leaf::Text { shown, bytes });
                }
                self.end_value(self.offset + next, reader);
                next
            }
            b'{' | b'[' => self.open(byte == b'[', at, reader),
            b']' => self.close(byte, at, reader),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                self.shown.clear();
                self.state = State::InScalar;
                self.in_scalar(piece, at, reader)
            }
            _ => self.broken(at),
        }
    }

    fn after_value<R: Reader<Name = N>>(&mut self, byte: u8, at: usize, reader: &mut R) -> usize {
        match byte {
            b',' if self.in_array() => self.state = State::BeforeValue,
            b',' => {
                if self.depth == 1 {
                    reader.comma(self.offset + at);
                }
                self.state = State::BeforeKey;
            }
            b'}' | b']' => return self.close(byte, at, reader),
            _ => return self.broken(at),
        }
        at + 1
    }

    fn deep(&mut self, byte: u8, at: usize) -> usize {
        match byte {
            b'"' => self.begin_text(false, 0),
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.depth -= 1;
                if self.depth == KNOWN_DEPTH {
                    self.state = State::AfterValue;
                }
            }
            _ => {}
        }
        at + 1
    }

    fn open<R: Reader<Name = N>>(&mut self, is_array: bool, at: usize, reader: &mut R) -> usize {
        if let Some(path) = self.path() {
            reader.open(path);
        }
        let level = self.depth;
        self.depth += 1;
        if level >= KNOWN_DEPTH {
            self.state = State::Deep;
            return at + 1;
        }
        self.arrays = self.arrays & !(1 << level) | u64::from(is_array) << level;
        let name = if is_array { R::ITEM } else { R::UNKNOWN };
        self.set_name(level, name);
        self.state = if is_array {
            State::BeforeValue
        } else {
            State::BeforeKey
        };
        at + 1
    }

    fn close<R: Reader<Name = N>>(&mut self, byte: u8, at: usize, reader: &mut R) -> usize {
        if self.depth == 0 || self.in_array() != (byte == b']') {
            return self.broken(at);
        }
        self.depth -= 1;
        if let Some(path) = self.path() {
            reader.close(path);
        }
        self.end_value(self.offset + at + 1, reader);
        at + 1
    }

    fn set_name(&mut self, level: usize, name: N) {
        if let Some(place) = self.path.get_mut(level) {
            *place = name;
        }
    }

    fn end_value<R: Reader<Name = N>>(&mut self, end: usize, reader: &mut R) {
        self.state = match self.depth {
            0 => State::Complete,
            _ => State::AfterValue,
        };
        if self.depth == 1
            && !self.in_array()
            && let Some(&name) = self.path.first()
        {
            reader.member(name, self.member_start..end);
        }
    }

    fn begin_text(&mut self, is_key: bool, shown_limit: usize) {
        self.is_key = is_key;
        self.shown_limit = shown_limit;
        self.shown.clear();
        self.text_bytes = 0;
        self.state = State::InText;
    }

    fn in_text<R: Reader<Name = N>>(&mut self, piece: &[u8], at: usize, reader: &mut R) -> usize {
        let rest = piece.get(at..).unwrap_or_default();
        let (plain, stop) = rest.split_at(text_stop(rest));
        let next = at + plain.len() + 1;
        match stop {
            [] => {
                self.keep(plain);
                self.text_bytes += plain.len() as u64;
                piece.len()
            }
            [b'"', ..] => {
                self.end_text(plain, next, reader);
                self.skip_colon(piece, next)
            }
            [backslash, escaped, ..] if *escaped != b'u' => {
                self.keep(plain);
                self.keep(&[*backslash, *escaped]);
                self.text_bytes += plain.len() as u64 + 1;
                next + 1
            }
            _ => {
                self.keep(plain);
                self.keep(b"\\");
                self.text_bytes += plain.len() as u64;
                self.state = State::InEscape;
                next
            }
        }
    }

    /// Takes the colon that nearly always follows a key at once.
    fn skip_colon(&mut self, piece: &[u8], at: usize) -> usize {
        if self.state == State::BeforeColon && piece.get(at) == Some(&b':') {
            self.state = State::BeforeValue;
            return at + 1;
        }
        at
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.shown_limit.saturating_sub(self.shown.len());
        if room > 0 {
            let kept = bytes.get(..room).unwrap_or(bytes);
            self.shown.extend_from_slice(kept);
        }
    }

    fn in_escape(&mut self, byte: u8, at: usize) -> usize {
        self.keep(&[byte]);
        self.state = match byte {
            b'u' => State::InHex { left: 4, unit: 0 },
            _ => {
                self.text_bytes += 1;
                State::InText
            }
        };
        at + 1
    }

    fn in_hex(&mut self, byte: u8, left: u8, unit: u16, at: usize) -> usize {
        let Some(digit) = char::from(byte).to_digit(16) else {
            return self.broken(at);
        };
        self.keep(&[byte]);
        let unit = unit << 4 | u16::try_from(digit).unwrap_or_default();
        if left > 1 {
            let left = left - 1;
            self.state = State::InHex { left, unit };
        } else {
            // Each half of a surrogate pair counts for half of its four bytes.
            self.text_bytes += match unit {
                0..0x80 => 1,
                0x80..0x800 | 0xd800..0xe000 => 2,
                _ => 3,
            };
            self.state = State::InText;
        }
        at + 1
    }

    /// Ends a string that was cut or has escapes; its last bytes are `plain`, and the byte `next`
    /// of the piece follows it.
    fn end_text<R: Reader<Name = N>>(&mut self, plain: &[u8], next: usize, reader: &mut R) {
        self.keep(plain);
        self.text_bytes += plain.len() as u64;
        if self.is_key {
            let key = std::mem::take(&mut self.shown);
            self.end_key::<R>(&key, key.len() as u64 == self.text_bytes);
            self.shown = key;
        } else if self.depth > KNOWN_DEPTH {
            self.state = State::Deep;
        } else {
            if let Some(path) = self.path() {
                let (shown, bytes) = (self.shown.as_slice(), self.text_bytes);
                reader.leaf(path, Leaf::Text { shown, bytes });
            }
            self.end_value(self.offset + next, reader);
        }
    }

    /// Takes a key's name; one that has escapes or is too long is not known.
    fn end_key<R: Reader<Name = N>>(&mut self, key: &[u8], is_plain: bool) {
        let name = if is_plain { R::name(key) } else { R::UNKNOWN };
        self.set_name(self.depth.saturating_sub(1), name);
        self.state = State::BeforeColon;
    }

    fn in_scalar<R: Reader<Name = N>>(&mut self, piece: &[u8], at: usize, reader: &mut R) -> usize {
        let rest = piece.get(at..).unwrap_or_default();
        let stop = rest.iter().position(|byte| !is_scalar(*byte));
        let (scalar, _) = rest.split_at(stop.unwrap_or(rest.len()));
        let next = at + scalar.len();
        if stop.is_some() {
            self.end_scalar(scalar, next, reader);
        } else {
            self.shown_limit = SCALAR_BYTES;
            self.keep(scalar);
        }
        next
    }

    fn end_scalar<R: Reader<Name = N>>(&mut self, last: &[u8], next: usize, reader: &mut R) {
        let scalar = if self.shown.is_empty() {
            last
        } else {
            self.shown_limit = SCALAR_BYTES;
            self.keep(last);
            &self.shown
        };
        let leaf = match scalar {
            b"null" => Leaf::Null,
            b"true" => Leaf::Bool(true),
            b"false" => Leaf::Bool(false),
            [b'-' | b'0'..=b'9', ..] if scalar.len() < SCALAR_BYTES => Leaf::Number(scalar),
            [b'-' | b'0'..=b'9', ..] => Leaf::Number(&[]),
            _ => {
                self.state = State::Broken;
                return;
            }
        };
        if let Some(path) = self.path() {
            reader.leaf(path, leaf);
        }
        self.end_value(self.offset + next, reader);
    }
}

/// The string that begins at `from`, if it ends in this piece and has no escapes.
fn whole_text(piece: &[u8], from: usize) -> Option<&[u8]> {
    let rest = piece.get(from..)?;
    let (text, stop) = rest.split_at_checked(text_stop(rest))?;
    (stop.first() == Some(&b'"')).then_some(text)
}

/// Where a string's plain bytes stop: at a quote, a backslash or the piece's end.
#[inline]
fn text_stop(rest: &[u8]) -> usize {
    let mut at = 0;
    while at < NEAR_BYTES {
        let Some(word) = rest.get(at..).and_then(<[u8]>::first_chunk) else {
            break;
        };
        let stops = stops_in(u64::from_le_bytes(*word));
        if stops != 0 {
            return at + (stops.trailing_zeros() / 8) as usize;
        }
        at += size_of::<u64>();
    }
    let far = rest.get(at..).unwrap_or_default();
    at + memchr::memchr2(b'"', b'\\', far).unwrap_or(far.len())
}

/// The top bit of each byte that is a quote or a backslash; above the first one, of others too.
fn stops_in(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([0x01; 8]);
    const TOPS: u64 = u64::from_le_bytes([0x80; 8]);
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    zeros(word ^ (ONES * 0x22)) | zeros(word ^ (ONES * 0x5c))
}

fn is_scalar(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'+' | b'.')
}

#[cfg(test)]
mod tests;
