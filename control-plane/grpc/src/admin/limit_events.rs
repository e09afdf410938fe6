//! What happened to limits: thresholds that were passed, and what was never accounted for.

use control_plane_core::name::Collection;
use control_plane_store::{Delivery, EventFilter, ToldEvent, Unaccounted};
use proto::admin::v1 as admin;
use tonic::Status;

use super::{Admin, optional_id, page_request};
use crate::clock::to_timestamp;
use crate::status;

impl Admin {
    pub(super) async fn events(
        &self,
        request: admin::ListLimitEventsRequest,
    ) -> Result<admin::ListLimitEventsResponse, Status> {
        let filter = EventFilter {
            limit: optional_id(Collection::Limits, &request.limit, "limit")?,
            undelivered: request.undelivered,
        };
        let page = page_request(request.page_size, request.page_token)?;
        let listed = self.store.limit_events(&filter, &page).await;
        let page = listed.map_err(status::from_store)?;
        Ok(admin::ListLimitEventsResponse {
            events: page.items.into_iter().map(event).collect(),
            next_page_token: page.next_page_token,
        })
    }

    pub(super) async fn lost(
        &self,
        request: admin::ListUnaccountedRequest,
    ) -> Result<admin::ListUnaccountedResponse, Status> {
        let limit = optional_id(Collection::Limits, &request.limit, "limit")?;
        let page = page_request(request.page_size, request.page_token)?;
        let listed = self.store.unaccounted(limit.as_deref(), &page).await;
        let page = listed.map_err(status::from_store)?;
        Ok(admin::ListUnaccountedResponse {
            unaccounted: page.items.into_iter().map(unaccounted).collect(),
            next_page_token: page.next_page_token,
        })
    }
}

fn event(told: ToldEvent) -> admin::LimitEvent {
    let event = told.event;
    let (state, next_try, delivered) = match told.delivery {
        Delivery::Pending { try_at } => (admin::DeliveryState::Pending, Some(try_at), None),
        Delivery::Delivered { at } => (admin::DeliveryState::Delivered, None, Some(at)),
        Delivery::GivenUp => (admin::DeliveryState::GivenUp, None, None),
    };
    admin::LimitEvent {
        id: event.id.to_string(),
        limit: Collection::Limits.name(&event.limit),
        subject: event.subject,
        window_start_time: Some(to_timestamp(event.window_start)),
        reset_time: event.window_end.map(to_timestamp),
        threshold: event.threshold,
        settled: event.settled,
        amount: event.amount,
        raise_time: Some(to_timestamp(event.raised_at)),
        state: state.into(),
        tries: told.tries,
        failure: told.failure,
        next_try_time: next_try.map(to_timestamp),
        delivery_time: delivered.map(to_timestamp),
    }
}

fn unaccounted(lost: Unaccounted) -> admin::Unaccounted {
    admin::Unaccounted {
        limit: Collection::Limits.name(&lost.limit),
        subject: lost.subject,
        window_start_time: Some(to_timestamp(lost.window_start)),
        boot_id: lost.boot_id.0.to_vec(),
        node: lost.node,
        epoch: lost.epoch,
        amount: i64::try_from(lost.amount).unwrap_or(i64::MAX),
        loss_time: lost.lost_at.map(to_timestamp),
    }
}
