//! The exchanges that a process had open when it died, until they are in its shards.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message as _;
use proto::metering::v1::UsageRecord;

use super::{
    Appended, BatchLimit, BootError, BootId, DEFAULT_SEGMENT_BYTES, Disk, DiskError, Read,
    RecoveredShard, ShardReader, ShardWriter,
    layout::{boot_dir, open_tables, segments},
};
use crate::open_table::{TABLE_WORDS, find};

/// How far a node's wall clock may have been set back while exchanges were open, in milliseconds.
const CLOCK_SLACK_MS: i64 = 60_000;
const AT_ONCE: BatchLimit = BatchLimit {
    bytes: 1 << 20,
    records: usize::MAX,
};
/// Field 1, of bytes.
const TAG_EXCHANGE_ID: u8 = 1 << 3 | 2;
const ID_BYTES: u8 = 16;

/// What a shard's tables held.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) shard: u32,
    /// Not in the shard.
    pub(super) records: Vec<UsageRecord>,
    /// Removed when every record is in the shard.
    tables: Vec<String>,
    /// Slots that make no sense.
    pub(super) damaged: usize,
}

impl InFlight {
    /// Appends what was open to the shard of the dead process, in a segment of its own, and removes
    /// the tables. The first sequence is `next_seq`. Gives the last one.
    ///
    /// What fails may be repeated, from behind that end.
    pub(super) fn append<D: Disk>(
        &mut self,
        disk: &D,
        boot: BootId,
        next_seq: u64,
    ) -> (u64, Result<(), DiskError>) {
        let mut last_seq = next_seq.saturating_sub(1);
        let appended = self.append_records(disk, boot, &mut last_seq);
        (last_seq, appended.and_then(|()| self.remove_tables(disk)))
    }

    fn append_records<D: Disk>(
        &mut self,
        disk: &D,
        boot: BootId,
        last_seq: &mut u64,
    ) -> Result<(), DiskError> {
        if self.records.is_empty() {
            return Ok(());
        }
        let mut writer = ShardWriter::resumed(
            disk.clone(),
            boot,
            self.shard,
            DEFAULT_SEGMENT_BYTES,
            *last_seq + 1,
        );
        let mut done = 0;
        for record in &self.records {
            match writer.append(record) {
                Appended::Stored { seq } => *last_seq = seq,
                Appended::Lost { .. } => break,
            }
            done += 1;
        }
        self.records.drain(..done);
        if !self.records.is_empty() {
            return Err(DiskError::Full);
        }
        writer.finish();
        // The tables are the only other place where it stands.
        match writer.upkeep().map(|upkeep| upkeep.perform()) {
            Some(kept) => kept.troubles().first().cloned().map_or(Ok(()), Err),
            None => Ok(()),
        }
    }

    fn remove_tables<D: Disk>(&mut self, disk: &D) -> Result<(), DiskError> {
        while let Some(table) = self.tables.last() {
            match disk.remove(table) {
                Ok(()) | Err(DiskError::NotFound(_)) => self.tables.pop(),
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }

    pub(super) fn is_done(&self) -> bool {
        self.records.is_empty() && self.tables.is_empty()
    }
}

/// Reads every table of a dead process, and leaves out what is in its shards.
pub(super) fn find_in_flight<D: Disk>(
    disk: &D,
    boot: BootId,
    shards: &[RecoveredShard],
) -> Result<Vec<InFlight>, BootError> {
    let dir = boot_dir(boot);
    let mut all: BTreeMap<u32, InFlight> = BTreeMap::new();
    for (shard, entry) in open_tables(disk, &dir)? {
        let path = format!("{dir}/{}", entry.name);
        let mut bytes = vec![0; TABLE_WORDS * size_of::<u64>()];
        let length = disk.read(&path, 0, &mut bytes)?;
        let found =
            find(bytes.get(..length).unwrap_or_default(), boot, shard).map_err(|newer| {
                BootError::NewerFormat {
                    path: path.clone(),
                    format: newer.0,
                }
            })?;
        let in_flight = all.entry(shard).or_insert_with(|| InFlight {
            shard,
            records: Vec::new(),
            tables: Vec::new(),
            damaged: 0,
        });
        in_flight.records.extend(found.records);
        in_flight.damaged += found.damaged;
        in_flight.tables.push(path);
    }
    for shard in shards {
        if let Some(in_flight) = all.get_mut(&shard.shard) {
            leave_out_settled(disk, boot, shard, in_flight)?;
        }
    }
    Ok(all.into_values().collect())
}

/// The record wins: a slot is freed after its record was appended.
fn leave_out_settled<D: Disk>(
    disk: &D,
    boot: BootId,
    shard: &RecoveredShard,
    in_flight: &mut InFlight,
) -> Result<(), DiskError> {
    let records = &mut in_flight.records;
    let Some(since_us) = records.iter().map(|record| record.admitted_at_us).min() else {
        return Ok(());
    };
    let dir = boot_dir(boot);
    // Records of what is open now can only be where something was written since.
    let since_ms = u64::try_from(since_us / 1_000 - CLOCK_SLACK_MS).unwrap_or(0);
    let may_hold = segments(disk, &dir)?
        .into_iter()
        .find(|(of, _, entry)| *of == shard.shard && entry.modified_ms >= since_ms);
    let Some((_, first_seq, _)) = may_hold else {
        return Ok(());
    };
    let end = Some(shard.last_seq);
    let mut reader = ShardReader::new(disk.clone(), dir, boot, shard.shard, end);
    reader.rewind(first_seq);
    let mut open: BTreeSet<Vec<u8>> = records
        .iter()
        .map(|record| record.exchange_id.clone())
        .collect();
    while let Some(read) = reader.read(AT_ONCE)? {
        let Read::Records { records, .. } = read else {
            continue;
        };
        for id in records.iter().filter_map(|record| id_of(record)) {
            open.remove(&id);
        }
    }
    records.retain(|record| open.contains(&record.exchange_id));
    Ok(())
}

/// The exchange's id, which is the first thing in a record.
fn id_of(record: &[u8]) -> Option<Vec<u8>> {
    match record.strip_prefix(&[TAG_EXCHANGE_ID, ID_BYTES]) {
        Some(rest) => rest.get(..ID_BYTES.into()).map(<[u8]>::to_vec),
        None => Some(UsageRecord::decode(record).ok()?.exchange_id),
    }
}
