//! Secret text that is wiped when dropped and never printed.

use std::fmt;

use zeroize::Zeroizing;

/// A secret in the clear.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the text over.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself; the one way out.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_secret_shows_nothing() {
        assert_eq!(
            format!("{:?}", Secret::new("sk-test-1".into())),
            "<redacted>"
        );
    }
}
