//! Sequential estimation of a probability: outcomes in, an interval out when it is narrow enough.
//!
//! What is known on the way, and what is left if the runs end early, is an interval of the confidence
//! sequence. So is the answer, unless the number of runs is fixed ahead, for which Clopper-Pearson's is
//! exact, or another method is asked for by name.
//!
//! UPPAAL computes the Clopper-Pearson interval after every run and stops by its width. Two rules:
//! [`StopRule::Width`] (width <= 2 epsilon) is what the tool did when the paper of table 4 was
//! written: 36, 341, 402, 171 and 36 runs come out exactly ([`EstimatePlan::uppaal`]).
//! [`StopRule::EachSide`] (both ends within epsilon of the estimate) is the one that meets the newer
//! manual's 72 runs for a probability at most epsilon; it takes at most 404 runs where the manual says
//! 411. Looking after every run makes such an interval cover less often than it says;
//! docs/verification.md has the figures, and [`Validity::Nominal`] marks it.
//!
//! A probability at which the interval cannot narrow does not exist: every rule ends.

use serde::Serialize;

use crate::interval::{Interval, Validity};
use crate::proportion::{ProportionMethod, okamoto_runs};

/// When a sequential estimate is precise enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StopRule {
    /// The interval is at most 2 epsilon wide.
    #[default]
    Width,
    /// Both ends are at most epsilon away from successes / runs.
    EachSide,
}

impl StopRule {
    /// The name used in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Width => "width",
            Self::EachSide => "each-side",
        }
    }

    /// The rule of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Width, Self::EachSide].into_iter().find(|rule| rule.name() == name)
    }
}

/// What to estimate a probability with, and how well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimatePlan {
    /// 1 - confidence, inside 0..1.
    pub alpha: f64,
    /// Half the width to reach, inside 0..=0.5.
    pub epsilon: f64,
    /// The interval; without one, the confidence sequence, and Clopper-Pearson's for a number of runs.
    pub method: Option<ProportionMethod>,
    /// When it is narrow enough.
    pub stop: StopRule,
    /// Exactly so many runs instead of a stop rule.
    pub runs: Option<u64>,
}

impl EstimatePlan {
    /// UPPAAL's: sequential Clopper-Pearson, which covers nominally.
    pub fn uppaal() -> Self {
        Self { method: Some(ProportionMethod::ClopperPearson), ..Self::default() }
    }

    fn method(&self) -> ProportionMethod {
        self.method.unwrap_or(match self.runs {
            Some(_) => ProportionMethod::ClopperPearson,
            None => ProportionMethod::sequence(self.epsilon),
        })
    }
}

impl Default for EstimatePlan {
    /// Alpha and epsilon 0.05 as in UPPAAL, until the confidence sequence is 0.1 wide.
    fn default() -> Self {
        Self { alpha: 0.05, epsilon: 0.05, method: None, stop: StopRule::Width, runs: None }
    }
}

/// A running estimate. Outcomes pushed after the end are not counted, so that a batch that was
/// computed in parallel may overshoot: feed it in the order of its seeds, and the result does not
/// depend on how many were computed at a time.
#[derive(Clone, Debug)]
pub struct Estimator {
    plan: EstimatePlan,
    successes: u64,
    runs: u64,
    done: bool,
}

/// What an estimate came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Runs counted.
    pub runs: u64,
    /// Runs among them in which the formula held.
    pub successes: u64,
    /// successes / runs; NaN before the first run.
    pub estimate: f64,
    /// The interval.
    pub interval: Interval,
}

impl Estimate {
    /// From counts, for a number of runs that did not depend on them; `method` and `alpha` must be
    /// usable, as [`ProportionMethod::interval`] says.
    pub(crate) fn fixed(successes: u64, runs: u64, method: ProportionMethod, alpha: f64) -> Self {
        let confidence = 1.0 - alpha;
        let (low, high) = method
            .interval(successes, runs, confidence)
            .map_or((0.0, 1.0), |interval| (interval.low, interval.high));
        let validity = match method {
            ProportionMethod::BetaBinomial { .. } => Validity::AnyTime,
            _ => Validity::FixedRuns,
        };
        let interval = Interval { low, high, confidence, method: method.name(), validity };
        Self { runs, successes, estimate: successes as f64 / runs as f64, interval }
    }

