//! Resource names (AIP-122, `teams/x`) and the ids in them.

/// A collection of named resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    Teams,
    VirtualKeys,
    Providers,
    Credentials,
    Models,
    Limits,
}

/// Name of the one rule set.
pub const RULE_SET: &str = "ruleSet";
/// Name of the one price book.
pub const PRICE_BOOK: &str = "priceBook";
/// Name of the one settings resource.
pub const SETTINGS: &str = "settings";

/// A name that is not one of the collection's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must have the form {}/{{id}}", .0.segment())]
pub struct NotAName(pub Collection);

impl Collection {
    /// First segment of the names, for example `virtualKeys`.
    pub fn segment(self) -> &'static str {
        match self {
            Self::Teams => "teams",
            Self::VirtualKeys => "virtualKeys",
            Self::Providers => "providers",
            Self::Credentials => "credentials",
            Self::Models => "models",
            Self::Limits => "limits",
        }
    }

    /// The resource name of an id.
    pub fn name(self, id: &str) -> String {
        format!("{}/{id}", self.segment())
    }

    /// The id in a resource name.
    ///
    /// # Errors
    /// When the name is of another collection or its id is empty; the id's own form is left to
    /// the resource's validation, so that an id that cannot exist is simply not found.
    pub fn id(self, name: &str) -> Result<&str, NotAName> {
        name.strip_prefix(self.segment())
            .and_then(|rest| rest.strip_prefix('/'))
            .filter(|id| !id.is_empty())
            .filter(|id| self == Self::Models || !id.contains('/'))
            .ok_or(NotAName(self))
    }
}

/// Whether an id is 1-64 characters of `[a-z0-9-]`.
pub fn is_id(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Whether a public model name is one: 1-128 characters, none of them `*` or a control, and not
/// `auto` or `auto:…`.
pub fn is_model_name(name: &str) -> bool {
    (1..=128).contains(&name.chars().count())
        && !name.chars().any(|c| c == '*' || c.is_control())
        && name != "auto"
        && !name.starts_with("auto:")
}

/// Whether an entry of an allow list is a public model name or `prefix/*`.
pub fn is_model_pattern(pattern: &str) -> bool {
    match pattern.strip_suffix("/*") {
        Some(prefix) => is_model_name(prefix),
        None => is_model_name(pattern),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_its_id_are_two_forms_of_one_thing() {
        assert_eq!(Collection::VirtualKeys.name("k1"), "virtualKeys/k1");
        assert_eq!(Collection::VirtualKeys.id("virtualKeys/k1"), Ok("k1"));
        assert_eq!(Collection::Models.id("models/acme/large"), Ok("acme/large"));
    }

    #[test]
    fn a_name_of_another_collection_is_refused_with_the_right_form() {
        for name in [
            "teams/",
            "teams",
            "team/x",
            "virtualKeys/x",
            "teams/a/b",
            "",
        ] {
            let error = Collection::Teams.id(name).unwrap_err();
            assert_eq!(error.to_string(), "must have the form teams/{id}", "{name}");
        }
    }

    #[test]
    fn ids_and_model_names_have_their_alphabets() {
        assert!(is_id("a-1") && is_id(&"a".repeat(64)));
        for id in ["", "A", "a_b", "a/b", "ä", &"a".repeat(65)] {
            assert!(!is_id(id), "{id}");
        }
        assert!(is_model_name("acme/large:v2") && is_model_name("autopilot"));
        for name in ["", "auto", "auto:high", "a*", "a\n", &"m".repeat(129)] {
            assert!(!is_model_name(name), "{name}");
        }
        assert!(is_model_pattern("acme/*") && is_model_pattern("acme/large"));
        for pattern in ["*", "/*", "acme*", "a*/*", "auto/*/*"] {
            assert!(!is_model_pattern(pattern), "{pattern}");
        }
    }
}
