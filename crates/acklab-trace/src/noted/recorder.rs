//! Takes the notes of one direction while the capture is read: its packets on a [`Tape`], a few bytes
//! each, and what only its bytes can tell. What the data's sender knew at each moment is worked out when
//! the whole capture has shown how far away it was.
//!
//! Of a bulk transfer only what passes around small segments is kept.

use std::collections::VecDeque;

use acklab_core::time::{Span, Time};

use super::Line;
use super::event::{AckNote, Counts, DataNote, Event, Kind};
use super::framing::{FrameReader, Piece};
use super::notes::{Content, Notes};
use super::opening::Openings;
use super::tape::Tape;
use crate::flow::DirectionFacts;
use crate::flow::observe::{AckSeen, DataKind, DataSeen};

/// Takes notes on one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    /// One past the highest byte acknowledged.
    acked: u64,
    /// Where the receiver's window ends.
    edge: u64,
    /// The peer has sent data since it acknowledged something.
    peer_sent: bool,
    /// First and last new data segment.
    first: Option<Time>,
    last: Option<Time>,
    counts: Counts,
    log: Option<Box<Log>>,
}

/// What is made when the first segment passes.
#[derive(Clone, Debug, Default)]
struct Log {
    tape: Tape,
    /// Of a bulk transfer: what passed last and is not on the tape.
    recent: VecDeque<Event>,
    bulk: bool,
    /// So much more of a bulk transfer goes on the tape.
    follow: usize,
    /// So many packets at the beginning of the tape were judged before.
    judged: usize,
    frames: FrameReader,
    openings: Openings,
    messages: u64,
    /// Of the peer's messages, see [`Notes`].
    heard: Vec<(u64, u64)>,
    data_line: Line,
    ack_line: Line,
}

impl Recorder {
    /// A segment with payload or FIN, or a probe.
    pub(crate) fn on_data(&mut self, seen: &DataSeen<'_>) {
        let kind = match seen.kind {
            DataKind::Duplicate | DataKind::Probe => return,
            DataKind::Retransmission => Kind::Again,
            DataKind::Reordered => Kind::Late,
            DataKind::New => Kind::New,
            DataKind::NewAfterGap => Kind::Gap,
        };
        if seen.len == 0 {
            return;
        }
        let new = matches!(kind, Kind::New | Kind::Gap);
        let small = seen.len < seen.mss || !seen.len.is_multiple_of(seen.mss.max(1));
        let log = self.log.get_or_insert_with(Box::default);
        if new {
            self.counts.segments += 1;
            if !small {
                self.counts.full += 1;
                let burst = self.last.is_some_and(|last| seen.time.since(last) < BURST);
                self.counts.burst += u64::from(burst);
            }
            self.last = Some(seen.time);
            self.first = self.first.or(self.last);
            log.on_new(seen, &self.counts);
        }
        let DataSeen { frame, time, offset, len, push, exempt, hears_unseen, .. } = *seen;
        let frames = log.messages;
        let data = DataNote { frame, time, offset, len, frames, kind, push, exempt, hears_unseen };
        log.note(Event::Data(data), small || !new);
    }

    /// An acknowledgment of this direction, or any other packet of the peer, passes.
    pub(crate) fn on_ack(&mut self, seen: &AckSeen) {
        let edge = seen.window.map_or(self.edge, |window| self.edge.max(seen.acked_to + window));
        let progress = seen.acked_to > self.acked;
        let tells = progress || edge > self.edge || (seen.payload_len > 0 && !self.peer_sent);
        (self.acked, self.edge) = (self.acked.max(seen.acked_to), edge);
        self.peer_sent = seen.payload_len > 0 || (self.peer_sent && !progress);
        let Some(log) = self.log.as_deref_mut().filter(|_| tells) else { return };
        if progress {
            log.ack_line.push(seen.time, seen.acked_to);
        }
        let ages = seen.newest_age.zip(seen.oldest_age);
        let ack = AckNote {
            frame: seen.frame,
            time: seen.time,
            acked_to: self.acked,
            edge,
            ages: ages.map(|(newest, oldest)| [newest.as_nanos(), oldest.as_nanos()]),
            segments: seen.newly_acked_segments.min(u32::from(u16::MAX)) as u16,
            len: seen.payload_len,
            pure: seen.pure,
        };
        log.note(Event::Ack(ack), false);
    }

