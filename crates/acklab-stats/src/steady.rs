//! The steady state: `S[<=T; N](avg: x)`, the average of x in the long run.
//!
//! A run begins somewhere, often empty, and what it shows before it has forgotten that is left out: the
//! times before a, in `S[<=T](avg[a,T]: x)`, else as many as White's MSER-5 finds (Simulation 69(6), 1997;
//! White, Cobb, Spratt, Winter Simulation Conf. 2000). The run is cut into 200 pieces, averaged over the
//! runs, and d of them are left out such that the squares about the mean of the rest, over (200 - d)², are
//! the least. A least beyond the middle says that the run is too short, and no interval is given.
//!
//! Of N runs each gives one pair of sum and weight (replication and deletion); one run is cut into 20
//! batches for them (Schmeiser, Operations Research 30(3), 1982, finds 10 to 30 enough). The estimate is
//! the ratio of the sums, its interval Student's of the residuals sum - ratio weight (Cochran, "Sampling
//! Techniques", 1977, section 6.4), which for equal weights is that of the mean. Batches have to be as good
//! as independent: where the residual of one still tells of the next, by a correlation above what
//! independent ones exceed in one case of twenty, no interval is given either.

use serde::Serialize;

use crate::interval::{Interval, Validity};
use crate::monitor::Slice;
use crate::student::t_quantile;

/// What is asked of the runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyPlan {
    /// 1 - confidence, inside 0..1.
    pub alpha: f64,
    /// How many runs: 1, or as many as replications.
    pub runs: u64,
    /// The first and the last time of a run that count.
    pub times: (f64, f64),
    /// The warm-up lies before these times; else it is looked for within them.
    pub is_warm: bool,
}

/// The runs of a steady state.
#[derive(Clone, Debug)]
pub struct SteadyState {
    plan: SteadyPlan,
    runs: Vec<Vec<Slice>>,
}

/// What was found beside the average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Steadiness {
    /// From which time on the runs count.
    pub warm_up: f64,
    /// Of one run: into how many batches it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches: Option<usize>,
    /// Of one run: the correlation of a batch with the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<f64>,
    /// Why there is no interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_short: Option<TooShort>,
}

/// Why a run is too short for a steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TooShort {
    /// The warm-up would take more than half of it.
    StillWarmingUp,
    /// One batch tells of the next.
    BatchesCorrelated,
}

/// The estimate with what it rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyEstimate {
    /// The average; `None` if nothing was seen that counts.
    pub mean: Option<f64>,
    /// Its interval, where the runs were long enough for one.
    pub interval: Option<Interval>,
    /// The warm-up, and what became of the batches.
    pub steadiness: Steadiness,
}

impl SteadyState {
    /// Nothing seen yet; `None` if the plan is useless.
    pub fn new(plan: SteadyPlan) -> Option<Self> {
        let usable = plan.alpha > 0.0 && plan.alpha < 1.0 && plan.runs > 0;
        (usable && plan.times.1 > plan.times.0).then_some(Self { plan, runs: Vec::new() })
    }

    /// Takes a run in equal slices, unless it is done; says whether it is now.
    pub fn push(&mut self, slices: Vec<Slice>) -> bool {
        if !self.is_done() {
            self.runs.push(slices);
        }
        self.is_done()
    }

    /// Whether there are enough runs.
    pub fn is_done(&self) -> bool {
        self.runs.len() as u64 >= self.plan.runs
    }

    /// The number of runs that was asked for.
    pub fn runs_fixed(&self) -> u64 {
        self.plan.runs
    }

