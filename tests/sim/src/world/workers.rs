//! Requests, as workers see them.

use filter_core::credit::{Cause, Refusal, Shortage};

use super::{Checked, MS, S, Violation, World, violated};
use crate::event::{Event, Turn};
use crate::mutant::Mutant;
use crate::outage::Outage;
use crate::process::{Ending, LeaseName, Process, Seen, WORKERS};
use crate::request::{Dies, Exchange, Flow, Plan, Waiter};
use crate::scenario::Unit;
use crate::truth::{Fact, FactEnd, Part};

/// How long a request waits at a limit's edge.
const EDGE_WAIT_US: u64 = 2 * S;

impl World {
    /// A client asks.
    pub(super) fn arrive(&mut self, node: usize) -> Checked {
        if self.is_healing {
            return Ok(());
        }
        let gap_us = self.scenario.gap_us;
        self.soon(2 * gap_us, Event::Arrive { node });
        let process = self.nodes[node].process.as_ref();
        if process.is_none_or(|process| process.ending != Ending::Running) {
            return Ok(());
        }
        self.made += 1;
        let plan = self.plan(self.made);
        self.truth.tally.asked += 1;
        self.ask(node, plan, None, false)
    }

    fn plan(&mut self, number: u64) -> Plan {
        let random = &mut self.random;
        let frames = (0..random.between(1, 4)).map(|_| {
            let pause_us = if random.chance(30) {
                random.between(5 * S, 40 * S)
            } else {
                random.between(20 * MS, 3 * S)
            };
            (pause_us, random.between(5, 200))
        });
        let frames: Vec<(u64, u64)> = frames.collect();
        let tokens: u64 = frames.iter().map(|(_, tokens)| tokens).sum();
        let random = &mut self.random;
        let slack = *random.pick(&[0, 20, 400]);
        Plan {
            number,
            key: random.below(self.scenario.keys),
            worker: random.index(WORKERS),
            bound: tokens + random.below(slack + 1),
            estimate: random.between(tokens / 2 + 1, tokens * 3 / 2 + 1),
            frames,
            patience_us: if random.chance(100) {
                random.below(EDGE_WAIT_US)
            } else {
                u64::MAX
            },
        }
    }

    /// Asks for what a request needs; one that waits already keeps its place where it can.
    fn ask(&mut self, node: usize, plan: Plan, waiter: Option<Waiter>, is_over: bool) -> Checked {
        let now = self.moment(node);
        let limits = &self.scenario.limits;
        let Some(process) = &mut self.nodes[node].process else {
            return Ok(());
        };
        let needs = plan.needs(limits, process);
        if self.mutant == Some(Mutant::RenewsAllowance) {
            needs.iter().for_each(|need| need.account.end_outage());
        }
        let asked = Exchange::admit(&plan, limits, process, now, is_over);
        for need in &needs {
            process.see(&need.account);
        }
        let shortage = match asked {
            Ok(exchange) => {
                drop(waiter);
                return self.admitted(node, exchange);
            }
            Err(shortage) => shortage,
        };
        let cause = match (shortage.cause, self.mutant) {
            (Cause::Lacking, Some(Mutant::RefusesOnLocalMiss)) => Cause::Refused {
                kind: Refusal::Spent,
                retry_in_us: 0,
                left: 0,
                resets_in_us: None,
            },
            (cause, _) => cause,
        };
        match cause {
            Cause::Lacking => {
                self.wait(node, plan, waiter, shortage);
                self.after(node);
                Ok(())
            }
            Cause::Refused { kind, .. } => {
                drop(waiter);
                self.after(node);
                let need = needs[shortage.need].amount;
                self.refused(node, &plan, shortage.need, need, kind, is_over)
            }
            Cause::TooFast { .. } => {
                drop(waiter);
                self.truth.tally.too_fast += 1;
                self.after(node);
                Ok(())
            }
            Cause::Unavailable => {
                drop(waiter);
                self.truth.tally.unavailable += 1;
                self.after(node);
                Ok(())
            }
        }
    }

