//! Table 4: the probability that the ITAE passes 8727 rad s within 30 s, by the paper's own method.

use std::sync::atomic::AtomicBool;

use super::configuration::{ANCE, CODEL, DROP_TAIL, ENCN, PIE, RED, Technique, Topology, settings};
use acklab_lab::verify::{Job, Precision, ProportionMethod, Verification, VerifyError};

/// A row of the paper: the numbers behind its interval follow from sequential Clopper-Pearson with
/// alpha and epsilon 0.05.
#[derive(Clone, Copy, Debug)]
pub struct PaperRow {
    /// The technique.
    pub technique: Technique,
    /// The printed interval.
    pub interval: (f64, f64),
    /// Successes and runs that give it.
    pub counts: (u64, u64),
}

/// The paper's table.
pub const PAPER: [PaperRow; 6] = [
    PaperRow { technique: DROP_TAIL, interval: (0.902, 1.0), counts: (36, 36) },
    PaperRow { technique: RED, interval: (0.649, 0.749), counts: (239, 341) },
    PaperRow { technique: CODEL, interval: (0.457, 0.557), counts: (204, 402) },
    PaperRow { technique: PIE, interval: (0.068, 0.168), counts: (19, 171) },
    PaperRow { technique: ENCN, interval: (0.0, 0.097), counts: (0, 36) },
    PaperRow { technique: ANCE, interval: (0.0, 0.097), counts: (0, 36) },
];

/// The query behind it.
pub const QUERY: &str = "Pr[<=30](<> itae > 8727)";

/// A row of ours beside the paper's.
#[derive(Clone, Debug)]
pub struct Row {
    /// The paper's.
    pub paper: PaperRow,
    /// Ours.
    pub ours: Verification,
}

impl Row {
    /// Our interval.
    pub fn interval(&self) -> (f64, f64) {
        self.ours.report.interval.map_or((0.0, 1.0), |interval| (interval.low, interval.high))
    }

    /// Whether ours and the paper's have a point in common.
    pub fn overlaps(&self) -> bool {
        let (low, high) = self.interval();
        low <= self.paper.interval.1 && self.paper.interval.0 <= high
    }
}

/// Answers the paper's query for every technique.
pub fn run(sets: &[(&str, &str)], seed: u64) -> Result<Vec<Row>, VerifyError> {
    let row = |paper: PaperRow| {
        let topology = Topology::Dumbbell;
        let settings = settings(topology, paper.technique, sets)?;
        let uppaal = Some(ProportionMethod::ClopperPearson);
        let precision = Precision { method: uppaal, ..Precision::default() };
        let job = Job::new(topology.scenario(), settings, QUERY, precision, seed)?;
        Ok(Row { paper, ours: job.run(&AtomicBool::new(false), |_, _| {}) })
    };
    PAPER.into_iter().map(row).collect()
}
