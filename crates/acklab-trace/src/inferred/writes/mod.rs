//! What the application wrote, and when.

mod beat;
mod hull;
mod unit;

pub(crate) use beat::Beat;
pub(super) use unit::{UNIT_MIN, gcd};

use acklab_core::time::Time;
use schemars::JsonSchema;
use serde::Serialize;

use self::unit::{Unit, alone, boundary_unit, gathered_unit, messages_per_segment};
use super::Hold;
use crate::inferred::replay::Arrival;
use crate::noted::Notes;
use crate::noted::opening::Openings;

/// What the application wrote.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Writes {
    /// Bytes of one message where one size dominates.
    pub message_bytes: Option<u32>,
    /// Time between messages, milliseconds, where they are periodic.
    pub period_ms: Option<f64>,
    /// Messages counted.
    pub messages: Option<u64>,
    /// Where boundaries come from: `framing`, `sizes` or `segments` (each counts as one).
    pub source: &'static str,
    /// The protocol that the payload of either direction shows.
    pub protocol: Option<&'static str>,
    /// What the server's port usually stands for, where the payload shows no protocol: a guess.
    pub protocol_by_port: Option<&'static str>,
    /// Of the messages that came in pieces, most were cut between header and body.
    pub header_apart: bool,
    /// Exchanges in which a request went out as two or more small writes.
    pub split_writes: u64,
    /// How sure, 0 to 1.
    pub confidence: f64,
}

/// The messages in the segments of a direction.
pub(crate) struct Messages {
    pub(super) arrivals: Vec<Arrival>,
    /// Messages that each segment completes.
    counts: Vec<u32>,
    pub(super) unit: Unit,
    /// Only where writes came while others waited.
    pub(super) beat: Option<Beat>,
}

impl Messages {
    /// The messages of a direction whose segments came like this, and in which ACKs released so many
    /// holds.
    pub(super) fn of(notes: &Notes<'_>, arrivals: Vec<Arrival>, holds: usize) -> Self {
        let mut found = Self::with_any_beat(notes, arrivals, holds);
        if !found.coalesced() {
            found.beat = None;
        }
        found
    }

    fn with_any_beat(notes: &Notes<'_>, arrivals: Vec<Arrival>, holds: usize) -> Self {
        let unit = Unit::of(&arrivals, notes.content.framing);
        if holds >= HOLDS_SHOWN
            && !matches!(unit, Unit::Framing(_))
            && let Some((unit, counts, beat)) = Self::gathered(&arrivals)
        {
            return Self { arrivals, counts, unit, beat: Some(beat) };
        }
        let counts = messages_per_segment(&arrivals, unit);
        if counts.iter().map(|c| *c as usize).sum::<usize>() > beat::MESSAGES_MAX {
            let counts = vec![1; arrivals.len()];
            return Self { arrivals, counts, unit: Unit::Segment, beat: None };
        }
        let beat = (unit != Unit::Segment).then(|| Beat::find(&arrivals, &counts)).flatten();
        Self { arrivals, counts, unit, beat }
    }

    /// Equal writes that gathered in every segment, if they keep a beat.
    fn gathered(arrivals: &[Arrival]) -> Option<(Unit, Vec<u32>, Beat)> {
        let unit = Unit::Size(gathered_unit(arrivals)?);
        let mut counts = messages_per_segment(arrivals, unit);
        // What else was sent (a greeting, say) was not on the beat.
        for (count, arrival) in counts.iter_mut().zip(arrivals) {
            let whole = unit.bytes().is_some_and(|b| arrival.len.is_multiple_of(b));
            if !whole {
                *count = 0;
            }
        }
        let beat = Beat::find(arrivals, &counts)?;
        let fits = beat.fills_its_segments(&counts);
        fits.then_some((unit, counts, beat))
    }

    /// Whether segments carry several messages often enough that writes came while others waited.
    fn coalesced(&self) -> bool {
        let several = self.counts.iter().filter(|c| **c >= 2).count();
        several >= 3 && several * 20 >= self.counts.len()
    }

