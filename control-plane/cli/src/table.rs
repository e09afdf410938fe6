//! Aligned columns of text.

/// A column's heading and the side its cells keep to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    heading: &'static str,
    right: bool,
}

/// Rows under headings; a table without rows still shows its headings.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

// === impl Column ===

impl Column {
    pub(crate) const fn text(heading: &'static str) -> Self {
        Self {
            heading,
            right: false,
        }
    }

    pub(crate) const fn number(heading: &'static str) -> Self {
        Self {
            heading,
            right: true,
        }
    }
}

// === impl Table ===

impl Table {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; an empty cell is shown as `-`.
    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows
            .push(row.iter().map(|cell| visible(cell)).collect());
    }

    pub(crate) fn render(&self) -> String {
        let headings: Vec<String> = self
            .columns
            .iter()
            .map(|column| column.heading.to_owned())
            .collect();
        let lines = || std::iter::once(&headings).chain(&self.rows);
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|at| {
                lines()
                    .filter_map(|row| row.get(at))
                    .map(|cell| width(cell))
                    .max()
            })
            .map(Option::unwrap_or_default)
            .collect();
        lines().map(|row| self.line(row, &widths)).collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, column), &widest) in row.iter().zip(&self.columns).zip(widths) {
            let padding = " ".repeat(widest - width(cell));
            match column.right {
                true => line.extend([padding.as_str(), cell, "  "]),
                false => line.extend([cell, padding.as_str(), "  "]),
            }
        }
        format!("{}\n", line.trim_end())
    }
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

/// A cell that cannot move the cursor: names come from other people.
fn visible(cell: &str) -> String {
    match cell {
        "" => "-".to_owned(),
        cell => cell
            .chars()
            .map(|character| {
                if character.is_control() {
                    '\u{fffd}'
                } else {
                    character
                }
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_without_spaces() {
        let mut table = Table::new(&[
            Column::text("ID"),
            Column::number("TOKENS"),
            Column::text("NOTE"),
        ]);
        table.push(vec!["a".into(), "12".into(), String::new()]);
        table.push(vec!["größer".into(), "1234567".into(), "x".into()]);
        assert_eq!(
            table.render(),
            "ID       TOKENS  NOTE\n\
             a            12  -\n\
             größer  1234567  x\n"
        );
    }

    #[test]
    fn an_empty_table_still_has_its_headings() {
        let table = Table::new(&[Column::text("ID"), Column::text("TEAM")]);
        assert_eq!(table.render(), "ID  TEAM\n");
    }

    #[test]
    fn a_cell_cannot_carry_terminal_commands() {
        let mut table = Table::new(&[Column::text("NAME")]);
        table.push(vec!["a\u{1b}[2Jb\nc".into()]);
        assert_eq!(table.render(), "NAME\na\u{fffd}[2Jb\u{fffd}c\n");
    }
}
