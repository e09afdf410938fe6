//! Sums over roll-ups, by the dimensions that were asked for.

use proto::admin::v1::UsageRow;
use serde_json::{Map, Value, json};

use crate::command::usage::Dimension;
use crate::moment::Moment;
use crate::money::{signed_usd, usd};
use crate::table::{Column, Table};

const NUMBERS: [Column; 11] = [
    Column::number("REQUESTS"),
    Column::number("ATTEMPTS"),
    Column::number("INPUT"),
    Column::number("CACHED"),
    Column::number("WRITE"),
    Column::number("OUTPUT"),
    Column::number("REASONING"),
    Column::number("ESTIMATED"),
    Column::number("UNPRICED"),
    Column::number("COST USD"),
    Column::number("CORRECTION"),
];

/// A row a group, and a total when there are several.
pub(crate) fn table(by: &[Dimension], rows: &[UsageRow]) -> Table {
    let mut columns: Vec<Column> = by.iter().map(|dimension| dimension.column()).collect();
    columns.extend(NUMBERS);
    let mut table = Table::new(&columns);
    for row in rows {
        let mut cells: Vec<String> = by.iter().map(|dimension| dimension.cell(row)).collect();
        cells.extend(numbers(row));
        table.push(cells);
    }
    if rows.len() > 1 {
        let mut cells: Vec<String> = by.iter().map(|_| String::new()).collect();
        if let Some(first) = cells.first_mut() {
            "TOTAL".clone_into(first);
        }
        cells.extend(numbers(&total(rows)));
        table.push(cells);
    }
    table
}

/// One object a group; dimensions that were not asked for are left out.
pub(crate) fn views(by: &[Dimension], rows: &[UsageRow]) -> Vec<Value> {
    rows.iter().map(|row| view(by, row)).collect()
}

fn view(by: &[Dimension], row: &UsageRow) -> Value {
    let mut object = Map::new();
    for dimension in by {
        object.insert(dimension.field().to_owned(), dimension.value(row));
    }
    let numbers = json!({
        "requests": row.requests,
        "attempts": row.attempts,
        "inputTokens": row.input_tokens,
        "cachedInputTokens": row.cached_input_tokens,
        "cacheWriteTokens": row.cache_write_tokens,
        "outputTokens": row.output_tokens,
        "reasoningTokens": row.reasoning_tokens,
        "estimatedAttempts": row.estimated_attempts,
        "unpricedAttempts": row.unpriced_attempts,
        "costNusd": row.cost_nusd,
        "costUsd": usd(row.cost_nusd),
        "correctionNusd": row.correction_nusd,
        "correctionUsd": signed_usd(row.correction_nusd),
    });
    if let Value::Object(numbers) = numbers {
        object.extend(numbers);
    }
    Value::Object(object)
}

fn numbers(row: &UsageRow) -> [String; 11] {
    [
        row.requests.to_string(),
        row.attempts.to_string(),
        row.input_tokens.to_string(),
        row.cached_input_tokens.to_string(),
        row.cache_write_tokens.to_string(),
        row.output_tokens.to_string(),
        row.reasoning_tokens.to_string(),
        row.estimated_attempts.to_string(),
        row.unpriced_attempts.to_string(),
        usd(row.cost_nusd),
        signed_usd(row.correction_nusd),
    ]
}

fn total(rows: &[UsageRow]) -> UsageRow {
    rows.iter().fold(UsageRow::default(), |sum, row| UsageRow {
        requests: sum.requests.saturating_add(row.requests),
        attempts: sum.attempts.saturating_add(row.attempts),
        input_tokens: sum.input_tokens.saturating_add(row.input_tokens),
        cached_input_tokens: sum
            .cached_input_tokens
            .saturating_add(row.cached_input_tokens),
        cache_write_tokens: sum
            .cache_write_tokens
            .saturating_add(row.cache_write_tokens),
        output_tokens: sum.output_tokens.saturating_add(row.output_tokens),
        reasoning_tokens: sum.reasoning_tokens.saturating_add(row.reasoning_tokens),
        estimated_attempts: sum
            .estimated_attempts
            .saturating_add(row.estimated_attempts),
        unpriced_attempts: sum.unpriced_attempts.saturating_add(row.unpriced_attempts),
        cost_nusd: sum.cost_nusd.saturating_add(row.cost_nusd),
        correction_nusd: sum.correction_nusd.saturating_add(row.correction_nusd),
        ..sum
    })
}

