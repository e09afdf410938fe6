mod model;
mod upkeep;

use proto::metering::v1::{GapReason, UsageRecord};

use super::{memory::MemoryDisk, *};

const LIMIT: BatchLimit = BatchLimit {
    bytes: 1 << 20,
    records: 1_000,
};
/// Segments of two or three records.
const SMALL: u64 = 120;
const BOOT: BootId = BootId([0xb0; 16]);

// === a living shard ===

#[test]
fn records_come_back_in_order_while_the_writer_goes_on() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    assert_eq!(shard.read(), None);
    shard.append(3);
    assert_eq!(shard.read(), Some(records(1..=3)));
    assert_eq!(shard.read(), None);
    shard.append(2);
    assert_eq!(shard.read(), Some(records(4..=5)));
}

#[test]
fn a_record_is_appended_by_one_write() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(1);
    let before = shard.disk.state().appends;
    shard.append(10);
    assert_eq!(shard.disk.state().appends - before, 10);
}

#[test]
fn the_buffer_of_a_writer_is_reused() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(30);
    let (start, capacity) = shard.writer.buffer();
    shard.append(100);
    assert_eq!(shard.writer.buffer(), (start, capacity));
}

#[test]
fn a_batch_is_bounded_in_bytes_and_records() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(10);
    let three = BatchLimit {
        records: 3,
        ..LIMIT
    };
    assert_eq!(shard.reader.read(three).unwrap(), Some(records(1..=3)));
    let frame = 8 + 1 + prost::Message::encoded_len(&record(4));
    let two = BatchLimit {
        bytes: 3 * frame - 1,
        ..LIMIT
    };
    assert_eq!(shard.reader.read(two).unwrap(), Some(records(4..=5)));
    let none = BatchLimit {
        bytes: 0,
        records: 0,
    };
    assert_eq!(
        shard.reader.read(none).unwrap(),
        Some(records(6..=6)),
        "one is always given"
    );
}

#[test]
fn a_full_segment_is_followed_by_one_named_after_its_first_record() {
    let mut shard = Shard::new(SMALL);
    shard.append(10);
    let names = shard.segments();
    assert!(names.len() > 2, "{names:?}");
    assert_eq!(shard.drain(), (1..=10).collect::<Vec<u64>>());
    assert!(
        names
            .iter()
            .all(|name| shard.disk.bytes(name).len() as u64 <= SMALL)
    );
}

#[test]
fn a_frame_that_is_still_being_written_is_waited_for() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(2);
    let whole = shard.disk.bytes(&shard.segments()[0]).len();
    for unseen in (0..=whole).rev() {
        shard.disk.state().unseen = unseen;
        while shard.read().is_some() {}
        assert!(shard.reader.next_seq() <= 3);
    }
    assert_eq!(shard.reader.next_seq(), 3);
}

#[test]
fn a_segment_that_is_finished_while_it_is_read_is_read_to_its_end() {
    let mut shard = Shard::new(SMALL);
    shard.append(10);
    let names = shard.segments();
    let last_of_first = layout::parse_segment(names[1].rsplit_once('/').unwrap().1)
        .unwrap()
        .1
        - 1;
    let before = BatchLimit {
        records: usize::try_from(last_of_first - 1).unwrap(),
        ..LIMIT
    };
    assert_eq!(
        shard.reader.read(before).unwrap(),
        Some(records(1..=last_of_first - 1))
    );
    shard.disk.state().late = Some((names[0].clone(), 3));
    assert_eq!(shard.drain(), (last_of_first..=10).collect::<Vec<u64>>());
}

#[test]
fn a_reader_may_begin_before_its_writer() {
    let disk = MemoryDisk::default();
    let boot = Boot::create(&disk, BOOT).unwrap();
    let mut reader = boot.reader(7);
    assert_eq!(reader.read(LIMIT).unwrap(), None);
    assert_eq!(reader.oldest_kept_seq().unwrap(), 1);
    let mut writer = boot.writer(7, DEFAULT_SEGMENT_BYTES);
    writer.append(&record(1));
    assert_eq!(reader.read(LIMIT).unwrap(), Some(records(1..=1)));
}

