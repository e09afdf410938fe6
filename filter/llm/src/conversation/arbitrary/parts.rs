//! What messages are made of.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{Cow, Says, base64, cache, if_said, own, text};
use crate::conversation::{Media, MediaSource, Part, Thinking, ToolCall, ToolResult};

pub(super) fn user_part(says: Says) -> BoxedStrategy<Part<'static>> {
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
pub(super) fn assistant(says: Says) -> impl Strategy<Value = Vec<Part<'static>>> {
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

pub(super) fn result(says: Says) -> impl Strategy<Value = ToolResult<'static>> {
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

/// Gives every call an id of its own.
pub(super) fn numbered(mut parts: Vec<Part<'static>>, turn: &str) -> Vec<Part<'static>> {
    for (at, part) in parts.iter_mut().enumerate() {
        if let Part::ToolCall(call) = part {
            call.id = format!("call-{turn}-{at}").into();
        }
    }
    parts
}

pub(super) fn answers_of(
    answered: &[Part<'static>],
    results: Vec<ToolResult<'static>>,
) -> Vec<Part<'static>> {
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
