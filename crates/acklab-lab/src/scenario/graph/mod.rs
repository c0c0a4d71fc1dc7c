//! `network`: the graph of nodes, links and flows that a file describes.
//!
//! [`crate::network_file`] reads and checks the file, [`model`] makes a world of it, [`recorder`]
//! measures what the shared recorder of queues and flows does not: messages, exchanges, datagrams, and delays of
//! single packets ([`delays`]). A file's sweeps are the scenario's parameters and its grid.

mod asked;
mod closely;
mod delays;
mod metrics;
mod model;
mod recorder;
mod signals;

use std::fmt;

use acklab_core::event::Interest;
use acklab_core::packet::NodeId;
use acklab_core::time::{Span, Time};
use acklab_sim::{Observer, World};

use self::asked::Answers;
use self::closely::Closely;
use self::model::forever;
use self::recorder::{GraphRecorder, Measures};
use super::control::LOOP_METRICS;
use super::network::{Changes, NetworkRecorder};
use super::network_signals::follow;
use super::{Axis, Capture, Declaration, FileQuery, MOST_PACKETS, Replication, Scenario};
use crate::blueprint::Blueprint;
use crate::measured::MetricDoc;
use crate::monitor::{NetworkMonitor, NetworkRecord};
use crate::network_file::{self, FileMistake, Network, NetworkFile};
use crate::parameter::{DURATION, Kind, Parameter, SetError, Settings};
use crate::signal::{Segment, Signal, Watch};

