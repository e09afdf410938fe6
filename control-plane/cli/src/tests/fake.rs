//! A control plane in memory: it stores what it is sent, counts versions, and answers as scripted.

mod operate;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use proto::admin::v1 as pb;
use proto::admin::v1::config_server::ConfigServer;
use proto::admin::v1::credentials_server::{Credentials, CredentialsServer};
use proto::admin::v1::limits_server::{Limits, LimitsServer};
use proto::admin::v1::models_server::{Models, ModelsServer};
use proto::admin::v1::price_books_server::{PriceBooks, PriceBooksServer};
use proto::admin::v1::providers_server::{Providers, ProvidersServer};
use proto::admin::v1::rule_sets_server::{RuleSets, RuleSetsServer};
use proto::admin::v1::settings_service_server::{SettingsService, SettingsServiceServer};
use proto::admin::v1::teams_server::{Teams, TeamsServer};
use proto::admin::v1::usage_server::UsageServer;
use proto::admin::v1::virtual_keys_server::{VirtualKeys, VirtualKeysServer};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, async_trait};

pub(super) const TOKEN: &str = "admin-test";
/// Largest page, so that every list of three has two.
const PAGE: usize = 2;

/// Where it listens, and what it holds.
pub(super) struct Fake {
    pub(super) address: String,
    shared: Shared,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<State>>);

