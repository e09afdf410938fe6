//! Admission: the one place where a routed request is let through to a provider.
//!
//! Every limit that applies to caller, target and rule is asked for what the request needs, all or
//! none. [`Grip`] is what an attempt then holds; [`Obstacle`] says what stood in the way.

use std::borrow::Cow;
use std::sync::Arc;

use proto::config::v1::{LimitSubject, LimitUnit, OnExceed};

use crate::authenticate::Caller;
use crate::config::Compiled;
use crate::config::limits::{Limit, Subjects, Tried};
use crate::config::models::Target;
use crate::credit::{Mode, Need, Shortage, reserve, reserve_after_wait};
use crate::forward;
use crate::host::Now;
use crate::limits::{Asked, Most, NodeLimits, Offer, TargetStats, Unbounded, most_of, need};
use crate::route::Planned;

mod clamp;
mod grip;
mod obstacle;
mod standing;

pub(crate) use clamp::clamped;
pub(crate) use grip::{Grip, release_left};
pub(crate) use obstacle::{Course, Obstacle, Why};
pub(crate) use standing::{Standings, wait_text};

/// A request that was let through. From here on it is in the ledger, however it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admission {
    /// The record's day and its roll-up slot are those of this moment, as are the windows of what
    /// was reserved.
    pub(crate) at: Now,
}

/// Admits a routed request.
pub(crate) const fn admit(now: Now) -> Admission {
    Admission { at: now }
}

/// What to do where credit lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Wait for the control plane.
    Waits,
    /// The time to wait is over.
    Over,
}

/// A request that asks to be let through to one target.
#[derive(Clone, Copy)]
pub(crate) struct Applicant<'a> {
    pub(crate) config: &'a Compiled,
    pub(crate) limits: &'static NodeLimits,
    pub(crate) caller: Caller,
    /// `<team>/<user>`; empty: no user was named.
    pub(crate) end_user: &'a str,
    pub(crate) asked: &'a Asked,
    pub(crate) rule: Option<usize>,
}

/// What is asked of the limits that apply, in their order.
struct Ask {
    limits: Vec<usize>,
    needs: Vec<Need>,
    stats: Option<Arc<TargetStats>>,
}

impl<'a> Applicant<'a> {
    /// Reserves what one attempt at a target needs, but for requests and slots that `held` has
    /// already: an exchange counts once.
    pub(crate) fn reserve(
        &self,
        planned: Planned,
        held: &[Grip],
        now: Now,
        patience: Patience,
    ) -> Result<Grip, Box<Obstacle>> {
        let Ask {
            limits,
            needs,
            stats,
        } = self.ask(planned, held, now)?;
        let reserved = match patience {
            Patience::Waits => reserve(&needs, now.mono_us),
            Patience::Over => reserve_after_wait(&needs, now.mono_us),
        };
        match reserved {
            Ok(reservation) => {
                let most = self.most(&limits, planned);
                let mut grip = Grip::new(self.config, limits, needs, reservation, stats);
                grip.most = most;
                Ok(grip)
            }
            Err(shortage) => {
                let obstacle = self.obstacle(&limits, needs, shortage, now);
                Err(Box::new(obstacle))
            }
        }
    }

    /// What a limit would need for a target, if the request asked for `asked`.
    pub(crate) fn need_of(
        &self,
        limit: &Limit,
        asked: &Asked,
        planned: Planned,
        now: Now,
    ) -> Result<u64, Unbounded> {
        let Some((target, _)) = forward::target_of(self.config, planned) else {
            return Ok(0);
        };
        let stats = self.limits.learned.of(&target.label);
        self.need_with(limit, asked, planned, target, &stats, now)
    }

