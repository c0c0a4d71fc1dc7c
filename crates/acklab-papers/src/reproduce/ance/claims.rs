//! The paper's sentences about its results, each as a comparison that replications can decide.
//!
//! Every claim comes down to means that should be above 0, over replications of the same seeds (common
//! random numbers): differences of one technique and others, the distance of a mean from both ends of a
//! range, or of two means from both ends of a tolerance, which stands in the claim's own words and is
//! ours. It holds if the 95 % interval of every such mean lies above 0, fails if one lies below, and is
//! open otherwise. That all lie above needs no correction for their number (an intersection-union test,
//! Berger, Technometrics 24, 1982); that one lies below does: with k of them its interval is that of 1 -
//! 0.05 / k. There is no correction for the number of claims. "In no run" holds if there is none, out of at
//! least as many as the paper had.

use acklab_lab::report::{Claim, Outcome};
use acklab_stats::MeanInterval;

use self::Comparison::{Above, Below, Between, Close, Never};
use super::configuration::{
    ANCE, CODEL, DROP_TAIL, EDCTCP, ENCN, Exceedance, JERSEY, Measured, PIE, RED, THRESHOLD,
    Technique, Topology,
};
use super::preset::Preset;

/// A metric of one of the topologies, and how a mean of it is written.
#[derive(Clone, Copy, Debug)]
struct Metric {
    topology: Topology,
    name: &'static str,
    words: fn(f64) -> String,
}

const IDLE: Metric = metric(Topology::Daisy, "idle_share", percent);
const DAISY_QUEUE: Metric = metric(Topology::Daisy, "queue_mean_packets", two_decimals);
const DAISY_THROUGHPUT: Metric = metric(Topology::Daisy, "throughput_bps", megabits);
const THROUGHPUT: Metric = metric(Topology::Dumbbell, "throughput_bps", megabits);
const JAIN: Metric = metric(Topology::Dumbbell, "jain", |mean| format!("{mean:.4}"));
const ITAE: Metric = metric(Topology::Dumbbell, "itae_rad_s", |mean| format!("{mean:.0}"));
const QUEUE: Metric = metric(Topology::Dumbbell, "queue_mean_packets", two_decimals);
const EMPTY: Metric = metric(Topology::Dumbbell, "queue_empty_share", percent);

const fn metric(topology: Topology, name: &'static str, words: fn(f64) -> String) -> Metric {
    Metric { topology, name, words }
}

fn percent(mean: f64) -> String {
    format!("{:.1} %", 100.0 * mean)
}

fn two_decimals(mean: f64) -> String {
    format!("{mean:.2}")
}

fn megabits(mean: f64) -> String {
    format!("{:.3} Mbit/s", mean / 1e6)
}