#[derive(Default)]
pub(super) struct State {
    version: u64,
    /// Methods in the order of their calls, each with the resource it named.
    pub(super) calls: Vec<String>,
    pub(super) teams: BTreeMap<String, pb::Team>,
    pub(super) keys: BTreeMap<String, pb::VirtualKey>,
    pub(super) providers: BTreeMap<String, pb::Provider>,
    pub(super) credentials: BTreeMap<String, pb::Credential>,
    pub(super) models: BTreeMap<String, pb::Model>,
    pub(super) limits: BTreeMap<String, pb::Limit>,
    pub(super) buckets: BTreeMap<String, pb::Bucket>,
    pub(super) statuses: BTreeMap<String, pb::LimitStatus>,
    pub(super) events: BTreeMap<String, pb::LimitEvent>,
    pub(super) unaccounted: BTreeMap<String, pb::Unaccounted>,
    pub(super) adjust_request: Option<pb::AdjustBucketRequest>,
    pub(super) buckets_request: Option<pb::ListBucketsRequest>,
    pub(super) rule_set: pb::RuleSet,
    pub(super) price_book: pb::PriceBook,
    pub(super) settings: pb::Settings,
    pub(super) imported: Vec<String>,
    pub(super) usage_query: Option<pb::QueryUsageRequest>,
    pub(super) usage_rows: Vec<pb::UsageRow>,
    pub(super) reprice_request: Option<pb::RepriceUsageRequest>,
    pub(super) reprice_answer: pb::RepriceUsageResponse,
    pub(super) records_query: Option<pb::ListUsageRecordsRequest>,
    pub(super) records: Vec<pb::StoredUsageRecord>,
    pub(super) wait_request: Option<pb::WaitRequest>,
    pub(super) wait_answer: pb::WaitResponse,
    pub(super) nodes: pb::ListNodesResponse,
    pub(super) audit: Vec<pb::AuditEntry>,
    /// Never answers `list_nodes`.
    pub(super) is_silent: bool,
    /// Refuses this method with this status.
    pub(super) refuse: Option<(&'static str, Status)>,
}

impl Fake {
    pub(super) async fn start() -> Self {
        let shared = Shared::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let service = shared.clone();
        let router = tonic::transport::Server::builder()
            .add_service(TeamsServer::with_interceptor(service.clone(), authenticate))
            .add_service(VirtualKeysServer::with_interceptor(
                service.clone(),
                authenticate,
            ))
            .add_service(ProvidersServer::with_interceptor(
                service.clone(),
                authenticate,
            ))
            .add_service(CredentialsServer::with_interceptor(
                service.clone(),
                authenticate,
            ))
            .add_service(LimitsServer::with_interceptor(
                service.clone(),
                authenticate,
            ))
            .add_service(ModelsServer::with_interceptor(
                service.clone(),
                authenticate,
            ))
            .add_service(RuleSetsServer::with_interceptor(
                service.clone(),
                authenticate,
            ))
            .add_service(PriceBooksServer::with_interceptor(
                service.clone(),
                authenticate,
            ))
            .add_service(SettingsServiceServer::with_interceptor(
                service.clone(),
                authenticate,
            ))
            .add_service(UsageServer::with_interceptor(service.clone(), authenticate))
            .add_service(ConfigServer::with_interceptor(service, authenticate));
        tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
        Self { address, shared }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap()
    }
}
fn authenticate(request: Request<()>) -> Result<Request<()>, Status> {
    match request.metadata().get("authorization") {
        Some(value) if value == format!("Bearer {TOKEN}").as_str() => Ok(request),
        _ => Err(Status::unauthenticated("admin token")),
    }
}

impl Shared {
    /// Notes a call, and refuses it when the script says so.
    fn enter(&self, method: &'static str, what: &str) -> Result<MutexGuard<'_, State>, Status> {
        let mut state = self.0.lock().unwrap();
        state
            .calls
            .push(format!("{method} {what}").trim().to_owned());
        match &state.refuse {
            Some((refused, status)) if *refused == method => Err(status.clone()),
            _ => Ok(state),
        }
    }
}

impl State {
    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }
}

/// A page that starts after the name in the token.
fn page<T: Clone>(
    store: &BTreeMap<String, T>,
    keep: impl Fn(&T) -> bool,
    size: i32,
    token: &str,
) -> (Vec<T>, String) {
    let size = usize::try_from(size).unwrap().clamp(1, PAGE);
    let mut after = store
        .iter()
        .filter(|(name, item)| name.as_str() > token && keep(item));
    let page: Vec<(&String, &T)> = after.by_ref().take(size).collect();
    let next = match (page.last(), after.next()) {
        (Some((name, _)), Some(_)) => (*name).clone(),
        _ => String::new(),
    };
    (
        page.into_iter().map(|(_, item)| item.clone()).collect(),
        next,
    )
}

macro_rules! collection {
    (
        $service:ident, $store:ident, $prefix:literal, $message:ident, $body:ident, $id:ident,
        $create:ident($create_request:ident), $get:ident($get_request:ident),
        $list:ident($list_request:ident -> $list_response:ident { $items:ident } $keep:expr),
        $update:ident($update_request:ident),
        $delete:ident($delete_request:ident -> $delete_response:ident)
        $(, $more:item)*
    ) => {
        #[async_trait]
        impl $service for Shared {
            async fn $create(
                &self,
                request: Request<pb::$create_request>,
            ) -> Result<Response<pb::$message>, Status> {
                let request = request.into_inner();
                let name = format!("{}{}", $prefix, request.$id);
                let mut state = self.enter(stringify!($create), &name)?;
                if state.$store.contains_key(&name) {
                    return Err(Status::already_exists(name));
                }
                let mut message = request.$body.unwrap();
                assert_eq!(message.name, "", "set by the server");
                message.name = name.clone();
                message.config_version = state.next_version();
                state.$store.insert(name, message.clone());
                Ok(Response::new(message))
            }

            async fn $get(
                &self,
                request: Request<pb::$get_request>,
            ) -> Result<Response<pb::$message>, Status> {
                let name = request.into_inner().name;
                let state = self.enter(stringify!($get), &name)?;
                match state.$store.get(&name) {
                    Some(message) => Ok(Response::new(message.clone())),
                    None => Err(Status::not_found(name)),
                }
            }

            async fn $list(
                &self,
                request: Request<pb::$list_request>,
            ) -> Result<Response<pb::$list_response>, Status> {
                let request = request.into_inner();
                let state = self.enter(stringify!($list), "")?;
                let keep: fn(&pb::$list_request, &pb::$message) -> bool = $keep;
                let ($items, next_page_token) = page(
                    &state.$store,
                    |item| keep(&request, item),
                    request.page_size,
                    &request.page_token,
                );
                Ok(Response::new(pb::$list_response {
                    $items,
                    next_page_token,
                }))
            }

            async fn $update(
                &self,
                request: Request<pb::$update_request>,
            ) -> Result<Response<pb::$message>, Status> {
                let request = request.into_inner();
                assert_eq!(request.update_mask, None);
                let mut message = request.$body.unwrap();
                let mut state = self.enter(stringify!($update), &message.name)?;
                if !state.$store.contains_key(&message.name) {
                    return Err(Status::not_found(message.name));
                }
                message.config_version = state.next_version();
                state.$store.insert(message.name.clone(), message.clone());
                Ok(Response::new(message))
            }

            async fn $delete(
                &self,
                request: Request<pb::$delete_request>,
            ) -> Result<Response<pb::$delete_response>, Status> {
                let name = request.into_inner().name;
                let mut state = self.enter(stringify!($delete), &name)?;
                match state.$store.remove(&name) {
                    Some(_) => Ok(Response::new(pb::$delete_response {
                        config_version: state.next_version(),
                    })),
                    None => Err(Status::not_found(name)),
                }
            }

            $($more)*
        }
    };
}

collection!(
    Teams, teams, "teams/", Team, team, team_id,
    create_team(CreateTeamRequest), get_team(GetTeamRequest),
    list_teams(ListTeamsRequest -> ListTeamsResponse { teams } |_, _| true),
    update_team(UpdateTeamRequest), delete_team(DeleteTeamRequest -> DeleteTeamResponse)
);

collection!(
    Providers, providers, "providers/", Provider, provider, provider_id,
    create_provider(CreateProviderRequest), get_provider(GetProviderRequest),
    list_providers(ListProvidersRequest -> ListProvidersResponse { providers } |_, _| true),
    update_provider(UpdateProviderRequest),
    delete_provider(DeleteProviderRequest -> DeleteProviderResponse)
);

collection!(
    Credentials, credentials, "credentials/", Credential, credential, credential_id,
    create_credential(CreateCredentialRequest), get_credential(GetCredentialRequest),
    list_credentials(ListCredentialsRequest -> ListCredentialsResponse { credentials }
        |request, item| request.provider.is_empty() || request.provider == item.provider),
    update_credential(UpdateCredentialRequest),
    delete_credential(DeleteCredentialRequest -> DeleteCredentialResponse)
);

collection!(
    Models, models, "models/", Model, model, model_id,
    create_model(CreateModelRequest), get_model(GetModelRequest),
    list_models(ListModelsRequest -> ListModelsResponse { models } |_, _| true),
    update_model(UpdateModelRequest), delete_model(DeleteModelRequest -> DeleteModelResponse)
);

collection!(
    Limits, limits, "limits/", Limit, limit, limit_id,
    create_limit(CreateLimitRequest), get_limit(GetLimitRequest),
    list_limits(ListLimitsRequest -> ListLimitsResponse { limits } |_, _| true),
    update_limit(UpdateLimitRequest), delete_limit(DeleteLimitRequest -> DeleteLimitResponse),
    async fn list_buckets(
        &self,
        request: Request<pb::ListBucketsRequest>,
    ) -> Result<Response<pb::ListBucketsResponse>, Status> {
        let request = request.into_inner();
        let mut state = self.enter("list_buckets", &request.limit)?;
        let keep = |bucket: &pb::Bucket| {
            request.limit.is_empty() || request.limit == bucket.limit
        };
        let (buckets, next_page_token) =
            page(&state.buckets, keep, request.page_size, &request.page_token);
        state.buckets_request = Some(request);
        Ok(Response::new(pb::ListBucketsResponse {
            buckets,
            next_page_token,
        }))
    },
    async fn list_limit_statuses(
        &self,
        request: Request<pb::ListLimitStatusesRequest>,
    ) -> Result<Response<pb::ListLimitStatusesResponse>, Status> {
        let request = request.into_inner();
        let state = self.enter("list_limit_statuses", &request.limit)?;
        let of = |status: &pb::LimitStatus| status.bucket.clone().unwrap_or_default().limit;
        let keep =
            |status: &pb::LimitStatus| request.limit.is_empty() || request.limit == of(status);
        let (statuses, next_page_token) =
            page(&state.statuses, keep, request.page_size, &request.page_token);
        Ok(Response::new(pb::ListLimitStatusesResponse {
            statuses,
            next_page_token,
        }))
    },
    async fn list_limit_events(
        &self,
        request: Request<pb::ListLimitEventsRequest>,
    ) -> Result<Response<pb::ListLimitEventsResponse>, Status> {
        let request = request.into_inner();
        let state = self.enter("list_limit_events", &request.limit)?;
        let is_told = |event: &pb::LimitEvent| event.state() == pb::DeliveryState::Delivered;
        let keep = |event: &pb::LimitEvent| {
            (request.limit.is_empty() || request.limit == event.limit)
                && !(request.undelivered && is_told(event))
        };
        let (events, next_page_token) =
            page(&state.events, keep, request.page_size, &request.page_token);
        Ok(Response::new(pb::ListLimitEventsResponse {
            events,
            next_page_token,
        }))
    },
    async fn list_unaccounted(
        &self,
        request: Request<pb::ListUnaccountedRequest>,
    ) -> Result<Response<pb::ListUnaccountedResponse>, Status> {
        let request = request.into_inner();
        let state = self.enter("list_unaccounted", &request.limit)?;
        let keep = |lost: &pb::Unaccounted| request.limit.is_empty() || request.limit == lost.limit;
        let (unaccounted, next_page_token) =
            page(&state.unaccounted, keep, request.page_size, &request.page_token);
        Ok(Response::new(pb::ListUnaccountedResponse {
            unaccounted,
            next_page_token,
        }))
    },
    async fn adjust_bucket(
        &self,
        request: Request<pb::AdjustBucketRequest>,
    ) -> Result<Response<pb::Bucket>, Status> {
        let request = request.into_inner();
        let mut state = self.enter("adjust_bucket", &request.limit)?;
        let bucket = pb::Bucket {
            limit: request.limit.clone(),
            subject: request.subject.clone(),
            amount: 10_000_000_000,
            settled: request.delta,
            remaining: 10_000_000_000 - request.delta,
            ..Default::default()
        };
        state.adjust_request = Some(request);
        Ok(Response::new(bucket))
    }
);

#[async_trait]
impl VirtualKeys for Shared {
    async fn create_virtual_key(
        &self,
        request: Request<pb::CreateVirtualKeyRequest>,
    ) -> Result<Response<pb::CreateVirtualKeyResponse>, Status> {
        let request = request.into_inner();
        let id = match request.virtual_key_id.as_str() {
            "" => "made",
            id => id,
        };
        let name = format!("virtualKeys/{id}");
        let mut state = self.enter("create_virtual_key", &name)?;
        let mut key = request.virtual_key.unwrap();
        key.name = name.clone();
        key.config_version = state.next_version();
        let secret = match request.import_secret.as_str() {
            "" => format!("tp_{id}_test"),
            imported => {
                state.imported.push(imported.to_owned());
                String::new()
            }
        };
        key.secret_hint = "tp_".to_owned();
        state.keys.insert(name, key.clone());
        Ok(Response::new(pb::CreateVirtualKeyResponse {
            virtual_key: Some(key),
            secret,
        }))
    }

