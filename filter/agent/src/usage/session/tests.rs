mod simulation;

use proto::metering::v1::{Ack, GapReason, Resume, UsageRecord};

use super::*;
use crate::spool::{Appended, Boot, DEFAULT_SEGMENT_BYTES, ShardWriter, adopt, memory::MemoryDisk};

const BOOT: BootId = BootId([0xb0; 16]);
const DEAD: BootId = BootId([0xde; 16]);

#[test]
fn nothing_is_sent_of_a_shard_before_its_resume() {
    let (_disk, _boot, mut session, mut writers) = node(2);
    write(&mut writers[0], 3);
    session.connected();
    assert_eq!(session.sent(), ["open b0/0 from 1", "open b0/1 from 1"]);
    session.on_down(resume(BOOT, 1, 1));
    assert_eq!(session.sent(), [""; 0]);
    session.on_down(resume(BOOT, 0, 1));
    assert_eq!(session.sent(), ["batch b0/0 1..=3"]);
    assert!(!session.is_drained());
    session.on_down(ack(BOOT, 0, 3));
    assert!(session.is_drained());
}

#[test]
fn the_ledgers_cursor_decides_where_to_begin() {
    let (_disk, _boot, mut session, mut writers) = node(1);
    write(&mut writers[0], 5);
    session.connected();
    session.sent();
    session.on_down(resume(BOOT, 0, 4));
    assert_eq!(session.sent(), ["batch b0/0 4..=5"]);
}

#[test]
fn a_new_stream_opens_everything_again_and_repeats_what_was_not_acked() {
    let (_disk, _boot, mut session, mut writers) = node(1);
    write(&mut writers[0], 2);
    session.connected();
    session.sent();
    session.on_down(resume(BOOT, 0, 1));
    assert_eq!(session.sent(), ["batch b0/0 1..=2"]);
    session.connected();
    session.on_down(ack(BOOT, 0, 2));
    assert_eq!(session.sent(), ["open b0/0 from 1"]);
    session.on_down(ack(BOOT, 0, 2));
    assert!(
        !session.is_drained(),
        "an ack before the resume says nothing"
    );
    session.on_down(resume(BOOT, 0, 2));
    assert_eq!(session.sent(), ["batch b0/0 2..=2"]);
}

#[test]
fn what_was_on_its_way_on_a_lost_stream_takes_no_room_on_the_next() {
    let (_disk, _boot, mut session, mut writers) = node(2);
    session.window = Window {
        messages: 1,
        ..Window::default()
    };
    write(&mut writers[0], 1);
    session.connected();
    session.sent();
    session.on_down(resume(BOOT, 0, 1));
    assert_eq!(session.sent(), ["batch b0/0 1..=1"]);
    session.connected();
    session.sent();
    write(&mut writers[1], 1);
    session.on_down(resume(BOOT, 1, 1));
    assert_eq!(session.sent(), ["batch b0/1 1..=1"]);
}

#[test]
fn an_ack_of_an_earlier_stream_is_no_reason_to_remove_anything() {
    let (disk, _boot, mut session, _writers) = node(0);
    let dead = Boot::create(&disk, DEAD).unwrap();
    write(&mut dead.writer(0, 100), 9);
    drop(dead);
    session.adopt(adopt(&disk, DEAD).unwrap().unwrap());
    session.connected();
    session.sent();
    session.on_down(resume(DEAD, 0, 10));
    session.connected();
    session
        .prune(
            Retention {
                bytes: 0,
                age_ms: 0,
            },
            1,
        )
        .unwrap();
    session.sent();
    session.on_down(resume(DEAD, 0, 1));
    assert_eq!(
        session.sent()[0],
        "batch de/0 1..=2",
        "the ledger was restored in between"
    );
}

#[test]
fn a_resume_in_mid_stream_rewinds() {
    let (_disk, _boot, mut session, mut writers) = node(1);
    session.connected();
    session.sent();
    session.on_down(resume(BOOT, 0, 1));
    write(&mut writers[0], 2);
    session.sent();
    write(&mut writers[0], 2);
    assert_eq!(session.sent(), ["batch b0/0 3..=4"]);
    session.on_down(resume(BOOT, 0, 1));
    assert_eq!(session.sent(), ["batch b0/0 1..=4"]);
}

