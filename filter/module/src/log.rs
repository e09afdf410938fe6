//! Lines in Envoy's own log, from any thread.

use filter_envoy_abi::{LogLevel, log};

pub(crate) fn debug(line: &str) {
    log(LogLevel::Debug, line);
}

pub(crate) fn info(line: &str) {
    log(LogLevel::Info, line);
}

pub(crate) fn warn(line: &str) {
    log(LogLevel::Warn, line);
}

pub(crate) fn error(line: &str) {
    log(LogLevel::Error, line);
}
