use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// A provider on a free port, and its address.
async fn start() -> std::net::SocketAddr {
    start_with(|_| {}).await
}

async fn start_with(change: impl FnOnce(&mut Args)) -> std::net::SocketAddr {
    let mut args = Args {
        listen: "127.0.0.1:0".parse().expect("an address"),
        seed: 1,
        cases_dir: None,
        record_file: None,
        demo_tokens: false,
        keep_bodies: true,
        models: vec!["demo-small".to_owned()],
    };
    change(&mut args);
    let listener = TcpListener::bind(args.listen).await.expect("bound");
    let address = listener.local_addr().expect("address");
    tokio::spawn(accept(
        listener,
        Arc::new(Provider::new(args).expect("made")),
    ));
    address
}

fn chat(face: &str, id: &str, script: &Value, stream: bool) -> String {
    let body = json!({
        "model": "demo-small", "stream": stream, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "hello"}],
    })
    .to_string();
    format!(
        "POST {face}/v1/chat/completions HTTP/1.1\r\nhost: p\r\nx-request-id: {id}\r\n\
         authorization: Bearer sk-test-secret\r\nx-provider-script: {script}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends `request` on a connection of its own and reads until `enough` says so or the end.
async fn exchange(
    address: std::net::SocketAddr,
    request: &str,
    enough: impl Fn(&str) -> bool,
) -> std::io::Result<String> {
    let mut socket = TcpStream::connect(address).await?;
    socket.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if enough(&text) || socket.read_buf(&mut bytes).await? == 0 {
            return Ok(text);
        }
    }
}

