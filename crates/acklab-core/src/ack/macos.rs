//! macOS (xnu `tcp_cc_delay_ack`, `net.inet.tcp.delayed_ack` = 3): a segment with PSH is
//! acknowledged at once; others are delayed, every second one acknowledged, and every eighth once a
//! stream is recognised.
//!
//! The stream is recognised after 512 segments at no more than
//! half a second from each other (our reading of `tcp_recv_throttle`; the exact byte test of xnu is
//! left out). The timer is 100 ms (`TCP_RETRANSHZ` / 10).

use super::delayed::expire;
use super::{AckPolicy, DataSample, Decision};
use crate::time::{Span, Time};

crate::options! {
    /// Its numbers.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Options {
        /// How long a segment without PSH waits.
        delay: Span as positive_span() = "100ms",
        /// Segments per ACK in a stream.
        stretch: u32 as count(1, 1000) = "8",
    }
}

/// PSH at once, streams stretched.
#[derive(Clone, Copy, Debug)]
pub struct MacOs {
    delay: Span,
    stretch: u32,
    streak: u32,
    last_data: Option<Time>,
    deadline: Option<Time>,
}

impl MacOs {
    /// A fresh connection.
    pub const fn new(_phase: f64, Options { delay, stretch }: Options) -> Self {
        Self { delay, stretch, streak: 0, last_data: None, deadline: None }
    }
}

impl AckPolicy for MacOs {
    fn on_data(&mut self, now: Time, sample: &DataSample) -> Decision {
        let in_stream = self.last_data.is_some_and(|last| now.since(last) <= STREAM_GAP);
        self.streak = if in_stream { self.streak.saturating_add(1) } else { 0 };
        self.last_data = Some(now);
        let every = if self.streak >= SLOW_START_SEGMENTS { self.stretch } else { 2 };
        if sample.push || sample.was_zero_window || sample.unacked_segments >= every {
            return Decision::Now;
        }
        self.deadline.get_or_insert(now + self.delay);
        Decision::Wait
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

/// Segments before ACKs are stretched: `TCP_RCV_SS_PKTCOUNT` of xnu.
const SLOW_START_SEGMENTS: u32 = 512;

/// A longer pause ends the stream: `tcp_rcvunackwin`, half a second.
const STREAM_GAP: Span = Span::from_millis(500);
