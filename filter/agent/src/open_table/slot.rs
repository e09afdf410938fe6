//! One open exchange, as its worker writes it.

use std::{
    rc::Rc,
    sync::atomic::{AtomicU64, Ordering},
};

use filter_core::exchange::Progress;
use filter_llm::usage::Usage;
use proto::metering::v1::Verdict;

use super::{
    layout::{
        ATTEMPT_BODY, CLIENT_STATUS, DURATION_US, EXCHANGE_BODY, FIRST_CONTENT_US, FLAGS, LEFT_FOR,
        NOTED_TEXT_BYTES, REASONING_BYTES, SERVICE_TIER, SLOT_WORDS, Seal, USAGE_PLACE,
        USAGE_WORDS, USAGES, VISIBLE_BYTES, WORD_BYTES, checksum, store, store_bytes,
    },
    table::Place,
};

const IS_SENT: u64 = 1;
const VERDICT_SHIFT: u32 = 8;
const STATUS_SHIFT: u32 = 16;

/// The slot of one exchange. Dropping it leaves the slot taken, as a crash would.
#[derive(Debug)]
pub struct Slot<M> {
    memory: Rc<M>,
    place: Place,
    /// Of the exchange's id.
    salt: u32,
    /// Where the next attempt goes, counted from the slot's first word.
    next_at: usize,
    last: Option<Last>,
    /// A note that takes two stores or more was made of this.
    noted: Noted,
}

/// The attempt that is noted.
#[derive(Clone, Copy, Debug)]
struct Last {
    number: u32,
    at: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    usage_place: u64,
    reported: Option<Usage>,
    is_left: bool,
    has_tier: bool,
}

impl<M: AsRef<[AtomicU64]>> Slot<M> {
    /// `None` if the body is too long.
    pub(super) fn open(memory: Rc<M>, place: Place, body: &[u8], id: &[u8]) -> Option<Self> {
        let slot = Self {
            memory,
            place,
            salt: checksum(0, id),
            next_at: EXCHANGE_BODY + body.len().div_ceil(WORD_BYTES),
            last: None,
            noted: Noted::default(),
        };
        let words = slot.words();
        // The seal of the first attempt must fit.
        if slot.next_at >= words.len() {
            return None;
        }
        store(words, CLIENT_STATUS, 0, Ordering::Relaxed);
        store_bytes(words, EXCHANGE_BODY, body);
        store(words, slot.next_at, 0, Ordering::Relaxed);
        store(words, 0, Seal::of(body, 0).to_word(), Ordering::Release);
        Some(slot)
    }

    /// False if there is no room for it. Attempts are numbered upwards; one that has begun is not
    /// begun again.
    pub(super) fn begin_attempt(&mut self, number: u32, body: &[u8]) -> bool {
        if self.last.is_some_and(|last| last.number >= number) {
            return true;
        }
        let at = self.next_at;
        let next_at = at + ATTEMPT_BODY + body.len().div_ceil(WORD_BYTES);
        let words = self.words();
        if next_at > words.len() {
            return false;
        }
        for of_progress in at + 1..at + ATTEMPT_BODY {
            store(words, of_progress, 0, Ordering::Relaxed);
        }
        store_bytes(words, at + ATTEMPT_BODY, body);
        store(words, next_at, 0, Ordering::Relaxed);
        let seal = Seal::of(body, self.salt).to_word();
        store(words, at, seal, Ordering::Release);
        self.next_at = next_at;
        self.last = Some(Last { number, at });
        self.noted = Noted::default();
        true
    }

