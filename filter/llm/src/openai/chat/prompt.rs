//! What a prompt needs of a model, and how much text it has, without building any of it.

use serde_json::value::RawValue;

use crate::json::{Leaf, Reader, Scanner};
use crate::request::Needs;

/// Which member is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Messages,
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
    Scanner::new::<Prompt<'_>>().feed(member.get().as_bytes(), &mut prompt);
    prompt.text_bytes
}

/// Whether the member is an array that is not empty.
pub(super) fn has_elements(member: &RawValue) -> bool {
    let inner = member.get().strip_prefix('[');
    inner.is_some_and(|inner| !inner.trim_ascii_start().starts_with(']'))
}

/// Whether a `response_format` asks for a JSON schema.
pub(super) fn is_json_schema(format: &RawValue) -> bool {
    let mut reader = FormatReader {
        is_json_schema: false,
    };
    Scanner::new::<FormatReader>().feed(format.get().as_bytes(), &mut reader);
    reader.is_json_schema
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Unknown,
    Item,
    Arguments,
    Content,
    Function,
    FunctionCall,
    /// `name`.
    Called,
    Refusal,
    Text,
    ToolCalls,
    Type,
}

impl Name {
    fn of(key: &[u8]) -> Self {
        match key {
            b"arguments" => Self::Arguments,
            b"content" => Self::Content,
            b"function" => Self::Function,
            b"function_call" => Self::FunctionCall,
            b"name" => Self::Called,
            b"refusal" => Self::Refusal,
            b"text" => Self::Text,
            b"tool_calls" => Self::ToolCalls,
            b"type" => Self::Type,
            _ => Self::Unknown,
        }
    }
}

struct Prompt<'a> {
    part: Part,
    needs: &'a mut Needs,
    text_bytes: u64,
}

/// The longest `type` that means something.
const TYPE_BYTES: usize = 16;

impl Reader for Prompt<'_> {
    type Name = Name;
    const UNKNOWN: Name = Name::Unknown;
    const ITEM: Name = Name::Item;

    fn name(key: &[u8]) -> Name {
        Name::of(key)
    }

    fn text_bytes_wanted(&self, path: &[Name]) -> usize {
        match path {
            [Name::Item, Name::Content, Name::Item, Name::Type] => TYPE_BYTES,
            _ => 0,
        }
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        let Leaf::Text { shown, bytes } = leaf else {
            return;
        };
        match path {
            _ if self.part == Part::Tools => self.text_bytes += bytes,
            [Name::Item, Name::Content, Name::Item, Name::Type] => match shown {
                b"image_url" | b"input_image" => self.needs.image_input = true,
                b"input_audio" => self.needs.audio_input = true,
                b"file" | b"input_file" => self.needs.file_input = true,
                _ => {}
            },
            [Name::Item, Name::Content | Name::Refusal]
            | [
                Name::Item,
                Name::Content,
                Name::Item,
                Name::Text | Name::Refusal,
            ]
            | [
                Name::Item,
                Name::FunctionCall,
                Name::Called | Name::Arguments,
            ]
            | [
                Name::Item,
                Name::ToolCalls,
                Name::Item,
                Name::Function,
                Name::Called | Name::Arguments,
            ] => self.text_bytes += bytes,
            _ => {}
        }
    }
}

struct FormatReader {
    is_json_schema: bool,
}

impl Reader for FormatReader {
    type Name = Name;
    const UNKNOWN: Name = Name::Unknown;
    const ITEM: Name = Name::Item;

    fn name(key: &[u8]) -> Name {
        Name::of(key)
    }

    fn text_bytes_wanted(&self, path: &[Name]) -> usize {
        match path {
            [Name::Type] => TYPE_BYTES,
            _ => 0,
        }
    }

    fn leaf(&mut self, path: &[Name], leaf: Leaf<'_>) {
        if let ([Name::Type], Leaf::Text { shown, .. }) = (path, leaf) {
            self.is_json_schema = shown == b"json_schema";
        }
    }
}
