//! Expressions by precedence climbing, and the names of signals.
//!
//! Every expression has a kind, number or condition, known without the signals (which are numbers),
//! so that `<> itae` or `1 && x` is refused here, with its place. Nesting and size are limited: text
//! from anywhere cannot exhaust the stack.

use super::words::Words;
use crate::query::error::{QueryError, Span};
use crate::query::expression::{Binary, Expression, Function, SignalName, Unary};
use crate::query::lexer::Token;

/// Whether an expression is a number or a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Condition,
}

/// An expression, its kind and its place.
type Typed = (Expression, Kind, Span);

/// A number or a condition.
pub(super) fn quantity(words: &mut Words<'_>) -> Result<Expression, QueryError> {
    Ok(expression(words, 0)?.0)
}

pub(super) fn condition(words: &mut Words<'_>) -> Result<Expression, QueryError> {
    let (expression, kind, span) = expression(words, 0)?;
    if kind == Kind::Condition {
        return Ok(expression);
    }
    let what = format!("`{expression}` is a number where a condition is expected");
    Err(words.error_at(span, what, format!("compare it, such as {expression} > 0")))
}

pub(super) fn number(words: &mut Words<'_>, role: &str) -> Result<Expression, QueryError> {
    let (expression, kind, span) = expression(words, 0)?;
    if kind == Kind::Number {
        return Ok(expression);
    }
    let what = format!("`{expression}` is a condition where {role} is expected");
    Err(words.error_at(span, what, "write a number: a signal, or a sum of them"))
}

/// Operators of at least `level`.
fn expression(words: &mut Words<'_>, level: u8) -> Result<Typed, QueryError> {
    let (mut left, mut kind, mut span) = operand(words)?;
    loop {
        let operator = match words.peek() {
            Token::Sign("=") => return Err(words.error("`=` is not an operator", "write ==")),
            Token::Sign(word) => Binary::from_word(word),
            Token::Name(word) => Binary::from_word(word),
            _ => None,
        };
        let Some(operator) = operator.filter(|operator| operator.level() >= level) else {
            return Ok((left, kind, span));
        };
        words.count_node()?;
        words.advance();
        words.deepen()?;
        let right = expression(words, operator.level() + u8::from(operator != Binary::Imply))?;
        words.rise();
        check_operands(words, operator, (&left, kind, span), &right)?;
        kind = if operator.is_arithmetic() { Kind::Number } else { Kind::Condition };
        span = span.to(right.2);
        left = Expression::Binary(operator, Box::new(left), Box::new(right.0));
    }
}

fn check_operands(
    words: &Words<'_>,
    operator: Binary,
    left: (&Expression, Kind, Span),
    right: &Typed,
) -> Result<(), QueryError> {
    let right = (&right.0, right.1, right.2);
    let sign = operator.sign();
    let wanted = match operator {
        Binary::Equal | Binary::NotEqual => left.1,
        _ if operator.is_logical() => Kind::Condition,
        _ => Kind::Number,
    };
    let Some((expression, _, span)) = [left, right].into_iter().find(|side| side.1 != wanted)
    else {
        return Ok(());
    };
    let (what, mend) = match wanted {
        Kind::Condition => (
            format!("`{expression}` is a number where `{sign}` takes a condition"),
            format!("compare it, such as {expression} > 0"),
        ),
        Kind::Number => (
            format!("`{expression}` is a condition where `{sign}` takes a number"),
            "join conditions with && and ||".to_owned(),
        ),
    };
    Err(words.error_at(span, what, mend))
}

