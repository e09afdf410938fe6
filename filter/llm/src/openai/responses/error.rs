//! Errors inside a stream; answers have the errors of the whole family.

use serde::Serialize;

use crate::error::ErrorBody;
use crate::openai::print::write_json;

#[derive(Serialize)]
struct ErrorEvent<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    code: Option<&'a str>,
    message: &'a str,
    param: Option<&'a str>,
    sequence_number: u64,
}

/// Appends the event that tells an error inside a stream. Its code is the error's, or the kind
/// where that has none.
pub(crate) fn print_event(error: &ErrorBody<'_>, sequence_number: u64, out: &mut Vec<u8>) {
    let event = ErrorEvent {
        kind: "error",
        code: error.code.or(Some(error.kind)),
        message: error.message,
        param: error.param,
        sequence_number,
    };
    out.extend_from_slice(b"event: error\ndata: ");
    write_json(&event, out);
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use crate::api::Api;
    use crate::error::ErrorBody;
    use crate::meter::{StreamMeter, UsageMembers};

    const BODY: ErrorBody<'_> = ErrorBody {
        status: 502,
        message: "it \"broke\"",
        kind: "server_error",
        param: None,
        code: Some("provider_cut"),
        request_id: "req-1",
    };

    /// Members as in OpenAI's API reference, "error" of "Streaming events".
    #[test]
    fn an_error_event_has_its_members_outermost() {
        let event = BODY.to_event_numbered(Api::Responses, 7);
        let expected = concat!(
            "event: error\n",
            r#"data: {"type":"error","code":"provider_cut","message":"it \"broke\"","param":null,"sequence_number":7}"#,
            "\n\n",
        );
        assert_eq!(String::from_utf8(event.clone()).unwrap(), expected);
        let mut meter = StreamMeter::new(Api::Responses, UsageMembers::Keep, 1 << 16);
        meter.observe(&event);
        let error = meter.reading().error.clone().unwrap();
        assert_eq!(error.message, "it \"broke\"");
        assert_eq!(error.code, "provider_cut");
        assert_eq!(meter.reading().next_sequence_number, 8);
    }

    #[test]
    fn an_answer_has_the_error_of_the_family() {
        let body = BODY.to_body(Api::Responses);
        assert_eq!(body, BODY.to_body(Api::ChatCompletions));
        assert!(crate::error::is_of(Api::Responses, &body));
        let error = crate::error::parse(Api::Responses, &body).unwrap();
        assert_eq!(error.kind, "server_error");
    }
}
