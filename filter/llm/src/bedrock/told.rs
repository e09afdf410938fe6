//! What a frame tells: an event by its name, or an error.

use std::borrow::Cow;

use super::error;
use super::frames::{Frame, FrameFault};

/// The name of every error, whichever kind of frame told it; its data then is an error's body with
/// its type in it.
pub(crate) const ERROR: &[u8] = b"error";

/// An event's name and data; `None`: the frame tells nothing that is known.
pub(crate) fn told<'a>(frame: Result<Frame<'a>, FrameFault>) -> Option<(&'a [u8], Cow<'a, [u8]>)> {
    let frame = match frame {
        Ok(frame) => frame,
        Err(fault) => {
            let message = format!("broken event stream: {fault}");
            return Some((ERROR, Cow::Owned(error::body("", &message))));
        }
    };
    match frame.text(":message-type")? {
        "event" => {
            let name = frame.text(":event-type")?;
            Some((name.as_bytes(), Cow::Borrowed(frame.payload)))
        }
        "exception" => {
            let kind = frame.text(":exception-type").unwrap_or_default();
            let told = error::parse(frame.payload).unwrap_or_default();
            Some((ERROR, Cow::Owned(error::body(kind, &told.message))))
        }
        "error" => {
            let kind = frame.text(":error-code").unwrap_or_default();
            let message = frame.text(":error-message").unwrap_or_default();
            Some((ERROR, Cow::Owned(error::body(kind, message))))
        }
        _ => None,
    }
}