fn operand(words: &mut Words<'_>) -> Result<Typed, QueryError> {
    let start = words.span();
    match words.peek().clone() {
        Token::Number(value, None) => {
            words.advance();
            Ok((Expression::Number(value), Kind::Number, start))
        }
        Token::Number(_, Some(_)) => Err(words.error(
            "a unit of time stands only in bounds",
            "write the number in the signal's own unit",
        )),
        Token::Sign("(") => {
            words.advance();
            words.deepen()?;
            let (inner, kind, _) = expression(words, 0)?;
            words.rise();
            let span = start.to(words.span());
            words.expect(")", "close the bracket, or put an operator before what follows")?;
            Ok((inner, kind, span))
        }
        Token::Sign("-") => unary(words, Unary::Minus, Kind::Number),
        Token::Sign("!") => unary(words, Unary::Not, Kind::Condition),
        Token::Name(name) => match name.as_str() {
            "not" => unary(words, Unary::Not, Kind::Condition),
            "true" | "false" => {
                words.advance();
                Ok((Expression::Truth(name == "true"), Kind::Condition, start))
            }
            _ => named(words, &name),
        },
        other => {
            let what = format!("expected a signal, a number or `(`, found {}", other.describe());
            Err(words.error(what, "write a signal such as queue.length or flow[0].cwnd"))
        }
    }
}

fn unary(words: &mut Words<'_>, operator: Unary, wanted: Kind) -> Result<Typed, QueryError> {
    let start = words.span();
    words.count_node()?;
    words.advance();
    words.deepen()?;
    let (operand, kind, span) = operand(words)?;
    words.rise();
    if kind != wanted {
        let (what, mend) = if wanted == Kind::Number {
            (format!("`{operand}` is a condition where `-` takes a number"), "write ! before it")
        } else {
            (
                format!("`{operand}` is a number where `!` takes a condition"),
                "put the comparison in brackets: !(itae > 8727)",
            )
        };
        return Err(words.error_at(span, what, mend));
    }
    Ok((Expression::Unary(operator, Box::new(operand)), kind, start.to(span)))
}

fn named(words: &mut Words<'_>, name: &str) -> Result<Typed, QueryError> {
    let start = words.span();
    let called = matches!(words.after(), Some(Token::Sign("(")));
    if !called {
        let signal = signal(words)?;
        let span = signal.span;
        return Ok((Expression::Signal(signal), Kind::Number, span));
    }
    let Some(function) = Function::from_name(name) else {
        let what = format!("`{name}` is not a function");
        return Err(words.error(what, "the functions are abs, min and max"));
    };
    words.count_node()?;
    words.advance();
    words.advance();
    words.deepen()?;
    let mut arguments = vec![number(words, "an argument")?];
    while words.accept(",") {
        arguments.push(number(words, "an argument")?);
    }
    words.rise();
    let span = start.to(words.span());
    words.expect(")", "close the call's bracket, or put a comma between its arguments")?;
    if function == Function::Abs && arguments.len() > 1 {
        return Err(words.error_at(span, "`abs` takes one argument", "write abs(x)"));
    }
    Ok((Expression::Call(function, arguments), Kind::Number, span))
}

/// `name`, `name.field`, `name[3].field`
pub(super) fn signal(words: &mut Words<'_>) -> Result<SignalName, QueryError> {
    let start = words.span();
    let mut name = word(words)?;
    let mut span = start;
    loop {
        span.end = words.end();
        if words.accept(".") {
            name.push('.');
            name.push_str(&word(words)?);
        } else if words.accept("[") {
            let Token::Number(index, None) = *words.peek() else {
                let what = format!("expected an index, found {}", words.peek().describe());
                return Err(words.error(what, "write a whole number, such as flow[0].cwnd"));
            };
            if index.fract() > 0.0 || index > f64::from(u32::MAX) {
                let what = format!("{index} is not an index");
                return Err(words.error(what, "write a whole number, such as flow[0].cwnd"));
            }
            words.advance();
            name = format!("{name}[{index}]");
            words.expect("]", "close the index's bracket")?;
        } else {
            return Ok(SignalName { name, span });
        }
    }
}

fn word(words: &mut Words<'_>) -> Result<String, QueryError> {
    match words.peek().clone() {
        Token::Name(name) if !RESERVED.contains(&name.as_str()) => {
            words.advance();
            Ok(name)
        }
        other => {
            let what = format!("expected a signal, found {}", other.describe());
            Err(words.error(what, "write a signal such as queue.length or flow[0].cwnd"))
        }
    }
}

/// Words that are not signals.
const RESERVED: [&str; 9] = ["Pr", "simulate", "U", "and", "or", "not", "imply", "true", "false"];
