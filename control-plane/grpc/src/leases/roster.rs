//! Which processes have their stream here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use control_plane_core::nodes::BootId;
use proto::metering::v1::LeaseDown;
use tokio::sync::oneshot;
use tonic::Status;

use super::Outbox;

/// The streams of this replica.
#[derive(Clone, Debug, Default)]
pub(super) struct Roster(Arc<Mutex<Seated>>);

#[derive(Debug, Default)]
struct Seated {
    seats: BTreeMap<BootId, Entry>,
    taken: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    epoch: u64,
    outbox: Outbox,
    end: oneshot::Sender<Status>,
}

/// A stream's place in the roster; it is given up by dropping it.
#[derive(Debug)]
pub(super) struct Seat {
    roster: Roster,
    boot_id: BootId,
    number: u64,
}

impl Roster {
    /// Seats a process, in the place of an older stream of it. The receiver gets the status that
    /// ends this one.
    pub(super) fn seat(
        &self,
        boot_id: BootId,
        epoch: u64,
        outbox: Outbox,
    ) -> (Seat, oneshot::Receiver<Status>) {
        let (end, ended) = oneshot::channel();
        let mut seated = self.lock();
        seated.taken += 1;
        let number = seated.taken;
        let entry = Entry {
            number,
            epoch,
            outbox,
            end,
        };
        let older = seated.seats.insert(boot_id, entry);
        drop(seated);
        if let Some(older) = older {
            older.end(Status::aborted("the process has opened another stream"));
        }
        let seat = Seat {
            roster: self.clone(),
            boot_id,
            number,
        };
        (seat, ended)
    }

    /// Who is here, each with its epoch as last heard.
    pub(super) fn connected(&self) -> Vec<(BootId, u64)> {
        let seated = self.lock();
        let seats = seated.seats.iter();
        seats
            .map(|(boot_id, entry)| (*boot_id, entry.epoch))
            .collect()
    }

    /// Tells a process what it did not ask for. Whether there was room.
    pub(super) fn tell(&self, boot_id: BootId, message: LeaseDown) -> bool {
        let seated = self.lock();
        let entry = seated.seats.get(&boot_id);
        entry.is_some_and(|entry| entry.outbox.try_send(Ok(message)).is_ok())
    }

    /// Ends every stream.
    pub(super) fn end_all(&self, status: &Status) {
        let seats = std::mem::take(&mut self.lock().seats);
        for entry in seats.into_values() {
            entry.end(status.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seated> {
        // Nothing in the critical sections leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn end(self, status: Status) {
        // A stream that does not listen has ended by itself.
        self.end.send(status).unwrap_or_default();
    }
}

impl Seat {
    /// The process speaks in an epoch.
    pub(super) fn heard(&self, epoch: u64) {
        let mut seated = self.roster.lock();
        if let Some(entry) = seated.seats.get_mut(&self.boot_id)
            && entry.number == self.number
        {
            entry.epoch = epoch;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seated = self.roster.lock();
        let current = seated.seats.get(&self.boot_id);
        if current.is_some_and(|entry| entry.number == self.number) {
            seated.seats.remove(&self.boot_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[test]
    fn a_newer_stream_of_a_process_ends_the_older_and_is_not_ended_by_it() {
        let roster = Roster::default();
        let boot_id = BootId([1; 16]);
        let (outbox, mut answers) = mpsc::channel(1);
        let (older, mut older_ended) = roster.seat(boot_id, 1, outbox.clone());
        let (newer, mut newer_ended) = roster.seat(boot_id, 1, outbox);
        assert_eq!(older_ended.try_recv().unwrap().code(), tonic::Code::Aborted);
        older.heard(9);
        drop(older);
        newer.heard(2);
        assert_eq!(roster.connected(), [(boot_id, 2)]);
        assert!(newer_ended.try_recv().is_err());
        assert!(roster.tell(boot_id, LeaseDown::default()));
        // Its outbox is full.
        assert!(!roster.tell(boot_id, LeaseDown::default()));
        assert!(answers.try_recv().unwrap().is_ok());
        drop(newer);
        assert!(roster.connected().is_empty());
    }

    #[test]
    fn all_streams_can_be_ended() {
        let roster = Roster::default();
        let (outbox, _answers) = mpsc::channel(1);
        let (_seat, mut ended) = roster.seat(BootId([1; 16]), 1, outbox);
        roster.end_all(&Status::unavailable("say Hello"));
        assert_eq!(ended.try_recv().unwrap().message(), "say Hello");
        assert!(roster.connected().is_empty());
    }
}
