//! Lists of models, and single ones, as each dialect shows them.

use serde::Serialize;

use crate::api::Dialect;

/// One model as a client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelEntry<'a> {
    pub id: &'a str,
    /// Unix time in seconds.
    pub created_s: u64,
    pub owned_by: &'a str,
}

/// The body of the list, in the order given; all of it, whatever page was asked for.
pub fn list<'a>(dialect: Dialect, entries: impl Iterator<Item = ModelEntry<'a>>) -> Vec<u8> {
    let models: Vec<Model<'_>> = entries.map(|entry| Model::new(dialect, entry)).collect();
    match dialect {
        Dialect::Anthropic => print(&AnthropicList {
            first_id: models.first().map(Model::id),
            last_id: models.last().map(Model::id),
            has_more: false,
            data: &models,
        }),
        Dialect::Gemini => print(&GeminiList { models: &models }),
        Dialect::OpenAi | Dialect::Converse => print(&OpenAiList {
            object: "list",
            data: &models,
        }),
    }
}

/// The body of one model.
pub fn retrieve(dialect: Dialect, entry: &ModelEntry<'_>) -> Vec<u8> {
    print(&Model::new(dialect, *entry))
}

#[derive(Serialize)]
struct OpenAiList<'a> {
    object: &'static str,
    data: &'a [Model<'a>],
}

#[derive(Serialize)]
struct AnthropicList<'a> {
    data: &'a [Model<'a>],
    has_more: bool,
    first_id: Option<&'a str>,
    last_id: Option<&'a str>,
}

#[derive(Serialize)]
struct GeminiList<'a> {
    models: &'a [Model<'a>],
}

#[derive(Serialize)]
#[serde(untagged)]
enum Model<'a> {
    OpenAi {
        id: &'a str,
        object: &'static str,
        created: u64,
        owned_by: &'a str,
    },
    Anthropic {
        #[serde(rename = "type")]
        kind: &'static str,
        id: &'a str,
        display_name: &'a str,
        created_at: String,
    },
    #[serde(rename_all = "camelCase")]
    Gemini {
        name: String,
        base_model_id: &'a str,
        version: &'static str,
        display_name: &'a str,
        supported_generation_methods: [&'static str; 2],
    },
}

impl<'a> Model<'a> {
    fn new(dialect: Dialect, entry: ModelEntry<'a>) -> Self {
        let ModelEntry {
            id,
            created_s,
            owned_by,
        } = entry;
        match dialect {
            Dialect::Anthropic => Self::Anthropic {
                kind: "model",
                id,
                display_name: id,
                created_at: rfc3339(created_s),
            },
            Dialect::Gemini => Self::Gemini {
                name: format!("models/{id}"),
                base_model_id: id,
                version: "001",
                display_name: id,
                supported_generation_methods: ["generateContent", "streamGenerateContent"],
            },
            Dialect::OpenAi | Dialect::Converse => Self::OpenAi {
                id,
                object: "model",
                created: created_s,
                owned_by,
            },
        }
    }

    fn id(&self) -> &str {
        match self {
            Self::OpenAi { id, .. } | Self::Anthropic { id, .. } => id,
            Self::Gemini { base_model_id, .. } => base_model_id,
        }
    }
}

/// Nothing that is printed here can fail to be.
fn print(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).unwrap_or_default()
}

/// A moment in UTC, as RFC 3339 writes it.
pub fn rfc3339(unix_s: u64) -> String {
    let (days, seconds) = (unix_s / 86_400, unix_s % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of the Gregorian calendar, by days since 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years here begin with March, so that a leap day is a year's last; eras are of 400 years.
    const DAYS_BEFORE_1970: u64 = 719_468;
    const ERA_DAYS: u64 = 146_097;
    let days = days + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ENTRY: ModelEntry<'_> = ModelEntry {
        id: "house\"s best",
        created_s: 1_750_000_000,
        owned_by: "turnpike",
    };

    fn listed(dialect: Dialect, entries: &[ModelEntry<'_>]) -> Value {
        serde_json::from_slice(&list(dialect, entries.iter().copied())).unwrap()
    }

    #[test]
    fn a_list_has_every_model_in_order_in_each_dialect() {
        let small = ModelEntry {
            id: "small-1",
            ..ENTRY
        };
        let expected = json!({"object": "list", "data": [
            {"id": "house\"s best", "object": "model", "created": 1_750_000_000, "owned_by": "turnpike"},
            {"id": "small-1", "object": "model", "created": 1_750_000_000, "owned_by": "turnpike"},
        ]});
        assert_eq!(listed(Dialect::OpenAi, &[ENTRY, small]), expected);
        let expected = json!({"data": [
            {"type": "model", "id": "small-1", "display_name": "small-1",
             "created_at": "2025-06-15T15:06:40Z"},
        ], "has_more": false, "first_id": "small-1", "last_id": "small-1"});
        assert_eq!(listed(Dialect::Anthropic, &[small]), expected);
        let expected = json!({"models": [{"name": "models/small-1", "baseModelId": "small-1",
            "version": "001", "displayName": "small-1",
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent"]}]});
        assert_eq!(listed(Dialect::Gemini, &[small]), expected);
        assert_eq!(
            list(Dialect::OpenAi, [].into_iter()),
            br#"{"object":"list","data":[]}"#
        );
    }

    #[test]
    fn one_model_is_an_object_of_its_own() {
        assert_eq!(
            String::from_utf8(retrieve(Dialect::OpenAi, &ENTRY)).unwrap(),
            r#"{"id":"house\"s best","object":"model","created":1750000000,"owned_by":"turnpike"}"#
        );
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (unix_s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(unix_s), text);
        }
    }
}