#[test]
fn shards_in_one_directory_do_not_see_each_other() {
    let disk = MemoryDisk::default();
    let boot = Boot::create(&disk, BOOT).unwrap();
    let (mut one, mut ten) = (boot.writer(1, SMALL), boot.writer(10, SMALL));
    (1..=5).for_each(|seq| assert_eq!(one.append(&record(seq)), Appended::Stored { seq }));
    (1..=9).for_each(|seq| assert_eq!(ten.append(&record(seq)), Appended::Stored { seq }));
    assert_eq!(drain(&mut boot.reader(1)), (1..=5).collect::<Vec<u64>>());
    assert_eq!(drain(&mut boot.reader(10)), (1..=9).collect::<Vec<u64>>());
}

// === a failing disk ===

#[test]
fn what_a_full_disk_refuses_is_named_with_the_next_record() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(2);
    shard.disk.state().space = Some(5);
    assert_eq!(shard.writer.append(&record(3)), Appended::Lost { seq: 3 });
    assert_eq!(shard.writer.append(&record(4)), Appended::Lost { seq: 4 });
    assert_eq!(shard.writer.lost(), 2);
    shard.disk.state().space = None;
    assert_eq!(shard.writer.append(&record(5)), Appended::Stored { seq: 5 });
    assert_eq!(shard.read(), Some(records(1..=2)));
    assert_eq!(shard.read(), Some(gap(3, 4, GapReason::DiskFull)));
    assert_eq!(shard.read(), Some(records(5..=5)));
}

#[test]
fn a_disk_that_is_full_from_the_start_is_no_other() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.disk.state().space = Some(20);
    assert_eq!(shard.writer.append(&record(1)), Appended::Lost { seq: 1 });
    assert_eq!(shard.read(), None);
    shard.disk.state().space = None;
    assert_eq!(shard.writer.append(&record(2)), Appended::Stored { seq: 2 });
    assert_eq!(shard.read(), Some(gap(1, 1, GapReason::DiskFull)));
    assert_eq!(shard.read(), Some(records(2..=2)));
}

#[test]
fn a_gap_can_be_marked_without_a_record() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(1);
    assert!(shard.writer.mark_gap(), "nothing to mark");
    shard.disk.state().space = Some(0);
    shard.writer.append(&record(2));
    assert!(!shard.writer.mark_gap());
    shard.disk.state().space = None;
    assert!(shard.writer.mark_gap());
    assert_eq!(shard.read(), Some(records(1..=1)));
    assert_eq!(shard.read(), Some(gap(2, 2, GapReason::DiskFull)));
    assert_eq!(shard.writer.append(&record(3)), Appended::Stored { seq: 3 });
    assert_eq!(shard.read(), Some(records(3..=3)));
}

#[test]
fn a_tail_that_cannot_be_cut_off_ends_its_segment() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(2);
    shard.disk.state().space = Some(5);
    shard.disk.state().refuse_truncate = true;
    shard.writer.append(&record(3));
    shard.disk.state().space = None;
    assert_eq!(shard.writer.append(&record(4)), Appended::Stored { seq: 4 });
    assert_eq!(shard.segments().len(), 2);
    assert_eq!(shard.read(), Some(records(1..=2)));
    assert_eq!(shard.read(), Some(gap(3, 3, GapReason::DiskFull)));
    assert_eq!(shard.read(), Some(records(4..=4)));
}

#[test]
fn a_disk_that_turns_read_only_loses_what_comes_and_keeps_what_was() {
    let mut shard = Shard::new(100);
    shard.append(2);
    shard.disk.state().refuse_create = true;
    assert_eq!(shard.writer.append(&record(3)), Appended::Lost { seq: 3 });
    assert_eq!(shard.drain(), [1, 2]);
    shard.disk.state().refuse_create = false;
    shard.writer.append(&record(4));
    assert_eq!(shard.read(), Some(gap(3, 3, GapReason::DiskFull)));
    assert_eq!(shard.read(), Some(records(4..=4)));
}

#[test]
fn a_record_that_is_too_long_is_lost_and_named() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    let long = UsageRecord {
        request_id: "x".repeat(MAX_RECORD_BYTES),
        ..UsageRecord::default()
    };
    assert_eq!(shard.writer.append(&long), Appended::Lost { seq: 1 });
    shard.writer.append(&record(2));
    assert_eq!(shard.read(), Some(gap(1, 1, GapReason::Lost)));
    assert_eq!(shard.read(), Some(records(2..=2)));
}

