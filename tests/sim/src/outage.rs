//! What a process lets through without credit while nobody answers it, kept apart from its own books.

use std::collections::BTreeMap;

use proto::metering::v1::{BucketKey, LeaseDown, lease_down};

/// Limit and subject.
type Name = (String, String);

/// What was used of allowances, by outage. An outage of a limit ends with a word about it.
#[derive(Debug, Default)]
pub struct Outages {
    welcomes: u64,
    words: BTreeMap<Name, u64>,
    used: BTreeMap<(Name, Outage), u64>,
}

/// Names an outage of one limit and subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outage {
    welcomes: u64,
    words: u64,
}

impl Outages {
    /// The control plane has spoken.
    pub fn hear(&mut self, down: &LeaseDown) {
        match &down.message {
            Some(lease_down::Message::Welcome(_)) => self.welcomes += 1,
            Some(lease_down::Message::Grants(grants)) => {
                let granted = grants.grants.iter().map(|grant| &grant.bucket);
                let denied = grants.denials.iter().map(|deny| &deny.bucket);
                let buckets: Vec<&BucketKey> = granted.chain(denied).flatten().collect();
                for bucket in buckets {
                    let name = (bucket.limit.clone(), bucket.subject.clone());
                    *self.words.entry(name).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    /// The outage that there is, or that would begin now.
    pub fn present(&self, limit: &str, subject: &str) -> Outage {
        let name = (limit.to_owned(), subject.to_owned());
        Outage {
            welcomes: self.welcomes,
            words: self.words.get(&name).copied().unwrap_or(0),
        }
    }

    /// Takes of an outage's allowance, or gives back; what is used of it then.
    pub fn take(&mut self, limit: &str, subject: &str, of: Outage, more: u64, back: u64) -> u64 {
        let name = (limit.to_owned(), subject.to_owned());
        let used = self.used.entry((name, of)).or_default();
        *used = (*used + more).saturating_sub(back);
        *used
    }
}
