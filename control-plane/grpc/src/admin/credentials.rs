//! `turnpike.admin.v1.Credentials`; a secret goes in and is never answered.

use control_plane_core::name::Collection;
use control_plane_core::resource::{self, CredentialSource, clean_secret};
use control_plane_core::secret::Secret;
use control_plane_store::Stored;
use proto::admin::v1 as admin;
use proto::admin::v1::credential::Source;
use proto::admin::v1::credentials_server::Credentials;
use tonic::{Request, Response, Status};

use super::{Admin, actor, id, no_mask, optional_id, page_request, required};
use crate::clock::to_timestamp;
use crate::status;

#[tonic::async_trait]
impl Credentials for Admin {
    async fn create_credential(
        &self,
        request: Request<admin::CreateCredentialRequest>,
    ) -> Result<Response<admin::Credential>, Status> {
        self.check_credentials()?;
        let request = request.into_inner();
        let credential = required(request.credential, "credential")?;
        let provider_id = id(Collection::Providers, &credential.provider, "provider")?.to_owned();
        let (credential, secret) = to_resource(request.credential_id, provider_id, credential)?;
        if credential.source == CredentialSource::Sealed && secret.is_none() {
            return Err(status::invalid(
                "source",
                "must be secret, file or environment_variable",
            ));
        }
        let stored = self
            .store
            .create_credential(&actor(), credential, secret)
            .await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn get_credential(
        &self,
        request: Request<admin::GetCredentialRequest>,
    ) -> Result<Response<admin::Credential>, Status> {
        let name = request.into_inner().name;
        let credential_id = id(Collection::Credentials, &name, "name")?;
        let stored = self.store.credential(credential_id).await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn list_credentials(
        &self,
        request: Request<admin::ListCredentialsRequest>,
    ) -> Result<Response<admin::ListCredentialsResponse>, Status> {
        let request = request.into_inner();
        let provider = optional_id(Collection::Providers, &request.provider, "provider")?;
        let page = page_request(request.page_size, request.page_token)?;
        let page = self
            .store
            .credentials(provider.as_deref(), &page)
            .await
            .map_err(status::from_store)?;
        Ok(Response::new(admin::ListCredentialsResponse {
            credentials: page.items.into_iter().map(to_wire).collect(),
            next_page_token: page.next_page_token,
        }))
    }

    async fn update_credential(
        &self,
        request: Request<admin::UpdateCredentialRequest>,
    ) -> Result<Response<admin::Credential>, Status> {
        self.check_credentials()?;
        let request = request.into_inner();
        no_mask(request.update_mask)?;
        let credential = required(request.credential, "credential")?;
        let credential_id = id(Collection::Credentials, &credential.name, "name")?.to_owned();
        // Empty: as it is.
        let provider = optional_id(Collection::Providers, &credential.provider, "provider")?;
        let (credential, secret) =
            to_resource(credential_id, provider.unwrap_or_default(), credential)?;
        let stored = self
            .store
            .update_credential(&actor(), credential, secret)
            .await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn delete_credential(
        &self,
        request: Request<admin::DeleteCredentialRequest>,
    ) -> Result<Response<admin::DeleteCredentialResponse>, Status> {
        let name = request.into_inner().name;
        let credential_id = id(Collection::Credentials, &name, "name")?;
        let config_version = self
            .store
            .delete_credential(&actor(), credential_id)
            .await
            .map_err(status::from_store)?;
        Ok(Response::new(admin::DeleteCredentialResponse {
            config_version,
        }))
    }
}

impl Admin {
    fn check_credentials(&self) -> Result<(), Status> {
        if self.policy.credentials {
            return Ok(());
        }
        Err(Status::failed_precondition(
            "this control plane runs without credentials; give it a master key",
        ))
    }
}

fn to_resource(
    id: String,
    provider: String,
    credential: admin::Credential,
) -> Result<(resource::Credential, Option<Secret>), Status> {
    let (source, secret) = match credential.source {
        Some(Source::Secret(plaintext)) if !plaintext.value.is_empty() => {
            let secret = clean_secret(&plaintext.value)
                .map_err(|error| status::invalid("secret", &error.to_string()))?;
            (CredentialSource::Sealed, Some(secret))
        }
        Some(Source::Secret(_)) | None => (CredentialSource::Sealed, None),
        Some(Source::File(path)) => (CredentialSource::File(path), None),
        Some(Source::EnvironmentVariable(name)) => {
            (CredentialSource::EnvironmentVariable(name), None)
        }
    };
    let team = optional_id(Collection::Teams, &credential.team, "team")?;
    let virtual_key = optional_id(
        Collection::VirtualKeys,
        &credential.virtual_key,
        "virtual_key",
    )?;
    let resource = resource::Credential {
        id,
        provider,
        team,
        virtual_key,
        weight: credential.weight.max(1),
        source,
    };
    Ok((resource, secret))
}

fn to_wire(stored: Stored<resource::Credential>) -> admin::Credential {
    let credential = stored.resource;
    let name_of = |collection: Collection, id: Option<String>| {
        id.map(|id| collection.name(&id)).unwrap_or_default()
    };
    admin::Credential {
        name: Collection::Credentials.name(&credential.id),
        provider: Collection::Providers.name(&credential.provider),
        team: name_of(Collection::Teams, credential.team),
        virtual_key: name_of(Collection::VirtualKeys, credential.virtual_key),
        weight: credential.weight,
        source: match credential.source {
            CredentialSource::Sealed => None,
            CredentialSource::File(path) => Some(Source::File(path)),
            CredentialSource::EnvironmentVariable(name) => Some(Source::EnvironmentVariable(name)),
        },
        create_time: Some(to_timestamp(stored.created_at)),
        update_time: Some(to_timestamp(stored.updated_at)),
        config_version: stored.config_version,
        etag: String::new(),
    }
}

fn answer(stored: Stored<resource::Credential>) -> Response<admin::Credential> {
    Response::new(to_wire(stored))
}
