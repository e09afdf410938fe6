//! One connection of a client: a chat request, and its answer with the times that count.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, StatusCode, body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::upstream::{EVENTS_HEADER, GAP_HEADER};

/// Size of a request's body.
const BODY_BYTES: usize = 1024;
/// How a stream ends that ended well.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// How the upstream is to pace a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Events that have content.
    pub events: u32,
    /// Microseconds between two of them.
    pub gap_us: u64,
}

/// What is asked for, again and again.
#[derive(Debug, Clone)]
pub struct Ask {
    target: SocketAddr,
    authorization: String,
    body: Bytes,
    pace: Option<Pace>,
}

/// When an answer came, from the moment its request was sent.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The first bytes of its body.
    pub first: Duration,
    /// Its end.
    pub whole: Duration,
}

/// A connection that is kept.
#[derive(Debug)]
pub struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
}

impl Ask {
    /// A chat request of 1 KB; with a pace it asks for a stream.
    pub fn new(target: SocketAddr, key: &str, model: &str, pace: Option<Pace>) -> Self {
        // What a stream's client asks for itself need not be taken out again.
        let stream = match pace {
            Some(_) => r#""stream":true,"stream_options":{"include_usage":true},"#,
            None => "",
        };
        let mut body =
            format!(r#"{{"model":"{model}",{stream}"messages":[{{"role":"user","content":""#);
        let end = r#""}],"temperature":0.5,"max_tokens":256}"#;
        while body.len() + end.len() < BODY_BYTES {
            body.push_str("words ");
        }
        body.push_str(end);
        Self {
            target,
            authorization: format!("Bearer {key}"),
            body: body.into(),
            pace,
        }
    }

    fn request(&self) -> Result<Request<Full<Bytes>>> {
        let mut request = Request::post("/v1/chat/completions")
            .header("host", "gateway.example")
            .header("authorization", &self.authorization)
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .header("user-agent", "turnpike-load");
        if let Some(pace) = self.pace {
            request = request
                .header(EVENTS_HEADER, pace.events)
                .header(GAP_HEADER, pace.gap_us);
        }
        Ok(request.body(Full::new(self.body.clone()))?)
    }
}

impl Connection {
    /// Connects to the target of `ask`.
    pub async fn open(ask: &Ask) -> Result<Self> {
        let stream = TcpStream::connect(ask.target)
            .await
            .with_context(|| format!("connecting to {}", ask.target))?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with its sender; what went wrong is told by the request.
        tokio::spawn(async { drop(connection.await) });
        Ok(Self { sender })
    }

    /// Sends a request and reads its answer to the end.
    ///
    /// # Errors
    /// An answer that is not the expected one.
    pub async fn exchange(&mut self, ask: &Ask) -> Result<Times> {
        let request = ask.request()?;
        let start = Instant::now();
        let mut answer = self.send(request).await?;
        let first_bytes = next(&mut answer)
            .await?
            .context("an answer without a body")?;
        let first = start.elapsed();
        let mut last = first_bytes;
        while let Some(bytes) = next(&mut answer).await? {
            last = bytes;
        }
        let whole = start.elapsed();
        let complete = match ask.pace {
            Some(_) => last.ends_with(DONE),
            None => last.ends_with(b"}"),
        };
        ensure!(
            complete,
            "an answer was cut: it ends in {:?}",
            String::from_utf8_lossy(&last)
        );
        Ok(Times { first, whole })
    }

    /// Sends a request and gives its answer back as soon as the body has begun.
    pub async fn begin(&mut self, ask: &Ask) -> Result<Response<Incoming>> {
        let mut answer = self.send(ask.request()?).await?;
        next(&mut answer)
            .await?
            .context("an answer without a body")?;
        Ok(answer)
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>> {
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await?;
        if answer.status() != StatusCode::OK {
            let status = answer.status();
            let body = answer.into_body().collect().await?.to_bytes();
            bail!("status {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(answer)
    }
}

/// The next bytes of the body; `None` at its end.
async fn next(answer: &mut Response<Incoming>) -> Result<Option<Bytes>> {
    while let Some(frame) = answer.frame().await {
        if let Ok(bytes) = frame?.into_data() {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}
