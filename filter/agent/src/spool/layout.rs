//! Names of directories and files.

use super::{BootId, Disk, DiskError, Entry};

pub(super) const BOOTS: &str = "boots";
const SEQUENCE_DIGITS: usize = 20;

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
            "open.map",
            "w1-5.seg",
            "w-00000000000000000345.seg",
            "w1.seg",
        ] {
            assert_eq!(parse_segment(other), None, "{other}");
        }
    }
}
