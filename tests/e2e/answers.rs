//! A request through Envoy is answered, and is in the ledger.

use serde_json::{Value, json};
use tests::{
    http::Request,
    stack::{Options, Stack},
};

fn chat(stream: bool) -> Value {
    json!({"model": "small", "stream": stream, "messages": [{"role": "user", "content": "Hello"}]})
}

#[test]
fn plain_and_streamed_answers_come_through_and_are_in_the_ledger() {
    let stack = Stack::start(&Options::default());
    let key = stack.key("answers");
    for stream in [false, true] {
        let answer = Request::chat(&key, &chat(stream))
            .send(stack.port())
            .expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.complete);
        let id = answer
            .header("x-request-id")
            .expect("a request id")
            .to_owned();
        let record = stack.record(&id).record;
        let served = stack
            .served()
            .into_iter()
            .find(|served| served.request_id == id);
        let served = served.expect("the provider saw it");
        let attempt = record.attempts.first().expect("an attempt");
        let usage = attempt.usage.clone().expect("usage");
        assert_eq!(usage.input, served.tokens.input);
        assert_eq!(usage.cached_input, served.tokens.cached_input);
        assert_eq!(usage.output, served.tokens.output);
        assert_eq!(usage.reasoning, served.tokens.reasoning);
        if stream {
            let shows_usage = answer
                .events()
                .iter()
                .any(|event| event.get("usage").is_some());
            assert!(
                !shows_usage,
                "the client did not ask for usage: {}",
                answer.text()
            );
        }
    }
}
