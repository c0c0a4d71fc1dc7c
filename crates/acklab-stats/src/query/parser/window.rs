//! `[<=T; N]` and `[a,b]`: how long a run is, how many there are, and which of its times count.

use super::expression::signal;
use super::words::Words;
use crate::query::error::QueryError;
use crate::query::lexer::Token;
use crate::query::syntax::{Limit, Window, Within};

/// `[<=T]`, `[<=T; N]`, `[x<=C]`, `[#<=N]`
pub(super) fn window(words: &mut Words<'_>) -> Result<Window, QueryError> {
    let mend = "write how long a run is, such as [<=30], [<=500ms] or [<=30; 100]";
    words.expect("[", mend)?;
    let limit = if words.accept("#") {
        words.expect("<=", "write [#<=100]")?;
        Limit::Steps(words.count("a number of steps")?)
    } else if let Token::Name(_) = words.peek() {
        let signal = signal(words)?;
        words.expect("<=", "write the clock's limit, such as [queue.arrivals<=1000]")?;
        let (Token::Number(value, None), negative) = words.signed() else {
            let what = format!("expected a number, found {}", words.peek().describe());
            return Err(words.error(what, "a signal's limit is a number without a unit"));
        };
        words.advance();
        if negative {
            return Err(words.error("a bound cannot be negative", mend));
        }
        Limit::Signal(signal, value)
    } else {
        words.expect("<=", mend)?;
        Limit::Time(words.seconds(mend)?)
    };
    let runs = if words.accept(";") { Some(words.count("a number of runs")?) } else { None };
    words.expect("]", "close the bound's bracket")?;
    Ok(Window { limit, runs })
}

/// `[a,b]`, or nothing.
pub(super) fn within(words: &mut Words<'_>) -> Result<Option<Within>, QueryError> {
    let start = words.span();
    if !words.accept("[") {
        return Ok(None);
    }
    let mend = "write the first and the last time, such as [10,20]";
    let from = words.seconds(mend)?;
    words.expect(",", mend)?;
    let to = words.seconds(mend)?;
    let span = start.to(words.span());
    words.expect("]", mend)?;
    if from > to {
        let what = "the interval ends before it begins";
        return Err(words.error_at(span, what, mend));
    }
    Ok(Some(Within { from, to }))
}
