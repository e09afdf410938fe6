//! What went wrong, in one line that says what to do.

use std::error::Error;
use std::io;

use tonic::{Code, Status};

use crate::field::Words;

/// What tonic writes when a call's own deadline has passed.
const TIMEOUT: &str = "Timeout expired";

/// How tonic begins what it makes of HTTP answers that are none of gRPC.
const NO_GRPC: [&str; 3] = [
    "grpc-status header missing",
    "Missing response message",
    "protocol error: ",
];

/// Why a call to the control plane gave nothing usable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("{}: {}", code_words(.0.code()), .0.message())]
    Refused(Status),
    #[error(
        "the control plane answered with a {field} ({value}) that this turnpike does not know: use a newer one"
    )]
    Unknown { field: &'static str, value: i32 },
    #[error("the control plane answered without a {0}")]
    Missing(&'static str),
    /// What was to be sent does not fit together; nothing was sent.
    #[error("{0}")]
    Unfit(String),
}

// === impl CallError ===

impl CallError {
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code() == Code::NotFound)
    }

    /// Its text; fields that are at fault are named as the user wrote them.
    pub(crate) fn in_words(&self, words: Words) -> String {
        match self {
            Self::Refused(status) if status.code() == Code::InvalidArgument => {
                let text = words.translate(status.message());
                format!("{}: {text}", code_words(status.code()))
            }
            _ => self.to_string(),
        }
    }

    /// Whether what answered does not speak gRPC, or not as it was spoken to.
    pub(crate) fn is_not_grpc(&self) -> bool {
        let Self::Refused(status) = self else {
            return false;
        };
        // No status of a server has a cause; this one was made here, of a connection that broke.
        let is_broken = status.source().is_some()
            && status.message() != TIMEOUT
            && matches!(
                status.code(),
                Code::Unknown | Code::Cancelled | Code::Internal
            );
        let message = status.message();
        is_broken || NO_GRPC.iter().any(|begin| message.starts_with(begin))
    }

    /// What the user can do about it, if anything is known.
    pub(crate) fn hint(&self, has_token: bool) -> Option<&'static str> {
        let Self::Refused(status) = self else {
            return None;
        };
        match (status.code(), has_token) {
            (Code::Unauthenticated | Code::PermissionDenied, false) => {
                Some("no admin token was given: set TURNPIKE_ADMIN_TOKEN or --admin-token-file")
            }
            (Code::Unauthenticated | Code::PermissionDenied, true) => Some(
                "the admin token was refused: check TURNPIKE_ADMIN_TOKEN or --admin-token-file",
            ),
            (Code::Unimplemented, _) => {
                Some("is this the admin port of a control plane of the same version?")
            }
            (Code::Cancelled, _) if status.message() == TIMEOUT => {
                Some("the control plane is reached but does not answer in time")
            }
            (Code::Unavailable, _) if status.source().is_some() => {
                Some("the connection broke: is it still running?")
            }
            _ => None,
        }
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

/// The whole chain of causes in one line, without terminal commands.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let mut line = String::new();
    for part in text.lines().map(str::trim).filter(|part| !part.is_empty()) {
        match line.chars().last() {
            None => {}
            Some(':' | ';' | ',') => line.push(' '),
            Some(_) => line.push_str("; "),
        }
        line.push_str(part);
    }
    line.chars()
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .collect()
}

pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}

fn code_words(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown error",
        Code::InvalidArgument => "invalid argument",
        Code::DeadlineExceeded => "no answer in time",
        Code::NotFound => "not found",
        Code::AlreadyExists => "already exists",
        Code::PermissionDenied => "permission denied",
        Code::ResourceExhausted => "resource exhausted",
        Code::FailedPrecondition => "failed precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out of range",
        Code::Unimplemented => "not implemented",
        Code::Internal => "internal error",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_whatever_the_server_wrote() {
        let status =
            Status::invalid_argument("2 faults:\n  rules[0].models[0]: no such model\n\u{1b}[2Jx");
        let error = anyhow::Error::from(CallError::from(status)).context("replace the rule set");
        assert_eq!(
            one_line(&error),
            "replace the rule set: invalid argument: 2 faults: rules[0].models[0]: no such model;  [2Jx"
        );
    }

    #[test]
    fn a_refused_token_and_a_missing_one_have_their_own_hints() {
        let refused = CallError::from(Status::unauthenticated("token"));
        assert!(
            refused
                .hint(false)
                .unwrap()
                .contains("no admin token was given")
        );
        assert!(refused.hint(true).unwrap().contains("was refused"));
        assert_eq!(CallError::from(Status::not_found("x")).hint(true), None);
    }

    #[test]
    fn an_http_answer_is_told_apart_from_a_refusal() {
        let http =
            Status::unimplemented("grpc-status header missing, mapped from HTTP status code 404");
        assert!(CallError::from(http).is_not_grpc());
        assert!(!CallError::from(Status::unimplemented("no such method")).is_not_grpc());
    }

    #[test]
    fn a_closed_pipe_is_recognised_under_its_context() {
        let error =
            anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).context("print");
        assert!(is_broken_pipe(&error));
        assert!(!is_broken_pipe(&anyhow::anyhow!("other")));
    }
}
