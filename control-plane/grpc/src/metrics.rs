//! What the control plane does, in numbers, for Prometheus: documented in `docs/metrics.md`.
//!
//! Every label's values are named here or in the protos: none comes from a request, a config or an
//! operator, so that their number is fixed and none shows a key or a secret. Numbers are those of
//! this replica since it started.

mod rpc;
mod scrape;

use std::sync::Arc;

use control_plane_core::limit::{Answer, DenyKind};
use control_plane_store::Store;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

pub use rpc::{RpcLayer, Timed};

use self::rpc::Rpcs;
use self::scrape::Scrape;
use crate::feed::Feed;
use crate::fleet::Fleet;

const PREFIX: &str = "turnpike_control_plane";

type Outcomes = Family<Outcome, Counter>;

/// What was counted, and where it is read. Clones share it.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    rpcs: Rpcs,
    pushes: Counter,
    push_answers: Outcomes,
    refused_resources: Counter,
    lease_answers: Outcomes,
    recalls: Counter,
    deliveries: Outcomes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

/// What a want of a node was answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseOutcome {
    Granted,
    Denied(DenyKind),
    /// The epoch is over.
    Fenced,
    /// Postgres is away: no verdict.
    Unavailable,
    Failed,
}

impl LeaseOutcome {
    const ALL: [Self; 7] = [
        Self::Granted,
        Self::Denied(DenyKind::Spent),
        Self::Denied(DenyKind::Reserved),
        Self::Denied(DenyKind::NoLimit),
        Self::Fenced,
        Self::Unavailable,
        Self::Failed,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Denied(DenyKind::Spent) => "spent",
            Self::Denied(DenyKind::Reserved) => "reserved",
            Self::Denied(DenyKind::NoLimit) => "no_limit",
            Self::Fenced => "fenced",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
        }
    }
}

impl Metrics {
    pub(crate) fn new(store: Store, fleet: Fleet, feed: Feed) -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        registry.register_collector(Box::new(Scrape { store, fleet, feed }));
        let rpcs = Rpcs::register(&mut registry);
        let mut counters = Counters(&mut registry);
        Self {
            rpcs,
            pushes: counters.one("ads_pushes", "Pushes of config to nodes that were begun"),
            push_answers: counters.outcomes(
                "ads_answers",
                "Pushes that nodes answered: ack, they run the version; nack, they do not",
                &["ack", "nack"],
            ),
            refused_resources: counters.one(
                "ads_refused_resources",
                "Resources that nodes refused, each time they did",
            ),
            lease_answers: counters.outcomes(
                "lease_answers",
                "Answers to the wants of nodes, by what they said",
                &LeaseOutcome::ALL.map(LeaseOutcome::word),
            ),
            recalls: counters.one(
                "lease_recalls",
                "Buckets of which a node was asked to give back idle credit",
            ),
            deliveries: counters.outcomes(
                "webhook_deliveries",
                "Tries to tell the webhook of an event, by outcome",
                &["delivered", "failed"],
            ),
            registry: Arc::new(registry),
        }
    }

    /// The OpenMetrics text of everything.
    ///
    /// # Errors
    /// When it cannot be written, which is a fault of ours.
    pub fn render(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// Times every call that passes through it.
    pub fn rpc_layer(&self) -> RpcLayer {
        RpcLayer::new(self.rpcs.clone())
    }

    /// A webhook was told of an event, or could not be.
    pub fn webhook_told(&self, is_taken: bool) {
        let outcome = if is_taken { "delivered" } else { "failed" };
        self.deliveries.get_or_create(&Outcome { outcome }).inc();
    }

    pub(crate) fn push_begun(&self) {
        self.pushes.inc();
    }

    pub(crate) fn push_answered(&self, is_accepted: bool, refused: usize) {
        let outcome = if is_accepted { "ack" } else { "nack" };
        self.push_answers.get_or_create(&Outcome { outcome }).inc();
        self.refused_resources.inc_by(count(refused));
    }

    pub(crate) fn wants_answered(&self, outcome: LeaseOutcome, wants: usize) {
        let outcome = outcome.word();
        let counter = self.lease_answers.get_or_create_owned(&Outcome { outcome });
        counter.inc_by(count(wants));
    }

    /// One that is denied a part counts as denied.
    pub(crate) fn want_answered(&self, answer: &Answer) {
        let outcome = match &answer.deny {
            Some(deny) => LeaseOutcome::Denied(deny.kind),
            None => LeaseOutcome::Granted,
        };
        self.wants_answered(outcome, 1);
    }

    pub(crate) fn recalled(&self, buckets: usize) {
        self.recalls.inc_by(count(buckets));
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Registers counters as it makes them.
struct Counters<'a>(&'a mut Registry);

impl Counters<'_> {
    fn one(&mut self, name: &str, help: &str) -> Counter {
        let counter = Counter::default();
        self.0.register(name, help, counter.clone());
        counter
    }

    /// Every outcome is there from the start, so that its first one is a rise from 0.
    fn outcomes(&mut self, name: &str, help: &str, outcomes: &[&'static str]) -> Outcomes {
        let family = Outcomes::default();
        for &outcome in outcomes {
            drop(family.get_or_create(&Outcome { outcome }));
        }
        self.0.register(name, help, family.clone());
        family
    }
}
