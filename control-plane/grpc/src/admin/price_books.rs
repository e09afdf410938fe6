//! `turnpike.admin.v1.PriceBooks`

use control_plane_core::name::PRICE_BOOK;
use control_plane_core::resource::{Price, PriceBook};
use control_plane_store::Stored;
use proto::admin::v1 as admin;
use proto::admin::v1::price_books_server::PriceBooks;
use tonic::{Request, Response, Status};

use super::{Admin, actor, required};
use crate::clock::to_timestamp;
use crate::status;

#[tonic::async_trait]
impl PriceBooks for Admin {
    async fn get_price_book(
        &self,
        _: Request<admin::GetPriceBookRequest>,
    ) -> Result<Response<admin::PriceBook>, Status> {
        let stored = self.store.price_book().await;
        stored.map(answer).map_err(status::from_store)
    }

    async fn update_price_book(
        &self,
        request: Request<admin::UpdatePriceBookRequest>,
    ) -> Result<Response<admin::PriceBook>, Status> {
        let price_book = required(request.into_inner().price_book, "price_book")?;
        let prices = price_book
            .prices
            .into_iter()
            .map(Price::from_config)
            .collect();
        let stored = self.store.update_price_book(&actor(), prices).await;
        stored.map(answer).map_err(status::from_store)
    }
}

fn answer(stored: Stored<PriceBook>) -> Response<admin::PriceBook> {
    let book = stored.resource;
    Response::new(admin::PriceBook {
        name: PRICE_BOOK.to_owned(),
        version: book.version,
        prices: book.prices.iter().map(Price::to_config).collect(),
        update_time: Some(to_timestamp(stored.updated_at)),
        config_version: stored.config_version,
        etag: String::new(),
    })
}
