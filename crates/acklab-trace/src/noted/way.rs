//! What the sender knew: acknowledgments on their way from the capture point to the data's sender.
//!
//! A capture elsewhere than at the sender sees an ACK before the sender does, and the data that it
//! lets go a whole round trip (far) later. In between, other data passes that left without that
//! ACK. So each ACK is delivered to Nagle's state only shortly before anything it lets go can pass:
//! the order of events is then that at the sender, and their times stay those of the capture. The
//! round trip is that of the handshake; without one ACKs count at once.

use std::collections::VecDeque;

use acklab_core::time::{Span, Time};

use crate::flow::observe::AckSeen;

/// Share of far that an ACK stays on its way: the handshake may have been slower than the path.
const WAY_PER_CENT: u64 = 90;
/// Hosts answer a handshake up to this much slower than an ACK.
const ANSWER: Span = Span::from_millis(1);
/// Nearer senders are as good as captured at.
const FAR_LEAST: Span = Span::from_millis(4);
/// More ACKs on their way at once are delivered early.
const WAITING_MAX: usize = 4_096;

/// ACKs on their way to the sender, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Way {
    length: Span,
    known: bool,
    waiting: VecDeque<AckSeen>,
}

impl Way {
    /// Sets the way's length once, from the round trip to the sender by the handshake.
    #[inline]
    pub(super) fn measure(&mut self, far: Option<Span>) {
        if self.known {
            return;
        }
        self.known = true;
        if let Some(far) = far.filter(|far| *far >= FAR_LEAST) {
            self.length =
                Span::from_nanos(far.as_nanos() / 100 * WAY_PER_CENT).saturating_sub(ANSWER);
        }
    }

    /// Takes an ACK; gives back one that counts at once.
    #[inline]
    pub(super) fn enter(&mut self, seen: &AckSeen) -> Option<AckSeen> {
        if self.length == Span::ZERO {
            return Some(*seen);
        }
        self.waiting.push_back(*seen);
        if self.waiting.len() > WAITING_MAX { self.waiting.pop_front() } else { None }
    }

    /// An ACK that was there before what passes the capture point `now` left.
    #[inline]
    pub(super) fn arrived(&mut self, now: Time) -> Option<AckSeen> {
        let due = self.waiting.front().is_some_and(|seen| self.end(seen.time) <= now);
        if due { self.waiting.pop_front() } else { None }
    }

    /// When data can pass that left because of a packet which passed at `time` the other way.
    #[inline]
    pub(super) fn end(&self, time: Time) -> Time {
        time + self.length
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<AckSeen>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(ms: u64) -> AckSeen {
        AckSeen {
            frame: ms,
            time: Time::from_nanos(ms * 1_000_000),
            acked_to: ms,
            newly_acked: 1,
            newly_acked_segments: 1,
            pure: true,
            payload_len: 0,
            duplicate: false,
            sacks: false,
            window: None,
            oldest_age: None,
            newest_age: None,
            in_flight: 0,
        }
    }

    #[test]
    fn an_ack_counts_a_little_before_its_round_trip_is_over() {
        let mut way = Way::default();
        way.measure(Some(Span::from_millis(70)));
        assert!(way.enter(&ack(100)).is_none());
        assert!(way.arrived(Time::from_nanos(161_000_000)).is_none());
        assert_eq!(way.arrived(Time::from_nanos(162_000_000)).map(|a| a.frame), Some(100));
    }

    #[test]
    fn at_the_sender_an_ack_counts_at_once() {
        let mut way = Way::default();
        way.measure(Some(Span::from_micros(30)));
        assert_eq!(way.enter(&ack(100)).map(|a| a.frame), Some(100));
    }
}
