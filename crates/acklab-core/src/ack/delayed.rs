//! The plain delayed ACK: every n-th segment at once, a lone one after a fixed time from its arrival
//! (RFC 1122 section 4.2.3.2, RFC 9293 section 3.8.6.3).
//!
//! Serves the systems whose timer starts with the first unacknowledged segment: FreeBSD 12.1
//! (100 ms) and 12.2 (40 ms, `DELAY_ACK` in tcp_input.c), QNX 7.0 and NetBSD (200 ms,
//! `TCP_SETUP_ACK`), Windows 7 (200 ms) and 10 (40 ms), each counting segments of any size. A segment
//! longer than one MSS (merged by offload) is acknowledged at once, as is the first after a closed
//! window.
//!
//! With `quick` and `push` it is also the policy to try one's own numbers with: quick ACKs while a connection is young,
//! as Linux gives them, and PSH at once, as macOS does.

use super::{AckPolicy, DataSample, Decision};
use crate::time::{Span, Time};

crate::options! {
    /// The numbers of a system.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Options {
        /// After how many segments an ACK leaves at once.
        segments: u32 as count(1, 1_000_000) = "2",
        /// How long after its arrival a lone segment is acknowledged.
        delay: Span as positive_span() = "200ms",
        /// So many segments of a connection are acknowledged at once, one by one, before the first is delayed.
        quick: u32 as count(0, 1_000_000) = "0",
        /// Whether a segment with PSH is acknowledged at once.
        push: bool = "false",
    }
}

/// Every n-th segment, or `delay` after the first unacknowledged one.
#[derive(Clone, Copy, Debug)]
pub struct Delayed {
    segments: u32,
    delay: Span,
    /// Segments that are still to be acknowledged at once.
    quick: u32,
    push: bool,
    deadline: Option<Time>,
}

impl Delayed {
    /// A fresh connection.
    pub const fn new(_phase: f64, options: Options) -> Self {
        let Options { segments, delay, quick, push } = options;
        Self { segments, delay, quick, push, deadline: None }
    }

    /// Acknowledges every `segments`-th segment, and a lone one after `delay`.
    pub const fn every(segments: u32, delay: Span) -> Self {
        Self { segments, delay, quick: 0, push: false, deadline: None }
    }

    /// Other numbers from the next segment on; a timer that runs keeps its deadline.
    pub const fn adjust(&mut self, segments: u32, delay: Span) {
        (self.segments, self.delay) = (segments, delay);
    }
}

impl AckPolicy for Delayed {
    fn on_data(&mut self, now: Time, sample: &DataSample) -> Decision {
        let is_quick = self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        if is_quick || (self.push && sample.push) || is_due(self.segments, sample) {
            return Decision::Now;
        }
        self.deadline.get_or_insert(now + self.delay);
        Decision::Wait
    }

    fn on_request(&mut self, segments: u32) {
        self.segments = segments;
    }

    fn on_ack_sent(&mut self, _now: Time) {
        self.deadline = None;
    }

    fn handle_timeout(&mut self, now: Time, _rto: Span) -> Decision {
        expire(&mut self.deadline, now)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.deadline
    }
}

/// Whether the segment count or an exception calls for an ACK at once.
pub(super) const fn is_due(segments: u32, sample: &DataSample) -> bool {
    sample.unacked_segments >= segments || sample.len > sample.mss || sample.was_zero_window
}

/// Disarms a deadline that has come and asks for the ACK.
pub(super) fn expire(deadline: &mut Option<Time>, now: Time) -> Decision {
    if deadline.is_some_and(|at| at <= now) {
        *deadline = None;
        Decision::Now
    } else {
        Decision::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_segments_and_those_with_psh_are_acknowledged_at_once() {
        let delay = Span::from_millis(25);
        let mut policy = Delayed::new(0.0, Options { segments: 4, delay, quick: 2, push: true });
        let mut on_data = |unacked_segments, push| {
            let sample =
                DataSample { len: 100, mss: 1460, unacked_segments, push, ..DataSample::default() };
            policy.on_data(Time::ZERO, &sample)
        };
        assert_eq!([on_data(1, false), on_data(1, false)], [Decision::Now; 2]);
        let later = [1, 2, 3, 4].map(|segments| on_data(segments, false));
        assert_eq!(later, [Decision::Wait, Decision::Wait, Decision::Wait, Decision::Now]);
        assert_eq!(on_data(1, true), Decision::Now);
        assert_eq!(policy.poll_timeout(), Some(Time::ZERO + delay));
    }
}
