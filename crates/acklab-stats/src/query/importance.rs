//! How near a run is to a formula: what importance splitting climbs.
//!
//! The margin by which a condition holds, as in the robust semantics of signal temporal logic (Donzé,
//! Maler, FORMATS 2010): x > c counts x - c, a conjunction its smaller margin, a disjunction the
//! larger. Margins of quantities with different units are compared as plain numbers, so scale them
//! where they are joined. Where the condition holds, the importance is infinite: that is the event.

use super::bind::BoundQuery;
use super::expression::{Binary, Expression, Unary};
use super::syntax::{Limit, Path, Query};

/// The importance of a state on the way to `<> p`.
#[derive(Clone, Debug, PartialEq)]
pub struct Importance {
    goal: Expression<usize>,
    limit_s: f64,
}

impl Importance {
    /// The importance at which the formula holds.
    pub const EVENT: f64 = f64::INFINITY;

    /// The state's importance: the margin to the condition, [`EVENT`](Self::EVENT) where it holds.
    pub fn evaluate(&self, values: &[f64]) -> f64 {
        if self.goal.holds(values) {
            return Self::EVENT;
        }
        let margin = margin(&self.goal, values);
        if margin.is_nan() { f64::NEG_INFINITY } else { margin }
    }

    /// The bound of the query, in seconds: a later state does not count.
    pub fn limit_s(&self) -> f64 {
        self.limit_s
    }
}

impl BoundQuery {
    /// The importance for splitting; only `Pr[<=T](<> p)` has one, without an interval or a number of
    /// runs. The rare failure of `[] p` is `<> !p`.
    pub fn importance(&self) -> Option<Importance> {
        let Query::Probability(measure) = self.query() else { return None };
        match (&measure.path, &measure.window.limit, measure.window.runs) {
            (Path::Eventually(None, goal), Limit::Time(seconds), None) => {
                Some(Importance { goal: goal.clone(), limit_s: *seconds })
            }
            _ => None,
        }
    }
}

/// By how much the condition holds; negative where it fails.
fn margin(condition: &Expression<usize>, values: &[f64]) -> f64 {
    match condition {
        Expression::Unary(Unary::Not, operand) => -margin(operand, values),
        Expression::Binary(operator, left, right) => match operator {
            Binary::And => margin(left, values).min(margin(right, values)),
            Binary::Or => margin(left, values).max(margin(right, values)),
            Binary::Imply => (-margin(left, values)).max(margin(right, values)),
            _ => {
                let difference = left.evaluate(values) - right.evaluate(values);
                match operator {
                    Binary::Greater | Binary::GreaterEqual => difference,
                    Binary::Less | Binary::LessEqual => -difference,
                    Binary::NotEqual => difference.abs(),
                    _ => -difference.abs(),
                }
            }
        },
        Expression::Truth(true) => f64::INFINITY,
        _ => f64::NEG_INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn importance(text: &str) -> Option<Importance> {
        parse(text).and_then(|query| query.bind(text, &["x", "y"])).expect("a query").importance()
    }

    #[test]
    fn importance_is_the_margin_to_the_event() {
        for (condition, values, expect) in [
            ("x > 10", [4.0, 0.0], -6.0),
            ("x > 10", [10.0, 0.0], 0.0),
            ("x > 10", [11.0, 0.0], Importance::EVENT),
            ("x < 3 && y > 5", [4.0, 1.0], -4.0),
            ("x < 3 || y > 5", [4.0, 1.0], -1.0),
            ("!(x <= 10)", [4.0, 0.0], -6.0),
            ("x > 1 imply y > 5", [4.0, 1.0], -3.0),
            ("x == 7", [4.0, 1.0], -3.0),
            ("x / y > 1", [0.0, 0.0], f64::NEG_INFINITY),
            ("false", [0.0, 0.0], f64::NEG_INFINITY),
        ] {
            let text = format!("Pr[<=3](<> {condition})");
            let importance = importance(&text).expect("splittable");
            assert_eq!(importance.evaluate(&values).to_bits(), f64::to_bits(expect), "{condition}");
            assert_eq!(importance.limit_s().to_bits(), 3.0_f64.to_bits());
        }
    }

    #[test]
    fn other_queries_have_none() {
        for text in [
            "Pr[<=3]([] x > 1)",
            "Pr[<=3; 9](<> x > 1)",
            "Pr[y<=3](<> x > 1)",
            "Pr[<=3](<>[1,2] x > 1)",
            "Pr[<=3](<> x > 1) >= 0.5",
            "E[<=3; 9](max: x)",
        ] {
            assert_eq!(importance(text), None, "{text}");
        }
    }
}
