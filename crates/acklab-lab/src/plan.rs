//! [`Plan`]: what is to be run, before anything is computed.
//!
//! A plan is a list of independent (settings, seed) pairs. Every case runs under the same seeds
//! (common random numbers), so a case of a grid gives the same result, to the bit, as the same
//! settings run alone.

use acklab_core::rng;

use crate::parameter::{SetError, Settings};
use crate::scenario::{self, Scenario};
use crate::sweep::{self, Axis, Choices};

/// Cases times replications.
#[derive(Clone)]
pub struct Plan {
    /// The experiment.
    pub scenario: &'static dyn Scenario,
    /// What was set for all cases alike.
    pub settings: Settings,
    /// The settings of each case.
    pub cases: Vec<Settings>,
    /// What the cases differ in, the last axis fastest; none for a single case.
    pub axes: Vec<Axis>,
    /// Whether the scenario's own grid is among the axes.
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
        Self::over(scenario, &settings.into(), false, seed, replications)?.within(None)
    }

    /// The scenario's grid; a parameter that was set is not varied.
    pub fn all(
        scenario: &'static dyn Scenario,
        settings: Settings,
        seed: u64,
        replications: Option<u64>,
    ) -> Result<Self, SetError> {
        Self::over(scenario, &settings.into(), true, seed, replications)?.within(None)
    }

    /// Every combination of what was chosen, with the scenario's grid where `all` says so. Its size is not
    /// looked at yet: see [`Plan::within`].
    pub fn over(
        scenario: &'static dyn Scenario,
        choices: &Choices,
        all: bool,
        seed: u64,
        replications: Option<u64>,
    ) -> Result<Self, SetError> {
        let settings = choices.settings().clone();
        let mut axes = choices.axes();
        let grid = scenario.declaration().grid.iter().filter(|_| all);
        axes.extend(grid.filter(|axis| !settings.is_chosen(axis.parameter)).map(|axis| Axis {
            parameter: axis.parameter,
            values: axis.values.iter().map(|value| (*value).to_owned()).collect(),
        }));
        let cases = sweep::cases(&settings, &axes)?;
        cases.iter().try_for_each(|case| scenario.check(case))?;
        let replications = replications.unwrap_or(scenario.declaration().replications);
        Ok(Self { scenario, settings, cases, axes, all, seed, replications })
    }

    /// The same, unless it would send more packets than `limit`, or than the scenario's own limit.
    pub fn within(self, limit: Option<u128>) -> Result<Self, SetError> {
        let (packets, limit) =
            (self.packets(), limit.unwrap_or_else(|| self.scenario.most_packets()));
        if packets > limit { Err(SetError::TooMuch { packets, limit }) } else { Ok(self) }
    }

    /// About how many packets all its runs send.
    pub fn packets(&self) -> u128 {
        let of_one = self.cases.iter().map(|case| u128::from(self.scenario.packets(case)));
        of_one.sum::<u128>() * u128::from(self.replications)
    }

    /// Whether it has several cases to compare, or is asked to tell of its cases one by one.
    pub fn is_grid(&self) -> bool {
        self.all || !self.axes.is_empty()
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