    /// The average with its interval, which there is at the end alone: on the way the warm-up is not yet
    /// that of all runs.
    pub fn estimate(&self) -> SteadyEstimate {
        let slices = self.runs.first().map_or(0, Vec::len);
        let pieces: Vec<Slice> = (0..PIECES)
            .map(|piece| {
                let range = part(0..slices, piece, PIECES);
                self.runs.iter().map(|run| sum(&run[range.clone()])).fold(Slice::default(), add)
            })
            .collect();
        let left_out = if self.plan.is_warm { 0 } else { warm_up(&pieces) };
        let kept = part(0..slices, left_out, PIECES).start..slices;
        let batches = self.batches(kept);
        let all = sum(&batches);
        let (from, to) = self.plan.times;
        let one_run = self.plan.runs == 1;
        let correlation = one_run.then(|| correlation(&batches, &all)).flatten();
        let too_short = if left_out > PIECES / 2 {
            Some(TooShort::StillWarmingUp)
        } else if correlation.is_some_and(|found| found > correlation_limit(batches.len())) {
            Some(TooShort::BatchesCorrelated)
        } else {
            None
        };
        let usable = self.is_done() && too_short.is_none() && all.weight > 0.0;
        SteadyEstimate {
            mean: (all.weight > 0.0).then(|| all.sum / all.weight),
            interval: usable.then(|| self.interval(&batches, &all)).flatten(),
            steadiness: Steadiness {
                warm_up: from + (to - from) * left_out as f64 / PIECES as f64,
                batches: one_run.then_some(batches.len()),
                correlation,
                too_short,
            },
        }
    }

    /// One per run, or the batches of the only one.
    fn batches(&self, kept: std::ops::Range<usize>) -> Vec<Slice> {
        match self.runs.as_slice() {
            [run] if self.plan.runs == 1 => {
                (0..BATCHES).map(|batch| sum(&run[part(kept.clone(), batch, BATCHES)])).collect()
            }
            runs => runs.iter().map(|run| sum(&run[kept.clone()])).collect(),
        }
    }

    fn interval(&self, batches: &[Slice], all: &Slice) -> Option<Interval> {
        let count = batches.len() as f64;
        if count < 2.0 {
            return None;
        }
        let squares: f64 = residuals(batches, all).map(|residual| residual * residual).sum();
        let deviation = (squares / (count - 1.0)).sqrt() / (all.weight / count);
        let half = t_quantile(1.0 - self.plan.alpha / 2.0, count - 1.0) * deviation / count.sqrt();
        let mean = all.sum / all.weight;
        Some(Interval {
            low: mean - half,
            high: mean + half,
            confidence: 1.0 - self.plan.alpha,
            method: if self.plan.runs == 1 { "batch-means" } else { "replications" },
            validity: Validity::FixedRuns,
        })
    }
}

/// How many of the pieces are the warm-up: MSER. Pieces in which nothing counts are passed over.
fn warm_up(pieces: &[Slice]) -> usize {
    let mut best = (f64::INFINITY, 0);
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for (index, piece) in pieces.iter().enumerate().rev() {
        if piece.weight <= 0.0 {
            continue;
        }
        let value = piece.sum / piece.weight;
        count += 1.0;
        let before = value - mean;
        mean += before / count;
        squares += before * (value - mean);
        let error = squares / (count * count);
        // Of a few pieces a spread of 0 tells nothing; where all are alike, none is left out.
        if count >= LEAST_KEPT && error <= best.0 {
            best = (error, index);
        }
    }
    best.1
}

/// Residuals about the ratio of the sums.
fn residuals(batches: &[Slice], all: &Slice) -> impl Iterator<Item = f64> {
    let ratio = all.sum / all.weight;
    batches.iter().map(move |batch| batch.sum - ratio * batch.weight)
}

/// Of each residual with the next; `None` without spread.
fn correlation(batches: &[Slice], all: &Slice) -> Option<f64> {
    let found: Vec<f64> = residuals(batches, all).collect();
    let squares: f64 = found.iter().map(|residual| residual * residual).sum();
    let products: f64 = found.windows(2).map(|pair| pair[0] * pair[1]).sum();
    (squares > 0.0).then(|| products / squares)
}

/// What the correlation of independent batches exceeds with probability 0.05: their mean is -1/n and
/// their variance about 1/n (Anderson, Ann. Math. Stat. 13, 1942).
fn correlation_limit(batches: usize) -> f64 {
    let count = batches as f64;
    NORMAL_95 / count.sqrt() - 1.0 / count
}

/// Number `index` of `count` equal parts of a range.
fn part(range: std::ops::Range<usize>, index: usize, count: usize) -> std::ops::Range<usize> {
    let length = range.len();
    range.start + length * index / count..range.start + length * (index + 1) / count
}

fn sum(slices: &[Slice]) -> Slice {
    slices.iter().copied().fold(Slice::default(), add)
}

fn add(left: Slice, right: Slice) -> Slice {
    Slice { weight: left.weight + right.weight, sum: left.sum + right.sum }
}

