//! Names of directories and files.

use super::{BootId, Disk, DiskError, Entry};

pub(super) const BOOTS: &str = "boots";
const SEQUENCE_DIGITS: usize = 20;
const SPARE: &str = ".spare";
const OPEN_TABLE: &str = ".map";

pub(super) fn boot_dir(boot: BootId) -> String {
    format!("{BOOTS}/{boot}")
}

/// Where a boot's directory is made, before it is locked and gets its name.
pub(super) fn unborn_dir(boot: BootId) -> String {
    format!("{BOOTS}/.new-{boot}")
}

pub(super) fn lock_path(dir: &str) -> String {
    format!("{dir}/lock")
}

pub(super) fn segment_path(dir: &str, shard: u32, first_seq: u64) -> String {
    format!(
        "{dir}/w{shard}-{first_seq:0width$}.seg",
        width = SEQUENCE_DIGITS
    )
}

/// A segment that has room but no place in its shard yet.
pub(super) fn spare_path(dir: &str, shard: u32) -> String {
    format!("{dir}/w{shard}{SPARE}")
}

pub(super) fn is_spare(name: &str) -> bool {
    name.strip_prefix('w')
        .and_then(|name| name.strip_suffix(SPARE))
        .is_some_and(|shard| shard.parse::<u32>().is_ok())
}

/// Shard and first sequence; `None` for a file that is not a segment.
pub(super) fn parse_segment(name: &str) -> Option<(u32, u64)> {
    let (shard, first_seq) = name
        .strip_prefix('w')?
        .strip_suffix(".seg")?
        .split_once('-')?;
    if first_seq.len() != SEQUENCE_DIGITS {
        return None;
    }
    Some((shard.parse().ok()?, first_seq.parse().ok()?))
}

/// A table of the exchanges that a worker has open; `number` is 1 for its first.
pub(super) fn open_table_path(dir: &str, shard: u32, number: u32) -> String {
    format!("{dir}/open-w{shard}-{number}{OPEN_TABLE}")
}

/// Shard and number; `None` for a file that is not a table.
fn parse_open_table(name: &str) -> Option<(u32, u32)> {
    let (shard, number) = name
        .strip_prefix("open-w")?
        .strip_suffix(OPEN_TABLE)?
        .split_once('-')?;
    Some((shard.parse().ok()?, number.parse().ok()?))
}

/// The tables in a boot's directory by shard, in order.
pub(super) fn open_tables<D: Disk>(disk: &D, dir: &str) -> Result<Vec<(u32, Entry)>, DiskError> {
    let entries = match disk.list(dir) {
        Err(DiskError::NotFound(_)) => Vec::new(),
        listed => listed?,
    };
    let mut tables: Vec<((u32, u32), Entry)> = entries
        .into_iter()
        .filter_map(|entry| Some((parse_open_table(&entry.name)?, entry)))
        .collect();
    tables.sort_unstable_by_key(|(table, _)| *table);
    Ok(tables
        .into_iter()
        .map(|((shard, _), entry)| (shard, entry))
        .collect())
}

/// The segments in a boot's directory as (shard, first sequence), in order.
pub(super) fn segments<D: Disk>(disk: &D, dir: &str) -> Result<Vec<(u32, u64, Entry)>, DiskError> {
    let entries = match disk.list(dir) {
        Err(DiskError::NotFound(_)) => Vec::new(),
        listed => listed?,
    };
    let mut segments: Vec<(u32, u64, Entry)> = entries
        .into_iter()
        .filter_map(|entry| {
            let (shard, first_seq) = parse_segment(&entry.name)?;
            Some((shard, first_seq, entry))
        })
        .collect();
    segments.sort_unstable_by_key(|(shard, first_seq, _)| (*shard, *first_seq));
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_found_by_its_name_and_other_files_are_left_alone() {
        let path = segment_path("boots/x", 12, 345);
        assert_eq!(path, "boots/x/w12-00000000000000000345.seg");
        assert_eq!(
            parse_segment("w12-00000000000000000345.seg"),
            Some((12, 345))
        );
        for other in [
            "lock",
            "open-w1-1.map",
            "w1-5.seg",
            "w-00000000000000000345.seg",
            "w1.seg",
            "w1.spare",
        ] {
            assert_eq!(parse_segment(other), None, "{other}");
        }
    }

    #[test]
    fn a_table_is_found_by_its_name() {
        let path = open_table_path("boots/x", 12, 3);
        assert_eq!(path, "boots/x/open-w12-3.map");
        assert_eq!(parse_open_table("open-w12-3.map"), Some((12, 3)));
        for other in [
            "lock",
            "open.map",
            "open-w12.map",
            "open-w-3.map",
            "w12-3.map",
        ] {
            assert_eq!(parse_open_table(other), None, "{other}");
        }
    }

    #[test]
    fn a_spare_is_told_from_other_files() {
        let path = spare_path("boots/x", 12);
        assert_eq!(path, "boots/x/w12.spare");
        assert!(is_spare("w12.spare"));
        for other in ["lock", "open-w1-1.map", "w.spare", "w12.seg", "x12.spare"] {
            assert!(!is_spare(other), "{other}");
        }
    }
}
