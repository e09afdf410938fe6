//! What is printed is read back as the same: requests, answers, streams, and turns that go through
//! a client.

use proptest::prelude::*;

use super::*;
use crate::api::Api;
use crate::conversation::arbitrary::{self, Says, meaning, told};
use crate::conversation::{self, Event, Finish, Part, Reasoning, Role, ToolChoice};
use crate::meter::{StreamMeter, UsageMembers};
use crate::request::PathFacts;
use crate::request::Request;
use crate::translate::{AnswerTerms, PrintEvents, Quirks, ReadEvents, Terms};

const REQUESTS: Says = Says {
    stream: true,
    system_pieces: true,
    image_links: true,
    files: true,
    file_names: true,
    result_images: true,
    result_errors: true,
    thinking: true,
    signatures: true,
    redacted: true,
    top_k: true,
    stop: true,
    parallel: true,
    schema: true,
    budget: true,
    user: true,
    ..Says::LEAST
};

const ANSWERS: Says = Says {
    thinking: true,
    signatures: true,
    redacted: true,
    id: true,
    ..Says::LEAST
};

/// Anthropic has one word for what a filter ends and what the model refuses, and none for an
/// answer that the provider gave up.
fn told_as(finish: Finish) -> Finish {
    match finish {
        Finish::ContentFilter => Finish::Refusal,
        Finish::Error => Finish::Stop,
        finish => finish,
    }
}

/// A budget is one that fits; thinking that is on is shown.
fn as_told(asked: Reasoning, max_output_tokens: Option<u64>) -> Reasoning {
    let most = max_output_tokens.unwrap_or(1).saturating_sub(1);
    let budget = asked.budget_tokens.map(|tokens| match tokens {
        0 => 0,
        tokens => tokens.max(1024).min(most),
    });
    Reasoning {
        budget_tokens: budget,
        is_shown: (budget != Some(0)).then_some(asked.is_shown != Some(false)),
        ..asked
    }
}

/// Text that is blank is not sent, nor blanks at the end of what the assistant said last.
fn leave_blanks(request: &mut conversation::Request<'_>) {
    let is_blank = |text: &str| text.trim().is_empty();
    request.system.retain(|system| !is_blank(&system.text));
    for message in &mut request.messages {
        let is_said = |part: &Part<'_>| !matches!(part, Part::Text { text, .. } if is_blank(text));
        message.parts.retain(is_said);
        for part in &mut message.parts {
            if let Part::ToolResult(result) = part {
                result.parts.retain(is_said);
            }
        }
    }
    request.messages.retain(|message| !message.parts.is_empty());
    let last = request.messages.last_mut();
    let last = last.filter(|message| message.role == Role::Assistant);
    if let Some(Part::Text { text, .. }) = last.and_then(|message| message.parts.last_mut()) {
        *text = text.trim_end().to_owned().into();
    }
}

fn answer_terms() -> AnswerTerms<'static> {
    AnswerTerms {
        request_id: "req-1",
        model: "alias",
        created_at_s: 1_750_000_000,
        shows_usage: true,
    }
}

fn print_stream(events: &[Event<'_>]) -> Vec<u8> {
    let mut printer = MessageEvents::new(&answer_terms());
    let mut stream = Vec::new();
    for event in events {
        printer.print(event, &mut stream);
    }
    stream
}

fn read_stream(pieces: &[&[u8]]) -> Vec<Event<'static>> {
    let mut meter = StreamMeter::new(Api::Messages, UsageMembers::Keep, 1 << 20);
    let mut reader = AnthropicEvents::default();
    let mut events = Vec::new();
    for piece in pieces {
        meter.read_each(piece, &mut |name, data| {
            reader.read(name, data, &mut |event| events.push(event.into_owned()));
        });
    }
    meter.finish_each(&mut |name, data| {
        reader.read(name, data, &mut |event| events.push(event.into_owned()));
    });
    reader.finish(&mut |event| events.push(event.into_owned()));
    let reading = meter.reading();
    assert_eq!(
        (reading.unreadable_events, reading.oversized_events),
        (0, 0)
    );
    events
}

proptest! {
    #[test]
    fn a_printed_request_is_read_as_itself(request in arbitrary::request(REQUESTS)) {
        let mut request = request;
        // Where no tool is to be called, nothing is said of several.
        let calls = !request.tools.is_empty() && request.tool_choice != Some(ToolChoice::None);
        request.parallel_tool_calls = request.parallel_tool_calls.filter(|_| calls);
        leave_blanks(&mut request);
        if request.parallel_tool_calls.is_some() {
            request.tool_choice.get_or_insert(ToolChoice::Auto);
        }
        request.reasoning = request.reasoning.map(|asked| as_told(asked, request.max_output_tokens));
        let terms = Terms {
            upstream_model: &request.model,
            max_output_tokens: None,
            default_max_output_tokens: 1,
            quirks: &Quirks::default(),
        };
        let printed = print_request(&request, &terms).unwrap();
        let read = read_request(&printed.body).unwrap();
        prop_assert_eq!(&read.left_out, &Vec::<String>::new());
        if printed.left_out.is_empty() {
            prop_assert_eq!(meaning(&read), meaning(&request));
        }
        let facts = Request::parse(Api::Messages, PathFacts::default(), &printed.body).unwrap();
        prop_assert_eq!(facts.stream, request.stream);
        prop_assert_eq!(facts.user.as_deref(), request.user.as_deref());
    }

    #[test]
    fn a_printed_answer_is_read_as_itself(answer in arbitrary::answer(ANSWERS)) {
        let mut answer = answer;
        answer.finish = answer.finish.map(told_as);
        answer.usage = Some(answer.usage.unwrap_or_default()).filter(|usage| usage.total() > 0);
        answer.model = "alias".into();
        let printed = print_answer(&answer, &answer_terms());
        let read = read_answer(&printed).unwrap();
        prop_assert_eq!(read, answer);
    }

    #[test]
    fn a_printed_stream_is_read_as_itself(events in arbitrary::events(ANSWERS)) {
        let stream = print_stream(&events);
        let mut read = read_stream(&[&stream]);
        let mut events = events;
        for event in read.iter_mut().chain(&mut events) {
            match event {
                Event::Start { model, .. } => *model = "alias".into(),
                Event::Finish { finish, .. } => *finish = told_as(*finish),
                _ => {}
            }
        }
        prop_assert_eq!(told(&read), told(&events));
    }

    #[test]
    fn a_stream_is_read_alike_wherever_it_is_cut(
        events in arbitrary::events(ANSWERS),
        cut in 0..10_000_usize,
    ) {
        let stream = print_stream(&events);
        let (head, tail) = stream.split_at(cut % stream.len());
        prop_assert_eq!(read_stream(&[head, tail]), read_stream(&[&stream]));
    }

    #[test]
    fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(read_request(&bytes));
        drop(read_answer(&bytes));
        let mut reader = AnthropicEvents::default();
        reader.read(b"", &bytes, &mut |_| {});
        reader.finish(&mut |_| {});
    }
}
