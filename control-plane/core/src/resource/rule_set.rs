//! The rules that choose models, replaced as a whole.

use std::collections::{BTreeMap, BTreeSet};

use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

use super::Effort;
use crate::fault::{Fault, Faults};

/// The rule set as edited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuleSet {
    pub rules: Vec<Rule>,
}

/// One rule; see `turnpike.config.v1.Rule` for what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub name: String,
    #[serde(default)]
    pub priority: i32,
    #[serde(default)]
    pub disabled: bool,
    #[serde(default)]
    pub efforts: Vec<Effort>,
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
    #[serde(default)]
    pub match_model: String,
    pub models: Vec<String>,
    #[serde(default)]
    pub max_attempts: u32,
    #[serde(default)]
    pub context_length_models: Vec<String>,
    #[serde(default)]
    pub content_policy_models: Vec<String>,
    #[serde(default)]
    pub context_length_patterns: Vec<String>,
}

/// Most rules in a set.
const MAX_RULES: usize = 1000;

impl RuleSet {
    /// Checks what can be judged without the rest of the config.
    ///
    /// # Errors
    /// All faults at once.
    pub fn validate(&self) -> Result<(), Vec<Fault>> {
        let mut faults = Faults::default();
        faults.require(
            self.rules.len() <= MAX_RULES,
            "rules",
            "must have at most 1000 entries",
        );
        let mut names = BTreeSet::new();
        for (position, rule) in self.rules.iter().enumerate() {
            let place = format!("rules[{position}]");
            if !names.insert(&rule.name) {
                faults.push(format!("{place}.name"), "must be unique in the set");
            }
            rule.validate(&place, &mut faults);
        }
        faults.into_result()
    }

    /// The form nodes are sent.
    pub fn to_config(&self) -> config::RuleSet {
        config::RuleSet {
            rules: self.rules.iter().map(Rule::to_config).collect(),
        }
    }

    /// From the wire form.
    ///
    /// # Errors
    /// Efforts that are not known, each with its place.
    pub fn from_config(rules: Vec<config::Rule>) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::default();
        let rules = rules
            .into_iter()
            .enumerate()
            .map(|(position, rule)| Rule::from_config(rule, position, &mut faults))
            .collect();
        faults.into_result().map(|()| Self { rules })
    }
}

impl Rule {
    fn validate(&self, place: &str, faults: &mut Faults) {
        faults.require(
            (1..=64).contains(&self.name.chars().count())
                && !self.name.chars().any(char::is_control),
            &format!("{place}.name"),
            "must be 1-64 characters without controls",
        );
        faults.require(
            !self.models.is_empty(),
            &format!("{place}.models"),
            "must name at least one model",
        );
        faults.require(
            self.max_attempts <= 10,
            &format!("{place}.max_attempts"),
            "must be at most 10",
        );
        let is_pattern = |text: &String| (4..=256).contains(&text.len()) && !text.contains('\0');
        faults.require(
            self.context_length_patterns.len() <= 16
                && self.context_length_patterns.iter().all(is_pattern),
            &format!("{place}.context_length_patterns"),
            "must be at most 16 of 4-256 bytes, without NUL",
        );
        for (name, value) in &self.attributes {
            // Postgres keeps no NUL in JSON.
            faults.require(
                !name.is_empty() && !name.contains('\0') && !value.contains('\0'),
                &format!("{place}.attributes"),
                "must have names, and no NUL in names or values",
            );
        }
    }

    /// The wire form.
    pub fn to_config(&self) -> config::Rule {
        config::Rule {
            name: self.name.clone(),
            priority: self.priority,
            disabled: self.disabled,
            efforts: self.efforts.iter().map(|e| e.to_wire()).collect(),
            attributes: self.attributes.clone(),
            match_model: self.match_model.clone(),
            models: self.models.clone(),
            max_attempts: self.max_attempts,
            context_length_models: self.context_length_models.clone(),
            content_policy_models: self.content_policy_models.clone(),
            context_length_patterns: self.context_length_patterns.clone(),
        }
    }

    fn from_config(rule: config::Rule, position: usize, faults: &mut Faults) -> Self {
        let mut efforts = Vec::with_capacity(rule.efforts.len());
        for (index, number) in rule.efforts.iter().enumerate() {
            match Effort::from_wire(*number) {
                Some(effort) => efforts.push(effort),
                None => faults.push(
                    format!("rules[{position}].efforts[{index}]"),
                    "must be low, medium or high",
                ),
            }
        }
        Self {
            name: rule.name,
            priority: rule.priority,
            disabled: rule.disabled,
            efforts,
            attributes: rule.attributes,
            match_model: rule.match_model,
            models: rule.models,
            max_attempts: rule.max_attempts,
            context_length_models: rule.context_length_models,
            content_policy_models: rule.content_policy_models,
            context_length_patterns: rule.context_length_patterns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_a_rule_set_has_its_place() {
        let rule = |name: &str, models: &[&str]| Rule {
            name: name.into(),
            priority: 0,
            disabled: false,
            efforts: vec![],
            attributes: BTreeMap::new(),
            match_model: String::new(),
            models: models.iter().map(|m| (*m).to_owned()).collect(),
            max_attempts: 11,
            context_length_models: vec![],
            content_policy_models: vec![],
            context_length_patterns: vec![],
        };
        let set = RuleSet {
            rules: vec![rule("a", &["m"]), rule("a", &[])],
        };
        let fields: Vec<_> = set
            .validate()
            .unwrap_err()
            .into_iter()
            .map(|f| f.field)
            .collect();
        assert_eq!(
            fields,
            [
                "rules[0].max_attempts",
                "rules[1].name",
                "rules[1].models",
                "rules[1].max_attempts"
            ]
        );
    }

    #[test]
    fn an_effort_that_is_not_known_is_named() {
        let wrong = config::Rule {
            efforts: vec![1, 0, 9],
            ..Default::default()
        };
        let fields: Vec<_> = RuleSet::from_config(vec![wrong])
            .unwrap_err()
            .into_iter()
            .map(|f| f.field)
            .collect();
        assert_eq!(fields, ["rules[0].efforts[1]", "rules[0].efforts[2]"]);
    }

    #[test]
    fn a_rule_survives_json_and_the_wire() {
        let json =
            r#"{"name":"fast","efforts":["low"],"attributes":{"tier":"free"},"models":["m"]}"#;
        let rule: Rule = serde_json::from_str(json).unwrap();
        let again = RuleSet::from_config(vec![rule.to_config()]).unwrap();
        assert_eq!(again.rules, std::slice::from_ref(&rule));
        assert_eq!(
            serde_json::from_value::<Rule>(serde_json::to_value(&rule).unwrap()).unwrap(),
            rule
        );
    }
}