    /// From counts that may have decided how many runs there were.
    pub(crate) fn stopped(successes: u64, runs: u64, method: ProportionMethod, alpha: f64) -> Self {
        let mut estimate = Self::fixed(successes, runs, method, alpha);
        if estimate.interval.validity == Validity::FixedRuns {
            estimate.interval.validity = Validity::Nominal;
        }
        estimate
    }
}

impl Estimator {
    /// Nothing seen yet; `None` if the plan's alpha, epsilon, prior or number of runs (0) is useless.
    pub fn new(plan: EstimatePlan) -> Option<Self> {
        let usable = plan.epsilon > 0.0 && plan.epsilon <= 0.5 && plan.runs != Some(0);
        plan.method().interval(0, 0, 1.0 - plan.alpha).filter(|_| usable)?;
        Some(Self { plan, successes: 0, runs: 0, done: false })
    }

    /// Counts one run's outcome, unless the estimate is done; says whether it is now.
    pub fn push(&mut self, holds: bool) -> bool {
        if self.done {
            return true;
        }
        self.runs += 1;
        self.successes += u64::from(holds);
        self.done = match self.runs_fixed() {
            Some(runs) => self.runs >= runs,
            None => self.is_narrow(self.successes, self.runs),
        };
        self.done
    }

    /// The plan's number of runs, or Okamoto's, whose width is known ahead: clipping it at 0 or 1 tells
    /// nothing new.
    fn runs_fixed(&self) -> Option<u64> {
        let EstimatePlan { runs, method, alpha, epsilon, .. } = self.plan;
        let okamoto = method == Some(ProportionMethod::Okamoto);
        runs.or_else(|| okamoto.then(|| okamoto_runs(alpha, epsilon)))
    }

    fn is_narrow(&self, successes: u64, runs: u64) -> bool {
        let found = Estimate::stopped(successes, runs, self.plan.method(), self.plan.alpha);
        let (share, Interval { low, high, .. }) = (found.estimate, found.interval);
        let epsilon = self.plan.epsilon;
        match self.plan.stop {
            StopRule::Width => high - low <= 2.0 * epsilon,
            StopRule::EachSide => share - low <= epsilon && high - share <= epsilon,
        }
    }

    /// Whether the stop rule is met.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// How many runs it will have taken if the share of successes stays what it is: a forecast for a
    /// progress bar. Before the first run it takes a share of one half, the longest case.
    pub fn runs_expected(&self) -> u64 {
        if self.done {
            return self.runs;
        }
        if let Some(runs) = self.runs_fixed() {
            return runs;
        }
        let share = if self.runs == 0 { 0.5 } else { self.successes as f64 / self.runs as f64 };
        let narrow = |runs: u64| self.is_narrow((runs as f64 * share).round() as u64, runs);
        let mut low = self.runs;
        let mut high = okamoto_runs(self.plan.alpha, self.plan.epsilon).max(low + 1);
        while !narrow(high) {
            (low, high) = (high, 2 * high);
        }
        while high - low > 1 {
            let middle = low.midpoint(high);
            if narrow(middle) { high = middle } else { low = middle }
        }
        high
    }

