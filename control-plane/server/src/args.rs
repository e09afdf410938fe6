//! The command line, and the environment variables that stand for it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;

/// What it does not start without: clap's own line leaves out what may be replaced.
const USAGE: &str = "\
turnpike-control-plane --database-url <URL> --admin-token-file <FILE>
           {--node-token-file <FILE> | --tls-client-ca-file <FILE>}
           {--master-key-file <FILE> | --without-credentials} [OPTIONS]";

/// Turnpike's control plane: admin API, config for nodes, and the usage ledger.
///
/// Every option can be given by the environment variable in brackets instead.
#[derive(Clone, Parser)]
#[command(name = "turnpike-control-plane", version, max_term_width = 100, override_usage = USAGE)]
pub(crate) struct Args {
    /// Postgres 15 or newer, for example `postgres://turnpike@db/turnpike`; `?host=/directory`
    /// for a Unix socket
    #[arg(
        long,
        value_name = "URL",
        env = "TURNPIKE_DATABASE_URL",
        hide_env_values = true
    )]
    pub(crate) database_url: String,

    /// Most connections to Postgres at a time
    #[arg(
        long,
        value_name = "COUNT",
        env = "TURNPIKE_DATABASE_CONNECTIONS",
        default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(2..=1000)
    )]
    pub(crate) database_connections: u32,

    /// Seconds to wait for Postgres at start, before exiting with the reason
    #[arg(
        long,
        value_name = "SECONDS",
        env = "TURNPIKE_DATABASE_WAIT",
        default_value_t = 25,
        value_parser = clap::value_parser!(u64).range(0..=3600)
    )]
    pub(crate) database_wait: u64,

    /// Days that single usage records are kept in Postgres, 0 for ever; sums are always kept
    #[arg(
        long,
        value_name = "DAYS",
        env = "TURNPIKE_RECORD_DAYS",
        default_value_t = 90,
        value_parser = clap::value_parser!(u32).range(0..=36_500)
    )]
    pub(crate) record_days: u32,

    /// Leave the schema as it is; without this, it is migrated at start
    #[arg(long, env = "TURNPIKE_NO_MIGRATE")]
    pub(crate) no_migrate: bool,

    /// Address of the gRPC services: admin API, config for nodes, metering. Another than a
    /// loopback address needs a certificate
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TURNPIKE_GRPC_LISTEN",
        default_value = "127.0.0.1:9090"
    )]
    pub(crate) grpc_listen: SocketAddr,

    /// Address of `/healthz` and `/readyz`
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "TURNPIKE_HTTP_LISTEN",
        default_value = "127.0.0.1:9091"
    )]
    pub(crate) http_listen: SocketAddr,

    /// PEM file with the certificate chain of the gRPC services. This and the next two files may be
    /// replaced at any time: new connections find what is new
    #[arg(
        long,
        value_name = "FILE",
        env = "TURNPIKE_TLS_CERT_FILE",
        requires = "tls_key_file"
    )]
    pub(crate) tls_cert_file: Option<PathBuf>,

    /// PEM file with the private key of that certificate
    #[arg(
        long,
        value_name = "FILE",
        env = "TURNPIKE_TLS_KEY_FILE",
        requires = "tls_cert_file"
    )]
    pub(crate) tls_key_file: Option<PathBuf>,

    /// PEM file with the authorities of the nodes' certificates. A node with a certificate needs no
    /// token; its name must be one of the certificate's DNS names, IP addresses or URIs
    #[arg(
        long,
        visible_alias = "tls-client-ca",
        value_name = "FILE",
        env = "TURNPIKE_TLS_CLIENT_CA_FILE",
        requires = "tls_cert_file"
    )]
    pub(crate) tls_client_ca_file: Option<PathBuf>,

    /// File with the token of the admin API, 16-512 visible characters
    #[arg(long, value_name = "FILE", env = "TURNPIKE_ADMIN_TOKEN_FILE")]
    pub(crate) admin_token_file: PathBuf,

    /// File with the token that nodes without a certificate present, 16-512 visible characters
    #[arg(
        long,
        value_name = "FILE",
        env = "TURNPIKE_NODE_TOKEN_FILE",
        required_unless_present = "tls_client_ca_file"
    )]
    pub(crate) node_token_file: Option<PathBuf>,

    /// File with the master keys that seal provider credentials in Postgres: 64 hexadecimal digits
    /// a line, newest first (make one with `openssl rand -hex 32`)
    #[arg(
        long,
        value_name = "FILE",
        env = "TURNPIKE_MASTER_KEY_FILE",
        required_unless_present = "without_credentials"
    )]
    pub(crate) master_key_file: Option<PathBuf>,

    /// Run without a master key; no credential can be made then
    #[arg(
        long,
        env = "TURNPIKE_WITHOUT_CREDENTIALS",
        conflicts_with = "master_key_file"
    )]
    pub(crate) without_credentials: bool,

    /// URL that is told when a bucket of a limit passes one of its thresholds: https, or http on this
    /// host. Told at least once, as JSON, signed as standardwebhooks.com has it
    #[arg(
        long,
        value_name = "URL",
        env = "TURNPIKE_EVENT_WEBHOOK",
        hide_env_values = true,
        requires = "event_webhook_secret_file"
    )]
    pub(crate) event_webhook: Option<String>,

    /// File with the secret that events are signed with: `whsec_` and base64, or any text of 16
    /// bytes or more
    #[arg(
        long,
        value_name = "FILE",
        env = "TURNPIKE_EVENT_WEBHOOK_SECRET_FILE",
        requires = "event_webhook"
    )]
    pub(crate) event_webhook_secret_file: Option<PathBuf>,

    /// Directory below which credentials may name files; without it, none may
    #[arg(long, value_name = "DIRECTORY", env = "TURNPIKE_SECRETS_DIR")]
    pub(crate) secrets_dir: Option<PathBuf>,

    /// What is logged to standard error: a level, or a list as `info,control_plane_grpc=debug`
    #[arg(
        long,
        value_name = "FILTER",
        env = "TURNPIKE_LOG",
        default_value = "info"
    )]
    pub(crate) log: String,
}

