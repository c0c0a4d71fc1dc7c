//! The outgoing command queue and what holds it back: an ACK policy of the core.
//!
//! XUDP's own timer is a delayed ACK that no number of packets cuts short; without it every packet is
//! answered at once. Any other policy of [`acklab_core::ack`] can stand in its place.

use acklab_core::ack::{AckPolicy, DataSample, Decision, Policy};
use acklab_core::time::{Span, Time};

use super::packet::Command;

pub(super) struct Acknowledging {
    policy: Policy,
    packet: u32,
    commands: Vec<Command>,
    /// Packets, and their bytes, whose commands wait.
    packets: u32,
    bytes: u32,
    due: bool,
}

impl Acknowledging {
    /// `packet` is the size of a full packet in bytes: the MSS, as the policy sees it.
    pub(super) fn new(policy: Policy, packet: u32) -> Self {
        Self { policy, packet, commands: Vec::new(), packets: 0, bytes: 0, due: false }
    }

    /// A packet of `bytes` came that asks for these commands.
    pub(super) fn on_packet(
        &mut self,
        now: Time,
        bytes: u32,
        commands: impl IntoIterator<Item = Command>,
        (srtt, rto): (Option<Span>, Span),
    ) {
        self.commands.extend(commands);
        self.packets += 1;
        self.bytes += bytes;
        let sample = DataSample {
            len: bytes,
            mss: self.packet,
            unacked_segments: self.packets,
            unacked_bytes: self.bytes,
            window: WINDOW,
            window_not_shrunk: true,
            srtt,
            rto,
            ..DataSample::default()
        };
        self.due |= self.policy.on_data(now, &sample) == Decision::Now;
    }

    /// A packet may leave for the commands alone.
    pub(super) fn is_due(&self) -> bool {
        self.due && !self.commands.is_empty()
    }

    /// A packet leaves: it takes all commands along.
    pub(super) fn take(&mut self, now: Time) -> Vec<Command> {
        if !self.commands.is_empty() {
            self.policy.on_ack_sent(now);
        }
        (self.packets, self.bytes, self.due) = (0, 0, false);
        std::mem::take(&mut self.commands)
    }

    pub(super) fn handle_timeout(&mut self, now: Time, rto: Span) {
        if self.policy.poll_timeout().is_some_and(|due| due <= now) {
            self.due |= self.policy.handle_timeout(now, rto) == Decision::Now;
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.policy.poll_timeout()
    }
}

/// XUDP has no receive window; policies that ask for one see the largest of TCP without scaling.
const WINDOW: u32 = 65_535;
