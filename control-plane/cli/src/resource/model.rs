//! Models: public names and what answers them.

use std::fmt;
use std::str::FromStr;

use proto::admin::v1 as pb;
use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

use super::{
    Capability, Collection, Effort, Kind, Page, Status, Stored, id_of, joined, name_of, same_set,
    yes,
};
use crate::failure::CallError;
use crate::link::Link;
use crate::moment::Moment;
use crate::secret::Secret;
use crate::table::Column;

const PREFIX: &str = "models/";

#[derive(Debug)]
pub(crate) enum Model {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ModelSpec {
    /// Tried in this order.
    pub(crate) targets: Vec<TargetSpec>,
    #[serde(default)]
    pub(crate) capabilities: Vec<Capability>,
    /// Empty: all.
    #[serde(default)]
    pub(crate) efforts: Vec<Effort>,
    /// Tokens of input and output together; 0: unknown.
    #[serde(default)]
    pub(crate) context_window: u64,
    #[serde(default)]
    pub(crate) disabled: bool,
}

/// A provider and the model's name there; `provider[:upstream-model]` as a flag.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TargetSpec {
    pub(crate) provider: String,
    /// Empty: the public name.
    #[serde(default)]
    pub(crate) upstream_model: String,
    /// 0: the default of 120,000.
    #[serde(default)]
    pub(crate) first_token_timeout_ms: u32,
}

impl Collection for Model {
    type Spec = ModelSpec;
    const KIND: Kind = Kind::Model;
    const COLUMNS: &'static [Column] = &[
        Column::text("ID"),
        Column::text("TARGETS"),
        Column::text("CAPABILITIES"),
        Column::text("EFFORTS"),
        Column::number("CONTEXT"),
        Column::text("DISABLED"),
    ];

    fn row(stored: &Stored<ModelSpec>) -> Vec<String> {
        let Stored { id, spec, .. } = stored;
        let efforts = match spec.efforts.as_slice() {
            [] => "all".to_owned(),
            efforts => joined(efforts),
        };
        let context = match spec.context_window {
            0 => String::new(),
            tokens => tokens.to_string(),
        };
        vec![
            id.clone(),
            joined(&spec.targets),
            joined(&spec.capabilities),
            efforts,
            context,
            yes(spec.disabled),
        ]
    }

    async fn create(
        link: &Link,
        id: &str,
        spec: &ModelSpec,
        _secret: Option<&Secret>,
    ) -> Result<(Stored<ModelSpec>, Option<Secret>), CallError> {
        let request = pb::CreateModelRequest {
            model_id: id.to_owned(),
            model: Some(encode("", spec)),
        };
        let model = link.models().create_model(request).await?.into_inner();
        Ok((decode(model)?, None))
    }

    async fn get(link: &Link, id: &str) -> Result<Stored<ModelSpec>, CallError> {
        let name = name_of(PREFIX, id);
        let model = link
            .models()
            .get_model(pb::GetModelRequest { name })
            .await?;
        decode(model.into_inner())
    }

    async fn list(
        link: &Link,
        _owner: &str,
        page_size: i32,
        page_token: String,
    ) -> Result<Page<ModelSpec>, CallError> {
        let request = pb::ListModelsRequest {
            page_size,
            page_token,
        };
        let page = link.models().list_models(request).await?.into_inner();
        let models: Result<_, _> = page.models.into_iter().map(decode).collect();
        Ok((models?, page.next_page_token))
    }

    async fn update(
        link: &Link,
        id: &str,
        spec: &ModelSpec,
        _secret: Option<&Secret>,
    ) -> Result<Stored<ModelSpec>, CallError> {
        let request = pb::UpdateModelRequest {
            model: Some(encode(id, spec)),
            update_mask: None,
        };
        decode(link.models().update_model(request).await?.into_inner())
    }

    async fn delete(link: &Link, id: &str) -> Result<u64, CallError> {
        let name = name_of(PREFIX, id);
        let answer = link
            .models()
            .delete_model(pb::DeleteModelRequest { name })
            .await?;
        Ok(answer.into_inner().config_version)
    }

    fn is_same(stored: &ModelSpec, wanted: &ModelSpec) -> bool {
        let aligned = ModelSpec {
            capabilities: wanted.capabilities.clone(),
            efforts: wanted.efforts.clone(),
            ..stored.clone()
        };
        aligned == *wanted
            && same_set(&stored.capabilities, &wanted.capabilities)
            && same_set(&stored.efforts, &wanted.efforts)
    }
}

// === impl TargetSpec ===

impl FromStr for TargetSpec {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A provider id has no colon, an upstream model may have some.
        let (provider, upstream_model) = match text.split_once(':') {
            None => (text, ""),
            Some((_, "")) => return Err("the model after the colon is missing"),
            Some(parts) => parts,
        };
        if provider.is_empty() {
            return Err("write PROVIDER or PROVIDER:UPSTREAM_MODEL");
        }
        Ok(Self {
            provider: provider.to_owned(),
            upstream_model: upstream_model.to_owned(),
            first_token_timeout_ms: 0,
        })
    }
}

impl fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.upstream_model.as_str() {
            "" => f.write_str(&self.provider),
            model => write!(f, "{}:{model}", self.provider),
        }
    }
}

fn encode(id: &str, spec: &ModelSpec) -> pb::Model {
    let target = |target: &TargetSpec| config::Target {
        provider: target.provider.clone(),
        upstream_model: target.upstream_model.clone(),
        first_token_timeout_ms: target.first_token_timeout_ms,
    };
    pb::Model {
        name: name_of(PREFIX, id),
        targets: spec.targets.iter().map(target).collect(),
        capabilities: spec.capabilities.iter().map(|one| one.to_wire()).collect(),
        efforts: spec.efforts.iter().map(|one| one.to_wire()).collect(),
        context_window: spec.context_window,
        disabled: spec.disabled,
        ..Default::default()
    }
}

fn decode(model: pb::Model) -> Result<Stored<ModelSpec>, CallError> {
    let target = |target: config::Target| TargetSpec {
        provider: target.provider,
        upstream_model: target.upstream_model,
        first_token_timeout_ms: target.first_token_timeout_ms,
    };
    let capabilities: Result<_, _> = model
        .capabilities
        .into_iter()
        .map(Capability::from_wire)
        .collect();
    let efforts: Result<_, _> = model.efforts.into_iter().map(Effort::from_wire).collect();
    Ok(Stored {
        id: id_of(&model.name, PREFIX),
        status: Status {
            config_version: model.config_version,
            create_time: Moment::from_wire(model.create_time.as_ref()),
            update_time: Moment::from_wire(model.update_time.as_ref()),
            ..Default::default()
        },
        spec: ModelSpec {
            targets: model.targets.into_iter().map(target).collect(),
            capabilities: capabilities?,
            efforts: efforts?,
            context_window: model.context_window,
            disabled: model.disabled,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_flag_splits_at_its_first_colon() {
        let target: TargetSpec = "ollama:llama3:8b".parse().unwrap();
        assert_eq!(
            (target.provider.as_str(), target.upstream_model.as_str()),
            ("ollama", "llama3:8b")
        );
        assert_eq!(target.to_string(), "ollama:llama3:8b");
        assert_eq!(
            "openai".parse::<TargetSpec>().unwrap().to_string(),
            "openai"
        );
        for text in ["", ":gpt", "openai:"] {
            assert!(text.parse::<TargetSpec>().is_err(), "{text}");
        }
    }
}
