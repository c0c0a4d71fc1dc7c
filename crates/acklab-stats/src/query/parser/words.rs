//! The words of a query, read one after the other, with errors at their places.

use crate::query::error::{QueryError, Span};
use crate::query::lexer::{Token, tokens};

/// What is left of a query.
pub(super) struct Words<'t> {
    text: &'t str,
    tokens: Vec<(Token, Span)>,
    at: usize,
    depth: usize,
    nodes: usize,
}

impl<'t> Words<'t> {
    pub(super) fn of(text: &'t str) -> Result<Self, QueryError> {
        Ok(Self { text, tokens: tokens(text)?, at: 0, depth: 0, nodes: 0 })
    }

    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    pub(super) fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    /// The word after the present one.
    pub(super) fn after(&self) -> Option<&Token> {
        self.tokens.get(self.at + 1).map(|(token, _)| token)
    }

    /// Where the word before the present one ended.
    pub(super) fn end(&self) -> usize {
        self.tokens[self.at.saturating_sub(1)].1.end
    }

    pub(super) fn advance(&mut self) {
        // The last word is the end, and stays.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    pub(super) fn accept(&mut self, word: &str) -> bool {
        let found = match self.peek() {
            Token::Sign(sign) => *sign == word,
            Token::Name(name) => name == word,
            _ => false,
        };
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect(&mut self, word: &str, mend: &str) -> Result<(), QueryError> {
        if self.accept(word) {
            return Ok(());
        }
        let what = format!("expected `{word}`, found {}", self.peek().describe());
        Err(self.error(what, mend))
    }

    pub(super) fn error(&self, what: impl Into<String>, mend: impl Into<String>) -> QueryError {
        QueryError::new(self.text, self.span(), what, mend)
    }

    pub(super) fn error_at(
        &self,
        span: Span,
        what: impl Into<String>,
        mend: impl Into<String>,
    ) -> QueryError {
        QueryError::new(self.text, span, what, mend)
    }

    /// The present word without a minus before it; the minus is skipped.
    pub(super) fn signed(&mut self) -> (Token, bool) {
        let negative = self.accept("-");
        (self.peek().clone(), negative)
    }

    pub(super) fn seconds(&mut self, mend: &str) -> Result<f64, QueryError> {
        let (Token::Number(value, unit), negative) = self.signed() else {
            let what = format!("expected a time, found {}", self.peek().describe());
            return Err(self.error(what, mend));
        };
        if negative {
            return Err(self.error("a bound cannot be negative", mend));
        }
        let seconds = unit.map_or(value, |unit| unit.seconds(value));
        if !seconds.is_finite() {
            return Err(self.error("the time is too long", mend));
        }
        self.advance();
        Ok(seconds)
    }

    pub(super) fn count(&mut self, what: &str) -> Result<u64, QueryError> {
        if let Token::Number(value, None) = *self.peek()
            && (1.0..=RUNS_MAX).contains(&value)
            && value.fract() <= 0.0
        {
            self.advance();
            return Ok(value as u64);
        }
        let found = match self.peek() {
            Token::Number(value, _) => value.to_string(),
            other => other.describe(),
        };
        let found = format!("expected {what}, found {found}");
        Err(self.error(found, "write a whole number from 1 to 1000000000000"))
    }

    /// `>=`, which is true, or `<=`, if there is one.
    pub(super) fn inequality(&mut self, what: &str) -> Result<Option<bool>, QueryError> {
        let at_least = match self.peek() {
            Token::Sign(">=") => true,
            Token::Sign("<=") => false,
            Token::Sign(sign @ (">" | "<" | "==" | "=" | "!=")) => {
                let what = format!("{what} cannot be tested with `{sign}`");
                return Err(self.error(what, "write >= or <="));
            }
            _ => return Ok(None),
        };
        self.advance();
        Ok(Some(at_least))
    }

    /// A probability that is neither 0 nor 1.
    pub(super) fn share(&mut self) -> Result<f64, QueryError> {
        if let Token::Number(value, None) = *self.peek()
            && value > 0.0
            && value < 1.0
        {
            self.advance();
            return Ok(value);
        }
        let found = match self.peek() {
            Token::Number(value, _) => value.to_string(),
            other => other.describe(),
        };
        let found = format!("expected a share, found {found}");
        Err(self.error(found, "write a number above 0, below 1, such as 0.95"))
    }

    /// One more expression inside another; [`rise`](Self::rise) after it.
    pub(super) fn deepen(&mut self) -> Result<(), QueryError> {
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            return Ok(());
        }
        let what = format!("more than {DEPTH_MAX} expressions inside each other");
        Err(self.error(what, "write a flatter formula"))
    }

    pub(super) fn rise(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn count_node(&mut self) -> Result<(), QueryError> {
        self.nodes += 1;
        if self.nodes <= NODES_MAX {
            return Ok(());
        }
        Err(self.error(format!("more than {NODES_MAX} operators"), "write a shorter formula"))
    }
}

/// Brackets, signs and calls inside each other.
const DEPTH_MAX: usize = 64;

/// Operators and calls of one query.
const NODES_MAX: usize = 1000;

/// More runs would not end in a lifetime, and a count beyond 2^53 is not exact.
const RUNS_MAX: f64 = 1e12;
