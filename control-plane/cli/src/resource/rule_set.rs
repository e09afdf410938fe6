//! The rule set: which models answer which requests.

use std::collections::BTreeMap;

use proto::admin::v1 as pb;
use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

use super::{Effort, Kind, Singleton, Status, Stored, joined, yes};
use crate::failure::CallError;
use crate::link::Link;
use crate::moment::Moment;
use crate::table::{Column, Table};

#[derive(Debug)]
pub(crate) enum RuleSet {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RuleSetSpec {
    pub(crate) rules: Vec<RuleSpec>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RuleSpec {
    pub(crate) name: String,
    /// Highest first, then position.
    #[serde(default)]
    pub(crate) priority: i32,
    #[serde(default)]
    pub(crate) disabled: bool,
    /// Empty: all.
    #[serde(default)]
    pub(crate) efforts: Vec<Effort>,
    /// Each must equal the request's attribute. Empty: a catch-all.
    #[serde(default)]
    pub(crate) attributes: BTreeMap<String, String>,
    /// Set: for requests that name this public model, and not for `auto`.
    #[serde(default)]
    pub(crate) match_model: String,
    /// Tried in this order.
    pub(crate) models: Vec<String>,
    /// 1-10; 0: the default of 3.
    #[serde(default)]
    pub(crate) max_attempts: u32,
    /// Tried when a provider says that the prompt does not fit its model.
    #[serde(default)]
    pub(crate) context_length_models: Vec<String>,
    /// Tried when a provider refuses the content by its policy.
    #[serde(default)]
    pub(crate) content_policy_models: Vec<String>,
    /// Words by which a provider tells that the prompt does not fit.
    #[serde(default)]
    pub(crate) context_length_patterns: Vec<String>,
}

impl Singleton for RuleSet {
    type Spec = RuleSetSpec;
    const KIND: Kind = Kind::RuleSet;

    fn table(stored: &Stored<RuleSetSpec>) -> Table {
        let mut table = Table::new(&[
            Column::text("RULE"),
            Column::number("PRIORITY"),
            Column::text("MATCHES"),
            Column::text("EFFORTS"),
            Column::text("MODELS"),
            Column::number("ATTEMPTS"),
            Column::text("DISABLED"),
        ]);
        for rule in &stored.spec.rules {
            table.push(row(rule));
        }
        table
    }

    async fn get(link: &Link) -> Result<Stored<RuleSetSpec>, CallError> {
        let answer = link
            .rule_sets()
            .get_rule_set(pb::GetRuleSetRequest {})
            .await?;
        decode(answer.into_inner())
    }

    async fn replace(link: &Link, spec: &RuleSetSpec) -> Result<Stored<RuleSetSpec>, CallError> {
        let request = pb::UpdateRuleSetRequest {
            rule_set: Some(pb::RuleSet {
                name: "ruleSet".to_owned(),
                rules: spec.rules.iter().map(encode).collect(),
                ..Default::default()
            }),
        };
        decode(
            link.rule_sets()
                .update_rule_set(request)
                .await?
                .into_inner(),
        )
    }

    fn is_same(stored: &RuleSetSpec, wanted: &RuleSetSpec) -> bool {
        let sorted = |spec: &RuleSetSpec| {
            let mut spec = spec.clone();
            for rule in &mut spec.rules {
                rule.efforts.sort();
                rule.efforts.dedup();
            }
            spec
        };
        sorted(stored) == sorted(wanted)
    }
}

fn row(rule: &RuleSpec) -> Vec<String> {
    let mut matches: Vec<String> = rule
        .attributes
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let asked = match rule.match_model.as_str() {
        "" => "auto",
        model => model,
    };
    matches.insert(0, asked.to_owned());
    vec![
        rule.name.clone(),
        rule.priority.to_string(),
        matches.join(" "),
        match rule.efforts.as_slice() {
            [] => "all".to_owned(),
            efforts => joined(efforts),
        },
        joined(&rule.models),
        match rule.max_attempts {
            0 => "3".to_owned(),
            attempts => attempts.to_string(),
        },
        yes(rule.disabled),
    ]
}

fn encode(rule: &RuleSpec) -> config::Rule {
    config::Rule {
        name: rule.name.clone(),
        priority: rule.priority,
        disabled: rule.disabled,
        efforts: rule.efforts.iter().map(|effort| effort.to_wire()).collect(),
        attributes: rule.attributes.clone().into_iter().collect(),
        match_model: rule.match_model.clone(),
        models: rule.models.clone(),
        max_attempts: rule.max_attempts,
        context_length_models: rule.context_length_models.clone(),
        content_policy_models: rule.content_policy_models.clone(),
        context_length_patterns: rule.context_length_patterns.clone(),
    }
}

fn decode(rule_set: pb::RuleSet) -> Result<Stored<RuleSetSpec>, CallError> {
    let rules: Result<_, _> = rule_set.rules.into_iter().map(decode_rule).collect();
    Ok(Stored {
        id: String::new(),
        status: Status {
            config_version: rule_set.config_version,
            update_time: Moment::from_wire(rule_set.update_time.as_ref()),
            ..Default::default()
        },
        spec: RuleSetSpec { rules: rules? },
    })
}

fn decode_rule(rule: config::Rule) -> Result<RuleSpec, CallError> {
    let efforts: Result<_, _> = rule.efforts.into_iter().map(Effort::from_wire).collect();
    Ok(RuleSpec {
        name: rule.name,
        priority: rule.priority,
        disabled: rule.disabled,
        efforts: efforts?,
        attributes: rule.attributes.into_iter().collect(),
        match_model: rule.match_model,
        models: rule.models,
        max_attempts: rule.max_attempts,
        context_length_models: rule.context_length_models,
        content_policy_models: rule.content_policy_models,
        context_length_patterns: rule.context_length_patterns,
    })
}
