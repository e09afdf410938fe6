//! Bytes reach the medium, room is set aside, and a directory that vanished is missed.

use super::*;

/// Segments of about ten records.
const SEGMENT: u64 = 400;

impl Shard {
    /// What the other thread does about once a second; what it synced.
    fn keep(&mut self) -> Vec<String> {
        self.disk.state().synced.clear();
        if let Some(upkeep) = self.writer.upkeep() {
            self.writer.kept(upkeep.perform());
        }
        self.disk.state().synced.clone()
    }

    fn spares(&self) -> usize {
        let is_spare = |path: &String| path.ends_with(".spare");
        self.disk
            .files()
            .iter()
            .filter(|path| is_spare(path))
            .count()
    }
}

#[test]
fn what_was_appended_is_synced_once_and_names_with_it() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    assert_eq!(shard.keep(), [""; 0]);
    shard.append(3);
    let segment = shard.segments()[0].clone();
    let dir = format!("boots/{BOOT}");
    assert_eq!(shard.keep(), [segment.clone(), dir, "boots".to_owned()]);
    assert_eq!(shard.keep(), [""; 0], "nothing is new");
    shard.append(1);
    assert_eq!(shard.keep(), [segment]);
}

#[test]
fn segments_that_were_filled_meanwhile_are_synced_too() {
    let mut shard = Shard::new(SMALL);
    shard.append(10);
    let synced = shard.keep();
    for segment in shard.segments() {
        assert!(synced.contains(&segment), "{segment}");
    }
}

#[test]
fn a_gap_at_the_end_of_a_process_is_synced() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(1);
    shard.keep();
    shard.disk.state().space = Some(0);
    shard.writer.append(&record(2));
    shard.disk.state().space = None;
    shard.writer.finish();
    assert_eq!(shard.keep(), shard.segments());
    assert_eq!(shard.spares(), 0);
}

#[test]
fn a_full_disk_is_met_by_the_upkeep_before_a_worker_meets_it() {
    let mut shard = Shard::new(SEGMENT);
    shard.append(1);
    shard.keep();
    // Whatever else fills the disk: the segment has its room.
    shard.disk.state().space = Some(0);
    while shard.segments().len() == 1 {
        let seq = shard.writer.next_seq();
        match shard.writer.append(&record(seq)) {
            Appended::Stored { .. } => {}
            Appended::Lost { .. } => break,
        }
    }
    let bytes = shard.disk.bytes(&shard.segments()[0]).len() as u64;
    assert!(bytes > SEGMENT - 60, "{bytes} of {SEGMENT}");
    assert_eq!(shard.writer.lost(), 1);
}

#[test]
fn a_segment_that_is_half_full_has_its_successor_waiting() {
    let mut shard = Shard::new(SEGMENT);
    shard.append(1);
    shard.keep();
    assert_eq!(shard.spares(), 0);
    while (shard.disk.bytes(&shard.segments()[0]).len() as u64) < SEGMENT / 2 {
        shard.append(1);
    }
    shard.keep();
    assert_eq!(shard.spares(), 1);
    shard.disk.state().space = Some(0);
    // The spare has its room: nothing is lost up to its end.
    while shard.segments().len() == 1 {
        shard.append(1);
    }
    assert_eq!(shard.spares(), 0);
    shard.append(3);
    let last = shard.writer.next_seq() - 1;
    assert_eq!(shard.drain(), (1..=last).collect::<Vec<u64>>());
}

#[test]
fn a_disk_without_room_for_a_segment_is_written_as_long_as_it_goes() {
    let mut shard = Shard::new(SEGMENT);
    shard.disk.state().space = Some(300);
    shard.append(4);
    assert!(shard.writer.upkeep().unwrap().perform().lacks_room());
    shard.append(1);
    shard.keep();
    assert_eq!(shard.spares(), 0);
    assert_eq!(shard.drain(), [1, 2, 3, 4, 5]);
}

#[test]
fn room_that_a_process_leaves_unused_is_given_back() {
    for dies in [true, false] {
        let mut shard = Shard::new(SEGMENT);
        shard.disk.state().space = Some(10_000);
        while shard
            .segments()
            .first()
            .is_none_or(|path| (shard.disk.bytes(path).len() as u64) < SEGMENT / 2)
        {
            shard.append(1);
            shard.keep();
        }
        assert_eq!(shard.spares(), 1);
        let used = shard.disk.bytes(&shard.segments()[0]).len();
        assert!(shard.disk.state().space.unwrap() <= 10_000 - 2 * 400);
        let disk = shard.disk.clone();
        if !dies {
            shard.writer.finish();
        }
        drop(shard);
        if dies {
            adopt(&disk, BOOT).unwrap().unwrap();
        }
        assert_eq!(disk.state().space, Some(10_000 - used), "dies: {dies}");
        assert!(disk.files().iter().all(|path| !path.ends_with(".spare")));
    }
}

#[test]
fn a_state_directory_that_is_emptied_is_missed_within_one_upkeep() {
    let mut shard = Shard::new(SEGMENT);
    shard.append(3);
    shard.keep();
    assert_eq!(shard.drain(), [1, 2, 3]);
    shard.disk.wipe();
    shard.append(2);
    assert_eq!(shard.read(), None, "the writer still has its file");
    shard.keep();
    assert_eq!(shard.read(), Some(gap(4, 5, GapReason::Lost)));
    shard.append(2);
    assert_eq!(shard.read(), Some(records(6..=7)));
}

#[test]
fn a_gap_that_was_pending_when_the_directory_vanished_is_not_forgotten() {
    let mut shard = Shard::new(SEGMENT);
    shard.append(1);
    assert_eq!(shard.drain(), [1]);
    shard.disk.state().space = Some(0);
    shard.writer.append(&record(2));
    shard.disk.wipe();
    shard.disk.state().space = None;
    shard.keep();
    assert!(shard.writer.mark_gap());
    assert_eq!(shard.read(), Some(gap(2, 2, GapReason::DiskFull)));
}

#[test]
fn a_boot_whose_lock_vanished_locks_again() {
    let disk = MemoryDisk::default();
    let mut boot = Boot::create(&disk, BOOT).unwrap();
    assert!(!boot.relock().unwrap());
    disk.wipe();
    assert!(boot.relock().unwrap());
    assert!(adopt(&disk, BOOT).unwrap().is_none());
    disk.wipe();
    disk.create_dir(&format!("boots/{BOOT}")).unwrap();
    let adopted = adopt(&disk, BOOT).unwrap();
    assert!(adopted.is_some());
    assert!(!boot.relock().unwrap(), "a lock is there, whoever's");
}