#[test]
fn an_error_of_reading_leaves_the_place() {
    let mut shard = Shard::new(SMALL);
    shard.append(4);
    shard.disk.state().refuse_read = true;
    assert!(shard.reader.read(LIMIT).is_err());
    shard.disk.state().refuse_read = false;
    assert_eq!(shard.drain(), [1, 2, 3, 4]);
    shard.append(1);
    shard.disk.state().refuse_read = true;
    assert!(shard.reader.read(LIMIT).is_err());
    shard.disk.state().refuse_read = false;
    assert_eq!(shard.drain(), [5]);
}

#[test]
fn a_disk_that_comes_back_empty_shows_what_it_took() {
    let mut shard = Shard::new(SMALL);
    shard.append(3);
    assert_eq!(shard.drain(), [1, 2, 3]);
    shard.append(1);
    shard.disk.wipe();
    assert_eq!(shard.read(), None, "the writer still has its file");
    shard.append(10);
    let Some(Read::Gap(lost)) = shard.read() else {
        panic!("a gap")
    };
    assert_eq!((lost.from, lost.reason), (4, GapReason::Lost));
    let rest = shard.drain();
    assert_eq!(rest, ((lost.to + 1)..=14).collect::<Vec<u64>>());
    assert!(!rest.is_empty());
}

#[test]
fn damage_inside_a_finished_segment_is_named_as_torn() {
    let mut shard = Shard::new(SMALL);
    shard.append(10);
    let first = shard.segments()[0].clone();
    let mut bytes = shard.disk.bytes(&first);
    let at = bytes.len() - 3;
    bytes[at] ^= 1;
    shard.disk.overwrite(&first, bytes);
    let mut seen = Vec::new();
    let mut gaps = Vec::new();
    while let Some(read) = shard.read() {
        match read {
            Read::Records { first_seq, records } => {
                seen.extend(first_seq..first_seq + records.len() as u64)
            }
            Read::Gap(gap) => gaps.push(gap),
        }
    }
    let [torn] = gaps.as_slice() else {
        panic!("one gap: {gaps:?}")
    };
    assert_eq!(torn.reason, GapReason::Torn);
    assert_eq!(torn.from, torn.to);
    let expected: Vec<u64> = (1..=10).filter(|seq| *seq != torn.from).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_damaged_record_does_not_take_those_behind_it() {
    for first in 1..=4_usize {
        for count in 1..=5 - first {
            let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
            let mut ends = vec![44];
            for _ in 0..6 {
                shard.append(1);
                ends.push(shard.disk.bytes(&shard.segments()[0]).len());
            }
            let path = shard.segments()[0].clone();
            let mut bytes = shard.disk.bytes(&path);
            for damaged in first..first + count {
                bytes[ends[damaged] - 1] ^= 1;
            }
            shard.disk.overwrite(&path, bytes);
            let (from, to) = (first as u64, (first + count) as u64 - 1);
            if from > 1 {
                assert_eq!(shard.read(), Some(records(1..=from - 1)));
            }
            assert_eq!(shard.read(), Some(gap(from, to, GapReason::Torn)));
            assert_eq!(shard.read(), Some(records(to + 1..=6)));
            shard.append(1);
            assert_eq!(shard.read(), Some(records(7..=7)), "its writer goes on");
        }
    }
}

// === the end of a process ===

#[test]
fn a_gap_that_a_full_disk_does_not_take_is_told_at_the_end() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(2);
    shard.disk.state().space = Some(5);
    shard.writer.append(&record(3));
    shard.writer.append(&record(4));
    assert_eq!(shard.writer.unmarked(), 2);
    let end = shard.writer.finish();
    assert_eq!((end.last_seq, end.unmarked), (4, Some(GapReason::DiskFull)));
    shard.reader.end_at(end);
    assert_eq!(shard.read(), Some(records(1..=2)));
    assert_eq!(shard.read(), Some(gap(3, 4, GapReason::DiskFull)));
    assert_eq!(shard.read(), None);
}

