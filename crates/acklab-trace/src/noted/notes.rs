//! What is left of a direction for inference: its facts, its counters and its packets.

use acklab_core::time::Time;

use super::Line;
use super::event::{Counts, Event};
use super::framing::Framing;
use super::opening::Openings;
use crate::flow::DirectionFacts;

/// Everything that was noted of one direction, which is over.
pub(crate) struct Notes<'a> {
    pub(crate) facts: &'a DirectionFacts,
    pub(crate) opposite: &'a DirectionFacts,
    /// First and last new data segment.
    pub(crate) span: Option<[Time; 2]>,
    /// Exact, whatever the list holds.
    pub(crate) counts: Counts,
    /// Its packets in the order of the capture; of a bulk transfer those around small segments.
    pub(crate) events: Vec<Event>,
    /// So many of them were judged before, and are there for what follows.
    pub(crate) judged: usize,
    /// The list ended before the direction did.
    pub(crate) sampled: bool,
    /// Most segments are full ones in bursts.
    pub(crate) bulk: bool,
    /// What its bytes said.
    pub(crate) content: Content,
    /// Frames of the peer's segments, each with how many of its messages were complete by then; empty where the framing of either
    /// direction is not known.
    pub(crate) heard: Vec<(u64, u64)>,
    /// Last byte of data over time, decimated.
    pub(crate) data_line: Line,
    /// Last byte acknowledged over time, decimated.
    pub(crate) ack_line: Line,
}

/// What the bytes of the stream said.
pub(crate) struct Content {
    /// The protocol whose framing fits.
    pub(crate) framing: Option<Framing>,
    pub(crate) openings: Openings,
    /// Delay of each message above the least of all, by time stamps in the data, milliseconds; empty
    /// where there are none.
    pub(crate) stamped_delays_ms: Vec<f64>,
}

impl Notes<'_> {
    /// From the first new data segment to the last, seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.span.map_or(0.0, |[first, last]| last.since(first).as_secs_f64())
    }

    /// Whether the capture holds no packet of the receiver, nor shows that one passed: what was unacknowledged is not known.
    pub(crate) fn is_deaf(&self) -> bool {
        self.facts.packets.pure_acks + self.facts.packets.acks_on_data == 0
    }

    /// The effective MSS, bytes.
    pub(crate) fn mss(&self) -> u32 {
        self.facts.stream.mss
    }
}
