//! The last events of a stream that the gateway ends before its provider does.

use crate::api::Api;
use crate::usage::Usage;
use crate::{anthropic, gemini, openai};

/// What the closing events name, as the stream's own events do.
#[derive(Clone, Copy, Debug)]
pub struct Closing<'a> {
    pub id: &'a str,
    pub model: &'a str,
    pub created_at_s: u64,
    pub usage: &'a Usage,
    /// The client asked for the usage.
    pub shows_usage: bool,
    /// The block that is open, for APIs that know blocks.
    pub open_block: Option<u32>,
    /// The next event's number, for APIs that number them.
    pub sequence_number: u64,
}

impl Closing<'_> {
    /// Appends events that finish the first choice for its length, tell the usage, and end the
    /// stream. What was sent before must end where an event ends.
    pub fn write(&self, api: Api, out: &mut Vec<u8>) {
        match api {
            Api::Messages => anthropic::closing::write(self, out),
            Api::GenerateContent => gemini::closing::write(self, out),
            Api::Responses => openai::responses::closing::write(self, out),
            Api::Completions => openai::closing::write_completion(self, out),
            _ => openai::closing::write(self, out),
        }
    }
}
