//! Expressions over signals: evaluation and printing.
//!
//! A condition is 1 or 0. Arithmetic is that of IEEE 754: a comparison with what is not a number does
//! not hold, whatever the operator, except `!=`. Signals are names after parsing and slots of the
//! observation after binding; the type parameter says which.

use std::fmt;

use super::error::Span;

/// A signal by its name, as written: `itae`, `queue.length`, `flow[2].cwnd`.
#[derive(Clone, Debug)]
pub struct SignalName {
    /// The name without white space.
    pub name: String,
    /// Where it stands in the query.
    pub span: Span,
}

/// Equal names are the same signal wherever they stand.
impl PartialEq for SignalName {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Display for SignalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-x`
    Minus,
    /// `!p` or `not p`
    Not,
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// `p imply q`
    Imply,
    /// `p || q` or `p or q`
    Or,
    /// `p && q` or `p and q`
    And,
    /// `x == y`
    Equal,
    /// `x != y`
    NotEqual,
    /// `x < y`
    Less,
    /// `x <= y`
    LessEqual,
    /// `x > y`
    Greater,
    /// `x >= y`
    GreaterEqual,
    /// `x + y`
    Add,
    /// `x - y`
    Subtract,
    /// `x * y`
    Multiply,
    /// `x / y`
    Divide,
    /// `x % y`, with the sign of x
    Remainder,
}

/// (operator, sign, word, level): a higher level binds tighter.
const OPERATORS: [(Binary, &str, &str, u8); 14] = [
    (Binary::Imply, "imply", "imply", 1),
    (Binary::Or, "||", "or", 2),
    (Binary::And, "&&", "and", 3),
    (Binary::Equal, "==", "", 4),
    (Binary::NotEqual, "!=", "", 4),
    (Binary::Less, "<", "", 5),
    (Binary::LessEqual, "<=", "", 5),
    (Binary::Greater, ">", "", 5),
    (Binary::GreaterEqual, ">=", "", 5),
    (Binary::Add, "+", "", 6),
    (Binary::Subtract, "-", "", 6),
    (Binary::Multiply, "*", "", 7),
    (Binary::Divide, "/", "", 7),
    (Binary::Remainder, "%", "", 7),
];

impl Binary {
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        let found = OPERATORS.iter().find(|(_, sign, name, _)| word == *sign || word == *name);
        found.map(|(operator, ..)| *operator)
    }

    fn row(self) -> &'static (Self, &'static str, &'static str, u8) {
        OPERATORS.iter().find(|row| row.0 == self).unwrap_or(&OPERATORS[0])
    }

    /// How it is written.
    pub fn sign(self) -> &'static str {
        self.row().1
    }

    pub(crate) fn level(self) -> u8 {
        self.row().3
    }

    /// Takes conditions (or, for equality, either kind).
    pub(crate) fn is_logical(self) -> bool {
        self.level() <= 3
    }

    /// Gives a number.
    pub(crate) fn is_arithmetic(self) -> bool {
        self.level() >= 6
    }

    fn apply(self, x: f64, y: f64) -> f64 {
        match self {
            Self::Imply => truth(!holds(x) || holds(y)),
            Self::Or => truth(holds(x) || holds(y)),
            Self::And => truth(holds(x) && holds(y)),
            #[expect(clippy::float_cmp, reason = "the user asked for equality")]
            Self::Equal => truth(x == y),
            #[expect(clippy::float_cmp, reason = "the user asked for equality")]
            Self::NotEqual => truth(x != y),
            Self::Less => truth(x < y),
            Self::LessEqual => truth(x <= y),
            Self::Greater => truth(x > y),
            Self::GreaterEqual => truth(x >= y),
            Self::Add => x + y,
            Self::Subtract => x - y,
            Self::Multiply => x * y,
            Self::Divide => x / y,
            Self::Remainder => x % y,
        }
    }
}

/// A function of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `abs(x)`
    Abs,
    /// `min(x, y, …)`
    Min,
    /// `max(x, y, …)`
    Max,
}

impl Function {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "abs" | "fabs" => Self::Abs,
            "min" => Self::Min,
            "max" => Self::Max,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Abs => "abs",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

/// An expression over signals `S`.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression<S = SignalName> {
    /// A number, not negative.
    Number(f64),
    /// `true` or `false`.
    Truth(bool),
    /// A signal's present value.
    Signal(S),
    /// One operand.
    Unary(Unary, Box<Self>),
    /// Two operands.
    Binary(Binary, Box<Self>, Box<Self>),
    /// A call, with at least one argument.
    Call(Function, Vec<Self>),
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn holds(value: f64) -> bool {
    value > 0.5
}

impl Expression<usize> {
    /// Its value, with the signals' values by slot; a slot beyond `values` is not a number.
    pub fn evaluate(&self, values: &[f64]) -> f64 {
        match self {
            Self::Number(value) => *value,
            Self::Truth(value) => truth(*value),
            Self::Signal(slot) => values.get(*slot).copied().unwrap_or(f64::NAN),
            Self::Unary(Unary::Minus, operand) => -operand.evaluate(values),
            Self::Unary(Unary::Not, operand) => truth(!operand.holds(values)),
            Self::Binary(operator, left, right) => {
                let left = left.evaluate(values);
                match (operator, holds(left)) {
                    // The right side cannot change these.
                    (Binary::And, false) => 0.0,
                    (Binary::Or, true) | (Binary::Imply, false) => 1.0,
                    _ => operator.apply(left, right.evaluate(values)),
                }
            }
            Self::Call(function, arguments) => {
                let values = arguments.iter().map(|argument| argument.evaluate(values));
                match function {
                    Function::Abs => values.fold(f64::NAN, |_, value| value.abs()),
                    Function::Min => values.fold(f64::NAN, f64::min),
                    Function::Max => values.fold(f64::NAN, f64::max),
                }
            }
        }
    }

    /// Whether the condition holds.
    pub fn holds(&self, values: &[f64]) -> bool {
        holds(self.evaluate(values))
    }
}

impl<S> Expression<S> {
    /// The same expression over other signals.
    pub(crate) fn try_map<T, E>(
        &self,
        signal: &mut impl FnMut(&S) -> Result<T, E>,
    ) -> Result<Expression<T>, E> {
        Ok(match self {
            Self::Number(value) => Expression::Number(*value),
            Self::Truth(value) => Expression::Truth(*value),
            Self::Signal(name) => Expression::Signal(signal(name)?),
            Self::Unary(operator, operand) => {
                Expression::Unary(*operator, Box::new(operand.try_map(signal)?))
            }
            Self::Binary(operator, left, right) => Expression::Binary(
                *operator,
                Box::new(left.try_map(signal)?),
                Box::new(right.try_map(signal)?),
            ),
            Self::Call(function, arguments) => {
                let arguments: Result<_, E> =
                    arguments.iter().map(|argument| argument.try_map(signal)).collect();
                Expression::Call(*function, arguments?)
            }
        })
    }

    fn level(&self) -> u8 {
        match self {
            Self::Binary(operator, ..) => operator.level(),
            _ => u8::MAX,
        }
    }
}

/// Prints with the brackets that its structure needs; parsing it again gives the same expression.
impl<S: fmt::Display> fmt::Display for Expression<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bracketed = |f: &mut fmt::Formatter<'_>, inner: &Self, needed: bool| {
            if needed { write!(f, "({inner})") } else { write!(f, "{inner}") }
        };
        match self {
            Self::Number(value) => write_number(f, *value),
            Self::Truth(value) => write!(f, "{value}"),
            Self::Signal(name) => write!(f, "{name}"),
            Self::Unary(operator, operand) => {
                f.write_str(if *operator == Unary::Minus { "-" } else { "!" })?;
                bracketed(f, operand, operand.level() < u8::MAX)
            }
            Self::Binary(operator, left, right) => {
                let level = operator.level();
                let right_first = *operator == Binary::Imply;
                bracketed(f, left, left.level() < level + u8::from(right_first))?;
                write!(f, " {} ", operator.sign())?;
                bracketed(f, right, right.level() < level + u8::from(!right_first))
            }
            Self::Call(function, arguments) => {
                write!(f, "{}(", function.name())?;
                for (index, argument) in arguments.iter().enumerate() {
                    write!(f, "{}{argument}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

/// The shortest digits that read back as the same number.
pub(super) fn write_number(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    if value > 0.0 && !(1e-6..1e15).contains(&value) {
        write!(f, "{value:e}")
    } else {
        write!(f, "{value}")
    }
}