    fn wait(&mut self, node: usize, plan: Plan, waiter: Option<Waiter>, shortage: Shortage) {
        let now_us = self.now_us;
        let life = self.nodes[node].life;
        let limits = &self.scenario.limits;
        let Some(process) = &mut self.nodes[node].process else {
            return;
        };
        let number = plan.number;
        let need = plan.needs(limits, process).swap_remove(shortage.need);
        let is_new = waiter.is_none();
        let deadline_us = waiter
            .as_ref()
            .map_or(now_us + EDGE_WAIT_US, |it| it.deadline_us);
        let place = match waiter {
            Some(waiter) if waiter.at == shortage.need => {
                waiter.place.again(need.amount);
                waiter.place
            }
            other => {
                drop(other);
                let waker = process.waker(number);
                let Ok(place) = need.account.wait(need.amount, waker) else {
                    self.truth.tally.reserved += 1;
                    return;
                };
                place
            }
        };
        let patience_us = plan.patience_us;
        let at = shortage.need;
        process.waiters.insert(
            number,
            Waiter {
                plan,
                place,
                account: need.account,
                at,
                deadline_us,
            },
        );
        if is_new {
            self.truth.tally.waited += 1;
            let turn = Turn::Deadline;
            self.at(
                deadline_us,
                Event::Worker {
                    node,
                    life,
                    number,
                    turn,
                },
            );
            if patience_us < EDGE_WAIT_US {
                let turn = Turn::Gone;
                self.at(
                    now_us + patience_us,
                    Event::Worker {
                        node,
                        life,
                        number,
                        turn,
                    },
                );
            }
        }
    }

    /// A worker turns to something.
    pub(super) fn work(&mut self, node: usize, number: u64, turn: Turn) -> Checked {
        let Some(process) = &mut self.nodes[node].process else {
            return Ok(());
        };
        if turn == Turn::Frame {
            return self.frame(node, number);
        }
        let Some(waiter) = process.waiters.remove(&number) else {
            if turn == Turn::Woken {
                self.woke_the_gone(node, number);
            }
            return Ok(());
        };
        if turn == Turn::Gone {
            self.truth.tally.gone += 1;
            if self.mutant == Some(Mutant::ReservesForTheGone) {
                self.nodes[node].gone.insert(number, waiter.plan.clone());
                let life = self.nodes[node].life;
                let turn = Turn::Woken;
                self.soon(
                    S,
                    Event::Worker {
                        node,
                        life,
                        number,
                        turn,
                    },
                );
            }
            drop(waiter);
            self.after(node);
            return Ok(());
        }
        let is_over = turn == Turn::Deadline;
        self.ask(node, waiter.plan.clone(), Some(waiter), is_over)
    }

    /// Nobody is there any more. Only a mutant reserves for them.
    fn woke_the_gone(&mut self, node: usize, number: u64) {
        let now = self.moment(node);
        let limits = &self.scenario.limits;
        let place = &mut self.nodes[node];
        if let (Some(plan), Some(process)) = (place.gone.remove(&number), &mut place.process)
            && let Ok(exchange) = Exchange::admit(&plan, limits, process, now, false)
        {
            std::mem::forget(exchange);
        }
    }

    fn admitted(&mut self, node: usize, mut exchange: Exchange) -> Checked {
        let number = exchange.plan.number;
        let life = self.nodes[node].life;
        let parts: Vec<Part> = exchange.charges().iter().map(Part::of).collect();
        self.truth.tally.admitted += 1;
        let boot = self.nodes[node].process.as_ref().map(Process::id);
        let requests = parts
            .iter()
            .filter(|part| self.scenario.limits[part.limit].unit == Unit::Requests);
        let requests: Vec<Part> = requests.cloned().collect();
        self.truth.exchanges.insert(
            number,
            Fact {
                boot: boot.expect("a process"),
                admitted_at_us: exchange.admitted_at_us,
                parts: parts.clone(),
                used: 0,
                end: FactEnd::Open,
                ledgered_at_us: None,
            },
        );
        for part in requests {
            self.bill(&part, 1)?;
        }
        for part in &parts {
            self.note_obtainable(&part.bucket.limit, &part.bucket.subject, Some(node));
        }
        if self.random.chance(self.scenario.faults.dies_settling) {
            // Admitted, and nothing was sent.
            drop(exchange);
            self.kill(node, false);
            return Ok(());
        }
        let Some(process) = &mut self.nodes[node].process else {
            return Ok(());
        };
        let unbacked = parts.iter().filter(|part| part.epoch == 0);
        for part in unbacked {
            let limit = &self.scenario.limits[part.limit].account;
            let allowance = limit.on_unavailable_allowance.unwrap_or(0);
            exchange
                .outages
                .push(let_through(process, part, allowance)?);
        }
        exchange.send(process);
        let (pause_us, _) = exchange.plan.frames[0];
        process.exchanges.insert(number, exchange);
        self.at(
            self.now_us + pause_us,
            Event::Worker {
                node,
                life,
                number,
                turn: Turn::Frame,
            },
        );
        self.after(node);
        Ok(())
    }

