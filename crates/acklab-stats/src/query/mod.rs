//! The query language of UPPAAL SMC over a scenario's signals.
//!
//! [`parse`] reads one query; [`Query::bind`] finds its signals among those that the scenario has and
//! gives a [`BoundQuery`](crate::BoundQuery), whose [`monitor`](crate::BoundQuery::monitor) judges one run. The grammar is in
//! docs/verification.md. Left out, because a trace of packets has no such thing: `#<=N` (steps of an
//! automaton; parsed, and refused when bound), `under strategy`, nested temporal formulas (MITL).
//! Beyond UPPAAL: units of time in bounds, intervals on `<>`, `[]` and `U` inside `Pr[…](…)`, reductions of
//! a run other than `max` and `min`, quantiles over runs, and the steady state.

pub(crate) mod error;
pub(crate) mod expression;
mod lexer;
mod parser;
pub(crate) mod syntax;

pub use error::{QueryError, Span};
pub use expression::{Binary, Expression, Function, SignalName, Unary};
pub use parser::parse;
pub use syntax::{Bound, Filter, Limit, Measure, Path, Query, Reduction, Value, Window, Within};
