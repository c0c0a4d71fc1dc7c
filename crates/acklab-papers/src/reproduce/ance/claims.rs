//! The paper's sentences about its results, each as a comparison that replications can decide.
//!
//! A claim that one technique has more or less of something than others is decided by the mean
//! difference over replications of the same seeds (common random numbers): it holds if the 95 % interval
//! of every difference lies on the claimed side, it fails if one lies on the other side, and is open
//! otherwise. "Close" means within a tolerance that stands in the claim's own words.

use acklab_lab::report::{Claim, Outcome};
use acklab_stats::MeanInterval;

use super::configuration::{
    ANCE, CODEL, DROP_TAIL, EDCTCP, ENCN, Exceedance, JERSEY, Measured, PIE, RED, THRESHOLD,
    Technique, Topology, difference,
};
use super::preset::Preset;

/// What a claim compares.
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
    pub place: &'static str,
    /// What it says.
    pub text: &'static str,
    /// Which topology it is about.
    pub topology: Topology,
    metric: &'static str,
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
        topology: Topology::Daisy,
        metric: "idle_share",
        comparison: Comparison::Below(ANCE, &[RED, CODEL, PIE]),
    },
    Sentence {
        place: "3.1",
        text: "so does ENCN",
        topology: Topology::Daisy,
        metric: "idle_share",
        comparison: Comparison::Below(ENCN, &[RED, CODEL, PIE]),
    },
    Sentence {
        place: "3.1",
        text: "ANCE keeps the queue around Qmin = 3 packets (mean of those waiting: 1 to 4)",
        topology: Topology::Daisy,
        metric: "queue_packets",
        comparison: Comparison::Between(ANCE, 1.0, 4.0),
    },
    Sentence {
        place: "3.1",
        text: "ENCN keeps the queue around Qmin (mean of those waiting: 1 to 4)",
        topology: Topology::Daisy,
        metric: "queue_packets",
        comparison: Comparison::Between(ENCN, 1.0, 4.0),
    },
    Sentence {
        place: "3.1, figure 5",
        text: "ANCE has more throughput than RED, CoDel and PIE",
        topology: Topology::Daisy,
        metric: "throughput_bps",
        comparison: Comparison::Above(ANCE, &[RED, CODEL, PIE]),
    },
    Sentence {
        place: "3.1, figure 5",
        text: "the throughputs of ENCN and ANCE are very similar (within 2 %)",
        topology: Topology::Daisy,
        metric: "throughput_bps",
        comparison: Comparison::Close(ENCN, ANCE, 0.02),
    },
    Sentence {
        place: "4.3, figure 16",
        text: "ANCE has more total throughput than RED and PIE",
        topology: Topology::Dumbbell,
        metric: "throughput_bps",
        comparison: Comparison::Above(ANCE, &[RED, PIE]),
    },
    Sentence {
        place: "4.3, figure 16",
        text: "its total throughput is close to ENCN's (within 3 %)",
        topology: Topology::Dumbbell,
        metric: "throughput_bps",
        comparison: Comparison::Close(ANCE, ENCN, 0.03),
    },
    Sentence {
        place: "4.3, figure 16",
        text: "its total throughput is close to CoDel's (within 3 %)",
        topology: Topology::Dumbbell,
        metric: "throughput_bps",
        comparison: Comparison::Close(ANCE, CODEL, 0.03),
    },
    Sentence {
        place: "4.3, figure 17",
        text: "ANCE is fairer (Jain's index) than DT, RED, CoDel and PIE",
        topology: Topology::Dumbbell,
        metric: "jain",
        comparison: Comparison::Above(ANCE, &[DROP_TAIL, RED, CODEL, PIE]),
    },
    Sentence {
        place: "4.3, figure 30",
        text: "ANCE has a lower ITAE than DT, RED, CoDel and PIE",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Below(ANCE, &[DROP_TAIL, RED, CODEL, PIE]),
    },
    Sentence {
        place: "4.3, figure 30",
        text: "so has ENCN",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Below(ENCN, &[DROP_TAIL, RED, CODEL, PIE]),
    },
    Sentence {
        place: "4.3, figure 30",
        text: "the ITAE of ANCE is very close to ENCN's (within 10 %)",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Close(ANCE, ENCN, 0.10),
    },
    Sentence {
        place: "4.3, table 4",
        text: "DT has the highest ITAE of all",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Above(DROP_TAIL, &[RED, CODEL, PIE, ENCN, ANCE]),
    },
    Sentence {
        place: "4.3, table 4",
        text: "RED has a higher ITAE than CoDel and PIE",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Above(RED, &[CODEL, PIE]),
    },
    Sentence {
        place: "4.3, table 4",
        text: "CoDel has a higher ITAE than PIE",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Above(CODEL, &[PIE]),
    },
    Sentence {
        place: "4.3",
        text: "with ANCE the ITAE does not pass 8727 under any possible situation (here: in any run)",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Never(ANCE),
    },
    Sentence {
        place: "4.3",
        text: "nor does it with ENCN",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Never(ENCN),
    },
    Sentence {
        place: "4.4, figure 32",
        text: "E-DCTCP has more total throughput than ANCE",
        topology: Topology::Dumbbell,
        metric: "throughput_bps",
        comparison: Comparison::Above(EDCTCP, &[ANCE]),
    },
    Sentence {
        place: "abstract",
        text: "ANCE has more throughput than E-DCTCP (against the sentence above)",
        topology: Topology::Dumbbell,
        metric: "throughput_bps",
        comparison: Comparison::Above(ANCE, &[EDCTCP]),
    },
    Sentence {
        place: "4.4, figure 33",
        text: "ANCE has a lower ITAE than E-DCTCP",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Below(ANCE, &[EDCTCP]),
    },
    Sentence {
        place: "4.4, figures 29 and 34",
        text: "E-DCTCP keeps a longer queue than ANCE (mean over time)",
        topology: Topology::Dumbbell,
        metric: "queue_mean_packets",
        comparison: Comparison::Above(EDCTCP, &[ANCE]),
    },
    Sentence {
        place: "4.4, figure 32",
        text: "TCP-Jersey has less total throughput than ANCE and E-DCTCP",
        topology: Topology::Dumbbell,
        metric: "throughput_bps",
        comparison: Comparison::Below(JERSEY, &[ANCE, EDCTCP]),
    },
    Sentence {
        place: "4.4, figure 33",
        text: "TCP-Jersey has the lowest ITAE of the three",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Below(JERSEY, &[ANCE, EDCTCP]),
    },
    Sentence {
        place: "4.4, figure 35",
        text: "TCP-Jersey leaves the queue empty for a larger share of the time than E-DCTCP and ANCE",
        topology: Topology::Dumbbell,
        metric: "queue_empty_share",
        comparison: Comparison::Above(JERSEY, &[EDCTCP, ANCE]),
    },
];