    /// The provider has answered so far.
    fn frame(&mut self, node: usize, number: u64) -> Checked {
        let now = self.moment(node);
        let limits = &self.scenario.limits;
        let life = self.nodes[node].life;
        let Some(process) = &mut self.nodes[node].process else {
            return Ok(());
        };
        let Some(mut exchange) = process.exchanges.remove(&number) else {
            return Ok(());
        };
        match exchange.before_frame(limits, now) {
            Flow::Goes => {
                let tokens = exchange.on_frame();
                let next = exchange.plan.frames.get(exchange.frames_done);
                let pause_us = next.map_or(MS, |(pause_us, _)| *pause_us);
                process.exchanges.insert(number, exchange);
                let turn = Turn::Frame;
                self.at(
                    self.now_us + pause_us,
                    Event::Worker {
                        node,
                        life,
                        number,
                        turn,
                    },
                );
                self.after(node);
                self.produced(number, tokens)
            }
            Flow::Ends => {
                self.settle(node, exchange);
                Ok(())
            }
            Flow::IsCut => {
                self.truth.tally.cut += 1;
                self.settle(node, exchange);
                Ok(())
            }
        }
    }

    fn produced(&mut self, number: u64, tokens: u64) -> Checked {
        let Some(fact) = self.truth.exchanges.get_mut(&number) else {
            return Ok(());
        };
        fact.used += tokens;
        let limits = &self.scenario.limits;
        let money = fact
            .parts
            .iter()
            .filter(|part| limits[part.limit].unit == Unit::Money);
        let money: Vec<Part> = money.cloned().collect();
        money.iter().try_for_each(|part| self.bill(part, tokens))
    }

    fn settle(&mut self, node: usize, exchange: Exchange) {
        let number = exchange.plan.number;
        let dies = match self.random.chance(self.scenario.faults.dies_settling) {
            false => Dies::Not,
            true if self.random.chance(500) => Dies::BeforeAppend,
            true => Dies::BeforeFree,
        };
        let limits = &self.scenario.limits;
        let Some(process) = &mut self.nodes[node].process else {
            return;
        };
        let outages = exchange.outages.clone();
        let (charges, is_lost) = exchange.settle(limits, process, dies, self.mutant);
        for charged in &charges {
            let name = LeaseName {
                limit: charged.limit.clone(),
                subject: charged.subject.clone(),
                window_start_s: charged.window_start_s,
                epoch: charged.epoch,
            };
            if let Some(seen) = process.leases.get_mut(&name) {
                seen.settled += charged.settled;
            }
        }
        let unbacked = charges.iter().filter(|charged| charged.epoch == 0);
        for (charged, outage) in unbacked.zip(outages) {
            let back = charged.reserved.saturating_sub(charged.settled);
            let (limit, subject) = (&charged.limit, &charged.subject);
            process.outages.take(limit, subject, outage, 0, back);
        }
        if self.mutant == Some(Mutant::RefillsNewEpoch) {
            refill(process, &charges);
        }
        if let Some(fact) = self.truth.exchanges.get_mut(&number)
            && dies != Dies::BeforeAppend
        {
            fact.parts = charges.iter().map(Part::of).collect();
            fact.end = if is_lost {
                FactEnd::Unwritten
            } else {
                FactEnd::Settled
            };
        }
        if dies != Dies::Not {
            self.kill(node, false);
            return;
        }
        self.poll_soon(node);
        self.after(node);
    }
}

/// 3: what an outage lets through is within its allowance. The outage.
fn let_through(process: &mut Process, part: &Part, allowance: u64) -> Result<Outage, Violation> {
    let (limit, subject) = (&part.bucket.limit, &part.bucket.subject);
    let outages = &mut process.outages;
    let outage = outages.present(limit, subject);
    let used = outages.take(limit, subject, outage, part.reserved, 0);
    if used > allowance {
        violated(3, format!("{used} of {allowance} let through: {part:?}"))?;
    }
    Ok(outage)
}

/// What was not used of an epoch that is over goes to the present one as well.
fn refill(process: &Process, charges: &[filter_core::credit::Charged]) {
    for charged in charges {
        let back = charged.reserved.saturating_sub(charged.settled);
        for (name, Seen { lease, .. }) in &process.leases {
            let is_same = (&name.limit, &name.subject) == (&charged.limit, &charged.subject);
            if is_same && name.epoch > charged.epoch {
                lease.raise(lease.granted() + back, lease.returned());
            }
        }
    }
}
