//! Answers as bytes on the wire.

use serde_json::{Value, json};

use crate::{
    answer::{Answer, arguments_text},
    delivery::{Delivery, Ending, Mark, Step},
    gzip,
    script::{Framing, Script, Transfer, UsagePlacement},
    stream::Event,
    tokens::Tokens,
};

/// Header lines of an answer, in order.
pub type Headers = Vec<(String, String)>;

/// A small JSON answer on a connection that stays open.
pub fn small(status: u16, content_type: &str, body: &[u8], headers: &Headers) -> Delivery {
    let mut all = vec![("content-type".to_owned(), content_type.to_owned())];
    all.extend(headers.iter().cloned());
    all.push(("content-length".to_owned(), body.len().to_string()));
    let mut bytes = head(status, &all);
    bytes.extend(body);
    let mark = Mark {
        events: 1,
        usage: None,
    };
    Delivery {
        steps: vec![Step::Write(bytes), Step::Mark(mark)],
        ending: Ending::KeepAlive,
    }
}

/// An OpenAI-shaped error with the type and code that go with `status`.
pub fn error_json(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        400 => ("invalid_request_error", Value::Null),
        401 => ("authentication_error", json!("invalid_api_key")),
        402 => ("insufficient_quota", json!("insufficient_quota")),
        403 => ("permission_error", Value::Null),
        404 => ("not_found_error", json!("model_not_found")),
        429 => ("rate_limit_error", json!("rate_limit_exceeded")),
        _ => ("server_error", Value::Null),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

/// The answer that `script` gives in place of a completion.
pub fn error(script: &Script, headers: &Headers, error_json: fn(u16, &str) -> Value) -> Delivery {
    let default = || error_json(script.status, &format!("scripted status {}", script.status));
    let body = match &script.error_body {
        Some(Value::String(text)) => text.clone(),
        Some(body) => body.to_string(),
        None if script.status < 400 => String::new(),
        None => default().to_string(),
    };
    whole_body(
        body.into_bytes(),
        "application/json",
        Mark {
            events: 1,
            usage: None,
        },
        script,
        headers,
    )
}

/// A completion in one JSON object.
pub fn plain(answer: &Answer, script: &Script, headers: &Headers) -> Delivery {
    let mut message = json!({"role": "assistant", "content": answer.text, "refusal": null});
    if let Some(reasoning) = &answer.reasoning {
        merge(&mut message, json!({"reasoning_content": reasoning}));
    }
    if !answer.tool_calls.is_empty() {
        let calls = answer.tool_calls.iter().map(|call| {
            let function = json!({"name": call.name, "arguments": arguments_text(call)});
            json!({"id": call.id, "type": "function", "function": function})
        });
        merge(
            &mut message,
            json!({"tool_calls": calls.collect::<Vec<_>>()}),
        );
    }
    let choice = json!({
        "index": 0, "message": message, "logprobs": null, "finish_reason": answer.finish_reason,
    });
    let mut body = json!({
        "id": answer.id, "object": "chat.completion", "created": answer.created_s,
        "model": answer.model, "choices": [choice],
    });
    let mut usage = Some(answer.tokens);
    match script.usage {
        UsagePlacement::None => usage = None,
        UsagePlacement::Null => {
            usage = None;
            merge(&mut body, json!({"usage": null}));
        }
        _ => merge(&mut body, json!({"usage": answer.tokens.to_json()})),
    }
    let bytes = body.to_string().into_bytes();
    whole_body(
        bytes,
        "application/json",
        Mark { events: 1, usage },
        script,
        headers,
    )
}

fn merge(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

/// An answer in one JSON document.
pub fn document(body: &Value, usage: Tokens, script: &Script, headers: &Headers) -> Delivery {
    let mark = Mark {
        events: 1,
        usage: Some(usage),
    };
    let bytes = body.to_string().into_bytes();
    whole_body(bytes, "application/json", mark, script, headers)
}

/// One body with its length, paced, packed and cut as the script says.
fn whole_body(
    plain: Vec<u8>,
    kind: &str,
    mark: Mark,
    script: &Script,
    headers: &Headers,
) -> Delivery {
    let mut all = vec![("content-type".to_owned(), kind.to_owned())];
    all.extend(headers.iter().cloned());
    let body = if script.gzip {
        all.push(("content-encoding".to_owned(), "gzip".to_owned()));
        gzip::store(&plain)
    } else {
        plain
    };
    let closes = script.transfer == Transfer::Close;
    if closes {
        all.push(("connection".to_owned(), "close".to_owned()));
    } else {
        all.push(("content-length".to_owned(), body.len().to_string()));
    }
    let sent = match script.cut_after_chunks {
        Some(0) if script.cut_mid_line => body.len() / 2,
        Some(0) => 0,
        _ => body.len(),
    };
    let part = body.get(..sent).unwrap_or_default();
    let ending = match script.cut_after_chunks {
        Some(_) => Ending::Cut(script.cut),
        None if closes => Ending::Close,
        None => Ending::KeepAlive,
    };
    let mut delivery = Delivery {
        steps: Vec::new(),
        ending,
    };
    let mut bytes = head(script.status, &all);
    if script.first_event_delay_ms > 0 {
        delivery.steps.push(Step::Write(std::mem::take(&mut bytes)));
        delivery.pause(script.first_event_delay_ms);
    }
    bytes.extend(part);
    delivery.steps.push(Step::Write(bytes));
    if sent == body.len() {
        delivery.steps.push(Step::Mark(mark));
    }
    delivery
}

/// A completion as a stream of events.
pub fn stream(events: &[Event], script: &Script, headers: &Headers) -> Delivery {
    let mut all = vec![(
        "content-type".to_owned(),
        "text/event-stream; charset=utf-8".to_owned(),
    )];
    all.extend(headers.iter().cloned());
    match script.transfer {
        Transfer::Chunked => all.push(("transfer-encoding".to_owned(), "chunked".to_owned())),
        Transfer::Close => all.push(("connection".to_owned(), "close".to_owned())),
        Transfer::ContentLength => {
            let length: usize = events.iter().map(|event| event.bytes.len()).sum();
            all.push(("content-length".to_owned(), length.to_string()));
        }
    }
    let mut delivery = Delivery {
        steps: Vec::new(),
        ending: stream_ending(script),
    };
    delivery.steps.push(Step::Write(head(script.status, &all)));
    delivery.pause(script.first_event_delay_ms);

    let chunked = script.transfer == Transfer::Chunked;
    for (index, (payload, mark)) in units(events, script).into_iter().enumerate() {
        if index > 0 {
            delivery.pause(script.chunk_delay_ms);
        }
        delivery
            .steps
            .push(Step::Write(if chunked { chunk(&payload) } else { payload }));
        delivery.steps.push(Step::Mark(mark));
    }
    if chunked && script.cut_after_chunks.is_none() {
        end_chunks(&mut delivery, script);
    }
    delivery
}

fn stream_ending(script: &Script) -> Ending {
    match (script.cut_after_chunks, script.transfer) {
        (Some(_), _) => Ending::Cut(script.cut),
        (None, Transfer::Close) => Ending::Close,
        (None, _) => Ending::KeepAlive,
    }
}

/// Adds the last, empty chunk and the trailers: to the last write when everything is to come in one.
fn end_chunks(delivery: &mut Delivery, script: &Script) {
    let mut last = "0\r\n".to_owned();
    for (name, value) in &script.trailers {
        last.extend([name, ": ", value, "\r\n"]);
    }
    last.push_str("\r\n");
    let last_write = delivery.steps.iter_mut().rev().find_map(|step| match step {
        Step::Write(bytes) => Some(bytes),
        Step::Pause(_) | Step::Mark(_) => None,
    });
    match last_write {
        Some(bytes) if script.framing == Framing::Coalesced => bytes.extend(last.bytes()),
        _ => delivery.steps.push(Step::Write(last.into_bytes())),
    }
}

/// The payload in the pieces that are written one by one, each with how far the stream is after it.
fn units(events: &[Event], script: &Script) -> Vec<(Vec<u8>, Mark)> {
    let whole = script
        .cut_after_chunks
        .unwrap_or(events.len())
        .min(events.len());
    let (kept, rest) = events.split_at(whole);
    let half = match rest.first() {
        Some(next) if script.cut_mid_line => next.bytes.get(..next.bytes.len() / 2),
        _ => None,
    };
    if script.framing == Framing::EventPerWrite {
        let mut mark = Mark::default();
        let mut units: Vec<_> = kept
            .iter()
            .map(|event| {
                mark = Mark {
                    events: mark.events + 1,
                    usage: event.usage.or(mark.usage),
                };
                (event.bytes.clone(), mark)
            })
            .collect();
        units.extend(half.map(|half| (half.to_vec(), mark)));
        return units;
    }
    let mut payload: Vec<u8> = kept
        .iter()
        .flat_map(|event| event.bytes.iter().copied())
        .collect();
    payload.extend(half.unwrap_or_default());
    let size = match script.framing {
        Framing::Bytes(size) => size,
        Framing::EventPerWrite | Framing::Coalesced => payload.len().max(1),
    };
    let mut sent = 0;
    let pieces = payload.chunks(size).map(|piece| {
        sent += piece.len();
        (piece.to_vec(), mark_at(kept, sent))
    });
    pieces.collect()
}

fn mark_at(events: &[Event], sent: usize) -> Mark {
    let mut mark = Mark::default();
    let mut end = 0;
    for event in events {
        end += event.bytes.len();
        if end > sent {
            break;
        }
        mark = Mark {
            events: mark.events + 1,
            usage: event.usage.or(mark.usage),
        };
    }
    mark
}

fn chunk(payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:x}\r\n", payload.len()).into_bytes();
    bytes.extend(payload);
    bytes.extend(b"\r\n");
    bytes
}

fn head(status: u16, headers: &Headers) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Scripted",
    };
    let mut text = format!("HTTP/1.1 {status} {reason}\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    text.push_str("\r\n");
    text.into_bytes()
}

#[cfg(test)]
mod tests;
