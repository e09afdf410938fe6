//! Rates of tokens by class, and by the length of the prompt.

/// Pico-USD (10^-12 USD) per token by class. `None` is unknown, which is not zero; cache reads and
/// writes and audio then cost as input, reasoning and audio as output, and what is kept for an hour
/// as other cache writes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Rates {
    pub input_pusd: Option<u64>,
    pub cached_input_pusd: Option<u64>,
    pub cache_write_pusd: Option<u64>,
    pub cache_write_1h_pusd: Option<u64>,
    pub input_audio_pusd: Option<u64>,
    pub output_pusd: Option<u64>,
    pub reasoning_pusd: Option<u64>,
    pub output_audio_pusd: Option<u64>,
}

/// Rates, and those of whole requests whose input is long.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct RatesByLength {
    pub rates: Rates,
    pub long_context: Option<LongContext>,
}

/// What a whole request costs whose input is longer than a threshold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LongContext {
    /// Cached input included.
    pub above_input_tokens: u64,
    pub rates: Rates,
}

/// Tokens that have a price of their own. The classes are disjoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum TokenClass {
    /// Input that is neither audio, nor read from nor written to a cache.
    Input,
    CachedInput,
    /// Written to a cache that lasts some minutes.
    CacheWrite,
    CacheWrite1h,
    /// Audio that is neither read from nor written to a cache.
    AudioInput,
    /// Output that is neither reasoning nor audio.
    Output,
    Reasoning,
    AudioOutput,
}

impl Rates {
    /// No rate is known.
    pub const UNKNOWN: Self = Self {
        input_pusd: None,
        cached_input_pusd: None,
        cache_write_pusd: None,
        cache_write_1h_pusd: None,
        input_audio_pusd: None,
        output_pusd: None,
        reasoning_pusd: None,
        output_audio_pusd: None,
    };

    /// Pico-USD per token of a class; `None`: unknown.
    pub fn of(&self, class: TokenClass) -> Option<u64> {
        match class {
            TokenClass::Input => self.input_pusd,
            TokenClass::CachedInput => self.cached_input_pusd.or(self.input_pusd),
            TokenClass::CacheWrite => self.cache_write_pusd.or(self.input_pusd),
            TokenClass::CacheWrite1h => self
                .cache_write_1h_pusd
                .or(self.cache_write_pusd)
                .or(self.input_pusd),
            TokenClass::AudioInput => self.input_audio_pusd.or(self.input_pusd),
            TokenClass::Output => self.output_pusd,
            TokenClass::Reasoning => self.reasoning_pusd.or(self.output_pusd),
            TokenClass::AudioOutput => self.output_audio_pusd.or(self.output_pusd),
        }
    }

    /// True when those of input and output are known, and so all.
    pub const fn are_known(&self) -> bool {
        self.input_pusd.is_some() && self.output_pusd.is_some()
    }
}

impl RatesByLength {
    /// Those of a request with so many input tokens.
    pub fn of_length(&self, input_tokens: u64) -> &Rates {
        match &self.long_context {
            Some(long) if input_tokens > long.above_input_tokens => &long.rates,
            _ => &self.rates,
        }
    }

    /// Those of requests with at most so many input tokens.
    pub(super) fn up_to_length(&self, most_input_tokens: u64) -> impl Iterator<Item = &Rates> {
        let long = self.long_context.iter();
        let reached = long.filter(move |long| most_input_tokens > long.above_input_tokens);
        [&self.rates]
            .into_iter()
            .chain(reached.map(|long| &long.rates))
    }
}

impl TokenClass {
    /// Every class, input before output.
    pub const ALL: [Self; 8] = [
        Self::Input,
        Self::CachedInput,
        Self::CacheWrite,
        Self::CacheWrite1h,
        Self::AudioInput,
        Self::Output,
        Self::Reasoning,
        Self::AudioOutput,
    ];

    /// True when its tokens are counted as input.
    pub const fn is_input(self) -> bool {
        !matches!(self, Self::Output | Self::Reasoning | Self::AudioOutput)
    }
}
