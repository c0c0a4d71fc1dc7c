//! The ACK frequency that this end asks of the peer on one path (docs/rudp.md section 5).

use super::received::FIRST_DELAY;
use crate::wire::Frame;
use acklab_core::time::{Span, Time};

acklab_core::options! {
    /// How rare the ACKs are that this end asks for.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Options {
        /// ACKs that this end asks for in each window; at 2 packets per ACK there are no fewer. Eight times as many,
        /// each packet at most, where the congestion control competes in a queue.
        ask_acks: u32 as count(2, 1000) = "8",
        /// Packets per ACK that this end asks for, at most; 1 is an ACK for each.
        ask_most: u32 as count(1, 65_536) = "16",
    }
}

/// Times as many ACKs, where the congestion control should hear of each packet. Ours; docs/lossy.md has what it brings.
const EACH: u64 = 8;

/// What was asked for last, and whether it is still to be said.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckRequests {
    options: Options,
    sequence: u64,
    packets: u64,
    delay: Span,
    reordering: u8,
    asked_at: Time,
    due: bool,
}

/// What an ACK frequency follows from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub(super) least_rtt: Span,
    pub(super) srtt: Span,
    /// The window, packets.
    pub(super) window: u64,
    /// Share of lost bytes.
    pub(super) lost: f64,
    /// The congestion control should hear of each packet.
    pub(super) each: bool,
}

impl AckRequests {
    pub(super) const fn new(options: Options) -> Self {
        let (packets, delay, reordering) = (2, FIRST_DELAY, 3);
        Self { options, sequence: 0, packets, delay, reordering, asked_at: Time::ZERO, due: false }
    }

    /// How long the peer may hold an ACK back.
    pub(super) const fn delay(&self) -> Span {
        self.delay
    }

    /// Whether the request is to leave.
    pub(super) const fn is_due(&self) -> bool {
        self.due
    }

    /// Asks anew when what it should be is a quarter off.
    pub(super) fn adapt(&mut self, now: Time, conditions: &Conditions) {
        let Conditions { least_rtt, srtt, window, lost, each } = *conditions;
        if self.sequence > 0 && now.since(self.asked_at) < srtt {
            return;
        }
        let delay = Span::from_nanos(least_rtt.as_nanos() / 5)
            .clamp(Span::from_millis(1), Span::from_millis(8));
        let Options { ask_acks, ask_most } = self.options;
        let (times, least) = if each { (EACH, 1) } else { (1, 2) };
        let packets = (window / (times * u64::from(ask_acks))).max(least).min(ask_most.into());
        let reordering = if lost > 0.01 { 0 } else { 3 };
        let off = |new: u64, old: u64| new.abs_diff(old) * 4 > old;
        let differs = off(packets, self.packets)
            || off(delay.as_nanos(), self.delay.as_nanos())
            || reordering != self.reordering;
        if self.sequence == 0 || differs {
            let sequence = self.sequence + 1;
            *self =
                Self { sequence, packets, delay, reordering, asked_at: now, due: true, ..*self };
        }
    }

    /// The frame about `path`, if it is to leave and takes no more than `room` bytes.
    pub(super) fn poll(&mut self, path: u8, room: usize) -> Option<Frame<'static>> {
        let frame = Frame::AckFrequency {
            path,
            sequence: self.sequence,
            packets: self.packets,
            delay_us: self.delay.as_micros(),
            reordering: self.reordering,
        };
        let leaves = self.due && frame.len() <= room;
        self.due &= !leaves;
        leaves.then_some(frame)
    }

    /// The packet with the request was lost.
    pub(super) const fn on_lost(&mut self) {
        self.due = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(window: u64, each: bool) -> u64 {
        let mut requests = AckRequests::new(Options::default());
        let trip = Span::from_millis(20);
        let conditions = Conditions { least_rtt: trip, srtt: trip, window, lost: 0.0, each };
        requests.adapt(Time::ZERO, &conditions);
        requests.packets
    }

    #[test]
    fn who_competes_in_a_queue_hears_of_each_packet_of_a_short_window() {
        assert_eq!([16, 64, 1000].map(|window| asked(window, false)), [2, 8, 16]);
        assert_eq!([16, 64, 128, 640, 4000].map(|window| asked(window, true)), [1, 1, 2, 10, 16]);
    }
}
