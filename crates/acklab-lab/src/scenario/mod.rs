//! Scenarios: experiments with a name, typed parameters and documented metrics.
//!
//! A scenario turns settings and a seed into one replication; everything around it (replications,
//! threads, pooling, JSON, reports, captures) is the laboratory's and the same for all. One file
//! per scenario; a new one is added to [`ALL`].

mod ance;
mod bench;
mod graph;
mod hold;
mod motor_loop;
mod nagle_delack;
mod network;
mod network_signals;
mod path;
mod recorder;
mod rfc7928;
mod system;
mod write_write_read;

use acklab_core::packet::Packet;
use acklab_core::time::Time;

use crate::measured::{MetricDoc, Metrics};
use crate::network_file::NetworkFile;
use crate::parameter::{Parameter, SetError, Settings, nearest};
use crate::report::run::{Comparison, Expected};
use crate::signal::{Segment, Signal, Watch};

pub use ance::Ance;
pub use bench::Bench;
pub use graph::Graph;
pub use hold::HeldExchange;
pub use motor_loop::MotorLoop;
pub use nagle_delack::{NagleDelack, simulate as simulate_nagle_delack};
pub use rfc7928::Rfc7928;
pub use write_write_read::{WriteWriteRead, simulate as simulate_write_write_read};

/// The built-in scenarios, in the order in which they are listed.
pub const ALL: &[&dyn Scenario] = &[
    &NagleDelack,
    &WriteWriteRead,
    &MotorLoop,
    &Ance::Daisy,
    &Ance::Dumbbell,
    &Rfc7928,
    &Bench::Reference,
    &Bench::Hundred,
    &Bench::Gigabit,
];

/// An experiment in virtual time.
pub trait Scenario: Sync {
    /// Name on the command line.
    fn name(&self) -> &'static str;

    /// What it is, in one line.
    fn summary(&self) -> &'static str;

    /// What it models and what it leaves out, in a few sentences.
    fn doc(&self) -> &'static str;

    /// What can be set.
    fn parameters(&self) -> &'static [Parameter];

    /// What is measured.
    fn metrics(&self) -> &'static [MetricDoc];

    /// The metric whose distribution is the result: plotted, tabled and written as samples.
    fn main_metric(&self) -> &'static str;

    /// Metrics to show beside it, one number each.
    fn side_metrics(&self) -> &'static [&'static str];

    /// Replications where none are asked for.
    fn replications(&self) -> u64;

    /// What `--all` varies: every combination is a case, the last axis fastest.
    fn grid(&self) -> &'static [Axis];

    /// What theory says of the main metric under these settings, where it says anything.
    fn expected(&self, _settings: &Settings) -> Option<Expected> {
        None
    }

    /// The figures of its report: which cases of the grid are drawn together.
    fn figures(&self) -> &'static [Comparison] {
        &[]
    }

    /// What the report of one case draws over time: a title, and the signals in that figure.
    fn courses(&self) -> &'static [(&'static str, &'static [&'static str])] {
        &[]
    }

    /// Keys of the glossary entries that a reader of its report may need.
    fn terms(&self) -> &'static [&'static str];

    /// Refuses combinations of settings that make no sense together.
    fn check(&self, settings: &Settings) -> Result<(), SetError>;

    /// About how many packets and polls a replication under these settings takes: what bounds a plan.
    fn packets(&self, settings: &Settings) -> u64;

    /// What a query may speak about under these settings; nothing where it cannot be verified.
    fn signals(&self, _settings: &Settings) -> Vec<Signal> {
        Vec::new()
    }

    /// Runs one replication whose randomness is `path`, up to `until`, and shows the values of the
    /// signals, in the order of [`Scenario::signals`], after each change of one of `wanted`. Values of
    /// signals that are not wanted mean nothing.
    fn watch(
        &self,
        _settings: &Settings,
        _path: &[Segment],
        _until: Time,
        _wanted: &[bool],
        _each: Watch<'_>,
    ) {
    }

    /// The file that describes it, where it is none of the built-in ones.
    fn network_file(&self) -> Option<&NetworkFile> {
        None
    }

    /// Runs one replication; the same settings and seed give the same result to the bit.
    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication;
}

/// One parameter and the values that `--all` gives it.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Name of the parameter.
    pub parameter: &'static str,
    /// Its values as text.
    pub values: &'static [&'static str],
}

/// Where on the path packets are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturePoint {
    /// At the host that sends the data under study.
    Sender,
    /// Half way.
    Middle,
    /// At the host that receives it.
    Receiver,
}

/// A request to see every packet that passes a point.
pub struct Capture<'a> {
    /// Where.
    pub at: CapturePoint,
    /// Takes each packet with its time, in order.
    pub tap: Tap<'a>,
}

/// Takes packets as they pass a capture point.
pub type Tap<'a> = &'a mut dyn FnMut(Time, &Packet);

/// What one replication gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replication {
    /// Hash over its events.
    pub hash: u64,
    /// Events processed in virtual time.
    pub events: u64,
    /// Over all flows.
    pub metrics: Metrics,
    /// For each flow under study.
    pub flows: Vec<Flow>,
    /// The exchange in which a message waited longest, if any did.
    pub longest_hold: Option<HeldExchange>,
}

/// The metrics of one flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flow {
    /// Name within the scenario.
    pub id: String,
    /// Its metrics.
    pub metrics: Metrics,
}

/// There is no scenario of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no scenario is called {name:?}; {hint}`acklab scenarios` lists the built-in ones")]
pub struct UnknownScenario {
    name: String,
    hint: String,
}

/// The scenario called `name`.
pub fn find(name: &str) -> Result<&'static dyn Scenario, UnknownScenario> {
    ALL.iter().copied().find(|scenario| scenario.name() == name).ok_or_else(|| UnknownScenario {
        name: name.into(),
        hint: match name {
            "network" => {
                "a network is described in a file, such as scenarios/two-flows.toml; ".into()
            }
            _ => nearest(name, ALL.iter().map(|scenario| scenario.name())),
        },
    })
}

/// The default settings of `scenario`.
pub fn defaults(scenario: &dyn Scenario) -> Settings {
    Settings::defaults(scenario.name(), scenario.parameters())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_declared_without_a_mistake() {
        for scenario in ALL {
            let defaults = defaults(*scenario);
            scenario.check(&defaults).unwrap();
            for axis in scenario.grid() {
                for value in axis.values {
                    defaults.clone().set(axis.parameter, value).unwrap();
                }
            }
            let documented = |name| scenario.metrics().iter().any(|metric| metric.name == name);
            assert!(documented(scenario.main_metric()), "{}", scenario.name());
            let replication = scenario.run(&defaults, 1, None);
            let measured: Vec<_> = replication.metrics.iter().map(|(name, _)| name).collect();
            let mut declared: Vec<_> = scenario.metrics().iter().map(|m| m.name).collect();
            declared.sort_unstable();
            assert_eq!(measured, declared, "{}", scenario.name());
        }
    }

    #[test]
    fn a_mistyped_scenario_is_answered_with_the_nearest() {
        let error = find("nagle-delak").err().unwrap().to_string();
        assert!(error.contains("did you mean \"nagle-delack\"?"), "{error}");
    }
}
