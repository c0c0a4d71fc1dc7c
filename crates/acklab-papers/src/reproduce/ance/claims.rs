//! The paper's sentences about its results, each as a comparison that replications can decide.
//!
//! A claim that one technique has more or less of something than others is decided by the mean
//! difference over replications of the same seeds (common random numbers): it holds if the 95 % interval
//! of every difference lies on the claimed side, it fails if one lies on the other side, and is open
//! otherwise. "Close" means within a tolerance that stands in the claim's own words.

use acklab_lab::report::{Claim, Outcome};
use acklab_stats::MeanInterval;

use self::Comparison::{Above, Below, Between, Close, Never};
use super::configuration::{
    ANCE, CODEL, DROP_TAIL, EDCTCP, ENCN, Exceedance, JERSEY, Measured, PIE, RED, THRESHOLD,
    Technique, Topology, difference,
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
const DAISY_QUEUE: Metric = metric(Topology::Daisy, "queue_packets", two_decimals);
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
    /// Where it stands.
    place: &'static str,
    /// What it says.
    text: &'static str,
    metric: Metric,
    comparison: Comparison,
}

/// What became of a sentence under one reading of the paper.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Whether it holds.
    pub outcome: Outcome,
    /// The figures it rests on.
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
        text: "so does ENCN",
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
        text: "its total throughput is close to ENCN's (within 3 %)",
        metric: THROUGHPUT,
        comparison: Close(ANCE, ENCN, 0.03),
    },
    Sentence {
        place: "4.3, figure 16",
        text: "its total throughput is close to CoDel's (within 3 %)",
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
        text: "so has ENCN",
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
    Sentence { place: "4.3", text: "nor does it with ENCN", metric: ITAE, comparison: Never(ENCN) },
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
        self.order(first?, others, |first, other| difference(first, other, self.metric.name))
    }

    fn below(self, first: Option<&Measured>, others: Vec<&Measured>) -> Option<Finding> {
        self.order(first?, others, |first, other| difference(other, first, self.metric.name))
    }

    fn order(
        self,
        first: &Measured,
        others: Vec<&Measured>,
        lead: impl Fn(&Measured, &Measured) -> Option<MeanInterval>,
    ) -> Option<Finding> {
        let leads: Option<Vec<MeanInterval>> =
            others.iter().map(|other| lead(first, other)).collect();
        let outcome = Outcome::all(leads?.iter().map(above_zero));
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
        let (a, b) = (self.mean(left), self.mean(right));
        let outcome = Outcome::of((a - b).abs() <= share * b.abs());
        let figures = format!("{}, {}", self.figure(left), self.figure(right));
        Some(Finding { outcome, figures })
    }

    fn between(self, technique: Option<&Measured>, low: f64, high: f64) -> Option<Finding> {
        let technique = technique?;
        let outcome = Outcome::of((low..=high).contains(&self.mean(technique)));
        Some(Finding { outcome, figures: self.figure(technique) })
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
    Some(Finding { outcome: Outcome::of(exceeded == 0), figures })
}

fn above_zero(lead: &MeanInterval) -> Outcome {
    match lead {
        lead if lead.low > 0.0 => Outcome::Holds,
        lead if lead.high < 0.0 => Outcome::Fails,
        _ => Outcome::Open,
    }
}
