//! Conversations for property tests: what every API can say, and by [`Says`] what some can.
//!
//! A test prints what is generated here, reads it back, and compares the [`meaning`] of both.

use std::borrow::Cow;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::value::RawValue;

use super::{
    Answer, CacheMark, Effort, Event, Finish, Format, Media, MediaSource, Message, Part, Reasoning,
    Request, Role, Schema, System, Thinking, Tool, ToolCall, ToolChoice, ToolResult,
};
use crate::usage::Usage;

/// What an API can say beyond what all can.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Says {
    /// Whether an answer is streamed is in the body.
    pub(crate) stream: bool,
    /// Several pieces of instructions stay apart.
    pub(crate) system_pieces: bool,
    pub(crate) cache_marks: bool,
    pub(crate) image_links: bool,
    pub(crate) image_detail: bool,
    pub(crate) audio: bool,
    pub(crate) files: bool,
    /// Files are named, and may be ids.
    pub(crate) file_names: bool,
    pub(crate) result_images: bool,
    pub(crate) result_errors: bool,
    pub(crate) thinking: bool,
    /// Of thinking.
    pub(crate) signatures: bool,
    pub(crate) redacted: bool,
    /// Of calls.
    pub(crate) call_signatures: bool,
    pub(crate) refusals: bool,
    /// The output need not be bounded.
    pub(crate) unbounded: bool,
    /// Up to 2.
    pub(crate) high_temperature: bool,
    pub(crate) top_k: bool,
    pub(crate) penalties: bool,
    pub(crate) seed: bool,
    pub(crate) stop: bool,
    pub(crate) parallel: bool,
    /// Of tools and schemas.
    pub(crate) strict: bool,
    /// JSON without a schema.
    pub(crate) json: bool,
    pub(crate) schema: bool,
    /// A schema has a name and a description.
    pub(crate) schema_name: bool,
    pub(crate) effort: bool,
    pub(crate) budget: bool,
    pub(crate) user: bool,
    /// Of answers.
    pub(crate) id: bool,
    pub(crate) stop_sequence: bool,
    /// All of usage's details.
    pub(crate) usage_details: bool,
}

impl Says {
    pub(crate) const LEAST: Self = Self {
        stream: false,
        system_pieces: false,
        cache_marks: false,
        image_links: false,
        image_detail: false,
        audio: false,
        files: false,
        file_names: false,
        result_images: false,
        result_errors: false,
        thinking: false,
        signatures: false,
        redacted: false,
        call_signatures: false,
        refusals: false,
        unbounded: false,
        high_temperature: false,
        top_k: false,
        penalties: false,
        seed: false,
        stop: false,
        parallel: false,
        strict: false,
        json: false,
        schema: false,
        schema_name: false,
        effort: false,
        budget: false,
        user: false,
        id: false,
        stop_sequence: false,
        usage_details: false,
    };

    pub(crate) const ALL: Self = Self {
        stream: true,
        system_pieces: true,
        cache_marks: true,
        image_links: true,
        image_detail: true,
        audio: true,
        files: true,
        file_names: true,
        result_images: true,
        result_errors: true,
        thinking: true,
        signatures: true,
        redacted: true,
        call_signatures: true,
        refusals: true,
        unbounded: true,
        high_temperature: true,
        top_k: true,
        penalties: true,
        seed: true,
        stop: true,
        parallel: true,
        strict: true,
        json: true,
        schema: true,
        schema_name: true,
        effort: true,
        budget: true,
        user: true,
        id: true,
        stop_sequence: true,
        usage_details: true,
    };
}

