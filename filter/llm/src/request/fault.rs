//! Why a request cannot be read, in words for the client.

use serde_json::value::RawValue;

use crate::api::Api;

const INVALID_JSON: &str = "invalid_json";

/// A request that cannot be taken: 400 of type `invalid_request_error`. Displays its message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestFault {
    /// The member at fault.
    pub param: Option<&'static str>,
    pub message: String,
    pub code: Option<&'static str>,
}

impl RequestFault {
    fn of_body(message: &str, code: Option<&'static str>) -> Self {
        let message = message.to_owned();
        Self {
            param: None,
            message,
            code,
        }
    }

    pub(crate) fn not_utf8() -> Self {
        Self::of_body("the request body is not UTF-8", Some(INVALID_JSON))
    }

    pub(crate) fn not_an_object() -> Self {
        Self::of_body(
            "the request body is not a JSON object",
            Some("invalid_type"),
        )
    }

    /// Syntax errors name line and column; the other kind names the member that is there twice,
    /// since every member is taken as it comes.
    pub(crate) fn unreadable(error: &serde_json::Error) -> Self {
        if error.is_data() {
            let message = format!("the request body names a member twice: {error}");
            return Self::of_body(&message, Some("duplicate_parameter"));
        }
        Self::of_body(
            &format!("the request body is not valid JSON: {error}"),
            Some(INVALID_JSON),
        )
    }

    pub(crate) fn no_translation(client: Api, provider: Api) -> Self {
        let (client, provider) = (client.as_str(), provider.as_str());
        Self::of_body(
            &format!("requests of {client} can't be put into {provider}"),
            None,
        )
    }

    /// The provider's API can't be told this.
    pub(crate) fn untold(what: &str) -> Self {
        Self::of_body(
            &format!("{what} can't be sent there"),
            Some("unsupported_value"),
        )
    }

    pub(crate) fn no_model() -> Self {
        Self {
            param: Some("model"),
            message: "the request names no model".to_owned(),
            code: Some("missing_required_parameter"),
        }
    }

    pub(crate) fn wrong_kind(param: &'static str, wanted: &str, found: &RawValue) -> Self {
        let found = match found.get().as_bytes().first() {
            Some(b'"') => "a string",
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        };
        Self {
            param: Some(param),
            message: format!("`{param}` must be {wanted}, not {found}"),
            code: Some("invalid_type"),
        }
    }

    pub(crate) fn wrong_value(param: &'static str, wanted: &str) -> Self {
        Self {
            param: Some(param),
            message: format!("`{param}` must be {wanted}"),
            code: Some("invalid_value"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_json_has_a_code_of_its_own() {
        let error = serde_json::from_str::<serde::de::IgnoredAny>("{").unwrap_err();
        let fault = RequestFault::unreadable(&error);
        assert_eq!(fault.code, Some("invalid_json"));
        assert!(fault.message.contains("line 1"), "{fault}");
        assert_eq!(RequestFault::not_utf8().code, Some("invalid_json"));
        assert_eq!(RequestFault::not_an_object().code, Some("invalid_type"));
    }
}
