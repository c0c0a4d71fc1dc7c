//! What is noted of one direction while the capture is read.
//!
//! The road of a bulk segment through [`Recorder::on_data`] is a handful of compares; records are
//! made only where a small segment leaves, a full one leaves alone, or an ACK comes late. Whether
//! a record is a hold is decided later, in [`super::holds`]. The state follows Minshall's
//! formulation of Nagle's rule (draft-minshall-nagle-01): the end of the last small segment, and
//! whether it has been acknowledged. Segments sent again say nothing of Nagle and put the direction
//! into recovery until everything sent before them is acknowledged.

use acklab_core::time::{Span, Time};

use super::records::{
    AckRecord, Arrival, Candidate, Counts, Fill, Log, Marks, Pause, RECORDS_MAX, Silence, Violation,
};
use super::sender_side::Way;
use crate::diagnosis::WaitCause;
use crate::flow::observe::{AckSeen, DataKind, DataSeen};

/// Segments closer than this left in one go: 100 segments of 1500 bytes take 1.2 ms at 1 Gbit/s,
/// and no application that writes message by message is this fast for long.
pub const BURST: Span = Span::from_micros(300);
/// Silence shorter than this is not looked at for its cause.
const PAUSE_MIN: Span = Span::from_millis(10);
/// ACKs faster than this at the capture point are only counted.
const ACK_AGE_MIN: Span = Span::from_millis(2);
/// Data this soon after an ACK of the same host came from the read that caused the ACK.
const ANSWER: Span = Span::from_millis(1);
/// After so many segments a direction of back-to-back full segments is bulk, and its arrivals are
/// of no use.
const BULK_AFTER: u64 = 512;

/// Segments that a repair is looked back for.
const PROBES_MAX: usize = 8;

/// Notes on one direction.
#[derive(Debug, Default)]
pub struct Recorder {
    /// One past the highest byte sent.
    next: u64,
    /// One past the highest byte acknowledged, as the sender knew.
    acked: u64,
    /// One past the highest byte acknowledged at the capture point.
    acked_here: u64,
    /// ACKs on their way to the sender.
    way: Way,
    /// End of the last small segment.
    small_end: u64,
    last: Option<Time>,
    last_ack: Option<Time>,
    clear: Option<Clear>,
    /// First data of the peer since `clear`.
    peer_after: Option<Time>,
    /// Last data of the peer.
    peer_last: Option<Time>,
    /// The position the receiver's window ends at.
    edge: Option<u64>,
    /// Bytes below this were sent when loss recovery began.
    recovery_end: u64,
    flight_max: u64,
    /// The last data segment is the last of `fills`.
    fill_open: bool,
    first: Option<Time>,
    /// Exact counters.
    pub counts: Counts,
    /// Records, made when first needed.
    pub log: Option<Box<Log>>,
}

/// The ACK that left nothing small, or nothing at all, unacknowledged.
#[derive(Clone, Copy, Debug)]
struct Clear {
    time: Time,
    frame: u64,
    age: Option<u64>,
    oldest: Option<u64>,
    segments: u16,
    pure: bool,
    small_before: bool,
    flight_before: u32,
    edge_before: Option<u64>,
    peer_before: Option<Time>,
}

impl Recorder {
    /// First and last data segment.
    pub fn span(&self) -> Option<(Time, Time)> {
        Some((self.first?, self.last?))
    }

    /// Bytes held in lists.
    pub fn held_bytes(&self) -> usize {
        self.log.as_deref().map_or(0, |log| size_of::<Log>() + log.held_bytes())
            + self.way.held_bytes()
    }

    /// Gives up what can be done without: from now on only counters and what is left of the lists.
    pub fn shed(&mut self) {
        if let Some(log) = self.log.as_deref_mut() {
            log.shed();
        }
    }

