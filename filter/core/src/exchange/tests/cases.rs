//! Recorded faults of other gateways: cases 02 to 04 from their files, at every cut; the tables of
//! cases 11 and 12.

use std::fs;
use std::path::PathBuf;

use proto::metering::v1::{End, UsageSource};

use super::shell::{Play, Seen, Shell, chat_head};
use crate::fixture::*;

struct Case {
    body: String,
    payload: Vec<u8>,
}

fn case(name: &str) -> Case {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden/cases")
        .join(name);
    let request = fs::read(dir.join("request.json")).unwrap();
    let request: serde_json::Value = serde_json::from_slice(&request).unwrap();
    let response = fs::read(dir.join("upstream-response.txt")).unwrap();
    let head_end = response
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap()
        + 4;
    Case {
        body: request["body"].to_string(),
        payload: unchunk(&response[head_end..]),
    }
}

fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    loop {
        let line_end = rest.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = std::str::from_utf8(&rest[..line_end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return payload;
        }
        payload.extend_from_slice(&rest[line_end + 2..line_end + 2 + size]);
        rest = &rest[line_end + 4 + size..];
    }
}

impl Case {
    /// Runs it whole, cut once at each byte, and byte by byte.
    fn at_every_cut(&self, check: impl Fn(&Seen)) {
        let shell = Shell::new();
        let run = |frames: Vec<Vec<u8>>| {
            let seen = shell.chat(
                &self.body,
                &[Play::frames(200, "text/event-stream", frames)],
            );
            assert_eq!((seen.status, seen.record().attempts.len()), (200, 1));
            assert_eq!(seen.record().end, i32::from(End::Complete));
            check(&seen);
        };
        run(vec![self.payload.clone()]);
        for cut in 1..self.payload.len() {
            let (before, after) = self.payload.split_at(cut);
            run(vec![before.to_vec(), after.to_vec()]);
        }
        run(self.payload.iter().map(|&byte| vec![byte]).collect());
    }
}

#[track_caller]
fn assert_reported(seen: &Seen, input: u64, output: u64) {
    let usage = seen.record().attempts[0].usage.as_ref().unwrap();
    assert_eq!((usage.input, usage.output), (input, output));
    assert_eq!(usage.source, i32::from(UsageSource::Reported));
    assert_eq!((usage.cached_input, usage.cache_write), (0, 0));
}

#[test]
fn case_02_usage_in_every_chunk_is_not_summed() {
    let case = case("02-usage-in-every-chunk-cut-mid-json");
    case.at_every_cut(|seen| {
        assert_eq!(seen.body, case.payload);
        assert_reported(seen, 12, 3);
    });
}

#[test]
fn case_03_characters_cut_in_two_stay_whole() {
    let case = case("03-utf8-cut-inside-character");
    case.at_every_cut(|seen| {
        assert_eq!(seen.body, case.payload);
        assert_reported(seen, 7, 11);
    });
}

#[test]
fn case_04_usage_chunks_without_choices_are_metered_and_hidden() {
    let case = case("04-usage-chunk-without-choices");
    let seen = Shell::new().chat(
        &case.body,
        &[Play::frames(
            200,
            "text/event-stream",
            vec![case.payload.clone()],
        )],
    );
    let sent: serde_json::Value = serde_json::from_slice(&seen.providers[0].2).unwrap();
    assert_eq!(sent["stream_options"]["include_usage"], true);
    let whole = seen.text().to_owned();
    assert!(
        !whole.contains("usage") && whole.ends_with("data: [DONE]\n\n"),
        "{whole}"
    );
    assert_eq!(whole.matches("data: {").count(), 3, "{whole}");
    case.at_every_cut(|seen| {
        assert_eq!(seen.text(), whole);
        assert_reported(seen, 9, 2);
    });
}

