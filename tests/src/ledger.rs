//! The ledger, as the admin API gives it.

use anyhow::{Context as _, Result};
use prost::Message as _;
use proto::{
    admin::v1::{ListUsageRecordsRequest, StoredUsageRecord, usage_client::UsageClient},
    metering::v1::UsageRecord,
};
use tonic::{Request, metadata::MetadataValue, transport::Channel};

/// A record and where it stands.
#[derive(Clone, Debug)]
pub struct Stored {
    pub record: UsageRecord,
    pub place: StoredUsageRecord,
}

/// Every usage record, oldest first.
pub fn records(control_plane: &str, admin_token: &str) -> Result<Vec<Stored>> {
    runtime()?.block_on(async {
        let channel = Channel::from_shared(control_plane.to_owned())?
            .connect()
            .await?;
        let mut client = UsageClient::new(channel).max_decoding_message_size(64 * 1024 * 1024);
        let mut stored = Vec::new();
        let mut page_token = String::new();
        loop {
            let mut request = Request::new(ListUsageRecordsRequest {
                page_size: 1000,
                page_token,
                ..ListUsageRecordsRequest::default()
            });
            let bearer: MetadataValue<_> = format!("Bearer {admin_token}").parse()?;
            request.metadata_mut().insert("authorization", bearer);
            let page = client.list_usage_records(request).await?.into_inner();
            for place in page.records {
                let record = UsageRecord::decode(place.record.as_slice())
                    .context("a stored record does not decode")?;
                stored.push(Stored { record, place });
            }
            page_token = page.next_page_token;
            if page_token.is_empty() {
                stored.reverse();
                return Ok(stored);
            }
        }
    })
}

/// A runtime for one call.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("runtime")
}