/// A request: turns alternate and the user's is first, every call has its result in the next turn.
pub(crate) fn request(says: Says) -> impl Strategy<Value = Request<'static>> {
    let asked = (system(says), exchanges(says), vec(tool(says), 0..3));
    (asked, sampling(says), wishes(says)).prop_flat_map(|(asked, sampling, wishes)| {
        let (system, messages, tools) = asked;
        let choice = choice(&tools);
        choice.prop_map(move |tool_choice| Request {
            system: system.clone(),
            messages: messages.clone(),
            tools: tools.clone(),
            tool_choice,
            parallel_tool_calls: wishes.parallel_tool_calls.filter(|_| !tools.is_empty()),
            model: wishes.model.clone(),
            stream: wishes.stream,
            format: wishes.format.clone(),
            reasoning: wishes.reasoning,
            user: wishes.user.clone(),
            ..sampling.clone()
        })
    })
}

/// An answer that ended as its parts say.
pub(crate) fn answer(says: Says) -> impl Strategy<Value = Answer<'static>> {
    let head = (
        if_said(says.id, Cow::Borrowed(""), own("[a-zA-Z0-9-]{1,12}")),
        own("[a-z0-9.-]{1,12}"),
    );
    let parts = assistant(says).prop_filter("an answer has something", |parts| !parts.is_empty());
    let end = prop_oneof![
        Just(Finish::Stop),
        Just(Finish::Length),
        Just(Finish::ContentFilter)
    ];
    let sequence = if_said(says.stop_sequence, None, option::of(text()));
    (head, parts, end, sequence, option::of(usage(says))).prop_map(
        |((id, model), parts, end, sequence, usage)| {
            let finish = match parts.last() {
                Some(Part::ToolCall(_)) => Finish::ToolCalls,
                _ if parts.iter().any(|part| matches!(part, Part::Refusal(_))) => Finish::Refusal,
                _ => end,
            };
            Answer {
                id,
                model,
                parts: numbered(parts, "answer"),
                finish: Some(finish),
                stop_sequence: sequence.filter(|_| finish == Finish::Stop),
                usage,
            }
        },
    )
}

/// An answer as a stream tells it, its texts in pieces.
pub(crate) fn events(says: Says) -> impl Strategy<Value = Vec<Event<'static>>> {
    (answer(says), 1..6_usize).prop_map(|(answer, letters)| {
        let events = answer.into_events().into_iter();
        events.flat_map(|event| pieces(event, letters)).collect()
    })
}

/// What a stream says: texts whole, the last usage where the stream ends, ends of calls not told.
pub(crate) fn told(events: &[Event<'_>]) -> Vec<Event<'static>> {
    let mut told: Vec<Event<'static>> = Vec::new();
    let mut usage = None;
    for event in events {
        match (told.last_mut(), event) {
            (_, Event::Usage(reported)) => usage = Some(*reported),
            (_, Event::CallEnd { .. }) => {}
            (Some(Event::Text(before)), Event::Text(more))
            | (Some(Event::Refusal(before)), Event::Refusal(more))
            | (Some(Event::Thinking(before)), Event::Thinking(more)) => {
                before.to_mut().push_str(more);
            }
            (
                Some(Event::CallArguments { call: open, json }),
                Event::CallArguments { call, json: more },
            ) if open == call => json.to_mut().push_str(more),
            (_, Event::End) => {
                told.extend(usage.map(Event::Usage));
                told.push(Event::End);
            }
            (_, other) => told.push(other.clone().into_owned()),
        }
    }
    told
}

/// A request in a form to compare: what says the same is the same, however it was cut into
/// messages, and whatever was left out.
pub(crate) fn meaning(request: &Request<'_>) -> String {
    let mut messages: Vec<Message<'_>> = Vec::new();
    for message in &request.messages {
        match messages.last_mut() {
            Some(before) if before.role == message.role => {
                before.parts.extend(message.parts.iter().cloned());
            }
            _ => messages.push(message.clone()),
        }
    }
    let request = Request {
        messages,
        left_out: Vec::new(),
        ..request.clone()
    };
    format!("{request:#?}")
}

/// What `strategy` gives if it can be said, or else `otherwise`.
fn if_said<T, S>(is_said: bool, otherwise: T, strategy: S) -> BoxedStrategy<T>
where
    T: Clone + std::fmt::Debug + 'static,
    S: Strategy<Value = T> + 'static,
{
    if is_said {
        strategy.boxed()
    } else {
        Just(otherwise).boxed()
    }
}

fn own(pattern: &'static str) -> impl Strategy<Value = Cow<'static, str>> {
    pattern.prop_map(Cow::Owned)
}

fn text() -> impl Strategy<Value = Cow<'static, str>> {
    prop_oneof![own(r"\PC{1,24}"), own("[a-z \n\t\r\"\\\\{}]{0,12}[a-z]")]
}

fn base64() -> impl Strategy<Value = Cow<'static, str>> {
    own("([A-Za-z0-9+/]{4}){1,6}")
}

fn cache(says: Says) -> BoxedStrategy<Option<CacheMark>> {
    let marks = [None, Some(CacheMark::FiveMinutes), Some(CacheMark::OneHour)];
    if_said(says.cache_marks, None, prop::sample::select(marks.to_vec()))
}

fn system(says: Says) -> impl Strategy<Value = Vec<System<'static>>> {
    let most = if says.system_pieces { 3 } else { 1 };
    let piece = (text(), cache(says)).prop_map(|(text, cache)| System { text, cache });
    vec(piece, 0..=most)
}