    /// Makes the lists of the log, when the direction is over.
    pub fn unroll(&mut self) {
        if let Some(log) = self.log.as_deref_mut() {
            log.unroll();
        }
    }

    /// A segment with payload or FIN, or a probe.
    pub fn on_data(&mut self, seen: &DataSeen<'_>) {
        if let Some(log) = &mut self.log {
            log.ladders.on_data(seen);
        }
        self.way.measure(seen.to_sender);
        while let Some(ack) = self.way.arrived(seen.time) {
            self.on_arrived(&ack);
        }
        let end = seen.offset + u64::from(seen.len);
        match seen.kind {
            DataKind::Duplicate | DataKind::Probe => return,
            DataKind::Retransmission | DataKind::Reordered => {
                if seen.kind == DataKind::Retransmission && seen.len > 0 {
                    self.recovery_end = self.recovery_end.max(self.next).max(end);
                    self.note_repair();
                }
                self.next = self.next.max(end);
                return;
            }
            DataKind::New | DataKind::NewAfterGap => {}
        }
        if seen.len == 0 {
            return;
        }
        if seen.kind == DataKind::NewAfterGap {
            self.on_gap(seen);
        }
        self.next = seen.offset;
        self.on_new(seen, end);
        // An ACK lets go what leaves next, and only that: packets may share a time stamp.
        self.clear = None;
        self.next = end;
        self.flight_max = self.flight_max.max(end.saturating_sub(self.acked));
        self.last = Some(seen.time);
        self.first = self.first.or(self.last);
    }

    /// What left just before lost data was sent again may have been a loss probe.
    fn note_repair(&mut self) {
        let Some(log) = &mut self.log else { return };
        let open = log.violations.iter_mut().rev().take_while(|v| v.end > self.acked);
        open.take(PROBES_MAX).for_each(|v| v.repair = true);
    }

    /// What left in the gap is unknown: forget the ACK, and that anything small is outstanding.
    fn on_gap(&mut self, seen: &DataSeen<'_>) {
        self.clear = None;
        self.small_end = self.acked;
        self.recovery_end = self.recovery_end.max(seen.offset);
    }

    #[inline]
    fn on_new(&mut self, seen: &DataSeen<'_>, end: u64) {
        let mss = seen.mss.max(1);
        let small = seen.len < mss || !seen.len.is_multiple_of(mss);
        let pause = self.last.map_or(Span::ZERO, |last| seen.time.since(last));
        self.counts.segments += 1;
        if !small {
            self.counts.full += 1;
            self.counts.full_push += u64::from(seen.push);
            self.counts.burst += u64::from(pause < BURST);
        }
        if self.fill_open {
            self.close_fill(pause);
        }
        if pause >= PAUSE_MIN {
            self.note_silence(seen, small, pause);
        }
        if small {
            self.on_small(seen, end);
            self.small_end = end;
        } else if pause >= BURST && seen.len == mss && self.next > self.acked {
            self.on_lone_full(seen, end);
        }
        self.keep_arrival(seen, end);
    }

    fn keep_arrival(&mut self, seen: &DataSeen<'_>, end: u64) {
        let log = self.log.get_or_insert_with(Box::default);
        log.data_line.push(seen.time, end);
        if log.arrivals_dropped {
            return;
        }
        let Counts { segments, burst, .. } = self.counts;
        let bulk = segments > BULK_AFTER && burst * 2 > segments;
        if bulk || !log.tape.has_room_for_arrival() {
            log.arrivals_dropped_as_bulk = bulk;
            log.arrivals_dropped = true;
            return;
        }
        let frames = if log.frames.is_live() {
            log.frames.on_data(seen.time, seen.offset, seen.len, seen.payload)
        } else {
            0
        };
        log.tape.push_arrival(&Arrival { time: seen.time, end, frames });
    }

