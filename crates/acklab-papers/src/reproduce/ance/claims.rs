//! The paper's sentences about its results, each as a comparison that replications can decide.
//!
//! A claim that one technique has more or less of something than others is decided by the mean
//! difference over replications of the same seeds (common random numbers): it holds if the 95 % interval
//! of every difference lies on the claimed side, it fails if one lies on the other side, and is open
//! otherwise. "Close" means within a tolerance that stands in the claim's own words.

use super::configuration::{
    ANCE, CODEL, DROP_TAIL, EDCTCP, ENCN, Exceedance, JERSEY, Measured, PIE, RED, THRESHOLD,
    Technique, Topology, difference,
};

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds here.
    Holds,
    /// It does not.
    Fails,
    /// The replications do not decide it.
    Open,
}

impl Outcome {
    /// In a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Open => "open",
        }
    }
}

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
pub struct Claim {
    /// Where it stands.
    pub place: &'static str,
    /// What it says.
    pub text: &'static str,
    /// Which topology it is about.
    pub topology: Topology,
    metric: &'static str,
    comparison: Comparison,
}

/// A claim with what became of it.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// Whether it holds.
    pub outcome: Outcome,
    /// The figures it rests on.
    pub figures: String,
}

/// Every claim about results.
pub const CLAIMS: &[Claim] = &[
    Claim {
        place: "3.1",
        text: "ANCE leaves the bottleneck idle for a smaller share of the time than RED, CoDel and PIE",
        topology: Topology::Daisy,
        metric: "idle_share",
        comparison: Comparison::Below(ANCE, &[RED, CODEL, PIE]),
    },
    Claim {
        place: "3.1",
        text: "so does ENCN",
        topology: Topology::Daisy,
        metric: "idle_share",
        comparison: Comparison::Below(ENCN, &[RED, CODEL, PIE]),
    },
    Claim {
        place: "3.1",
        text: "ANCE keeps the queue around Qmin = 3 packets (mean of those waiting: 1 to 4)",
        topology: Topology::Daisy,
        metric: "queue_packets",
        comparison: Comparison::Between(ANCE, 1.0, 4.0),
    },
    Claim {
        place: "3.1",
        text: "ENCN keeps the queue around Qmin (mean of those waiting: 1 to 4)",
        topology: Topology::Daisy,
        metric: "queue_packets",
        comparison: Comparison::Between(ENCN, 1.0, 4.0),
    },
    Claim {
        place: "3.1, figure 5",
        text: "ANCE has more throughput than RED, CoDel and PIE",
        topology: Topology::Daisy,
        metric: "throughput_bps",
        comparison: Comparison::Above(ANCE, &[RED, CODEL, PIE]),
    },
    Claim {
        place: "3.1, figure 5",
        text: "the throughputs of ENCN and ANCE are very similar (within 2 %)",
        topology: Topology::Daisy,
        metric: "throughput_bps",
        comparison: Comparison::Close(ENCN, ANCE, 0.02),
    },
    Claim {
        place: "4.3, figure 16",
        text: "ANCE has more total throughput than RED and PIE",
        topology: Topology::Dumbbell,
        metric: "throughput_bps",
        comparison: Comparison::Above(ANCE, &[RED, PIE]),
    },
    Claim {
        place: "4.3, figure 16",
        text: "its total throughput is close to ENCN's (within 3 %)",
        topology: Topology::Dumbbell,
        metric: "throughput_bps",
        comparison: Comparison::Close(ANCE, ENCN, 0.03),
    },
    Claim {
        place: "4.3, figure 16",
        text: "its total throughput is close to CoDel's (within 3 %)",
        topology: Topology::Dumbbell,
        metric: "throughput_bps",
        comparison: Comparison::Close(ANCE, CODEL, 0.03),
    },
    Claim {
        place: "4.3, figure 17",
        text: "ANCE is fairer (Jain's index) than DT, RED, CoDel and PIE",
        topology: Topology::Dumbbell,
        metric: "jain",
        comparison: Comparison::Above(ANCE, &[DROP_TAIL, RED, CODEL, PIE]),
    },
    Claim {
        place: "4.3, figure 30",
        text: "ANCE has a lower ITAE than DT, RED, CoDel and PIE",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Below(ANCE, &[DROP_TAIL, RED, CODEL, PIE]),
    },
    Claim {
        place: "4.3, figure 30",
        text: "so has ENCN",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Below(ENCN, &[DROP_TAIL, RED, CODEL, PIE]),
    },
    Claim {
        place: "4.3, figure 30",
        text: "the ITAE of ANCE is very close to ENCN's (within 10 %)",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Close(ANCE, ENCN, 0.10),
    },
    Claim {
        place: "4.3, table 4",
        text: "DT has the highest ITAE of all",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Above(DROP_TAIL, &[RED, CODEL, PIE, ENCN, ANCE]),
    },
    Claim {
        place: "4.3, table 4",
        text: "RED has a higher ITAE than CoDel and PIE",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Above(RED, &[CODEL, PIE]),
    },
    Claim {
        place: "4.3, table 4",
        text: "CoDel has a higher ITAE than PIE",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Above(CODEL, &[PIE]),
    },
    Claim {
        place: "4.3",
        text: "with ANCE the ITAE does not pass 8727 under any possible situation (here: in any run)",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Never(ANCE),
    },
    Claim {
        place: "4.3",
        text: "nor does it with ENCN",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Never(ENCN),
    },
    Claim {
        place: "4.4, figure 32",
        text: "E-DCTCP has more total throughput than ANCE",
        topology: Topology::Dumbbell,
        metric: "throughput_bps",
        comparison: Comparison::Above(EDCTCP, &[ANCE]),
    },
    Claim {
        place: "abstract",
        text: "ANCE has more throughput than E-DCTCP (against the sentence above)",
        topology: Topology::Dumbbell,
        metric: "throughput_bps",
        comparison: Comparison::Above(ANCE, &[EDCTCP]),
    },
    Claim {
        place: "4.4, figure 33",
        text: "ANCE has a lower ITAE than E-DCTCP",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Below(ANCE, &[EDCTCP]),
    },
    Claim {
        place: "4.4, figures 29 and 34",
        text: "E-DCTCP keeps a longer queue than ANCE (mean over time)",
        topology: Topology::Dumbbell,
        metric: "queue_mean_packets",
        comparison: Comparison::Above(EDCTCP, &[ANCE]),
    },
    Claim {
        place: "4.4, figure 32",
        text: "TCP-Jersey has less total throughput than ANCE and E-DCTCP",
        topology: Topology::Dumbbell,
        metric: "throughput_bps",
        comparison: Comparison::Below(JERSEY, &[ANCE, EDCTCP]),
    },
    Claim {
        place: "4.4, figure 33",
        text: "TCP-Jersey has the lowest ITAE of the three",
        topology: Topology::Dumbbell,
        metric: "itae_rad_s",
        comparison: Comparison::Below(JERSEY, &[ANCE, EDCTCP]),
    },
    Claim {
        place: "4.4, figure 35",
        text: "TCP-Jersey leaves the queue empty for a larger share of the time than E-DCTCP and ANCE",
        topology: Topology::Dumbbell,
        metric: "queue_empty_share",
        comparison: Comparison::Above(JERSEY, &[EDCTCP, ANCE]),
    },
];