/// What the user says, what is answered, and the results of what was called.
fn exchanges(says: Says) -> impl Strategy<Value = Vec<Message<'static>>> {
    let said = vec(user_part(says), 1..3);
    let results = vec(result(says), 4);
    let exchange = (said, assistant(says), results);
    let last = option::of(vec(user_part(says), 1..3));
    (vec(exchange, 1..4), last).prop_map(|(exchanges, last)| {
        let mut messages: Vec<Message<'static>> = Vec::new();
        let mut results_due = Vec::new();
        for (turn, (said, answered, results)) in exchanges.into_iter().enumerate() {
            let mut parts = std::mem::take(&mut results_due);
            parts.extend(said);
            messages.push(Message {
                role: Role::User,
                parts,
            });
            let answered = numbered(answered, &turn.to_string());
            results_due = answers_of(&answered, results);
            if answered.is_empty() {
                continue;
            }
            messages.push(Message {
                role: Role::Assistant,
                parts: answered,
            });
        }
        results_due.extend(last.into_iter().flatten());
        if !results_due.is_empty() {
            messages.push(Message {
                role: Role::User,
                parts: results_due,
            });
        }
        messages
    })
}

/// Gives every call an id of its own.
fn numbered(mut parts: Vec<Part<'static>>, turn: &str) -> Vec<Part<'static>> {
    for (at, part) in parts.iter_mut().enumerate() {
        if let Part::ToolCall(call) = part {
            call.id = format!("call-{turn}-{at}").into();
        }
    }
    parts
}

fn answers_of(answered: &[Part<'static>], results: Vec<ToolResult<'static>>) -> Vec<Part<'static>> {
    let calls = answered.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call),
        _ => None,
    });
    let answers = calls.zip(results).map(|(call, result)| {
        Part::ToolResult(ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            ..result
        })
    });
    answers.collect()
}

fn result(says: Says) -> impl Strategy<Value = ToolResult<'static>> {
    let texts = vec(text_part(Says::LEAST), 0..2);
    let images = if_said(
        says.result_images,
        Vec::new(),
        vec(image(Says::LEAST).prop_map(Part::Image), 0..2),
    );
    let is_error = if_said(says.result_errors, false, any::<bool>());
    (texts, images, is_error, cache(says)).prop_map(|(mut parts, images, is_error, cache)| {
        parts.extend(images);
        ToolResult {
            id: Cow::default(),
            name: Cow::default(),
            parts,
            is_error,
            cache,
        }
    })
}