/// What a sentence compares.
#[derive(Clone, Copy, Debug)]
enum Comparison {
    /// The metric of the first is above that of every other.
    Above(Technique, &'static [Technique]),
    /// The metric of the first is below that of every other.
    Below(Technique, &'static [Technique]),
    /// The means of both differ by at most this share.
    Close(Technique, Technique, f64),
    /// The mean of the technique lies between these.
    Between(Technique, f64, f64),
    /// No replication passes the threshold.
    Never(Technique),
}

/// A sentence of the paper, in our words.
#[derive(Clone, Copy, Debug)]
pub struct Sentence {
    place: &'static str,
    pub text: &'static str,
    metric: Metric,
    comparison: Comparison,
}

/// What became of a sentence under one reading of the paper.
#[derive(Clone, Debug)]
pub struct Finding {
    pub outcome: Outcome,
    pub figures: String,
}

/// Every sentence about results.
pub const SENTENCES: &[Sentence] = &[
    Sentence {
        place: "3.1",
        text: "ANCE leaves the bottleneck idle for a smaller share of the time than RED, CoDel and PIE",
        metric: IDLE,
        comparison: Below(ANCE, &[RED, CODEL, PIE]),
    },
    Sentence {
        place: "3.1",
        text: "ENCN leaves the bottleneck idle for a smaller share of the time than RED, CoDel and PIE",
        metric: IDLE,
        comparison: Below(ENCN, &[RED, CODEL, PIE]),
    },
    Sentence {
        place: "3.1",
        text: "ANCE keeps the queue around Qmin = 3 packets (mean of those waiting: 1 to 4)",
        metric: DAISY_QUEUE,
        comparison: Between(ANCE, 1.0, 4.0),
    },
    Sentence {
        place: "3.1",
        text: "ENCN keeps the queue around Qmin (mean of those waiting: 1 to 4)",
        metric: DAISY_QUEUE,
        comparison: Between(ENCN, 1.0, 4.0),
    },
    Sentence {
        place: "3.1, figure 5",
        text: "ANCE has more throughput than RED, CoDel and PIE",
        metric: DAISY_THROUGHPUT,
        comparison: Above(ANCE, &[RED, CODEL, PIE]),
    },
    Sentence {
        place: "3.1, figure 5",
        text: "the throughputs of ENCN and ANCE are very similar (within 2 %)",
        metric: DAISY_THROUGHPUT,
        comparison: Close(ENCN, ANCE, 0.02),
    },
    Sentence {
        place: "4.3, figure 16",
        text: "ANCE has more total throughput than RED and PIE",
        metric: THROUGHPUT,
        comparison: Above(ANCE, &[RED, PIE]),
    },
    Sentence {
        place: "4.3, figure 16",
        text: "ANCE's total throughput is close to ENCN's (within 3 %)",
        metric: THROUGHPUT,
        comparison: Close(ANCE, ENCN, 0.03),
    },
    Sentence {
        place: "4.3, figure 16",
        text: "ANCE's total throughput is close to CoDel's (within 3 %)",
        metric: THROUGHPUT,
        comparison: Close(ANCE, CODEL, 0.03),
    },
    Sentence {
        place: "4.3, figure 17",
        text: "ANCE is fairer (Jain's index) than DT, RED, CoDel and PIE",
        metric: JAIN,
        comparison: Above(ANCE, &[DROP_TAIL, RED, CODEL, PIE]),
    },
    Sentence {
        place: "4.3, figure 30",
        text: "ANCE has a lower ITAE than DT, RED, CoDel and PIE",
        metric: ITAE,
        comparison: Below(ANCE, &[DROP_TAIL, RED, CODEL, PIE]),
    },
    Sentence {
        place: "4.3, figure 30",
        text: "ENCN has a lower ITAE than DT, RED, CoDel and PIE",
        metric: ITAE,
        comparison: Below(ENCN, &[DROP_TAIL, RED, CODEL, PIE]),
    },
    Sentence {
        place: "4.3, figure 30",
        text: "the ITAE of ANCE is very close to ENCN's (within 10 %)",
        metric: ITAE,
        comparison: Close(ANCE, ENCN, 0.10),
    },
    Sentence {
        place: "4.3, table 4",
        text: "DT has the highest ITAE of all",
        metric: ITAE,
        comparison: Above(DROP_TAIL, &[RED, CODEL, PIE, ENCN, ANCE]),
    },
    Sentence {
        place: "4.3, table 4",
        text: "RED has a higher ITAE than CoDel and PIE",
        metric: ITAE,
        comparison: Above(RED, &[CODEL, PIE]),
    },
    Sentence {
        place: "4.3, table 4",
        text: "CoDel has a higher ITAE than PIE",
        metric: ITAE,
        comparison: Above(CODEL, &[PIE]),
    },
    Sentence {
        place: "4.3",
        text: "with ANCE the ITAE does not pass 8727 under any possible situation (here: in any run)",
        metric: ITAE,
        comparison: Never(ANCE),
    },
    Sentence {
        place: "4.3",
        text: "with ENCN the ITAE does not pass 8727 under any possible situation (here: in any run)",
        metric: ITAE,
        comparison: Never(ENCN),
    },
    Sentence {
        place: "4.4, figure 32",
        text: "E-DCTCP has more total throughput than ANCE",
        metric: THROUGHPUT,
        comparison: Above(EDCTCP, &[ANCE]),
    },
    Sentence {
        place: "abstract",
        text: "ANCE has more throughput than E-DCTCP (against the sentence above)",
        metric: THROUGHPUT,
        comparison: Above(ANCE, &[EDCTCP]),
    },
    Sentence {
        place: "4.4, figure 33",
        text: "ANCE has a lower ITAE than E-DCTCP",
        metric: ITAE,
        comparison: Below(ANCE, &[EDCTCP]),
    },
    Sentence {
        place: "4.4, figures 29 and 34",
        text: "E-DCTCP keeps a longer queue than ANCE (mean over time)",
        metric: QUEUE,
        comparison: Above(EDCTCP, &[ANCE]),
    },
    Sentence {
        place: "4.4, figure 32",
        text: "TCP-Jersey has less total throughput than ANCE and E-DCTCP",
        metric: THROUGHPUT,
        comparison: Below(JERSEY, &[ANCE, EDCTCP]),
    },
    Sentence {
        place: "4.4, figure 33",
        text: "TCP-Jersey has the lowest ITAE of the three",
        metric: ITAE,
        comparison: Below(JERSEY, &[ANCE, EDCTCP]),
    },
    Sentence {
        place: "4.4, figure 35",
        text: "TCP-Jersey leaves the queue empty for a larger share of the time than E-DCTCP and ANCE",
        metric: EMPTY,
        comparison: Above(JERSEY, &[EDCTCP, ANCE]),
    },
];

/// Judges every sentence under each reading.
pub fn judge(presets: &[Preset]) -> Vec<Claim> {
    let claim = |sentence: &Sentence| {
        let findings =
            presets.iter().map(|preset| sentence.judge(preset.of(sentence.metric.topology)));
        let (outcomes, figures) =
            findings.map(|finding| (finding.outcome, finding.figures)).unzip();
        Claim { place: sentence.place, text: sentence.text, outcomes, figures }
    };
    SENTENCES.iter().map(claim).collect()
}

impl Sentence {
    /// Decides it on replications of its topology; it is open where they lack what it compares.
    pub fn judge(self, measured: &[Measured]) -> Finding {
        let find = |technique: Technique| measured.iter().find(|m| m.technique == technique);
        let all = |others: &[Technique]| others.iter().filter_map(|other| find(*other)).collect();
        let finding = match self.comparison {
            Above(first, others) => self.above(find(first), all(others)),
            Below(first, others) => self.below(find(first), all(others)),
            Close(left, right, share) => self.close(find(left), find(right), share),
            Between(technique, low, high) => self.between(find(technique), low, high),
            Never(technique) => never(find(technique)),
        };
        let nothing = || Finding { outcome: Outcome::Open, figures: "not measured".to_owned() };
        finding.unwrap_or_else(nothing)
    }

    fn above(self, first: Option<&Measured>, others: Vec<&Measured>) -> Option<Finding> {
        self.order(first?, others, 1.0)
    }

    fn below(self, first: Option<&Measured>, others: Vec<&Measured>) -> Option<Finding> {
        self.order(first?, others, -1.0)
    }

    fn order(self, first: &Measured, others: Vec<&Measured>, sign: f64) -> Option<Finding> {
        let lead = |other: &&Measured| self.combined(first, sign, other, -sign);
        let outcome = all_above_zero(&others.iter().map(lead).collect::<Vec<_>>())?;
        let figures = [vec![first], others].concat();
        let figures: Vec<String> = figures.into_iter().map(|one| self.figure(one)).collect();
        Some(Finding { outcome, figures: figures.join(", ") })
    }

    fn close(
        self,
        left: Option<&Measured>,
        right: Option<&Measured>,
        share: f64,
    ) -> Option<Finding> {
        let (left, right) = (left?, right?);
        // Both are positive: from (1 - share) to (1 + share) times the right.
        let distances = [
            self.combined(left, 1.0, right, share - 1.0),
            self.combined(left, -1.0, right, share + 1.0),
        ];
        let figures = format!("{}, {}", self.figure(left), self.figure(right));
        Some(Finding { outcome: all_above_zero(&distances)?, figures })
    }

    fn between(self, technique: Option<&Measured>, low: f64, high: f64) -> Option<Finding> {
        let technique = technique?;
        let values = technique.values(self.metric.name);
        let distances = [
            values.iter().map(|value| value - low).collect(),
            values.iter().map(|value| high - value).collect(),
        ];
        Some(Finding { outcome: all_above_zero(&distances)?, figures: self.figure(technique) })
    }

    /// a left + b right, seed by seed.
    fn combined(self, left: &Measured, a: f64, right: &Measured, b: f64) -> Vec<f64> {
        let name = self.metric.name;
        let pairs = left.values(name).iter().zip(right.values(name));
        pairs.map(|(left, right)| a * left + b * right).collect()
    }

    fn figure(self, measured: &Measured) -> String {
        format!("{} {}", measured.technique.name, (self.metric.words)(self.mean(measured)))
    }

    fn mean(self, measured: &Measured) -> f64 {
        measured.mean(self.metric.name)
    }
}

fn never(technique: Option<&Measured>) -> Option<Finding> {
    let technique = technique?;
    let Exceedance { exceeded, runs, high, .. } = technique.exceedance();
    let worst = technique.values(ITAE.name).iter().copied().fold(0.0, f64::max);
    let figures = format!(
        "{} passes {THRESHOLD} in {exceeded} of {runs} runs (at most {:.1} % with 95 % confidence); \
         largest {worst:.0}",
        technique.technique.name,
        100.0 * high
    );
    let outcome = match exceeded {
        0 if runs < PAPER_RUNS => Outcome::Open,
        _ => Outcome::of(exceeded == 0),
    };
    Some(Finding { outcome, figures })
}

/// Whether the means of all these samples are above 0; `None` where one has fewer than two values.
fn all_above_zero(samples: &[Vec<f64>]) -> Option<Outcome> {
    let above_zero = |sample: &Vec<f64>| {
        let interval = |error: f64| MeanInterval::from_replications(sample, 1.0 - error);
        Some(if interval(0.05)?.low > 0.0 {
            Outcome::Holds
        } else if interval(0.05 / samples.len() as f64)?.high < 0.0 {
            Outcome::Fails
        } else {
            Outcome::Open
        })
    };
    samples.iter().map(above_zero).collect::<Option<Vec<_>>>().map(Outcome::all)
}

/// As many runs without the event the paper rests its sentence on.
const PAPER_RUNS: u64 = 36;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_open_where_an_interval_has_both_sides() {
        let sample = |mean: f64| (0..20).map(|run| mean + f64::from(run % 5) - 2.0).collect();
        let judged = |means: &[f64]| {
            all_above_zero(&means.iter().map(|mean| sample(*mean)).collect::<Vec<_>>())
        };
        // Half the interval is 0.68, and 0.79 at 97.5 %.
        for (means, outcome) in [
            (&[1.0, 2.0][..], Outcome::Holds),
            (&[1.0, 0.5], Outcome::Open),
            (&[1.0, -1.0], Outcome::Fails),
            (&[-0.7], Outcome::Fails),
            (&[1.0, -0.7], Outcome::Open),
        ] {
            assert_eq!(judged(means), Some(outcome), "{means:?}");
        }
        assert_eq!(all_above_zero(&[vec![1.0]]), None);
    }
}
