//! [`RoundTrips`]: round trips as a capture at the sender shows them.
//!
//! From a segment's departure to the acknowledgment that covers it, the receiver's wait for more data
//! included. One sample for each acknowledgment, of the last segment that it covers; none where it covers
//! a segment that was sent again, because which copy it answers is not known (Karn and Partridge 1987), and
//! what was acknowledged with it had waited for that one.

use std::collections::VecDeque;

use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};

/// A segment on its way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: Seq,
    at: Time,
    again: bool,
}

/// The segments of one sender that are not acknowledged.
#[derive(Clone, Debug, Default)]
pub struct RoundTrips {
    sent: VecDeque<Sent>,
}

impl RoundTrips {
    /// A segment left.
    pub fn on_sent(&mut self, now: Time, tcp: &TcpRepr) {
        if tcp.payload_len == 0 {
            return;
        }
        let end = Seq(tcp.seq.0.wrapping_add(tcp.payload_len));
        let first = self.sent.partition_point(|sent| !sent.end.after(tcp.seq));
        let again = first < self.sent.len();
        for sent in self.sent.iter_mut().skip(first) {
            sent.again = true;
            if !sent.end.before(end) {
                return;
            }
        }
        self.sent.push_back(Sent { end, at: now, again });
    }

    /// The round trip that an acknowledgment tells of.
    pub fn on_acknowledged(&mut self, now: Time, tcp: &TcpRepr) -> Option<Span> {
        if !tcp.flags.has(Flags::ACK) {
            return None;
        }
        let covered = self.sent.partition_point(|sent| !sent.end.after(tcp.ack));
        let again = self.sent.iter().take(covered).any(|sent| sent.again);
        let last = self.sent.drain(..covered).next_back()?;
        (!again).then(|| now.since(last.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn segment(seq: u32, payload_len: u32) -> TcpRepr {
        TcpRepr { seq: Seq(seq), payload_len, ..TcpRepr::default() }
    }

    fn ack(number: u32) -> TcpRepr {
        TcpRepr { ack: Seq(number), flags: Flags::ACK, ..TcpRepr::default() }
    }

    #[test]
    fn one_sample_for_each_acknowledgment() {
        let mut trips = RoundTrips::default();
        let start = u32::MAX - 150;
        for (ms, count) in [(0, 0), (3, 1), (5, 2)] {
            trips.on_sent(at(ms), &segment(start.wrapping_add(100 * count), 100));
        }
        assert_eq!(
            trips.on_acknowledged(at(20), &ack(start.wrapping_add(200))),
            Some(Span::from_millis(17))
        );
        assert_eq!(
            trips.on_acknowledged(at(21), &ack(start.wrapping_add(200))),
            None,
            "nothing new"
        );
        assert_eq!(
            trips.on_acknowledged(at(30), &ack(start.wrapping_add(300))),
            Some(Span::from_millis(25))
        );
    }

    #[test]
    fn a_segment_that_was_sent_again_gives_no_sample_nor_what_waited_for_it() {
        let mut trips = RoundTrips::default();
        for count in 0..3 {
            trips.on_sent(at(u64::from(count)), &segment(100 * count, 100));
        }
        trips.on_sent(at(50), &segment(0, 100));
        assert_eq!(trips.on_acknowledged(at(60), &ack(300)), None);
        trips.on_sent(at(61), &segment(300, 100));
        assert_eq!(trips.on_acknowledged(at(70), &ack(400)), Some(Span::from_millis(9)));
    }

    #[test]
    fn pure_acknowledgments_are_not_waited_for() {
        let mut trips = RoundTrips::default();
        trips.on_sent(at(0), &segment(0, 0));
        assert_eq!(trips.on_acknowledged(at(9), &ack(1)), None);
    }
}
