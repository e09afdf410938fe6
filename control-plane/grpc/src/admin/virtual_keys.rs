//! `turnpike.admin.v1.VirtualKeys`

use control_plane_core::key::{self, ENTROPY_BYTES};
use control_plane_core::name::Collection;
use control_plane_core::resource::VirtualKey;
use control_plane_core::secret::Secret;
use control_plane_store::{KeyRecord, Stored};
use prost_types::Timestamp;
use proto::admin::v1 as admin;
use proto::admin::v1::virtual_keys_server::VirtualKeys;
use tonic::{Request, Response, Status};

use super::{Admin, actor, id, no_mask, optional_id, page_request, required};
use crate::clock::to_timestamp;
use crate::status;

#[tonic::async_trait]
impl VirtualKeys for Admin {
    async fn create_virtual_key(
        &self,
        request: Request<admin::CreateVirtualKeyRequest>,
    ) -> Result<Response<admin::CreateVirtualKeyResponse>, Status> {
        let request = request.into_inner();
        let mut entropy = [0; ENTROPY_BYTES];
        getrandom::fill(&mut entropy).map_err(|_| Status::internal("no randomness"))?;
        let minted = key::mint(&entropy);
        let key_id = if request.virtual_key_id.is_empty() {
            minted.handle
        } else {
            request.virtual_key_id
        };
        let (secret, plaintext) = if request.import_secret.is_empty() {
            (minted.secret, minted.plaintext.expose().to_owned())
        } else {
            let imported = key::import(&Secret::new(request.import_secret))
                .map_err(|fault| status::from_faults(&[fault]))?;
            (imported, String::new())
        };
        let key = required(request.virtual_key, "virtual_key")?;
        let team = id(Collection::Teams, &key.team, "team")?.to_owned();
        let stored = self
            .store
            .create_virtual_key(&actor(), to_resource(key_id, team, key)?, secret)
            .await
            .map_err(status::from_store)?;
        Ok(Response::new(admin::CreateVirtualKeyResponse {
            virtual_key: Some(to_wire(stored)),
            secret: plaintext,
        }))
    }

    async fn get_virtual_key(
        &self,
        request: Request<admin::GetVirtualKeyRequest>,
    ) -> Result<Response<admin::VirtualKey>, Status> {
        let name = request.into_inner().name;
        let key_id = id(Collection::VirtualKeys, &name, "name")?;
        let stored = self.store.virtual_key(key_id).await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn list_virtual_keys(
        &self,
        request: Request<admin::ListVirtualKeysRequest>,
    ) -> Result<Response<admin::ListVirtualKeysResponse>, Status> {
        let request = request.into_inner();
        let team = optional_id(Collection::Teams, &request.team, "team")?;
        let page = page_request(request.page_size, request.page_token)?;
        let page = self
            .store
            .virtual_keys(team.as_deref(), &page)
            .await
            .map_err(status::from_store)?;
        Ok(Response::new(admin::ListVirtualKeysResponse {
            virtual_keys: page.items.into_iter().map(to_wire).collect(),
            next_page_token: page.next_page_token,
        }))
    }

    async fn update_virtual_key(
        &self,
        request: Request<admin::UpdateVirtualKeyRequest>,
    ) -> Result<Response<admin::VirtualKey>, Status> {
        let request = request.into_inner();
        no_mask(request.update_mask)?;
        let key = required(request.virtual_key, "virtual_key")?;
        let key_id = id(Collection::VirtualKeys, &key.name, "name")?.to_owned();
        // Empty: as it is.
        let team = optional_id(Collection::Teams, &key.team, "team")?;
        let key = to_resource(key_id, team.unwrap_or_default(), key)?;
        let stored = self.store.update_virtual_key(&actor(), key).await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn delete_virtual_key(
        &self,
        request: Request<admin::DeleteVirtualKeyRequest>,
    ) -> Result<Response<admin::DeleteVirtualKeyResponse>, Status> {
        let name = request.into_inner().name;
        let key_id = id(Collection::VirtualKeys, &name, "name")?;
        let config_version = self
            .store
            .delete_virtual_key(&actor(), key_id)
            .await
            .map_err(status::from_store)?;
        Ok(Response::new(admin::DeleteVirtualKeyResponse {
            config_version,
        }))
    }
}

fn to_resource(id: String, team: String, key: admin::VirtualKey) -> Result<VirtualKey, Status> {
    let expires_at_s = key
        .expire_time
        .map(|expire_time| u64::try_from(expire_time.seconds))
        .transpose()
        .map_err(|_| status::invalid("expire_time", "must lie after 1970"))?;
    Ok(VirtualKey {
        id,
        team,
        display_name: key.display_name,
        disabled: key.disabled,
        models: key.models,
        expires_at_s,
    })
}

fn to_wire(stored: Stored<KeyRecord>) -> admin::VirtualKey {
    let KeyRecord { key, secret_hint } = stored.resource;
    admin::VirtualKey {
        name: Collection::VirtualKeys.name(&key.id),
        team: Collection::Teams.name(&key.team),
        display_name: key.display_name,
        disabled: key.disabled,
        models: key.models,
        expire_time: key.expires_at_s.map(|seconds| Timestamp {
            seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
            nanos: 0,
        }),
        secret_hint,
        create_time: Some(to_timestamp(stored.created_at)),
        update_time: Some(to_timestamp(stored.updated_at)),
        config_version: stored.config_version,
        etag: String::new(),
    }
}

fn answer(stored: Stored<KeyRecord>) -> Response<admin::VirtualKey> {
    Response::new(to_wire(stored))
}
