//! Events of a stream as they are printed.

use serde::Serialize;

use super::block::Block;
use super::message::{MessageShown, UsageShown};
use crate::openai::print::write_json;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum EventShown<'r> {
    MessageStart {
        message: MessageShown<'r>,
    },
    ContentBlockStart {
        index: u32,
        content_block: Block<'r>,
    },
    ContentBlockDelta {
        index: u32,
        delta: DeltaShown<'r>,
    },
    ContentBlockStop {
        index: u32,
    },
    MessageDelta {
        delta: EndShown<'r>,
        usage: UsageShown,
    },
    MessageStop,
}

/// What is new of a block.
#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum DeltaShown<'r> {
    #[serde(rename = "text_delta")]
    Text { text: &'r str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'r str },
    #[serde(rename = "signature_delta")]
    Signature { signature: &'r str },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: &'r str },
}

/// How the message ended.
#[derive(Serialize)]
pub(super) struct EndShown<'r> {
    pub(super) stop_reason: &'static str,
    pub(super) stop_sequence: Option<&'r str>,
}

impl EventShown<'_> {
    /// Appends the event, its blank line included.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(self.name().as_bytes());
        out.extend_from_slice(b"\ndata: ");
        write_json(self, out);
        out.extend_from_slice(b"\n\n");
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::MessageStart { .. } => "message_start",
            Self::ContentBlockStart { .. } => "content_block_start",
            Self::ContentBlockDelta { .. } => "content_block_delta",
            Self::ContentBlockStop { .. } => "content_block_stop",
            Self::MessageDelta { .. } => "message_delta",
            Self::MessageStop => "message_stop",
        }
    }
}