async fn served(address: std::net::SocketAddr, count: usize) -> Vec<Served> {
    for _ in 0..200 {
        let request = "GET /_served?since=0 HTTP/1.1\r\n\r\n";
        let answer = exchange(address, request, |text| {
            let length = text
                .split("content-length: ")
                .nth(1)
                .and_then(|t| t.split("\r\n").next());
            let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
            body.is_some() && body == length.and_then(|l| l.parse().ok())
        });
        let answer = answer.await.expect("answered");
        let body = answer.split_once("\r\n\r\n").expect("a head").1;
        let entries: Vec<Served> = body
            .lines()
            .map(|line| serde_json::from_str(line).expect("an entry"))
            .collect();
        if entries.len() == count && entries.iter().all(|entry| entry.ended != Ended::Open) {
            return entries;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("the requests did not end");
}

#[tokio::test]
async fn a_stream_is_served_whole_and_recorded_with_its_usage() {
    let address = start().await;
    let request = chat("/face/east", "r-1", &json!({}), true);
    let text = exchange(address, &request, |text| text.ends_with("0\r\n\r\n"))
        .await
        .expect("answered");
    assert!(text.contains("data: [DONE]"));
    let entries = served(address, 1).await;
    let entry = &entries[0];
    assert_eq!(
        (entry.ended, entry.status, entry.attempt),
        (Ended::Complete, 200, 1)
    );
    assert_eq!(
        (entry.face.as_str(), entry.request_id.as_str()),
        ("east", "r-1")
    );
    assert_eq!(entry.usage_sent, Some(Tokens::draw(1, 1)));
    assert_eq!(entry.tokens, entry.usage_sent);
    let credential = entry.header("authorization").expect("present");
    assert!(credential.starts_with("Bearer sha256:") && !credential.contains("secret"));
    assert_eq!(
        entry.body_bytes,
        entry.body.as_deref().map_or(0, str::len) as u64
    );
}

#[tokio::test]
async fn attempts_of_one_request_follow_its_list_of_scripts() {
    let address = start().await;
    let script = json!([{"status": 503, "retry_after": "2"}, {"text": "well"}]);
    let request = chat("", "r-2", &script, false);
    let done = |text: &str| text.ends_with('}');
    let first = exchange(address, &request, done).await.expect("answered");
    assert!(
        first.starts_with("HTTP/1.1 503 ") && first.contains("retry-after: 2\r\n"),
        "{first}"
    );
    let second = exchange(address, &request, done).await.expect("answered");
    assert!(second.contains("\"well\""), "{second}");
    let entries = served(address, 2).await;
    assert_eq!(entries[1].attempt, 2);
    assert_eq!(
        (entries[0].tokens, entries[1].tokens),
        (None, Some(Tokens::draw(1, 2)))
    );
}

#[tokio::test]
async fn a_client_that_leaves_mid_stream_is_recorded_without_usage() {
    let address = start().await;
    let request = chat("", "r-3", &json!({"chunk_delay_ms": 50}), true);
    exchange(address, &request, |text| text.contains("data: "))
        .await
        .expect("answered");
    let entry = served(address, 1).await.remove(0);
    assert_eq!(entry.ended, Ended::ClientClosed);
    assert_eq!(entry.usage_sent, None);
    assert!(entry.events_sent >= 1);
}

#[tokio::test]
async fn a_client_that_leaves_before_headers_or_body_is_told_apart() {
    let address = start().await;
    let request = chat("", "r-4", &json!({"delay_ms": 5_000}), true);
    let mut waiting = TcpStream::connect(address).await.expect("connected");
    waiting
        .write_all(request.as_bytes())
        .await
        .expect("written");
    let mut partial = TcpStream::connect(address).await.expect("connected");
    let half = &request.as_bytes()[..request.len() - 10];
    sleep(Duration::from_millis(50)).await;
    partial.write_all(half).await.expect("written");
    sleep(Duration::from_millis(50)).await;
    drop((waiting, partial));
    let entries = served(address, 2).await;
    assert_eq!(
        (entries[0].ended, entries[0].status),
        (Ended::ClientClosed, 0)
    );
    assert_eq!(entries[1].ended, Ended::RequestIncomplete);
    assert!(entries[0].body_complete && !entries[1].body_complete);
}

#[tokio::test]
async fn a_scripted_cut_ends_by_fin_or_by_reset() {
    let address = start().await;
    let never = |_: &str| false;
    let fin = json!({"cut_after_chunks": 2, "cut": "fin"});
    let text = exchange(address, &chat("", "r-5", &fin, true), never)
        .await
        .expect("a clean end");
    assert!(
        text.contains("data: ") && !text.ends_with("0\r\n\r\n"),
        "{text}"
    );
    let rst = json!({"cut_after_chunks": 2, "cut": "rst"});
    let error = exchange(address, &chat("", "r-6", &rst, true), never)
        .await
        .expect_err("reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let early = json!({"cut_before_headers": true});
    let text = exchange(address, &chat("", "r-7", &early, false), never)
        .await
        .expect("a clean end");
    assert_eq!(text, "");
    let entries = served(address, 3).await;
    assert!(
        entries
            .iter()
            .all(|entry| entry.ended == Ended::Cut && entry.usage_sent.is_none())
    );
    assert_eq!(entries[1].events_sent, 2);
}

#[tokio::test]
async fn models_are_listed_and_an_unknown_one_is_404() {
    let address = start().await;
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: p\r\n\r\n");
    let done = |text: &str| text.ends_with('}');
    let list = exchange(address, &get("/v1/models"), done)
        .await
        .expect("answered");
    assert!(list.contains("\"demo-small\""), "{list}");
    let missing = exchange(address, &get("/v1/models/none"), done)
        .await
        .expect("answered");
    assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");
}

#[tokio::test]
async fn a_wrong_script_is_refused_by_name() {
    let address = start().await;
    let request = chat("", "r-8", &json!({"statsu": 1}), false);
    let text = exchange(address, &request, |text| text.ends_with('}'))
        .await
        .expect("answered");
    assert!(
        text.starts_with("HTTP/1.1 400 ") && text.contains("statsu"),
        "{text}"
    );
}

#[test]
fn faces_are_taken_off_the_path() {
    assert_eq!(without_face("/face/a/v1/models"), ("a", "/v1/models"));
    assert_eq!(without_face("/v1/models"), ("", "/v1/models"));
    assert_eq!(without_face("/face/a"), ("", "/face/a"));
}

#[tokio::test]
async fn a_client_that_asks_to_close_sees_the_end() {
    let address = start().await;
    let request = "GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n";
    let text = exchange(address, request, |_| false)
        .await
        .expect("a clean end");
    assert!(text.ends_with("ok\n"), "{text}");
}

#[tokio::test]
async fn demo_tokens_keep_to_the_request_unless_a_script_says_otherwise() {
    let address = start_with(|args| args.demo_tokens = true).await;
    let body = r#"{"model":"m","max_tokens":3,"messages":[{"role":"user","content":"hello"}]}"#;
    let ask = |script: &str| {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nconnection: close\r\n{script}\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    for _ in 0..3 {
        let answer = exchange(address, &ask(""), |_| false)
            .await
            .expect("answered");
        assert!(answer.contains(r#""finish_reason":"length""#), "{answer}");
    }
    let scripted = ask("x-provider-script: {\"chunks\":2}\r\n");
    exchange(address, &scripted, |_| false)
        .await
        .expect("answered");
    let counts = served(address, 4).await.into_iter();
    let counts: Vec<Tokens> = counts.filter_map(|entry| entry.tokens).collect();
    let about = u64::try_from(body.len()).expect("fits") / 4;
    for tokens in counts.iter().take(3) {
        assert!((about..about + 6).contains(&tokens.prompt), "{tokens:?}");
        assert_eq!(tokens.completion, 3);
    }
    assert_eq!(counts.last(), Some(&Tokens::draw(1, 4)));
}