/// The networks of a file.
pub struct Graph {
    file: NetworkFile,
    declaration: Declaration,
    /// What each network is asked, with the metric's name.
    queries: Vec<Vec<FileQuery>>,
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl Graph {
    /// The scenario of a file, which lives as long as the process: a plan and its results name their
    /// scenario for good, as they do a built-in one, and a process reads a file or two. Refuses queries that
    /// are none, or ask about what the network does not have.
    pub fn from_file(file: NetworkFile) -> Result<&'static Self, FileMistake> {
        let first = &file.networks()[0];
        let links: Vec<_> = first.links.iter().map(|link| forever(&link.name)).collect();
        let links: &'static [&'static str] = links.leak();
        let mut parameters = vec![
            Parameter {
                name: DURATION,
                default: forever(&first.duration.to_string()),
                kind: Kind::Span,
                doc: "Simulated time.",
            },
            Parameter {
                name: WATCH,
                default: links[first.watch[0] as usize],
                kind: Kind::Choice(links),
                doc: "The link whose queue is measured.",
            },
        ];
        let mut grid = Vec::new();
        for sweep in file.sweeps() {
            let labels: Vec<_> = sweep.labels.iter().map(|label| forever(label)).collect();
            let (name, labels): (_, &'static [&'static str]) =
                (forever(&sweep.name), labels.leak());
            parameters.push(Parameter {
                name,
                default: labels[0],
                kind: Kind::Choice(labels),
                doc: "One of the file's sweeps.",
            });
            if labels.len() > 1 {
                grid.push(Axis { parameter: name, values: labels });
            }
        }
        let queries = asked::bind(&file)?;
        let asked = queries[0].iter().map(FileQuery::doc);
        let of_loop = LOOP_METRICS.iter().filter(|_| first.loop_period().is_some());
        let own = metrics::METRICS.iter().chain(of_loop).copied();
        let of_hosts = metrics::declare_hosts(file.networks());
        let metrics: Vec<MetricDoc> = own.chain(of_hosts).chain(asked).collect();
        let declaration = Declaration {
            summary: forever(file.about().unwrap_or("a network of one's own, from a file")),
            parameters: parameters.leak(),
            replications: file.replications(),
            grid: grid.leak(),
            metrics: metrics.leak(),
            side_metrics: if first.loop_period().is_some() {
                WITH_LOOP
            } else {
                NETWORK.side_metrics
            },
            ..NETWORK
        };
        Ok(Box::leak(Box::new(Self { file, declaration, queries })))
    }

    /// Which of the file's networks the settings choose.
    fn cell(&self, settings: &Settings) -> usize {
        self.file.sweeps().iter().fold(0, |cell, sweep| {
            let label = settings.values().find(|(name, _)| *name == sweep.name);
            let label = label.map_or_else(String::new, |(_, value)| value.to_string());
            let index = sweep.labels.iter().position(|other| *other == label);
            cell * sweep.labels.len() + index.unwrap_or_default()
        })
    }

    /// What another world builds: the network under these settings, with the writes that `seed` draws. The
    /// reason where a flow is none over TCP.
    pub fn blueprint(&self, settings: &Settings, seed: u64) -> Result<Blueprint<'_>, String> {
        model::blueprint(self.network(settings), seed, self.duration(settings))
    }

    /// Plays one replication before another observer, who sees what passes `nodes` and the events of
    /// `interest`.
    pub fn observe<O: Observer>(
        &self,
        settings: &Settings,
        seed: u64,
        nodes: &[NodeId],
        interest: Interest,
        observer: O,
    ) -> O {
        let network = self.network(settings);
        let mut world = World::new(&network.topology, seed, interest, observer);
        for node in nodes {
            world.tap(*node);
        }
        model::open_flows(&mut world, network, seed);
        world.run_until(self.end(settings));
        world.into_observer()
    }

    fn network(&self, settings: &Settings) -> &Network {
        &self.file.networks()[self.cell(settings)]
    }

    fn duration(&self, settings: &Settings) -> Span {
        settings.duration().unwrap_or(self.network(settings).duration)
    }

    /// Index of the watched link.
    fn watched(&self, settings: &Settings) -> u32 {
        let network = self.network(settings);
        let name = settings.get::<&str>(WATCH);
        let index = network.links.iter().position(|link| Some(link.name.as_str()) == name);
        index.map_or(network.watch[0], |index| index as u32)
    }

    /// Every link to look at closer: the file's, or the one that was set.
    fn all_watched(&self, settings: &Settings) -> Vec<u32> {
        if settings.is_chosen(WATCH) {
            return vec![self.watched(settings)];
        }
        self.network(settings).watch.clone()
    }

    fn end(&self, settings: &Settings) -> Time {
        let duration = self.duration(settings);
        let measured = self.network(settings).measured.to;
        Time::ZERO + measured.map_or(duration, |to| to.min(duration))
    }

    /// Lets the flows run up to the end, and tells of every packet that has left one of `links` by then; the
    /// measurement begins where the file says. Returns the answers to the file's queries.
    fn play<O: Measures>(
        &self,
        world: &mut World<O>,
        settings: &Settings,
        seed: u64,
        links: &[u32],
    ) -> Answers {
        let network = self.network(settings);
        let (end, from) = (self.end(settings), Time::ZERO + network.measured.from);
        let mut answers = Answers::new(&self.queries[self.cell(settings)]);
        model::open_flows(world, network, seed);
        if from > Time::ZERO {
            answers.run(world, network, Time::ZERO, from);
            for link in links {
                world.tell_departures(*link, from);
            }
            world.observer_mut().begin(from);
        }
        answers.run(world, network, from, end);
        for link in links {
            world.tell_departures(*link, end);
        }
        answers
    }
}

/// What all networks have in common.
const NETWORK: Declaration = Declaration {
    name: network_file::SCENARIO,
    doc: "Nodes, links and flows as a file describes them; docs/network-file.md has the format. Packets \
          take the way of fewest links, and hosts take no time but for those with a processor. Throughput, fairness and \
          retransmissions are those of the flows over TCP and reliable UDP; queue, drops and marks those of the link \
          that is watched, in its direction.",
    main_metric: "throughput_bps",
    side_metrics: &[
        "queue_delay_ms",
        "queue_delay_p99_ms",
        "jain",
        "queue_mean_packets",
        "drops",
        "marks",
        "retransmissions",
        "timeouts",
    ],
    terms: &["rtt", "jain", "cdf"],
    ..Declaration::EMPTY
};

