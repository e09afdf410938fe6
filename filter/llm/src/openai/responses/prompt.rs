//! What a prompt needs of a model, and how much text it has, without building any of it.

use serde_json::value::RawValue;

use crate::json::{Leaf, Reader, Scanner};
use crate::request::Needs;

/// Which member is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// `input`, or `instructions`, which can be the same.
    Input,
    /// Every string in it is text for the model.
    Tools,
}

/// Reads a member that is valid JSON: adds to `needs` and gives its bytes of text.
pub(super) fn read(member: &RawValue, part: Part, needs: &mut Needs) -> u64 {
    let mut prompt = Prompt {
        part,
        needs,
        text_bytes: 0,
    };
    let mut scanner = Scanner::new::<Prompt<'_>>();
    scanner.feed(member.get().as_bytes(), &mut prompt);
    scanner.finish(&mut prompt);
    prompt.text_bytes
}

/// Whether the member is an array that is not empty.
pub(super) fn has_elements(member: &RawValue) -> bool {
    let inner = member.get().strip_prefix('[');
    inner.is_some_and(|inner| !inner.trim_ascii_start().starts_with(']'))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Unknown,
    Item,
    Arguments,
    /// `name`.
    Called,
    Content,
    Input,
    Output,
    Refusal,
    Summary,
    Text,
    Type,
}

/// The longest `type` that means something.
const TYPE_BYTES: usize = 16;

struct Prompt<'a> {
    part: Part,
    needs: &'a mut Needs,
    text_bytes: u64,
}

impl Prompt<'_> {
    fn needs(&mut self, kind: &[u8]) {
        match kind {
            b"input_image" => self.needs.image_input = true,
            b"input_audio" => self.needs.audio_input = true,
            b"input_file" => self.needs.file_input = true,
            _ => {}
        }
    }
}

impl Reader for Prompt<'_> {
    type Name = Name;
    const UNKNOWN: Name = Name::Unknown;
    const ITEM: Name = Name::Item;

    fn name(key: &[u8]) -> Name {
        match key {
            b"arguments" => Name::Arguments,
            b"content" => Name::Content,
            b"input" => Name::Input,
            b"name" => Name::Called,
            b"output" => Name::Output,
            b"refusal" => Name::Refusal,
            b"summary" => Name::Summary,
            b"text" => Name::Text,
            b"type" => Name::Type,
            _ => Name::Unknown,
        }
    }

    fn text_bytes_wanted(&self, path: &[Name]) -> usize {
        match path {
            [
                Name::Item,
                Name::Content | Name::Output,
                Name::Item,
                Name::Type,
            ] => TYPE_BYTES,
            _ => 0,
        }
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        let Leaf::Text { shown, bytes } = leaf else {
            return;
        };
        match path {
            _ if self.part == Part::Tools => self.text_bytes += bytes,
            [
                Name::Item,
                Name::Content | Name::Output,
                Name::Item,
                Name::Type,
            ] => self.needs(shown),
            []
            | [
                Name::Item,
                Name::Content | Name::Called | Name::Arguments | Name::Input | Name::Output,
            ]
            | [
                Name::Item,
                Name::Content | Name::Output | Name::Summary,
                Name::Item,
                Name::Text | Name::Refusal,
            ] => self.text_bytes += bytes,
            _ => {}
        }
    }
}
