//! ① and ② The limits: reserve before the first attempt, wait at a limit's edge, reserve again
//! before each further attempt.

use std::rc::Rc;
use std::sync::Arc;

use proto::config::v1::LimitUnit;

use super::{Admitted, Exchange, Reply, Step};
use crate::admit::{
    Applicant, Course, Grip, Obstacle, Patience, Standings, Why, admit, clamped, release_left,
};
use crate::attempt::{Attempt, Metered};
use crate::config::Compiled;
use crate::credit::{Account, Waiting, Wake};
use crate::error::Refusal;
use crate::host::{Clock, Now};
use crate::limits::used;
use crate::route::Planned;

/// How long a request waits at a limit's edge for the control plane.
const EDGE_WAIT_US: u64 = 2_000_000;
/// How often the output of one request is clamped: limits may give way one after the other.
const CLAMPS: u32 = 4;

/// A routed request that is not let through yet.
pub(super) struct Pending {
    admitted: Admitted,
    /// Index of the planned attempt that it asks for.
    at: usize,
    /// When it stops waiting, by the monotonic clock; `None`: it has not begun to.
    until_us: Option<u64>,
    /// What it lacks.
    lacking: Option<(Arc<Account>, u64)>,
    /// Its place in the queue of the account that it lacks credit of.
    place: Option<(Arc<Account>, Waiting)>,
    /// Why the targets before would not do.
    obstacle: Option<Box<Obstacle>>,
    clamps: u32,
}

/// A refusal, and how the limits stand.
pub(super) struct Refused {
    refusal: Refusal,
    standings: Standings,
}

impl From<Refusal> for Box<Refused> {
    fn from(refusal: Refusal) -> Self {
        Self::new(Refused {
            refusal,
            standings: Standings::default(),
        })
    }
}

impl Refused {
    fn by(obstacle: &Obstacle, config: &Compiled) -> Box<Self> {
        Box::new(Self {
            refusal: obstacle.refusal(config),
            standings: obstacle.standings,
        })
    }
}

impl Exchange {
    /// Lets a routed request through, or says what it waits for.
    pub(super) fn seek_admission(
        &mut self,
        mut admitted: Admitted,
        now: Now,
    ) -> Result<Step, Box<Refused>> {
        if self.config.limits.is_empty() {
            self.admitted = Some(admitted);
            return Ok(Step::Forward);
        }
        admitted.limit_subject = self.limit_subject(&admitted.end_user);
        let pending = Pending {
            admitted,
            at: 0,
            until_us: None,
            lacking: None,
            place: None,
            obstacle: None,
            clamps: 0,
        };
        self.ask_limits(pending, now, Patience::Waits)
    }

    /// ① After [`Step::Wait`]: takes a place in the queue, and gives what to do now: to wait until
    /// `wake` is rung or the time is over, or what was decided meanwhile.
    pub fn wait(&mut self, wake: Arc<dyn Wake>, clock: &dyn Clock) -> Step {
        let now = clock.now();
        let Some(pending) = &mut self.pending else {
            return Step::Forward;
        };
        let Some((account, amount)) = pending.lacking.take() else {
            return self.decide_waiting(now, Patience::Over);
        };
        let is_there = |(other, _): &&(Arc<Account>, Waiting)| Arc::ptr_eq(other, &account);
        if let Some((_, place)) = pending.place.as_ref().filter(is_there) {
            place.again(amount);
            return pending.step(now);
        }
        match account.wait(amount, wake) {
            Ok(place) => {
                pending.place = Some((account, place));
                pending.step(now)
            }
            // Whoever comes now would not be served in time.
            Err(_) => self.decide_waiting(now, Patience::Over),
        }
    }

    /// ① It was woken: there may be credit, or an answer. `None`: it does not wait any more.
    pub fn on_credit(&mut self, clock: &dyn Clock) -> Option<Step> {
        let now = clock.now();
        let until_us = self.pending.as_ref()?.until_us;
        let is_over = until_us.is_some_and(|until_us| now.mono_us >= until_us);
        let patience = if is_over {
            Patience::Over
        } else {
            Patience::Waits
        };
        Some(self.decide_waiting(now, patience))
    }

    /// ① The time to wait is over. `None`: it does not wait any more.
    pub fn on_wait_over(&mut self, clock: &dyn Clock) -> Option<Step> {
        self.pending.as_ref()?;
        Some(self.decide_waiting(clock.now(), Patience::Over))
    }

    /// When the wait for credit is over, by the monotonic clock; `None`: it does not wait.
    pub fn waits_until_us(&self) -> Option<u64> {
        self.pending.as_ref()?.until_us
    }

    fn decide_waiting(&mut self, now: Now, patience: Patience) -> Step {
        let Some(pending) = self.pending.take() else {
            return Step::Forward;
        };
        match self.ask_limits(*pending, now, patience) {
            Ok(step) => step,
            Err(refused) => Step::Reply(self.refuse_with(&refused)),
        }
    }

    /// The client's answer, with the headers that tell how the limits stand.
    pub(super) fn refuse_with(&mut self, refused: &Refused) -> Reply {
        self.limit_refusal = refused.refusal.limit_word();
        let mut reply = self.refuse(&refused.refusal);
        refused.standings.add_to(&mut reply.headers);
        reply
    }

