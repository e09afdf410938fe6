//! Whole exchanges through a scripted shell.

mod answers;
mod attempts;
mod cases;
mod ends;
mod health;
mod limits;
mod models;
mod open;
mod properties;
mod refusals;
pub(crate) mod shell;
mod turns;
