//! The price book; every version is kept.

use control_plane_core::name::PRICE_BOOK;
use control_plane_core::published::Kind;
use control_plane_core::resource::{Price, PriceBook};
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::SINGLETON;
use crate::edit::Edit;
use crate::store::retry;
use crate::stored::{signed, unsigned};
use crate::{Actor, Error, Store, Stored};

impl Store {
    /// The newest version of the price book; version 0 until there is one.
    ///
    /// # Errors
    /// [`Error::Unreadable`], or when Postgres is away.
    pub async fn price_book(&self) -> Result<Stored<PriceBook>, Error> {
        load(&mut *self.pool.acquire().await?).await
    }

    /// Replaces the prices under the next version.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every fault and its place, or when Postgres is away.
    pub async fn update_price_book(
        &self,
        actor: &Actor,
        prices: Vec<Price>,
    ) -> Result<Stored<PriceBook>, Error> {
        let book = PriceBook { version: 0, prices };
        book.validate().map_err(Error::Invalid)?;
        let edit = Edit {
            transaction: "update_price_book",
            method: "UpdatePriceBook",
            actor,
            kind: Kind::PriceBook,
            id: SINGLETON,
            name: PRICE_BOOK.to_owned(),
        };
        let prices = super::to_json(&book.prices, PRICE_BOOK)?;
        retry(|| async {
            let mut open = self.open(&edit).await?;
            sqlx::query!(
                "insert into price_book (version, prices, created_by)
                 select coalesce(max(version), 0) + 1, $1::text::jsonb, $2 from price_book",
                prices,
                edit.transaction,
            )
            .execute(open.tx())
            .await?;
            open.publish().await?;
            let stored = load(open.tx()).await?;
            open.commit(stored).await
        })
        .await
    }

    /// An earlier version of the price book, for costs that were computed with it.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unreadable`], or when Postgres is away.
    pub async fn price_book_version(&self, version: u64) -> Result<PriceBook, Error> {
        let row = sqlx::query!(
            r#"select prices::text as "prices!" from price_book where version = $1"#,
            signed(version),
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else {
            return Err(Error::NotFound(format!("{PRICE_BOOK} version {version}")));
        };
        Ok(PriceBook {
            version,
            prices: super::from_json(&row.prices, PRICE_BOOK)?,
        })
    }
}

/// The newest price book.
pub(crate) async fn load(tx: &mut PgConnection) -> Result<Stored<PriceBook>, Error> {
    let row = sqlx::query!(
        r#"select version, prices::text as "prices!", created_at,
                  (select version from published_resource where kind = 'price_book')
                    as published_version
           from price_book order by version desc limit 1"#
    )
    .fetch_optional(tx)
    .await?;
    let Some(row) = row else {
        return Ok(Stored {
            resource: PriceBook::default(),
            created_at: OffsetDateTime::UNIX_EPOCH,
            updated_at: OffsetDateTime::UNIX_EPOCH,
            config_version: 0,
        });
    };
    Ok(Stored {
        resource: PriceBook {
            version: unsigned(row.version),
            prices: super::from_json(&row.prices, PRICE_BOOK)?,
        },
        created_at: row.created_at,
        updated_at: row.created_at,
        config_version: row.published_version.map_or(0, unsigned),
    })
}
