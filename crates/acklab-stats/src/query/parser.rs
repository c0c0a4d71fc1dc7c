//! Recursive descent over a query's words; expressions by precedence climbing.
//!
//! Every expression has a kind, number or condition, known without the signals (which are numbers),
//! so that `<> itae` or `1 && x` is refused here, with its place. Nesting and size are limited: text
//! from anywhere cannot exhaust the stack.

use super::error::{QueryError, Span};
use super::expression::{Binary, Expression, Function, SignalName, Unary};
use super::lexer::{Token, tokens};
use super::syntax::{Extreme, Filter, Limit, Measure, Path, Query, Window, Within};

/// Reads one query.
///
/// # Errors
/// Where and what a word was expected to be, and how to mend it.
pub fn parse(text: &str) -> Result<Query, QueryError> {
    let mut parser = Parser { text, words: tokens(text)?, at: 0, depth: 0, nodes: 0 };
    let query = parser.query()?;
    // Copied from UPPAAL's query file, where a line may end so.
    parser.accept(";");
    match parser.peek() {
        Token::End => Ok(query),
        other => {
            let what = format!("expected the end of the query, found {}", other.describe());
            Err(parser.error(what, "ask one query at a time"))
        }
    }
}

/// Whether an expression is a number or a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Condition,
}

/// An expression, its kind and its place.
type Typed = (Expression, Kind, Span);

struct Parser<'t> {
    text: &'t str,
    words: Vec<(Token, Span)>,
    at: usize,
    depth: usize,
    nodes: usize,
}

/// Brackets, signs and calls inside each other.
const DEPTH_MAX: usize = 64;

/// Operators and calls of one query.
const NODES_MAX: usize = 1000;