#[test]
fn a_process_that_never_had_a_disk_says_what_it_lost() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.disk.state().space = Some(0);
    shard.writer.append(&record(1));
    shard.reader.end_at(shard.writer.finish());
    assert_eq!(shard.read(), Some(gap(1, 1, GapReason::DiskFull)));
    assert_eq!(shard.read(), None);
}

#[test]
fn a_gap_that_the_disk_takes_at_the_end_outlives_the_process() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(1);
    shard.disk.state().space = Some(0);
    shard.writer.append(&record(2));
    shard.disk.state().space = None;
    let end = shard.writer.finish();
    assert_eq!((end.last_seq, end.unmarked), (2, None));
    let disk = shard.disk.clone();
    drop(shard);
    let adopted = adopt(&disk, BOOT).unwrap().unwrap();
    let mut reader = adopted.readers().remove(0);
    assert_eq!(reader.read(LIMIT).unwrap(), Some(records(1..=1)));
    assert_eq!(
        reader.read(LIMIT).unwrap(),
        Some(gap(2, 2, GapReason::DiskFull))
    );
}

// === rewinding and keeping ===

#[test]
fn a_rewound_reader_gives_the_same_again() {
    let mut shard = Shard::new(SMALL);
    shard.append(10);
    assert_eq!(shard.drain(), (1..=10).collect::<Vec<u64>>());
    for from in (1..=11).rev() {
        shard.reader.rewind(from);
        assert_eq!(shard.reader.acked(), from - 1);
        assert_eq!(shard.drain(), (from..=10).collect::<Vec<u64>>());
    }
}

#[test]
fn a_ledger_that_is_ahead_is_sent_only_what_follows() {
    let mut shard = Shard::new(SMALL);
    shard.append(5);
    shard.reader.rewind(8);
    assert_eq!(shard.read(), None);
    shard.append(5);
    assert_eq!(shard.drain(), [8, 9, 10]);
}

#[test]
fn acked_segments_are_kept_within_bounds_and_the_rest_always() {
    let mut shard = Shard::new(SMALL);
    shard.append(20);
    shard.drain();
    let keep = Retention {
        bytes: u64::MAX,
        age_ms: 1_000,
    };
    let all = shard.segments().len();
    shard.disk.state().now_ms = 5_000;
    assert_eq!(
        keep.prune(&mut [&mut shard.reader], 5_000).unwrap(),
        0,
        "nothing is acked"
    );

    shard.reader.acked_through(19);
    assert_eq!(
        keep.prune(&mut [&mut shard.reader], 1_000).unwrap(),
        0,
        "nothing is too old"
    );
    assert_eq!(
        keep.prune(&mut [&mut shard.reader], 1_001).unwrap(),
        all - 1
    );
    assert_eq!(shard.segments().len(), 1, "the writer's own stays");
    shard.append(1);
    assert_eq!(shard.drain(), [21]);
}

#[test]
fn the_oldest_acked_segments_go_first_when_there_are_too_many_bytes() {
    let mut shard = Shard::new(SMALL);
    shard.append(20);
    shard.drain();
    shard.reader.acked_through(20);
    let names = shard.segments();
    let bytes = |names: &[String]| {
        names
            .iter()
            .map(|name| shard.disk.bytes(name).len() as u64)
            .sum()
    };
    let (_, acked) = names.split_last().unwrap();
    let keep = Retention {
        bytes: bytes(&acked[2..]),
        age_ms: u64::MAX,
    };
    assert_eq!(keep.prune(&mut [&mut shard.reader], 0).unwrap(), 2);
    assert_eq!(shard.segments(), names[2..]);
    let oldest = shard.reader.oldest_kept_seq().unwrap();
    assert!(names[2].ends_with(&format!("{oldest:020}.seg")));

    shard.reader.rewind(1);
    assert_eq!(shard.read(), Some(gap(1, oldest - 1, GapReason::Lost)));
    assert_eq!(shard.drain(), (oldest..=20).collect::<Vec<u64>>());
}