#[test]
fn the_window_bounds_what_is_on_its_way_and_no_shard_starves() {
    let (_disk, _boot, mut session, mut writers) = node(2);
    session.window = Window {
        messages: 3,
        batch: BatchLimit {
            bytes: 1 << 20,
            records: 1,
        },
    };
    session.connected();
    session.sent();
    write(&mut writers[0], 9);
    write(&mut writers[1], 9);
    session.on_down(resume(BOOT, 0, 1));
    session.on_down(resume(BOOT, 1, 1));
    assert_eq!(
        session.sent(),
        ["batch b0/0 1..=1", "batch b0/1 1..=1", "batch b0/0 2..=2"]
    );
    session.on_down(ack(BOOT, 0, 1));
    assert_eq!(session.sent(), ["batch b0/1 2..=2"]);
    session.on_down(ack(BOOT, 0, 2));
    session.on_down(ack(BOOT, 1, 2));
    assert_eq!(session.sent().len(), 3);
}

#[test]
fn a_gap_is_sent_in_its_place() {
    let (disk, _boot, mut session, mut writers) = node(1);
    write(&mut writers[0], 1);
    disk.state().space = Some(0);
    assert_eq!(writers[0].append(&record(2)), Appended::Lost { seq: 2 });
    disk.state().space = None;
    write(&mut writers[0], 1);
    session.connected();
    session.sent();
    session.on_down(resume(BOOT, 0, 1));
    assert_eq!(
        session.sent(),
        [
            "batch b0/0 1..=1",
            "gap b0/0 2..=2 DiskFull",
            "batch b0/0 3..=3"
        ]
    );
    session.on_down(ack(BOOT, 0, 3));
    assert!(session.is_drained());
}

#[test]
fn shards_of_a_dead_process_are_sent_under_its_name_and_its_directory_goes_at_last() {
    let (disk, boot, mut session, _writers) = node(1);
    let dead = Boot::create(&disk, DEAD).unwrap();
    write(&mut dead.writer(5, DEFAULT_SEGMENT_BYTES), 3);
    drop(dead);
    session.connected();
    session.sent();
    session.on_down(resume(BOOT, 0, 1));
    session.adopt(adopt(&disk, DEAD).unwrap().unwrap());
    assert_eq!(
        session.sent(),
        ["open de/5 from 1"],
        "adopted while the stream is open"
    );
    session.on_down(resume(DEAD, 5, 1));
    assert_eq!(session.sent(), ["batch de/5 1..=3"]);
    assert_eq!(session.take_done(), []);
    session.on_down(ack(DEAD, 5, 3));
    let end = ShardEnd {
        shard: 5,
        last_seq: 3,
        unmarked: None,
    };
    assert_eq!(session.take_done(), [(DEAD, vec![end])]);
    assert_eq!(session.take_done(), [], "told once");

    let keep = Retention {
        bytes: u64::MAX,
        age_ms: 100,
    };
    session.prune(keep, 100).unwrap();
    assert_eq!(
        crate::spool::boots(&disk).unwrap(),
        [BOOT, DEAD],
        "acked, and kept for a while"
    );
    session.on_down(resume(DEAD, 5, 2));
    assert_eq!(
        session.sent(),
        ["batch de/5 2..=3"],
        "the ledger was restored to an older state"
    );
    session.on_down(ack(DEAD, 5, 3));
    session.prune(keep, 101).unwrap();
    assert_eq!(crate::spool::boots(&disk).unwrap(), [BOOT]);
    session.connected();
    assert_eq!(session.sent(), ["open b0/0 from 1"]);
    assert_eq!(boot.id(), BOOT);
}

#[test]
fn what_is_not_acked_is_never_pruned() {
    let (disk, _boot, mut session, _writers) = node(0);
    let dead = Boot::create(&disk, DEAD).unwrap();
    write(&mut dead.writer(0, 100), 9);
    drop(dead);
    session.adopt(adopt(&disk, DEAD).unwrap().unwrap());
    session.connected();
    session.sent();
    session.on_down(resume(DEAD, 0, 1));
    session.sent();
    session.on_down(ack(DEAD, 0, 8));
    session
        .prune(
            Retention {
                bytes: 0,
                age_ms: 0,
            },
            u64::MAX,
        )
        .unwrap();
    session.connected();
    let opened = session.sent();
    session.on_down(resume(DEAD, 0, 9));
    assert_eq!(session.sent(), ["batch de/0 9..=9"], "{opened:?}");
}

#[test]
fn an_ack_of_what_was_not_sent_acks_what_was() {
    let (_disk, _boot, mut session, mut writers) = node(1);
    session.connected();
    session.sent();
    session.on_down(resume(BOOT, 0, 1));
    write(&mut writers[0], 2);
    session.sent();
    session.on_down(ack(BOOT, 0, 1_000));
    write(&mut writers[0], 1);
    assert_eq!(session.sent(), ["batch b0/0 3..=3"]);
    assert!(!session.is_drained());
}

#[test]
fn messages_about_shards_that_are_not_ours_are_ignored() {
    let (_disk, _boot, mut session, _writers) = node(1);
    session.connected();
    session.sent();
    session.on_down(resume(DEAD, 0, 1));
    session.on_down(resume(BOOT, 7, 1));
    session.on_down(ack(DEAD, 0, 1));
    session.on_down(UsageDown::default());
    assert_eq!(session.sent(), [""; 0]);
}

