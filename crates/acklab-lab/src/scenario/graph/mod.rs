//! `graph`: a network of the user's own, link by link, from a scenario file.
//!
//! Nodes are the names that links mention. Routes are the paths of fewest links; a flow without a way
//! there and back is refused with its place in the file. Flows are TCP and write all the time; the
//! metrics are those of the link to be watched and of the flows. Left out: datagrams, other traffic
//! and impairments, which the built-in scenarios and the library have.

mod entries;

use acklab_core::event::Interest;
use acklab_core::packet::Addr;
use acklab_core::seq::Seq;
use acklab_core::tcp::Config;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_sim::app::{App, Bulk, Reader, ReaderModel};
use acklab_sim::{End, Topology, World};
use toml::Spanned;

pub use entries::{FlowEntry, GraphError, LinkEntry, build};

use self::entries::FlowSpec;
use super::network::{NETWORK_METRICS, NetworkRecorder, Watched};
use super::{Axis, Capture, CapturePoint, Replication, Scenario};
use crate::measured::MetricDoc;
use crate::parameter::{Kind, Parameter, SetError, Settings};

/// A network of the user's own.
#[derive(Clone, Debug)]
pub struct Graph {
    topology: Topology,
    flows: Vec<FlowSpec>,
    watched: u32,
    rate: BitRate,
    links: Vec<Spanned<LinkEntry>>,
    entries: Vec<Spanned<FlowEntry>>,
}

impl Graph {
    /// The scenario's name in a file.
    pub const NAME: &'static str = "graph";

    /// The entries that it was built from.
    pub fn entries(&self) -> (&[Spanned<LinkEntry>], &[Spanned<FlowEntry>]) {
        (&self.links, &self.entries)
    }
}

impl Scenario for Graph {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn summary(&self) -> &'static str {
        "a network of your own, link by link, from a scenario file"
    }

    fn doc(&self) -> &'static str {
        "TCP flows that write all the time over the links of the file."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn metrics(&self) -> &'static [MetricDoc] {
        &NETWORK_METRICS
    }

    fn main_metric(&self) -> &'static str {
        "throughput_bps"
    }

    fn side_metrics(&self) -> &'static [&'static str] {
        &["jain", "queue_packets", "drops"]
    }

    fn replications(&self) -> u64 {
        1
    }

    fn grid(&self) -> &'static [Axis] {
        &[]
    }

    fn terms(&self) -> &'static [&'static str] {
        &["rtt"]
    }

    fn check(&self, _settings: &Settings) -> Result<(), SetError> {
        Ok(())
    }

    fn packets(&self, settings: &Settings) -> u64 {
        let bits = self.rate.as_bps() as f64 * settings.span("duration").as_secs_f64();
        (2.0 * bits / (8.0 * FULL_PACKET)) as u64
    }

    fn run(&self, settings: &Settings, seed: u64, capture: Option<Capture<'_>>) -> Replication {
        let (at, tap) = capture.map_or((None, None), |Capture { at, tap }| (Some(at), Some(tap)));
        let watched = Watched {
            bottleneck: self.watched,
            rate: self.rate,
            senders: self.flows.iter().map(|flow| (flow.from, flow.name.clone())).collect(),
            wire_factor: FULL_PACKET / FULL_PAYLOAD,
            mss: FULL_PAYLOAD,
            period: Span::from_millis(1),
        };
        let recorder = NetworkRecorder::new(watched, tap);
        let mut world = World::new(&self.topology, seed, Interest::ALL, recorder);
        if let Some((point, flow)) = at.zip(self.flows.first()) {
            world.tap(match point {
                CapturePoint::Sender => flow.from,
                CapturePoint::Middle | CapturePoint::Receiver => flow.to,
            });
        }
        for flow in &self.flows {
            let config = Config { congestion: flow.cc.clone(), ..Config::default() };
            let end = |node, app: Box<dyn App>| End {
                addr: Addr { node, port: PORT },
                config: config.clone(),
                isn: Seq(0),
                app,
            };
            let reader = Reader::new(ReaderModel::Promptly, u32::MAX);
            let sender = end(flow.from, Box::new(Bulk::unlimited()));
            world.connect_at(flow.start, sender, end(flow.to, Box::new(reader)));
        }
        let end = Time::ZERO + settings.span("duration");
        world.run_until(end);
        let events = world.events();
        let mut recorder = world.into_observer();
        let (metrics, flows) = recorder.finish(end);
        Replication { hash: recorder.hash(), events, metrics, flows, longest_hold: None }
    }

    fn graph(&self) -> Option<&Graph> {
        Some(self)
    }
}

const PARAMETERS: &[Parameter] =
    &[Parameter { name: "duration", default: "30s", kind: Kind::Span, doc: "Simulated time." }];

/// Ethernet's payload, and what headers with timestamps leave of it, bytes.
const FULL_PACKET: f64 = 1500.0;
const FULL_PAYLOAD: f64 = 1448.0;
const PORT: u16 = 5001;
