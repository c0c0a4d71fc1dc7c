//! Scenarios: experiments with a name, typed parameters and documented metrics.
//!
//! A scenario turns settings and a seed into one replication; everything around it (replications,
//! threads, pooling, JSON, reports, captures) is the laboratory's and the same for all. [`Graph`] is the
//! scenario of a network that a file describes; a [`Catalog`] holds those with a name.

pub mod control;
mod graph;
pub mod network;
pub mod network_signals;

use acklab_core::packet::Packet;
use acklab_core::time::Time;
use acklab_stats::BoundQuery;

use crate::expected::{Comparison, Expected};
use crate::held::HeldExchange;
use crate::measured::{MetricDoc, Metrics};
use crate::monitor::NetworkRecord;
use crate::network_file::{self, NetworkFile};
use crate::parameter::{Parameter, SetError, Settings, nearest};
use crate::signal::{Segment, Signal, Watch};

pub use graph::Graph;

/// What a scenario is, apart from its run.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Name on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// What it models and what it leaves out, in a few sentences.
    pub doc: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// What is measured.
    pub metrics: &'static [MetricDoc],
    /// The metric whose distribution is the result: plotted, tabled and written as samples.
    pub main_metric: &'static str,
    /// Metrics to show beside it, one number each.
    pub side_metrics: &'static [&'static str],
    /// Replications where none are asked for.
    pub replications: u64,
    /// What `--all` varies: every combination is a case, the last axis fastest.
    pub grid: &'static [Axis],
    /// The figures of its report: which cases of the grid are drawn together.
    pub figures: &'static [Comparison],
    /// What the report of one case draws over time: a title, and the signals in that figure.
    pub courses: &'static [(&'static str, &'static [&'static str])],
    /// Keys of the glossary entries that a reader of its report may need.
    pub terms: &'static [&'static str],
}

impl Declaration {
    /// One replication, and nothing else yet: what a declaration builds on.
    pub const EMPTY: Self = Self {
        name: "",
        summary: "",
        doc: "",
        parameters: &[],
        metrics: &[],
        main_metric: "",
        side_metrics: &[],
        replications: 1,
        grid: &[],
        figures: &[],
        courses: &[],
        terms: &[],
    };

    /// The default settings.
    pub fn defaults(&self) -> Settings {
        Settings::defaults(self.name, self.parameters)
    }
}

/// An experiment in virtual time.
pub trait Scenario: Sync {
    /// What it is.
    fn declaration(&self) -> &Declaration;

    /// Its name, which can be told before the rest is known.
    fn name(&self) -> &'static str {
        self.declaration().name
    }

    /// Where it runs.
    fn world(&self) -> &'static str {
        "sim"
    }

    /// What theory says of the main metric under these settings, where it says anything.
    fn expected(&self, _settings: &Settings) -> Option<Expected> {
        None
    }

    /// Refuses combinations of settings that make no sense together.
    fn check(&self, _settings: &Settings) -> Result<(), SetError> {
        Ok(())
    }

    /// What is done under these settings otherwise than their words say, in one sentence.
    fn note(&self, _settings: &Settings) -> Option<String> {
        None
    }

    /// About how many packets and polls a replication under these settings takes: what bounds a plan.
    fn packets(&self, settings: &Settings) -> u64;

    /// What a plan may send unless it is told otherwise. Where each data packet leaves some 130 bytes of
    /// samples, which are kept until the end, this is under 1.5 GB.
    fn most_packets(&self) -> u128 {
        10_000_000
    }

    /// What a query may speak about under these settings; nothing where it cannot be verified.
    fn signals(&self, _settings: &Settings) -> Vec<Signal> {
        Vec::new()
    }

    /// What its file asks about each run.
    fn queries(&self, _settings: &Settings) -> &[FileQuery] {
        &[]
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

    /// The same without a capture; nothing where it could not be made, as on a kernel whose run was interrupted.
    fn attempt(&self, settings: &Settings, seed: u64) -> Option<Replication> {
        Some(self.run(settings, seed, None))
    }

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

/// A query that a file asks about each of its runs: a metric of that name.
#[derive(Clone, Debug)]
pub struct FileQuery {
    /// The metric's name.
    pub name: &'static str,
    /// The query over the scenario's signals.
    pub bound: BoundQuery,
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
    /// For each group of flows.
    pub groups: Vec<Flow>,
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
                network_file::SCENARIO => {
                    "a network is described in a file, such as scenarios/two-flows.toml; ".into()
                }
                _ if name.contains(['/', '.']) => "a file of a scenario ends in .toml; ".into(),
                _ => nearest(name, self.iter().map(Scenario::name)),
            },
        })
    }
}

/// What a plan may send where little is kept of a packet: this bounds the time, to about half an hour of a CPU.
pub const MOST_PACKETS: u128 = 1_000_000_000;

/// The default settings of `scenario`.
pub fn defaults(scenario: &dyn Scenario) -> Settings {
    scenario.declaration().defaults()
}
