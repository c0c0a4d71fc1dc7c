//! Takes the notes of one direction while the capture is read.
//!
//! The road of a bulk segment through [`Recorder::on_data`] is a handful of compares; notes are made
//! only where a small segment leaves, a full one leaves alone, or an ACK comes late. Whether a note is
//! a hold is decided later, with the whole sample at hand.

use acklab_core::time::{Span, Time};

use super::log::Log;
use super::notes::Notes;
use super::sender::Sender;
use super::values::{AckRecord, Candidate, Counts, Fill, Marks, Silence, Violation};
use super::way::Way;
use crate::flow::DirectionFacts;
use crate::flow::observe::{AckSeen, DataKind, DataSeen};

/// Takes notes on one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    sender: Sender,
    /// ACKs on their way to the sender.
    way: Way,
    /// One past the highest byte acknowledged at the capture point.
    acked_here: u64,
    /// First and last new data segment.
    first: Option<Time>,
    last: Option<Time>,
    /// The last data segment is the last of the fills.
    fill_open: bool,
    counts: Counts,
    log: Option<Box<Log>>,
}

impl Recorder {
    /// A segment with payload or FIN, or a probe.
    pub(crate) fn on_data(&mut self, seen: &DataSeen<'_>) {
        if let Some(log) = &mut self.log {
            log.on_data(seen);
        }
        self.way.measure(seen.to_sender);
        while let Some(ack) = self.way.arrived(seen.time) {
            self.sender.on_ack(&ack);
        }
        let end = seen.offset + u64::from(seen.len);
        match seen.kind {
            DataKind::Duplicate | DataKind::Probe => return,
            DataKind::Retransmission | DataKind::Reordered => {
                let again = seen.kind == DataKind::Retransmission && seen.len > 0;
                if let Some(log) = self.log.as_mut().filter(|_| again) {
                    log.note_repair(self.sender.acked);
                }
                self.sender.on_old(end, again);
                return;
            }
            DataKind::New | DataKind::NewAfterGap => {}
        }
        if seen.len == 0 {
            return;
        }
        if seen.kind == DataKind::NewAfterGap {
            self.sender.on_gap(seen.offset);
        }
        let small = seen.len < seen.mss || !seen.len.is_multiple_of(seen.mss.max(1));
        self.on_new(seen, end, small);
        self.sender.on_sent(end, small);
        self.last = Some(seen.time);
        self.first = self.first.or(self.last);
    }

    #[inline]
    fn on_new(&mut self, seen: &DataSeen<'_>, end: u64, small: bool) {
        let pause = self.last.map_or(Span::ZERO, |last| seen.time.since(last));
        self.counts.segments += 1;
        if !small {
            self.counts.full += 1;
            self.counts.burst += u64::from(pause < BURST);
        }
        if self.fill_open {
            self.close_fill(pause);
        }
        if pause >= PAUSE_MIN {
            self.note_silence(seen, small, pause);
        }
        if let Some(last) = self.last {
            if small {
                self.on_small(seen, end, last);
            } else if pause >= BURST && seen.len == seen.mss {
                self.on_lone_full(seen, end, last);
            }
        }
        let log = self.log.get_or_insert_with(Box::default);
        log.note_arrival(seen, end, &self.counts);
    }

    fn on_small(&mut self, seen: &DataSeen<'_>, end: u64, last: Time) {
        let log = self.log.get_or_insert_with(Box::default);
        let sender = &self.sender;
        if sender.has_small_out() {
            self.counts.violations += 1;
            let heard = sender.last_ack.map_or(last, |ack| ack.max(last));
            log.note_violation(Violation {
                time: seen.time,
                end,
                silence: seen.time.since(heard).as_nanos(),
                repair: sender.is_in_recovery(),
            });
            return;
        }
        let Some(clear) = sender.clear_since(last, &self.way) else {
            if sender.has_out_below(seen.offset) && !sender.is_in_recovery() {
                self.counts.small_after_full += 1;
            }
            return;
        };
        self.counts.candidates += 1;
        log.note_candidate(&Candidate {
            frame: seen.frame,
            time: seen.time,
            before: last,
            ack: clear.time,
            ack_age: clear.age,
            oldest_age: clear.oldest,
            peer_after: sender.peer_after,
            end,
            len: seen.len,
            flight_before: clear.flight_before,
            flight_max: sender.flight_max(),
            marks: Marks {
                pure: clear.pure,
                small_before: clear.small_before,
                window: clear.edge_before.is_some_and(|edge| edge < end),
                recovery: sender.was_in_recovery(clear),
                push: seen.push,
            },
        });
    }

