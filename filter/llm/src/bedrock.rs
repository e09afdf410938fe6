//! Bedrock's Converse and ConverseStream. Of providers only: requests are printed, answers read.
//!
//! What is not said otherwise is from the service's model, `bedrock-runtime` 2023-09-30, as
//! botocore 1.44.8 ships it. Streams are frames ([`frames`]) instead of lines; what a frame tells is
//! an event by its name ([`told`]).

pub(crate) mod answer;
mod block;
mod document;
pub(crate) mod error;
pub mod frames;
mod media;
mod name;
mod print_messages;
mod print_request;
mod print_tools;
mod read_answer;
mod read_events;
mod reported;
pub(crate) mod told;

#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod served;

pub(crate) use print_request::print_request;
pub(crate) use read_answer::read_answer;
pub(crate) use read_events::ConverseEvents;
