//! [`Blueprint`]: what a network's file describes, for worlds other than virtual time.
//!
//! The same nodes, links and flows, without the simulator: when applications write and how much is drawn
//! here from the same streams of random numbers as in virtual time, so that every world sees the same
//! writes. Whoever builds it says what it cannot build.

use acklab_core::packet::{Addr, NodeId};
use acklab_core::time::{Span, Time};
use acklab_sim::Topology;
use acklab_sim::app::RequestPattern;
use acklab_tcp::Config;

/// A network with flows over TCP.
#[derive(Debug)]
pub struct Blueprint<'a> {
    /// Nodes, links and the way that packets take.
    pub topology: &'a Topology,
    /// The flows, in the order of the file.
    pub flows: Vec<Conversation<'a>>,
    /// How long it runs.
    pub duration: Span,
}

/// A flow over TCP.
#[derive(Debug)]
pub struct Conversation<'a> {
    /// Name in results.
    pub name: &'a str,
    /// The end that connects, then the one that listens.
    pub ends: [Addr; 2],
    /// How TCP is set up at each.
    pub config: &'a [Config; 2],
    /// Bytes of a full packet at the IP layer.
    pub packet: u16,
    /// When it connects.
    pub start: Time,
    /// Nothing new is written from then on.
    pub stop: Time,
    /// What it carries.
    pub task: Task,
}

/// What a flow carries.
#[derive(Clone, Debug)]
pub enum Task {
    /// As much as the transport takes from the connecting end; so many bytes, or without end.
    Bulk(Option<u64>),
    /// The connecting end writes so many bytes at each of these times, rising.
    Writes(Vec<(Time, u32)>),
    /// The connecting end asks, the other answers.
    Requests(RequestPattern),
}

impl Conversation<'_> {
    /// Which of its ends sends the data under study: the one that answers requests, else the one that
    /// connects.
    pub const fn sender(&self) -> Addr {
        match self.task {
            Task::Requests(_) => self.ends[1],
            Task::Bulk(_) | Task::Writes(_) => self.ends[0],
        }
    }
}

impl Blueprint<'_> {
    /// The nodes at which data under study is sent, each once.
    pub fn senders(&self) -> Vec<NodeId> {
        let mut nodes: Vec<_> = self.flows.iter().map(|flow| flow.sender().node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}