    /// Notes how far the attempt has come that began last; what is said of others is ignored.
    pub fn note(&mut self, progress: &Progress<'_>) {
        let Some(last) = self.last.filter(|last| last.number == progress.number) else {
            return;
        };
        let words = self.words();
        let note = |at: usize, word: u64| store(words, last.at + at, word, Ordering::Relaxed);
        note(VISIBLE_BYTES, progress.visible_bytes);
        note(REASONING_BYTES, progress.reasoning_bytes);
        note(FIRST_CONTENT_US, progress.first_content_us);
        let noted = note_usage(self.noted, progress, note);
        let note_text = |at: usize, text: &str| {
            let text = text.as_bytes();
            let text = text.get(..NOTED_TEXT_BYTES).unwrap_or(text);
            store_bytes(words, last.at + at, text);
        };
        if progress.duration_us != 0 && !noted.is_left {
            note(DURATION_US, progress.duration_us);
            note_text(LEFT_FOR, progress.left_for);
        }
        if !progress.service_tier.is_empty() && !noted.has_tier {
            note_text(SERVICE_TIER, progress.service_tier);
        }
        note(FLAGS, flags(progress));
        store(
            words,
            CLIENT_STATUS,
            progress.client_status.into(),
            Ordering::Relaxed,
        );
        self.noted = Noted {
            is_left: progress.duration_us != 0,
            has_tier: !progress.service_tier.is_empty(),
            ..noted
        };
    }

    pub(super) fn close(self) -> (Rc<M>, Place) {
        store(self.words(), 0, 0, Ordering::Release);
        (self.memory, self.place)
    }

    fn words(&self) -> &[AtomicU64] {
        let start = self.place.slot * SLOT_WORDS;
        let words = (*self.memory).as_ref().get(start..start + SLOT_WORDS);
        words.unwrap_or_default()
    }
}

/// The place that counts is never written to.
fn note_usage(noted: Noted, progress: &Progress<'_>, note: impl Fn(usize, u64)) -> Noted {
    let Some(usage) = progress
        .reported
        .filter(|_| progress.reported != noted.reported)
    else {
        return noted;
    };
    let usage_place = if noted.usage_place == 1 { 2 } else { 1 };
    let start = if usage_place == 1 {
        USAGES
    } else {
        USAGES + USAGE_WORDS
    };
    for (at, tokens) in (start..).zip(usage_words(&usage)) {
        note(at, tokens);
    }
    std::sync::atomic::fence(Ordering::Release);
    note(USAGE_PLACE, usage_place);
    Noted {
        usage_place,
        reported: Some(usage),
        ..noted
    }
}

const fn usage_words(usage: &Usage) -> [u64; USAGE_WORDS] {
    [
        usage.input,
        usage.cached_input,
        usage.cache_write,
        usage.cache_write_1h,
        usage.input_audio,
        usage.output,
        usage.reasoning,
        usage.output_audio,
    ]
}

pub(super) const fn usage_of(words: &[u64; USAGE_WORDS]) -> Usage {
    let [
        input,
        cached_input,
        cache_write,
        cache_write_1h,
        input_audio,
        output,
        reasoning,
        output_audio,
    ] = *words;
    Usage {
        input,
        cached_input,
        cache_write,
        cache_write_1h,
        input_audio,
        output,
        reasoning,
        output_audio,
    }
}

fn flags(progress: &Progress<'_>) -> u64 {
    let verdict = u64::try_from(progress.verdict as i32).unwrap_or(0);
    let is_sent = if progress.is_sent { IS_SENT } else { 0 };
    is_sent | verdict << VERDICT_SHIFT | u64::from(progress.status) << STATUS_SHIFT
}

/// Whether the request was sent, the status and the verdict.
pub(super) fn read_flags(flags: u64) -> (bool, u32, Verdict) {
    let field = |shift: u32, mask: u64| (flags >> shift) & mask;
    let verdict = i32::try_from(field(VERDICT_SHIFT, 0xff)).unwrap_or(0);
    let status = u32::try_from(field(STATUS_SHIFT, 0xffff)).unwrap_or(0);
    (
        flags & IS_SENT != 0,
        status,
        Verdict::try_from(verdict).unwrap_or_default(),
    )
}
