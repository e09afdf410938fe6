//! One HTTP/1.1 connection, read by hand so that nothing stands between us and the socket.

use std::{future::pending, io};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

const HEAD_LIMIT: usize = 256 * 1024;
const BODY_LIMIT: usize = 128 * 1024 * 1024;

/// The head of a request; header names are lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// The first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target
            .split_once('?')
            .map_or(self.target.as_str(), |(path, _)| path)
    }

    /// The value of parameter `name` in the target's query, as it is written.
    pub fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        Some(Self {
            method,
            target,
            headers,
        })
    }
}

/// A request body, or as much of it as came before the client left.
#[derive(Debug, Default)]
pub struct Body {
    pub bytes: Vec<u8>,
    pub complete: bool,
}

/// A connection with the bytes that were read too far.
#[derive(Debug)]
pub struct Wire {
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
    buffer: Vec<u8>,
}

impl Wire {
    pub fn new(stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        Self {
            read,
            write,
            buffer: Vec::new(),
        }
    }

    /// Reads the next request's head. `None`: the peer closed between two requests, or sent
    /// something that is no head.
    pub async fn read_head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                let head: Vec<u8> = self.buffer.drain(..at + 4).collect();
                return Ok(Head::parse(head.get(..at).unwrap_or_default()));
            }
            if self.buffer.len() > HEAD_LIMIT || !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// Reads the body that `head` announces.
    pub async fn read_body(&mut self, head: &Head) -> Body {
        if head
            .header("expect")
            .is_some_and(|v| v.eq_ignore_ascii_case("100-continue"))
        {
            let go_on = self.write.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
            if go_on.is_err() {
                return Body::default();
            }
        }
        let chunked = head
            .header("transfer-encoding")
            .is_some_and(|v| v.to_ascii_lowercase().contains("chunked"));
        if chunked {
            return self.read_chunks().await;
        }
        let length = head
            .header("content-length")
            .and_then(|v| v.parse().ok())
            .unwrap_or(0);
        let complete = length <= BODY_LIMIT && self.fill_to(length).await;
        let take = length.min(self.buffer.len());
        Body {
            bytes: self.buffer.drain(..take).collect(),
            complete,
        }
    }

    async fn read_chunks(&mut self) -> Body {
        let mut body = Body::default();
        loop {
            let Some(line) = self.read_line().await else {
                return body;
            };
            let size = line.split(';').next().unwrap_or_default().trim();
            let Ok(size) = usize::from_str_radix(size, 16) else {
                return body;
            };
            if size == 0 {
                // Trailers, up to the empty line.
                while let Some(line) = self.read_line().await {
                    if line.is_empty() {
                        body.complete = true;
                        return body;
                    }
                }
                return body;
            }
            if body.bytes.len() + size > BODY_LIMIT {
                return body;
            }
            let whole = self.fill_to(size + 2).await;
            let take = size.min(self.buffer.len());
            body.bytes.extend(self.buffer.drain(..take));
            if !whole {
                return body;
            }
            self.buffer.drain(..2);
        }
    }

    async fn read_line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = find(&self.buffer, b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..at + 2).collect();
                return String::from_utf8(line)
                    .ok()
                    .map(|line| line.trim_end().to_owned());
            }
            if self.buffer.len() > HEAD_LIMIT || !self.fill().await.unwrap_or(false) {
                return None;
            }
        }
    }

    /// Reads until the buffer holds `length` bytes. False: the peer left before.
    async fn fill_to(&mut self, length: usize) -> bool {
        while self.buffer.len() < length {
            if !self.fill().await.unwrap_or(false) {
                return false;
            }
        }
        true
    }

    async fn fill(&mut self) -> io::Result<bool> {
        Ok(self.read.read_buf(&mut self.buffer).await? > 0)
    }

    /// The two halves, to write an answer while watching whether anyone still wants it.
    pub fn halves(&mut self) -> (&mut OwnedWriteHalf, Watch<'_>) {
        (
            &mut self.write,
            Watch {
                read: &mut self.read,
                buffer: &mut self.buffer,
            },
        )
    }

    /// Writes `bytes` at once.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write.write_all(bytes).await
    }

    /// Closes with a FIN after everything that was written.
    pub async fn finish(mut self) {
        // The peer may be gone already: then there is nothing to finish.
        if self.write.shutdown().await.is_ok() {
            // Reading on keeps unread request bytes from turning our FIN into a RST.
            let drain = async {
                while self.fill().await.unwrap_or(false) {
                    self.buffer.clear();
                }
            };
            drop(tokio::time::timeout(std::time::Duration::from_millis(200), drain).await);
        }
    }

    /// Closes with a RST; bytes that the peer has not taken are lost.
    pub fn reset(self) {
        if let Ok(stream) = self.read.reunite(self.write) {
            drop(stream.set_zero_linger());
        }
    }
}

/// The reading side while an answer is being written.
#[derive(Debug)]
pub struct Watch<'a> {
    read: &'a mut OwnedReadHalf,
    buffer: &'a mut Vec<u8>,
}

impl Watch<'_> {
    /// Resolves when the peer has closed or broken the connection, never otherwise.
    pub async fn peer_gone(self) {
        loop {
            match self.read.read_buf(self.buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) if self.buffer.len() > HEAD_LIMIT => return pending().await,
                Ok(_) => {}
            }
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (Wire, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let client = TcpStream::connect(listener.local_addr().expect("address")).await;
        let (server, _) = listener.accept().await.expect("accepted");
        (Wire::new(server), client.expect("connected"))
    }

    #[tokio::test]
    async fn two_requests_on_one_connection_are_told_apart() {
        let (mut wire, mut client) = pair().await;
        let bytes =
            b"POST /a?key=k HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n\r\n";
        client.write_all(bytes).await.expect("written");
        let first = wire.read_head().await.expect("read").expect("a head");
        assert_eq!((first.path(), first.query("key")), ("/a", Some("k")));
        assert_eq!(wire.read_body(&first).await.bytes, b"abc");
        let second = wire.read_head().await.expect("read").expect("a head");
        assert_eq!(second.target, "/b");
        drop(client);
        assert_eq!(wire.read_head().await.expect("read"), None);
    }

    #[tokio::test]
    async fn a_chunked_body_is_put_together() {
        let (mut wire, mut client) = pair().await;
        let bytes = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3;x=y\r\ncde\r\n0\r\n\r\n";
        client.write_all(bytes).await.expect("written");
        let head = wire.read_head().await.expect("read").expect("a head");
        let body = wire.read_body(&head).await;
        assert!(body.complete);
        assert_eq!(body.bytes, b"abcde");
    }

    #[tokio::test]
    async fn a_client_that_leaves_in_the_middle_of_its_body_is_noticed() {
        for head in ["Content-Length: 10", "Transfer-Encoding: chunked"] {
            let (mut wire, mut client) = pair().await;
            let request = format!("POST / HTTP/1.1\r\n{head}\r\n\r\n5\r\nab");
            client.write_all(request.as_bytes()).await.expect("written");
            drop(client);
            let head = wire.read_head().await.expect("read").expect("a head");
            assert!(!wire.read_body(&head).await.complete);
        }
    }

    #[tokio::test]
    async fn the_watch_sees_the_peer_go_and_keeps_what_it_sent_before() {
        let (mut wire, mut client) = pair().await;
        client
            .write_all(b"GET /next HTTP/1.1\r\n\r\n")
            .await
            .expect("written");
        drop(client);
        let (_, watch) = wire.halves();
        watch.peer_gone().await;
        let head = wire.read_head().await.expect("read").expect("a head");
        assert_eq!(head.target, "/next");
    }
}