    async fn get_virtual_key(
        &self,
        request: Request<pb::GetVirtualKeyRequest>,
    ) -> Result<Response<pb::VirtualKey>, Status> {
        let name = request.into_inner().name;
        let state = self.enter("get_virtual_key", &name)?;
        let key = state.keys.get(&name).cloned();
        key.map(Response::new)
            .ok_or_else(|| Status::not_found(name))
    }

    async fn list_virtual_keys(
        &self,
        request: Request<pb::ListVirtualKeysRequest>,
    ) -> Result<Response<pb::ListVirtualKeysResponse>, Status> {
        let request = request.into_inner();
        let state = self.enter("list_virtual_keys", &request.team)?;
        let keep = |key: &pb::VirtualKey| request.team.is_empty() || key.team == request.team;
        let (virtual_keys, next_page_token) =
            page(&state.keys, keep, request.page_size, &request.page_token);
        Ok(Response::new(pb::ListVirtualKeysResponse {
            virtual_keys,
            next_page_token,
        }))
    }

    async fn update_virtual_key(
        &self,
        request: Request<pb::UpdateVirtualKeyRequest>,
    ) -> Result<Response<pb::VirtualKey>, Status> {
        let mut key = request.into_inner().virtual_key.unwrap();
        let mut state = self.enter("update_virtual_key", &key.name)?;
        key.config_version = state.next_version();
        state.keys.insert(key.name.clone(), key.clone());
        Ok(Response::new(key))
    }

