//! `sqlx-prepare`: writes `.sqlx/`, what Postgres says about each query, so that builds check them
//! without a database.

use std::{
    fs,
    process::{Command, Stdio},
    time::SystemTime,
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    build::{cargo, run},
    layout::{StateDir, root, target},
    postgres::{Options, Server},
    process::Ask,
    stack::Started,
    steps::say,
};

/// The only crate with queries.
const PACKAGE: &str = "control-plane-store";

/// Migrates a throw-away database, has sqlx ask it about every query, and replaces `.sqlx/`.
pub fn prepare() -> Result<()> {
    let state = StateDir::open(&target().join("sqlx-state"))?;
    let _lock = state.lock()?;
    let server = Server::start_empty(&Options {
        dir: state.path().join("postgres"),
        logs: state.logs(),
        run_dir: state.run(),
        durable: false,
    })?;
    let (url, psql) = (server.url.clone(), server.bin_dir.join("psql"));
    let mut started = Started::default();
    started.push(server.process, Ask::Int);

    let folder = root().join("migrations");
    let entries = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    // `NNNN_verb_noun.sql`; what does not start with a digit is no migration.
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(|c: char| c.is_ascii_digit()) && name.ends_with(".sql")
    });
    files.sort();
    ensure!(!files.is_empty(), "no migrations in {}", folder.display());
    for file in &files {
        let mut migrate = Command::new(&psql);
        migrate.args([
            "-q",
            "-X",
            "-v",
            "ON_ERROR_STOP=1",
            "--single-transaction",
            "-f",
        ]);
        run(migrate.arg(file).arg(&url).stdout(Stdio::null()))?;
    }

    let queries = root().join(".sqlx");
    let fresh = state.path().join("queries");
    if fresh.exists() {
        fs::remove_dir_all(&fresh)?;
    }
    fs::create_dir_all(&fresh)?;
    // A build that cargo takes for fresh would ask nothing.
    let source = root().join("control-plane/store/src/lib.rs");
    fs::File::options()
        .append(true)
        .open(&source)?
        .set_modified(SystemTime::now())?;
    let mut check = cargo(["check", "--quiet", "-p", PACKAGE, "--all-targets"]);
    check
        .env("SQLX_OFFLINE", "false")
        .env("DATABASE_URL", url)
        .env("SQLX_OFFLINE_DIR", &fresh);
    run(&mut check)?;

    let count = fs::read_dir(&fresh)?.count();
    ensure!(count > 0, "sqlx wrote no query data");
    if queries.exists() {
        fs::remove_dir_all(&queries)?;
    }
    fs::create_dir_all(&queries)?;
    for entry in fs::read_dir(&fresh)?.flatten() {
        fs::copy(entry.path(), queries.join(entry.file_name()))?;
    }
    say(&format!("{count} queries in {}", queries.display()));
    Ok(())
}