    fn on_small(&mut self, seen: &DataSeen<'_>, end: u64) {
        let Some(last) = self.last else { return };
        if self.small_end > self.acked {
            self.counts.violations += 1;
            let log = self.log.get_or_insert_with(Box::default);
            if log.violations.len() < RECORDS_MAX {
                log.violations.push(Violation {
                    time: seen.time,
                    end,
                    silence: seen
                        .time
                        .since(self.last_ack.map_or(last, |a| a.max(last)))
                        .as_nanos(),
                    repair: self.recovery_end > self.acked,
                });
            }
            return;
        }
        let Some(clear) = self.clear.filter(|c| self.way.end(c.time) >= last) else {
            if self.next > self.acked && self.recovery_end <= self.acked {
                self.counts.small_after_full += 1;
            }
            return;
        };
        self.counts.candidates += 1;
        let candidate = Candidate {
            frame: seen.frame,
            time: seen.time,
            before: last,
            ack: clear.time,
            ack_frame: clear.frame,
            ack_age: clear.age,
            oldest_age: clear.oldest,
            peer_after: self.peer_after,
            peer_before: clear.peer_before.filter(|t| self.way.end(*t) >= last),
            end,
            len: seen.len,
            flight_before: clear.flight_before,
            flight_max: self.flight_max.min(u64::from(u32::MAX)) as u32,
            acked_segments: clear.segments,
            marks: Marks {
                pure: clear.pure,
                small_before: clear.small_before,
                window: clear.edge_before.is_some_and(|edge| edge < end),
                recovery: self.recovery_end
                    > self.acked.saturating_sub(u64::from(clear.flight_before)),
                push: seen.push,
            },
        };
        let log = self.log.get_or_insert_with(Box::default);
        if log.tape.push_candidate(&candidate) {
            log.ladders.on_candidate(&candidate);
        }
    }

    fn on_lone_full(&mut self, seen: &DataSeen<'_>, end: u64) {
        let Some(last) = self.last else { return };
        if self.clear.is_some_and(|c| self.way.end(c.time) >= last)
            || self.recovery_end > self.acked
        {
            return;
        }
        self.counts.fills += 1;
        self.fill_open = true;
        let fill = Fill {
            frame: seen.frame,
            time: seen.time,
            before: last,
            since_ack: self.last_ack.map_or(u64::MAX, |t| seen.time.since(t).as_nanos()),
            end,
            len: seen.len,
            small_outstanding: self.small_end > self.acked,
            burst: false,
            push: seen.push,
        };
        let log = self.log.get_or_insert_with(Box::default);
        if log.fills.len() < RECORDS_MAX {
            log.fills.push(fill);
            log.ladders.on_fill(&fill);
        } else {
            self.fill_open = false;
        }
    }

    fn close_fill(&mut self, pause: Span) {
        self.fill_open = false;
        let cleared = self.clear.is_some_and(|c| Some(self.way.end(c.time)) >= self.last);
        if pause < BURST
            && !cleared
            && let Some(fill) = self.log.as_mut().and_then(|l| l.fills.last_mut())
        {
            fill.burst = true;
        }
    }

    fn note_silence(&mut self, seen: &DataSeen<'_>, small: bool, pause: Span) {
        let needed = self.next + u64::from(seen.len.min(seen.mss));
        let edge = self.clear.map_or(self.edge, |c| c.edge_before.or(self.edge));
        let silence = Silence {
            nanos: pause.as_nanos(),
            since_ack: self.last_ack.map_or(u64::MAX, |t| seen.time.since(t).as_nanos()),
            small,
            blocked: edge.is_some_and(|edge| edge < needed),
            recovery: self.recovery_end > self.acked,
        };
        let log = self.log.get_or_insert_with(Box::default);
        if log.silences.len() < RECORDS_MAX / 16 {
            log.silences.push(silence);
        } else {
            self.counts.more_silences.count += 1;
            self.counts.more_silences.nanos += silence.nanos;
        }
    }

