//! `POST /v1/completions`, the older API, for providers that serve it too: what decides is read,
//! all else stays the bytes it is. Its answers are read as chat's are.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::input::Input;
use super::stream_options::StreamOptions;
use crate::request::{
    EditPoints, MissingOutput, Needs, OutputPoints, Request, RequestFault, Span, convert, members,
    present,
};

/// Reads a request.
pub(crate) fn parse(body: &[u8]) -> Result<Request<'_>, RequestFault> {
    members::<Members<'_>>(body)?.into_request(body)
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    model: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    prompt: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    suffix: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    stream: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    stream_options: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    n: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    best_of: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    user: Option<&'a RawValue>,
}

impl<'a> Members<'a> {
    fn into_request(self, body: &'a [u8]) -> Result<Request<'a>, RequestFault> {
        let stream_options = StreamOptions::read(self.stream_options)?;
        let model = self.model.ok_or_else(RequestFault::no_model)?;
        let prompt = Input::read(self.prompt, "prompt")?;
        let suffix = convert::text(self.suffix, "suffix")?.unwrap_or_default();
        Ok(Request {
            model: convert::model(model)?,
            stream: convert::boolean(self.stream, "stream")?.unwrap_or(false),
            asks_usage: stream_options.asks_usage(),
            max_output_tokens: convert::count(self.max_tokens, "max_tokens")?,
            choices: self.choices()?.saturating_mul(prompt.count.max(1)),
            reasoning_effort: None,
            metadata: convert::metadata(self.metadata)?,
            user: convert::text(self.user, "user")?,
            needs: Needs::default(),
            body_bytes: body.len() as u64,
            text_bytes: prompt.text_bytes.saturating_add(suffix.len() as u64),
            edits: EditPoints {
                model: Some(Span::of(body, model)),
                usage: stream_options.edit(body),
                output: self.output_points(body),
                vertex: None,
            },
        })
    }

    /// The answers that are made for each prompt: those of `best_of` that are not shown cost too.
    fn choices(&self) -> Result<u64, RequestFault> {
        let best_of = convert::count(self.best_of, "best_of")?;
        Ok(convert::choices(self.n)?.max(best_of.unwrap_or(1)))
    }

    fn output_points(&self, body: &[u8]) -> OutputPoints {
        OutputPoints {
            said: [self.max_tokens.map(|member| Span::of(body, member)), None],
            missing: Some(MissingOutput {
                at: Span::first_member(body).start,
                before: r#""max_tokens":"#,
                after: ",",
            }),
            completion_name: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::splice::Splices;

    fn read(members: &str) -> Request<'_> {
        parse(members.as_bytes()).unwrap()
    }

    #[test]
    fn what_decides_is_read() {
        let request = read(
            r#"{"model":"m","prompt":"h\u00e9llo","suffix":"ab","stream":true,"max_tokens":7,
            "stream_options":{"include_usage":true},"n":2,"user":"u","metadata":{"a":"b"}}"#,
        );
        assert_eq!((request.model.as_ref(), request.text_bytes), ("m", 8));
        assert!(request.stream && request.asks_usage);
        assert_eq!((request.max_output_tokens, request.choices), (Some(7), 2));
        assert_eq!(request.user.as_deref(), Some("u"));
        assert_eq!(request.metadata_value("a"), Some("b"));
    }

    #[test]
    fn answers_are_counted_that_are_made_and_not_shown() {
        for (members, choices) in [
            (r#""prompt":"a""#, 1),
            (r#""prompt":["a","b"]"#, 2),
            (r#""prompt":[1,2,3]"#, 1),
            (r#""prompt":[[1,2],[3]],"n":2"#, 4),
            (r#""prompt":["a","b"],"n":2,"best_of":5"#, 10),
            (r#""n":3"#, 3),
        ] {
            let body = format!(r#"{{"model":"m",{members}}}"#);
            assert_eq!(read(&body).choices, choices, "{members}");
        }
    }

    #[test]
    fn members_of_the_wrong_kind_are_named() {
        for (member, param) in [
            (r#""prompt":7"#, "prompt"),
            (r#""prompt":["a",7]"#, "prompt"),
            (r#""max_tokens":"7""#, "max_tokens"),
            (r#""best_of":-1"#, "best_of"),
            (r#""suffix":[]"#, "suffix"),
        ] {
            let body = format!(r#"{{"model":"m",{member}}}"#);
            let fault = parse(body.as_bytes()).unwrap_err();
            assert_eq!(fault.param, Some(param), "{member}");
        }
        let twice = parse(br#"{"model":"m","prompt":"a","prompt":"b"}"#).unwrap_err();
        assert_eq!(twice.code, Some("duplicate_parameter"));
    }

    #[test]
    fn the_model_the_usage_and_the_output_are_edited() {
        let body = r#"{"model":"m","prompt":"a","max_tokens":900}"#;
        let request = read(body);
        let splices: Splices = request
            .edits
            .rename_model("m", "n")
            .into_iter()
            .chain(request.edits.include_usage())
            .chain(request.edits.limit_output(300))
            .collect();
        let edited = String::from_utf8(splices.apply(body.as_bytes())).unwrap();
        assert_eq!(
            edited,
            r#"{"stream_options":{"include_usage":true},"model":"n","prompt":"a","max_tokens":300}"#
        );
        let silent = r#"{"model":"m"}"#;
        let splices: Splices = read(silent).edits.limit_output(300).collect();
        let bounded = splices.apply(silent.as_bytes());
        assert_eq!(bounded, br#"{"max_tokens":300,"model":"m"}"#);
    }
}
