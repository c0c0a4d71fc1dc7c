//! Acknowledge every segment at once: no delay at all (RFC 9293 section 3.8.6.3 makes delaying a
//! SHOULD, not a MUST; Windows does this with `TcpAckFrequency` 1, Linux with permanent quickack).

use super::{AckPolicy, DataSample, Decision};
use crate::time::{Span, Time};

/// Never waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct EverySegment;

impl EverySegment {
    /// A fresh connection.
    pub const fn new(_phase: f64) -> Self {
        Self
    }
}

impl AckPolicy for EverySegment {
    fn on_data(&mut self, _now: Time, _sample: &DataSample) -> Decision {
        Decision::Now
    }

    fn on_ack_sent(&mut self, _now: Time) {}

    fn handle_timeout(&mut self, _now: Time, _rto: Span) -> Decision {
        Decision::Wait
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}
