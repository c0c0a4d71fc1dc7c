//! `max: x`, `share[10,20] per drops: x > 3`: what a run comes down to, and what that is compared with.

use super::expression::{condition, number, signal};
use super::window::within;
use super::words::Words;
use crate::query::error::QueryError;
use crate::query::lexer::Token;
use crate::query::syntax::{Bound, Reduction, Value};

/// `reduction [a,b] per counter: expression`
pub(super) fn value(words: &mut Words<'_>) -> Result<Value, QueryError> {
    let reduction = reduction(words)?;
    let within = within(words)?;
    let place = words.span();
    let per = if words.accept("per") { Some(signal(words)?) } else { None };
    if per.is_some() && !reduction.is_weighted() {
        let what = format!("`{}` weighs nothing", reduction.name());
        let mend = "write `per` after avg, share, sum or quantile(p), or leave it out";
        return Err(words.error_at(place, what, mend));
    }
    words
        .expect(":", "write a colon before what is reduced, such as E[<=30](max: queue.length)")?;
    let expression = if reduction == Reduction::Share {
        condition(words)?
    } else {
        number(words, "the value that is reduced")?
    };
    Ok(Value { reduction, within, per, expression })
}

fn reduction(words: &mut Words<'_>) -> Result<Reduction, QueryError> {
    let simple = [
        Reduction::Max,
        Reduction::Min,
        Reduction::Last,
        Reduction::Average,
        Reduction::Share,
        Reduction::Sum,
    ];
    if let Some(found) = simple.into_iter().find(|reduction| words.accept(reduction.name())) {
        return Ok(found);
    }
    if words.accept("quantile") {
        let mend = "write the share in brackets: quantile(0.95): queue.length";
        words.expect("(", mend)?;
        let share = words.share()?;
        words.expect(")", mend)?;
        return Ok(Reduction::Quantile(share));
    }
    let found = words.peek().describe();
    Err(words.error(
        format!("expected max, min, last, avg, share, sum or quantile, found {found}"),
        "write how a run is reduced, such as E[<=30; 100](max: queue.length)",
    ))
}

/// The number behind `>=` or `<=`; what else could stand there is put in, for errors.
pub(super) fn bound(
    words: &mut Words<'_>,
    at_least: bool,
    other: &str,
    other_mend: &str,
) -> Result<Bound, QueryError> {
    let Token::Number(threshold, None) = *words.peek() else {
        let what = format!("expected a probability{other}, found {}", words.peek().describe());
        return Err(words.error(what, format!("write a number from 0 to 1{other_mend}")));
    };
    if !(0.0..=1.0).contains(&threshold) {
        let what = format!("{threshold} is not a probability");
        return Err(words.error(what, "write a number from 0 to 1"));
    }
    words.advance();
    Ok(Bound { at_least, threshold })
}
