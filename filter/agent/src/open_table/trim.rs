//! Makes a record small enough for a slot. What tells whose it is and what it cost stays.

use proto::metering::v1::{Attempt, UsageRecord};

/// Of each text that is cut.
const CUT_BYTES: usize = 64;

/// What can be left out, the least missed first.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trim {
    Nothing,
    Attributes,
    Words,
}

impl Trim {
    pub(super) const STEPS: [Self; 3] = [Self::Nothing, Self::Attributes, Self::Words];

    pub(super) fn record(self, record: &mut UsageRecord) {
        let decision = record.decision.as_mut();
        match self {
            Self::Nothing => {}
            Self::Attributes => {
                if let Some(decision) = decision {
                    decision.attributes.clear();
                }
            }
            Self::Words => {
                if let Some(decision) = decision {
                    cut(&mut decision.action_id);
                    cut(&mut decision.model_asked);
                    cut(&mut decision.rule);
                }
                if let Some(caller) = &mut record.caller {
                    cut(&mut caller.end_user);
                }
                cut(&mut record.request_id);
            }
        }
    }

    pub(super) fn attempt(self, attempt: &mut Attempt) {
        if matches!(self, Self::Words) {
            cut(&mut attempt.model);
            cut(&mut attempt.upstream_model);
        }
    }
}

fn cut(text: &mut String) {
    text.truncate(text.floor_char_boundary(CUT_BYTES));
}
