//! Virtual keys: what callers present instead of a provider's secret.

use std::path::{Path, PathBuf};

use proto::admin::v1 as pb;
use serde::{Deserialize, Serialize};

use super::{Collection, Kind, Page, Status, Stored, all_or, id_of, name_of, same_set, team, yes};
use crate::failure::CallError;
use crate::link::Link;
use crate::moment::Moment;
use crate::secret::Secret;
use crate::table::Column;

pub(super) const PREFIX: &str = "virtualKeys/";

#[derive(Debug)]
pub(crate) enum VirtualKey {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct VirtualKeySpec {
    /// Id of the owning team; fixed at creation.
    pub(crate) team: String,
    #[serde(default)]
    pub(crate) display_name: String,
    #[serde(default)]
    pub(crate) disabled: bool,
    /// Public model names, or `prefix/*`. Empty: whatever the team may use.
    #[serde(default)]
    pub(crate) models: Vec<String>,
    /// None: never.
    #[serde(default)]
    pub(crate) expire_time: Option<Moment>,
    /// Local file with a secret to import; read when the key does not exist yet.
    #[serde(default, skip_serializing)]
    pub(crate) import_secret_file: Option<PathBuf>,
}

impl Collection for VirtualKey {
    type Spec = VirtualKeySpec;
    const KIND: Kind = Kind::VirtualKey;
    const COLUMNS: &'static [Column] = &[
        Column::text("ID"),
        Column::text("TEAM"),
        Column::text("NAME"),
        Column::text("SECRET"),
        Column::text("MODELS"),
        Column::text("EXPIRES"),
        Column::text("DISABLED"),
    ];

    fn row(stored: &Stored<VirtualKeySpec>) -> Vec<String> {
        let Stored { id, spec, status } = stored;
        let hint = status.secret_hint.as_deref();
        vec![
            id.clone(),
            spec.team.clone(),
            spec.display_name.clone(),
            hint.map(cut_off).unwrap_or_default(),
            all_or(&spec.models),
            spec.expire_time
                .map_or("never".to_owned(), |time| time.to_string()),
            yes(spec.disabled),
        ]
    }

    fn secret_file(spec: &VirtualKeySpec) -> Option<&Path> {
        spec.import_secret_file.as_deref()
    }

    async fn create(
        link: &Link,
        id: &str,
        spec: &VirtualKeySpec,
        secret: Option<&Secret>,
    ) -> Result<(Stored<VirtualKeySpec>, Option<Secret>), CallError> {
        let request = pb::CreateVirtualKeyRequest {
            virtual_key_id: id.to_owned(),
            virtual_key: Some(encode("", spec)),
            import_secret: secret
                .map(|secret| secret.expose().to_owned())
                .unwrap_or_default(),
        };
        let answer = link.virtual_keys().create_virtual_key(request).await?;
        let pb::CreateVirtualKeyResponse {
            virtual_key,
            secret,
        } = answer.into_inner();
        let key = virtual_key.ok_or(CallError::Missing("virtual key"))?;
        let made = Some(secret).filter(|secret| !secret.is_empty());
        Ok((decode(key), made.map(Secret::new)))
    }

    async fn get(link: &Link, id: &str) -> Result<Stored<VirtualKeySpec>, CallError> {
        let name = name_of(PREFIX, id);
        let request = pb::GetVirtualKeyRequest { name };
        let key = link.virtual_keys().get_virtual_key(request).await?;
        Ok(decode(key.into_inner()))
    }

    async fn list(
        link: &Link,
        owner: &str,
        page_size: i32,
        page_token: String,
    ) -> Result<Page<VirtualKeySpec>, CallError> {
        let request = pb::ListVirtualKeysRequest {
            team: name_of(team::PREFIX, owner),
            page_size,
            page_token,
        };
        let page = link
            .virtual_keys()
            .list_virtual_keys(request)
            .await?
            .into_inner();
        let keys = page.virtual_keys.into_iter().map(decode).collect();
        Ok((keys, page.next_page_token))
    }

    async fn update(
        link: &Link,
        id: &str,
        spec: &VirtualKeySpec,
        _secret: Option<&Secret>,
    ) -> Result<Stored<VirtualKeySpec>, CallError> {
        let request = pb::UpdateVirtualKeyRequest {
            virtual_key: Some(encode(id, spec)),
            update_mask: None,
        };
        let key = link.virtual_keys().update_virtual_key(request).await?;
        Ok(decode(key.into_inner()))
    }

    async fn delete(link: &Link, id: &str) -> Result<u64, CallError> {
        let name = name_of(PREFIX, id);
        let request = pb::DeleteVirtualKeyRequest { name };
        let answer = link.virtual_keys().delete_virtual_key(request).await?;
        Ok(answer.into_inner().config_version)
    }

    fn is_same(stored: &VirtualKeySpec, wanted: &VirtualKeySpec) -> bool {
        // The file matters at creation only; the order of an allow list never does.
        let aligned = VirtualKeySpec {
            models: wanted.models.clone(),
            expire_time: stored.expire_time.map(Moment::whole_second),
            import_secret_file: wanted.import_secret_file.clone(),
            ..stored.clone()
        };
        let wanted = VirtualKeySpec {
            expire_time: wanted.expire_time.map(Moment::whole_second),
            ..wanted.clone()
        };
        aligned == wanted && same_set(&stored.models, &wanted.models)
    }
}

/// The hint as the beginning of something longer.
fn cut_off(hint: &str) -> String {
    format!("{}…", hint.trim_end_matches('…'))
}

fn encode(id: &str, spec: &VirtualKeySpec) -> pb::VirtualKey {
    pb::VirtualKey {
        name: name_of(PREFIX, id),
        team: name_of(team::PREFIX, &spec.team),
        display_name: spec.display_name.clone(),
        disabled: spec.disabled,
        models: spec.models.clone(),
        expire_time: spec.expire_time.map(|time| time.whole_second().to_wire()),
        ..Default::default()
    }
}

fn decode(key: pb::VirtualKey) -> Stored<VirtualKeySpec> {
    Stored {
        id: id_of(&key.name, PREFIX),
        status: Status {
            config_version: key.config_version,
            create_time: Moment::from_wire(key.create_time.as_ref()),
            update_time: Moment::from_wire(key.update_time.as_ref()),
            secret_hint: Some(key.secret_hint).filter(|hint| !hint.is_empty()),
            ..Default::default()
        },
        spec: VirtualKeySpec {
            team: id_of(&key.team, team::PREFIX),
            display_name: key.display_name,
            disabled: key.disabled,
            models: key.models,
            expire_time: Moment::from_wire(key.expire_time.as_ref()),
            import_secret_file: None,
        },
    }
}