#[test]
fn a_segment_that_cannot_be_removed_does_not_keep_the_others() {
    let mut shard = Shard::new(SMALL);
    shard.append(20);
    shard.drain();
    shard.reader.acked_through(20);
    shard.disk.state().refuse_remove = true;
    let keep = Retention {
        bytes: 0,
        age_ms: 0,
    };
    assert!(keep.prune(&mut [&mut shard.reader], 1).is_err());
    shard.disk.state().refuse_remove = false;
    assert!(keep.prune(&mut [&mut shard.reader], 1).is_ok());
    assert_eq!(shard.segments().len(), 1);
}

// === adoption ===

#[test]
fn a_living_boot_is_not_adopted_and_a_dead_one_once() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(2);
    let disk = shard.disk.clone();
    assert_eq!(boots(&disk).unwrap(), [BOOT]);
    assert!(adopt(&disk, BOOT).unwrap().is_none());
    drop(shard);
    let adopted = adopt(&disk, BOOT).unwrap().unwrap();
    assert!(adopt(&disk, BOOT).unwrap().is_none());
    assert_eq!(
        adopted.shards(),
        [RecoveredShard {
            shard: 0,
            oldest_seq: 1,
            last_seq: 2,
            torn: 0
        }]
    );
    assert!(
        adopt(&disk, BootId([1; 16])).unwrap().is_none(),
        "there is no such boot"
    );
}

#[test]
fn a_boot_is_locked_before_it_has_its_name() {
    let disk = MemoryDisk::default();
    let boot = Boot::create(&disk, BOOT).unwrap();
    assert_eq!(disk.files(), [format!("boots/{BOOT}/lock")]);
    assert!(adopt(&disk, BOOT).unwrap().is_none());
    drop(boot);
    assert!(adopt(&disk, BOOT).unwrap().is_some());
}

#[test]
fn a_torn_tail_is_named_wherever_it_was_cut() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    let mut ends = vec![44];
    for _ in 0..4 {
        shard.append(1);
        ends.push(shard.disk.bytes(&shard.segments()[0]).len());
    }
    let (disk, path) = (shard.disk.clone(), shard.segments()[0].clone());
    drop(shard);
    let whole = disk.bytes(&path);
    for cut in 0..=whole.len() {
        disk.overwrite(&path, whole[..cut].to_vec());
        // Found the same by whoever comes next.
        for _ in 0..2 {
            let adopted = adopt(&disk, BOOT).unwrap().unwrap();
            let sound = ends.iter().filter(|end| **end <= cut).count().max(1) as u64 - 1;
            let torn = u64::from(cut > 44 && !ends.contains(&cut));
            let found = adopted.shards()[0];
            assert_eq!(
                (found.last_seq, found.torn),
                (sound + torn, torn),
                "cut at {cut}"
            );
            let mut reader = adopted.readers().remove(0);
            if sound > 0 {
                assert_eq!(reader.read(LIMIT).unwrap(), Some(records(1..=sound)));
            }
            let named = (torn > 0).then(|| gap(sound + 1, sound + 1, GapReason::Torn));
            assert_eq!(reader.read(LIMIT).unwrap(), named, "cut at {cut}");
            assert_eq!(reader.read(LIMIT).unwrap(), None);
        }
    }
}

#[test]
fn a_damaged_tail_is_named_record_by_record_as_far_as_they_can_be_told_apart() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(3);
    let sound = shard.disk.bytes(&shard.segments()[0]).len();
    shard.append(2);
    let (disk, path) = (shard.disk.clone(), shard.segments()[0].clone());
    drop(shard);
    let whole = disk.bytes(&path);
    let damage = |from: usize, to: usize, damage: fn(u8) -> u8| {
        let mut bytes = whole.clone();
        bytes[from..to]
            .iter_mut()
            .for_each(|byte| *byte = damage(*byte));
        disk.overwrite(&path, bytes);
        let adopted = adopt(&disk, BOOT).unwrap().unwrap();
        let mut reader = adopted.readers().remove(0);
        let mut reads = Vec::new();
        reads.extend(std::iter::from_fn(|| reader.read(LIMIT).unwrap()));
        reads
    };
    let torn = |from, to| gap(from, to, GapReason::Torn);
    let in_the_fourth = damage(sound + 12, sound + 13, |byte| !byte);
    assert_eq!(in_the_fourth, [records(1..=3), torn(4, 4), records(5..=5)]);
    let in_the_fifth = damage(whole.len() - 1, whole.len(), |byte| !byte);
    assert_eq!(in_the_fifth, [records(1..=4), torn(5, 5)]);
    // Behind lengths that make sense there were as many records.
    let mut both = whole.clone();
    both[sound + 12] ^= 1;
    *both.last_mut().unwrap() ^= 1;
    disk.overwrite(&path, both);
    let adopted = adopt(&disk, BOOT).unwrap().unwrap();
    assert_eq!(
        (adopted.shards()[0].last_seq, adopted.shards()[0].torn),
        (5, 2)
    );
    drop(adopted);
    let zeros = damage(sound, whole.len(), |_| 0);
    assert_eq!(zeros, [records(1..=3), torn(4, 4)], "one at least");
}

