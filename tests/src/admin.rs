//! The admin API, called as a program would.

use anyhow::Result;
use proto::{
    admin::v1::{
        Bucket, CreateLimitRequest, CreateVirtualKeyRequest, Limit, ListBucketsRequest, VirtualKey,
        limits_client::LimitsClient, virtual_keys_client::VirtualKeysClient,
    },
    config::v1 as config,
};
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::Interceptor,
    transport::Channel,
};

use crate::{ledger, stack::Stack};

/// Adds the admin token to each call.
#[derive(Clone, Debug)]
struct Admin {
    authorization: MetadataValue<Ascii>,
}

impl Interceptor for Admin {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let authorization = self.authorization.clone();
        request
            .metadata_mut()
            .insert("authorization", authorization);
        Ok(request)
    }
}

async fn connect(stack: &Stack) -> Result<(Channel, Admin)> {
    let access = &stack.control_plane.access;
    let authorization = format!("Bearer {}", access.tokens.admin_token()?).parse()?;
    let channel = Channel::from_shared(access.url())?.connect().await?;
    Ok((channel, Admin { authorization }))
}

impl Stack {
    /// Makes a limit and waits until every Envoy has it.
    pub fn limit(&self, id: &str, values: config::Limit) {
        let create = async |(channel, admin): (Channel, Admin)| -> Result<()> {
            let mut limits = LimitsClient::with_interceptor(channel, admin);
            let limit = Limit {
                values: Some(values),
                ..Limit::default()
            };
            limits
                .create_limit(CreateLimitRequest {
                    limit_id: id.to_owned(),
                    limit: Some(limit),
                })
                .await?;
            Ok(())
        };
        self.admin(create).expect("a limit");
        if !self.envoys.is_empty() {
            self.turnpike(&["wait"]);
        }
    }

    /// The counters of a limit, by subject; those of past windows too.
    pub fn buckets(&self, limit: &str) -> Vec<Bucket> {
        let list = async |(channel, admin): (Channel, Admin)| -> Result<Vec<Bucket>> {
            let mut limits = LimitsClient::with_interceptor(channel, admin);
            let mut buckets = Vec::new();
            let mut page_token = String::new();
            loop {
                let request = ListBucketsRequest {
                    limit: format!("limits/{limit}"),
                    include_past: true,
                    page_size: 1_000,
                    page_token,
                    ..ListBucketsRequest::default()
                };
                let page = limits.list_buckets(request).await?.into_inner();
                buckets.extend(page.buckets);
                page_token = page.next_page_token;
                if page_token.is_empty() {
                    return Ok(buckets);
                }
            }
        };
        self.admin(list).expect("buckets")
    }

    /// The one bucket of a limit.
    pub fn bucket(&self, limit: &str) -> Bucket {
        let [bucket] = self.buckets(limit).try_into().expect("one bucket");
        bucket
    }

    /// New keys of team `demo`, known to every Envoy.
    pub fn keys(&self, ids: &[String]) -> Vec<String> {
        let create = async |(channel, admin): (Channel, Admin)| -> Result<Vec<String>> {
            let mut keys = VirtualKeysClient::with_interceptor(channel, admin);
            let mut secrets = Vec::new();
            for id in ids {
                let request = CreateVirtualKeyRequest {
                    virtual_key_id: id.clone(),
                    virtual_key: Some(VirtualKey {
                        team: "teams/demo".to_owned(),
                        ..VirtualKey::default()
                    }),
                    ..CreateVirtualKeyRequest::default()
                };
                secrets.push(keys.create_virtual_key(request).await?.into_inner().secret);
            }
            Ok(secrets)
        };
        let secrets = self.admin(create).expect("keys");
        self.turnpike(&["wait"]);
        secrets
    }

    fn admin<T>(&self, call: impl AsyncFnOnce((Channel, Admin)) -> Result<T>) -> Result<T> {
        ledger::runtime()?.block_on(async { call(connect(self).await?).await })
    }
}
