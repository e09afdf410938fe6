//! What is wrong with a resource: every fault at once, each with its place.

use std::fmt;

/// One fault: where it is and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Fault {
    /// Path of the field, for example `rules[2].models[0]`.
    pub field: String,
    /// What is wrong there; lower case, never a secret.
    pub message: String,
}

impl Fault {
    /// A fault at a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

/// Faults gathered while a resource is looked at as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Notes a fault.
    pub fn push(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(Fault::new(field, message));
    }

    /// Notes a fault at a field unless `holds`.
    pub fn require(&mut self, holds: bool, field: &str, message: &str) {
        if !holds {
            self.push(field, message);
        }
    }

    /// `Ok` when nothing was noted.
    ///
    /// # Errors
    /// Every fault, in the order they were noted.
    pub fn into_result(self) -> Result<(), Vec<Fault>> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(self.0)
        }
    }
}

/// Faults on one line, separated by `; `.
#[derive(Debug)]
pub struct OneLine<'a>(pub &'a [Fault]);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, fault) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}
