//! Table 4: the probability that the ITAE passes 8727 rad s within 30 s.
//!
//! The paper's intervals are those of sequential Clopper-Pearson, from which its counts follow. Whether
//! ours agree is asked by Fisher's exact test of both counts, ours from many runs: two intervals of ten
//! points may well overlap where the probabilities differ. A row differs where p is below 0.05 / 6, so that
//! a reading that is right in all six rows is called wrong in any with a probability of 0.05 at most
//! (Bonferroni).

use std::sync::atomic::AtomicBool;

use acklab_lab::verify::{Job, Precision, Verification, VerifyError};
use acklab_stats::fisher_exact;

use super::configuration::{ANCE, CODEL, DROP_TAIL, ENCN, PIE, RED, Technique, Topology, settings};
use super::tables;
use crate::reproduce::{Course, Stop};

/// A row of the paper: the numbers behind its interval follow from sequential Clopper-Pearson with
/// alpha and epsilon 0.05.
#[derive(Clone, Copy, Debug)]
pub struct PaperRow {
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

/// Changes to `paper-fit`, each of one open point, that take CoDel near the paper.
pub const VARIANTS: [(&str, &str); 2] = [("ecn_echo", "each-ack"), ("ncs_early", "drop")];

/// The table under one reading of the paper.
pub struct Reading {
    pub name: String,
    /// In the paper's order.
    pub rows: Vec<Row>,
}

/// A row of ours beside the paper's.
#[derive(Clone, Debug)]
pub struct Row {
    pub paper: PaperRow,
    pub ours: Verification,
}

impl Row {
    /// Our interval.
    pub fn interval(&self) -> (f64, f64) {
        self.ours.report.interval.map_or((0.0, 1.0), |interval| (interval.low, interval.high))
    }

    /// Our successes and runs.
    pub fn counts(&self) -> (u64, u64) {
        (self.ours.report.successes.unwrap_or(0), self.ours.report.runs)
    }

    /// Of Fisher's exact test of both counts.
    pub fn p_value(&self) -> f64 {
        fisher_exact(self.paper.counts, self.counts()).unwrap_or(f64::NAN)
    }

    /// Whether the test finds no difference.
    pub fn agrees(&self) -> bool {
        self.p_value() >= 0.05 / PAPER.len() as f64
    }
}

impl Reading {
    /// How many rows agree.
    pub fn agreeing(&self) -> usize {
        self.rows.iter().filter(|row| row.agrees()).count()
    }

    /// Answers the paper's query for every technique, from `runs` runs of each, as one part of the course.
    pub fn run(
        title: String,
        name: String,
        sets: &[(&str, &str)],
        (seed, runs): (u64, u64),
        course: &mut Course<'_>,
    ) -> Result<Self, Stop> {
        let query = format!("Pr[<=30; {runs}](<> itae_rad_s > 8727)");
        let answer = |ended: &AtomicBool| {
            let row = |paper: PaperRow| {
                let topology = Topology::Dumbbell;
                let settings = settings(topology, paper.technique, sets)?;
                let job =
                    Job::new(topology.scenario(), settings, &query, Precision::default(), seed)?;
                Ok(Row { paper, ours: job.run(ended, |_, _| {}) })
            };
            let rows = PAPER.into_iter().map(row).collect::<Result<_, VerifyError>>()?;
            Ok::<_, VerifyError>(Self { name, rows })
        };
        Ok(course.part(title, answer, |done| done.iter().map(tables::table4).collect())??)
    }
}

/// The variants of `paper-fit`.
pub(super) fn variants(
    seed: u64,
    runs: u64,
    course: &mut Course<'_>,
) -> Result<Vec<Reading>, Stop> {
    let run = |(name, value): (&'static str, &'static str)| {
        let title = format!("paper-fit, {name}={value}: table 4");
        let sets = [("preset", "paper-fit"), (name, value)];
        Reading::run(title, format!("paper-fit {name}={value}"), &sets, (seed, runs), course)
    };
    VARIANTS.into_iter().map(run).collect()
}
