//! ③ Guarded limits: while a stream runs, what it uses is compared with what is reserved for it.
//!
//! From four fifths on, more is reserved, of what this node has. Where there is none, the stream
//! goes on to the end of what it has, and is then cut: the client gets the closing events of its
//! dialect. What exceeds it is no more than what comes between two looks, and what the provider
//! has thought without showing it.

use filter_llm::closing::Closing;
use proto::config::v1::Enforcement;

use super::Exchange;
use super::admission::used_by;
use crate::host::{Clock, Now};

/// A stream is looked at each time that this much more of it is visible.
const LOOK_EVERY_BYTES: u64 = 256;

/// How far a stream is from its next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    /// Nothing guards it.
    Off,
    /// Looked at again when so many bytes are visible.
    At(u64),
    /// It was cut.
    Cut,
}

/// What a look showed.
enum Look {
    Fits,
    Exceeds,
}

impl Exchange {
    /// ③ After the frames of a hook: true if the stream is to end here. `out` gets the closing
    /// events, the first time.
    pub fn guard(&mut self, out: &mut Vec<u8>, clock: &dyn Clock) -> bool {
        let at_bytes = match self.guard {
            Guard::Off => return false,
            Guard::Cut => return true,
            Guard::At(bytes) => bytes,
        };
        let Some(attempt) = self.attempts.last() else {
            return false;
        };
        let (visible_bytes, _) = attempt.output_bytes();
        // In the middle of an event there is no place for others.
        if visible_bytes < at_bytes || attempt.answer.open_stream() != Some(true) {
            return false;
        }
        if attempt.is_complete() {
            self.guard = Guard::Off;
            return false;
        }
        let now = clock.now();
        match self.look(now) {
            Look::Fits => {
                self.guard = Guard::At(visible_bytes.saturating_add(LOOK_EVERY_BYTES));
                false
            }
            Look::Exceeds => {
                self.close_stream(now, out);
                true
            }
        }
    }

    /// ① True once the stream has had its closing events: nothing more is to reach the client.
    pub fn is_cut(&self) -> bool {
        self.guard == Guard::Cut
    }

    /// What guards the attempt that begins.
    pub(super) fn new_guard(&self) -> Guard {
        let Some(admitted) = self.admitted.as_ref().filter(|admitted| admitted.stream) else {
            return Guard::Off;
        };
        let mut metered = admitted
            .grips
            .last()
            .into_iter()
            .flat_map(|grip| grip.metered(&self.config));
        if metered.any(|(_, limit, _)| limit.enforcement == Enforcement::Guarded) {
            Guard::At(LOOK_EVERY_BYTES)
        } else {
            Guard::Off
        }
    }

    /// Compares what is used with what is reserved, and reserves more where it gets near.
    fn look(&mut self, now: Now) -> Look {
        let (Some(admitted), Some(attempt)) = (&mut self.admitted, self.attempts.last()) else {
            return Look::Fits;
        };
        let Some(grip) = admitted.grips.last_mut() else {
            return Look::Fits;
        };
        let seen = attempt.seen(admitted.text_bytes);
        let near: Vec<(usize, u64, u64)> = grip
            .metered(&self.config)
            .filter(|(_, limit, _)| limit.enforcement == Enforcement::Guarded)
            .map(|(need, limit, reserved)| {
                let (config, tier) = (&self.config, &admitted.asked_tier);
                let used = used_by(config, attempt, limit.unit, &seen, tier);
                (need, reserved, used)
            })
            .filter(|&(_, reserved, used)| used >= reserved - reserved / 5)
            .collect();
        for (need, reserved, used) in near {
            let more = (reserved / 2).max(used.saturating_sub(reserved)).max(1);
            if !grip.extend(need, more, now.mono_us) && used >= reserved {
                return Look::Exceeds;
            }
        }
        Look::Fits
    }

    fn close_stream(&mut self, now: Now, out: &mut Vec<u8>) {
        self.guard = Guard::Cut;
        self.error_code = Some("limit_cut");
        let (Some(admitted), Some(attempt)) = (&self.admitted, self.attempts.last_mut()) else {
            return;
        };
        let usage = attempt.seen(admitted.text_bytes).usage;
        if attempt.answer.close(usage, out) {
            return;
        }
        let model = self.config.models.get(attempt.planned.model);
        let reading = attempt.answer.reading();
        let made_id = format!("chatcmpl-{}", self.request_id);
        let told_id = reading.and_then(|reading| reading.id.as_deref());
        let closing = Closing {
            id: told_id.unwrap_or(&made_id),
            model: model.map_or("", |model| &model.id),
            created_at_s: now.unix_s(),
            usage: &usage,
            shows_usage: admitted.asks_usage,
            open_block: reading.and_then(|reading| reading.open_block),
            sequence_number: reading.map_or(0, |reading| reading.next_sequence_number),
        };
        closing.write(admitted.api, out);
    }
}
