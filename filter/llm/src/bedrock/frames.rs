//! Frames of `application/vnd.amazon.eventstream`, as they arrive: cut anywhere.
//!
//! All numbers are big-endian. A frame is its length and that of its headers (4 bytes each), the
//! CRC32 of both, headers, payload, and the CRC32 of everything before (Smithy, "Amazon Event
//! Stream specification"). Nothing is copied but a frame that spans chunks.

mod header;
mod print;

pub use header::{HeaderValue, Headers};
pub use print::{write_error, write_event, write_exception, write_frame};

const PRELUDE_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;
/// More headers than this are refused; AWS's own readers take no more either.
const MOST_HEADER_BYTES: usize = 128 * 1024;
/// Buffers up to this size are kept for the next frame that spans chunks.
const KEPT_BUFFER_BYTES: usize = 8 * 1024;

/// What is wrong with a frame. None can be found behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    #[error("the checksum of a frame's prelude differs")]
    PreludeChecksum,
    #[error("the lengths of a frame contradict each other: {frame} bytes, {headers} of headers")]
    Lengths { frame: usize, headers: usize },
    #[error("a frame has {bytes} bytes, more than the {most} that are read")]
    TooLarge { bytes: usize, most: usize },
    #[error("the checksum of a frame differs")]
    Checksum,
    #[error("the headers of a frame can't be read")]
    Headers,
}

/// A whole frame whose checksums hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    headers: &'a [u8],
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Its headers, in order.
    pub const fn headers(&self) -> Headers<'a> {
        Headers::of(self.headers)
    }

    /// The header of this name, if it is a text.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        let mut headers = self.headers();
        headers.find_map(|(header, value)| match value {
            HeaderValue::Text(text) if header == name => Some(text),
            _ => None,
        })
    }

    /// `bytes` are all of it; its prelude has been read.
    fn parse(bytes: &'a [u8]) -> Result<Self, FrameFault> {
        let (summed, checksum) = bytes
            .split_last_chunk::<CHECKSUM_BYTES>()
            .ok_or(FrameFault::Checksum)?;
        if crc32fast::hash(summed) != u32::from_be_bytes(*checksum) {
            return Err(FrameFault::Checksum);
        }
        let header_bytes = number(bytes, 4).unwrap_or_default();
        let body = summed.get(PRELUDE_BYTES..).unwrap_or_default();
        let (headers, payload) = body
            .split_at_checked(header_bytes)
            .ok_or(FrameFault::Headers)?;
        if !Headers::of(headers).are_sound() {
            return Err(FrameFault::Headers);
        }
        Ok(Self { headers, payload })
    }
}

/// The four bytes at `at`.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = bytes.get(at..)?.first_chunk()?;
    usize::try_from(u32::from_be_bytes(*digits)).ok()
}

/// Cuts a stream into its frames.
#[derive(Clone, Debug)]
pub struct FrameStream {
    /// The frame at hand, as much of it as came in earlier chunks.
    pending: Vec<u8>,
    max_frame_bytes: usize,
    is_broken: bool,
}

impl FrameStream {
    /// A stream whose frames are read up to `max_frame_bytes`, checksums included.
    pub const fn new(max_frame_bytes: usize) -> Self {
        Self {
            pending: Vec::new(),
            max_frame_bytes,
            is_broken: false,
        }
    }

    /// Whether the bytes so far end where a frame ends.
    pub const fn is_at_boundary(&self) -> bool {
        self.pending.is_empty()
    }

    /// Takes the next chunk and hands on the frames that it completes. After a fault nothing more
    /// is handed on.
    pub fn push(&mut self, chunk: &[u8], mut hand_on: impl FnMut(Result<Frame<'_>, FrameFault>)) {
        let mut rest = chunk;
        while !self.is_broken && !rest.is_empty() {
            match self.take(rest, &mut hand_on) {
                Ok(taken) => rest = rest.get(taken..).unwrap_or_default(),
                Err(fault) => {
                    self.is_broken = true;
                    self.pending = Vec::new();
                    hand_on(Err(fault));
                }
            }
        }
    }

    /// Takes a frame's bytes, or as many as there are of it, and tells how many that were.
    fn take(
        &mut self,
        bytes: &[u8],
        hand_on: &mut impl FnMut(Result<Frame<'_>, FrameFault>),
    ) -> Result<usize, FrameFault> {
        if self.pending.is_empty() {
            let len = self.frame_bytes(bytes)?;
            let Some(frame) = len.and_then(|len| bytes.get(..len)) else {
                self.pending.extend_from_slice(bytes);
                return Ok(bytes.len());
            };
            hand_on(Ok(Frame::parse(frame)?));
            return Ok(frame.len());
        }
        let wanted = self.frame_bytes(&self.pending)?.unwrap_or(PRELUDE_BYTES);
        let missing = wanted.saturating_sub(self.pending.len());
        let taken = bytes.get(..missing).unwrap_or(bytes);
        self.pending.extend_from_slice(taken);
        if self.frame_bytes(&self.pending)? == Some(self.pending.len()) {
            hand_on(Ok(Frame::parse(&self.pending)?));
            if self.pending.capacity() > KEPT_BUFFER_BYTES {
                self.pending = Vec::new();
            }
            self.pending.clear();
        }
        Ok(taken.len())
    }

    /// The length of the frame that begins here; `None`: its prelude is not whole.
    fn frame_bytes(&self, bytes: &[u8]) -> Result<Option<usize>, FrameFault> {
        let (Some(frame), Some(headers), Some(checksum)) =
            (number(bytes, 0), number(bytes, 4), number(bytes, 8))
        else {
            return Ok(None);
        };
        let summed = bytes.get(..8).unwrap_or_default();
        if usize::try_from(crc32fast::hash(summed)) != Ok(checksum) {
            return Err(FrameFault::PreludeChecksum);
        }
        let least = headers.saturating_add(PRELUDE_BYTES + CHECKSUM_BYTES);
        if headers > MOST_HEADER_BYTES || frame < least {
            return Err(FrameFault::Lengths { frame, headers });
        }
        if frame > self.max_frame_bytes {
            return Err(FrameFault::TooLarge {
                bytes: frame,
                most: self.max_frame_bytes,
            });
        }
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests;
