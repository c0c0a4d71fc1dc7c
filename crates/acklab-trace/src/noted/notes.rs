//! What is left of a direction for inference: its facts, its counters and the lists of its notes.

use acklab_core::time::Time;

use super::Line;
use super::framing::Framing;
use super::scenes::Scene;
use super::values::{AckRecord, Arrival, Candidate, Counts, Fill, Silence, Violation};
use crate::flow::DirectionFacts;

/// Everything that was noted of one direction, which is over.
pub(crate) struct Notes<'a> {
    pub(crate) facts: &'a DirectionFacts,
    pub(crate) opposite: &'a DirectionFacts,
    /// First and last new data segment.
    pub(crate) span: Option<[Time; 2]>,
    /// Exact, whatever the lists hold.
    pub(crate) counts: Counts,
    /// Possible holds.
    pub(crate) candidates: Vec<Candidate>,
    /// Proofs against Nagle.
    pub(crate) violations: Vec<Violation>,
    /// Possible MSS fills.
    pub(crate) fills: Vec<Fill>,
    /// Acknowledgments, for the receiver's policy.
    pub(crate) acks: Vec<AckRecord>,
    /// Segments in order; none of a bulk transfer.
    pub(crate) arrivals: Vec<Arrival>,
    /// Silences of the sender.
    pub(crate) silences: Vec<Silence>,
    /// What its bytes said.
    pub(crate) content: Content,
    /// For the figures.
    pub(crate) drawings: Drawings,
}

/// What the bytes of the stream said.
pub(crate) struct Content {
    /// The protocol whose framing fits.
    pub(crate) framing: Option<Framing>,
    /// Delay of each message above the least of all, by time stamps in the data, milliseconds; empty
    /// where there are none.
    pub(crate) stamped_delays_ms: Vec<f64>,
}

/// What can be drawn.
pub(crate) struct Drawings {
    /// Packets around possible holds.
    pub(crate) scenes: Vec<Scene>,
    /// Last byte of data over time, decimated.
    pub(crate) data_line: Line,
    /// Last byte acknowledged over time, decimated.
    pub(crate) ack_line: Line,
}

impl Notes<'_> {
    /// From the first new data segment to the last, seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.span.map_or(0.0, |[first, last]| last.since(first).as_secs_f64())
    }

    /// The effective MSS, bytes.
    pub(crate) fn mss(&self) -> u32 {
        self.facts.stream.mss
    }
}
