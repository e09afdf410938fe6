//! Whole exchanges through a scripted shell.

mod answers;
mod attempts;
mod cases;
mod ends;
mod models;
mod properties;
mod refusals;
pub(crate) mod shell;
