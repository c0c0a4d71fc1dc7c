//! What is wrong with a query, where, and how to mend it.

use std::fmt;

/// A stretch of the query's text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One beyond the last byte.
    pub end: usize,
}

impl Span {
    /// From the start of one stretch to the end of another.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end }
    }
}

/// A query that cannot be run.
///
/// Prints as `query:line:column: what; how to mend`, with the line and a caret below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// Line of the query's text, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub mend: String,
    /// The offending line.
    source: String,
    /// How many characters to underline.
    length: usize,
}

impl QueryError {
    pub(crate) fn new(
        text: &str,
        span: Span,
        what: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        let start = span.start.min(text.len());
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = span.end.clamp(start, line_end);
        Self {
            line: before.matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            what: what.into(),
            mend: mend.into(),
            source: text[line_start..line_end].to_owned(),
            length: text[start..end].chars().count().max(1),
        }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "query:{}:{}: {}", self.line, self.column, self.what)?;
        writeln!(f, "  {}", self.source)?;
        writeln!(f, "  {}{}", " ".repeat(self.column - 1), "^".repeat(self.length))?;
        write!(f, "  {}", self.mend)
    }
}

impl std::error::Error for QueryError {}
