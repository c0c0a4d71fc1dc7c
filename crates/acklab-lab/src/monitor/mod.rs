//! A closer look at a network: every flow and the watched links, over time and in distribution.
//!
//! [`NetworkMonitor`] is fed with the events and packets of a world and gives a [`NetworkRecord`]: for each
//! flow its throughput, window and round trips, for each watched link its queue, how long packets wait in
//! it, drops and marks. What is kept does not grow with the run: courses are sums over cells of time
//! ([`cells`]), distributions are counts ([`Delays`]). Only what is on its way is kept packet by packet.

mod cells;
mod course;
mod delays;
mod flow;
mod link;
mod rtt;
mod waiting;

use std::collections::BTreeMap;

use acklab_core::event::{Event, EventKind, Interest};
use acklab_core::packet::{NodeId, Packet};
use acklab_core::time::Time;

use self::cells::Grid;
use self::flow::FlowMonitor;
use self::link::LinkMonitor;

pub use cells::Points;
pub use course::Course;
pub(crate) use course::MOST_KEPT;
pub use delays::Delays;
pub use flow::{FlowRecord, WatchedFlow};
pub use link::{LinkRecord, WatchedLink};
pub use rtt::RoundTrips;
pub(crate) use waiting::Waiting;

/// What a closer look at a network saw.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct NetworkRecord {
    /// Replications that are in it.
    pub replications: u64,
    /// Measured time of each, seconds.
    pub duration_s: f64,
    /// Each flow.
    pub flows: Vec<FlowRecord>,
    /// Each watched link.
    pub links: Vec<LinkRecord>,
}

impl NetworkRecord {
    /// Adds another replication of the same network.
    pub fn pool(&mut self, other: Self) {
        if self.replications == 0 {
            *self = other;
            return;
        }
        self.replications += other.replications;
        for (flow, more) in self.flows.iter_mut().zip(&other.flows) {
            flow.pool(more);
        }
        for (link, more) in self.links.iter_mut().zip(&other.links) {
            link.pool(more);
        }
    }

    /// Simulated seconds of all replications together.
    pub fn seconds(&self) -> f64 {
        self.duration_s * self.replications as f64
    }
}

/// Watches the flows and links of a network.
pub struct NetworkMonitor {
    flows: Vec<FlowMonitor>,
    by_port: BTreeMap<u16, usize>,
    links: Vec<LinkMonitor>,
    /// The measurement begins here.
    since: Time,
}

impl NetworkMonitor {
    /// What a world has to tell it.
    pub const INTEREST: Interest = Interest::ALL.with(Interest::PASSAGE);

    /// Watches `flows` and `links` until `end`; courses are kept where they are asked for, and of the first
    /// [`MOST_DRAWN`] flows.
    pub fn new(
        flows: Vec<WatchedFlow>,
        links: Vec<WatchedLink>,
        end: Time,
        with_courses: bool,
    ) -> Self {
        let cells = |cells| Grid::new(end, if with_courses { cells } else { 1 });
        let grids = [cells(FINE), cells(COARSE)];
        let by_port = flows.iter().enumerate().map(|(index, flow)| (flow.sender.port, index));
        Self {
            by_port: by_port.collect(),
            flows: flows
                .into_iter()
                .enumerate()
                .map(|(index, flow)| {
                    let drawn = with_courses && index < MOST_DRAWN;
                    FlowMonitor::new(flow, drawn.then_some(grids))
                })
                .collect(),
            links: links
                .into_iter()
                .map(|link| LinkMonitor::new(link, grids, with_courses))
                .collect(),
            since: Time::ZERO,
        }
    }

    /// The measurement begins at `now`: the warm-up is over.
    pub fn begin(&mut self, now: Time) {
        self.since = now;
        self.flows.iter_mut().for_each(FlowMonitor::begin);
        self.links.iter_mut().for_each(|link| link.begin(now));
    }

    /// Something happened.
    pub fn on_event(&mut self, event: &Event) {
        let (at, kind) = (event.time, &event.kind);
        match kind {
            EventKind::Congestion { flow, cwnd, acked, .. } => {
                if let Some(monitor) = self.flow(flow.local.port) {
                    monitor.on_congestion(at, flow.local, *cwnd, *acked);
                }
            }
            EventKind::AckRate { flow, segments, most } => {
                if let Some(monitor) = self.flow(flow.remote.port) {
                    monitor.on_ack_rate(at, flow.remote, [*segments, *most]);
                }
            }
            EventKind::Queue { link, .. }
            | EventKind::Offered { link, .. }
            | EventKind::Served { link, .. } => self.on_link_event(*link, at, kind),
            EventKind::Dropped { link, packet, .. } | EventKind::Marked { link, packet } => {
                self.on_link_event(*link, at, kind);
                if let Some(flow) = self.flow(packet.src.port) {
                    flow.on_packet_event(kind);
                }
            }
            _ => {}
        }
    }

    /// A packet passed a node: of flows over TCP it must be told at the sender's.
    pub fn on_packet(&mut self, now: Time, node: NodeId, packet: &Packet) {
        if let Some(flow) = self.flow(packet.src.port) {
            flow.on_packet(now, node, packet);
        }
    }

    /// Datagrams of so many bytes reached their receiver, not counting copies.
    pub fn on_datagrams(&mut self, now: Time, port: u16, bytes: u64) {
        if let Some(flow) = self.flow(port) {
            flow.on_datagrams(now, bytes);
        }
    }

    /// Ends the look: what one replication showed.
    pub fn finish(self, end: Time) -> NetworkRecord {
        NetworkRecord {
            replications: 1,
            duration_s: end.since(self.since).as_secs_f64(),
            flows: self.flows.into_iter().map(|flow| flow.finish(end)).collect(),
            links: self.links.into_iter().map(|link| link.finish(end)).collect(),
        }
    }

    fn flow(&mut self, port: u16) -> Option<&mut FlowMonitor> {
        self.by_port.get(&port).map(|index| &mut self.flows[*index])
    }

    fn on_link_event(&mut self, link: u32, at: Time, kind: &EventKind) {
        for monitor in self.links.iter_mut().filter(|monitor| monitor.index() == link) {
            monitor.on_event(at, kind);
        }
    }
}

/// Flows that are drawn: more lines than this cannot be told apart.
pub const MOST_DRAWN: usize = 12;
/// Cells of what is drawn as it runs, not as a mean: windows, queues.
const FINE: u64 = 600;
/// Cells of what comes in portions and would be noise in finer ones: throughput, drops.
const COARSE: u64 = 120;