    /// The size of one message: that of the framing; else of the unit, or what divides the steps between the ends of
    /// small segments, or the first segment, which nothing held, if these are multiples of it.
    pub(super) fn bytes(&self, mss: u32) -> Option<u32> {
        if let Unit::Framing(framing) = self.unit
            && let Some(bytes) = framing.size
        {
            return Some(bytes);
        }
        let unit = self.unit.bytes().or_else(|| boundary_unit(&self.arrivals, mss))?;
        let first = self.arrivals.first().map_or(0, |first| first.len);
        let gathered = u64::from(first) >= UNIT_MIN && unit.is_multiple_of(first);
        Some(if gathered { first } else { unit })
    }

    /// The length of one message at each segment, if those around carry various numbers of such.
    pub(super) fn alone(&self) -> Vec<Option<u32>> {
        let lengths: Vec<u32> = self.arrivals.iter().map(|a| a.len).collect();
        let all = alone(&lengths);
        // Messages that count themselves grow.
        let stretch = |at: usize| &lengths[at * STEP..lengths.len().min((at + 2) * STEP)];
        let found: Vec<Option<u32>> = (0..lengths.len().div_ceil(STEP))
            .map(|at| all.or_else(|| alone(stretch(at))))
            .collect();
        let either = |i: usize| {
            let at = i / STEP;
            found[at].or_else(|| at.checked_sub(1).and_then(|before| found[before]))
        };
        (0..lengths.len()).map(either).collect()
    }

    /// The place of the segment that ends at `end` among those of its direction.
    pub(super) fn place_of(&self, end: u64) -> Option<usize> {
        self.arrivals.binary_search_by_key(&end, |a| a.end).ok()
    }

    /// Bytes of the segment before the one that ends at `end`.
    pub(super) fn before(&self, end: u64) -> Option<u32> {
        let at = self.place_of(end)?;
        at.checked_sub(1).map(|before| self.arrivals[before].len)
    }

    /// Messages in the segment that ends at `end`, at least one.
    pub(super) fn in_segment(&self, end: u64) -> u32 {
        self.place_of(end).and_then(|i| self.counts.get(i)).map_or(1, |c| (*c).max(1))
    }

    /// Messages in all of so many segments.
    pub(super) fn total(&self, segments: u64) -> u64 {
        let counted: u64 = self.counts.iter().map(|c| u64::from(*c)).sum();
        counted + segments.saturating_sub(self.counts.len() as u64)
    }

    /// When the first message of the segment that ends at `end` was written, by the beat.
    pub(super) fn written(&self, end: u64) -> Option<Time> {
        self.beat.as_ref()?.written(&self.arrivals, end)
    }

    /// Puts the writes of `holds` where the beat has them; those that were none are dropped.
    pub(super) fn place(&self, holds: &mut Vec<Hold>) {
        if let Some(beat) = &self.beat {
            beat.place(&self.arrivals, holds);
        }
    }

    /// What the application wrote, in the form of the result.
    pub(crate) fn writes(&self, holds: &[Hold], openings: &Openings, segments: u64) -> Writes {
        let again = holds.windows(2).filter(|w| !w[1].filled && w[1].before > w[0].release);
        let split = again.count() + usize::from(holds.first().is_some_and(|h| !h.filled));
        let (protocol, header_apart) = match self.unit {
            Unit::Framing(framing) => (Some(framing.protocol), framing.header_apart),
            Unit::Size(_) | Unit::Segment => (openings.protocol(), openings.has_headers_apart()),
        };
        let confidence = match self.unit {
            Unit::Framing(framing) => framing.confidence,
            Unit::Size(_) => 0.8,
            Unit::Segment => 0.0,
        };
        Writes {
            message_bytes: self.unit.bytes(),
            period_ms: self.beat.as_ref().map(|b| b.period_ms),
            messages: (segments > 0).then(|| self.total(segments)),
            source: self.unit.source(),
            protocol,
            protocol_by_port: None,
            header_apart,
            split_writes: split as u64,
            confidence,
        }
    }
}

/// Messages of one length stay so in twice as many segments.
const STEP: usize = 10;
/// So many holds show that segments gathered what was written meanwhile.
const HOLDS_SHOWN: usize = 8;
