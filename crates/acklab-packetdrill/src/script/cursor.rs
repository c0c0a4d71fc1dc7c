//! A place in the text of a script.

use std::cell::Cell;

use super::SyntaxError;

/// The text from a place on.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    names: &'a [(String, String)],
    /// Newlines before a place, so that lines of a long script are not counted again and again.
    counted: Cell<(usize, usize)>,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(text: &'a str, names: &'a [(String, String)]) -> Self {
        Self { text, at: 0, names, counted: Cell::new((0, 0)) }
    }

    /// What a name stands for; itself where nothing is defined.
    pub(super) fn meaning<'w>(&'w self, word: &'w str) -> &'w str {
        let known = self.names.iter().rev().find(|(name, _)| name == word);
        known.map_or(word, |(_, value)| value.as_str())
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// The line, from 1.
    pub(super) fn line(&self) -> usize {
        let (from, before) = self.counted.get();
        let (from, before) = if from <= self.at { (from, before) } else { (0, 0) };
        let more = self.text[from..self.at].bytes().filter(|&b| b == b'\n').count();
        self.counted.set((self.at, before + more));
        before + more + 1
    }

    pub(super) fn error(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError { line: self.line(), message: message.into() }
    }

    pub(super) fn expected(&self, what: &str) -> SyntaxError {
        let next: String = self.rest().chars().take_while(|&c| c != '\n').take(24).collect();
        self.error(format!("expected {what}, found {next:?}"))
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) const fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Spaces and comments.
    pub(super) fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") || trimmed.starts_with('#') {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                self.at += trimmed.find("*/").map_or(trimmed.len(), |end| end + 2);
            } else {
                return;
            }
        }
    }

    /// Takes `text` if it comes next, after spaces.
    pub(super) fn take(&mut self, text: &str) -> bool {
        self.skip();
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub(super) fn want(&mut self, text: &str) -> Result<(), SyntaxError> {
        if self.take(text) { Ok(()) } else { Err(self.expected(&format!("{text:?}"))) }
    }

    /// Letters, digits and underscores.
    pub(super) fn word(&mut self) -> &'a str {
        self.skip();
        let rest = self.rest();
        let len =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// Looks at the next word without taking it.
    pub(super) fn next_word(&self) -> &'a str {
        self.clone().word()
    }

    /// Takes the word if it comes next.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = self.next_word() == word;
        if found {
            self.word();
        }
        found
    }

    /// A number: decimal, also behind a leading 0, or `0x`.
    pub(super) fn number(&mut self) -> Result<i64, SyntaxError> {
        self.skip();
        let negative = self.take("-");
        let here = self.clone();
        let word = self.word();
        let parsed = if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"))
        {
            u64::from_str_radix(hex, 16).map(|n| n as i64)
        } else {
            word.parse::<u64>().map(|n| n as i64)
        };
        match parsed {
            Ok(number) => Ok(if negative { number.wrapping_neg() } else { number }),
            Err(_) => Err(here.expected("a number")),
        }
    }

    /// A number of 32 bits without sign; any decimal.
    pub(super) fn u32(&mut self) -> Result<u32, SyntaxError> {
        self.skip();
        let here = self.clone();
        let word = self.word();
        let parsed = match word.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => word.parse(),
        };
        parsed.map_err(|_| here.expected("a number of 32 bits"))
    }

    /// A number of 16 bits.
    pub(super) fn u16(&mut self) -> Result<u16, SyntaxError> {
        let here = self.clone();
        u16::try_from(self.u32()?).map_err(|_| here.expected("a number of 16 bits"))
    }

    /// Seconds as microseconds.
    pub(super) fn seconds(&mut self) -> Result<u64, SyntaxError> {
        self.skip();
        let rest = self.rest();
        let mut end = 0;
        let mut dotted = false;
        for (at, c) in rest.char_indices() {
            if c == '.' && !dotted && !rest[at..].starts_with("...") {
                dotted = true;
            } else if !c.is_ascii_digit() {
                break;
            }
            end = at + 1;
        }
        let (whole, part) = rest[..end].split_once('.').unwrap_or((&rest[..end], ""));
        if whole.is_empty() && part.is_empty() {
            return Err(self.expected("a time in seconds"));
        }
        let digits: String = part.chars().chain("000000".chars()).take(6).collect();
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(u64::MAX) };
        let micros = digits.parse::<u64>().unwrap_or(0);
        let time = whole.checked_mul(1_000_000).and_then(|us| us.checked_add(micros));
        let Some(time) = time.filter(|&us| us < 1 << 50) else {
            return Err(self.expected("a time of less than some decades"));
        };
        self.at += end;
        Ok(time)
    }
}