/// Pieces of a run among which the warm-up ends.
const PIECES: usize = 200;
/// Batches of one run.
const BATCHES: usize = 20;
/// Pieces that are never left out.
const LEAST_KEPT: f64 = 10.0;
/// The 95 % quantile of the normal law.
const NORMAL_95: f64 = 1.644_853_626_951_472_7;

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(runs: u64) -> SteadyPlan {
        SteadyPlan { alpha: 0.05, runs, times: (0.0, 100.0), is_warm: false }
    }

    /// A run of 1000 slices of weight 0.1 with these values.
    fn run(value: impl Fn(usize) -> f64) -> Vec<Slice> {
        (0..1000).map(|index| Slice { weight: 0.1, sum: 0.1 * value(index) }).collect()
    }

    /// Between -1 and 1, without any order.
    fn noise(index: usize) -> f64 {
        (index * 7919 % 1009) as f64 / 504.5 - 1.0
    }

    #[test]
    fn the_warm_up_is_found_and_left_out() {
        let mut steady = SteadyState::new(plan(1)).expect("usable");
        // 20 % of the run until what it began with is forgotten.
        assert!(steady.push(run(|index| 3.0 + noise(index) + 50.0 * f64::from(index < 200))));
        let found = steady.estimate();
        assert!((found.steadiness.warm_up - 20.0).abs() < 1.0, "{found:?}");
        let interval = found.interval.expect("long enough");
        assert!(interval.covers(3.0) && interval.width() < 0.2, "{interval:?}");
        assert_eq!((interval.method, interval.validity), ("batch-means", Validity::FixedRuns));
    }

    #[test]
    fn a_run_that_still_rises_or_whose_batches_hang_together_has_no_interval() {
        let why = |value: &dyn Fn(usize) -> f64, is_warm| {
            let mut steady = SteadyState::new(SteadyPlan { is_warm, ..plan(1) }).expect("usable");
            steady.push(run(value));
            let found = steady.estimate();
            assert_eq!(found.interval.is_none(), found.steadiness.too_short.is_some());
            found.steadiness.too_short
        };
        let rising = |index: usize| (index * index) as f64 + noise(index);
        assert_eq!(why(&rising, false), Some(TooShort::StillWarmingUp));
        // Two slow waves.
        let waves = |index: usize| f64::from(index % 500 < 250) + 0.1 * noise(index);
        assert_eq!(why(&waves, true), Some(TooShort::BatchesCorrelated));
        assert_eq!((why(&noise, false), why(&noise, true)), (None, None));
    }

    #[test]
    fn runs_are_replications_and_their_interval_students() {
        let mut steady = SteadyState::new(plan(5)).expect("usable");
        let values = [10.1, 9.7, 10.4, 10.0, 9.9];
        for (index, value) in values.into_iter().enumerate() {
            assert_eq!(steady.estimate().interval, None, "before the last run");
            assert_eq!(steady.push(run(|_| value)), index == 4);
        }
        // scipy.stats.t.interval(0.95, 4, loc=mean(x), scale=sem(x))
        let interval = steady.estimate().interval.expect("five runs");
        assert!((interval.low - 9.698_603_242_926_8).abs() < 1e-9, "{interval:?}");
        assert!((interval.high - 10.341_396_757_073_198).abs() < 1e-9, "{interval:?}");
        assert_eq!((interval.method, steady.estimate().steadiness.warm_up), ("replications", 0.0));
    }

    #[test]
    fn what_counts_unequally_weighs_unequally() {
        let mut steady = SteadyState::new(plan(2)).expect("usable");
        for (weight, value) in [(1.0, 4.0), (3.0, 2.0)] {
            steady.push(vec![Slice { weight, sum: weight * value }; 1000]);
        }
        assert_eq!(steady.estimate().mean, Some(2.5));
    }

    #[test]
    fn nothing_seen_and_useless_plans_are_told() {
        let mut steady = SteadyState::new(plan(1)).expect("usable");
        assert_eq!((steady.estimate().mean, steady.estimate().interval), (None, None));
        steady.push(vec![Slice::default(); 1000]);
        assert_eq!((steady.estimate().mean, steady.estimate().interval), (None, None));
        assert!(SteadyState::new(plan(0)).is_none());
        assert!(SteadyState::new(SteadyPlan { times: (5.0, 5.0), ..plan(1) }).is_none());
    }
}
