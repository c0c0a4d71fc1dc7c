//! The lists of a direction while the capture is read; made when the first note is.

use acklab_core::time::{Span, Time};

use super::Line;
use super::framing::{FrameReader, Piece};
use super::notes::{Content, Drawings, Notes};
use super::scenes::Scenes;
use super::tape::Tape;
use super::values::{
    AckRecord, Arrival, Candidate, Counts, Fill, Pause, RECORDS_MAX, Silence, Violation,
};
use crate::flow::DirectionFacts;
use crate::flow::observe::{AckSeen, DataSeen};

/// The notes of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// Candidates, ACKs and arrivals.
    tape: Tape,
    /// When the last ACK on the tape passed, if it was pure and is not yet answered.
    answerable: Option<Time>,
    violations: Vec<Violation>,
    fills: Vec<Fill>,
    silences: Vec<Silence>,
    arrivals: Arrivals,
    frames: FrameReader,
    scenes: Scenes,
    data_line: Line,
    ack_line: Line,
}

/// What becomes of arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Arrivals {
    #[default]
    Noted,
    /// Those noted so far are a sample.
    Ended,
    /// Those noted so far are of no use either: the direction is bulk.
    Useless,
}

impl Log {
    /// Any data of the direction.
    #[inline]
    pub(super) fn on_data(&mut self, seen: &DataSeen<'_>) {
        self.scenes.on_data(seen);
    }

    /// Any packet of the peer.
    #[inline]
    pub(super) fn on_ack(&mut self, seen: &AckSeen) {
        self.scenes.on_ack(seen);
    }

    /// New data up to `end`.
    pub(super) fn note_arrival(&mut self, seen: &DataSeen<'_>, end: u64, counts: &Counts) {
        self.data_line.push(seen.time, end);
        if self.arrivals != Arrivals::Noted {
            return;
        }
        let bulk = counts.segments > BULK_AFTER && counts.burst * 2 > counts.segments;
        if bulk || !self.tape.has_room_for_arrival() {
            self.arrivals = if bulk { Arrivals::Useless } else { Arrivals::Ended };
            return;
        }
        let DataSeen { time, offset, len, payload, .. } = *seen;
        let frames = if self.frames.is_live() {
            self.frames.on_data(Piece { time, offset, len, payload })
        } else {
            0
        };
        self.tape.push_arrival(&Arrival { time, end, frames });
    }

    /// A small segment left while a small one was unacknowledged.
    pub(super) fn note_violation(&mut self, violation: Violation) {
        if self.violations.len() < RECORDS_MAX {
            self.violations.push(violation);
        }
    }

    /// What left just before lost data was sent again, and is not acknowledged up to `acked`, may have
    /// been a loss probe.
    pub(super) fn note_repair(&mut self, acked: u64) {
        let open = self.violations.iter_mut().rev().take_while(|v| v.end > acked);
        open.take(PROBES_MAX).for_each(|v| v.repair = true);
    }

    /// A possible hold.
    pub(super) fn note_candidate(&mut self, candidate: &Candidate) {
        if self.tape.push_candidate(candidate) {
            self.scenes.on_candidate(candidate);
        }
    }

    /// A segment that perhaps filled up; whether there was room for it.
    pub(super) fn note_fill(&mut self, fill: Fill) -> bool {
        let room = self.fills.len() < RECORDS_MAX;
        if room {
            self.fills.push(fill);
            self.scenes.on_fill(&fill);
        }
        room
    }

    /// More data followed the last fill at once.
    pub(super) fn note_burst(&mut self) {
        if let Some(fill) = self.fills.last_mut() {
            fill.burst = true;
        }
    }

    /// A silence of the sender; what has no room is summed up in `more`.
    pub(super) fn note_silence(&mut self, silence: Silence, more: &mut Pause) {
        if self.silences.len() < RECORDS_MAX / 16 {
            self.silences.push(silence);
        } else {
            more.count += 1;
            more.nanos += silence.nanos;
        }
    }

    /// The receiver acknowledged more, up to `acked_to`.
    #[inline]
    pub(super) fn note_progress(&mut self, time: Time, acked_to: u64) {
        self.ack_line.push(time, acked_to);
    }

    /// An ACK that came some time after the data.
    pub(super) fn note_ack(&mut self, ack: &AckRecord) {
        if self.tape.push_ack(ack) {
            self.answerable = ack.pure.then_some(ack.time);
        }
    }

    /// Data of the peer, the last of this direction having passed at `last`: right after the peer's
    /// ACK, with nothing new to answer in between, it marks that ACK.
    pub(super) fn note_answer(&mut self, now: Time, last: Option<Time>) {
        let Some(ack) = self.answerable else { return };
        if now.since(ack) < ANSWER && last.is_none_or(|t| t < ack) {
            self.tape.mark_ack_answered();
            self.answerable = None;
        }
    }

    /// Bytes held by the lists.
    pub(super) fn held_bytes(&self) -> usize {
        fn of<T>(list: &Vec<T>) -> usize {
            list.capacity() * size_of::<T>()
        }
        size_of::<Self>()
            + self.tape.held_bytes()
            + of(&self.violations)
            + of(&self.fills)
            + of(&self.silences)
    }

    /// Halves every list: the first half of what was seen stays, as a sample.
    pub(super) fn shed(&mut self) {
        fn halve<T>(list: &mut Vec<T>) {
            list.truncate(list.len() / 2);
            list.shrink_to_fit();
        }
        self.tape.shed();
        self.answerable = None;
        halve(&mut self.violations);
        halve(&mut self.fills);
        halve(&mut self.silences);
        if self.arrivals == Arrivals::Noted {
            self.arrivals = Arrivals::Ended;
        }
    }

    /// The notes, with the facts of the direction and of the opposite one.
    pub(super) fn into_notes(
        self,
        [facts, opposite]: [&DirectionFacts; 2],
        span: Option<[Time; 2]>,
        counts: Counts,
    ) -> Notes<'_> {
        let lists = self.tape.unroll();
        let useless = self.arrivals == Arrivals::Useless;
        Notes {
            facts,
            opposite,
            span,
            counts,
            candidates: lists.candidates,
            violations: self.violations,
            fills: self.fills,
            acks: lists.acks,
            arrivals: if useless { Vec::new() } else { lists.arrivals },
            silences: self.silences,
            content: Content {
                framing: self.frames.framing(),
                stamped_delays_ms: self.frames.stamped_delays_ms(),
            },
            drawings: Drawings {
                scenes: self.scenes.into_kept(),
                data_line: self.data_line,
                ack_line: self.ack_line,
            },
        }
    }
}

/// After so many segments a direction of back-to-back full segments is bulk, and its arrivals are
/// of no use.
const BULK_AFTER: u64 = 512;
/// Segments that a repair is looked back for.
const PROBES_MAX: usize = 8;
/// Data this soon after an ACK of the same host came from the read that caused the ACK.
const ANSWER: Span = Span::from_millis(1);
