//! The path that scenarios of two hosts share: sender, a point half way, receiver.
//!
//! Each hop takes a quarter of the round trip, so that a capture in the middle sees the two halves
//! alike. Where hosts take time, too (`overhead`), the receiver's transport stands behind
//! one more hop, of which a capture at the receiver sees the near end, as a real one does.

use acklab_core::link::LinkConfig;
use acklab_core::packet::{Addr, NodeId};
use acklab_core::time::Span;
use acklab_core::units::BitRate;
use acklab_sim::Topology;

use acklab_lab::scenario::CapturePoint;

/// What the path is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathSpec {
    pub(super) rtt: Span,
    pub(super) rate: BitRate,
    pub(super) overhead: Span,
    /// Share of packets lost, at the middle, in each direction.
    pub(super) loss: f64,
}

/// A path and where things are on it.
pub(super) struct Path {
    pub(super) topology: Topology,
    pub(super) sender: Addr,
    pub(super) receiver: Addr,
    middle: NodeId,
    receiver_port: NodeId,
}

impl Path {
    pub(super) fn new(spec: &PathSpec) -> Self {
        let mut topology = Topology::default();
        let [sender, middle, receiver_port] = std::array::from_fn(|_| topology.node());
        let hop = spec.rtt / 4;
        // What four quarters leave over, so that the round trip is exact.
        let rest = spec.rtt.saturating_sub(hop * 4);
        let near = LinkConfig::new(spec.rate, hop);
        let far = LinkConfig::new(spec.rate, hop).with_loss(spec.loss);
        topology.link(sender, middle, LinkConfig::new(spec.rate, hop + rest));
        topology.link(middle, receiver_port, far.clone());
        topology.link(receiver_port, middle, near);
        topology.link(middle, sender, far);
        let receiver = if spec.overhead.is_zero() {
            receiver_port
        } else {
            let transport = topology.node();
            let inside = |delay| LinkConfig::new(BitRate::INFINITE, delay);
            topology.link(receiver_port, transport, inside(spec.overhead));
            topology.link(transport, receiver_port, inside(Span::ZERO));
            transport
        };
        Self {
            topology,
            sender: Addr { node: sender, port: SENDER_PORT },
            receiver: Addr { node: receiver, port: RECEIVER_PORT },
            middle,
            receiver_port,
        }
    }

    /// The node where a capture at `point` is made.
    pub(super) const fn node_at(&self, point: CapturePoint) -> NodeId {
        match point {
            CapturePoint::Sender => self.sender.node,
            CapturePoint::Middle => self.middle,
            CapturePoint::Receiver => self.receiver_port,
        }
    }
}

/// IEEE C37.118.2 over TCP: what sends small messages at a period.
const SENDER_PORT: u16 = 4712;
/// First port of RFC 6335's dynamic range.
const RECEIVER_PORT: u16 = 49_152;
