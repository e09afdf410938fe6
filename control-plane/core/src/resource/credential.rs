//! A provider's secret, or where to read it.

use proto::config::v1 as config;
use serde::Serialize;

use super::check_id;
use crate::fault::{Fault, Faults};
use crate::secret::Secret;

/// A credential as edited, without its plaintext.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Credential {
    pub id: String,
    /// Id of the provider it opens; fixed at creation.
    pub provider: String,
    /// At most one of team and key; neither: everyone.
    pub team: Option<String>,
    pub virtual_key: Option<String>,
    /// 1-1000.
    pub weight: u32,
    pub source: CredentialSource,
}

/// Where the plaintext comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialSource {
    /// Kept encrypted in the database.
    Sealed,
    /// A file, by its path below the control plane's secrets directory.
    File(String),
    /// An environment variable of the control plane.
    EnvironmentVariable(String),
}

/// Environment variables that may be read besides `TURNPIKE_SECRET_…`.
const WELL_KNOWN_VARIABLES: [&str; 14] = [
    "ANTHROPIC_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "CEREBRAS_API_KEY",
    "COHERE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
];

/// A text that cannot be a credential; says nothing of the text itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1-4096 visible ASCII characters")]
pub struct NotASecret;

/// Takes the white space off both ends, as a mounted file's last newline.
///
/// # Errors
/// When what is left could not stand in a header.
pub fn clean_secret(text: &str) -> Result<Secret, NotASecret> {
    let text = text.trim();
    if (1..=4096).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(Secret::new(text.to_owned()))
    } else {
        Err(NotASecret)
    }
}

impl Credential {
    /// Checks every field.
    ///
    /// # Errors
    /// All faults at once.
    pub fn validate(&self) -> Result<(), Vec<Fault>> {
        let mut faults = Faults::default();
        check_id(&mut faults, "credential_id", &self.id);
        check_id(&mut faults, "provider", &self.provider);
        if let Some(team) = &self.team {
            check_id(&mut faults, "team", team);
        }
        if let Some(key) = &self.virtual_key {
            check_id(&mut faults, "virtual_key", key);
        }
        faults.require(
            self.team.is_none() || self.virtual_key.is_none(),
            "virtual_key",
            "must be empty when team is set",
        );
        faults.require(
            (1..=1000).contains(&self.weight),
            "weight",
            "must be 1-1000",
        );
        match &self.source {
            CredentialSource::Sealed => {}
            CredentialSource::File(path) => faults.require(
                is_path_below(path),
                "file",
                "must be a path below the secrets directory",
            ),
            CredentialSource::EnvironmentVariable(name) => faults.require(
                is_readable_variable(name),
                "environment_variable",
                "must start with TURNPIKE_SECRET_ or be a well-known *_API_KEY name",
            ),
        }
        faults.into_result()
    }

    /// The form nodes are sent.
    pub fn to_config(&self, secret: &Secret) -> config::Credential {
        config::Credential {
            id: self.id.clone(),
            provider: self.provider.clone(),
            team: self.team.clone().unwrap_or_default(),
            key: self.virtual_key.clone().unwrap_or_default(),
            weight: self.weight,
            secret: secret.expose().to_owned(),
        }
    }
}

fn is_path_below(path: &str) -> bool {
    (1..=512).contains(&path.len())
        && !path.chars().any(char::is_control)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn is_readable_variable(name: &str) -> bool {
    let own = name.strip_prefix("TURNPIKE_SECRET_").is_some_and(|rest| {
        (1..=100).contains(&rest.len())
            && rest
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    });
    own || WELL_KNOWN_VARIABLES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(source: CredentialSource) -> Credential {
        Credential {
            id: "main".into(),
            provider: "demo".into(),
            team: None,
            virtual_key: None,
            weight: 1,
            source,
        }
    }

    #[test]
    fn a_secret_loses_its_last_newline_and_nothing_else() {
        assert_eq!(clean_secret("sk-test-1\n").unwrap().expose(), "sk-test-1");
        for wrong in ["", " \n", "a b", "a\nb", "schlüssel", &"x".repeat(4097)] {
            assert_eq!(clean_secret(wrong), Err(NotASecret));
        }
    }

    #[test]
    fn references_stay_inside_what_may_be_read() {
        for path in ["openai", "team/key.txt"] {
            credential(CredentialSource::File(path.into()))
                .validate()
                .unwrap();
        }
        for path in ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a\0b"] {
            let faults = credential(CredentialSource::File(path.into()))
                .validate()
                .unwrap_err();
            assert_eq!(faults[0].field, "file", "{path}");
        }
        for name in ["TURNPIKE_SECRET_A1", "OPENAI_API_KEY"] {
            credential(CredentialSource::EnvironmentVariable(name.into()))
                .validate()
                .unwrap();
        }
        for name in [
            "DATABASE_URL",
            "TURNPIKE_SECRET_",
            "TURNPIKE_ADMIN_TOKEN",
            "HOME",
            "X_API_KEY",
        ] {
            let faults = credential(CredentialSource::EnvironmentVariable(name.into()))
                .validate()
                .unwrap_err();
            assert_eq!(faults[0].field, "environment_variable", "{name}");
        }
    }

    #[test]
    fn a_credential_belongs_to_one_kind_of_owner() {
        let mut both = credential(CredentialSource::Sealed);
        both.team = Some("a".into());
        both.virtual_key = Some("b".into());
        both.weight = 0;
        let fields: Vec<_> = both
            .validate()
            .unwrap_err()
            .into_iter()
            .map(|f| f.field)
            .collect();
        assert_eq!(fields, ["virtual_key", "weight"]);
    }
}
