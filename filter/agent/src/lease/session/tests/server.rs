//! The control plane's side of leases, for one process and any number of limits with one amount.

use filter_core::credit::Charged;

use super::*;

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    granted: u64,
    returned: u64,
    consumed: u64,
}

impl Row {
    fn outstanding(&self) -> u64 {
        self.granted.saturating_sub(self.returned + self.consumed)
    }
}

/// Grants what is asked for as far as there is room.
pub(super) struct Server {
    amount: u64,
    pub(super) epoch: u64,
    pub(super) now_us: u64,
    /// Length of the windows; 0: one for ever.
    pub(super) window_s: u64,
    rows: BTreeMap<(String, i64), BTreeMap<u64, Row>>,
}

impl Server {
    pub(super) fn new(amount: u64) -> Self {
        Self {
            amount,
            epoch: 1,
            now_us: 0,
            window_s: 1 << 30,
            rows: BTreeMap::new(),
        }
    }

    /// Start of the window that is now.
    pub(super) fn window(&self) -> i64 {
        let windows = (self.now_us / SECOND).checked_div(self.window_s);
        windows.map_or(0, |windows| ((windows + 1) * self.window_s).cast_signed())
    }

    pub(super) fn fence(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    pub(super) fn charge(&mut self, charged: &Charged) {
        let key = (charged.limit.to_string(), charged.window_start_s);
        let rows = self.rows.entry(key).or_default();
        rows.entry(charged.epoch).or_default().consumed += charged.settled;
    }

    pub(super) fn consumed(&self) -> u64 {
        self.sum(|row| row.consumed)
    }

    pub(super) fn outstanding(&self) -> u64 {
        self.sum(Row::outstanding)
    }

    pub(super) fn take(&mut self, message: lease_up::Message) -> Vec<lease_down::Message> {
        match message {
            lease_up::Message::Hello(hello) => {
                for holding in &hello.holdings {
                    let bucket = holding.bucket.clone().unwrap();
                    self.row(&bucket, hello.epoch, |row| {
                        row.granted = row.granted.max(holding.granted_total);
                        row.returned = row.returned.max(holding.returned_total);
                    });
                }
                vec![lease_down::Message::Welcome(Welcome {
                    epoch: self.epoch,
                    ttl_ms: 15_000,
                    beat_ms: 5_000,
                    lineage: "lineage".to_owned(),
                    server_unix_ms: 0,
                })]
            }
            lease_up::Message::Wants(wants) if wants.epoch != self.epoch => Vec::new(),
            lease_up::Message::Wants(wants) => {
                let mut answer = Grants {
                    epoch: self.epoch,
                    ..Grants::default()
                };
                wants
                    .wants
                    .iter()
                    .for_each(|want| self.answer(want, &mut answer));
                vec![lease_down::Message::Grants(answer)]
            }
            lease_up::Message::Beat(beat) if beat.epoch != self.epoch => {
                let epoch = self.epoch;
                vec![lease_down::Message::Fenced(Fenced { epoch })]
            }
            lease_up::Message::Beat(_) => vec![lease_down::Message::Grants(Grants::default())],
            lease_up::Message::Close(close) => {
                for holding in &close.holdings {
                    let bucket = holding.bucket.clone().unwrap();
                    self.row(&bucket, close.epoch, |row| {
                        row.granted = row.granted.max(holding.granted_total);
                        row.returned = row.granted - row.consumed;
                    });
                }
                // What this process never heard of, it does not hold.
                for row in self
                    .rows
                    .values_mut()
                    .filter_map(|rows| rows.get_mut(&close.epoch))
                {
                    row.returned += row.outstanding();
                }
                Vec::new()
            }
        }
    }

    fn answer(&mut self, want: &Want, answer: &mut Grants) {
        let mut bucket = want.bucket.clone().unwrap();
        if bucket.window_start_s < 0 {
            bucket.window_start_s = self.window();
        }
        if want.next_window {
            bucket.window_start_s += self.window_s.cast_signed();
        }
        let amount = self.amount;
        let starts_in_s = match self.window_s {
            0 => 0,
            length => bucket.window_start_s - length.cast_signed(),
        } - (self.now_us / SECOND).cast_signed();
        let epoch = self.epoch;
        self.row(&bucket, epoch, |row| {
            row.returned = row.returned.max(want.returned_total)
        });
        let rows = &self.rows[&(bucket.limit.clone(), bucket.window_start_s)];
        let consumed: u64 = rows.values().map(|row| row.consumed).sum();
        let held: u64 = rows.values().map(Row::outstanding).sum();
        let free = amount.saturating_sub(consumed + held);
        let raise = want.granted_total.saturating_sub(rows[&epoch].granted);
        if raise > 0 && free < want.min_useful.min(raise) {
            let asked = want.min_useful + want.available;
            let is_spent = amount.saturating_sub(consumed) < asked;
            answer.denials.push(Deny {
                bucket: Some(bucket.clone()),
                kind: if is_spent {
                    DenyKind::Spent
                } else {
                    DenyKind::Reserved
                }
                .into(),
                retry_in_ms: if is_spent { 10_000 } else { 250 },
                valid_for_ms: if is_spent { 10_000 } else { 0 },
                left: free.cast_signed(),
                ends_in_ms: 0,
                amount,
                asked,
            });
        } else {
            self.row(&bucket, epoch, |row| row.granted += raise.min(free));
        }
        let row = self.rows[&(bucket.limit.clone(), bucket.window_start_s)][&epoch];
        let ends_in_s = starts_in_s + self.window_s.cast_signed();
        answer.grants.push(Grant {
            granted_total: row.granted,
            returned_total: row.returned,
            left: 0,
            starts_in_ms: u32::try_from(starts_in_s.max(0) * 1_000).unwrap(),
            ends_in_ms: if self.window_s == 0 {
                0
            } else {
                ends_in_s.max(0).unsigned_abs() * 1_000
            },
            amount,
            bucket: Some(bucket),
        });
    }

    fn row(&mut self, bucket: &BucketKey, epoch: u64, edit: impl FnOnce(&mut Row)) {
        let key = (bucket.limit.clone(), bucket.window_start_s);
        edit(self.rows.entry(key).or_default().entry(epoch).or_default());
    }

    fn sum(&self, of: impl Fn(&Row) -> u64) -> u64 {
        self.rows.values().flat_map(BTreeMap::values).map(of).sum()
    }
}
