//! Well-known providers, as data.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde_norway::Value;

use crate::resource::ProviderSpec;

const PRESETS: &str = include_str!("../../data/provider-presets.yaml");
/// Stays in a base URL: the gateway puts the model there.
const MODEL: &str = "{model}";

/// The names of all presets.
pub(super) fn names() -> Vec<String> {
    read()
        .map(|presets| presets.into_keys().collect())
        .unwrap_or_default()
}

/// A preset, with what was given for its placeholders.
///
/// # Errors
/// There is no such preset, or a placeholder is left.
pub(super) fn preset(name: &str, given: &[(String, String)]) -> anyhow::Result<ProviderSpec> {
    let mut presets = read()?;
    let Some(preset) = presets.remove(name) else {
        bail!(
            "there is no preset `{name}`; there are {}",
            names().join(", ")
        );
    };
    let mut text = serde_norway::to_string(&preset)?;
    for (name, value) in given {
        text = text.replace(&format!("{{{name}}}"), value);
    }
    if let Some(missing) = placeholder(&text) {
        bail!("the preset `{name}` wants --set {missing}=VALUE");
    }
    serde_norway::from_str(&text).with_context(|| format!("the preset `{name}`"))
}

fn read() -> anyhow::Result<BTreeMap<String, Value>> {
    serde_norway::from_str(PRESETS).context("the presets")
}

/// The first placeholder that is left.
fn placeholder(text: &str) -> Option<&str> {
    let text = text.split(MODEL).find(|part| part.contains('{'))?;
    let (_, rest) = text.split_once('{')?;
    let (name, _) = rest.split_once('}')?;
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_provider_once_its_placeholders_are_given() {
        let given =
            ["region", "project", "resource"].map(|name| (name.to_owned(), "x1".to_owned()));
        assert!(names().len() >= 15);
        for name in names() {
            let spec = preset(&name, &given).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(spec.base_url.starts_with("http"), "{name}");
            assert!(!spec.base_url.replace(MODEL, "").contains('{'), "{name}");
        }
    }

    #[test]
    fn a_placeholder_that_is_left_is_named() {
        let error = preset("azure-openai", &[]).unwrap_err().to_string();
        assert_eq!(
            error,
            "the preset `azure-openai` wants --set resource=VALUE"
        );
        let error = preset("acme", &[]).unwrap_err().to_string();
        assert!(error.contains("anthropic, azure-openai"), "{error}");
    }
}
