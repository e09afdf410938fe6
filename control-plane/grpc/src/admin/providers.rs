//! `turnpike.admin.v1.Providers`

use control_plane_core::name::Collection;
use control_plane_core::resource;
use control_plane_core::resource::{CredentialPlace, Dialect, Quirk};
use control_plane_store::Stored;
use proto::admin::v1 as admin;
use proto::admin::v1::providers_server::Providers;
use proto::config::v1 as config;
use tonic::{Request, Response, Status};

use super::{Admin, actor, id, no_mask, page_request, required};
use crate::clock::to_timestamp;
use crate::status;

#[tonic::async_trait]
impl Providers for Admin {
    async fn create_provider(
        &self,
        request: Request<admin::CreateProviderRequest>,
    ) -> Result<Response<admin::Provider>, Status> {
        let request = request.into_inner();
        let provider = required(request.provider, "provider")?;
        let provider = to_resource(request.provider_id, provider)?;
        let stored = self.store.create_provider(&actor(), provider).await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn get_provider(
        &self,
        request: Request<admin::GetProviderRequest>,
    ) -> Result<Response<admin::Provider>, Status> {
        let name = request.into_inner().name;
        let provider_id = id(Collection::Providers, &name, "name")?;
        let stored = self.store.provider(provider_id).await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn list_providers(
        &self,
        request: Request<admin::ListProvidersRequest>,
    ) -> Result<Response<admin::ListProvidersResponse>, Status> {
        let request = request.into_inner();
        let page = page_request(request.page_size, request.page_token)?;
        let page = self
            .store
            .providers(&page)
            .await
            .map_err(status::from_store)?;
        Ok(Response::new(admin::ListProvidersResponse {
            providers: page.items.into_iter().map(to_wire).collect(),
            next_page_token: page.next_page_token,
        }))
    }

    async fn update_provider(
        &self,
        request: Request<admin::UpdateProviderRequest>,
    ) -> Result<Response<admin::Provider>, Status> {
        let request = request.into_inner();
        no_mask(request.update_mask)?;
        let provider = required(request.provider, "provider")?;
        let provider_id = id(Collection::Providers, &provider.name, "name")?.to_owned();
        let provider = to_resource(provider_id, provider)?;
        let stored = self.store.update_provider(&actor(), provider).await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn delete_provider(
        &self,
        request: Request<admin::DeleteProviderRequest>,
    ) -> Result<Response<admin::DeleteProviderResponse>, Status> {
        let name = request.into_inner().name;
        let provider_id = id(Collection::Providers, &name, "name")?;
        let config_version = self
            .store
            .delete_provider(&actor(), provider_id)
            .await
            .map_err(status::from_store)?;
        Ok(Response::new(admin::DeleteProviderResponse {
            config_version,
        }))
    }
}

fn to_resource(id: String, provider: admin::Provider) -> Result<resource::Provider, Status> {
    let dialect = Dialect::from_wire(provider.dialect).ok_or_else(|| {
        status::invalid("dialect", "must be openai, anthropic, gemini or converse")
    })?;
    let credential_place = match provider.credential_place {
        0 => dialect.credential_place(),
        number => CredentialPlace::from_wire(number).ok_or_else(|| {
            status::invalid(
                "credential_place",
                "must be bearer, api_key, x_api_key, x_goog_api_key, sigv4 or none",
            )
        })?,
    };
    let quirks = provider.quirks.iter().map(|&number| {
        Quirk::from_wire(number).ok_or_else(|| status::invalid("quirks", "no such quirk"))
    });
    let quirks = quirks.collect::<Result<_, _>>()?;
    let header = |header: config::Header| (header.name, header.value);
    Ok(resource::Provider {
        id,
        display_name: provider.display_name,
        dialect,
        base_url: provider.base_url,
        existing_cluster: provider.existing_cluster,
        ca_pem: provider.ca_pem,
        credential_place,
        stream_usage_option: !provider.no_stream_usage_option,
        query: provider.query,
        headers: provider.headers.into_iter().map(header).collect(),
        region: provider.region,
        quirks,
    })
}

fn to_wire(stored: Stored<resource::Provider>) -> admin::Provider {
    let provider = stored.resource;
    admin::Provider {
        name: Collection::Providers.name(&provider.id),
        display_name: provider.display_name,
        dialect: provider.dialect.to_wire(),
        base_url: provider.base_url,
        existing_cluster: provider.existing_cluster,
        ca_pem: provider.ca_pem,
        credential_place: provider.credential_place.to_wire(),
        no_stream_usage_option: !provider.stream_usage_option,
        create_time: Some(to_timestamp(stored.created_at)),
        update_time: Some(to_timestamp(stored.updated_at)),
        config_version: stored.config_version,
        etag: String::new(),
        query: provider.query,
        headers: provider.headers.into_iter().map(header).collect(),
        region: provider.region,
        quirks: provider
            .quirks
            .iter()
            .map(|quirk| quirk.to_wire())
            .collect(),
    }
}

fn header((name, value): (String, String)) -> config::Header {
    config::Header { name, value }
}

fn answer(stored: Stored<resource::Provider>) -> Response<admin::Provider> {
    Response::new(to_wire(stored))
}
