//! The connection pool, the schema, and transactions.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use control_plane_core::resource::ClusterBuilder;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgPool, PgTransaction};

use crate::ledger::IntakeTotals;
use crate::limits::LeaseTicks;
use crate::secret_reader::SecretReader;
use crate::{Error, Options};

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// Oldest Postgres that is tested, as in `server_version_num`.
const OLDEST_POSTGRES: i32 = 150_000;
/// A first connection is waited for this long, so that a wrong address is told and not hung on.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A request waits this long for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_TRIES: u32 = 6;

/// The store. Clones share one pool.
#[derive(Clone)]
pub struct Store {
    pub(crate) pool: PgPool,
    pub(crate) secrets: Arc<SecretReader>,
    pub(crate) clusters: ClusterBuilder,
    pub(crate) record_days: u32,
    pub(crate) replica: Arc<str>,
    pub(crate) lease_ticks: Arc<LeaseTicks>,
    pub(crate) intake: Arc<IntakeTotals>,
}

/// Connections to Postgres.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    pub in_use: u64,
    pub idle: u64,
    /// That may be open at a time.
    pub limit: u64,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// Connects, and fails within 10 s when that is not possible.
    ///
    /// # Errors
    /// When the URL is wrong, Postgres is away, or it is older than 15.
    pub async fn connect(options: Options) -> Result<Self, Error> {
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(connect_options(&options.database_url)?);
        let version = tokio::time::timeout(CONNECT_TIMEOUT, server_version(&pool))
            .await
            .map_err(|_| Error::Unavailable("no answer within 10 s".to_owned()))??;
        if version < OLDEST_POSTGRES {
            let major = version / 10_000;
            let message = format!("postgres 15 or newer is needed, this is {major}");
            return Err(Error::Options(message));
        }
        Ok(Self {
            pool,
            secrets: Arc::new(SecretReader {
                keyring: options.keyring,
                secrets_dir: options.secrets_dir,
                environment: options.environment,
            }),
            clusters: options.clusters,
            record_days: options.record_days,
            replica: options.replica.into(),
            lease_ticks: Arc::default(),
            intake: Arc::default(),
        })
    }

    /// Brings the schema up to date. Replicas may do so at once: one runs, the others wait.
    ///
    /// # Errors
    /// [`Error::NewerSchema`] when a newer release has migrated the database.
    pub async fn migrate(&self) -> Result<(), Error> {
        let mut connection = self.pool.acquire().await?.detach();
        sqlx::raw_sql("set statement_timeout = 0; set lock_timeout = 0")
            .execute(&mut connection)
            .await?;
        MIGRATIONS
            .run_direct(None, &mut connection, false)
            .await
            .map_err(migrate_error)
    }

    /// How the pool is used right now.
    pub fn connections(&self) -> Connections {
        let open = u64::from(self.pool.size());
        let idle = u64::try_from(self.pool.num_idle()).unwrap_or(open);
        Connections {
            in_use: open.saturating_sub(idle),
            idle,
            limit: u64::from(self.pool.options().get_max_connections()),
        }
    }

    /// Whether Postgres answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), Error> {
        sqlx::query!("select 1 as one")
            .fetch_one(&self.pool)
            .await?;
        Ok(())
    }

    /// Begins a transaction. Its name is what `updated_by` columns show.
    pub(crate) async fn begin(&self, name: &'static str) -> Result<PgTransaction<'static>, Error> {
        let mut tx = self.pool.begin().await?;
        sqlx::query!("select set_config('turnpike.transaction', $1, true)", name)
            .fetch_one(&mut *tx)
            .await?;
        Ok(tx)
    }
}

/// Runs a transaction again when it lost against another one. Everything of it must be inside
/// `work`, its begin and its commit too.
pub(crate) async fn retry<T, F>(work: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut tries = 1;
    loop {
        match work().await {
            Err(error) if error.is_conflict() && tries < MAX_TRIES => {
                tracing::debug!(tries, %error, "a transaction lost a conflict, trying again");
                tokio::time::sleep(Duration::from_millis(5 << tries)).await;
                tries += 1;
            }
            done => return done,
        }
    }
}

fn connect_options(url: &str) -> Result<PgConnectOptions, Error> {
    // The text of a URL that does not parse may hold a password: it is not repeated.
    let wrong = || Error::Options("the database URL must be of the form postgres://…".to_owned());
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(wrong());
    }
    let options = PgConnectOptions::from_str(url).map_err(|_| wrong())?;
    Ok(options.application_name("turnpike-control-plane").options([
        ("statement_timeout", "30s"),
        ("lock_timeout", "10s"),
        ("idle_in_transaction_session_timeout", "60s"),
    ]))
}

async fn server_version(pool: &PgPool) -> Result<i32, Error> {
    let row = sqlx::query!(r#"select current_setting('server_version_num')::int as "version!""#)
        .fetch_one(pool)
        .await?;
    Ok(row.version)
}

fn migrate_error(error: MigrateError) -> Error {
    let newest = MIGRATIONS.iter().map(|migration| migration.version).max();
    match error {
        MigrateError::VersionMissing(found) => Error::NewerSchema {
            found,
            newest: newest.unwrap_or(0),
        },
        MigrateError::Execute(error) => error.into(),
        error => Error::Internal {
            code: "migration".to_owned(),
            message: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    async fn tries_of(code: &str) -> u32 {
        let tries = AtomicU32::new(0);
        let done: Result<(), Error> = retry(|| async {
            tries.fetch_add(1, Ordering::Relaxed);
            Err(Error::Internal {
                code: code.to_owned(),
                message: String::new(),
            })
        })
        .await;
        assert!(done.is_err());
        tries.into_inner()
    }

    #[tokio::test]
    async fn a_conflict_is_tried_again_within_a_bound_and_nothing_else_is() {
        assert_eq!(tries_of("40001").await, MAX_TRIES);
        assert_eq!(tries_of("40P01").await, MAX_TRIES);
        assert_eq!(tries_of("23514").await, 1);
    }
}
