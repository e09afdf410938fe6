//! `POST /v1/embeddings`: what decides is read, all else stays the bytes it is. Answers have their
//! usage where chat's have it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::input::Input;
use crate::request::{
    EditPoints, Needs, OutputPoints, Request, RequestFault, Span, convert, members, present,
};

/// Reads a request. It has no output to bound, and its usage is always told.
pub(crate) fn parse(body: &[u8]) -> Result<Request<'_>, RequestFault> {
    let read: Members<'_> = members(body)?;
    let model = read.model.ok_or_else(RequestFault::no_model)?;
    let input = Input::read(read.input, "input")?;
    Ok(Request {
        model: convert::model(model)?,
        stream: false,
        asks_usage: true,
        max_output_tokens: Some(0),
        choices: 1,
        reasoning_effort: None,
        metadata: convert::metadata(read.metadata)?,
        user: convert::text(read.user, "user")?,
        needs: Needs::default(),
        body_bytes: body.len() as u64,
        text_bytes: input.text_bytes,
        edits: EditPoints {
            model: Some(Span::of(body, model)),
            usage: None,
            output: OutputPoints::default(),
            vertex: None,
        },
    })
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    model: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    input: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    user: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Api;
    use crate::meter::PlainMeter;

    #[test]
    fn text_counts_as_itself_and_tokens_as_likely_text() {
        for (input, text_bytes) in [
            (r#""h\u00e9llo""#, 6),
            (r#"["ab","c\n"]"#, 4),
            ("[1,2,3]", 12),
            ("[[1,2],[3]]", 12),
            ("[]", 0),
            ("null", 0),
        ] {
            let body = format!(r#"{{"model":"m","input":{input}}}"#);
            let request = parse(body.as_bytes()).unwrap();
            assert_eq!(request.text_bytes, text_bytes, "{input}");
            assert_eq!(request.max_output_tokens, Some(0));
            assert!(!request.stream);
        }
    }

    #[test]
    fn what_is_neither_text_nor_tokens_is_refused() {
        for input in [
            "7",
            "true",
            r#"{"text":"a"}"#,
            r#"[{"text":"a"}]"#,
            r#"["a",1]"#,
            "[[1],2]",
            r#"[["a"]]"#,
            "[[[1]]]",
        ] {
            let body = format!(r#"{{"model":"m","input":{input}}}"#);
            let fault = parse(body.as_bytes()).unwrap_err();
            assert_eq!(fault.param, Some("input"), "{input}");
        }
    }

    /// The form is of OpenAI's API reference, `embeddings/create`.
    #[test]
    fn usage_of_an_answer_is_its_prompt() {
        for embedding in ["[0.0023,-0.0093,1e-3]", r#""AACAPwAAAEA=""#] {
            let answer = format!(
                r#"{{"object":"list","data":[{{"object":"embedding","index":0,
                "embedding":{embedding}}}],"model":"text-embedding-3-small",
                "usage":{{"prompt_tokens":8,"total_tokens":8}}}}"#
            );
            for cut in 0..answer.len() {
                let (head, tail) = answer.as_bytes().split_at(cut);
                let mut meter = PlainMeter::new(Api::Embeddings);
                meter.observe(head);
                meter.observe(tail);
                meter.finish();
                let reading = meter.reading();
                let usage = reading.usage.unwrap();
                assert_eq!((usage.input, usage.output), (8, 0));
                assert!(reading.is_done && reading.has_content);
            }
        }
    }
}
