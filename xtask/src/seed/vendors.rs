//! Real providers, opened by well-known variables of whoever calls `up`.

use std::path::Path;

use anyhow::Result;

use super::{Turnpike, apply, output, succeeds};
use crate::{
    layout::{StateDir, write_secret},
    steps::say,
};

/// A provider with a preset of its own name.
struct Vendor {
    id: &'static str,
    variable: &'static str,
    capabilities: &'static str,
    models: &'static [&'static str],
    /// `turnpike` comes with list prices of them.
    has_list_prices: bool,
}

const VENDORS: [Vendor; 4] = [
    Vendor {
        id: "openai",
        variable: "OPENAI_API_KEY",
        capabilities: "tools, image-input, json-schema",
        models: &["gpt-5", "gpt-5-mini", "gpt-4.1", "gpt-4o", "gpt-4o-mini"],
        has_list_prices: true,
    },
    Vendor {
        id: "anthropic",
        variable: "ANTHROPIC_API_KEY",
        capabilities: "tools, image-input, file-input",
        models: &["claude-opus-5", "claude-opus-4-7", "claude-haiku-4-5"],
        has_list_prices: true,
    },
    Vendor {
        id: "gemini",
        variable: "GEMINI_API_KEY",
        capabilities: "tools, image-input, json-schema",
        models: &[
            "gemini-2.5-pro",
            "gemini-2.5-flash",
            "gemini-2.5-flash-lite",
        ],
        has_list_prices: true,
    },
    Vendor {
        id: "mistral",
        variable: "MISTRAL_API_KEY",
        capabilities: "tools, json-schema",
        models: &["mistral-large-latest", "mistral-small-latest"],
        has_list_prices: false,
    },
];

/// Registers each provider whose variable is set, with models and list prices when it is new. Its
/// credential is set anew each time.
pub(super) fn register(turnpike: &Turnpike<'_>, state: &StateDir) -> Result<()> {
    for vendor in &VENDORS {
        let secret = std::env::var(vendor.variable).unwrap_or_default();
        if !secret.is_empty() {
            vendor.register(turnpike, state, &secret)?;
        }
    }
    Ok(())
}

impl Vendor {
    fn register(&self, turnpike: &Turnpike<'_>, state: &StateDir, secret: &str) -> Result<()> {
        let id = self.id;
        let is_new = !succeeds(&mut turnpike.command(&["providers", "get", id])?)?;
        if is_new {
            let create = ["providers", "create", id, "--preset", id];
            output(&mut turnpike.command(&create)?)?;
        }
        let secret_file = state.secrets().join(format!("{id}-api-key"));
        write_secret(&secret_file, secret)?;
        let mut documents = self.credential(&secret_file);
        if is_new {
            documents.push_str(&self.missing_models(turnpike)?);
        }
        let applied = apply(&mut turnpike.command(&["apply", "-f", "-"])?, &documents);
        // The control plane has it now, encrypted.
        drop(std::fs::remove_file(&secret_file));
        applied?;
        if is_new && self.has_list_prices {
            let import = ["prices", "import-defaults", "--provider", id];
            output(&mut turnpike.command(&import)?)?;
        }
        let prices = match self.has_list_prices {
            true => "list prices",
            false => "no price is known: docs/providers.md",
        };
        let models = self.models.join(", ");
        say(&format!(
            "  {} is set: provider {id} with {models}; {prices}",
            self.variable
        ));
        Ok(())
    }

    fn credential(&self, secret_file: &Path) -> String {
        let (id, secret_file) = (self.id, secret_file.display());
        format!(
            "kind: Credential\nid: {id}\nspec:\n  provider: {id}\n  secretFile: {secret_file}\n"
        )
    }

    /// Those of its models whose names are free.
    fn missing_models(&self, turnpike: &Turnpike<'_>) -> Result<String> {
        let (id, capabilities) = (self.id, self.capabilities);
        let mut documents = String::new();
        for model in self.models {
            if !succeeds(&mut turnpike.command(&["models", "get", model])?)? {
                documents.push_str(&format!(
                    "---\nkind: Model\nid: {model}\nspec:\n  targets:\n  - provider: {id}\n  \
                     capabilities: [{capabilities}]\n"
                ));
            }
        }
        Ok(documents)
    }
}
