//! From one API to another: requests, whole answers, and streams event by event, by way of
//! [`crate::conversation`].
//!
//! Each API has up to four halves of its own: it reads requests and prints answers if clients call
//! it, prints requests and reads answers if providers serve it. Here they are only put together.

use crate::api::Api;
use crate::conversation::{Answer, Event, Finish, Request};
use crate::error::ErrorBody;
use crate::mask::mask;
use crate::provider_error::ProviderError;
use crate::request::{PathFacts, RequestFault};
use crate::usage::Usage;

mod halves;

/// What a target wants of a request, beside what its API says.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The model's name at the provider.
    pub upstream_model: &'a str,
    /// Bounds the output of one choice in place of what the client said.
    pub max_output_tokens: Option<u64>,
    /// For APIs that must be told a bound, where neither client nor limits say one.
    pub default_max_output_tokens: u64,
    pub quirks: &'a Quirks,
}

/// In what a provider differs from the first of its dialect. The default is the first itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Takes `max_tokens` where OpenAI has `max_completion_tokens`.
    pub max_tokens_member: bool,
    /// Does not take `stream_options`; its streams tell usage by themselves, or not at all.
    pub no_stream_options: bool,
    /// Knows no JSON schema as an answer's form.
    pub no_json_schema: bool,
    /// Knows no `reasoning_effort` (OpenAI), no thinking (the others).
    pub no_reasoning: bool,
    /// Knows no `parallel_tool_calls`.
    pub no_parallel_tool_calls: bool,
    /// Has `any` for the tool choice `required`, as Mistral.
    pub tool_choice_any: bool,
    /// Fetches no links: images must be in the request.
    pub no_links: bool,
    /// Vertex: the model is in the path and `anthropic_version` in the body; function calls have no
    /// ids.
    pub is_vertex: bool,
    /// Does not serve `/v1/responses`: such requests are translated.
    pub no_responses: bool,
    /// Wants its reasoning back in `reasoning_content` with the calls that it led to, as DeepSeek.
    pub wants_reasoning_back: bool,
}

/// A request in another API's form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    pub body: Vec<u8>,
    /// Members, by path, that the other API can't be told, in the client's own words.
    pub left_out: Vec<String>,
}

/// What an answer is printed with, beside itself.
#[derive(Clone, Copy, Debug)]
pub struct AnswerTerms<'a> {
    /// Stands for the provider's id where that has none; the request's own.
    pub request_id: &'a str,
    /// As the client named it.
    pub model: &'a str,
    /// Unix time.
    pub created_at_s: u64,
    /// The client wants to see a stream's usage.
    pub shows_usage: bool,
}

/// Prints a request as an API that a provider serves. What can't be told goes to
/// [`Printed::left_out`], beginning with the request's own; what can't be told at all, such as a
/// call's result without its call, is a fault.
pub(crate) type PrintRequest = fn(&Request<'_>, &Terms<'_>) -> Result<Printed, RequestFault>;

/// Reads a request of a client.
pub(crate) type ReadRequest =
    for<'a> fn(PathFacts<'a>, &'a [u8]) -> Result<Request<'a>, RequestFault>;

/// Reads a whole answer; `None`: it is none.
pub(crate) type ReadWhole = for<'a> fn(&'a [u8]) -> Option<Answer<'a>>;

/// Prints a whole answer.
pub(crate) type PrintWhole = fn(&Answer<'_>, &AnswerTerms<'_>) -> Vec<u8>;

