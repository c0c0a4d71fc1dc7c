//! Recursive descent over a query's words, from the query down to its expressions.

mod expression;
mod value;
mod window;
mod words;

use self::expression::{condition, quantity};
use self::value::{bound, value};
use self::window::{window, within};
use self::words::Words;
use super::error::QueryError;
use super::lexer::Token;
use super::syntax::{Filter, Measure, Path, Query, Reduction};

/// Reads one query.
///
/// # Errors
/// Where and what a word was expected to be, and how to mend it.
pub fn parse(text: &str) -> Result<Query, QueryError> {
    let mut words = Words::of(text)?;
    let query = query(&mut words)?;
    // Copied from UPPAAL's query file, where a line may end so.
    words.accept(";");
    match words.peek() {
        Token::End => Ok(query),
        other => {
            let what = format!("expected the end of the query, found {}", other.describe());
            Err(words.error(what, "ask one query at a time"))
        }
    }
}

fn query(words: &mut Words<'_>) -> Result<Query, QueryError> {
    if words.accept("Pr") {
        return probability(words);
    }
    if words.accept("E") {
        return expectation(words);
    }
    if words.accept("quantile") {
        return quantile(words);
    }
    if words.accept("S") {
        return steady_state(words);
    }
    if words.accept("simulate") {
        return simulation(words);
    }
    let found = words.peek().describe();
    Err(words.error(
        format!("expected `Pr`, `E`, `quantile`, `S` or `simulate`, found {found}"),
        "write Pr[<=30](<> itae > 8727), E[<=30; 100](max: queue.length) or \
         simulate [<=30; 10] {itae}",
    ))
}

fn probability(words: &mut Words<'_>) -> Result<Query, QueryError> {
    let left = measure(words)?;
    if let Some(at_least) = words.inequality("a probability")? {
        if words.accept("Pr") {
            let right = measure(words)?;
            let (left, right) = if at_least { (left, right) } else { (right, left) };
            return Ok(Query::Comparison { left, right });
        }
        let bound = bound(words, at_least, " or `Pr`", ", or a second Pr[…](…)")?;
        return Ok(Query::Hypothesis { measure: left, bound });
    }
    Ok(Query::Probability(left))
}

fn expectation(words: &mut Words<'_>) -> Result<Query, QueryError> {
    let window = window(words)?;
    words.expect("(", "write E[<=30; 100](max: queue.length)")?;
    let value = value(words)?;
    words.expect(")", "close the bracket after the expression")?;
    let place = words.span();
    let bound = match words.inequality("a mean")? {
        Some(_) if value.reduction != Reduction::Share => {
            let what = "only the mean of a share can be tested";
            return Err(words.error_at(
                place,
                what,
                "write E[<=30](share: queue.length > 9) <= 0.05",
            ));
        }
        Some(at_least) => Some(bound(words, at_least, "", "")?),
        None => None,
    };
    Ok(Query::Expectation { window, value, bound })
}

fn quantile(words: &mut Words<'_>) -> Result<Query, QueryError> {
    let mend = "write quantile[<=30; 500](0.95, max: queue.length)";
    let window = window(words)?;
    words.expect("(", mend)?;
    let p = words.share()?;
    words.expect(",", mend)?;
    let value = value(words)?;
    words.expect(")", "close the bracket after the expression")?;
    Ok(Query::Quantile { window, p, value })
}

fn steady_state(words: &mut Words<'_>) -> Result<Query, QueryError> {
    let window = window(words)?;
    words.expect("(", "write S[<=600](avg: queue.length)")?;
    let place = words.span();
    let value = value(words)?;
    if !matches!(value.reduction, Reduction::Average | Reduction::Share) {
        let what = format!("`{}` has no value in the steady state", value.reduction.name());
        return Err(words.error_at(place, what, "write S[<=600](avg: …) or S[<=600](share: …)"));
    }
    words.expect(")", "close the bracket after the expression")?;
    Ok(Query::SteadyState { window, value })
}

fn measure(words: &mut Words<'_>) -> Result<Measure, QueryError> {
    let window = window(words)?;
    words.expect("(", "write the formula in brackets: Pr[<=30](<> itae > 8727)")?;
    let path = if words.accept("<>") {
        let within = within(words)?;
        Path::Eventually(within, condition(words)?)
    } else if words.accept("[]") {
        let within = within(words)?;
        Path::Always(within, condition(words)?)
    } else {
        until(words)?
    };
    words.expect(")", "close the bracket that the formula began with")?;
    Ok(Measure { window, path })
}

fn until(words: &mut Words<'_>) -> Result<Path, QueryError> {
    let start = words.span();
    let hold = condition(words)?;
    if !words.accept("U") {
        if matches!(words.peek(), Token::Sign(")")) {
            return Err(words.error_at(
                start,
                "the formula does not say when it has to hold",
                "write <> before it for at some time, [] for at all times, or p U q",
            ));
        }
        let what = format!("expected `U` or an operator, found {}", words.peek().describe());
        return Err(words.error(what, "write p U q, <> p or [] p"));
    }
    let within = within(words)?;
    Ok(Path::Until(hold, within, condition(words)?))
}

fn simulation(words: &mut Words<'_>) -> Result<Query, QueryError> {
    let window = window(words)?;
    words.expect("{", "list what to record: simulate [<=30; 10] {itae, queue.length}")?;
    let mut values = vec![quantity(words)?];
    while words.accept(",") {
        values.push(quantity(words)?);
    }
    words.expect("}", "close the list, or put a comma between its expressions")?;
    let mut filter = None;
    if words.accept(":") {
        let runs = match (words.peek(), words.after()) {
            (Token::Number(..), Some(Token::Sign(":"))) => {
                let runs = words.count("a number of runs to keep")?;
                words.advance();
                Some(runs)
            }
            _ => None,
        };
        filter = Some(Filter { runs, condition: condition(words)? });
    }
    Ok(Query::Simulation { window, values, filter })
}
