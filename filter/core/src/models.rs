//! The lists of models, and single ones: what a key may use, in the client's shape.

use filter_llm::api::Dialect;
use filter_llm::models::{self, ModelEntry};

use crate::authenticate::Caller;
use crate::config::Compiled;
use crate::config::models::Model;
use crate::error::Refusal;
use crate::text;

/// Every model that the caller may use, by name.
pub(crate) fn list(config: &Compiled, caller: Caller, dialect: Dialect) -> Vec<u8> {
    let usable = config
        .models
        .iter()
        .filter(|model| !model.disabled && caller.may_use(config, &model.id));
    models::list(dialect, usable.map(|model| entry(config, model)))
}

/// One model; refused as a request that names it would be.
pub(crate) fn retrieve(
    config: &Compiled,
    caller: Caller,
    dialect: Dialect,
    id: &str,
) -> Result<Vec<u8>, Refusal> {
    let shown = || text::cut(id).to_owned();
    if !caller.may_use(config, id) {
        return Err(Refusal::ModelNotAllowed { model: shown() });
    }
    let model = config
        .model_index(id)
        .and_then(|index| config.models.get(index));
    match model {
        Some(model) if !model.disabled => Ok(models::retrieve(dialect, &entry(config, model))),
        _ => Err(Refusal::ModelNotFound { model: shown() }),
    }
}

fn entry<'a>(config: &'a Compiled, model: &'a Model) -> ModelEntry<'a> {
    let provider = model
        .targets
        .first()
        .and_then(|target| config.providers.get(target.provider));
    ModelEntry {
        id: &model.id,
        created_s: model.created_at_s,
        owned_by: provider.map_or("", |provider| &*provider.id),
    }
}
