//! [`Outbox`]: packets between their computation and their departure.

use std::collections::VecDeque;

use acklab_core::packet::Packet;
use acklab_core::time::Time;

/// Packets with the times at which they leave, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox(VecDeque<(Time, Packet)>);

impl Outbox {
    /// Lets `packet` leave at `at`.
    pub(super) fn push(&mut self, at: Time, packet: Packet) {
        self.0.push_back((at, packet));
    }

    /// The next packet that leaves by `now`.
    pub(super) fn pop(&mut self, now: Time) -> Option<Packet> {
        self.0.pop_front_if(|(at, _)| *at <= now).map(|(_, packet)| packet)
    }

    /// When the next packet leaves.
    pub(super) fn next(&self) -> Option<Time> {
        self.0.front().map(|(at, _)| *at)
    }
}
