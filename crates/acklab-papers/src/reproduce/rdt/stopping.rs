//! Three rules that say when an experiment has been repeated often enough.
//!
//! The authors' code stops when 1.96 population standard deviations over sqrt(n), in *seconds*, are
//! below 0.1, from two runs on. Their paper speaks of a margin below 10 % at 95 %, which is another
//! rule. Neither knows that two runs say little about a spread: Student's t does, with the sample's
//! deviation, and at least ten runs. All are applied after each run, so all look more than once, and what
//! that does to the 95 % is measured: [`Campaigns`] repeats whole campaigns, with runs drawn from
//! those that were made.

use acklab_core::rng::Rng;
use acklab_stats::t_quantile;

/// When an experiment is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The authors' code.
    Code,
    /// Their paper.
    Claimed,
    /// Student's t.
    Student,
}

impl Rule {
    pub const ALL: [Self; 3] = [Self::Code, Self::Claimed, Self::Student];

    /// In a few words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Code => "the code’s",
            Self::Claimed => "the claimed",
            Self::Student => "Student’s t",
        }
    }

    /// The rule itself.
    pub const fn formula(self) -> &'static str {
        match self {
            Self::Code => "1.96 pstdev / sqrt(n) < 0.1 s, n >= 2",
            Self::Claimed => "1.96 pstdev / sqrt(n) < 10 % of the mean, n >= 2",
            Self::Student => "t(0.975, n-1) sd / sqrt(n) < 10 % of the mean, n >= 10",
        }
    }

    /// The fewest runs with which it can stop.
    pub const fn least(self) -> usize {
        match self {
            Self::Code | Self::Claimed => 2,
            Self::Student => 10,
        }
    }

    /// Half the width of the interval that it believes in after these runs, in their unit; `None` as
    /// long as it asks for more whatever they say.
    pub fn margin(self, runs: &Running) -> Option<f64> {
        if runs.count < self.least() {
            return None;
        }
        let n = runs.count as f64;
        Some(match self {
            Self::Code | Self::Claimed => Z * (runs.squares / n).sqrt() / n.sqrt(),
            Self::Student => {
                t_quantile(0.975, n - 1.0) * (runs.squares / (n - 1.0)).sqrt() / n.sqrt()
            }
        })
    }

    fn stops(self, margin: f64, mean: f64) -> bool {
        margin < if self == Self::Code { SECONDS } else { SHARE * mean }
    }

    /// Runs until the rule says so, at most `most` times.
    pub fn apply(self, most: usize, mut run: impl FnMut(usize) -> f64) -> Campaign {
        let mut runs = Running::default();
        loop {
            runs.push(run(runs.count));
            let margin = self.margin(&runs);
            let stopped = margin.is_some_and(|margin| self.stops(margin, runs.mean));
            if stopped || runs.count >= most {
                let Running { count, mean, .. } = runs;
                let margin = margin.unwrap_or(f64::INFINITY);
                return Campaign { runs: count, mean, margin, stopped };
            }
        }
    }
}

/// Mean and spread of what has come so far (Welford 1962: no sum of squares that loses digits).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Running {
    count: usize,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
}

impl Running {
    /// Takes a value.
    pub fn push(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }
}

impl FromIterator<f64> for Running {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut running = Self::default();
        values.into_iter().for_each(|value| running.push(value));
        running
    }
}

/// Repetitions up to the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Campaign {
    pub runs: usize,
    /// Their mean, seconds.
    pub mean: f64,
    /// Half the width of the interval, seconds.
    pub margin: f64,
    /// Whether the rule ended it; else there were too many.
    pub stopped: bool,
}

/// Many campaigns under one rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Campaigns {
    pub campaigns: usize,
    /// Half of them took fewer runs.
    pub median_runs: usize,
    /// Share of them that ended after the fewest runs that the rule permits.
    pub at_once: f64,
    /// Share of them whose interval holds the true mean.
    pub coverage: f64,
}

