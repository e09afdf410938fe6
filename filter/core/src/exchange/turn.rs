//! ② What a provider says of the request itself, rather than of its own state: that the prompt is
//! too long for its model, or that a policy refuses the content. Another target may still answer.

use super::Exchange;
use crate::attempt::Attempt;
use crate::host::HeaderSink;
use crate::route::{After, Planned};

/// What a provider said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The prompt does not fit the target of `by`, whose context window is so many tokens; 0: it is
    /// not known.
    ContextLength {
        window: u64,
        by: Planned,
    },
    ContentPolicy,
}

/// A status that the router retries.
const RETRIED: &[u8] = b"503";

impl Exchange {
    /// What an attempt's answer says of the request; `None`: nothing that is known here.
    pub(super) fn turn_by(&self, attempt: &Attempt) -> Option<Turn> {
        let error = attempt.answer.request_error()?;
        let rule = self.admitted.as_ref()?.route.rule;
        let rule = rule.and_then(|rule| self.config.rules.rule(rule));
        let patterns = rule.map_or(&[][..], |rule| &rule.context_length_patterns);
        if error.is_context_length() || error.says(patterns) {
            let window = self.window_of(attempt.planned);
            return Some(Turn::ContextLength {
                window,
                by: attempt.planned,
            });
        }
        error.is_content_policy().then_some(Turn::ContentPolicy)
    }

    /// Whether a planned attempt may follow, after what was said of the request.
    pub(super) fn is_due(&self, planned: Planned, turned: Option<Turn>) -> bool {
        match (turned, planned.after) {
            (None, after) => after == After::Failure,
            (Some(Turn::ContextLength { window, by }), After::Failure | After::ContextLength) => {
                let own = self.window_of(planned);
                let is_other = (planned.model, planned.target) != (by.model, by.target);
                is_other && (own == 0 || own > window)
            }
            (Some(Turn::ContentPolicy), after) => after == After::ContentPolicy,
            (Some(Turn::ContextLength { .. }), After::ContentPolicy) => false,
        }
    }

    /// Has the router try another target, if one is left that may answer what this one refused.
    pub(super) fn turn_head(&self, attempt: &Attempt, sink: &mut dyn HeaderSink) {
        let Some(turn) = self.turn_by(attempt) else {
            return;
        };
        let plan = self
            .admitted
            .iter()
            .flat_map(|admitted| &admitted.route.plan);
        let mut left = plan.skip(self.next_planned);
        if left.any(|planned| self.is_due(*planned, Some(turn))) {
            sink.set(":status", RETRIED);
        }
    }

    fn window_of(&self, planned: Planned) -> u64 {
        let model = self.config.models.get(planned.model);
        model.map_or(0, |model| model.context_window)
    }
}