    /// Reserves for the first planned target that fits.
    fn ask_limits(
        &mut self,
        mut pending: Pending,
        now: Now,
        patience: Patience,
    ) -> Result<Step, Box<Refused>> {
        let caller = self.caller.ok_or(Refusal::MissingApiKey)?;
        let config = Rc::clone(&self.config);
        while let Some(&planned) = pending.admitted.route.plan.get(pending.at) {
            let applicant = Applicant {
                config: &config,
                limits: self.limits,
                caller,
                end_user: &pending.admitted.limit_subject,
                asked: &pending.admitted.asked,
                rule: pending.admitted.route.rule,
            };
            let obstacle = match applicant.reserve(planned, &[], now, patience) {
                Ok(grip) => {
                    self.admitted = Some(pending.admit(grip, now));
                    return Ok(Step::Forward);
                }
                Err(obstacle) => obstacle,
            };
            if let Some(tokens) = pending.clamp(&applicant, &obstacle, planned, now) {
                pending.admitted.asked.max_output = Some(tokens);
                pending.admitted.clamped_to = Some(tokens);
                pending.clamps += 1;
                continue;
            }
            match obstacle.course(&config, patience) {
                Course::Wait => {
                    let step = pending.lack(obstacle.why, now);
                    self.pending = Some(Box::new(pending));
                    return Ok(step);
                }
                Course::Next => {
                    pending.obstacle.get_or_insert(obstacle);
                    pending.at += 1;
                }
                Course::Refuse => return Err(Refused::by(&obstacle, &config)),
            }
        }
        Err(pending.obstacle.map_or_else(
            || Refusal::NoCapableModel.into(),
            |obstacle| Refused::by(&obstacle, &config),
        ))
    }

    /// ② Reserves for an attempt at a planned target, once: the first attempt has it from its
    /// admission. False: a limit stands in the way.
    pub(super) fn readmit(&mut self, number: u32, at: usize, planned: Planned, now: Now) -> bool {
        let Some(admitted) = &mut self.admitted else {
            return true;
        };
        if self.config.limits.is_empty() {
            return true;
        }
        if at == 0
            && let [grip] = admitted.grips.as_mut_slice()
            && grip.attempt == 0
        {
            grip.attempt = number;
            return true;
        }
        let Some(caller) = self.caller else {
            return false;
        };
        let (rule, config) = (admitted.route.rule, &self.config);
        let estimates = config.settings.estimate_unknown_usage;
        let (text_bytes, asked_tier) = (admitted.text_bytes, admitted.asked_tier.as_str());
        let used = |attempt: &Attempt, unit| {
            let metered = attempt.metered(text_bytes, estimates);
            used_by(config, attempt, unit, &metered, asked_tier)
        };
        release_left(&mut admitted.grips, config, &self.attempts, rule, &used);
        let applicant = Applicant {
            config,
            limits: self.limits,
            caller,
            end_user: &admitted.limit_subject,
            asked: &admitted.asked,
            rule,
        };
        match applicant.reserve(planned, &admitted.grips, now, Patience::Waits) {
            Ok(mut grip) => {
                grip.attempt = number;
                admitted.grips.push(grip);
                true
            }
            Err(obstacle) => {
                self.obstacle.get_or_insert(obstacle);
                false
            }
        }
    }

    /// Why no attempt could be made, if a limit stood in the way; `is_answered`: only if it was not
    /// for lack of an answer.
    pub(super) fn limit_reply(&mut self, is_answered: bool) -> Option<Reply> {
        let refused = Refused::by(self.obstacle.as_ref()?, &self.config);
        let is_unanswered = match &refused.refusal {
            Refusal::LimitReached(exceeded) => exceeded.is_unanswered(),
            _ => false,
        };
        (!is_answered || !is_unanswered).then(|| self.refuse_with(&refused))
    }

    /// How the limits of this exchange stand.
    pub(super) fn standings(&self, now_us: u64) -> Standings {
        let mut standings = Standings::default();
        let grips = self.admitted.iter().flat_map(|admitted| &admitted.grips);
        for grip in grips {
            grip.stand(&self.config, &mut standings, now_us);
        }
        standings
    }

    /// `<team>/<user>`; empty: no user was named.
    fn limit_subject(&self, end_user: &str) -> String {
        let caller = self.caller.filter(|_| !end_user.is_empty());
        let team = caller.and_then(|caller| self.config.keys.team(caller.team));
        team.map_or_else(String::new, |team| format!("{}/{end_user}", team.id))
    }
}

impl Pending {
    fn step(&self, now: Now) -> Step {
        let until_us = self.until_us.unwrap_or(now.mono_us);
        Step::Wait {
            max_us: until_us.saturating_sub(now.mono_us),
        }
    }

    fn lack(&mut self, why: Why, now: Now) -> Step {
        if let Why::Short {
            need: Some(need), ..
        } = why
        {
            self.lacking = Some((need.account, need.amount));
        }
        self.until_us
            .get_or_insert_with(|| now.mono_us.saturating_add(EDGE_WAIT_US));
        self.step(now)
    }

    /// The output that the request has to make do with, where it may be lowered.
    fn clamp(
        &self,
        applicant: &Applicant<'_>,
        obstacle: &Obstacle,
        planned: Planned,
        now: Now,
    ) -> Option<u64> {
        let is_clampable = self.admitted.stream || self.admitted.asked.max_output.is_some();
        if !is_clampable || self.clamps >= CLAMPS {
            return None;
        }
        clamped(applicant, obstacle, planned, now)
    }

    fn admit(self, grip: Grip, now: Now) -> Admitted {
        let mut admitted = self.admitted;
        // Targets that do not fit are not tried later either.
        admitted.route.plan.drain(..self.at);
        admitted.admission = admit(now);
        admitted.grips = vec![grip];
        admitted
    }
}

/// What an attempt used of a limit's unit, as its record says.
pub(super) fn used_by(
    config: &Compiled,
    attempt: &Attempt,
    unit: LimitUnit,
    metered: &Metered,
    asked_tier: &str,
) -> u64 {
    let spent = super::settle::used_of(config, attempt, metered, asked_tier);
    used(unit, &spent)
}