#[test]
fn what_comes_after_a_torn_tail_has_a_segment_of_its_own() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(3);
    let (disk, path) = (shard.disk.clone(), shard.segments()[0].clone());
    drop(shard);
    let mut bytes = disk.bytes(&path);
    bytes.truncate(bytes.len() - 1);
    disk.overwrite(&path, bytes);
    let header = format::SegmentHeader {
        boot: BOOT,
        shard: 0,
        first_seq: 4,
    };
    let mut next = header.encode();
    assert!(format::push_record(&mut next, 4, |body| {
        prost::Message::encode(&record(4), body).unwrap();
    }));
    let mut file = disk
        .create(&layout::segment_path(&layout::boot_dir(BOOT), 0, 4))
        .unwrap();
    disk.append(&mut file, &next).unwrap();
    let adopted = adopt(&disk, BOOT).unwrap().unwrap();
    let mut reader = adopted.readers().remove(0);
    assert_eq!(reader.read(LIMIT).unwrap(), Some(records(1..=2)));
    assert_eq!(
        reader.read(LIMIT).unwrap(),
        Some(gap(3, 3, GapReason::Torn))
    );
    assert_eq!(reader.read(LIMIT).unwrap(), Some(records(4..=4)));
}

#[test]
fn a_segment_of_a_later_format_is_left_alone() {
    let mut shard = Shard::new(DEFAULT_SEGMENT_BYTES);
    shard.append(3);
    let (disk, path) = (shard.disk.clone(), shard.segments()[0].clone());
    drop(shard);
    let mut bytes = disk.bytes(&path);
    bytes[8] = 9;
    disk.overwrite(&path, bytes.clone());
    let refused = adopt(&disk, BOOT).unwrap_err();
    assert_eq!(
        refused,
        BootError::NewerFormat {
            path: path.clone(),
            format: 9
        }
    );
    assert_eq!(disk.bytes(&path), bytes);
    assert!(disk.state().synced.is_empty());
}

#[test]
fn what_vanishes_after_adoption_is_named_as_lost() {
    let mut shard = Shard::new(SMALL);
    shard.append(10);
    let disk = shard.disk.clone();
    drop(shard);
    let adopted = adopt(&disk, BOOT).unwrap().unwrap();
    let mut reader = adopted.readers().remove(0);
    let one = BatchLimit {
        records: 1,
        ..LIMIT
    };
    assert_eq!(reader.read(one).unwrap(), Some(records(1..=1)));
    disk.wipe();
    assert_eq!(
        reader.read(LIMIT).unwrap(),
        Some(gap(2, 10, GapReason::Lost))
    );
    assert_eq!(reader.read(LIMIT).unwrap(), None);
}

#[test]
fn a_missing_segment_in_the_middle_is_named_as_lost() {
    let mut shard = Shard::new(SMALL);
    shard.append(10);
    let (disk, names) = (shard.disk.clone(), shard.segments());
    drop(shard);
    disk.remove(&names[1]).unwrap();
    let adopted = adopt(&disk, BOOT).unwrap().unwrap();
    let mut reader = adopted.readers().remove(0);
    let Some(Read::Records { records: first, .. }) = reader.read(LIMIT).unwrap() else {
        panic!("records")
    };
    let from = first.len() as u64 + 1;
    let Some(Read::Gap(lost)) = reader.read(LIMIT).unwrap() else {
        panic!("a gap")
    };
    assert_eq!((lost.from, lost.reason), (from, GapReason::Lost));
    assert_eq!(
        drain(&mut reader),
        ((lost.to + 1)..=10).collect::<Vec<u64>>()
    );
}

