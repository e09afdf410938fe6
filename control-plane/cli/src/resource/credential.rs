//! Credentials: the providers' own secrets, or where the control plane finds them.

use std::path::{Path, PathBuf};

use proto::admin::v1 as pb;
use proto::admin::v1::credential::Source;
use serde::{Deserialize, Serialize};

use super::{Collection, Kind, Page, Status, Stored, id_of, name_of, provider, team, virtual_key};
use crate::failure::CallError;
use crate::link::Link;
use crate::moment::Moment;
use crate::secret::Secret;
use crate::table::Column;

const PREFIX: &str = "credentials/";

#[derive(Debug)]
pub(crate) enum Credential {}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CredentialSpec {
    /// Id of the provider it opens; fixed at creation.
    pub(crate) provider: String,
    /// At most one of `team` and `virtualKey` (ids); neither: everyone may use it.
    #[serde(default)]
    pub(crate) team: Option<String>,
    #[serde(default)]
    pub(crate) virtual_key: Option<String>,
    /// Share among credentials of the same kind, 1-1000.
    #[serde(default = "one")]
    pub(crate) weight: u32,
    /// Local file with the secret; sent with each apply.
    #[serde(default, skip_serializing)]
    pub(crate) secret_file: Option<PathBuf>,
    /// File in the control plane's secrets directory.
    #[serde(default)]
    pub(crate) file: Option<String>,
    /// Environment variable of the control plane.
    #[serde(default)]
    pub(crate) environment_variable: Option<String>,
}

impl Collection for Credential {
    type Spec = CredentialSpec;
    const KIND: Kind = Kind::Credential;
    const COLUMNS: &'static [Column] = &[
        Column::text("ID"),
        Column::text("PROVIDER"),
        Column::text("FOR"),
        Column::number("WEIGHT"),
        Column::text("SOURCE"),
    ];
    const UPDATES_SECRET: bool = true;

    fn row(stored: &Stored<CredentialSpec>) -> Vec<String> {
        let Stored { id, spec, .. } = stored;
        let owner = match (&spec.team, &spec.virtual_key) {
            (_, Some(key)) => format!("key {key}"),
            (Some(team), None) => format!("team {team}"),
            (None, None) => "everyone".to_owned(),
        };
        let source = match (&spec.file, &spec.environment_variable) {
            (Some(file), _) => format!("file {file}"),
            (None, Some(variable)) => format!("env {variable}"),
            (None, None) => "stored".to_owned(),
        };
        vec![
            id.clone(),
            spec.provider.clone(),
            owner,
            spec.weight.to_string(),
            source,
        ]
    }

    fn secret_file(spec: &CredentialSpec) -> Option<&Path> {
        spec.secret_file.as_deref()
    }

    async fn create(
        link: &Link,
        id: &str,
        spec: &CredentialSpec,
        secret: Option<&Secret>,
    ) -> Result<(Stored<CredentialSpec>, Option<Secret>), CallError> {
        let request = pb::CreateCredentialRequest {
            credential_id: id.to_owned(),
            credential: Some(encode("", spec, secret)),
        };
        let credential = link.credentials().create_credential(request).await?;
        Ok((decode(credential.into_inner()), None))
    }

    async fn get(link: &Link, id: &str) -> Result<Stored<CredentialSpec>, CallError> {
        let name = name_of(PREFIX, id);
        let request = pb::GetCredentialRequest { name };
        let credential = link.credentials().get_credential(request).await?;
        Ok(decode(credential.into_inner()))
    }

    async fn list(
        link: &Link,
        owner: &str,
        page_size: i32,
        page_token: String,
    ) -> Result<Page<CredentialSpec>, CallError> {
        let request = pb::ListCredentialsRequest {
            provider: name_of(provider::PREFIX, owner),
            page_size,
            page_token,
        };
        let page = link
            .credentials()
            .list_credentials(request)
            .await?
            .into_inner();
        let credentials = page.credentials.into_iter().map(decode).collect();
        Ok((credentials, page.next_page_token))
    }

    async fn update(
        link: &Link,
        id: &str,
        spec: &CredentialSpec,
        secret: Option<&Secret>,
    ) -> Result<Stored<CredentialSpec>, CallError> {
        let request = pb::UpdateCredentialRequest {
            credential: Some(encode(id, spec, secret)),
            update_mask: None,
        };
        let credential = link.credentials().update_credential(request).await?;
        Ok(decode(credential.into_inner()))
    }

    async fn delete(link: &Link, id: &str) -> Result<u64, CallError> {
        let name = name_of(PREFIX, id);
        let request = pb::DeleteCredentialRequest { name };
        let answer = link.credentials().delete_credential(request).await?;
        Ok(answer.into_inner().config_version)
    }

    fn is_same(stored: &CredentialSpec, wanted: &CredentialSpec) -> bool {
        let aligned = CredentialSpec {
            secret_file: wanted.secret_file.clone(),
            ..stored.clone()
        };
        aligned == *wanted
    }
}

fn one() -> u32 {
    1
}

fn encode(id: &str, spec: &CredentialSpec, secret: Option<&Secret>) -> pb::Credential {
    let source = match (secret, &spec.file, &spec.environment_variable) {
        (Some(secret), _, _) => Some(Source::Secret(pb::Plaintext {
            value: secret.expose().to_owned(),
        })),
        (None, Some(file), _) => Some(Source::File(file.clone())),
        (None, None, Some(variable)) => Some(Source::EnvironmentVariable(variable.clone())),
        // An update without a source leaves the stored secret as it is.
        (None, None, None) => None,
    };
    let owner = |prefix, id: &Option<String>| name_of(prefix, id.as_deref().unwrap_or_default());
    pb::Credential {
        name: name_of(PREFIX, id),
        provider: name_of(provider::PREFIX, &spec.provider),
        team: owner(team::PREFIX, &spec.team),
        virtual_key: owner(virtual_key::PREFIX, &spec.virtual_key),
        weight: spec.weight,
        source,
        ..Default::default()
    }
}

fn decode(credential: pb::Credential) -> Stored<CredentialSpec> {
    let (file, environment_variable) = match credential.source {
        Some(Source::File(file)) => (Some(file), None),
        Some(Source::EnvironmentVariable(variable)) => (None, Some(variable)),
        Some(Source::Secret(_)) | None => (None, None),
    };
    let owner = |name: &str, prefix| Some(id_of(name, prefix)).filter(|id| !id.is_empty());
    Stored {
        id: id_of(&credential.name, PREFIX),
        status: Status {
            config_version: credential.config_version,
            create_time: Moment::from_wire(credential.create_time.as_ref()),
            update_time: Moment::from_wire(credential.update_time.as_ref()),
            ..Default::default()
        },
        spec: CredentialSpec {
            provider: id_of(&credential.provider, provider::PREFIX),
            team: owner(&credential.team, team::PREFIX),
            virtual_key: owner(&credential.virtual_key, virtual_key::PREFIX),
            weight: credential.weight.max(one()),
            secret_file: None,
            file,
            environment_variable,
        },
    }
}
