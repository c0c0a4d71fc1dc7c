//! The mean of a run's extreme: `E[<=T; N](max: x)`.
//!
//! With a number of runs: Student's t on one value per run, which is what it says if the values are
//! normal, and nearly so for large N otherwise.
//!
//! Without one, runs go on until the half-width is small enough, by the rule of Chow and Robbins (Ann.
//! Math. Stat. 36, 1965), whose coverage is 1 - alpha in the limit of small half-widths for every law
//! with a variance; Nádas (Ann. Math. Stat. 40, 1969) has it relative to the mean. They add 1/n to the
//! variance, so that values which happen to be alike end nothing. The 1 has a unit, the square of x's;
//! in its place stands (2R)², R the range of the values seen: as though four more runs had been off by
//! all of R, as Agresti and Coull (Am. Stat. 52, 1998) add four to a proportion. R²/n vanishes in the
//! limit wherever there is a variance, so the theorem holds. The interval that is reported has it, too.
//!
//! What was not seen cannot be in an interval. So the rule looks from the number of runs on by which
//! an outcome of probability [`UNSEEN`] has shown itself with confidence 1 - alpha: 299 runs at 0.05.
//! If all values are one until then, there is no spread to judge by, and no interval is given, nor is
//! one for a number of runs with one value; [`Expectation::differing_at_most`] is what can be said.
//!
//! A run in which the expression never had a finite value has no extreme; such runs are counted apart.

use crate::interval::MeanInterval;
use crate::special::normal_quantile;
use crate::student::t_quantile;

/// Where a mean without a number of runs ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HalfWidth {
    /// At most this share of the mean.
    Relative(f64),
    /// At most this much, in the expression's unit.
    Absolute(f64),
}

/// A running mean.
#[derive(Clone, Debug)]
pub struct Expectation {
    runs: Option<u64>,
    half_width: HalfWidth,
    alpha: f64,
    /// The normal quantile of 1 - alpha/2, which Student's is never below.
    least_quantile: f64,
    values: Values,
    without_value: u64,
    done: bool,
}

/// Moments and range of the runs' values (Welford, Technometrics 4, 1962).
#[derive(Clone, Copy, Debug)]
struct Values {
    count: u64,
    mean: f64,
    /// Sum of the squared deviations from the mean.
    squares: f64,
    least: f64,
    largest: f64,
}

impl Values {
    const NONE: Self = Self {
        count: 0,
        mean: 0.0,
        squares: 0.0,
        least: f64::INFINITY,
        largest: f64::NEG_INFINITY,
    };

    fn push(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
        self.least = self.least.min(value);
        self.largest = self.largest.max(value);
    }

    fn range(&self) -> f64 {
        self.largest - self.least
    }
}

impl Expectation {
    /// Nothing seen yet. `runs` fixes their number; else `half_width` says where they end.
    ///
    /// `None` unless 0 < alpha < 1, the half-width is above 0 and runs > 1.
    pub fn new(runs: Option<u64>, alpha: f64, half_width: HalfWidth) -> Option<Self> {
        let (HalfWidth::Relative(width) | HalfWidth::Absolute(width)) = half_width;
        let usable = alpha > 0.0 && alpha < 1.0 && width > 0.0 && runs.is_none_or(|runs| runs > 1);
        usable.then(|| Self {
            runs,
            half_width,
            alpha,
            least_quantile: normal_quantile(1.0 - alpha / 2.0),
            values: Values::NONE,
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
            None => self.has_seen_enough() && (self.values.range() == 0.0 || self.is_narrow()),
        };
        self.done
    }

    /// Whether an outcome of probability [`UNSEEN`] would have shown itself: (1 - UNSEEN)^n <= alpha.
    fn has_seen_enough(&self) -> bool {
        self.values.count as f64 * libm::log1p(-UNSEEN) <= libm::log(self.alpha)
    }

    fn is_narrow(&self) -> bool {
        let wanted = match self.half_width {
            HalfWidth::Relative(share) => share * self.values.mean.abs(),
            HalfWidth::Absolute(width) => width,
        };
        // Student's quantile takes a while.
        let error = self.standard_error();
        self.least_quantile * error <= wanted && self.quantile() * error <= wanted
    }

    /// Of the mean; with Chow and Robbins' term unless the number of runs is fixed.
    fn standard_error(&self) -> f64 {
        let Values { count, squares, .. } = self.values;
        let count = count as f64;
        let extra = match self.runs {
            Some(_) => 0.0,
            None => EXTRA * self.values.range() * self.values.range() / count,
        };
        ((squares / (count - 1.0) + extra) / count).sqrt()
    }

    fn quantile(&self) -> f64 {
        t_quantile(1.0 - self.alpha / 2.0, self.values.count as f64 - 1.0)
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
        self.values.count + self.without_value
    }

    /// Runs in which the expression never had a finite value.
    pub fn runs_without_value(&self) -> u64 {
        self.without_value
    }

    /// The mean of the values; `None` before the first.
    pub fn mean(&self) -> Option<f64> {
        (self.values.count > 0).then_some(self.values.mean)
    }

    /// The mean with its interval; `None` while all values are one.
    pub fn interval(&self) -> Option<MeanInterval> {
        if self.values.count < 2 || self.values.range() == 0.0 {
            return None;
        }
        let Values { count, mean, .. } = self.values;
        let half_width = self.quantile() * self.standard_error();
        Some(MeanInterval {
            mean,
            half_width,
            low: mean - half_width,
            high: mean + half_width,
            confidence: 1.0 - self.alpha,
            replications: count as usize,
        })
    }

    /// How the interval is made.
    pub fn method(&self) -> &'static str {
        if self.runs.is_some() { "student-t" } else { "chow-robbins" }
    }