    /// Bytes held in lists.
    pub(crate) fn held_bytes(&self) -> usize {
        self.log.as_deref().map_or(0, |log| size_of::<Log>() + log.tape.held_bytes())
    }

    /// Gives up what can be done without: the first half of what was seen stays, as a sample.
    pub(crate) fn shed(&mut self) {
        if let Some(log) = self.log.as_deref_mut() {
            log.tape.shed();
        }
    }

    /// New data segments since the beginning, or since it began anew.
    pub(crate) fn segments(&self) -> u64 {
        self.counts.segments
    }

    /// Begins anew with empty notes, in the middle of the stream: what was noted last is kept, so that no hold is
    /// lost between the two.
    pub(crate) fn begin_anew(&mut self) {
        self.first = None;
        self.counts = Counts::default();
        let Some(log) = self.log.as_deref_mut() else { return };
        let mut events = std::mem::take(&mut log.tape).unroll();
        events.drain(..events.len().saturating_sub(RECENT));
        log.judged = events.len();
        for event in &events {
            log.tape.push(event);
        }
        (log.bulk, log.data_line, log.ack_line) = (false, Line::default(), Line::default());
    }

    /// Takes over where the peer's messages ended, if their framing is known.
    pub(crate) fn heed(&mut self, opposite: &Self) {
        let (Some(log), Some(peer)) = (self.log.as_deref_mut(), opposite.log.as_deref()) else {
            return;
        };
        if !peer.bulk
            && !log.bulk
            && peer.frames.framing().is_some()
            && log.frames.framing().is_some()
        {
            let ended = |event: Event| match event {
                Event::Data(data) => Some((data.frame, data.frames)),
                Event::Ack(_) => None,
            };
            log.heard = peer.tape.unroll().into_iter().filter_map(ended).collect();
        }
    }

    /// The notes, now that the direction is over.
    pub(crate) fn finish<'a>(
        self,
        facts: &'a DirectionFacts,
        opposite: &'a DirectionFacts,
    ) -> Notes<'a> {
        let log = self.log.map_or_else(Log::default, |log| *log);
        Notes {
            facts,
            opposite,
            span: self.first.zip(self.last).map(|(first, last)| [first, last]),
            counts: self.counts,
            judged: log.judged,
            sampled: log.tape.has_ended(),
            events: log.tape.unroll(),
            bulk: log.bulk,
            content: Content {
                // What named itself has messages of its own.
                framing: log
                    .frames
                    .framing()
                    .filter(|framing| framing.telling || log.openings.protocol().is_none()),
                openings: log.openings,
                stamped_delays_ms: log.frames.stamped_delays_ms(),
            },
            heard: log.heard,
            data_line: log.data_line,
            ack_line: log.ack_line,
        }
    }
}

impl Log {
    /// New data.
    fn on_new(&mut self, seen: &DataSeen<'_>, counts: &Counts) {
        let DataSeen { time, offset, len, payload, .. } = *seen;
        self.data_line.push(time, offset + u64::from(len));
        self.bulk |= counts.segments > BULK_AFTER && counts.burst * 2 > counts.segments;
        if !self.bulk {
            self.openings.on_data(len, payload);
        }
        if !self.bulk && self.frames.is_live() {
            self.messages = self.frames.on_data(Piece { time, offset, len, payload });
        }
    }

    /// Puts a packet on the tape; of a bulk transfer those around one that is `telling`.
    #[inline]
    fn note(&mut self, event: Event, telling: bool) {
        if self.bulk {
            self.note_bulk(event, telling);
        } else {
            self.tape.push(&event);
        }
    }

    fn note_bulk(&mut self, event: Event, telling: bool) {
        if !telling && self.follow == 0 {
            if self.recent.len() == RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(event);
            return;
        }
        self.follow = if telling { RECENT } else { self.follow - 1 };
        for earlier in self.recent.drain(..) {
            self.tape.push(&earlier);
        }
        self.tape.push(&event);
    }
}

/// Segments closer than this left in one go: 100 segments of 1500 bytes take 1.2 ms at 1 Gbit/s,
/// and no application that writes message by message is this fast for long.
pub(crate) const BURST: Span = Span::from_micros(300);
/// After so many segments a direction of back-to-back full segments is bulk.
const BULK_AFTER: u64 = 512;
/// Packets of a bulk transfer kept before and after one that tells something.
const RECENT: usize = 24;
