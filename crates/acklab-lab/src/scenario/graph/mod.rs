//! `network`: the graph of nodes, links and flows that a file describes.
//!
//! [`crate::network_file`] reads and checks the file, [`model`] makes a world of it, [`recorder`]
//! measures what the shared recorder of queues and flows does not: messages, exchanges, datagrams.

mod closely;
mod model;
mod recorder;

use std::fmt;

use acklab_core::event::Interest;
use acklab_core::packet::NodeId;
use acklab_core::time::{Span, Time};
use acklab_sim::{Observer, World};

use self::closely::Closely;
use self::recorder::GraphRecorder;
use super::network::NetworkRecorder;
use super::network_signals::{Source, follow, of_flows, of_network};
use super::{Capture, Declaration, Replication, Scenario};
use crate::blueprint::Blueprint;
use crate::monitor::{NetworkMonitor, NetworkRecord};
use crate::network_file::{self, NetworkFile, Traffic};
use crate::parameter::{DURATION, Kind, Parameter, SetError, Settings};
use crate::signal::{Segment, Signal, Watch};

/// A network from a file.
pub struct Graph {
    file: NetworkFile,
    declaration: Declaration,
    /// Names of the links, by their index.
    links: &'static [&'static str],
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl Graph {
    /// The scenario of a file, which lives as long as the process: a plan and its results name their
    /// scenario for good, as they do a built-in one, and a process reads a file or two.
    pub fn from_file(file: NetworkFile) -> &'static Self {
        let forever = |text: &str| -> &'static str { Box::leak(Box::from(text)) };
        let links: Vec<_> = file.links().iter().map(|link| forever(&link.name)).collect();
        let links: &'static [&'static str] = links.leak();
        let parameters = vec![
            Parameter {
                name: DURATION,
                default: forever(&file.duration().to_string()),
                kind: Kind::Span,
                doc: "Simulated time.",
            },
            Parameter {
                name: WATCH,
                default: links[file.watch() as usize],
                kind: Kind::Choice(links),
                doc: "The link whose queue is measured.",
            },
        ];
        let declaration = Declaration {
            summary: forever(file.about().unwrap_or("a network of one's own, from a file")),
            parameters: parameters.leak(),
            replications: file.replications(),
            ..NETWORK
        };
        Box::leak(Box::new(Self { file, declaration, links }))
    }

    /// What another world builds: the network under these settings, with the writes that `seed` draws. The
    /// reason where a flow is none over TCP.
    pub fn blueprint(&self, settings: &Settings, seed: u64) -> Result<Blueprint<'_>, String> {
        model::blueprint(&self.file, seed, self.duration(settings))
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
        let mut world = World::new(self.file.topology(), seed, interest, observer);
        for node in nodes {
            world.tap(*node);
        }
        self.play(&mut world, seed, self.end(settings), &[]);
        world.into_observer()
    }

    /// The number of each flow with a connection in the file.
    fn tcp_flows(&self) -> impl Iterator<Item = usize> {
        let flows = self.file.flows().iter().enumerate();
        flows
            .filter(|(_, (.., flow))| !matches!(flow.traffic, Traffic::Datagrams(_)))
            .map(|(index, _)| index)
    }

    fn named_signals(&self) -> Vec<(Signal, Source)> {
        let mut signals = of_network();
        signals.extend(of_flows(self.tcp_flows()));
        signals
    }

    fn duration(&self, settings: &Settings) -> Span {
        settings.duration().unwrap_or(self.file.duration())
    }

    /// Index of the watched link.
    fn watched(&self, settings: &Settings) -> u32 {
        let name = settings.get::<&str>(WATCH);
        let index = self.links.iter().position(|link| Some(*link) == name);
        index.map_or(self.file.watch(), |index| index as u32)
    }

    /// Every link to look at closer: the file's, or the one that was set.
    fn all_watched(&self, settings: &Settings) -> Vec<u32> {
        if settings.is_chosen(WATCH) {
            return vec![self.watched(settings)];
        }
        self.file.all_watched().to_vec()
    }

    fn end(&self, settings: &Settings) -> Time {
        Time::ZERO + self.duration(settings)
    }

    /// Lets the flows run up to `end`, and tells of every packet that has left one of `links` by then;
    /// returns the number of events.
    fn play<O: Observer>(&self, world: &mut World<O>, seed: u64, end: Time, links: &[u32]) -> u64 {
        model::open_flows(world, &self.file, seed);
        world.run_until(end);
        for link in links {
            world.tell_departures(*link, end);
        }
        world.events()
    }
}

