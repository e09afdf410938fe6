//! `POST /v1/messages/count_tokens`: a message's request that asks for its length alone, and costs
//! nothing.

use crate::json::{Leaf, Reader};
use crate::meter::ReadAnswer;
use crate::provider_error::ProviderError;
use crate::reading::Reading;
use crate::request::{Edit, EditPoints, OutputPoints, Request, RequestFault, Span};

use super::{error, facts};

/// The version that Vertex is told; it wants the model too.
const VERSION_FIRST: &str = r#""anthropic_version":"vertex-2023-10-16","#;

/// Reads a request. It has no output to bound.
pub(crate) fn parse(body: &[u8]) -> Result<Request<'_>, RequestFault> {
    let message = facts::parse(body)?;
    Ok(Request {
        stream: false,
        max_output_tokens: Some(0),
        edits: EditPoints {
            output: OutputPoints::default(),
            vertex: Some(Edit {
                span: Span::first_member(body),
                with: VERSION_FIRST,
            }),
            ..message.edits
        },
        ..message
    })
}

/// What meters read of the count: that it came. It is no usage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count {
    reading: Reading,
}

impl ReadAnswer for Count {
    fn begin_document(&mut self) {}

    fn reading(&self) -> &Reading {
        &self.reading
    }

    fn reading_mut(&mut self) -> &mut Reading {
        &mut self.reading
    }

    fn parse_error(document: &[u8]) -> Option<ProviderError> {
        error::parse(document)
    }
}

impl Reader for Count {
    type Name = ();
    const UNKNOWN: () = ();
    const ITEM: () = ();

    fn name(_key: &[u8]) {}

    fn text_bytes_wanted(&self, _path: &[()]) -> usize {
        0
    }

    fn leaf(&mut self, _path: &[()], _leaf: Leaf<'_>) {}
}

#[cfg(test)]
mod tests {
    use crate::api::Api;
    use crate::meter::PlainMeter;
    use crate::request::{PathFacts, Request};
    use crate::splice::Splices;

    #[test]
    fn a_count_has_no_output_to_bound() {
        let body =
            br#"{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":"abc"}]}"#;
        let request = Request::parse(Api::CountTokens, PathFacts::default(), body).unwrap();
        assert_eq!((request.model.as_ref(), request.text_bytes), ("claude", 3));
        assert_eq!(request.max_output_tokens, Some(0));
        assert_eq!(request.edits.limit_output(5).count(), 0);
    }

    #[test]
    fn vertex_is_told_the_version_and_its_own_name_of_the_model() {
        let body = br#"{"model":"alias","messages":[]}"#;
        let request = Request::parse(Api::CountTokens, PathFacts::default(), body).unwrap();
        let edits = request.edits.rename_model_for_vertex("alias", "claude@1");
        let edits: Splices = edits.into_iter().flatten().collect();
        assert_eq!(
            String::from_utf8(edits.apply(body)).unwrap(),
            r#"{"anthropic_version":"vertex-2023-10-16","model":"claude@1","messages":[]}"#
        );
    }

    /// The form is of Anthropic's API reference, "Count tokens in a Message".
    #[test]
    fn a_count_is_no_usage() {
        let answer = br#"{"input_tokens": 2095}"#;
        for cut in 0..=answer.len() {
            let (head, tail) = answer.split_at(cut);
            let mut meter = PlainMeter::new(Api::CountTokens);
            meter.observe(head);
            meter.observe(tail);
            meter.finish();
            let reading = meter.reading();
            assert!(reading.is_done && reading.error.is_none());
            assert_eq!((reading.usage, reading.visible_bytes), (None, 0));
        }
    }
}