/// More runs would not end in a lifetime, and a count beyond 2^53 is not exact.
const RUNS_MAX: f64 = 1e12;

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.words[self.at].0
    }

    fn span(&self) -> Span {
        self.words[self.at].1
    }

    fn advance(&mut self) {
        // The last word is the end, and stays.
        self.at = (self.at + 1).min(self.words.len() - 1);
    }

    fn accept(&mut self, word: &str) -> bool {
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

    fn expect(&mut self, word: &str, mend: &str) -> Result<(), QueryError> {
        if self.accept(word) {
            return Ok(());
        }
        let what = format!("expected `{word}`, found {}", self.peek().describe());
        Err(self.error(what, mend))
    }

    fn error(&self, what: impl Into<String>, mend: impl Into<String>) -> QueryError {
        QueryError::new(self.text, self.span(), what, mend)
    }

    fn error_at(&self, span: Span, what: impl Into<String>, mend: impl Into<String>) -> QueryError {
        QueryError::new(self.text, span, what, mend)
    }

    fn query(&mut self) -> Result<Query, QueryError> {
        if self.accept("Pr") {
            return self.probability();
        }
        if self.accept("E") {
            return self.expectation();
        }
        if self.accept("simulate") {
            return self.simulation();
        }
        let what = format!("expected `Pr`, `E` or `simulate`, found {}", self.peek().describe());
        Err(self.error(
            what,
            "write Pr[<=30](<> itae > 8727), E[<=30; 100](max: queue.length) or \
             simulate [<=30; 10] {itae}",
        ))
    }

    fn probability(&mut self) -> Result<Query, QueryError> {
        let measure = self.measure()?;
        let at_least = match self.peek() {
            Token::Sign(">=") => true,
            Token::Sign("<=") => false,
            Token::Sign(sign @ (">" | "<" | "==" | "=" | "!=")) => {
                let what = format!("a probability cannot be tested with `{sign}`");
                return Err(self.error(what, "write >= or <="));
            }
            _ => return Ok(Query::Probability(measure)),
        };
        self.advance();
        if self.accept("Pr") {
            let other = self.measure()?;
            let (left, right) = if at_least { (measure, other) } else { (other, measure) };
            return Ok(Query::Comparison { left, right });
        }
        let Token::Number(threshold, None) = *self.peek() else {
            let what = format!("expected a probability or `Pr`, found {}", self.peek().describe());
            return Err(self.error(what, "write a number from 0 to 1, or a second Pr[…](…)"));
        };
        if !(0.0..=1.0).contains(&threshold) {
            let what = format!("{threshold} is not a probability");
            return Err(self.error(what, "write a number from 0 to 1"));
        }
        self.advance();
        Ok(Query::Hypothesis { measure, at_least, threshold })
    }

    fn measure(&mut self) -> Result<Measure, QueryError> {
        let window = self.window()?;
        self.expect("(", "write the formula in brackets: Pr[<=30](<> itae > 8727)")?;
        let path = if self.accept("<>") {
            let within = self.within()?;
            Path::Eventually(within, self.condition()?)
        } else if self.accept("[]") {
            let within = self.within()?;
            Path::Always(within, self.condition()?)
        } else {
            self.until()?
        };
        self.expect(")", "close the bracket that the formula began with")?;
        Ok(Measure { window, path })
    }

    fn until(&mut self) -> Result<Path, QueryError> {
        let start = self.span();
        let hold = self.condition()?;
        if !self.accept("U") {
            if matches!(self.peek(), Token::Sign(")")) {
                return Err(self.error_at(
                    start,
                    "the formula does not say when it has to hold",
                    "write <> before it for at some time, [] for at all times, or p U q",
                ));
            }
            let what = format!("expected `U` or an operator, found {}", self.peek().describe());
            return Err(self.error(what, "write p U q, <> p or [] p"));
        }
        let within = self.within()?;
        Ok(Path::Until(hold, within, self.condition()?))
    }

    fn expectation(&mut self) -> Result<Query, QueryError> {
        let window = self.window()?;
        self.expect("(", "write E[<=30; 100](max: queue.length)")?;
        let extreme = if self.accept("max") {
            Extreme::Max
        } else if self.accept("min") {
            Extreme::Min
        } else {
            let what = format!("expected `max` or `min`, found {}", self.peek().describe());
            return Err(self.error(what, "write E[<=30; 100](max: queue.length)"));
        };
        self.expect(":", "write a colon after max or min")?;
        let value = self.number("the value whose extreme is taken")?;
        self.expect(")", "close the bracket after the expression")?;
        Ok(Query::Expectation { window, extreme, value })
    }

    fn simulation(&mut self) -> Result<Query, QueryError> {
        let window = self.window()?;
        self.expect("{", "list what to record: simulate [<=30; 10] {itae, queue.length}")?;
        let mut values = vec![self.expression(0)?.0];
        while self.accept(",") {
            values.push(self.expression(0)?.0);
        }
        self.expect("}", "close the list, or put a comma between its expressions")?;
        let mut filter = None;
        if self.accept(":") {
            let runs = match (self.peek(), self.words.get(self.at + 1)) {
                (Token::Number(..), Some((Token::Sign(":"), _))) => {
                    let runs = self.count("a number of runs to keep")?;
                    self.advance();
                    Some(runs)
                }
                _ => None,
            };
            filter = Some(Filter { runs, condition: self.condition()? });
        }
        Ok(Query::Simulation { window, values, filter })
    }

    /// `[<=T]`, `[<=T; N]`, `[x<=C]`, `[#<=N]`
    fn window(&mut self) -> Result<Window, QueryError> {
        let mend = "write how long a run is, such as [<=30], [<=500ms] or [<=30; 100]";
        self.expect("[", mend)?;
        let limit = if self.accept("#") {
            self.expect("<=", "write [#<=100]")?;
            Limit::Steps(self.count("a number of steps")?)
        } else if let Token::Name(_) = self.peek() {
            let signal = self.signal()?;
            self.expect("<=", "write the clock's limit, such as [queue.arrivals<=1000]")?;
            let (Token::Number(value, None), negative) = self.signed() else {
                let what = format!("expected a number, found {}", self.peek().describe());
                return Err(self.error(what, "a signal's limit is a number without a unit"));
            };
            self.advance();
            if negative {
                return Err(self.error("a bound cannot be negative", mend));
            }
            Limit::Signal(signal, value)
        } else {
            self.expect("<=", mend)?;
            Limit::Time(self.seconds(mend)?)
        };
        let runs = if self.accept(";") { Some(self.count("a number of runs")?) } else { None };
        self.expect("]", "close the bound's bracket")?;
        Ok(Window { limit, runs })
    }

    fn within(&mut self) -> Result<Option<Within>, QueryError> {
        let start = self.span();
        if !self.accept("[") {
            return Ok(None);
        }
        let mend = "write the first and the last time, such as [10,20]";
        let from = self.seconds(mend)?;
        self.expect(",", mend)?;
        let to = self.seconds(mend)?;
        let span = start.to(self.span());
        self.expect("]", mend)?;
        if from > to {
            let what = "the interval ends before it begins";
            return Err(self.error_at(span, what, mend));
        }
        Ok(Some(Within { from, to }))
    }

    /// The present word without a minus before it; the minus is skipped.
    fn signed(&mut self) -> (Token, bool) {
        let negative = self.accept("-");
        (self.peek().clone(), negative)
    }

    fn seconds(&mut self, mend: &str) -> Result<f64, QueryError> {
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

    fn count(&mut self, what: &str) -> Result<u64, QueryError> {
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

    fn condition(&mut self) -> Result<Expression, QueryError> {
        let (expression, kind, span) = self.expression(0)?;
        if kind == Kind::Condition {
            return Ok(expression);
        }
        let what = format!("`{expression}` is a number where a condition is expected");
        Err(self.error_at(span, what, format!("compare it, such as {expression} > 0")))
    }

    fn number(&mut self, role: &str) -> Result<Expression, QueryError> {
        let (expression, kind, span) = self.expression(0)?;
        if kind == Kind::Number {
            return Ok(expression);
        }
        let what = format!("`{expression}` is a condition where {role} is expected");
        Err(self.error_at(span, what, "write a number: a signal, or a sum of them"))
    }

    /// Operators of at least `level`.
    fn expression(&mut self, level: u8) -> Result<Typed, QueryError> {
        let (mut left, mut kind, mut span) = self.operand()?;
        loop {
            let operator = match self.peek() {
                Token::Sign("=") => return Err(self.error("`=` is not an operator", "write ==")),
                Token::Sign(word) => Binary::from_word(word),
                Token::Name(word) => Binary::from_word(word),
                _ => None,
            };
            let Some(operator) = operator.filter(|operator| operator.level() >= level) else {
                return Ok((left, kind, span));
            };
            self.count_node()?;
            self.advance();
            self.deepen()?;
            let right = self.expression(operator.level() + u8::from(operator != Binary::Imply))?;
            self.depth -= 1;
            self.check_operands(operator, (&left, kind, span), &right)?;
            kind = if operator.is_arithmetic() { Kind::Number } else { Kind::Condition };
            span = span.to(right.2);
            left = Expression::Binary(operator, Box::new(left), Box::new(right.0));
        }
    }

    fn check_operands(
        &self,
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
        Err(self.error_at(span, what, mend))
    }

    fn operand(&mut self) -> Result<Typed, QueryError> {
        let start = self.span();
        match self.peek().clone() {
            Token::Number(value, None) => {
                self.advance();
                Ok((Expression::Number(value), Kind::Number, start))
            }
            Token::Number(_, Some(_)) => Err(self.error(
                "a unit of time stands only in bounds",
                "write the number in the signal's own unit",
            )),
            Token::Sign("(") => {
                self.advance();
                self.deepen()?;
                let (inner, kind, _) = self.expression(0)?;
                self.depth -= 1;
                let span = start.to(self.span());
                self.expect(")", "close the bracket, or put an operator before what follows")?;
                Ok((inner, kind, span))
            }
            Token::Sign("-") => self.unary(Unary::Minus, Kind::Number),
            Token::Sign("!") => self.unary(Unary::Not, Kind::Condition),
            Token::Name(name) => match name.as_str() {
                "not" => self.unary(Unary::Not, Kind::Condition),
                "true" | "false" => {
                    self.advance();
                    Ok((Expression::Truth(name == "true"), Kind::Condition, start))
                }
                _ => self.named(&name),
            },
            other => {
                let what =
                    format!("expected a signal, a number or `(`, found {}", other.describe());
                Err(self.error(what, "write a signal such as itae or flow[0].cwnd"))
            }
        }
    }

    fn unary(&mut self, operator: Unary, wanted: Kind) -> Result<Typed, QueryError> {
        let start = self.span();
        self.count_node()?;
        self.advance();
        self.deepen()?;
        let (operand, kind, span) = self.operand()?;
        self.depth -= 1;
        if kind != wanted {
            let (what, mend) = if wanted == Kind::Number {
                (
                    format!("`{operand}` is a condition where `-` takes a number"),
                    "write ! before it",
                )
            } else {
                (
                    format!("`{operand}` is a number where `!` takes a condition"),
                    "put the comparison in brackets: !(itae > 8727)",
                )
            };
            return Err(self.error_at(span, what, mend));
        }
        Ok((Expression::Unary(operator, Box::new(operand)), kind, start.to(span)))
    }

    fn named(&mut self, name: &str) -> Result<Typed, QueryError> {
        let start = self.span();
        let called = matches!(self.words.get(self.at + 1), Some((Token::Sign("("), _)));
        if !called {
            let signal = self.signal()?;
            let span = signal.span;
            return Ok((Expression::Signal(signal), Kind::Number, span));
        }
        let Some(function) = Function::from_name(name) else {
            let what = format!("`{name}` is not a function");
            return Err(self.error(what, "the functions are abs, min and max"));
        };
        self.count_node()?;
        self.advance();
        self.advance();
        self.deepen()?;
        let mut arguments = vec![self.number("an argument")?];
        while self.accept(",") {
            arguments.push(self.number("an argument")?);
        }
        self.depth -= 1;
        let span = start.to(self.span());
        self.expect(")", "close the call's bracket, or put a comma between its arguments")?;
        if function == Function::Abs && arguments.len() > 1 {
            return Err(self.error_at(span, "`abs` takes one argument", "write abs(x)"));
        }
        Ok((Expression::Call(function, arguments), Kind::Number, span))
    }

    /// `name`, `name.field`, `name[3].field`
    fn signal(&mut self) -> Result<SignalName, QueryError> {
        let start = self.span();
        let mut name = self.name()?;
        let mut span = start;
        loop {
            span.end = self.words[self.at.saturating_sub(1)].1.end;
            if self.accept(".") {
                name.push('.');
                name.push_str(&self.name()?);
            } else if self.accept("[") {
                let Token::Number(index, None) = *self.peek() else {
                    let what = format!("expected an index, found {}", self.peek().describe());
                    return Err(self.error(what, "write a whole number, such as flow[0].cwnd"));
                };
                if index.fract() > 0.0 || index > f64::from(u32::MAX) {
                    let what = format!("{index} is not an index");
                    return Err(self.error(what, "write a whole number, such as flow[0].cwnd"));
                }
                self.advance();
                name = format!("{name}[{index}]");
                self.expect("]", "close the index's bracket")?;
            } else {
                return Ok(SignalName { name, span });
            }
        }
    }

    fn name(&mut self) -> Result<String, QueryError> {
        match self.peek().clone() {
            Token::Name(name) if !RESERVED.contains(&name.as_str()) => {
                self.advance();
                Ok(name)
            }
            other => {
                let what = format!("expected a signal, found {}", other.describe());
                Err(self.error(what, "write a signal such as itae or flow[0].cwnd"))
            }
        }
    }

    fn deepen(&mut self) -> Result<(), QueryError> {
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            return Ok(());
        }
        let what = format!("more than {DEPTH_MAX} expressions inside each other");
        Err(self.error(what, "write a flatter formula"))
    }

    fn count_node(&mut self) -> Result<(), QueryError> {
        self.nodes += 1;
        if self.nodes <= NODES_MAX {
            return Ok(());
        }
        Err(self.error(format!("more than {NODES_MAX} operators"), "write a shorter formula"))
    }
}

/// Words that are not signals.
const RESERVED: [&str; 9] = ["Pr", "simulate", "U", "and", "or", "not", "imply", "true", "false"];