#[test]
fn a_dead_boots_directory_goes_when_it_is_empty_and_not_before() {
    let mut shard = Shard::new(SMALL);
    shard.append(5);
    let disk = shard.disk.clone();
    drop(shard);
    let adopted = adopt(&disk, BOOT).unwrap().unwrap();
    let mut reader = adopted.readers().remove(0);
    drain(&mut reader);
    reader.acked_through(5);
    assert!(!adopted.remove_if_empty().unwrap());
    let keep = Retention {
        bytes: 0,
        age_ms: u64::MAX,
    };
    keep.prune(&mut [&mut reader], 0).unwrap();
    assert!(adopted.remove_if_empty().unwrap());
    assert_eq!(boots(&disk).unwrap(), []);
    assert!(adopted.remove_if_empty().unwrap(), "twice does no harm");
}

#[test]
fn files_with_other_names_are_left_alone() {
    let mut shard = Shard::new(SMALL);
    shard.append(5);
    let disk = shard.disk.clone();
    drop(shard);
    let table = format!("boots/{BOOT}/open.map");
    disk.create(&table).unwrap();
    let adopted = adopt(&disk, BOOT).unwrap().unwrap();
    let mut reader = adopted.readers().remove(0);
    drain(&mut reader);
    reader.acked_through(5);
    Retention {
        bytes: 0,
        age_ms: 0,
    }
    .prune(&mut [&mut reader], 1)
    .unwrap();
    assert!(!adopted.remove_if_empty().unwrap());
    assert!(disk.files().contains(&table));
}

// === the tests' shard ===

struct Shard {
    disk: MemoryDisk,
    writer: ShardWriter<MemoryDisk>,
    reader: ShardReader<MemoryDisk>,
    _boot: Boot<MemoryDisk>,
}

impl Shard {
    fn new(segment_bytes: u64) -> Self {
        let disk = MemoryDisk::default();
        let boot = Boot::create(&disk, BOOT).unwrap();
        let (writer, reader) = (boot.writer(0, segment_bytes), boot.reader(0));
        Self {
            disk,
            writer,
            reader,
            _boot: boot,
        }
    }

    fn append(&mut self, records: u64) {
        for _ in 0..records {
            let seq = self.writer.next_seq();
            assert_eq!(self.writer.append(&record(seq)), Appended::Stored { seq });
        }
    }

    fn read(&mut self) -> Option<Read> {
        self.reader.read(LIMIT).unwrap()
    }

    fn drain(&mut self) -> Vec<u64> {
        drain(&mut self.reader)
    }

    fn segments(&self) -> Vec<String> {
        self.disk
            .files()
            .into_iter()
            .filter(|path| path.ends_with(".seg"))
            .collect()
    }
}

/// Every sequence from the reader's place on, none of which may be missing.
fn drain(reader: &mut ShardReader<MemoryDisk>) -> Vec<u64> {
    let mut seqs = Vec::new();
    while let Some(read) = reader.read(LIMIT).unwrap() {
        let Read::Records {
            first_seq,
            records: found,
        } = &read
        else {
            panic!("{read:?}");
        };
        let last = first_seq + found.len() as u64 - 1;
        assert_eq!(read, records(*first_seq..=last));
        seqs.extend(*first_seq..=last);
    }
    seqs
}

fn record(seq: u64) -> UsageRecord {
    UsageRecord {
        exchange_id: seq.to_le_bytes().to_vec(),
        request_id: "r".repeat(usize::try_from(seq % 23).unwrap()),
        ..UsageRecord::default()
    }
}

fn records(seqs: std::ops::RangeInclusive<u64>) -> Read {
    let first_seq = *seqs.start();
    let records = seqs
        .map(|seq| prost::Message::encode_to_vec(&record(seq)))
        .collect();
    Read::Records { first_seq, records }
}

fn gap(from: u64, to: u64, reason: GapReason) -> Read {
    Read::Gap(Gap { from, to, reason })
}
