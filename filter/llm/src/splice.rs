//! Edits of byte ranges, applied in one pass, so that a body stays itself but for what must change.

use std::borrow::Cow;
use std::ops::Range;

/// One edit: the bytes of `range` become `with`. An empty range inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    pub range: Range<usize>,
    pub with: Cow<'static, [u8]>,
}

/// Edits of one body, in the order of their places.
///
/// Ranges are of the body as it came. Where two overlap, the later one begins where the earlier
/// one ends; what lies beyond the body's end is cut off there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Splices(Vec<Splice>);

impl Splices {
    /// No edits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an edit; of two at the same place the one added first comes first.
    pub fn push(&mut self, splice: Splice) {
        let at = self
            .0
            .partition_point(|earlier| earlier.range.start <= splice.range.start);
        self.0.insert(at, splice);
    }

    /// Whether the body stays as it is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Length in bytes of the edited form of a body of `body_len` bytes.
    pub fn len_after(&self, body_len: usize) -> usize {
        let mut len = body_len;
        self.each(body_len, |_, range, with| {
            len = len.saturating_sub(range.len()).saturating_add(with.len());
        });
        len
    }

    /// The edited body.
    pub fn apply(&self, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len_after(body.len()));
        self.apply_into(body, &mut out);
        out
    }

    /// Appends the edited body to `out`.
    pub fn apply_into(&self, body: &[u8], out: &mut Vec<u8>) {
        let mut copied = 0;
        self.each(body.len(), |kept_from, range, with| {
            out.extend_from_slice(body.get(kept_from..range.start).unwrap_or_default());
            out.extend_from_slice(with);
            copied = range.end;
        });
        out.extend_from_slice(body.get(copied..).unwrap_or_default());
    }

    /// Calls `edit` with the start of the untouched bytes before it, its range and its bytes.
    fn each(&self, body_len: usize, mut edit: impl FnMut(usize, Range<usize>, &[u8])) {
        let mut kept_from = 0;
        for splice in &self.0 {
            let start = splice.range.start.clamp(kept_from, body_len);
            let end = splice.range.end.clamp(start, body_len);
            edit(kept_from, start..end, &splice.with);
            kept_from = end;
        }
    }
}

impl FromIterator<Splice> for Splices {
    fn from_iter<I: IntoIterator<Item = Splice>>(splices: I) -> Self {
        let mut all = Self::new();
        for splice in splices {
            all.push(splice);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splice(range: Range<usize>, with: &'static str) -> Splice {
        Splice {
            range,
            with: Cow::Borrowed(with.as_bytes()),
        }
    }

    #[test]
    fn edits_are_applied_by_place_whatever_the_order_they_were_added_in() {
        let splices: Splices = [splice(6..9, "two"), splice(0..1, "A"), splice(3..3, "+")]
            .into_iter()
            .collect();
        assert_eq!(splices.apply(b"abcdefghij"), b"Abc+deftwoj");
        assert_eq!(splices.len_after(10), 11);
    }

    #[test]
    fn no_edit_gives_the_same_bytes() {
        assert_eq!(Splices::new().apply(b"same"), b"same");
        assert_eq!(Splices::new().len_after(4), 4);
    }

    #[test]
    fn overlaps_and_ends_beyond_the_body_are_cut_and_the_length_agrees() {
        let splices: Splices = [splice(1..4, "x"), splice(2..50, "y"), splice(60..70, "z")]
            .into_iter()
            .collect();
        let edited = splices.apply(b"abcdef");
        assert_eq!(edited, b"axyz");
        assert_eq!(splices.len_after(6), edited.len());
    }
}