/// What all networks have in common.
const NETWORK: Declaration = Declaration {
    name: network_file::SCENARIO,
    doc: "Nodes, links and flows as a file describes them; docs/network-file.md has the format. Packets \
          take the way of fewest links, and hosts take no time. Throughput, fairness and \
          retransmissions are those of the flows over TCP and reliable UDP; queue, drops and marks those of the link \
          that is watched, in its direction.",
    metrics: &recorder::METRICS,
    main_metric: "throughput_bps",
    side_metrics: &["jain", "queue_mean_packets", "drops", "marks", "retransmissions", "timeouts"],
    terms: &["rtt", "jain", "cdf"],
    ..Declaration::EMPTY
};

const WATCH: &str = "watch";

impl Scenario for Graph {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn check(&self, settings: &Settings) -> Result<(), SetError> {
        let duration = self.duration(settings);
        let late = self.file.flows().iter().find(|(.., flow)| flow.start >= Time::ZERO + duration);
        late.map_or(Ok(()), |(.., flow)| {
            let start = flow.start.since(Time::ZERO);
            let reason = format!("must be longer: flow {:?} starts at {start}", flow.name);
            Err(settings.refuse(DURATION, reason))
        })
    }

    fn packets(&self, settings: &Settings) -> u64 {
        self.file.packets(self.duration(settings).as_secs_f64()) as u64
    }

    fn network_file(&self) -> Option<&NetworkFile> {
        Some(&self.file)
    }

    fn signals(&self, _settings: &Settings) -> Vec<Signal> {
        self.named_signals().into_iter().map(|(signal, _)| signal).collect()
    }

    fn watch(
        &self,
        settings: &Settings,
        path: &[Segment],
        until: Time,
        wanted: &[bool],
        each: Watch<'_>,
    ) {
        let open = |seed, interest| {
            let recorder =
                NetworkRecorder::new(model::watched(&self.file, self.watched(settings)), None);
            let mut world = World::new(self.file.topology(), seed, interest, recorder);
            model::open_flows(&mut world, &self.file, seed);
            world
        };
        follow(&self.named_signals(), path, until, wanted, open, each);
    }

    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
        let watched = self.watched(settings);
        let (at, tap) = capture.map_or((None, None), |Capture { at, tap }| (Some(at), Some(tap)));
        let at = at.map(|point| model::node_at(&self.file, watched, point));
        let network = NetworkRecorder::new(model::watched(&self.file, watched), tap);
        let recorder = GraphRecorder::new(network, &self.file, at);
        let mut world = World::new(self.file.topology(), seed, Interest::ALL, recorder);
        for node in model::tapped(&self.file).chain(at) {
            world.tap(node);
        }
        let end = self.end(settings);
        let events = self.play(&mut world, seed, end, &[watched]);
        world.into_observer().finish(end, events)
    }

    fn run_closely(
        &self,
        settings: &Settings,
        seed: u64,
        with_courses: bool,
    ) -> Option<(Replication, NetworkRecord)> {
        let (end, links) = (self.end(settings), self.all_watched(settings));
        let network = NetworkRecorder::new(model::watched(&self.file, links[0]), None);
        let recorder = GraphRecorder::new(network, &self.file, None);
        let flows = model::watched_flows(&self.file);
        let senders: Vec<_> = flows.iter().map(|flow| flow.sender.node).collect();
        let watched = model::watched_links(&self.file, &links);
        let monitor = NetworkMonitor::new(flows, watched, end, with_courses);
        let observer = Closely::new(recorder, monitor);
        let mut world = World::new(self.file.topology(), seed, NetworkMonitor::INTEREST, observer);
        for node in model::tapped(&self.file).chain(senders) {
            world.tap(node);
        }
        let events = self.play(&mut world, seed, end, &links);
        Some(world.into_observer().finish(end, events))
    }
}
