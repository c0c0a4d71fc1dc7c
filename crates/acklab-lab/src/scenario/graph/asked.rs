//! The queries of a file: bound to its signals, and answered by each of its runs.

use std::ops::ControlFlow;

use acklab_core::time::Time;
use acklab_sim::World;
use acklab_stats::query::{self, Path, Query, Reduction, Within};
use acklab_stats::{RunMonitor, RunOutcome};

use super::model::forever;
use super::recorder::{Measures, Shown};
use super::signals;
use crate::measured::{Measured, MetricDoc};
use crate::network_file::{FileMistake, Network, NetworkFile};
use crate::scenario::network_signals::step_through;
use crate::scenario::{FileQuery, Replication};

/// The queries of each of the file's networks.
pub(super) fn bind(file: &NetworkFile) -> Result<Vec<Vec<FileQuery>>, FileMistake> {
    let of_network = |network: &Network| {
        let names: Vec<_> =
            signals::list(network).into_iter().map(|(signal, _)| signal.name).collect();
        let one = |asked: &crate::network_file::Asked| {
            let refuse =
                |reason: String| file.mistake(&asked.at, format!("{}: {reason}", asked.name));
            let mut parsed =
                query::parse(&asked.text).map_err(|error| refuse(error.to_string()))?;
            let end = network.measured.to.unwrap_or(network.duration);
            let times = Within { from: network.measured.from.as_secs_f64(), to: end.as_secs_f64() };
            if !times_of(&mut parsed, times) {
                let reason = "a query of a file is Pr[..](..) or E[..](..), with a bound or without: it has one \
                              value in each run";
                return Err(refuse(reason.into()));
            }
            let text = parsed.to_string();
            let bound = parsed.bind(&text, &names).map_err(|error| refuse(error.to_string()))?;
            Ok(FileQuery { name: forever(&asked.name), bound })
        };
        network.queries.iter().map(one).collect()
    };
    file.networks().iter().map(of_network).collect()
}

/// Gives a query the times that are measured, where it says none itself; says whether each run answers it with one
/// value.
fn times_of<S>(query: &mut Query<S>, times: Within) -> bool {
    let within = match query {
        Query::Probability(measure) | Query::Hypothesis { measure, .. } => {
            match &mut measure.path {
                Path::Eventually(within, _)
                | Path::Always(within, _)
                | Path::Until(_, within, _) => within,
            }
        }
        Query::Expectation { value, .. } => &mut value.within,
        _ => return false,
    };
    if times.from > 0.0 {
        within.get_or_insert(times);
    }
    true
}

impl FileQuery {
    /// As a metric.
    pub(super) fn doc(&self) -> MetricDoc {
        let share = match self.bound.query() {
            Query::Expectation { value, .. } => matches!(value.reduction, Reduction::Share),
            _ => true,
        };
        MetricDoc {
            name: self.name,
            unit: if share { "share" } else { "" },
            doc: forever(&format!("{}. One sample per replication.", self.bound.text())),
        }
    }
}

/// The answers of one run, while it goes on.
pub(super) struct Answers {
    names: Vec<&'static str>,
    monitors: Vec<RunMonitor>,
    wanted: Vec<usize>,
}

impl Answers {
    pub(super) fn new(queries: &[FileQuery]) -> Self {
        let signals = |query: &FileQuery| query.bound.signals().to_vec();
        Self {
            names: queries.iter().map(|query| query.name).collect(),
            monitors: queries.iter().map(|query| query.bound.monitor(0)).collect(),
            wanted: queries.iter().flat_map(signals).collect(),
        }
    }

    /// Lets the world run.
    pub(super) fn run<O: Measures>(
        &mut self,
        world: &mut World<O>,
        network: &Network,
        from: Time,
        until: Time,
    ) {
        if self.monitors.is_empty() {
            world.run_until(until);
            return;
        }
        let listed = signals::list(network).into_iter().enumerate();
        let sources: Vec<Option<Shown>> = listed
            .map(|(index, (_, shown))| self.wanted.contains(&index).then_some(shown))
            .collect();
        // Nobody stops it before the end.
        let _ = step_through(world, &[], from..=until, &sources, &mut |now, values| {
            for monitor in &mut self.monitors {
                monitor.observe(now.as_secs_f64(), values);
            }
            ControlFlow::Continue(())
        });
    }

    /// The replication with the answers among its metrics.
    pub(super) fn finish(self, mut replication: Replication, end: Time) -> Replication {
        for (name, monitor) in self.names.into_iter().zip(self.monitors) {
            let value = match monitor.finish(end.as_secs_f64()) {
                RunOutcome::Formula { holds, .. } => Some(f64::from(u8::from(holds))),
                RunOutcome::Value(value) => value,
                _ => None,
            };
            replication.metrics.insert(name, Measured::Samples(value.into_iter().collect()));
        }
        replication
    }
}