// === impl Dimension ===

impl Dimension {
    fn column(self) -> Column {
        Column::text(match self {
            Self::Team => "TEAM",
            Self::Key => "KEY",
            Self::Model => "MODEL",
            Self::Provider => "PROVIDER",
            Self::Slot => "SLOT",
            Self::Day => "DAY",
        })
    }

    fn field(self) -> &'static str {
        match self {
            Self::Team => "team",
            Self::Key => "key",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Slot => "slot",
            Self::Day => "day",
        }
    }

    fn cell(self, row: &UsageRow) -> String {
        match self {
            Self::Team | Self::Key | Self::Model | Self::Provider => self.id(row).to_owned(),
            Self::Slot => slot(row).map(|slot| slot.to_string()).unwrap_or_default(),
            Self::Day => slot(row).map(Moment::date).unwrap_or_default(),
        }
    }

    fn value(self, row: &UsageRow) -> Value {
        match self {
            Self::Team | Self::Key | Self::Model | Self::Provider => json!(self.id(row)),
            Self::Slot => json!(slot(row)),
            Self::Day => json!(slot(row).map(Moment::date)),
        }
    }

    /// The id alone, whether the row has it or the resource's name.
    fn id(self, row: &UsageRow) -> &str {
        let (name, prefix) = match self {
            Self::Team => (&row.team, "teams/"),
            Self::Key => (&row.virtual_key, "virtualKeys/"),
            Self::Model => (&row.model, "models/"),
            Self::Provider => (&row.provider, "providers/"),
            Self::Slot | Self::Day => return "",
        };
        name.strip_prefix(prefix).unwrap_or(name)
    }
}

fn slot(row: &UsageRow) -> Option<Moment> {
    Moment::from_wire(row.slot.as_ref())
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;

    use super::*;

    fn row(team: &str, cost_nusd: u64) -> UsageRow {
        UsageRow {
            team: team.into(),
            slot: Some(Timestamp {
                seconds: 1_796_083_200,
                nanos: 0,
            }),
            requests: 2,
            attempts: 3,
            input_tokens: 1000,
            output_tokens: 50,
            cost_nusd,
            correction_nusd: -20,
            ..Default::default()
        }
    }

    #[test]
    fn groups_are_columns_and_several_rows_have_a_total() {
        let rows = [row("teams/acme", 150_000), row("b", 1)];
        let text = table(&[Dimension::Team, Dimension::Day], &rows).render();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0][..3], ["TEAM", "DAY", "REQUESTS"]);
        assert_eq!(
            lines[1],
            [
                "acme",
                "2026-12-01",
                "2",
                "3",
                "1000",
                "0",
                "0",
                "50",
                "0",
                "0",
                "0",
                "0.00015",
                "-0.00000002"
            ]
        );
        assert_eq!(lines[3][..4], ["TOTAL", "-", "4", "6"]);
        assert_eq!(lines[3][11..], ["0.000150001", "-0.00000004"]);
    }

    #[test]
    fn json_has_the_groups_that_were_asked_for_and_exact_money() {
        let views = views(&[Dimension::Team], &[row("acme", 150_000)]);
        assert_eq!(views[0]["team"], "acme");
        assert_eq!(views[0]["costUsd"], "0.00015");
        assert_eq!(views[0]["costNusd"], 150_000);
        assert_eq!(views[0]["correctionNusd"], -20);
        assert_eq!(views[0]["correctionUsd"], "-0.00000002");
        assert!(views[0].get("day").is_none());
    }
}