/// The same of a network with a control loop.
const WITH_LOOP: &[&str] = &[
    "itae_rad_s",
    "overshoot",
    "settling_ms",
    "loop_delay_ms",
    "missed_commands",
    "unstable_runs",
    "queue_delay_ms",
    "drops",
];

const WATCH: &str = "watch";

impl Scenario for Graph {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        let (duration, network) = (self.duration(settings), self.network(settings));
        let late = network.flows.iter().find(|(.., flow)| flow.start >= Time::ZERO + duration);
        if let Some((.., flow)) = late {
            let start = flow.start.since(Time::ZERO);
            let reason = format!("must be longer: flow {:?} starts at {start}", flow.name);
            return Err(settings.refuse(DURATION, reason));
        }
        if network.measured.from >= duration {
            let from = network.measured.from;
            return Err(
                settings.refuse(DURATION, format!("must be longer: measuring begins at {from}"))
            );
        }
        Ok(())
    }

    fn packets(&self, settings: &Settings) -> u64 {
        self.network(settings).packets(self.end(settings).as_secs_f64()) as u64
    }

    fn most_packets(&self) -> u128 {
        MOST_PACKETS
    }

    fn network_file(&self) -> Option<&NetworkFile> {
        Some(&self.file)
    }

    fn queries(&self, settings: &Settings) -> &[FileQuery] {
        &self.queries[self.cell(settings)]
    }

    fn signals(&self, settings: &Settings) -> Vec<Signal> {
        signals::list(self.network(settings)).into_iter().map(|(signal, _)| signal).collect()
    }

    fn watch(
        &self,
        settings: &Settings,
        path: &[Segment],
        until: Time,
        wanted: &[bool],
        each: Watch<'_>,
    ) {
        let network = self.network(settings);
        let open = |seed, changes: Changes| {
            let recorder =
                NetworkRecorder::new(model::watched(network, self.watched(settings)), None);
            let recorder = GraphRecorder::new(recorder, network, self.declaration.metrics, None);
            let mut world = World::new(&network.topology, seed, changes.interest(), recorder);
            if changes.has(Changes::ENDS) {
                model::tapped(network).for_each(|node| world.tap(node));
            }
            model::open_flows(&mut world, network, seed);
            world
        };
        follow(&signals::list(network), path, until, wanted, open, each);
    }

    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
        let (network, watched) = (self.network(settings), self.watched(settings));
        let (at, tap) = capture.map_or((None, None), |Capture { at, tap }| (Some(at), Some(tap)));
        let at = at.map(|point| model::node_at(network, watched, point));
        let recorder = NetworkRecorder::new(model::watched(network, watched), tap);
        let recorder = GraphRecorder::new(recorder, network, self.declaration.metrics, at);
        let mut world = World::new(&network.topology, seed, NetworkMonitor::INTEREST, recorder);
        for node in model::tapped(network).chain(at) {
            world.tap(node);
        }
        let answers = self.play(&mut world, settings, seed, &[watched]);
        let (end, events) = (self.end(settings), world.events());
        answers.finish(world.into_observer().finish(end, events), end)
    }

    fn run_closely(
        &self,
        settings: &Settings,
        seed: u64,
        with_courses: bool,
    ) -> Option<(Replication, NetworkRecord)> {
        let (end, links) = (self.end(settings), self.all_watched(settings));
        let network = self.network(settings);
        let recorder = NetworkRecorder::new(model::watched(network, links[0]), None);
        let recorder = GraphRecorder::new(recorder, network, self.declaration.metrics, None);
        let flows = model::watched_flows(network);
        let watched = model::watched_links(network, &links);
        let monitor = NetworkMonitor::new(flows, watched, end, with_courses);
        let observer = Closely::new(recorder, monitor);
        let mut world = World::new(&network.topology, seed, NetworkMonitor::INTEREST, observer);
        for node in model::tapped(network) {
            world.tap(node);
        }
        let answers = self.play(&mut world, settings, seed, &links);
        let events = world.events();
        let (replication, record) = world.into_observer().finish(end, events);
        Some((answers.finish(replication, end), record))
    }
}