    fn on_lone_full(&mut self, seen: &DataSeen<'_>, end: u64, last: Time) {
        let waits = self.sender.has_out_below(seen.offset) && !self.sender.is_in_recovery();
        if !waits || self.sender.clear_since(last, &self.way).is_some() {
            return;
        }
        self.counts.fills += 1;
        let log = self.log.get_or_insert_with(Box::default);
        self.fill_open = log.note_fill(Fill {
            frame: seen.frame,
            time: seen.time,
            before: last,
            since_ack: self.sender.since_ack(seen.time),
            end,
            len: seen.len,
            small_outstanding: self.sender.has_small_out(),
            burst: false,
            push: seen.push,
        });
    }

    fn close_fill(&mut self, pause: Span) {
        self.fill_open = false;
        let clear = self.last.and_then(|last| self.sender.clear_since(last, &self.way));
        let cleared = clear.is_some();
        if let Some(log) = self.log.as_mut().filter(|_| pause < BURST && !cleared) {
            log.note_burst();
        }
    }

    fn note_silence(&mut self, seen: &DataSeen<'_>, small: bool, pause: Span) {
        let needed = seen.offset + u64::from(seen.len.min(seen.mss));
        let silence = Silence {
            nanos: pause.as_nanos(),
            since_ack: self.sender.since_ack(seen.time),
            small,
            blocked: self.sender.edge_before().is_some_and(|edge| edge < needed),
            recovery: self.sender.is_in_recovery(),
        };
        let log = self.log.get_or_insert_with(Box::default);
        log.note_silence(silence, &mut self.counts.more_silences);
    }

    /// An acknowledgment of this direction, or any other packet of the peer, passes.
    pub(crate) fn on_ack(&mut self, seen: &AckSeen) {
        if let Some(log) = &mut self.log {
            log.on_ack(seen);
            if !seen.pure {
                log.note_answer(seen.time, self.last);
            }
        }
        if seen.acked_to > self.acked_here {
            let small = self.sender.is_small_out_at(self.acked_here);
            self.acked_here = seen.acked_to;
            self.note_ack(seen, small);
        }
        if let Some(arrived) = self.way.enter(seen) {
            self.sender.on_ack(&arrived);
        }
    }

    #[inline]
    fn note_ack(&mut self, seen: &AckSeen, small: bool) {
        let (Some(oldest), Some(newest)) = (seen.oldest_age, seen.newest_age) else { return };
        let segments = seen.newly_acked_segments.min(u32::from(u16::MAX)) as u16;
        if seen.pure && segments == 1 && oldest < ACK_AGE_MIN {
            self.counts.prompt_single_acks += u64::from(small);
        }
        let Some(log) = &mut self.log else { return };
        log.note_progress(seen.time, seen.acked_to);
        if oldest >= ACK_AGE_MIN {
            log.note_ack(&AckRecord {
                time: seen.time,
                oldest_age: oldest.as_nanos(),
                newest_age: newest.as_nanos(),
                segments,
                pure: seen.pure,
                small,
                answered: false,
            });
        }
    }

    /// Bytes held in lists.
    pub(crate) fn held_bytes(&self) -> usize {
        self.log.as_deref().map_or(0, Log::held_bytes) + self.way.held_bytes()
    }

    /// Gives up what can be done without: from now on only counters and what is left of the lists.
    pub(crate) fn shed(&mut self) {
        if let Some(log) = self.log.as_deref_mut() {
            log.shed();
        }
    }

    /// New data segments since the beginning, or since it began anew.
    pub(crate) fn segments(&self) -> u64 {
        self.counts.segments
    }

    /// Possible holds in the same time.
    pub(crate) fn possible_holds(&self) -> u64 {
        self.counts.candidates + self.counts.fills
    }

    /// Begins anew with empty notes, in the middle of the stream: what is in flight and who waits for
    /// what is still known, so that no hold is lost between the two.
    pub(crate) fn begin_anew(&mut self) {
        self.first = None;
        self.fill_open = false;
        self.counts = Counts::default();
        self.log = None;
    }

    /// The notes, now that the direction is over.
    pub(crate) fn finish<'a>(
        self,
        facts: &'a DirectionFacts,
        opposite: &'a DirectionFacts,
    ) -> Notes<'a> {
        let span = self.first.zip(self.last).map(|(first, last)| [first, last]);
        self.log.unwrap_or_default().into_notes([facts, opposite], span, self.counts)
    }
}

/// Segments closer than this left in one go: 100 segments of 1500 bytes take 1.2 ms at 1 Gbit/s,
/// and no application that writes message by message is this fast for long.
const BURST: Span = Span::from_micros(300);
/// Silence shorter than this is not looked at for its cause.
const PAUSE_MIN: Span = Span::from_millis(10);
/// ACKs faster than this at the capture point are only counted.
const ACK_AGE_MIN: Span = Span::from_millis(2);
