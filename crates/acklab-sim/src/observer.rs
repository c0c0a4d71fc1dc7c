//! [`Observer`]: who watches a world.
//!
//! The world hands over every event that the sink's interest lets through, and every packet that
//! passes a tapped node, in the order in which they happen. An observer decides nothing.

use acklab_core::event::Event;
use acklab_core::packet::{NodeId, Packet};
use acklab_core::time::Time;

/// Watches a world.
pub trait Observer {
    /// Something happened.
    fn on_event(&mut self, event: &Event);

    /// A packet passed `node`, which is tapped: it left its host there, arrived at its host, or was
    /// forwarded.
    fn on_packet(&mut self, _now: Time, _node: NodeId, _packet: &Packet) {}
}

/// Watches nothing.
impl Observer for () {
    fn on_event(&mut self, _event: &Event) {}
}
