//! [`Plan`]: what is to be run, before anything is computed.
//!
//! A plan is a list of independent (settings, seed) pairs. Every case runs under the same seeds
//! (common random numbers), so a case of a grid gives the same result, to the bit, as the same
//! settings run alone.

use acklab_core::rng;

use crate::parameter::{SetError, Settings};
use crate::scenario::{self, Scenario};

/// Cases times replications.
#[derive(Clone)]
pub struct Plan {
    /// The experiment.
    pub scenario: &'static dyn Scenario,
    /// What was set for all cases alike.
    pub settings: Settings,
    /// The settings of each case.
    pub cases: Vec<Settings>,
    /// Whether the cases are the scenario's grid.
    pub all: bool,
    /// Seed of the first replication.
    pub seed: u64,
    /// Replications of each case.
    pub replications: u64,
}

impl Plan {
    /// A single case.
    pub fn single(
        scenario: &'static dyn Scenario,
        settings: Settings,
        seed: u64,
        replications: Option<u64>,
    ) -> Result<Self, SetError> {
        Self::new(scenario, settings.clone(), vec![settings], false, seed, replications)
    }

    /// The scenario's grid; a parameter that was set is not varied.
    pub fn all(
        scenario: &'static dyn Scenario,
        settings: Settings,
        seed: u64,
        replications: Option<u64>,
    ) -> Result<Self, SetError> {
        let mut cases = vec![settings.clone()];
        for axis in
            scenario.declaration().grid.iter().filter(|axis| !settings.is_chosen(axis.parameter))
        {
            let mut varied = Vec::with_capacity(cases.len() * axis.values.len());
            for case in &cases {
                for value in axis.values {
                    let mut case = case.clone();
                    case.set(axis.parameter, value)?;
                    varied.push(case);
                }
            }
            cases = varied;
        }
        Self::new(scenario, settings, cases, true, seed, replications)
    }

    fn new(
        scenario: &'static dyn Scenario,
        settings: Settings,
        cases: Vec<Settings>,
        all: bool,
        seed: u64,
        replications: Option<u64>,
    ) -> Result<Self, SetError> {
        cases.iter().try_for_each(|case| scenario.check(case))?;
        let replications = replications.unwrap_or(scenario.declaration().replications);
        let of_one = cases.iter().map(|case| u128::from(scenario.packets(case))).sum::<u128>();
        let packets = of_one * u128::from(replications);
        if packets > MAX_PACKETS {
            return Err(SetError::TooMuch { packets, limit: MAX_PACKETS });
        }
        Ok(Self { scenario, settings, cases, all, seed, replications })
    }

    /// The seed of each replication.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + Clone {
        let seed = self.seed;
        (0..self.replications).map(move |index| rng::replication_seed(seed, index))
    }

    /// Defaults of the plan's scenario.
    pub fn defaults(scenario: &dyn Scenario) -> Settings {
        scenario::defaults(scenario)
    }
}

/// Packets of a whole plan. Each data packet leaves some 130 bytes of samples, which are kept until
/// the end, so that this is under 1.5 GB.
const MAX_PACKETS: u128 = 10_000_000;
