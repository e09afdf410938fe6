//! Whatever comes, nothing panics, every exchange settles, and untouched bytes stay untouched.

use proptest::collection::vec;
use proptest::prelude::*;

use super::shell::*;
use crate::exchange::*;
use crate::fixture::*;

const BODY: &str = r#"{"model":"pair","stream":true,"messages":[]}"#;

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..max)
}

/// Pieces of what providers send, broken in ways they break.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n".to_vec()),
        Just(b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n".to_vec()),
        Just(b"data: {\"error\":{\"message\":\"m\"}}\n\n".to_vec()),
        Just(b"data: [DONE]\n\n".to_vec()),
        Just(b"data: {\"cho".to_vec()),
        Just(b"\r\n\r\n: c\n".to_vec()),
        bytes(40),
    ]
}

fn play() -> impl Strategy<Value = Play> {
    let content_types = prop_oneof![
        Just("text/event-stream"),
        Just("application/json"),
        Just("text/html"),
        Just("")
    ];
    let answer = (
        100_u16..700,
        content_types,
        vec(frame(), 0..8),
        any::<bool>(),
    );
    prop_oneof![
        6 => answer.prop_map(|(status, content_type, frames, ends)| {
            let play = Play::frames(status, content_type, frames);
            if ends { play } else { play.cut() }
        }),
        4 => (vec(frame(), 0..8), any::<bool>()).prop_map(|(frames, ends)| {
            let play = Play::frames(200, "text/event-stream", frames);
            if ends { play } else { play.cut() }
        }),
        1 => Just(Play::RefuseConnection),
        1 => Just(Play::ResetBeforeHead),
        1 => Just(Play::TimeOut),
        1 => Just(Play::ClientLeaves),
    ]
}

proptest! {
    #[test]
    fn any_answers_settle_into_one_record(plays in vec(play(), 2), leaves in 0_usize..10) {
        let mut shell = Shell::new();
        shell.client_reads_frames = leaves.checked_sub(5).filter(|&frames| frames > 0);
        let seen = shell.chat(BODY, &plays);
        let record = seen.record();
        prop_assert_eq!(record.attempts.len(), seen.providers.len());
        prop_assert!(record.end != 0);
        prop_assert!(record.attempts.iter().all(|attempt| attempt.verdict != 0));
        let leaks = format!("{:?}", seen.logged).contains("CANARY");
        prop_assert!(!leaks);
    }

    #[test]
    fn untouched_streams_reach_the_client_byte_for_byte(frames in vec(frame(), 0..12)) {
        let body = BODY.replace("\"messages\"", "\"stream_options\":{\"include_usage\":true},\"messages\"");
        let play = Play::frames(200, "text/event-stream", frames.clone());
        let seen = Shell::new().chat(&body.replace("pair", "small-1"), &[play]);
        if seen.status == 200 {
            prop_assert_eq!(seen.body, frames.concat());
        }
    }

    #[test]
    fn any_head_is_answered_or_asks_for_its_body(
        headers in vec((prop_oneof![
            Just(":path".to_owned()), Just(":method".to_owned()), Just("authorization".to_owned()),
            Just("x-turnpike-attributes".to_owned()), Just("content-length".to_owned()),
            "[a-z-]{0,12}"
        ], bytes(60)), 0..12),
        body in bytes(200),
        end_of_stream: bool,
    ) {
        let shell = Shell::new();
        let pairs: Vec<_> = headers.iter().map(|(n, v)| (n.as_bytes(), v.as_slice())).collect();
        let begin = Begin {
            config: &shell.config, clock: &shell.clock, entropy: [7; 32], node: IN_SYNC, held: &HELD,
            limits: shell.limits,
            health: shell.health,
        };
        let (mut exchange, _) = Exchange::begin(&begin, &Head { headers: &pairs, end_of_stream });
        exchange.on_request_bytes(body.len() as u64);
        exchange.on_request_body(&body, &shell.clock);
        // Hooks that come in no sensible order must be harmless.
        exchange.observe(&body, &shell.clock);
        exchange.transform(&body, &mut Vec::new(), &shell.clock);
        exchange.on_response_head(&pairs, end_of_stream, &shell.clock);
        exchange.on_response_end(&mut Vec::new(), &shell.clock);
        exchange.select(3, &shell.clusters, &shell.clock);
        exchange.rewrite_body(&body, &mut Sink(&mut Headers::new())).ok();
        let end = StreamEnd { response_code: 200, details: &body, flags: 0, shutdown: false };
        exchange.settle(&end, &shell.clock);
    }

    #[test]
    fn any_body_of_a_known_caller_is_answered(body in bytes(300)) {
        let seen = Shell::new().run(&chat_head(&[]), &body, &[Play::json(200, "{}"), Play::json(200, "{}")]);
        prop_assert!(matches!(seen.status, 200 | 400 | 403 | 404));
    }

    #[test]
    fn any_model_and_user_text_is_routed_or_refused(model in "\\PC{0,300}", user in "\\PC{0,600}") {
        let body = serde_json::json!({"model": model, "user": user, "messages": [],
            "metadata": {"a": user, "action_id": "act"}});
        let seen = Shell::new().chat(&body.to_string(), &[Play::json(200, "{}"), Play::json(200, "{}")]);
        prop_assert!(matches!(seen.status, 200 | 400 | 404), "{}", seen.status);
        if let Some(record) = &seen.settled.record {
            prop_assert!(record.caller.as_ref().unwrap().end_user.len() <= 256);
        }
    }
}

#[test]
fn the_fixture_has_no_fault() {
    compiled(&resources());
}
