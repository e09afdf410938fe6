//! One process's Lease stream.

mod link;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use filter_core::credit::{Account, Accounts};
use proto::metering::v1::{
    Grants, Hello, LeaseDown, LeaseUp, Recall, ShardEnd, Want, Wants, Welcome, lease_down, lease_up,
};

use self::link::{Link, Phase};
use super::book::{Book, Moment, Name};
use super::closing::{Closing, holding};
use crate::spool::BootId;

/// Wants in one message.
const BATCH: usize = 500;

/// Epochs that are over and closed, and are closed again on each new stream.
const EPOCHS: usize = 16;

/// Keeps the credit of a process: says what to send on its Lease stream, and fills and empties the
/// accounts by what comes.
///
/// The shell calls [`Self::next_up`] until it gives `None`: after each message that came, when the
/// accounts' bell rings, and at [`Self::look_at_us`]; also while there is no stream, since those who
/// wait are woken by it. Times are microseconds of the workers' monotonic clock.
#[derive(Debug)]
pub struct Session {
    boot: BootId,
    node: String,
    accounts: Arc<Accounts>,
    link: Link,
    /// 0: never had one.
    epoch: u64,
    lineage: String,
    ending: Ending,
    books: BTreeMap<Name, Book>,
    /// When to look at which book.
    agenda: BTreeSet<(u64, Name)>,
    agenda_of: BTreeMap<Name, u64>,
    closing: Vec<Closing>,
    shards: Vec<ShardEnd>,
    wants: Vec<Want>,
    open_exchanges: u64,
    /// The last that was drawn from the shell's entropy.
    drawn: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Running,
    Draining,
    /// Nothing is reserved any more by anyone.
    Finished,
}

// === impl Session ===

impl Session {
    /// A session that never connected. `node` is a label for people.
    #[must_use]
    pub fn new(boot: BootId, node: impl Into<String>, accounts: Arc<Accounts>) -> Self {
        Self {
            boot,
            node: node.into(),
            accounts,
            link: Link::default(),
            epoch: 0,
            lineage: String::new(),
            ending: Ending::Running,
            books: BTreeMap::new(),
            agenda: BTreeSet::new(),
            agenda_of: BTreeMap::new(),
            closing: Vec::new(),
            shards: Vec::new(),
            wants: Vec::new(),
            open_exchanges: 0,
            drawn: 0,
        }
    }

    /// A stream is open: a Hello is to be sent on it.
    pub fn connected(&mut self) {
        self.disconnected();
        self.link.phase = Phase::Greeting;
    }

    /// The stream is gone. Credit stays usable for as long as the last beats allow.
    pub fn disconnected(&mut self) {
        self.link.disconnected();
        self.wants.clear();
        self.books.values_mut().for_each(Book::disconnected);
        self.closing.iter_mut().for_each(Closing::reconnected);
    }

    /// How many exchanges are open, and how far each shard of the spool has got. To be told before
    /// [`Self::next_up`]: a Close promises that no record of its epoch comes after these.
    pub fn observe(&mut self, open_exchanges: u64, shards: Vec<ShardEnd>) {
        self.open_exchanges = open_exchanges;
        self.shards = shards;
    }

    /// The process is about to end: from here on nothing is asked for but what waiting requests
    /// lack, and what is not reserved is given back.
    pub fn drain(&mut self) {
        if self.ending == Ending::Running {
            self.ending = Ending::Draining;
        }
        self.look_at_all();
    }

    /// The last exchange is settled, and its record is in the spool: nothing is usable from here
    /// on, and the epoch is closed. What is reserved all the same is left to the fence.
    pub fn finish(&mut self, now_us: u64) {
        self.accounts.usable_until(0);
        self.end_epoch(now_us);
        self.ending = Ending::Finished;
    }

