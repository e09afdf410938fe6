//! Many clients at once, each of which does as it is told.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tests::http::{Answer, Request};

/// Who gets a RESERVED again and again is refused for good, in effect.
const LONGEST_STREAK: usize = 20;

/// What the clients met.
#[derive(Debug, Default)]
pub(crate) struct Met {
    /// When each request that was answered began.
    pub(crate) answered: Vec<Instant>,
    /// When each refusal for good came.
    pub(crate) spent: Vec<Instant>,
    /// Refusals to be tried again.
    pub(crate) reserved: usize,
    /// The most of them in a row that one client got.
    pub(crate) longest_streak: usize,
    /// 503 of ours: nobody could be asked.
    pub(crate) unavailable: usize,
    /// Connections that were cut or refused.
    pub(crate) lost: usize,
    /// Anything else, in words.
    pub(crate) strange: Vec<String>,
}

/// What one answer says.
#[derive(Debug)]
pub(crate) enum Said {
    Answered,
    Spent,
    Reserved(Duration),
    Unavailable(Duration),
    Strange(String),
}

impl Said {
    pub(crate) fn by(answer: &Answer) -> Self {
        let retry_after = answer
            .header("retry-after")
            .and_then(|value| value.parse().ok())
            .map(Duration::from_secs);
        match (answer.status, answer.header("x-should-retry"), retry_after) {
            (200, ..) if answer.complete => Self::Answered,
            (429, Some("false"), _) if answer.error_code() == "insufficient_quota" => Self::Spent,
            (429, _, Some(wait)) if answer.error_code() == "rate_limit_exceeded" => {
                Self::Reserved(wait)
            }
            (503, _, Some(wait)) if answer.error_code() == "limits_unavailable" => {
                Self::Unavailable(wait)
            }
            (status, ..) => Self::Strange(format!("{status} {:?}", answer.text())),
        }
    }
}

/// `clients` clients send `request(number)` to the ports in turn, each until it is refused for good.
pub(crate) fn hammer(
    clients: usize,
    ports: &[u16],
    request: impl Fn(usize) -> Request + Sync,
) -> Met {
    let met = Mutex::new(Met::default());
    let number = AtomicUsize::new(0);
    thread::scope(|scope| {
        for client in 0..clients {
            let (met, number, request) = (&met, &number, &request);
            scope.spawn(move || {
                let mut streak = 0;
                for turn in client.. {
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    let port = *ports.get(turn % ports.len()).expect("a port");
                    let began = Instant::now();
                    let answer = request(number).send(port);
                    let said = answer.as_ref().map(Said::by);
                    let mut met = met.lock().expect("no client panics");
                    let pause = match said {
                        Ok(Said::Answered) => {
                            met.answered.push(began);
                            streak = 0;
                            Duration::ZERO
                        }
                        Ok(Said::Spent) => return met.spent.push(Instant::now()),
                        Ok(Said::Reserved(wait)) => {
                            met.reserved += 1;
                            streak += 1;
                            met.longest_streak = met.longest_streak.max(streak);
                            wait
                        }
                        Ok(Said::Unavailable(wait)) => {
                            met.unavailable += 1;
                            wait
                        }
                        Ok(Said::Strange(said)) => return met.strange.push(said),
                        // Another one is asked, as a load balancer would.
                        Err(_) => {
                            met.lost += 1;
                            Duration::from_millis(20)
                        }
                    };
                    drop(met);
                    assert!(streak < LONGEST_STREAK, "told to come again {streak} times");
                    thread::sleep(pause);
                }
            });
        }
    });
    met.into_inner().expect("no client panics")
}
