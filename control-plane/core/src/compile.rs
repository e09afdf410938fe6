//! Whether a config may be published: the nodes' own compiler says.

use filter_core::config::{self, Resources};
use prost::DecodeError;

use crate::fault::Fault;
use crate::published::Kind;

/// The resources that are compiled before they are published.
#[derive(Clone, Debug, Default)]
pub struct Structure(Resources);

impl Structure {
    /// Puts an encoded resource in, or takes it out (`None`). Kinds that are not structural are
    /// left out.
    ///
    /// # Errors
    /// When the bytes are no message of the kind.
    pub fn set(&mut self, kind: Kind, id: &str, body: Option<&[u8]>) -> Result<(), DecodeError> {
        let resources = &mut self.0;
        let id = id.to_owned();
        match (kind, body) {
            (Kind::Provider, Some(body)) => {
                resources.providers.insert(id, decode(body)?);
            }
            (Kind::Provider, None) => {
                resources.providers.remove(&id);
            }
            (Kind::Model, Some(body)) => {
                resources.models.insert(id, decode(body)?);
            }
            (Kind::Model, None) => {
                resources.models.remove(&id);
            }
            (Kind::Limit, Some(body)) => {
                resources.limits.insert(id, decode(body)?);
            }
            (Kind::Limit, None) => {
                resources.limits.remove(&id);
            }
            (Kind::RuleSet, body) => resources.rule_set = body.map(decode).transpose()?,
            (Kind::PriceBook, body) => resources.price_book = body.map(decode).transpose()?,
            (Kind::Settings, body) => resources.settings = body.map(decode).transpose()?,
            (Kind::Team | Kind::VirtualKey | Kind::Credential | Kind::Checkpoint, _) => {}
        }
        Ok(())
    }

    /// Whether the next config may replace this one. What nodes leave out of this one already is
    /// not held against the next, but for the resource that is edited.
    ///
    /// # Errors
    /// Every fault that counts. Those of `edited` are named by their field alone, others with
    /// their resource.
    pub fn check_next(&self, next: &Self, edited: Option<(Kind, &str)>) -> Result<(), Vec<Fault>> {
        let known = faults_of(self);
        let counting: Vec<_> = faults_of(next)
            .into_iter()
            .filter(|fault| is_of(fault, edited) || !known.contains(fault))
            .map(|fault| place(fault, edited))
            .collect();
        if counting.is_empty() {
            Ok(())
        } else {
            Err(counting)
        }
    }
}

/// The one call of the nodes' compiler. Teams and keys are not among what is compiled here, since
/// there may be many: whoever stores a limit sees to it that its subject is there.
fn faults_of(structure: &Structure) -> Vec<config::Fault> {
    let mut faults = config::compile(&structure.0).1;
    faults.retain(|fault| fault.kind != Kind::Limit || fault.place != "subject_id");
    faults
}

fn is_of(fault: &config::Fault, edited: Option<(Kind, &str)>) -> bool {
    edited == Some((fault.kind, fault.name.as_str()))
}

fn place(fault: config::Fault, edited: Option<(Kind, &str)>) -> Fault {
    if is_of(&fault, edited) && !fault.place.is_empty() {
        // What nodes are sent of a limit is one field of the resource.
        return match fault.kind {
            Kind::Limit => Fault::new(format!("values.{}", fault.place), fault.reason),
            _ => Fault::new(fault.place, fault.reason),
        };
    }
    let resource = format!("{} {}", fault.kind.word(), fault.name);
    if fault.place.is_empty() {
        Fault::new(resource, fault.reason)
    } else {
        Fault::new(format!("{resource}: {}", fault.place), fault.reason)
    }
}

fn decode<M: prost::Message + Default>(body: &[u8]) -> Result<M, DecodeError> {
    M::decode(body)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use proto::config::v1::{Model, Rule, RuleSet};

    use super::*;

    fn rules(model: &str) -> Vec<u8> {
        let rule = Rule {
            name: "all".into(),
            models: vec![model.into()],
            ..Default::default()
        };
        RuleSet { rules: vec![rule] }.encode_to_vec()
    }

    #[test]
    fn a_rule_that_names_no_model_is_refused_at_its_place() {
        let before = Structure::default();
        let mut next = before.clone();
        next.set(Kind::RuleSet, "default", Some(&rules("ghost")))
            .unwrap();
        let faults = before
            .check_next(&next, Some((Kind::RuleSet, "default")))
            .unwrap_err();
        assert!(
            faults
                .iter()
                .any(|fault| fault.field == "rules[0].models[0]"),
            "{faults:?}"
        );
        let others = before.check_next(&next, None).unwrap_err();
        assert!(
            others
                .iter()
                .all(|fault| fault.field.starts_with("rule_set default")),
            "{others:?}"
        );
    }

    #[test]
    fn a_limit_may_name_a_team_that_is_not_compiled_here() {
        let before = Structure::default();
        let mut next = before.clone();
        let mut limit = proto::config::v1::Limit {
            id: "l".into(),
            subject: proto::config::v1::LimitSubject::Team.into(),
            subject_id: "blue".into(),
            unit: proto::config::v1::LimitUnit::Requests.into(),
            amount: 1,
            window: proto::config::v1::LimitWindow::Day.into(),
            ..Default::default()
        };
        let edited = Some((Kind::Limit, "l"));
        next.set(Kind::Limit, "l", Some(&limit.encode_to_vec()))
            .unwrap();
        assert_eq!(before.check_next(&next, edited), Ok(()));
        limit.rules = vec!["ghost".into()];
        next.set(Kind::Limit, "l", Some(&limit.encode_to_vec()))
            .unwrap();
        let faults = before.check_next(&next, edited).unwrap_err();
        assert_eq!(faults[0].field, "values.rules[0]");
    }

    #[test]
    fn what_was_at_fault_before_does_not_stop_other_changes() {
        let mut before = Structure::default();
        before
            .set(Kind::RuleSet, "default", Some(&rules("ghost")))
            .unwrap();
        assert_eq!(before.check_next(&before.clone(), None), Ok(()));
        let mut next = before.clone();
        let model = Model {
            id: "m".into(),
            ..Default::default()
        };
        next.set(Kind::Model, "m", Some(&model.encode_to_vec()))
            .unwrap();
        assert!(before.check_next(&next, Some((Kind::Model, "m"))).is_err());
    }
}
