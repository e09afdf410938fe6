//! An HTTP/1.1 client that sends and shows exact bytes.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(30);

/// A request, built field by field.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    trailers: Vec<(String, String)>,
    receive_buffer_bytes: Option<u32>,
}

/// An answer, as it came.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// Without chunked framing.
    pub body: Vec<u8>,
    /// What came after the last chunk.
    pub trailers: Vec<(String, String)>,
    /// False when the connection ended before the body did.
    pub complete: bool,
}

/// A connection whose answer is still coming.
#[derive(Debug)]
pub struct Open {
    socket: TcpStream,
    seen: Vec<u8>,
}

// === impl Request ===

impl Request {
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            trailers: Vec::new(),
            receive_buffer_bytes: None,
        }
    }

    /// `POST /v1/chat/completions` with this key and JSON.
    pub fn chat(key: &str, body: &Value) -> Self {
        Self::new("POST", "/v1/chat/completions")
            .key(key)
            .json(body)
    }

    #[must_use]
    pub fn key(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json")
            .body(body.to_string().as_bytes())
    }

    #[must_use]
    pub fn body(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    /// Sends the body in one chunk, and this after it.
    #[must_use]
    pub fn trailer(mut self, name: &str, value: &str) -> Self {
        self.trailers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Lets the kernel take in no more of the answer than this before somebody reads it.
    #[must_use]
    pub fn receive_buffer(mut self, bytes: u32) -> Self {
        self.receive_buffer_bytes = Some(bytes);
        self
    }

    /// Asks the test provider to play this script (the header passes through the gateway).
    #[must_use]
    pub fn script(self, script: &Value) -> Self {
        self.header("x-provider-script", &script.to_string())
    }

    fn bytes(&self, port: u16) -> Vec<u8> {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n",
            self.method, self.path
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let length = self.body.len();
        if self.trailers.is_empty() {
            head.push_str(&format!("content-length: {length}\r\n\r\n"));
            return [head.into_bytes(), self.body.clone()].concat();
        }
        head.push_str(&format!("transfer-encoding: chunked\r\n\r\n{length:x}\r\n"));
        let mut tail = "\r\n0\r\n".to_owned();
        for (name, value) in &self.trailers {
            tail.push_str(&format!("{name}: {value}\r\n"));
        }
        tail.push_str("\r\n");
        [head.into_bytes(), self.body.clone(), tail.into_bytes()].concat()
    }

    fn connect(&self, port: u16) -> Result<TcpStream> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let Some(bytes) = self.receive_buffer_bytes else {
            return Ok(TcpStream::connect_timeout(&address, TIMEOUT)?);
        };
        // Before the connection is made, or the window is already open.
        crate::ledger::runtime()?.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4()?;
            socket.set_recv_buffer_size(bytes)?;
            let socket = socket.connect(address).await?.into_std()?;
            socket.set_nonblocking(false)?;
            anyhow::Ok(socket)
        })
    }

    /// Sends it on a connection of its own and does not wait for the answer.
    pub fn open(&self, port: u16) -> Result<Open> {
        let mut socket = self.connect(port).context("connecting")?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_nodelay(true)?;
        socket.write_all(&self.bytes(port)).context("sending")?;
        Ok(Open {
            socket,
            seen: Vec::new(),
        })
    }

    /// Sends it and reads the answer to its end or cut.
    pub fn send(&self, port: u16) -> Result<Answer> {
        self.open(port)?.finish()
    }
}

// === impl Open ===

impl Open {
    /// Reads on until the bytes so far satisfy `enough`; the bytes so far, head included.
    pub fn read_until(&mut self, enough: impl Fn(&[u8]) -> bool) -> Result<&[u8]> {
        let mut buffer = [0; 16 * 1024];
        while !enough(&self.seen) {
            let read = self.socket.read(&mut buffer).context("reading")?;
            if read == 0 {
                bail!(
                    "the answer ended early: {:?}",
                    String::from_utf8_lossy(&self.seen)
                );
            }
            self.seen
                .extend_from_slice(buffer.get(..read).unwrap_or_default());
        }
        Ok(&self.seen)
    }