// The URL may hold a password.
impl fmt::Debug for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Args")
            .field("grpc_listen", &self.grpc_listen)
            .field("http_listen", &self.http_listen)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    const REQUIRED: [&str; 7] = [
        "turnpike-control-plane",
        "--database-url=postgres://localhost/turnpike",
        "--admin-token-file=admin",
        "--node-token-file=node",
        "--master-key-file=key",
        "--log=warn",
        "--http-listen=127.0.0.1:0",
    ];

    fn parse(more: &[&str], without: &str) -> Result<Args, clap::Error> {
        let arguments = REQUIRED
            .iter()
            .filter(|argument| !argument.starts_with(without));
        Args::try_parse_from(arguments.chain(more))
    }

    #[test]
    fn defaults_are_loopback_and_migrating() {
        let args = parse(&[], "none").unwrap();
        assert_eq!(args.grpc_listen.to_string(), "127.0.0.1:9090");
        assert!(!args.no_migrate);
        assert_eq!(args.database_wait, 25);
    }

    #[test]
    fn a_master_key_is_left_out_on_purpose_only() {
        assert!(parse(&[], "--master-key").is_err());
        assert!(parse(&["--without-credentials"], "--master-key").is_ok());
        assert!(parse(&["--without-credentials"], "none").is_err());
    }

    #[test]
    fn the_usage_line_names_what_it_does_not_start_without() {
        let error = Args::try_parse_from(["turnpike-control-plane"]).unwrap_err();
        let text = error.to_string();
        for argument in REQUIRED.iter().skip(1).take(4) {
            let option = argument.split('=').next().unwrap_or_default();
            assert!(text.contains(option), "{option}: {text}");
        }
        let (_, usage) = text.split_once("Usage: ").unwrap();
        assert!(usage.contains("--without-credentials"), "{usage}");
    }

    #[test]
    fn certificate_and_key_come_together() {
        assert!(parse(&["--tls-cert-file=a"], "none").is_err());
        assert!(parse(&["--tls-cert-file=a", "--tls-key-file=b"], "none").is_ok());
    }

    #[test]
    fn nodes_present_a_token_or_a_certificate() {
        assert!(parse(&[], "--node-token").is_err());
        assert!(parse(&["--tls-client-ca-file=c"], "--node-token").is_err());
        let tls = ["--tls-cert-file=a", "--tls-key-file=b", "--tls-client-ca=c"];
        assert!(parse(&tls, "--node-token").is_ok());
        assert!(parse(&tls, "none").is_ok());
    }

    #[test]
    fn the_command_line_is_well_formed_and_its_url_never_printed() {
        Args::command().debug_assert();
        let mut args = parse(&[], "none").unwrap();
        args.database_url = "postgres://a:sk-test-1@b/c".into();
        assert!(!format!("{args:?}").contains("sk-test"));
    }
}
