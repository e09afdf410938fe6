//! `turnpike.admin.v1.SettingsService`

use control_plane_core::name::SETTINGS;
use control_plane_core::resource::Settings;
use control_plane_store::Stored;
use proto::admin::v1 as admin;
use proto::admin::v1::settings_service_server::SettingsService;
use tonic::{Request, Response, Status};

use super::{Admin, actor, required};
use crate::clock::to_timestamp;
use crate::status;

#[tonic::async_trait]
impl SettingsService for Admin {
    async fn get_settings(
        &self,
        _: Request<admin::GetSettingsRequest>,
    ) -> Result<Response<admin::Settings>, Status> {
        let stored = self.store.settings().await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn update_settings(
        &self,
        request: Request<admin::UpdateSettingsRequest>,
    ) -> Result<Response<admin::Settings>, Status> {
        let settings = required(request.into_inner().settings, "settings")?;
        let values = Settings::from_wire(settings.values.unwrap_or_default())
            .map_err(|faults| status::from_faults(&faults))?;
        let stored = self.store.update_settings(&actor(), values).await;
        stored.map(answer).map_err(status::from_store)
    }
}

fn answer(stored: Stored<Settings>) -> Response<admin::Settings> {
    Response::new(admin::Settings {
        name: SETTINGS.to_owned(),
        values: Some(stored.resource.to_wire()),
        update_time: Some(to_timestamp(stored.updated_at)),
        config_version: stored.config_version,
        etag: String::new(),
    })
}
