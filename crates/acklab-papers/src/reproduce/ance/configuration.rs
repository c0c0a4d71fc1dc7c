//! The configurations of the paper, and what many replications of each measured.

use std::sync::atomic::AtomicBool;

use acklab_stats::ProportionMethod;

use crate::scenario::Ance;
use acklab_lab::measured::Metrics;
use acklab_lab::parameter::{SetError, Settings};
use acklab_lab::plan::Plan;
use acklab_lab::run;
use acklab_lab::scenario::{self, Scenario};

/// One technique of the paper: a queue with a congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Technique {
    /// Name as in the paper.
    pub name: &'static str,
    pub set: (&'static str, &'static str),
}

const fn technique(name: &'static str, parameter: &'static str, value: &'static str) -> Technique {
    Technique { name, set: (parameter, value) }
}

/// Drop tail with Reno.
pub const DROP_TAIL: Technique = technique("DT", "queue", "drop-tail");
/// RED with Reno.
pub const RED: Technique = technique("RED", "queue", "red");
/// CoDel with Reno.
pub const CODEL: Technique = technique("CoDel", "queue", "codel");
/// PIE with Reno.
pub const PIE: Technique = technique("PIE", "queue", "pie");
/// ENCN's router and sender.
pub const ENCN: Technique = technique("ENCN", "queue", "encn");
/// ANCE over drop tail.
pub const ANCE: Technique = technique("ANCE", "cc", "ance");
/// TCP-Jersey's router and sender.
pub const JERSEY: Technique = technique("TCP-Jersey", "queue", "jersey");
/// E-DCTCP's switch and sender.
pub const EDCTCP: Technique = technique("E-DCTCP", "queue", "edctcp");

/// Those of section 3.
pub const DAISY: [Technique; 5] = [RED, CODEL, PIE, ENCN, ANCE];
/// Those of table 4.
pub const TABLE_4: [Technique; 6] = [DROP_TAIL, RED, CODEL, PIE, ENCN, ANCE];
/// Those of section 4.
pub const DUMBBELL: [Technique; 8] = [DROP_TAIL, RED, CODEL, PIE, ENCN, ANCE, JERSEY, EDCTCP];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Section 3.
    Daisy,
    /// Section 4.
    Dumbbell,
}

impl Topology {
    pub fn scenario(self) -> &'static dyn Scenario {
        match self {
            Self::Daisy => &Ance::Daisy,
            Self::Dumbbell => &Ance::Dumbbell,
        }
    }
}

/// The settings of one technique: preset, technique, and what is set on top.
pub fn settings(
    topology: Topology,
    technique: Technique,
    sets: &[(&str, &str)],
) -> Result<Settings, SetError> {
    let mut settings = scenario::defaults(topology.scenario());
    for (name, value) in sets.iter().chain([&technique.set]) {
        settings.set(name, value)?;
    }
    Ok(settings)
}

/// Replications of one technique.
#[derive(Clone, Debug)]
pub struct Measured {
    pub technique: Technique,
    metrics: Metrics,
}

impl Measured {
    /// Runs `replications` replications under the seeds that follow from `seed`.
    pub fn run(
        topology: Topology,
        technique: Technique,
        sets: &[(&str, &str)],
        seed: u64,
        replications: u64,
        ended: &AtomicBool,
    ) -> Result<Self, SetError> {
        let settings = settings(topology, technique, sets)?;
        let plan = Plan::single(topology.scenario(), settings, seed, Some(replications))?;
        Ok(Self { technique, metrics: run::run_until(&plan, ended, &|| ()).metrics })
    }

    /// A metric, one value per replication in the order of the seeds.
    pub fn values(&self, metric: &str) -> &[f64] {
        self.metrics.samples(metric)
    }

    /// The mean over replications (over time, for the queue).
    pub fn mean(&self, metric: &str) -> f64 {
        self.metrics.number(metric)
    }

    /// The 95 % quantile of a metric.
    pub fn p95(&self, metric: &str) -> f64 {
        self.metrics.spread(metric).map_or(f64::NAN, |spread| spread.p95)
    }

    /// Replications in which the paper's ITAE passed its threshold, of how many, with the
    /// Clopper-Pearson interval.
    pub fn exceedance(&self) -> Exceedance {
        let values = self.values("itae_rad_s");
        let exceeded = values.iter().filter(|value| **value > THRESHOLD).count() as u64;
        let runs = values.len() as u64;
        let interval = ProportionMethod::ClopperPearson.interval(exceeded, runs, 0.95);
        let (low, high) = interval.map_or((0.0, 1.0), |interval| (interval.low, interval.high));
        Exceedance { exceeded, runs, low, high }
    }
}

/// How often the ITAE passed the threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exceedance {
    /// Runs in which it did.
    pub exceeded: u64,
    pub runs: u64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    pub high: f64,
}

impl Exceedance {
    pub fn share(&self) -> f64 {
        self.exceeded as f64 / self.runs as f64
    }
}

/// The paper's threshold for its ITAE, rad s.
pub const THRESHOLD: f64 = 8727.0;