    /// Silences by cause, in the order of [`WaitCause`]; `far_ms` is the round trip to the sender,
    /// within which it answers an ACK that it waited for.
    pub fn pauses(&self, far_ms: f64) -> [Pause; 4] {
        let mut pauses = [Pause::default(); 4];
        pauses[WaitCause::Application as usize] = self.counts.more_silences;
        for silence in self.log.iter().flat_map(|l| &l.silences) {
            let since = silence.since_ack as f64 / 1e6;
            let at_ack = silence.since_ack != u64::MAX && since <= far_ms * 1.1 + 1.0;
            let cause = if silence.recovery {
                WaitCause::LossRecovery
            } else if at_ack && silence.blocked {
                WaitCause::Window
            } else if at_ack && !silence.small {
                WaitCause::Congestion
            } else {
                WaitCause::Application
            };
            let slot = &mut pauses[cause as usize];
            slot.count += 1;
            slot.nanos += silence.nanos;
        }
        pauses
    }

    /// An acknowledgment of this direction, or any other packet of the peer, passes.
    pub fn on_ack(&mut self, seen: &AckSeen) {
        if let Some(log) = &mut self.log {
            log.ladders.on_ack(seen);
        }
        if !seen.pure {
            self.note_answer(seen);
        }
        if seen.acked_to > self.acked_here {
            let small = self.small_end > self.acked_here;
            self.acked_here = seen.acked_to;
            self.note_ack(seen, small);
        }
        if let Some(arrived) = self.way.enter(seen) {
            self.on_arrived(&arrived);
        }
    }

    /// It reaches the data's sender.
    fn on_arrived(&mut self, seen: &AckSeen) {
        if !seen.pure {
            self.peer_last = Some(seen.time);
            self.peer_after = self.peer_after.or(self.peer_last);
        }
        if seen.acked_to > self.acked {
            self.on_progress(seen);
        }
        if let Some(window) = seen.window {
            let edge = seen.acked_to + window;
            self.edge = Some(self.edge.map_or(edge, |old| old.max(edge)));
        }
    }

    /// Data of the peer right after its ACK, with nothing new to answer in between.
    fn note_answer(&mut self, seen: &AckSeen) {
        let Some(log) = &mut self.log else { return };
        let Some(ack) = log.answerable else { return };
        if seen.time.since(ack) < ANSWER && self.last.is_none_or(|t| t < ack) {
            log.tape.mark_ack_answered();
            log.answerable = None;
        }
    }

    fn on_progress(&mut self, seen: &AckSeen) {
        let flight_before = self.next.saturating_sub(self.acked);
        let small_before = self.small_end > self.acked;
        self.acked = seen.acked_to;
        self.next = self.next.max(self.acked);
        self.last_ack = Some(seen.time);
        let small_cleared = small_before && self.small_end <= self.acked;
        if small_cleared || (flight_before > 0 && self.next == self.acked) {
            self.clear = Some(Clear {
                time: seen.time,
                frame: seen.frame,
                age: seen.newest_age.map(Span::as_nanos),
                oldest: seen.oldest_age.map(Span::as_nanos),
                segments: seen.newly_acked_segments.min(u32::from(u16::MAX)) as u16,
                pure: seen.pure,
                small_before,
                flight_before: flight_before.min(u64::from(u32::MAX)) as u32,
                edge_before: self.edge,
                peer_before: if seen.pure { self.peer_last } else { None },
            });
            self.peer_after = (!seen.pure).then_some(seen.time);
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
        log.ack_line.push(seen.time, seen.acked_to);
        if oldest < ACK_AGE_MIN {
            return;
        }
        let noted = log.tape.push_ack(&AckRecord {
            time: seen.time,
            oldest_age: oldest.as_nanos(),
            newest_age: newest.as_nanos(),
            segments,
            pure: seen.pure,
            small,
            answered: false,
        });
        if noted {
            log.answerable = seen.pure.then_some(seen.time);
        }
    }
}
