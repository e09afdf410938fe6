//! The one place that writes to the terminal: results to stdout, notes about them to stderr.

use std::fmt;
use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

use crate::table::Table;

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns for people
    Table,
    /// JSON for programs, with stable field names
    Json,
}

pub(crate) struct Output<'a> {
    pub(crate) format: Format,
    out: &'a mut dyn Write,
    notes: &'a mut dyn Write,
}

// === impl Output ===

impl<'a> Output<'a> {
    pub(crate) fn new(format: Format, out: &'a mut dyn Write, notes: &'a mut dyn Write) -> Self {
        Self { format, out, notes }
    }

    /// One line of a result.
    pub(crate) fn line(&mut self, text: impl fmt::Display) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    pub(crate) fn table(&mut self, table: &Table) -> io::Result<()> {
        self.out.write_all(table.render().as_bytes())
    }

    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *self.out, value)?;
        writeln!(self.out)
    }

    /// One line that is no part of the result, on stderr.
    pub(crate) fn note(&mut self, text: impl fmt::Display) -> io::Result<()> {
        writeln!(self.notes, "{text}")
    }
}
