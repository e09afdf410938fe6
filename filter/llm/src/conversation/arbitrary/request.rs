//! Requests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::value::RawValue;

use super::parts::{answers_of, assistant, numbered, result, user_part};
use super::{Cow, Says, cache, if_said, own, text};
use crate::conversation::{
    Effort, Format, Message, Part, Reasoning, Request, Role, Schema, System, Tool, ToolChoice,
};

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
        let mut messages = Vec::new();
        let mut due = Vec::new();
        for (turn, (said, answered, results)) in exchanges.into_iter().enumerate() {
            due.extend(said);
            let answered = numbered(answered, &turn.to_string());
            if answered.is_empty() {
                continue;
            }
            messages.push(message(Role::User, std::mem::take(&mut due)));
            due = answers_of(&answered, results);
            messages.push(message(Role::Assistant, answered));
        }
        due.extend(last.into_iter().flatten());
        if !due.is_empty() {
            messages.push(message(Role::User, due));
        }
        messages
    })
}

fn message(role: Role, parts: Vec<Part<'static>>) -> Message<'static> {
    Message { role, parts }
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
