//! Providers: where models are served.

use std::collections::BTreeMap;

use proto::admin::v1 as pb;
use proto::config::v1 as config;
use serde::{Deserialize, Serialize};

use super::{
    Collection, CredentialPlace, Dialect, Kind, Page, Quirk, Status, Stored, id_of, name_of,
};
use crate::failure::CallError;
use crate::link::Link;
use crate::moment::Moment;
use crate::secret::Secret;
use crate::table::Column;

pub(super) const PREFIX: &str = "providers/";

#[derive(Debug)]
pub(crate) enum Provider {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ProviderSpec {
    #[serde(default)]
    pub(crate) display_name: String,
    #[serde(default)]
    pub(crate) dialect: Dialect,
    pub(crate) base_url: String,
    /// Name of an Envoy cluster that the mesh owns. Empty: one is built from `baseUrl`.
    #[serde(default)]
    pub(crate) existing_cluster: String,
    /// Certificate authorities to trust, as PEM text. Empty: the node's system store.
    #[serde(default)]
    pub(crate) ca_pem: String,
    /// None: where the dialect's first provider wants it.
    #[serde(default)]
    pub(crate) credential_place: Option<CredentialPlace>,
    #[serde(default)]
    pub(crate) no_stream_usage_option: bool,
    /// Query of every request, without its question mark.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) query: String,
    /// Sent with every request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, String>,
    /// AWS region that requests are signed for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) region: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) quirks: Vec<Quirk>,
}

impl Collection for Provider {
    type Spec = ProviderSpec;
    const KIND: Kind = Kind::Provider;
    const COLUMNS: &'static [Column] = &[
        Column::text("ID"),
        Column::text("NAME"),
        Column::text("DIALECT"),
        Column::text("BASE URL"),
        Column::text("CREDENTIAL"),
        Column::text("CLUSTER"),
    ];

    fn row(stored: &Stored<ProviderSpec>) -> Vec<String> {
        let Stored { id, spec, .. } = stored;
        vec![
            id.clone(),
            spec.display_name.clone(),
            spec.dialect.to_string(),
            spec.base_url.clone(),
            spec.place().to_string(),
            spec.existing_cluster.clone(),
        ]
    }

    async fn create(
        link: &Link,
        id: &str,
        spec: &ProviderSpec,
        _secret: Option<&Secret>,
    ) -> Result<(Stored<ProviderSpec>, Option<Secret>), CallError> {
        let request = pb::CreateProviderRequest {
            provider_id: id.to_owned(),
            provider: Some(encode("", spec)),
        };
        let provider = link.providers().create_provider(request).await?;
        Ok((decode(provider.into_inner())?, None))
    }

    async fn get(link: &Link, id: &str) -> Result<Stored<ProviderSpec>, CallError> {
        let name = name_of(PREFIX, id);
        let request = pb::GetProviderRequest { name };
        decode(link.providers().get_provider(request).await?.into_inner())
    }

    async fn list(
        link: &Link,
        _owner: &str,
        page_size: i32,
        page_token: String,
    ) -> Result<Page<ProviderSpec>, CallError> {
        let request = pb::ListProvidersRequest {
            page_size,
            page_token,
        };
        let page = link.providers().list_providers(request).await?.into_inner();
        let providers: Result<_, _> = page.providers.into_iter().map(decode).collect();
        Ok((providers?, page.next_page_token))
    }

    async fn update(
        link: &Link,
        id: &str,
        spec: &ProviderSpec,
        _secret: Option<&Secret>,
    ) -> Result<Stored<ProviderSpec>, CallError> {
        let request = pb::UpdateProviderRequest {
            provider: Some(encode(id, spec)),
            update_mask: None,
        };
        decode(
            link.providers()
                .update_provider(request)
                .await?
                .into_inner(),
        )
    }

    async fn delete(link: &Link, id: &str) -> Result<u64, CallError> {
        let name = name_of(PREFIX, id);
        let request = pb::DeleteProviderRequest { name };
        let answer = link.providers().delete_provider(request).await?;
        Ok(answer.into_inner().config_version)
    }

    fn is_same(stored: &ProviderSpec, wanted: &ProviderSpec) -> bool {
        let plain = |spec: &ProviderSpec| ProviderSpec {
            base_url: spec.base_url.trim_end_matches('/').to_owned(),
            ca_pem: spec.ca_pem.trim_end().to_owned(),
            credential_place: Some(spec.place()),
            ..spec.clone()
        };
        plain(stored) == plain(wanted)
    }
}

impl ProviderSpec {
    /// Where the credential goes.
    fn place(&self) -> CredentialPlace {
        self.credential_place.unwrap_or(match self.dialect {
            Dialect::Openai => CredentialPlace::Bearer,
            Dialect::Anthropic => CredentialPlace::XApiKey,
            Dialect::Gemini => CredentialPlace::XGoogApiKey,
            Dialect::Converse => CredentialPlace::Sigv4,
        })
    }
}

fn encode(id: &str, spec: &ProviderSpec) -> pb::Provider {
    pb::Provider {
        name: name_of(PREFIX, id),
        display_name: spec.display_name.clone(),
        dialect: spec.dialect.to_wire(),
        base_url: spec.base_url.clone(),
        existing_cluster: spec.existing_cluster.clone(),
        ca_pem: spec.ca_pem.clone(),
        credential_place: spec.place().to_wire(),
        no_stream_usage_option: spec.no_stream_usage_option,
        query: spec.query.clone(),
        headers: spec.headers.iter().map(header).collect(),
        region: spec.region.clone(),
        quirks: spec.quirks.iter().map(|quirk| quirk.to_wire()).collect(),
        ..Default::default()
    }
}

fn header((name, value): (&String, &String)) -> config::Header {
    config::Header {
        name: name.clone(),
        value: value.clone(),
    }
}

fn decode(provider: pb::Provider) -> Result<Stored<ProviderSpec>, CallError> {
    let credential_place = match provider.credential_place {
        0 => None,
        value => Some(CredentialPlace::from_wire(value)?),
    };
    let quirks = provider.quirks.iter().map(|&value| Quirk::from_wire(value));
    let quirks = quirks.collect::<Result<_, _>>()?;
    let header = |header: config::Header| (header.name, header.value);
    Ok(Stored {
        id: id_of(&provider.name, PREFIX),
        status: Status {
            config_version: provider.config_version,
            create_time: Moment::from_wire(provider.create_time.as_ref()),
            update_time: Moment::from_wire(provider.update_time.as_ref()),
            ..Default::default()
        },
        spec: ProviderSpec {
            display_name: provider.display_name,
            dialect: Dialect::from_wire(provider.dialect)?,
            base_url: provider.base_url,
            existing_cluster: provider.existing_cluster,
            ca_pem: provider.ca_pem,
            credential_place,
            no_stream_usage_option: provider.no_stream_usage_option,
            query: provider.query,
            headers: provider.headers.into_iter().map(header).collect(),
            region: provider.region,
            quirks,
        },
    })
}
