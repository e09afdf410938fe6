//! Which API has which half.

use super::{
    AnswerTerms, PrintEvents, PrintRequest, PrintWhole, ReadEvents, ReadRequest, ReadWhole,
};
use crate::api::Api;
use crate::{anthropic, bedrock, gemini, openai};

/// Of APIs that clients call.
pub(super) fn request_reader(api: Api) -> Option<ReadRequest> {
    match api {
        Api::ChatCompletions => Some(openai::chat::read_request),
        Api::Responses => Some(openai::responses::read_request),
        Api::Messages => Some(|_, body| anthropic::read_request(body)),
        Api::GenerateContent => Some(gemini::read_request),
        _ => None,
    }
}

/// Of APIs that providers serve.
pub(super) fn request_printer(api: Api) -> Option<PrintRequest> {
    match api {
        Api::ChatCompletions => Some(openai::chat::print_request),
        Api::Messages => Some(anthropic::print_request),
        Api::GenerateContent => Some(gemini::print_request),
        Api::Converse => Some(bedrock::print_request),
        _ => None,
    }
}

/// Of APIs that providers serve.
pub(super) fn answer_reader(api: Api) -> Option<ReadWhole> {
    match api {
        Api::ChatCompletions => Some(openai::chat::read_answer),
        Api::Messages => Some(anthropic::read_answer),
        Api::GenerateContent => Some(gemini::read_answer),
        Api::Converse => Some(bedrock::read_answer),
        _ => None,
    }
}

/// Of APIs that clients call.
pub(super) fn answer_printer(api: Api) -> Option<PrintWhole> {
    match api {
        Api::ChatCompletions => Some(openai::chat::print_answer),
        Api::Responses => Some(openai::responses::print_answer),
        Api::Messages => Some(anthropic::print_answer),
        Api::GenerateContent => Some(gemini::print_answer),
        _ => None,
    }
}

/// Of APIs that providers serve.
pub(super) fn event_reader(api: Api) -> Option<Box<dyn ReadEvents>> {
    match api {
        Api::ChatCompletions => Some(Box::new(openai::chat::ChatEvents::default())),
        Api::Messages => Some(Box::new(anthropic::AnthropicEvents::default())),
        Api::GenerateContent => Some(Box::new(gemini::GeminiEvents::default())),
        Api::Converse => Some(Box::new(bedrock::ConverseEvents::default())),
        _ => None,
    }
}

/// Of APIs that clients call.
pub(super) fn event_printer(api: Api, terms: &AnswerTerms<'_>) -> Option<Box<dyn PrintEvents>> {
    match api {
        Api::ChatCompletions => Some(Box::new(openai::chat::ChatChunks::new(terms))),
        Api::Responses => Some(Box::new(openai::responses::ResponseEvents::new(terms))),
        Api::Messages => Some(Box::new(anthropic::MessageEvents::new(terms))),
        Api::GenerateContent => Some(Box::new(gemini::GeminiPrinter::new(terms))),
        _ => None,
    }
}
