//! The mean of a run's extreme: `E[<=T; N](max: x)`.
//!
//! Student's t on one value per run. With a number of runs the interval is what it says if the values
//! are normal, and nearly so for large N otherwise. Without one, runs go on until the half-width is at
//! most epsilon times the mean (Chow and Robbins, Ann. Math. Stat. 36, 1965: right in the limit of
//! small epsilon), from 30 runs on. A run in which the expression never had a finite value
//! has no extreme; such runs are counted apart.

use crate::interval::MeanInterval;

/// The sequential rule looks no earlier: a spread from fewer values is too uncertain.
const RUNS_MIN: usize = 30;

/// A running mean.
#[derive(Clone, Debug)]
pub struct Expectation {
    runs: Option<u64>,
    epsilon: f64,
    confidence: f64,
    values: Vec<f64>,
    without_value: u64,
    done: bool,
}

impl Expectation {
    /// Nothing seen yet. `runs` fixes their number; else `epsilon` is the relative half-width.
    ///
    /// `None` unless 0 < alpha < 1, epsilon > 0 and runs > 1.
    pub fn new(runs: Option<u64>, alpha: f64, epsilon: f64) -> Option<Self> {
        let usable =
            alpha > 0.0 && alpha < 1.0 && epsilon > 0.0 && runs.is_none_or(|runs| runs > 1);
        usable.then(|| Self {
            runs,
            epsilon,
            confidence: 1.0 - alpha,
            values: Vec::new(),
            without_value: 0,
            done: false,
        })
    }

    /// Takes one run's extreme, unless it is done; says whether it is now.
    pub fn push(&mut self, value: Option<f64>) -> bool {
        if self.done {
            return true;
        }
        match value.filter(|value| value.is_finite()) {
            Some(value) => self.values.push(value),
            None => self.without_value += 1,
        }
        self.done = match self.runs {
            Some(runs) => self.runs() >= runs,
            None => self.values.len() >= RUNS_MIN && self.is_narrow(),
        };
        self.done
    }

    fn is_narrow(&self) -> bool {
        self.interval()
            .is_some_and(|interval| interval.half_width <= self.epsilon * interval.mean.abs())
    }

    /// The number of runs that was asked for, if one was.
    pub fn runs_fixed(&self) -> Option<u64> {
        self.runs
    }

    /// Whether there are enough runs.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Runs counted, those without a value included.
    pub fn runs(&self) -> u64 {
        self.values.len() as u64 + self.without_value
    }

    /// Runs in which the expression never had a finite value.
    pub fn runs_without_value(&self) -> u64 {
        self.without_value
    }

    /// The runs' values, in their order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The mean with its interval; `None` below two values.
    pub fn interval(&self) -> Option<MeanInterval> {
        MeanInterval::from_replications(&self.values, self.confidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_number_of_runs_includes_those_without_a_value() {
        let mut mean = Expectation::new(Some(4), 0.05, 0.05).expect("usable");
        let done: Vec<bool> = [Some(1.0), None, Some(3.0), Some(f64::NAN), Some(9.0)]
            .into_iter()
            .map(|value| mean.push(value))
            .collect();
        assert_eq!(done, [false, false, false, true, true]);
        assert_eq!((mean.runs(), mean.runs_without_value()), (4, 2));
        assert!((mean.interval().expect("two values").mean - 2.0).abs() < 1e-15);
    }

    #[test]
    fn without_a_number_the_interval_narrows_to_epsilon_of_the_mean() {
        let mut mean = Expectation::new(None, 0.05, 0.01).expect("usable");
        let values = (0..10_000).map(|run| Some(100.0 + f64::from(run * 37 % 41) - 20.0));
        assert_eq!(
            values.filter(|value| mean.push(*value)).count(),
            10_000 - mean.runs() as usize + 1
        );
        let interval = mean.interval().expect("values");
        assert!(mean.runs() > 400 && interval.half_width <= 0.01 * interval.mean, "{interval:?}");
        assert!(interval.half_width > 0.0095 * interval.mean);
    }

    #[test]
    fn useless_plans_are_refused() {
        assert!(Expectation::new(Some(1), 0.05, 0.05).is_none());
        assert!(Expectation::new(None, 0.05, 0.0).is_none());
        assert!(Expectation::new(None, 1.0, 0.05).is_none());
    }
}
