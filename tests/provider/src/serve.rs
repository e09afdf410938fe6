//! The way of one request: read, recorded, decided, delivered, recorded again.

use std::{fs::OpenOptions, io::Write as _, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    signal::unix::{SignalKind, signal},
    time::sleep,
};

use crate::{
    answer::{Answer, Ask, output_bound},
    args::Args,
    case,
    delivery::{Delivery, Ending, Progress, wait_with_client},
    generate_content,
    hash::{mask_header, mask_target, sha256_hex},
    messages,
    reply::{self, Headers},
    script::{self, Script},
    served::{Ended, Log, Served, now_us},
    stream::{self, Event},
    tokens::Tokens,
    wire::{Body, Head, Wire},
};

/// Time that open answers get after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);

/// Serves until SIGTERM or SIGINT; then takes no more connections, lets open answers end, and
/// returns.
pub async fn run(args: Args) -> Result<()> {
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("listening on {}", args.listen))?;
    writeln!(
        std::io::stdout(),
        "turnpike-provider listens on {}",
        listener.local_addr()?
    )?;
    let provider = Arc::new(Provider::new(args)?);
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    tokio::select! {
        failed = accept(listener, Arc::clone(&provider)) => failed?,
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    let all_ended = async {
        while provider.log.open() > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    drop(tokio::time::timeout(GRACE, all_ended).await);
    Ok(())
}

/// Serves every connection that comes in on `listener`.
pub async fn accept(listener: TcpListener, provider: Arc<Provider>) -> Result<()> {
    loop {
        let (stream, _) = listener.accept().await.context("accepting a connection")?;
        tokio::spawn(connection(Arc::clone(&provider), stream));
    }
}

async fn connection(provider: Arc<Provider>, stream: TcpStream) {
    // Without it, small writes would wait for each other and framing would not be ours.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut wire = Wire::new(stream);
    while let Ok(Some(head)) = wire.read_head().await {
        let last = head
            .header("connection")
            .is_some_and(|v| v.eq_ignore_ascii_case("close"));
        match provider.request(wire, head).await {
            Some(next) if last => return next.finish().await,
            Some(next) => wire = next,
            None => return,
        }
    }
}

/// The provider's state.
#[derive(Debug)]
pub struct Provider {
    args: Args,
    log: Log,
}

/// What a request is answered with.
struct Decision {
    delivery: Delivery,
    status: u16,
    tokens: Option<Tokens>,
    script: Script,
}

impl Provider {
    /// Opens the record file, if one is asked for.
    pub fn new(args: Args) -> Result<Self> {
        let file = match &args.record_file {
            Some(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                Some(file.with_context(|| format!("opening {}", path.display()))?)
            }
            None => None,
        };
        Ok(Self {
            args,
            log: Log::new(file),
        })
    }

    /// Serves one request; gives the connection back if it goes on.
    async fn request(&self, mut wire: Wire, head: Head) -> Option<Wire> {
        if let Some(delivery) = self.ground_truth(&head) {
            wire.read_body(&head).await;
            delivery
                .send(&mut wire, &mut Progress::default())
                .await
                .then_some(())?;
            return Some(wire);
        }
        let mut served = self.log.begin(first_look(&head));
        let body = wire.read_body(&head).await;
        self.record_body(&mut served, &body);
        self.log.update(&served);
        if !body.complete {
            self.end(served, Ended::RequestIncomplete);
            return None;
        }
        let decision = self.decide(&head, &body.bytes, &mut served);
        self.log.update(&served);
        self.deliver(wire, decision, served).await
    }

    async fn deliver(
        &self,
        mut wire: Wire,
        decision: Decision,
        mut served: Served,
    ) -> Option<Wire> {
        let Decision {
            delivery,
            status,
            tokens,
            script,
        } = decision;
        served.tokens = tokens;
        if !wait_with_client(&mut wire, script.delay_ms).await {
            self.end(served, Ended::ClientClosed);
            return None;
        }
        if script.cut_before_headers {
            self.end(served, Ended::Cut);
            let nothing = Delivery {
                steps: Vec::new(),
                ending: Ending::Cut(script.cut),
            };
            return nothing.end(wire).await;
        }
        served.status = status;
        let mut progress = Progress::default();
        let sent = delivery.send(&mut wire, &mut progress).await;
        served.bytes_sent = progress.bytes;
        served.events_sent = progress.mark.events;
        served.usage_sent = progress.mark.usage;
        let ended = match delivery.ending {
            _ if !sent => Ended::ClientClosed,
            Ending::Cut(_) => Ended::Cut,
            Ending::KeepAlive | Ending::Close => Ended::Complete,
        };
        self.end(served, ended);
        if !sent {
            return None;
        }
        delivery.end(wire).await
    }

    fn end(&self, mut served: Served, ended: Ended) {
        served.ended = ended;
        served.ended_at_us = now_us();
        self.log.update(&served);
    }

    fn record_body(&self, served: &mut Served, body: &Body) {
        served.body_complete = body.complete;
        served.body_bytes = u64::try_from(body.bytes.len()).unwrap_or_default();
        served.body_sha256 = sha256_hex(&body.bytes);
        if self.args.keep_bodies {
            served.body = Some(String::from_utf8_lossy(&body.bytes).into_owned());
        }
    }

    /// The endpoints that tests read; they are not recorded.
    fn ground_truth(&self, head: &Head) -> Option<Delivery> {
        let none = Headers::new();
        match (head.method.as_str(), head.path()) {
            ("GET", "/_served") => {
                let since = head
                    .query("since")
                    .and_then(|v| v.parse().ok())
                    .unwrap_or(0);
                let lines = self.log.lines(since);
                Some(reply::small(
                    200,
                    "application/x-ndjson",
                    lines.as_bytes(),
                    &none,
                ))
            }
            ("DELETE", "/_served") => {
                self.log.clear();
                Some(reply::small(200, "text/plain", b"", &none))
            }
            ("GET", "/healthz") => Some(reply::small(200, "text/plain", b"ok\n", &none)),
            _ => None,
        }
    }

    fn decide(&self, head: &Head, body: &[u8], served: &mut Served) -> Decision {
        let path = without_face(head.path()).1;
        match (head.method.as_str(), path) {
            ("POST", "/v1/chat/completions") => self.ask(Played::Chat, head, body, served),
            ("POST", "/v1/messages") => self.ask(Played::Messages, head, body, served),
            ("POST", _) if let Some((model, stream)) = generate_content::asked(path) => self.ask(
                Played::GenerateContent { model, stream },
                head,
                body,
                served,
            ),
            ("GET", "/v1/models") => {
                let models: Vec<Value> = self.args.models.iter().map(|id| model_json(id)).collect();
                answered(200, &json!({"object": "list", "data": models}))
            }
            ("GET", _) => match path.strip_prefix("/v1/models/") {
                Some(id) if self.args.models.iter().any(|m| m == id) => {
                    answered(200, &model_json(id))
                }
                _ => answered(404, &reply::error_json(404, "no such model")),
            },
            _ => answered(404, &reply::error_json(404, "no such endpoint")),
        }
    }

    fn ask(&self, played: Played<'_>, head: &Head, body: &[u8], served: &mut Served) -> Decision {
        let refused = |message: &str| answered(400, &played.error_json()(400, message));
        let Ok(body) = serde_json::from_slice::<Value>(body) else {
            return refused("the body is not JSON");
        };
        let script = match script::find(head.header("x-provider-script"), &body, served.attempt) {
            Ok(script) => script,
            Err(error) => return refused(&error.to_string()),
        };
        served.script.clone_from(&script);
        let script = script.unwrap_or_default();
        let ask = match played.read(head, &body) {
            Ok(ask) => ask,
            Err(fault) => return refused(&fault),
        };
        served.model.clone_from(&ask.model);
        served.stream = ask.stream;
        served.include_usage = ask.include_usage;
        if let Some(name) = &script.case {
            return match case::load(self.args.cases_dir.as_deref(), name, served.attempt) {
                Ok(delivery) => Decision {
                    delivery,
                    status: 200,
                    tokens: None,
                    script,
                },
                Err(error) => refused(&error.to_string()),
            };
        }
        let headers = extra_headers(head, &script, served.seq);
        if script.status != 200 {
            let delivery = reply::error(&script, &headers, played.error_json());
            return Decision {
                delivery,
                status: script.status,
                tokens: None,
                script,
            };
        }
        let drawn = Tokens::draw(self.args.seed, served.seq);
        let mut answer = Answer::new(&ask, &script, served.seq, now_us() / 1_000_000, drawn);
        if self.args.demo_tokens && served.script.is_none() {
            answer = answer.measured(served.body_bytes, output_bound(&body), served.seq);
        }
        let delivery = if ask.stream {
            reply::stream(&played.events(&ask, &answer, &script), &script, &headers)
        } else {
            played.whole(&answer, &script, &headers)
        };
        Decision {
            delivery,
            status: 200,
            tokens: Some(answer.tokens),
            script,
        }
    }
}

/// The API that is played.
#[derive(Clone, Copy)]
enum Played<'a> {
    Chat,
    Messages,
    GenerateContent { model: &'a str, stream: bool },
}

impl Played<'_> {
    fn error_json(self) -> fn(u16, &str) -> Value {
        match self {
            Self::Chat => reply::error_json,
            Self::Messages => messages::error_json,
            Self::GenerateContent { .. } => generate_content::error_json,
        }
    }

    fn read(self, head: &Head, body: &Value) -> Result<Ask, String> {
        match self {
            Self::Chat => Ask::read(body).map_err(|field| format!("`{field}` is missing or wrong")),
            Self::Messages => messages::read(body, head.header("anthropic-version")),
            Self::GenerateContent { model, stream } => generate_content::read(model, stream, body),
        }
    }

    fn events(self, ask: &Ask, answer: &Answer, script: &Script) -> Vec<Event> {
        match self {
            Self::Chat => stream::events(ask, answer, script),
            Self::Messages => messages::events(answer, script),
            Self::GenerateContent { .. } => generate_content::events(answer, script),
        }
    }

    fn whole(self, answer: &Answer, script: &Script, headers: &Headers) -> Delivery {
        let document = match self {
            Self::Chat => return reply::plain(answer, script, headers),
            Self::Messages => messages::message(answer),
            Self::GenerateContent { .. } => generate_content::whole(answer),
        };
        reply::document(&document, answer.tokens, script, headers)
    }
}

