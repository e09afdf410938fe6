use control_plane_core::limit::{BucketKey, Want};
use proto::metering::v1::lease_down::Message;

use super::*;

fn want(subject: &str, urgent: bool) -> Want {
    Want {
        bucket: BucketKey {
            limit: "a".into(),
            subject: subject.into(),
            window_start_s: -1,
        },
        granted_total: 1,
        returned_total: 0,
        available: 0,
        demand_per_minute: 0,
        min_useful: 1,
        urgent,
        next_window: false,
    }
}

struct Bench {
    room: Arc<Semaphore>,
    queue: mpsc::Sender<Waiting>,
    waiting: mpsc::Receiver<Waiting>,
}

impl Bench {
    fn new() -> Self {
        let (queue, waiting) = mpsc::channel(16);
        Self {
            room: Arc::new(Semaphore::new(100)),
            queue,
            waiting,
        }
    }

    async fn message(
        &self,
        boot: u8,
        epoch: u64,
        wants: Vec<Want>,
    ) -> (Waiting, mpsc::Receiver<Result<LeaseDown, Status>>) {
        let (outbox, answers) = mpsc::channel(1);
        let count = u32::try_from(wants.len()).unwrap();
        let waiting = Waiting {
            asked: Asked {
                holder: HolderWants {
                    boot_id: BootId([boot; 16]),
                    epoch,
                    wants,
                },
                denied: Vec::new(),
            },
            place: outbox.reserve_owned().await.unwrap(),
            room: self.room.clone().acquire_many_owned(count).await.unwrap(),
        };
        (waiting, answers)
    }
}

fn denied(subject: &str) -> Answer {
    Answer::no_limit(want(subject, false).bucket)
}

fn subjects(answers: &mut mpsc::Receiver<Result<LeaseDown, Status>>) -> Vec<String> {
    let message = answers.try_recv().unwrap().unwrap().message.unwrap();
    let buckets = match message {
        Message::Grants(grants) => grants.denials.into_iter().map(|deny| deny.bucket).collect(),
        Message::Unavailable(unavailable) => unavailable
            .buckets
            .into_iter()
            .map(Some)
            .collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    buckets
        .into_iter()
        .map(|bucket| bucket.unwrap().subject)
        .collect()
}

#[tokio::test]
async fn messages_of_one_process_are_asked_together_and_answered_apart() {
    let bench = Bench::new();
    let (first, mut first_answers) = bench.message(1, 1, vec![want("x", false)]).await;
    let (other, mut other_answers) = bench.message(2, 5, vec![want("o", false)]).await;
    let two = vec![want("y", false), want("z", true)];
    let (second, mut second_answers) = bench.message(1, 1, two).await;
    let (mut batch, mut put_off) = (Batch::default(), VecDeque::new());
    for waiting in [first, other, second] {
        batch.take(waiting, &mut put_off);
    }
    assert!(put_off.is_empty() && batch.is_urgent);
    assert_eq!((batch.wants, batch.holders.len()), (4, 2));
    let answers = [denied("x"), denied("y"), denied("z")];
    batch.answer(vec![
        Outcome::Answered(answers.into_iter().collect()),
        Outcome::Unavailable,
    ]);
    assert_eq!(subjects(&mut first_answers), ["x"]);
    assert_eq!(subjects(&mut second_answers), ["y", "z"]);
    assert_eq!(subjects(&mut other_answers), ["o"]);
    assert_eq!(bench.room.available_permits(), 100);
}

#[tokio::test]
async fn wants_without_a_verdict_name_their_own_buckets() {
    let bench = Bench::new();
    let (first, mut first_answers) = bench.message(1, 1, vec![want("x", false)]).await;
    let (second, mut second_answers) = bench.message(1, 1, vec![want("y", false)]).await;
    let (mut batch, mut put_off) = (Batch::default(), VecDeque::new());
    batch.take(first, &mut put_off);
    batch.take(second, &mut put_off);
    batch.answer(vec![Outcome::Unavailable]);
    assert_eq!(subjects(&mut first_answers), ["x"]);
    assert_eq!(subjects(&mut second_answers), ["y"]);
}

#[tokio::test]
async fn another_epoch_of_a_process_waits_for_the_next_transaction() {
    let mut bench = Bench::new();
    let (old, _old) = bench.message(1, 1, vec![want("x", true)]).await;
    let (new, _new) = bench.message(1, 2, vec![want("x", true)]).await;
    let (newer, _newer) = bench.message(1, 2, vec![want("y", true)]).await;
    bench.queue.send(new).await.ok().unwrap();
    bench.queue.send(newer).await.ok().unwrap();
    let mut put_off = VecDeque::new();
    let batch = gather(old, &mut put_off, &mut bench.waiting).await;
    assert_eq!(batch.holders[0].epoch, 1);
    assert_eq!(put_off.len(), 2);
    let first = put_off.pop_front().unwrap();
    let batch = gather(first, &mut put_off, &mut bench.waiting).await;
    assert_eq!((batch.holders[0].epoch, batch.wants), (2, 2));
    assert!(put_off.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_want_that_a_request_waits_for_does_not_wait_for_others() {
    let mut bench = Bench::new();
    let started = Instant::now();
    let (urgent, _urgent) = bench.message(1, 1, vec![want("x", true)]).await;
    let mut put_off = VecDeque::new();
    gather(urgent, &mut put_off, &mut bench.waiting).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    let (idle, _idle) = bench.message(1, 1, vec![want("x", false)]).await;
    gather(idle, &mut put_off, &mut bench.waiting).await;
    assert_eq!(started.elapsed(), GATHER_TIME);
}