    async fn delete_virtual_key(
        &self,
        request: Request<pb::DeleteVirtualKeyRequest>,
    ) -> Result<Response<pb::DeleteVirtualKeyResponse>, Status> {
        let name = request.into_inner().name;
        let mut state = self.enter("delete_virtual_key", &name)?;
        state
            .keys
            .remove(&name)
            .ok_or_else(|| Status::not_found(name))?;
        let config_version = state.next_version();
        Ok(Response::new(pb::DeleteVirtualKeyResponse {
            config_version,
        }))
    }
}

#[async_trait]
impl RuleSets for Shared {
    async fn get_rule_set(
        &self,
        _request: Request<pb::GetRuleSetRequest>,
    ) -> Result<Response<pb::RuleSet>, Status> {
        Ok(Response::new(
            self.enter("get_rule_set", "")?.rule_set.clone(),
        ))
    }

    async fn update_rule_set(
        &self,
        request: Request<pb::UpdateRuleSetRequest>,
    ) -> Result<Response<pb::RuleSet>, Status> {
        let mut state = self.enter("update_rule_set", "")?;
        state.rule_set = request.into_inner().rule_set.unwrap();
        state.rule_set.config_version = state.next_version();
        Ok(Response::new(state.rule_set.clone()))
    }
}

#[async_trait]
impl PriceBooks for Shared {
    async fn get_price_book(
        &self,
        _request: Request<pb::GetPriceBookRequest>,
    ) -> Result<Response<pb::PriceBook>, Status> {
        Ok(Response::new(
            self.enter("get_price_book", "")?.price_book.clone(),
        ))
    }

    async fn update_price_book(
        &self,
        request: Request<pb::UpdatePriceBookRequest>,
    ) -> Result<Response<pb::PriceBook>, Status> {
        let mut state = self.enter("update_price_book", "")?;
        let version = state.price_book.version + 1;
        state.price_book = request.into_inner().price_book.unwrap();
        state.price_book.version = version;
        state.price_book.config_version = state.next_version();
        Ok(Response::new(state.price_book.clone()))
    }
}

#[async_trait]
impl SettingsService for Shared {
    async fn get_settings(
        &self,
        _request: Request<pb::GetSettingsRequest>,
    ) -> Result<Response<pb::Settings>, Status> {
        Ok(Response::new(
            self.enter("get_settings", "")?.settings.clone(),
        ))
    }

    async fn update_settings(
        &self,
        request: Request<pb::UpdateSettingsRequest>,
    ) -> Result<Response<pb::Settings>, Status> {
        let mut state = self.enter("update_settings", "")?;
        state.settings = request.into_inner().settings.unwrap();
        state.settings.config_version = state.next_version();
        Ok(Response::new(state.settings.clone()))
    }
}