/// Reads the events of a stream: what order is kept is said at [`Event`].
pub(crate) trait ReadEvents {
    /// Reads one; `name` is empty where the API names none. What can't be read is passed over.
    fn read(&mut self, name: &[u8], data: &[u8], hand_on: &mut dyn FnMut(Event<'_>));

    /// The stream has ended. Hands on `End` if that has not been: also for a stream that was cut,
    /// whose cut is told otherwise.
    fn finish(&mut self, hand_on: &mut dyn FnMut(Event<'_>));
}

/// Prints the events of a stream, framing included. Where its API has an end marker it prints that
/// at `End`. Nothing is printed for an `Error`, which is told by `print_error_event`.
pub(crate) trait PrintEvents {
    fn print(&mut self, event: &Event<'_>, out: &mut Vec<u8>);

    /// The number that the next event has, where its API numbers them.
    fn next_sequence_number(&self) -> u64 {
        0
    }
}

/// Puts a client's request into the form of a provider's API.
pub fn request(
    client: Api,
    provider: Api,
    path: PathFacts<'_>,
    body: &[u8],
    terms: &Terms<'_>,
) -> Result<Printed, RequestFault> {
    let (Some(read), Some(print)) = (
        halves::request_reader(client),
        halves::request_printer(provider),
    ) else {
        return Err(RequestFault::no_translation(client, provider));
    };
    print(&read(path, body)?, terms)
}

/// Puts a provider's whole answer into the form of a client's API; `None`: it is none.
pub fn answer(
    provider: Api,
    client: Api,
    document: &[u8],
    terms: &AnswerTerms<'_>,
) -> Option<Vec<u8>> {
    let read = halves::answer_reader(provider)?;
    let print = halves::answer_printer(client)?;
    Some(print(&read(document)?, terms))
}

/// Puts a provider's whole answer into the form of a stream, for a client that asked for one;
/// `None`: it is none.
pub fn answer_as_stream(
    provider: Api,
    client: Api,
    document: &[u8],
    terms: &AnswerTerms<'_>,
) -> Option<Vec<u8>> {
    let answer = halves::answer_reader(provider)?(document)?;
    let mut printer = halves::event_printer(client, terms)?;
    let mut out = Vec::with_capacity(document.len());
    for event in answer.into_events() {
        printer.print(&event, &mut out);
    }
    Some(out)
}

/// Puts the events of a provider's stream into the form of a client's API.
pub struct StreamTranslator {
    reader: Box<dyn ReadEvents>,
    printer: Box<dyn PrintEvents>,
    client: Api,
    request_id: String,
    has_ended: bool,
}

impl StreamTranslator {
    /// `None`: there is no such pair.
    pub fn new(provider: Api, client: Api, terms: &AnswerTerms<'_>) -> Option<Self> {
        Some(Self {
            reader: halves::event_reader(provider)?,
            printer: halves::event_printer(client, terms)?,
            client,
            request_id: terms.request_id.to_owned(),
            has_ended: false,
        })
    }

    /// Takes an event of the provider's, and appends what the client gets for it. `secret` is
    /// masked in errors.
    pub fn event(&mut self, name: &[u8], data: &[u8], secret: &[u8], out: &mut Vec<u8>) {
        let Self {
            reader,
            printer,
            client,
            request_id,
            has_ended,
        } = self;
        reader.read(name, data, &mut |event| match &event {
            _ if *has_ended => {}
            Event::Error(error) => {
                *has_ended = true;
                let number = printer.next_sequence_number();
                let body = error_event(*client, request_id, error, secret, number);
                out.extend_from_slice(&body);
            }
            event => {
                *has_ended = *event == Event::End;
                printer.print(event, out);
            }
        });
    }

    /// The provider's stream has come to its own end.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let Self {
            reader,
            printer,
            has_ended,
            ..
        } = self;
        reader.finish(&mut |event| {
            if !std::mem::replace(has_ended, *has_ended || event == Event::End) {
                printer.print(&event, out);
            }
        });
    }

    /// Ends the stream before the provider does, as one that has come to its length.
    pub fn close(&mut self, usage: Usage, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let finish = Event::Finish {
            finish: Finish::Length,
            stop_sequence: None,
        };
        for event in [finish, Event::Usage(usage), Event::End] {
            self.printer.print(&event, out);
        }
    }
}

impl std::fmt::Debug for StreamTranslator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamTranslator")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

fn error_event(
    client: Api,
    request_id: &str,
    error: &ProviderError,
    secret: &[u8],
    sequence_number: u64,
) -> Vec<u8> {
    let masked = |text: &str| String::from_utf8_lossy(&mask(text.as_bytes(), secret)).into_owned();
    let (message, kind, code) = (
        masked(&error.message),
        masked(&error.kind),
        masked(&error.code),
    );
    let body = ErrorBody {
        status: 502,
        message: &message,
        kind: if kind.is_empty() {
            "server_error"
        } else {
            &kind
        },
        param: None,
        code: Some(code.as_str()).filter(|code| !code.is_empty()),
        request_id,
    };
    body.to_event_numbered(client, sequence_number)
}