/// Judges every sentence under each reading.
pub fn judge(presets: &[Preset]) -> Vec<Claim> {
    let claim = |sentence: &Sentence| {
        let findings = presets.iter().map(|preset| sentence.judge(preset.of(sentence.topology)));
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
            Comparison::Above(first, others) => self.above(find(first), all(others)),
            Comparison::Below(first, others) => self.below(find(first), all(others)),
            Comparison::Close(left, right, share) => self.close(find(left), find(right), share),
            Comparison::Between(technique, low, high) => self.between(find(technique), low, high),
            Comparison::Never(technique) => never(find(technique)),
        };
        let nothing = || Finding { outcome: Outcome::Open, figures: "not measured".to_owned() };
        finding.unwrap_or_else(nothing)
    }

    fn above(self, first: Option<&Measured>, others: Vec<&Measured>) -> Option<Finding> {
        self.order(first?, others, |first, other| difference(first, other, self.metric))
    }

    fn below(self, first: Option<&Measured>, others: Vec<&Measured>) -> Option<Finding> {
        self.order(first?, others, |first, other| difference(other, first, self.metric))
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
        let (a, b) = (left.mean(self.metric), right.mean(self.metric));
        let outcome = Outcome::of((a - b).abs() <= share * b.abs());
        let figures = format!("{}, {}", self.figure(left), self.figure(right));
        Some(Finding { outcome, figures })
    }

    fn between(self, technique: Option<&Measured>, low: f64, high: f64) -> Option<Finding> {
        let technique = technique?;
        let outcome = Outcome::of((low..=high).contains(&technique.mean(self.metric)));
        Some(Finding { outcome, figures: self.figure(technique) })
    }

    fn figure(self, measured: &Measured) -> String {
        let mean = measured.mean(self.metric);
        let text = match self.metric {
            "throughput_bps" => format!("{:.3} Mbit/s", mean / 1e6),
            "itae_rad_s" => format!("{mean:.0}"),
            "jain" => format!("{mean:.4}"),
            "idle_share" | "queue_empty_share" => format!("{:.1} %", 100.0 * mean),
            _ => format!("{mean:.2}"),
        };
        format!("{} {text}", measured.technique.name)
    }
}

fn never(technique: Option<&Measured>) -> Option<Finding> {
    let technique = technique?;
    let Exceedance { exceeded, runs, high, .. } = technique.exceedance();
    let worst = technique.values("itae_rad_s").iter().copied().fold(0.0, f64::max);
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
