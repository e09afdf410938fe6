//! `turnpike.admin.v1.RuleSets`

use control_plane_core::name::RULE_SET;
use control_plane_core::resource::{Rule, RuleSet};
use control_plane_store::Stored;
use proto::admin::v1 as admin;
use proto::admin::v1::rule_sets_server::RuleSets;
use tonic::{Request, Response, Status};

use super::{Admin, actor, required};
use crate::clock::to_timestamp;
use crate::status;

#[tonic::async_trait]
impl RuleSets for Admin {
    async fn get_rule_set(
        &self,
        _: Request<admin::GetRuleSetRequest>,
    ) -> Result<Response<admin::RuleSet>, Status> {
        let stored = self.store.rule_set().await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn update_rule_set(
        &self,
        request: Request<admin::UpdateRuleSetRequest>,
    ) -> Result<Response<admin::RuleSet>, Status> {
        let rule_set = required(request.into_inner().rule_set, "rule_set")?;
        let rule_set =
            RuleSet::from_config(rule_set.rules).map_err(|faults| status::from_faults(&faults))?;
        let stored = self.store.update_rule_set(&actor(), rule_set).await;
        stored.map(answer).map_err(status::from_store)
    }
}

fn answer(stored: Stored<RuleSet>) -> Response<admin::RuleSet> {
    Response::new(admin::RuleSet {
        name: RULE_SET.to_owned(),
        rules: stored.resource.rules.iter().map(Rule::to_config).collect(),
        update_time: Some(to_timestamp(stored.updated_at)),
        config_version: stored.config_version,
        etag: String::new(),
    })
}
