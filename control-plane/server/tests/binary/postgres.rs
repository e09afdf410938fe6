//! A database of its own for each test, behind a door that can be shut: to the control plane, a
//! shut door is a Postgres that was stopped.

use std::path::PathBuf;
use std::str::FromStr as _;

use sqlx::Connection as _;
use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

pub(crate) struct Postgres {
    server_url: String,
    database: String,
    port: u16,
    open: watch::Sender<bool>,
}

impl Postgres {
    /// A database that answers at once if `open`, and else once the door is opened.
    pub(crate) async fn new(open: bool) -> Self {
        let server_url = std::env::var("TURNPIKE_TEST_DATABASE_URL")
            .expect("TURNPIKE_TEST_DATABASE_URL must hold the URL of a Postgres superuser");
        let mut random = [0; 8];
        getrandom::fill(&mut random).unwrap();
        let database = format!("turnpike_test_{:016x}", u64::from_be_bytes(random));
        execute(&server_url, &format!("create database {database}")).await;
        let (open, is_open) = watch::channel(open);
        let reserved = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = reserved.local_addr().unwrap().port();
        drop(reserved);
        let options = PgConnectOptions::from_str(&server_url).unwrap();
        tokio::spawn(keep_door(options, port, is_open));
        Self {
            server_url,
            database,
            port,
            open,
        }
    }

    /// The URL through the door.
    pub(crate) fn url(&self) -> String {
        let options = PgConnectOptions::from_str(&self.server_url).unwrap();
        let user = options.get_username();
        format!(
            "postgres://{user}@127.0.0.1:{}/{}",
            self.port, self.database
        )
    }

    /// Cuts every connection and takes no new ones.
    pub(crate) fn stop(&self) {
        self.open.send_replace(false);
    }

    pub(crate) fn start(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let url = self.server_url.clone();
        let statement = format!("drop database {} with (force)", self.database);
        let dropped = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(execute(&url, &statement));
        })
        .join();
        assert!(dropped.is_ok() || std::thread::panicking());
    }
}

async fn execute(url: &str, statement: &str) {
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement.to_owned()))
        .execute(&mut connection)
        .await
        .unwrap();
}

async fn keep_door(options: PgConnectOptions, port: u16, mut is_open: watch::Receiver<bool>) {
    while is_open.wait_for(|open| *open).await.is_ok() {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let mut until_shut = is_open.clone();
        loop {
            tokio::select! {
                inside = listener.accept() => {
                    let (inside, _) = inside.unwrap();
                    tokio::spawn(pass(options.clone(), inside, is_open.clone()));
                }
                _ = until_shut.wait_for(|open| !*open) => break,
            }
        }
    }
}

trait Socket: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Socket for T {}

async fn pass(
    options: PgConnectOptions,
    mut inside: TcpStream,
    mut is_open: watch::Receiver<bool>,
) {
    let port = options.get_port();
    let directory: Option<PathBuf> = match options.get_socket() {
        Some(directory) => Some(directory.clone()),
        None => Some(PathBuf::from(options.get_host())).filter(|host| host.is_absolute()),
    };
    let mut outside: Box<dyn Socket> = match directory {
        Some(directory) => {
            let path = directory.join(format!(".s.PGSQL.{port}"));
            Box::new(UnixStream::connect(path).await.unwrap())
        }
        None => Box::new(
            TcpStream::connect((options.get_host(), port))
                .await
                .unwrap(),
        ),
    };
    tokio::select! {
        _ = copy_bidirectional(&mut inside, &mut outside) => {}
        _ = is_open.wait_for(|open| !*open) => {}
    }
}