#[test]
fn case_11_allow_list_at_the_edges_of_wildcards_and_aliases() {
    let mut resources = resources();
    let alpha = resources.virtual_keys.get_mut("alpha").unwrap();
    alpha.models = vec!["acme/*".into(), "short-name".into()];
    for (id, upstream) in [
        ("acme/small", ""),
        ("acmez/small", ""),
        ("acme", ""),
        ("ACME/small", ""),
        ("short-name", "other/big-model"),
        ("fast", "other/mini"),
        ("other/big-model", ""),
    ] {
        resources
            .models
            .insert(id.into(), model(id, vec![target("a", upstream)]));
    }
    let shell = Shell::with(&resources);
    for (name, status, upstream) in [
        (r#""acme/small""#, 200, "acme/small"),
        (r#""acmez/small""#, 403, ""),
        (r#""acme""#, 403, ""),
        (r#""acme/""#, 403, ""),
        (r#""ACME/small""#, 403, ""),
        (r#"" acme/small""#, 403, ""),
        (r#""acme/../other/big-model""#, 404, ""),
        (r#""acme/*""#, 404, ""),
        (r#""short-name""#, 200, "other/big-model"),
        (r#""other/big-model""#, 403, ""),
        (r#""fast""#, 403, ""),
        (r#""""#, 400, ""),
        ("null", 400, ""),
    ] {
        let body = format!(r#"{{"model":{name},"messages":[{{"role":"user","content":"x"}}]}}"#);
        let seen = shell.chat(&body, &[Play::json(200, "{}")]);
        assert_eq!(seen.status, status, "{name}");
        assert_eq!(seen.providers.len(), usize::from(status == 200), "{name}");
        if status == 200 {
            let sent: serde_json::Value = serde_json::from_slice(&seen.providers[0].2).unwrap();
            assert_eq!(sent["model"], upstream);
        } else {
            assert!(
                !seen.text().contains("mini"),
                "names no other model: {}",
                seen.text()
            );
        }
    }
}

#[test]
fn case_12_the_providers_credential_appears_nowhere_outside() {
    let shell = Shell::new();
    let body = r#"{"model":"small-1","messages":[{"role":"user","content":"x"}]}"#;
    let stream = r#"{"model":"small-1","stream":true,"messages":[]}"#;
    let url = format!("http://mock/v1/x?key={SECRET_A}");
    let told = format!(r#"{{"error":{{"code":400,"message":"request to {url} was not valid"}}}}"#);
    let plays = [
        (400, Play::json(400, &told)),
        (503, Play::RefuseConnection),
        (502, Play::ResetBeforeHead),
        (500, Play::answer(500, "text/plain", &url)),
        (502, Play::json(302, &told).header("location", &url)),
        (502, Play::json(401, &told)),
        (502, Play::stream(&[&told])),
        (504, Play::TimeOut),
        (0, Play::ClientLeaves),
    ];
    for (status, play) in plays {
        for body in [body, stream] {
            if body == stream && status == 0 {
                continue;
            }
            let is_stream_play = matches!(&play, Play::Answer { status: 200, .. });
            let body = if is_stream_play { stream } else { body };
            let seen = shell.chat(body, std::slice::from_ref(&play));
            assert_eq!(seen.status, status);
            let outside = format!(
                "{:?} {:?} {:?} {:?}",
                String::from_utf8_lossy(&seen.body),
                seen.headers,
                seen.logged,
                seen.settled
            );
            assert!(!outside.contains("CANARY"), "{outside}");
            assert!(
                format!("{:?}", seen.providers).contains(SECRET_A),
                "the provider got it"
            );
        }
    }
    let head = chat_head(&[("authorization", "Bearer CANARY-client-key-9f2")]);
    let seen = shell.run(&head, body.as_bytes(), &[]);
    assert_eq!(seen.status, 401);
    assert!(!format!("{:?} {:?} {:?}", seen.text(), seen.headers, seen.settled).contains("CANARY"));
}
