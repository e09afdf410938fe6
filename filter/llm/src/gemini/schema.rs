//! Google's schemas, which are a subset of OpenAPI's, as JSON schemas.

use std::borrow::Cow;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// The JSON schema that means the same; one that is a JSON schema already stays as it is.
pub(super) fn to_json_schema(schema: &RawValue) -> Cow<'_, RawValue> {
    let Ok(mut value) = serde_json::from_str::<Value>(schema.get()) else {
        return Cow::Borrowed(schema);
    };
    if !convert(&mut value) {
        return Cow::Borrowed(schema);
    }
    to_raw_value(&value).map_or(Cow::Borrowed(schema), Cow::Owned)
}

/// True if something was changed.
fn convert(schema: &mut Value) -> bool {
    let Value::Object(members) = schema else {
        return false;
    };
    let mut is_changed = members.remove("propertyOrdering").is_some();
    is_changed |= lower_type(members);
    for name in [
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "minProperties",
        "maxProperties",
    ] {
        is_changed |= number(members, name);
    }
    for name in ["items", "additionalProperties"] {
        is_changed |= members.get_mut(name).is_some_and(convert);
    }
    for name in ["anyOf", "prefixItems"] {
        if let Some(Value::Array(schemas)) = members.get_mut(name) {
            is_changed |= schemas
                .iter_mut()
                .fold(false, |any, schema| convert(schema) | any);
        }
    }
    for name in ["properties", "$defs", "defs"] {
        if let Some(Value::Object(schemas)) = members.get_mut(name) {
            is_changed |= schemas
                .values_mut()
                .fold(false, |any, schema| convert(schema) | any);
        }
    }
    is_changed
}

/// `STRING` becomes `string`; `nullable` becomes a type beside it.
fn lower_type(members: &mut Map<String, Value>) -> bool {
    let is_nullable = members.remove("nullable");
    let Some(Value::String(kind)) = members.get_mut("type") else {
        return is_nullable.is_some();
    };
    let lower = kind.to_ascii_lowercase();
    let is_changed = lower != *kind || is_nullable.is_some();
    *kind = lower;
    if is_nullable == Some(Value::Bool(true)) {
        let both = vec![
            Value::String(kind.clone()),
            Value::String("null".to_owned()),
        ];
        members.insert("type".to_owned(), Value::Array(both));
    }
    is_changed
}

/// Google writes 64-bit numbers as strings.
fn number(members: &mut Map<String, Value>, name: &str) -> bool {
    let Some(value) = members.get_mut(name) else {
        return false;
    };
    let Some(number) = value.as_str().and_then(|digits| digits.parse::<u64>().ok()) else {
        return false;
    };
    *value = number.into();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(schema: &str) -> String {
        let raw = RawValue::from_string(schema.to_owned()).unwrap();
        to_json_schema(&raw).get().to_owned()
    }

    #[test]
    fn googles_types_and_numbers_become_those_of_json_schema() {
        let schema = r#"{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true},
            "b":{"type":"ARRAY","minItems":"1","items":{"anyOf":[{"type":"INTEGER"}]}}},
            "propertyOrdering":["a","b"],"required":["a"]}"#;
        let expected = serde_json::json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": ["string", "null"]},
            "b": {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "integer"}]}},
        }});
        let json: Value = serde_json::from_str(&converted(schema)).unwrap();
        assert_eq!(json, expected);
    }

    #[test]
    fn a_json_schema_stays_byte_for_byte() {
        let schema = r#"{ "type": "object", "properties": {"type": {"type": "string"}} }"#;
        assert_eq!(converted(schema), schema);
    }
}