    /// What is known so far: the answer by the plan's method, and before that an interval of the
    /// confidence sequence.
    pub fn estimate(&self) -> Estimate {
        let Self { plan, successes, runs, done } = *self;
        match (done, self.runs_fixed()) {
            (true, Some(_)) => Estimate::fixed(successes, runs, plan.method(), plan.alpha),
            (true, None) => Estimate::stopped(successes, runs, plan.method(), plan.alpha),
            (false, _) => {
                let sequence = ProportionMethod::sequence(plan.epsilon);
                Estimate::stopped(successes, runs, sequence, plan.alpha)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes `successes` spread evenly over `runs` outcomes and returns the run at which it ends.
    fn end_of(plan: EstimatePlan, successes: u64, runs: u64) -> Estimate {
        let mut estimator = Estimator::new(plan).expect("a usable plan");
        for run in 1..=runs {
            estimator.push(run * successes / runs > (run - 1) * successes / runs);
        }
        assert!(estimator.is_done(), "{successes}/{runs}: {:?}", estimator.estimate());
        estimator.estimate()
    }

    #[test]
    fn the_papers_run_counts_come_out() {
        for (successes, runs) in [(36, 36), (239, 341), (204, 402), (19, 171), (0, 36)] {
            // In turns until the rarer outcome is used up: the rule must not be met before the end.
            let rarer = successes.min(runs - successes);
            let mut estimator = Estimator::new(EstimatePlan::uppaal()).expect("usable");
            let outcome = |run| if run < 2 * rarer { run % 2 == 0 } else { 2 * successes > runs };
            let done = (0..runs).filter(|run| estimator.push(outcome(*run))).count();
            assert_eq!((done, estimator.estimate().successes), (1, successes), "of {runs}");
        }
    }

    #[test]
    fn each_side_takes_72_runs_at_the_extremes_and_402_to_404_in_the_middle() {
        let plan = EstimatePlan { stop: StopRule::EachSide, ..EstimatePlan::uppaal() };
        assert_eq!(end_of(plan, 0, 72).runs, 72);
        assert_eq!(end_of(plan, 72, 72).runs, 72);
        let middle = end_of(plan, 206, 411);
        assert!((402..=404).contains(&middle.runs), "{middle:?}");
    }

    #[test]
    fn outcomes_beyond_the_end_are_not_counted() {
        let mut estimator = Estimator::new(EstimatePlan::uppaal()).expect("usable");
        let ends: Vec<bool> = (0..40).map(|_| estimator.push(false)).collect();
        assert_eq!(ends.iter().position(|done| *done), Some(35));
        assert_eq!((estimator.estimate().runs, estimator.runs_expected()), (36, 36));
    }

    #[test]
    fn the_forecast_follows_the_share_of_successes() {
        let mut estimator = Estimator::new(EstimatePlan::uppaal()).expect("usable");
        assert!((401..=402).contains(&estimator.runs_expected()));
        for run in 0..30 {
            estimator.push(run % 10 == 0);
        }
        assert!((140..=165).contains(&estimator.runs_expected()), "{}", estimator.runs_expected());
    }

    #[test]
    fn a_number_of_runs_overrides_the_rule() {
        let plan = EstimatePlan { runs: Some(100), ..EstimatePlan::default() };
        assert_eq!(end_of(plan, 0, 150).runs, 100);
        let okamoto = Some(ProportionMethod::Okamoto);
        let plan = EstimatePlan { method: okamoto, ..EstimatePlan::default() };
        assert_eq!(end_of(plan, 0, 1000).runs, 738);
    }

    #[test]
    fn every_method_ends_within_the_stated_number_of_runs() {
        for method in ProportionMethod::ALL {
            let most = if method == ProportionMethod::SEQUENCE { 1010 } else { 738 };
            for stop in [StopRule::Width, StopRule::EachSide] {
                let plan = EstimatePlan { method: Some(method), stop, ..EstimatePlan::default() };
                for successes in [0, most / 7, most / 2, most] {
                    let runs = end_of(plan, successes, most + 10).runs;
                    assert!(runs <= most, "{method:?} {successes}: {runs}");
                }
            }
        }
    }

    #[test]
    fn what_is_known_on_the_way_holds_whenever_one_looks() {
        let plan = EstimatePlan { runs: Some(50), ..EstimatePlan::default() };
        let mut fixed = Estimator::new(plan).expect("usable");
        let mut uppaal = Estimator::new(EstimatePlan::uppaal()).expect("usable");
        let kind = |estimator: &Estimator| {
            let interval = estimator.estimate().interval;
            (interval.method, interval.validity)
        };
        for _ in 0..30 {
            fixed.push(true);
            uppaal.push(true);
        }
        assert_eq!(kind(&fixed), ("beta-binomial", Validity::AnyTime));
        assert_eq!(kind(&uppaal), ("beta-binomial", Validity::AnyTime));
        for _ in 0..20 {
            fixed.push(true);
            uppaal.push(true);
        }
        assert_eq!(kind(&fixed), ("clopper-pearson", Validity::FixedRuns));
        assert_eq!(kind(&uppaal), ("clopper-pearson", Validity::Nominal));
        let done = end_of(EstimatePlan::default(), 0, 63);
        assert_eq!((done.runs, done.interval.validity), (63, Validity::AnyTime));
    }

    #[test]
    fn useless_plans_are_refused() {
        let plan = EstimatePlan::default();
        for plan in [
            EstimatePlan { alpha: 0.0, ..plan },
            EstimatePlan { epsilon: 0.0, ..plan },
            EstimatePlan { epsilon: f64::NAN, ..plan },
            EstimatePlan { runs: Some(0), ..plan },
        ] {
            assert!(Estimator::new(plan).is_none(), "{plan:?}");
        }
    }
}