    fn ask(&self, planned: Planned, held: &[Grip], now: Now) -> Result<Ask, Box<Obstacle>> {
        let config = self.config;
        let mut limits = Vec::new();
        let Some((target, _)) = forward::target_of(config, planned) else {
            return Ok(Ask {
                limits,
                needs: Vec::new(),
                stats: None,
            });
        };
        let who = Subjects {
            key: self.caller.key,
            team: self.caller.team,
            end_user: Some(self.end_user).filter(|user| !user.is_empty()),
        };
        if let Some(tried) = tried(config, planned, self.rule) {
            config.limits.applying(who, tried, &mut limits);
        }
        limits.retain(|&index| {
            config.limits.limit(index).is_some_and(Limit::is_metered)
                || !held.iter().any(|grip| grip.counts(index))
        });
        let all = |index: &usize| config.limits.limit(*index);
        let is_metered = limits.iter().filter_map(all).any(Limit::is_metered);
        let stats = is_metered.then(|| self.limits.learned.of(&target.label));
        let mut needs = Vec::with_capacity(limits.len());
        for (at, limit) in limits.iter().filter_map(all).enumerate() {
            let amount = match &stats {
                Some(stats) => self.need_with(limit, self.asked, planned, target, stats, now),
                None => Ok(1),
            };
            let is_warning = limit.on_exceed == OnExceed::Warn;
            let amount = match amount {
                Ok(amount) => amount,
                // What it comes to is charged in the end.
                Err(_) if is_warning => 0,
                Err(unbounded) => {
                    return Err(Box::new(Obstacle {
                        limit: limits.get(at).copied(),
                        why: Why::Unbounded(unbounded),
                        standings: Standings::default(),
                        unix_us: now.unix_us,
                    }));
                }
            };
            needs.push(Need {
                account: self
                    .limits
                    .accounts
                    .account(&limit.terms, &self.subject(limit)),
                amount,
                mode: if is_warning { Mode::Warn } else { Mode::Must },
            });
        }
        Ok(Ask {
            limits,
            needs,
            stats,
        })
    }

    /// The tokens that strict limits take an attempt to have at most.
    fn most(&self, limits: &[usize], planned: Planned) -> Most {
        let all = limits
            .iter()
            .filter_map(|&index| self.config.limits.limit(index));
        let strict = all.filter(|limit| limit.needs_bound());
        let units = strict.map(|limit| limit.unit);
        most_of(units, self.asked, self.context_window(planned))
    }

    fn context_window(&self, planned: Planned) -> Option<u64> {
        let model = self.config.models.get(planned.model)?;
        Some(model.context_window).filter(|&window| window > 0)
    }

    fn need_with(
        &self,
        limit: &Limit,
        asked: &Asked,
        planned: Planned,
        target: &Target,
        stats: &TargetStats,
        now: Now,
    ) -> Result<u64, Unbounded> {
        let price = self.config.prices.at(&target.prices, now.unix_s());
        let offer = Offer {
            context_window: self.context_window(planned),
            price: price.filter(|_| limit.unit == LimitUnit::Money),
            stats,
        };
        need(limit, asked, &offer)
    }

    fn subject(&self, limit: &Limit) -> Cow<'a, str> {
        let keys = &self.config.keys;
        Cow::Borrowed(match limit.subject {
            LimitSubject::Team => keys.team(self.caller.team).map_or("", |team| &team.id),
            LimitSubject::Key => keys.key(self.caller.key).map_or("", |key| &key.id),
            LimitSubject::EndUser => self.end_user,
            LimitSubject::Everything | LimitSubject::Unspecified => "",
        })
    }

    fn obstacle(
        &self,
        limits: &[usize],
        needs: Vec<Need>,
        shortage: Shortage,
        now: Now,
    ) -> Obstacle {
        let mut standings = Standings::default();
        standings.add(self.config, limits, &needs, now.mono_us);
        Obstacle {
            limit: limits.get(shortage.need).copied(),
            why: Why::Short {
                cause: shortage.cause,
                need: needs.into_iter().nth(shortage.need),
            },
            standings,
            unix_us: now.unix_us,
        }
    }
}

/// A planned attempt, as limits see it.
pub(crate) fn tried(config: &Compiled, planned: Planned, rule: Option<usize>) -> Option<Tried<'_>> {
    let (target, _) = forward::target_of(config, planned)?;
    let model = config.models.get(planned.model)?;
    Some(Tried {
        model: &model.id,
        provider: target.provider,
        rule,
    })
}