#[test]
fn a_shard_that_cannot_be_read_is_told_and_sent_later() {
    let (disk, _boot, mut session, mut writers) = node(1);
    write(&mut writers[0], 1);
    session.connected();
    session.sent();
    session.on_down(resume(BOOT, 0, 1));
    disk.state().refuse_read = true;
    assert_eq!(session.sent(), [""; 0]);
    let troubles = session.take_troubles();
    assert_eq!(
        troubles[0].to_string(),
        format!("shard 0 of boot {BOOT} cannot be read: input/output error")
    );
    assert!(session.take_troubles().is_empty());
    disk.state().refuse_read = false;
    assert_eq!(session.sent(), ["batch b0/0 1..=1"]);
}

#[test]
fn what_a_full_disk_took_from_the_end_of_a_shard_is_told_once_it_has_ended() {
    let (disk, _boot, mut session, mut writers) = node(2);
    write(&mut writers[0], 2);
    session.connected();
    session.sent();
    session.on_down(resume(BOOT, 0, 1));
    session.on_down(resume(BOOT, 1, 1));
    assert_eq!(session.sent(), ["batch b0/0 1..=2"]);
    session.on_down(ack(BOOT, 0, 2));
    disk.state().space = Some(0);
    for _ in 0..3 {
        writers[0].append(&record(0));
    }
    assert_eq!(session.sent(), [""; 0]);
    session.end(BOOT, writers[0].finish());
    assert_eq!(session.sent(), ["gap b0/0 3..=5 DiskFull"]);
    assert!(!session.is_drained());
    session.on_down(ack(BOOT, 0, 5));
    assert!(session.is_drained());
}

// === the tests' node ===

type Parts = (
    MemoryDisk,
    Boot<MemoryDisk>,
    Session<MemoryDisk>,
    Vec<ShardWriter<MemoryDisk>>,
);

fn node(shards: u32) -> Parts {
    let disk = MemoryDisk::default();
    let boot = Boot::create(&disk, BOOT).unwrap();
    let mut session = Session::new("node-1", Window::default());
    (0..shards).for_each(|shard| session.add(boot.reader(shard)));
    let writers = (0..shards)
        .map(|shard| boot.writer(shard, DEFAULT_SEGMENT_BYTES))
        .collect();
    (disk, boot, session, writers)
}

impl Session<MemoryDisk> {
    /// Everything it wants to send now, in words.
    fn sent(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next_up())
            .map(|up| describe(&up.message.unwrap()))
            .collect()
    }
}

fn describe(message: &usage_up::Message) -> String {
    match message {
        usage_up::Message::Open(open) => {
            assert_eq!(open.node, "node-1");
            format!(
                "open {:x}/{} from {}",
                open.boot_id[0], open.shard, open.oldest_kept_seq
            )
        }
        usage_up::Message::Batch(batch) => {
            let last = batch.first_seq + batch.records.len() as u64 - 1;
            for (seq, bytes) in (batch.first_seq..).zip(&batch.records) {
                assert_eq!(*bytes, prost::Message::encode_to_vec(&record(seq)));
            }
            format!(
                "batch {:x}/{} {}..={last}",
                batch.boot_id[0], batch.shard, batch.first_seq
            )
        }
        usage_up::Message::Gap(gap) => {
            let reason = GapReason::try_from(gap.reason).unwrap();
            let (from, to) = (gap.from_seq, gap.to_seq);
            format!(
                "gap {:x}/{} {from}..={to} {reason:?}",
                gap.boot_id[0], gap.shard
            )
        }
    }
}

fn write(writer: &mut ShardWriter<MemoryDisk>, records: usize) {
    for _ in 0..records {
        let seq = writer.next_seq();
        assert_eq!(writer.append(&record(seq)), Appended::Stored { seq });
    }
}

fn record(seq: u64) -> UsageRecord {
    UsageRecord {
        exchange_id: seq.to_le_bytes().to_vec(),
        ..UsageRecord::default()
    }
}

fn resume(boot: BootId, shard: u32, next_seq: u64) -> UsageDown {
    let resume = Resume {
        boot_id: boot.0.to_vec(),
        shard,
        next_seq,
    };
    UsageDown {
        message: Some(usage_down::Message::Resume(resume)),
    }
}

fn ack(boot: BootId, shard: u32, through_seq: u64) -> UsageDown {
    let ack = Ack {
        boot_id: boot.0.to_vec(),
        shard,
        through_seq,
    };
    UsageDown {
        message: Some(usage_down::Message::Ack(ack)),
    }
}
