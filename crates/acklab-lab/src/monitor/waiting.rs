//! [`Waiting`]: packets on their way from one point to another, with the time at which each set out.

use std::collections::VecDeque;

use acklab_core::packet::Packet;
use acklab_core::time::{Span, Time};

/// Packets between two points. Few are looked at to find one, as most ways keep their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    packets: VecDeque<(Time, Packet)>,
}

impl Waiting {
    /// A packet sets out.
    pub(crate) fn push(&mut self, at: Time, packet: &Packet) {
        self.packets.push_back((at, *packet));
    }

    /// A packet has arrived: since when it was on its way. Nothing where it never set out, or is a copy of one
    /// that has arrived.
    pub(crate) fn take(&mut self, now: Time, packet: &Packet) -> Option<Span> {
        let place = self.packets.iter().position(|(_, other)| is_same(packet, other))?;
        self.packets.remove(place).map(|(at, _)| now.since(at))
    }

    /// The same on a way that loses packets and keeps their order: those that set out earlier were lost.
    pub(crate) fn take_in_order(&mut self, now: Time, packet: &Packet) -> Option<Span> {
        let place = self.packets.iter().position(|(_, other)| is_same(packet, other))?;
        self.packets.drain(..=place).next_back().map(|(at, _)| now.since(at))
    }

    /// A packet was thrown away, most often the last that came.
    pub(crate) fn drop(&mut self, packet: &Packet) {
        let place = self.packets.iter().rposition(|(_, other)| is_same(packet, other));
        place.and_then(|place| self.packets.remove(place));
    }
}

/// Whether two packets are one, which a queue may have marked. Of two copies it does not matter which
/// one is meant.
fn is_same(one: &Packet, other: &Packet) -> bool {
    one.src == other.src && one.dst == other.dst && one.body == other.body
}
