//! `turnpike.admin.v1.Models`

use control_plane_core::fault::Faults;
use control_plane_core::name::Collection;
use control_plane_core::resource::{self, Capability, Effort, Target};
use control_plane_store::Stored;
use proto::admin::v1 as admin;
use proto::admin::v1::models_server::Models;
use tonic::{Request, Response, Status};

use super::{Admin, actor, id, no_mask, page_request, required};
use crate::clock::to_timestamp;
use crate::status;

#[tonic::async_trait]
impl Models for Admin {
    async fn create_model(
        &self,
        request: Request<admin::CreateModelRequest>,
    ) -> Result<Response<admin::Model>, Status> {
        let request = request.into_inner();
        let model = required(request.model, "model")?;
        let model = to_resource(request.model_id, model)?;
        let stored = self.store.create_model(&actor(), model).await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn get_model(
        &self,
        request: Request<admin::GetModelRequest>,
    ) -> Result<Response<admin::Model>, Status> {
        let name = request.into_inner().name;
        let stored = self
            .store
            .model(id(Collection::Models, &name, "name")?)
            .await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn list_models(
        &self,
        request: Request<admin::ListModelsRequest>,
    ) -> Result<Response<admin::ListModelsResponse>, Status> {
        let request = request.into_inner();
        let page = page_request(request.page_size, request.page_token)?;
        let page = self.store.models(&page).await.map_err(status::from_store)?;
        Ok(Response::new(admin::ListModelsResponse {
            models: page.items.into_iter().map(to_wire).collect(),
            next_page_token: page.next_page_token,
        }))
    }

    async fn update_model(
        &self,
        request: Request<admin::UpdateModelRequest>,
    ) -> Result<Response<admin::Model>, Status> {
        let request = request.into_inner();
        no_mask(request.update_mask)?;
        let model = required(request.model, "model")?;
        let model_id = id(Collection::Models, &model.name, "name")?.to_owned();
        let stored = self
            .store
            .update_model(&actor(), to_resource(model_id, model)?)
            .await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn delete_model(
        &self,
        request: Request<admin::DeleteModelRequest>,
    ) -> Result<Response<admin::DeleteModelResponse>, Status> {
        let name = request.into_inner().name;
        let config_version = self
            .store
            .delete_model(&actor(), id(Collection::Models, &name, "name")?)
            .await
            .map_err(status::from_store)?;
        Ok(Response::new(admin::DeleteModelResponse { config_version }))
    }
}

fn to_resource(id: String, model: admin::Model) -> Result<resource::Model, Status> {
    let mut faults = Faults::default();
    let mut capabilities = Vec::with_capacity(model.capabilities.len());
    for (position, number) in model.capabilities.iter().enumerate() {
        match Capability::from_wire(*number) {
            Some(capability) => capabilities.push(capability),
            None => faults.push(format!("capabilities[{position}]"), "is not known here"),
        }
    }
    let mut efforts = Vec::with_capacity(model.efforts.len());
    for (position, number) in model.efforts.iter().enumerate() {
        match Effort::from_wire(*number) {
            Some(effort) => efforts.push(effort),
            None => faults.push(
                format!("efforts[{position}]"),
                "must be low, medium or high",
            ),
        }
    }
    faults
        .into_result()
        .map_err(|faults| status::from_faults(&faults))?;
    Ok(resource::Model {
        id,
        targets: model.targets.into_iter().map(Target::from_config).collect(),
        capabilities,
        efforts,
        context_window: model.context_window,
        disabled: model.disabled,
    })
}

fn to_wire(stored: Stored<resource::Model>) -> admin::Model {
    let model = stored.resource;
    admin::Model {
        name: Collection::Models.name(&model.id),
        targets: model.targets.iter().map(Target::to_config).collect(),
        capabilities: model.capabilities.iter().map(|c| c.to_wire()).collect(),
        efforts: model.efforts.iter().map(|e| e.to_wire()).collect(),
        context_window: model.context_window,
        disabled: model.disabled,
        create_time: Some(to_timestamp(stored.created_at)),
        update_time: Some(to_timestamp(stored.updated_at)),
        config_version: stored.config_version,
        etag: String::new(),
    }
}

fn answer(stored: Stored<resource::Model>) -> Response<admin::Model> {
    Response::new(to_wire(stored))
}
