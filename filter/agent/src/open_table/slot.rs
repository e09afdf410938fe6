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
        MORE, NOTED_TEXT_BYTES, REASONING_BYTES, SERVICE_TIER, SLOT_WORDS, Seal, USAGE_PLACE,
        USAGE_WORDS, USAGES, VISIBLE_BYTES, WORD_BYTES, checksum, store, store_bytes,
    },
    table::Place,
};

const IS_SENT: u64 = 1;
const IS_OUTPUT_EARLY: u64 = 2;
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
    /// It was left, and the provider will not bill it.
    is_unbilled: bool,
    visible_bytes: u64,
    reasoning_bytes: u64,
    /// What was visible of the attempts that became one with this.
    before: Option<(u64, u64)>,
    more: u64,
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
        self.write_attempt(self.next_at, number, body)
    }

    /// Instead of the last attempt, if that one costs nothing. False: it may, or there is no room.
    pub(super) fn replace_unbilled(&mut self, number: u32, body: &[u8]) -> bool {
        let unbilled = self.last.filter(|_| self.noted.is_unbilled);
        let Some(Last { at, .. }) = unbilled else {
            return false;
        };
        let next_at = at + ATTEMPT_BODY + body.len().div_ceil(WORD_BYTES);
        if next_at > self.words().len() {
            return false;
        }
        store(self.words(), at, 0, Ordering::Relaxed);
        // No word of the new one is to be seen under the old one's seal.
        std::sync::atomic::fence(Ordering::Release);
        self.write_attempt(at, number, body)
    }

    /// Counts an attempt as one more of the last. False: there is none.
    pub(super) fn join_attempt(&mut self, number: u32) -> bool {
        let Some(last) = &mut self.last else {
            return false;
        };
        last.number = number;
        let at = last.at + MORE;
        self.noted.more += 1;
        self.noted.before = Some((self.noted.visible_bytes, self.noted.reasoning_bytes));
        store(self.words(), at, self.noted.more, Ordering::Release);
        true
    }

    fn write_attempt(&mut self, at: usize, number: u32, body: &[u8]) -> bool {
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
        store(
            words,
            CLIENT_STATUS,
            progress.client_status.into(),
            Ordering::Relaxed,
        );
        let (visible, reasoning) = self.noted.before.unwrap_or_default();
        let visible_bytes = visible.saturating_add(progress.visible_bytes);
        let reasoning_bytes = reasoning.saturating_add(progress.reasoning_bytes);
        note(VISIBLE_BYTES, visible_bytes);
        note(REASONING_BYTES, reasoning_bytes);
        let noted = Noted {
            visible_bytes,
            reasoning_bytes,
            ..self.noted
        };
        if noted.before.is_some() {
            // All else is of the attempt that the others became one with.
            self.noted = noted;
            return;
        }
        note(FIRST_CONTENT_US, progress.first_content_us);
        let noted = note_usage(noted, progress, note);
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
        note(FLAGS, Flags::of(progress).to_word());
        let is_left = progress.duration_us != 0;
        self.noted = Noted {
            is_left,
            is_unbilled: is_left && progress.verdict == Verdict::NotBilled,
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

/// What one word says of an attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flags {
    pub(super) is_sent: bool,
    pub(super) is_output_early: bool,
    pub(super) status: u16,
    pub(super) verdict: Verdict,
}

impl Flags {
    const fn of(progress: &Progress<'_>) -> Self {
        Self {
            is_sent: progress.is_sent,
            is_output_early: progress.is_output_early,
            status: progress.status,
            verdict: progress.verdict,
        }
    }

    fn to_word(self) -> u64 {
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        let verdict = u64::try_from(self.verdict as i32).unwrap_or(0);
        flag(self.is_sent, IS_SENT)
            | flag(self.is_output_early, IS_OUTPUT_EARLY)
            | verdict << VERDICT_SHIFT
            | u64::from(self.status) << STATUS_SHIFT
    }

    pub(super) fn from_word(word: u64) -> Self {
        let field = |shift: u32, mask: u64| (word >> shift) & mask;
        let verdict = i32::try_from(field(VERDICT_SHIFT, 0xff)).unwrap_or(0);
        Self {
            is_sent: word & IS_SENT != 0,
            is_output_early: word & IS_OUTPUT_EARLY != 0,
            status: u16::try_from(field(STATUS_SHIFT, 0xffff)).unwrap_or(0),
            verdict: Verdict::try_from(verdict).unwrap_or_default(),
        }
    }
}