impl Claim {
    /// Decides it on replications of its topology.
    pub fn judge(self, measured: &[Measured]) -> Judged {
        let find = |technique: Technique| measured.iter().find(|m| m.technique == technique);
        let (outcome, figures) = match self.comparison {
            Comparison::Above(first, others) => self.order(find(first), others, &find, 1.0),
            Comparison::Below(first, others) => self.order(find(first), others, &find, -1.0),
            Comparison::Close(left, right, share) => self.close(find(left), find(right), share),
            Comparison::Between(technique, low, high) => self.between(find(technique), low, high),
            Comparison::Never(technique) => never(find(technique)),
        };
        Judged { claim: self, outcome, figures }
    }

    fn order<'a>(
        self,
        first: Option<&'a Measured>,
        others: &[Technique],
        find: &impl Fn(Technique) -> Option<&'a Measured>,
        sign: f64,
    ) -> (Outcome, String) {
        let Some(first) = first else { return nothing() };
        let mut outcome = Outcome::Holds;
        let mut figures = vec![self.figure(first)];
        for other in others.iter().filter_map(|other| find(*other)) {
            figures.push(self.figure(other));
            let Some(interval) = difference(first, other, self.metric) else { return nothing() };
            let (low, high) = if sign > 0.0 {
                (interval.low, interval.high)
            } else {
                (-interval.high, -interval.low)
            };
            outcome = match outcome {
                _ if high < 0.0 => Outcome::Fails,
                Outcome::Holds if low <= 0.0 => Outcome::Open,
                _ => outcome,
            };
        }
        (outcome, figures.join(", "))
    }

    fn close(
        self,
        left: Option<&Measured>,
        right: Option<&Measured>,
        share: f64,
    ) -> (Outcome, String) {
        let (Some(left), Some(right)) = (left, right) else { return nothing() };
        let (a, b) = (left.mean(self.metric), right.mean(self.metric));
        let holds = (a - b).abs() <= share * b.abs();
        let figures = format!("{}, {}", self.figure(left), self.figure(right));
        (if holds { Outcome::Holds } else { Outcome::Fails }, figures)
    }

    fn between(self, technique: Option<&Measured>, low: f64, high: f64) -> (Outcome, String) {
        let Some(technique) = technique else { return nothing() };
        let mean = technique.mean(self.metric);
        let holds = (low..=high).contains(&mean);
        (if holds { Outcome::Holds } else { Outcome::Fails }, self.figure(technique))
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

fn never(technique: Option<&Measured>) -> (Outcome, String) {
    let Some(technique) = technique else { return nothing() };
    let Exceedance { exceeded, runs, high, .. } = technique.exceedance();
    let worst = technique.values("itae_rad_s").iter().copied().fold(0.0, f64::max);
    let figures = format!(
        "{} passes {THRESHOLD} in {exceeded} of {runs} runs (at most {:.1} % with 95 % confidence); \
         largest {worst:.0}",
        technique.technique.name,
        100.0 * high
    );
    (if exceeded == 0 { Outcome::Holds } else { Outcome::Fails }, figures)
}

fn nothing() -> (Outcome, String) {
    (Outcome::Open, "not measured".to_owned())
}
