//! Scenarios: experiments with a name, typed parameters and documented metrics.
//!
//! A scenario turns settings and a seed into one replication; everything around it (replications,
//! threads, pooling, JSON, reports, captures) is the laboratory's and the same for all. [`Graph`] is the
//! scenario of a network that a file describes; a [`Catalog`] holds those with a name.

mod graph;
pub mod network;
pub mod network_signals;

use acklab_core::packet::Packet;
use acklab_core::time::Time;

use crate::expected::{Comparison, Expected};
use crate::held::HeldExchange;
use crate::measured::{MetricDoc, Metrics};
use crate::monitor::NetworkRecord;
use crate::network_file::NetworkFile;
use crate::parameter::{Parameter, SetError, Settings, nearest};
use crate::signal::{Segment, Signal, Watch};

pub use graph::Graph;

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

    /// The same replication with a closer look at every flow and every watched link, and what it showed;
    /// `None` where a scenario does not offer that. Courses over time are kept if `with_courses`.
    fn run_closely(
        &self,
        _settings: &Settings,
        _seed: u64,
        _with_courses: bool,
    ) -> Option<(Replication, NetworkRecord)> {
        None
    }
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

/// The scenarios that a program knows by name.
#[derive(Clone, Copy)]
pub struct Catalog(pub &'static [&'static dyn Scenario]);

impl Catalog {
    /// All of them, in the order in which they are listed.
    pub fn iter(self) -> impl Iterator<Item = &'static dyn Scenario> {
        self.0.iter().copied()
    }

    /// The scenario called `name`.
    pub fn find(self, name: &str) -> Result<&'static dyn Scenario, UnknownScenario> {
        self.iter().find(|scenario| scenario.name() == name).ok_or_else(|| UnknownScenario {
            name: name.into(),
            hint: match name {
                "network" => {
                    "a network is described in a file, such as scenarios/two-flows.toml; ".into()
                }
                _ => nearest(name, self.iter().map(Scenario::name)),
            },
        })
    }
}

/// The default settings of `scenario`.
pub fn defaults(scenario: &dyn Scenario) -> Settings {
    Settings::defaults(scenario.name(), scenario.parameters())
}