    /// Where all values are one: the largest probability q of another value that is not refuted with
    /// confidence 1 - alpha, from (1 - q)^n = alpha (Clopper and Pearson's bound, one-sided).
    pub fn differing_at_most(&self) -> Option<f64> {
        let alike = self.values.count > 0 && self.values.range() == 0.0;
        alike.then(|| -libm::expm1(libm::log(self.alpha) / self.values.count as f64))
    }
}

/// An outcome of this probability is to show itself before the sequential rule may end.
pub const UNSEEN: f64 = 0.01;
/// Further runs that are taken to be off by the whole range.
const EXTRA: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_number_of_runs_includes_those_without_a_value() {
        let mut mean = Expectation::new(Some(4), 0.05, HalfWidth::Relative(0.05)).expect("usable");
        let done: Vec<bool> = [Some(1.0), None, Some(3.0), Some(f64::NAN), Some(9.0)]
            .into_iter()
            .map(|value| mean.push(value))
            .collect();
        assert_eq!(done, [false, false, false, true, true]);
        assert_eq!((mean.runs(), mean.runs_without_value()), (4, 2));
        assert!((mean.interval().expect("two values").mean - 2.0).abs() < 1e-15);
    }

    #[test]
    fn without_a_number_the_interval_narrows_to_what_is_wanted() {
        // The same for values a hundredth as large, which a term without a unit would not give.
        for (half_width, scale) in [
            (HalfWidth::Relative(0.01), 1.0),
            (HalfWidth::Absolute(1.0), 1.0),
            (HalfWidth::Absolute(0.01), 0.01),
        ] {
            let mut mean = Expectation::new(None, 0.05, half_width).expect("usable");
            let values =
                (0..10_000).map(|run| Some(scale * (100.0 + f64::from(run * 37 % 41) - 20.0)));
            let after = values.filter(|value| mean.push(*value)).count();
            assert_eq!(after, 10_000 - mean.runs() as usize + 1);
            let interval = mean.interval().expect("values");
            let width = interval.half_width / scale;
            assert!((570..600).contains(&mean.runs()), "{half_width:?}: {}", mean.runs());
            assert!((0.995..=1.000_001).contains(&width), "{interval:?}");
        }
    }

    #[test]
    fn runs_that_are_all_alike_end_without_an_interval() {
        for (runs, ends) in [(None, 299), (Some(40), 40)] {
            let mut mean = Expectation::new(runs, 0.05, HalfWidth::Relative(0.05)).expect("usable");
            let pushed = (1..1000).find(|_| mean.push(Some(0.1))).expect("an end");
            assert_eq!((pushed, mean.interval()), (ends, None));
            let at_most = mean.differing_at_most().expect("alike");
            assert!((libm::pow(1.0 - at_most, f64::from(ends)) - 0.05).abs() < 1e-12, "{at_most}");
            assert!((mean.mean().expect("values") - 0.1).abs() < 1e-15);
        }
    }

    #[test]
    fn a_mean_without_spread_up_to_the_look_goes_on_where_one_value_differs() {
        let mut mean = Expectation::new(None, 0.05, HalfWidth::Relative(0.05)).expect("usable");
        let ended = (0..2000).any(|run| mean.push(Some(if run == 250 { 20.0 } else { 0.0 })));
        assert!(!ended && mean.differing_at_most().is_none());
    }

    #[test]
    fn useless_plans_are_refused() {
        let relative = HalfWidth::Relative;
        assert!(Expectation::new(Some(1), 0.05, relative(0.05)).is_none());
        assert!(Expectation::new(None, 0.05, relative(0.0)).is_none());
        assert!(Expectation::new(None, 0.05, HalfWidth::Absolute(f64::NAN)).is_none());
        assert!(Expectation::new(None, 1.0, relative(0.05)).is_none());
    }
}