    /// Goes away, as a client that was closed does.
    pub fn abort(self) {
        // An answer that nobody reads any more makes no difference.
        drop(self.socket.shutdown(Shutdown::Both));
    }

    /// Reads the answer to its end or cut.
    pub fn finish(mut self) -> Result<Answer> {
        let mut buffer = [0; 64 * 1024];
        loop {
            if let Some(answer) = Answer::parse(&self.seen, false)? {
                return Ok(answer);
            }
            match self.socket.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => self
                    .seen
                    .extend_from_slice(buffer.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
                Err(error) => return Err(error).context("reading the answer"),
            }
        }
        Answer::parse(&self.seen, true)?.context("the connection ended before an answer's head")
    }
}

// === impl Answer ===

impl Answer {
    /// `None`: more is to come. `ended`: the connection is over.
    fn parse(bytes: &[u8], ended: bool) -> Result<Option<Self>> {
        let Some(head_end) = find(bytes, b"\r\n\r\n") else {
            return Ok(None);
        };
        let (head, rest) = bytes.split_at(head_end + 4);
        let head = String::from_utf8_lossy(head);
        let mut lines = head.split("\r\n");
        let status: u16 = lines
            .next()
            .and_then(|line| line.split(' ').nth(1))
            .and_then(|status| status.parse().ok())
            .context("no status line")?;
        if (100..200).contains(&status) {
            return Self::parse(rest, ended);
        }
        let mut answer = Self {
            status,
            headers: fields(lines),
            body: Vec::new(),
            trailers: Vec::new(),
            complete: false,
        };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.complete = answer.take_chunks(rest);
        } else if let Some(length) = answer.header("content-length") {
            let length: usize = length.parse().context("content-length")?;
            answer.complete = rest.len() >= length;
            answer.body = rest.get(..length).unwrap_or(rest).to_vec();
        } else {
            answer.complete = ended;
            answer.body = rest.to_vec();
        }
        Ok((answer.complete || ended).then_some(answer))
    }

    /// True when the last chunk was there.
    fn take_chunks(&mut self, mut rest: &[u8]) -> bool {
        while let Some(line_end) = find(rest, b"\r\n") {
            let size = rest
                .get(..line_end)
                .and_then(|line| std::str::from_utf8(line).ok());
            let Some(size) = size.and_then(|size| usize::from_str_radix(size, 16).ok()) else {
                return false;
            };
            let start = line_end + 2;
            let Some(chunk) = rest.get(start..start + size) else {
                self.body
                    .extend_from_slice(rest.get(start..).unwrap_or_default());
                return false;
            };
            if size == 0 {
                return self.take_trailers(rest.get(line_end..).unwrap_or_default());
            }
            self.body.extend_from_slice(chunk);
            rest = rest.get(start + size + 2..).unwrap_or_default();
        }
        false
    }

    /// True when the empty line after them was there; `rest` begins with the last chunk's line end.
    fn take_trailers(&mut self, rest: &[u8]) -> bool {
        let Some(end) = find(rest, b"\r\n\r\n") else {
            return false;
        };
        let text = String::from_utf8_lossy(rest.get(..end).unwrap_or_default());
        self.trailers = fields(text.split("\r\n"));
        true
    }

    /// The first value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }

    /// `error.code` of an error in OpenAI's shape.
    pub fn error_code(&self) -> String {
        let json = self.json();
        json.pointer("/error/code")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    }

    /// The JSON of each `data:` line, `[DONE]` left out.
    pub fn events(&self) -> Vec<Value> {
        self.text()
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap_or_else(|e| panic!("{e} in {data:?}")))
            .collect()
    }
}

fn fields<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect()
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