fn user_part(says: Says) -> BoxedStrategy<Part<'static>> {
    let mut parts = vec![
        text_part(says).boxed(),
        text_part(says).boxed(),
        image(says).prop_map(Part::Image).boxed(),
    ];
    if says.audio {
        parts.push(audio(says).prop_map(Part::Audio).boxed());
    }
    if says.files {
        parts.push(file(says).prop_map(Part::File).boxed());
    }
    prop::strategy::Union::new(parts).boxed()
}

fn text_part(says: Says) -> impl Strategy<Value = Part<'static>> {
    (text(), cache(says)).prop_map(|(text, cache)| Part::Text { text, cache })
}

fn inline(media_type: &'static str) -> impl Strategy<Value = MediaSource<'static>> {
    base64().prop_map(move |data| MediaSource::Base64 {
        media_type: media_type.into(),
        data,
    })
}

fn image(says: Says) -> impl Strategy<Value = Media<'static>> {
    let url = own("https://[a-z]{1,8}/[a-z]{0,8}.png").prop_map(MediaSource::Url);
    let source = if says.image_links {
        prop_oneof![inline("image/png"), url].boxed()
    } else {
        prop_oneof![inline("image/png"), inline("image/jpeg")].boxed()
    };
    let detail = if_said(says.image_detail, None, option::of(own("low|high|auto")));
    (source, detail, cache(says)).prop_map(|(source, detail, cache)| Media {
        source,
        name: None,
        detail,
        cache,
    })
}

fn audio(says: Says) -> impl Strategy<Value = Media<'static>> {
    let source = prop_oneof![inline("audio/wav"), inline("audio/mpeg")];
    (source, cache(says)).prop_map(|(source, cache)| Media {
        source,
        name: None,
        detail: None,
        cache,
    })
}

fn file(says: Says) -> impl Strategy<Value = Media<'static>> {
    let name = own("[a-z]{1,8}.pdf").prop_map(Some);
    let inline = (
        inline("application/pdf"),
        if_said(says.file_names, None, name),
    );
    let source = if says.file_names {
        let id = own("file-[a-z0-9]{1,8}").prop_map(|id| (MediaSource::Id(id), None));
        prop_oneof![inline, id].boxed()
    } else {
        inline.boxed()
    };
    (source, cache(says)).prop_map(|((source, name), cache)| Media {
        source,
        name,
        detail: None,
        cache,
    })
}

/// What an assistant says, in the one order that every API keeps.
fn assistant(says: Says) -> impl Strategy<Value = Vec<Part<'static>>> {
    let thoughts = if_said(says.thinking, Vec::new(), vec(thinking(says), 0..3));
    let texts = vec(text_part(says), 0..2);
    let refusal = if_said(says.refusals, None, option::weighted(0.1, text()));
    let calls = vec(call(says), 0..3);
    (thoughts, texts, refusal, calls).prop_map(|(thoughts, texts, refusal, calls)| {
        let mut parts: Vec<Part<'static>> = thoughts.into_iter().map(Part::Thinking).collect();
        parts.extend(texts);
        match refusal {
            Some(refusal) => parts.push(Part::Refusal(refusal)),
            None => parts.extend(calls.into_iter().map(Part::ToolCall)),
        }
        // Thinking of which nothing came is not kept by every API.
        let is_thought = |part: &Part<'_>| matches!(part, Part::Thinking(_));
        if parts.iter().all(is_thought) {
            parts.clear();
        }
        parts
    })
}

/// Where thinking is signed, all of it is.
fn thinking(says: Says) -> impl Strategy<Value = Thinking<'static>> {
    let signature = if_said(says.signatures, None, base64().prop_map(Some));
    let shown =
        (text(), signature).prop_map(|(text, signature)| Thinking::Shown { text, signature });
    if says.redacted {
        let redacted = base64().prop_map(|data| Thinking::Redacted { data });
        prop_oneof![3 => shown, 1 => redacted].boxed()
    } else {
        shown.boxed()
    }
}

