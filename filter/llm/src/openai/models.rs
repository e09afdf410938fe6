//! `GET /v1/models` and `GET /v1/models/{id}`: the bodies.

use crate::json::write_text;

/// One model as a client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelEntry<'a> {
    pub id: &'a str,
    /// Unix time in seconds.
    pub created_s: u64,
    pub owned_by: &'a str,
}

/// The body of the list, in the order given.
pub fn list<'a>(entries: impl IntoIterator<Item = ModelEntry<'a>>) -> Vec<u8> {
    let mut out = br#"{"object":"list","data":["#.to_vec();
    for (place, entry) in entries.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(&mut out, &entry);
    }
    out.extend_from_slice(b"]}");
    out
}

/// The body of one model.
pub fn retrieve(entry: &ModelEntry<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, entry);
    out
}

fn write(out: &mut Vec<u8>, entry: &ModelEntry<'_>) {
    out.extend_from_slice(br#"{"id":"#);
    write_text(out, entry.id);
    out.extend_from_slice(br#","object":"model","created":"#);
    out.extend_from_slice(entry.created_s.to_string().as_bytes());
    out.extend_from_slice(br#","owned_by":"#);
    write_text(out, entry.owned_by);
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: ModelEntry<'_> = ModelEntry {
        id: "house\"s best",
        created_s: 1_750_000_000,
        owned_by: "turnpike",
    };

    #[test]
    fn a_list_has_every_model_in_order() {
        let second = ModelEntry {
            id: "small-1",
            ..ENTRY
        };
        let json: serde_json::Value = serde_json::from_slice(&list([ENTRY, second])).unwrap();
        let expected = serde_json::json!({"object": "list", "data": [
            {"id": "house\"s best", "object": "model", "created": 1_750_000_000, "owned_by": "turnpike"},
            {"id": "small-1", "object": "model", "created": 1_750_000_000, "owned_by": "turnpike"},
        ]});
        assert_eq!(json, expected);
        assert_eq!(list([]), br#"{"object":"list","data":[]}"#);
    }

    #[test]
    fn one_model_is_an_object_of_its_own() {
        assert_eq!(
            String::from_utf8(retrieve(&ENTRY)).unwrap(),
            r#"{"id":"house\"s best","object":"model","created":1750000000,"owned_by":"turnpike"}"#
        );
    }
}
