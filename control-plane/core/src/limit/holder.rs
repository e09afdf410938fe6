//! Processes that hold leases: epochs, beats, fencing.

use super::EXPIRY_US;

/// Where a process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    Live,
    /// Its beats stopped; the credit of the epoch before is suspended.
    Lost,
    /// It said that it holds nothing any more.
    Closed,
}

/// A process that holds leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// From 1; rises when it is fenced. Credit belongs to an epoch.
    pub epoch: u64,
    pub standing: Standing,
    /// It shuts down: it gets no more than what a waiting request lacks.
    pub draining: bool,
    /// Unix microseconds; from then on it may be fenced.
    pub expires_at_us: i64,
}

/// What a Hello means for a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The holder from now on.
    pub holder: Holder,
    /// Whether the epoch that it named is over.
    pub fenced: bool,
    /// An epoch before the one named whose leases are still live here: the database is older than
    /// the node. They are to be marked lost.
    pub forgotten_epoch: Option<u64>,
}

/// Why what a holder says does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its epoch is over; this is the one now.
    Fenced { epoch: u64 },
    /// It is not known in that epoch: it has to say Hello.
    Unknown,
}

impl Holder {
    /// A process that says Hello in an epoch (0: it never had one).
    pub fn greet(known: Option<Self>, epoch: u64, draining: bool, now_us: i64) -> Greeting {
        let (now_in, fenced, forgotten_epoch) = match known {
            None => (epoch.max(1), false, None),
            // What it may think it holds was freed by its Close.
            Some(known) if known.standing == Standing::Closed && epoch >= known.epoch => {
                (epoch.saturating_add(1), true, None)
            }
            Some(known) if epoch == 0 => (known.epoch, false, None),
            Some(known) if epoch > known.epoch => {
                let is_live = known.standing == Standing::Live;
                (epoch, false, is_live.then_some(known.epoch))
            }
            Some(known) => (known.epoch, epoch < known.epoch, None),
        };
        Greeting {
            holder: Self {
                epoch: now_in,
                standing: Standing::Live,
                draining,
                expires_at_us: now_us.saturating_add(EXPIRY_US),
            },
            fenced,
            forgotten_epoch,
        }
    }

    /// Whether what it says in an epoch counts.
    ///
    /// # Errors
    /// Why it does not.
    pub fn hear(&self, epoch: u64) -> Result<(), Refusal> {
        if self.epoch > epoch {
            Err(Refusal::Fenced { epoch: self.epoch })
        } else if self.epoch < epoch || self.standing == Standing::Closed {
            Err(Refusal::Unknown)
        } else {
            Ok(())
        }
    }

    /// A sign of life in its epoch.
    pub fn beat(&mut self, now_us: i64) {
        self.standing = Standing::Live;
        self.expires_at_us = now_us.saturating_add(EXPIRY_US);
    }

    /// Whether it is live and its time is over.
    pub fn is_expired(&self, now_us: i64) -> bool {
        self.standing == Standing::Live && self.expires_at_us <= now_us
    }

    /// Ends its epoch; the one whose leases are lost.
    pub fn fence(&mut self) -> u64 {
        let lost = self.epoch;
        self.epoch = self.epoch.saturating_add(1);
        self.standing = Standing::Lost;
        lost
    }
}