fn call(says: Says) -> impl Strategy<Value = ToolCall<'static>> {
    let arguments = prop_oneof![
        Just(Cow::Borrowed("{}")),
        Just(Cow::Borrowed(
            r#"{"city":"K\u00f6ln","days":[1,2.5],"deep":{"a":null}}"#
        )),
        own("[a-zé ]{0,8}").prop_map(|text| format!(r#"{{"text":"{text}"}}"#).into()),
    ];
    let signature = if_said(says.call_signatures, None, option::of(base64()));
    (own("[a-z_]{1,12}"), arguments, signature, cache(says)).prop_map(
        |(name, arguments, signature, cache)| ToolCall {
            id: Cow::default(),
            name,
            arguments,
            signature,
            cache,
        },
    )
}

const SCHEMAS: [&str; 3] = [
    r#"{"type":"object","properties":{}}"#,
    r#"{"type":"object","properties":{"city":{"type":"string","description":"\"where\""}},"required":["city"],"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"n":{"type":"integer","minimum":0},"of":{"type":"array","items":{"type":"number"}}}}"#,
];

fn schema() -> impl Strategy<Value = Cow<'static, RawValue>> {
    prop::sample::select(SCHEMAS.to_vec())
        .prop_map(|text| Cow::Borrowed(serde_json::from_str(text).unwrap()))
}

fn tool(says: Says) -> impl Strategy<Value = Tool<'static>> {
    let strict = if_said(says.strict, None, option::of(any::<bool>()));
    let about = (own("[a-z_]{1,12}"), option::of(text()));
    (about, schema(), strict, cache(says)).prop_map(
        |((name, description), parameters, strict, cache)| Tool {
            name,
            description,
            parameters: Some(parameters),
            strict,
            cache,
        },
    )
}

/// Only where there is something to choose from.
fn choice(tools: &[Tool<'static>]) -> BoxedStrategy<Option<ToolChoice<'static>>> {
    let Some(first) = tools.first() else {
        return Just(None).boxed();
    };
    let choices = vec![
        None,
        Some(ToolChoice::Auto),
        Some(ToolChoice::None),
        Some(ToolChoice::Required),
        Some(ToolChoice::Named(first.name.clone())),
    ];
    prop::sample::select(choices).boxed()
}

/// Halves and quarters, which every way of writing numbers keeps.
fn quarters(range: std::ops::RangeInclusive<i32>) -> BoxedStrategy<Option<f64>> {
    option::of(range.prop_map(|quarters| f64::from(quarters) / 4.0)).boxed()
}

fn sampling(says: Says) -> impl Strategy<Value = Request<'static>> {
    let bounded = (1..100_000_u64).prop_map(Some);
    let unbounded = option::of(1..100_000_u64);
    let most = if says.unbounded {
        unbounded.boxed()
    } else {
        bounded.boxed()
    };
    let highest = if says.high_temperature { 8 } else { 4 };
    let chances = (
        quarters(0..=highest),
        quarters(0..=4),
        if_said(says.top_k, None, option::of(1..500_u64)),
    );
    let penalties = (
        if_said(says.penalties, None, quarters(-8..=8)),
        if_said(says.penalties, None, quarters(-8..=8)),
    );
    let seed = if_said(
        says.seed,
        None,
        option::of(any::<i32>().prop_map(i64::from)),
    );
    let stop = if_said(says.stop, Vec::new(), vec(text(), 0..4));
    (most, chances, penalties, seed, stop).prop_map(
        |(max_output_tokens, chances, penalties, seed, stop)| Request {
            max_output_tokens,
            temperature: chances.0,
            top_p: chances.1,
            top_k: chances.2,
            presence_penalty: penalties.0,
            frequency_penalty: penalties.1,
            seed,
            stop,
            ..Request::default()
        },
    )
}

/// The model, and how it is to answer.
fn wishes(says: Says) -> impl Strategy<Value = Request<'static>> {
    let head = (
        own("[a-z0-9.-]{1,16}"),
        if_said(says.stream, false, any::<bool>()),
        if_said(says.parallel, None, option::of(any::<bool>())),
    );
    let user = if_said(says.user, None, option::of(own("[a-z0-9-]{1,12}")));
    (head, format(says), reasoning(says), user).prop_map(
        |((model, stream, parallel_tool_calls), format, reasoning, user)| Request {
            model,
            stream,
            parallel_tool_calls,
            format,
            reasoning,
            user,
            ..Request::default()
        },
    )
}

