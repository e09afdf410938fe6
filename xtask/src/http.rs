//! Just enough HTTP to ask a local process how it is.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context as _, Result};

/// An answer's status and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// `GET path` on a local port.
pub fn get(port: u16, path: &str) -> Result<Answer> {
    request(port, "GET", path, &[], "")
}

/// One request on a connection of its own; 10 s at most for each read.
pub fn request(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<Answer> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut socket = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    socket.write_all(text.as_bytes())?;
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text
        .split_once("\r\n\r\n")
        .context("an answer without a head")?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|s| s.parse().ok())
        .context("no status")?;
    let chunked = head
        .lines()
        .any(|line| line.eq_ignore_ascii_case("transfer-encoding: chunked"));
    let body = if chunked {
        without_chunks(body).context("a body with broken chunks")?
    } else {
        body.to_owned()
    };
    Ok(Answer { status, body })
}

/// The body that was sent in chunks. None: it was cut.
fn without_chunks(mut rest: &str) -> Option<String> {
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.push_str(after.get(..size)?);
        rest = after.get(size..)?.strip_prefix("\r\n")?;
    }
}

/// Whether `GET path` on a local port answers 200.
pub fn is_ok(port: u16, path: &str) -> bool {
    get(port, path).is_ok_and(|answer| answer.status == 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_put_together_and_a_cut_is_seen() {
        let whole = "4\r\nabcd\r\nb\r\n, and \r\n so\r\n0\r\n\r\n";
        assert_eq!(without_chunks(whole).as_deref(), Some("abcd, and \r\n so"));
        assert_eq!(without_chunks("4\r\nab"), None);
        assert_eq!(without_chunks("4\r\nabcd\r\n"), None);
    }
}
