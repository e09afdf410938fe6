//! The control plane's process.

use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

pub(crate) const ADMIN_TOKEN: &str = "test-admin-token-1";
pub(crate) const NODE_TOKEN: &str = "test-node-token-01";

/// The command line of a process that would serve on free ports.
pub(crate) struct CommandLine {
    pub(crate) directory: TempDir,
    pub(crate) grpc_port: u16,
    pub(crate) http_port: u16,
    pub(crate) arguments: Vec<String>,
}

pub(crate) async fn command_line(database_url: &str) -> CommandLine {
    let directory = tempfile::tempdir().unwrap();
    let (grpc_port, http_port) = (free_port().await, free_port().await);
    let arguments = vec![
        format!("--database-url={database_url}"),
        format!("--grpc-listen=127.0.0.1:{grpc_port}"),
        format!("--http-listen=127.0.0.1:{http_port}"),
        format!(
            "--admin-token-file={}",
            file(&directory, "admin", &format!("{ADMIN_TOKEN}\n"))
        ),
        format!("--node-token-file={}", file(&directory, "node", NODE_TOKEN)),
        format!(
            "--master-key-file={}",
            file(&directory, "master", &"a1".repeat(32))
        ),
    ];
    CommandLine {
        directory,
        grpc_port,
        http_port,
        arguments,
    }
}

/// Writes a file and answers with its path.
pub(crate) fn file(directory: &TempDir, name: &str, text: &str) -> String {
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

async fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

impl CommandLine {
    /// Leaves out an argument.
    pub(crate) fn without(mut self, start: &str) -> Self {
        self.arguments
            .retain(|argument| !argument.starts_with(start));
        self
    }

    pub(crate) fn with(mut self, argument: String) -> Self {
        self.arguments.push(argument);
        self
    }

    pub(crate) fn start(self) -> Process {
        let child = Command::new(env!("CARGO_BIN_EXE_turnpike-control-plane"))
            .args(&self.arguments)
            .env_clear()
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Process { child, line: self }
    }
}

pub(crate) struct Process {
    child: Child,
    pub(crate) line: CommandLine,
}

impl Process {
    /// Waits until `/readyz` says so.
    pub(crate) async fn ready(&mut self) {
        for _ in 0..300 {
            if self.readyz().await == Some(200) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("not ready after 30 s");
    }

    /// The status of `/readyz`; none when nobody listens.
    pub(crate) async fn readyz(&self) -> Option<u16> {
        self.status("/readyz").await
    }

    pub(crate) async fn status(&self, path: &str) -> Option<u16> {
        self.get(path).await?.split(' ').nth(1)?.parse().ok()
    }

    /// The whole answer; none when nobody listens.
    pub(crate) async fn get(&self, path: &str) -> Option<String> {
        let address = ("127.0.0.1", self.line.http_port);
        let mut stream = TcpStream::connect(address).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    }

    pub(crate) async fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://127.0.0.1:{}", self.line.grpc_port))
            .unwrap()
            .connect()
            .await
            .unwrap()
    }

    /// Sends SIGTERM.
    pub(crate) async fn terminate(&self) {
        let id = self.child.id().expect("it runs").to_string();
        let status = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(status.unwrap().success());
    }

    /// Waits for its end; answers with the exit code and what it logged.
    pub(crate) async fn end(mut self) -> (Option<i32>, String) {
        let mut stderr = self.child.stderr.take().unwrap();
        let mut log = String::new();
        let ended = tokio::time::timeout(Duration::from_secs(30), async {
            stderr.read_to_string(&mut log).await.unwrap();
            self.child.wait().await.unwrap()
        });
        let status = ended.await.expect("it ends within 30 s");
        (status.code(), log)
    }
}

#[derive(Clone)]
pub(crate) struct Bearer(MetadataValue<Ascii>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request
            .metadata_mut()
            .insert("authorization", self.0.clone());
        Ok(request)
    }
}

pub(crate) fn bearer(token: &str) -> Bearer {
    Bearer(format!("Bearer {token}").parse().unwrap())
}