fn format(says: Says) -> BoxedStrategy<Format<'static>> {
    let mut formats = vec![Just(Format::Text).boxed()];
    if says.json {
        formats.push(Just(Format::Json).boxed());
    }
    if says.schema {
        let name = own("[a-z_]{1,12}");
        let name = if_said(says.schema_name, Cow::Borrowed(""), name);
        let description = if_said(says.schema_name, None, option::of(text()));
        let strict = if_said(says.strict, None, option::of(any::<bool>()));
        let schema = (name, description, schema(), strict).prop_map(
            |(name, description, schema, strict)| {
                Format::Schema(Schema {
                    name,
                    description,
                    schema,
                    strict,
                })
            },
        );
        formats.push(schema.boxed());
    }
    prop::strategy::Union::new(formats).boxed()
}

fn reasoning(says: Says) -> BoxedStrategy<Option<Reasoning>> {
    let mut all = vec![Just(None).boxed()];
    if says.effort {
        let efforts = vec![
            Effort::None,
            Effort::Minimal,
            Effort::Low,
            Effort::Medium,
            Effort::High,
            Effort::ExtraHigh,
        ];
        let effort = prop::sample::select(efforts).prop_map(|effort| {
            Some(Reasoning {
                effort: Some(effort),
                ..Reasoning::default()
            })
        });
        all.push(effort.boxed());
    }
    if says.budget {
        let budget = (1024..32_000_u64).prop_map(|tokens| {
            Some(Reasoning {
                budget_tokens: Some(tokens),
                ..Reasoning::default()
            })
        });
        all.push(budget.boxed());
    }
    prop::strategy::Union::new(all).boxed()
}

fn usage(says: Says) -> impl Strategy<Value = Usage> {
    let details = if_said(
        says.usage_details,
        [0; 6],
        prop::array::uniform6(0..100_u64),
    );
    (1..5_000_u64, 0..5_000_u64, details).prop_map(|(input, output, details)| {
        let [
            cached_input,
            cache_write,
            cache_write_1h,
            input_audio,
            reasoning,
            output_audio,
        ] = details;
        Usage {
            input: input + cached_input + cache_write,
            cached_input,
            cache_write,
            cache_write_1h,
            input_audio,
            output: output + reasoning,
            reasoning,
            output_audio,
        }
        .clamped()
    })
}

/// A text event as several, of so many letters each.
fn pieces(event: Event<'static>, letters: usize) -> Vec<Event<'static>> {
    let cut = |text: &str| -> Vec<Cow<'static, str>> {
        let all: Vec<char> = text.chars().collect();
        let chunks = all.chunks(letters * 3);
        chunks
            .map(|piece| piece.iter().collect::<String>().into())
            .collect()
    };
    match event {
        Event::Text(text) => cut(&text).into_iter().map(Event::Text).collect(),
        Event::Refusal(text) => cut(&text).into_iter().map(Event::Refusal).collect(),
        Event::Thinking(text) => cut(&text).into_iter().map(Event::Thinking).collect(),
        Event::CallArguments { call, json } => cut(&json)
            .into_iter()
            .map(|json| Event::CallArguments { call, json })
            .collect(),
        other => vec![other],
    }
}