impl Campaigns {
    /// Repeats campaigns with runs drawn from `pool`, whose mean is the truth then.
    pub fn resampled(rule: Rule, pool: &[f64], campaigns: usize, most: usize, seed: u64) -> Self {
        let mut rng = Rng::named(seed, "rdt/campaigns");
        let truth = pool.iter().sum::<f64>() / pool.len() as f64;
        let mut draw = |_| pool[rng.below(pool.len() as u64) as usize];
        let mut all: Vec<Campaign> = (0..campaigns).map(|_| rule.apply(most, &mut draw)).collect();
        let share = |what: &dyn Fn(&Campaign) -> bool| {
            all.iter().filter(|campaign| what(campaign)).count() as f64 / campaigns as f64
        };
        let coverage = share(&|campaign| (campaign.mean - truth).abs() <= campaign.margin);
        let at_once = share(&|campaign| campaign.runs == rule.least());
        all.sort_unstable_by_key(|campaign| campaign.runs);
        let median_runs = all.get(campaigns / 2).map_or(0, |campaign| campaign.runs);
        Self { campaigns, median_runs, at_once, coverage }
    }
}

/// The normal quantile that the code uses.
const Z: f64 = 1.96;
/// The threshold that the authors gave their program, seconds (section II: "less than 0.1").
const SECONDS: f64 = 0.1;
/// What the paper calls it: 10 %.
const SHARE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, expect: f64) {
        assert!((value - expect).abs() < 1e-9, "{value} for {expect}");
    }

    #[test]
    fn the_margins_are_those_of_python() {
        let seconds = Running::from_iter([10.0, 10.2, 9.9, 10.1]);
        // 1.96 * statistics.pstdev(x) / math.sqrt(4)
        close(Rule::Code.margin(&seconds).expect("four"), 0.109_567_330_897_489_31);
        assert_eq!(Rule::Code.margin(&seconds), Rule::Claimed.margin(&seconds));
        assert_eq!(Rule::Student.margin(&seconds), None);
        let ten: Running = (0..10).map(f64::from).collect();
        // scipy.stats.t.ppf(0.975, 9) * statistics.stdev(range(10)) / math.sqrt(10)
        close(Rule::Student.margin(&ten).expect("ten"), 2.165_850_589_668_169);
    }

    #[test]
    fn each_rule_stops_where_it_should() {
        let seconds = [100.0, 101.0, 100.5, 100.4, 100.6, 100.5, 100.5, 100.5, 100.5, 100.5];
        let runs = |rule: Rule| {
            let campaign = rule.apply(10, |index| seconds[index]);
            (campaign.runs, campaign.stopped)
        };
        // pstdev of the first two: 0.5, so 0.69 s are 0.7 %: enough for ten percent.
        assert_eq!(runs(Rule::Claimed), (2, true));
        assert_eq!(runs(Rule::Student), (10, true));
        // After ten: 1.96 * 0.228 / sqrt(10) = 0.141 s.
        assert_eq!(runs(Rule::Code), (10, false));
        let twins = Rule::Code.apply(10, |index| [100.0, 100.1][index]);
        assert_eq!((twins.runs, twins.stopped), (2, true), "two that happen to agree");
    }

    #[test]
    fn two_runs_cover_less_than_they_say() {
        let mut rng = Rng::named(1, "pool");
        let pool: Vec<f64> = (0..400).map(|_| rng.normal(100.0, 1.0)).collect();
        let campaigns = |rule| Campaigns::resampled(rule, &pool, 2000, 2000, 1);
        let claimed = campaigns(Rule::Claimed);
        assert_eq!((claimed.median_runs, claimed.at_once), (2, 1.0));
        // For two normal values |mean error| <= 1.96 pstdev / sqrt(2) in (2/pi) atan(1.96 / sqrt(2)) = 0.602.
        assert!((claimed.coverage - 0.602).abs() < 0.04, "{claimed:?}");
        let student = campaigns(Rule::Student);
        assert!((student.coverage - 0.95).abs() < 0.02, "{student:?}");
    }
}