/// What the head of a request tells.
fn first_look(head: &Head) -> Served {
    let masked = |(name, value): &(String, String)| (name.clone(), mask_header(name, value));
    Served {
        face: without_face(head.path()).0.to_owned(),
        request_id: head.header("x-request-id").unwrap_or_default().to_owned(),
        received_at_us: now_us(),
        method: head.method.clone(),
        target: mask_target(&head.target),
        headers: head.headers.iter().map(masked).collect(),
        ..Served::default()
    }
}

/// A path's face (empty: none) and the path without it.
fn without_face(path: &str) -> (&str, &str) {
    let rest = path.strip_prefix("/face/").unwrap_or_default();
    match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => ("", path),
    }
}

fn answered(status: u16, body: &Value) -> Decision {
    let delivery = reply::small(
        status,
        "application/json",
        body.to_string().as_bytes(),
        &Vec::new(),
    );
    Decision {
        delivery,
        status,
        tokens: None,
        script: Script::default(),
    }
}

fn model_json(id: &str) -> Value {
    json!({"id": id, "object": "model", "created": 1_700_000_000, "owned_by": "turnpike-demo"})
}

fn extra_headers(head: &Head, script: &Script, seq: u64) -> Headers {
    let mut headers = vec![("x-provider-seq".to_owned(), seq.to_string())];
    let named = |name: &str, value: &Option<String>| Some((name.to_owned(), value.clone()?));
    headers.extend(named("retry-after", &script.retry_after));
    headers.extend(named("location", &script.location));
    headers.extend(
        script
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    headers.extend(script.echo_headers.iter().filter_map(|name| {
        let name = name.to_ascii_lowercase();
        let value = mask_header(&name, head.header(&name)?);
        Some((format!("x-echo-{name}"), value))
    }));
    headers
}

#[cfg(test)]
mod tests;
