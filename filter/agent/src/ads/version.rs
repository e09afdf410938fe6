//! How versions are written: a checkpoint as `12/ab`, a push as `full 12/ab` or `delta 11..12/ab`.

use std::{fmt, str::FromStr};

use proto::config::v1::Checkpoint;

/// A version string that is not of the form it must have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unreadable version `{0}`")]
pub struct UnreadableVersion(pub String);

/// What a push stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything; what is not in it is gone.
    Full,
    /// What changed after version `from`.
    Delta { from: u64 },
}

/// The name that every response of a push carries in `system_version_info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushName {
    /// Everything, or what changed.
    pub mode: Mode,
    /// What the node will have when the push has been applied.
    pub checkpoint: Checkpoint,
}

/// `<version>/<nonce>`
#[must_use]
pub fn checkpoint_to_string(checkpoint: &Checkpoint) -> String {
    format!("{}/{}", checkpoint.version, checkpoint.nonce)
}

/// Reads `<version>/<nonce>`.
///
/// # Errors
/// If the version is not a number or there is no `/`.
pub fn checkpoint_from_str(text: &str) -> Result<Checkpoint, UnreadableVersion> {
    let unreadable = || UnreadableVersion(text.to_owned());
    let (version, nonce) = text.split_once('/').ok_or_else(unreadable)?;
    Ok(Checkpoint {
        version: version.parse().map_err(|_| unreadable())?,
        nonce: nonce.to_owned(),
    })
}

// === impl PushName ===

impl fmt::Display for PushName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checkpoint = checkpoint_to_string(&self.checkpoint);
        match self.mode {
            Mode::Full => write!(f, "full {checkpoint}"),
            Mode::Delta { from } => write!(f, "delta {from}..{checkpoint}"),
        }
    }
}

impl FromStr for PushName {
    type Err = UnreadableVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unreadable = || UnreadableVersion(text.to_owned());
        if let Some(checkpoint) = text.strip_prefix("full ") {
            let checkpoint = checkpoint_from_str(checkpoint).map_err(|_| unreadable())?;
            return Ok(Self {
                mode: Mode::Full,
                checkpoint,
            });
        }
        let range = text.strip_prefix("delta ").ok_or_else(unreadable)?;
        let (from, checkpoint) = range.split_once("..").ok_or_else(unreadable)?;
        let mode = Mode::Delta {
            from: from.parse().map_err(|_| unreadable())?,
        };
        let checkpoint = checkpoint_from_str(checkpoint).map_err(|_| unreadable())?;
        Ok(Self { mode, checkpoint })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in [
            "full 12/ab",
            "delta 11..12/ab",
            "delta 0..18446744073709551615/a/b",
            "full 0/",
        ] {
            assert_eq!(text.parse::<PushName>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_unreadable() {
        for text in [
            "",
            "full",
            "12/ab",
            "full 12",
            "full x/ab",
            "delta 12/ab",
            "delta a..12/ab",
            "delta 1..2",
        ] {
            assert!(text.parse::<PushName>().is_err(), "{text}");
        }
    }
}