    /// Whether all that was held is closed, as far as it could be sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let is_sent = |closing: &Closing| closing.is_sent();
        self.ending == Ending::Finished && self.closing.iter().all(is_sent)
    }

    /// The present epoch; 0: none yet.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The next message to send; none until something happens or [`Self::look_at_us`] comes.
    pub fn next_up(&mut self, now_us: u64, entropy: u64) -> Option<LeaseUp> {
        self.look(now_us, entropy);
        let message = match self.link.phase {
            Phase::Closed | Phase::Greeted => return None,
            Phase::Greeting => lease_up::Message::Hello(self.hello(now_us)),
            Phase::Open => self.next_message(now_us)?,
        };
        Some(LeaseUp {
            message: Some(message),
        })
    }

    /// When [`Self::next_up`] is to be called at the latest; none: when something happens.
    #[must_use]
    pub fn look_at_us(&self, now_us: u64) -> Option<u64> {
        let is_open = self.link.phase == Phase::Open;
        let closing = self.closing.iter().filter(|_| is_open);
        let book = self.agenda.first().map(|(look_at_us, _)| *look_at_us);
        let beat = is_open.then_some(self.link.beat_at_us);
        closing
            .filter_map(|closing| closing.look_at_us(now_us))
            .chain(book)
            .chain(beat)
            .min()
    }

    /// Takes a message in.
    pub fn on_down(&mut self, down: LeaseDown, now_us: u64) {
        let Some(message) = down.message else {
            return;
        };
        if self.link.phase == Phase::Greeted {
            // Nothing that comes before it can be of this stream's epoch.
            if let lease_down::Message::Welcome(welcome) = message {
                self.on_welcome(welcome, now_us);
            }
            return;
        }
        if self.link.phase != Phase::Open {
            return;
        }
        match message {
            // A stream has one.
            lease_down::Message::Welcome(_) => {}
            lease_down::Message::Grants(grants) => self.on_grants(grants, now_us),
            lease_down::Message::Recall(recall) => self.on_recall(recall, now_us),
            lease_down::Message::Fenced(fenced) => self.on_epoch(fenced.epoch, now_us),
            lease_down::Message::Unavailable(unavailable) => {
                for bucket in unavailable.buckets {
                    self.at_book(&bucket.limit, &bucket.subject, now_us, Book::on_unavailable);
                }
                // The store did not hear of the beat.
                return;
            }
        }
        self.on_sign_of_life();
    }

    fn on_welcome(&mut self, welcome: Welcome, now_us: u64) {
        self.lineage = welcome.lineage;
        self.on_epoch(welcome.epoch, now_us);
        let usable_until_us = self.link.welcomed(welcome.ttl_ms, welcome.beat_ms);
        if self.ending != Ending::Finished {
            self.accounts.usable_until(usable_until_us);
        }
        for account in self.books.values().filter_map(Book::account) {
            account.end_outage();
            // Who waits may have found nothing usable.
            account.wake_all();
        }
        self.look_at_all();
    }

    /// Any message but a Welcome of an older stream shows that the control plane lives. It answers
    /// no more than the oldest beat that is unanswered: it may have set out before the later ones
    /// came.
    fn on_sign_of_life(&mut self) {
        if let Some(usable_until_us) = self.link.answered()
            && self.ending != Ending::Finished
        {
            self.accounts.usable_until(usable_until_us);
        }
    }

    fn on_epoch(&mut self, epoch: u64, now_us: u64) {
        if epoch == self.epoch || epoch == 0 {
            return;
        }
        let is_older = epoch < self.epoch && self.link.phase == Phase::Open;
        if is_older {
            // A Fenced that was overtaken by a later one.
            return;
        }
        self.end_epoch(now_us);
        self.epoch = epoch;
        self.look_at_all();
    }

    /// Retires all that is held.
    fn end_epoch(&mut self, now_us: u64) {
        let leases: Vec<_> = self
            .books
            .values_mut()
            .flat_map(|book| book.retire(now_us))
            .collect();
        if self.epoch != 0 {
            self.closing.push(Closing::new(self.epoch, leases));
        }
        if self.closing.len() > EPOCHS && self.closing.first().is_some_and(Closing::is_sent) {
            self.closing.remove(0);
        }
        self.wants.clear();
    }

    fn on_grants(&mut self, grants: Grants, now_us: u64) {
        // Who has finished has closed the epoch: what the control plane still says of it is old.
        if self.ending == Ending::Finished || grants.epoch != 0 && grants.epoch != self.epoch {
            return;
        }
        let epoch = self.epoch;
        for grant in &grants.grants {
            if let Some(bucket) = &grant.bucket {
                let name = Name {
                    limit: bucket.limit.as_str().into(),
                    subject: bucket.subject.as_str().into(),
                };
                // A lease that is not remembered here comes to no account, and is given back.
                let at = self.moment(now_us);
                let book = self.books.entry(name.clone());
                let book = book.or_insert_with(|| Book::new(name.clone()));
                book.on_grant(grant, epoch, at);
                self.schedule(name, Some(0));
            }
        }
        for deny in &grants.denials {
            if let Some(bucket) = &deny.bucket {
                self.at_book(&bucket.limit, &bucket.subject, now_us, |book, at| {
                    book.on_deny(deny, at);
                });
            }
        }
    }

    fn on_recall(&mut self, recall: Recall, now_us: u64) {
        for recalled in recall.buckets {
            if let Some(bucket) = recalled.bucket {
                let (start, keep) = (bucket.window_start_s, recalled.keep);
                self.at_book(&bucket.limit, &bucket.subject, now_us, |book, _| {
                    book.on_recall(start, keep, now_us);
                });
            }
        }
    }

    /// Does something to a book, if there is one, and has it looked at.
    fn at_book(
        &mut self,
        limit: &str,
        subject: &str,
        now_us: u64,
        act: impl FnOnce(&mut Book, Moment),
    ) {
        let name = Name {
            limit: limit.into(),
            subject: subject.into(),
        };
        let at = self.moment(now_us);
        if let Some(book) = self.books.get_mut(&name) {
            act(book, at);
            self.schedule(name, Some(0));
        }
    }

    fn hello(&mut self, now_us: u64) -> Hello {
        self.link.greeted(now_us);
        let holdings = self.books.values().flat_map(Book::leases);
        let holdings = holdings
            .map(|(bucket, lease)| holding(bucket, lease))
            .collect();
        self.books.values_mut().for_each(|book| book.said(now_us));
        Hello {
            boot_id: self.boot.0.to_vec(),
            node: self.node.clone(),
            epoch: self.epoch,
            lineage: self.lineage.clone(),
            draining: self.ending != Ending::Running,
            holdings,
        }
    }

    fn next_message(&mut self, now_us: u64) -> Option<lease_up::Message> {
        if !self.wants.is_empty() {
            let rest = self.wants.split_off(BATCH.min(self.wants.len()));
            let wants = std::mem::replace(&mut self.wants, rest);
            let epoch = self.epoch;
            return Some(lease_up::Message::Wants(Wants { wants, epoch }));
        }
        if let Some(beat) = self.link.beat(self.epoch, self.open_exchanges, now_us) {
            return Some(lease_up::Message::Beat(beat));
        }
        let at_once = self.ending == Ending::Finished;
        let mut closing = self.closing.iter_mut();
        let close = closing.find_map(|closing| closing.close(&self.shards, at_once, now_us));
        close.map(lease_up::Message::Close)
    }

    /// Looks at what workers marked, and at what is due.
    fn look(&mut self, now_us: u64, entropy: u64) {
        for account in self.accounts.take_needy() {
            self.attach(&account, now_us);
            self.schedule(Name::of(&account), Some(0));
        }
        self.drawn ^= entropy;
        while let Some((look_at_us, name)) = self.agenda.first().cloned() {
            if look_at_us > now_us {
                break;
            }
            let at = self.moment(now_us);
            let again_at_us = self.look_at_book(&name, at);
            self.schedule(name, again_at_us);
        }
    }

    fn look_at_book(&mut self, name: &Name, at: Moment) -> Option<u64> {
        let book = self.books.get_mut(name)?;
        let again_at_us = book.look(at, &mut self.wants);
        if let Some(account) = book.take_idle(at.now_us)
            && !self.accounts.forget(&account)
        {
            book.keep(&account, at.now_us);
            return again_at_us;
        }
        if book.is_empty() {
            self.books.remove(name);
        }
        again_at_us
    }

    fn attach(&mut self, account: &Arc<Account>, now_us: u64) {
        let name = Name::of(account);
        let book = self.books.entry(name.clone());
        book.or_insert_with(|| Book::new(name))
            .attach(account, now_us);
    }

    fn moment(&mut self, now_us: u64) -> Moment {
        self.drawn = stir(self.drawn);
        Moment {
            now_us,
            entropy: self.drawn,
            is_open: self.link.phase == Phase::Open && self.ending != Ending::Finished,
            is_draining: self.ending != Ending::Running,
        }
    }

    fn look_at_all(&mut self) {
        let names: Vec<Name> = self.books.keys().cloned().collect();
        for name in names {
            self.schedule(name, Some(0));
        }
    }

    fn schedule(&mut self, name: Name, look_at_us: Option<u64>) {
        if let Some(before) = self.agenda_of.remove(&name) {
            self.agenda.remove(&(before, name.clone()));
        }
        if let Some(look_at_us) = look_at_us {
            self.agenda_of.insert(name.clone(), look_at_us);
            self.agenda.insert((look_at_us, name));
        }
    }
}

/// The next of a series that `drawn` is part of (an odd multiplier and a shift: enough to spread
/// accounts in time).
fn stir(drawn: u64) -> u64 {
    let drawn = drawn
        .wrapping_add(0x9e37_79b9_7f4a_7c15)
        .wrapping_mul(0xd134_2543_de82_ef95);
    drawn ^ (drawn >> 32)
}

#[cfg(test)]
mod tests;
