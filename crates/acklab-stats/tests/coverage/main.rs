//! Goal: intervals cover and decisions err as often as they say, also where one looks after every run.
//! Method: exactly where a procedure's state is a pair of counts (`exact.rs`): for a success probability
//! every state has a probability that follows from those one run before. The others are drawn from laws
//! whose truth is known.
//!
//! Each test prints rows of the tables in docs/verification.md. `make coverage` prints them all from
//! 20,000 experiments; without `ACKLAB_EXPERIMENTS` there are 400 of each.

mod decisions;
mod exact;
mod means;
mod probabilities;
mod quantiles;
mod splitting;
mod steady;

use acklab_core::math;
use acklab_core::rng::Rng;

const ALPHA: f64 = 0.05;

/// Experiments of a drawn row.
fn experiments() -> u64 {
    let asked = std::env::var("ACKLAB_EXPERIMENTS");
    asked.map_or(400, |count| count.parse().expect("ACKLAB_EXPERIMENTS is a number"))
}

/// A law with its mean and its 90 % quantile.
struct Law {
    name: &'static str,
    mean: f64,
    quantile: f64,
    draw: fn(&mut Rng) -> f64,
}

const NORMAL: Law = Law {
    name: "normal(10, 3)",
    mean: 10.0,
    quantile: 10.0 + 3.0 * 1.281_551_565_544_600_4,
    draw: |rng| rng.normal(10.0, 3.0),
};

const EXPONENTIAL: Law = Law {
    name: "exponential(1)",
    mean: 1.0,
    quantile: std::f64::consts::LN_10,
    draw: |rng| rng.exponential(1.0),
};

const LOGNORMAL: Law = Law {
    name: "lognormal(0, 1)",
    // exp(1/2), exp(1.2816)
    mean: 1.648_721_270_700_128_2,
    quantile: 3.602_224_479_279_157,
    draw: |rng| math::exp(rng.normal(0.0, 1.0)),
};

/// What a rare event does to a mean. Its 90 % quantile is a value of most runs.
const JUMPS: Law = Law {
    name: "20 in 2 % of the runs, else 0",
    mean: 0.4,
    quantile: 0.0,
    draw: |rng| if rng.chance(0.02) { 20.0 } else { 0.0 },
};

/// Which of two procedures' counts were met.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    given: u64,
    covered: u64,
    runs: u64,
}

impl Tally {
    fn add(&mut self, covered: Option<bool>, runs: u64) {
        self.given += u64::from(covered.is_some());
        self.covered += u64::from(covered == Some(true));
        self.runs += runs;
    }

    fn share(&self) -> f64 {
        self.covered as f64 / self.given as f64
    }

    /// Prints a row, and fails where fewer are covered than `least` allows for by chance: by more than
    /// four standard deviations.
    fn row(&self, name: &str, least: f64) {
        let experiments = experiments();
        let runs = self.runs as f64 / experiments as f64;
        let given = self.given;
        let of = if given < experiments { format!(", {given} intervals") } else { String::new() };
        println!("| {name} | {:.4}{of} | {runs:.0} |", self.share());
        let chance = 4.0 * (least * (1.0 - least) / given as f64).sqrt();
        assert!(self.share() >= least - chance, "{name}: {self:?}");
    }
}
