//! Segments that a switch sent back for want of room (E-DCTCP, [`acklab_core::packet::Packet::returned`]).
//!
//! A returned segment certainly did not arrive, so its sender need not guess: it waits as long as
//! [`CongestionControl::on_returned`] says and goes again. Until the cumulative ACK passes it, it is
//! nobody else's: duplicate ACKs for it do not begin fast recovery, and recovery from other losses
//! passes over it. It keeps its place in the window while it waits, so that it may always go; a window of
//! segments that all came back thus waits as a whole. The retransmission time-out begins anew at a
//! return; should a copy be lost after all, that is what repairs it.
//!
//! Returned SYNs, ACKs without data and window probes are left to the timers that stand behind them.

use super::connection::Connection;
use super::flight::Flight;
use super::recovery::Again;
use super::timers::Timer;
use acklab_core::cc::{CongestionControl, ReturnedSample};
use acklab_core::event::Sink;
use acklab_core::segment::TcpRepr;
use acklab_core::time::Time;

/// A segment that came back.
#[derive(Clone, Copy, Debug)]
struct Comeback {
    start: u64,
    end: u64,
    /// How often.
    times: u32,
    /// When it goes again; `None`: it has.
    due: Option<Time>,
}

/// The segments that came back and are not acknowledged yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Returned {
    /// Ascending, not overlapping.
    segments: Vec<Comeback>,
}

impl Returned {
    pub(super) const fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The end of the segment that came back in which `offset` lies.
    pub(super) fn covers(&self, offset: u64) -> Option<u64> {
        let of = |comeback: &&Comeback| comeback.start <= offset && offset < comeback.end;
        self.segments.iter().find(of).map(|comeback| comeback.end)
    }

    /// [start, end) came back; returns how often it has, `None` where it does not fit the others.
    fn take(&mut self, start: u64, end: u64, at: Time) -> Option<u32> {
        let place = self.segments.partition_point(|comeback| comeback.end <= start);
        match self.segments.get_mut(place).filter(|comeback| comeback.start < end) {
            Some(known) if known.start == start && known.end == end && known.due.is_none() => {
                known.times += 1;
                known.due = Some(at);
                Some(known.times)
            }
            Some(_) => None,
            None => {
                self.segments.insert(place, Comeback { start, end, times: 1, due: Some(at) });
                Some(1)
            }
        }
    }

    /// Puts the next departure of the segment that begins at `start` off until `at`.
    fn postpone(&mut self, start: u64, at: Time) {
        if let Some(comeback) = self.segments.iter_mut().find(|comeback| comeback.start == start) {
            comeback.due = Some(at);
        }
    }

    /// What goes again now, at most `mss` bytes.
    fn next(&self, now: Time, mss: u32) -> Option<(u64, u64)> {
        let due = |comeback: &&Comeback| comeback.due.is_some_and(|at| at <= now);
        let comeback = self.segments.iter().find(due)?;
        Some((comeback.start, comeback.end.min(comeback.start + u64::from(mss))))
    }

    /// [start, end), which [`Returned::next`] offered, went again.
    fn on_resent(&mut self, start: u64, end: u64) {
        let found = self.segments.iter().position(|comeback| comeback.start == start);
        let Some(place) = found else { return };
        let whole = self.segments[place];
        self.segments[place] = Comeback { end, due: None, ..whole };
        if end < whole.end {
            self.segments.insert(place + 1, Comeback { start: end, ..whole });
        }
    }

    /// When the next one goes.
    fn earliest(&self) -> Option<Time> {
        self.segments.iter().filter_map(|comeback| comeback.due).min()
    }

    /// Everything below `una` is acknowledged.
    pub(super) fn advance(&mut self, una: u64) {
        self.segments.retain(|comeback| comeback.end > una);
        if let Some(first) = self.segments.first_mut() {
            first.start = first.start.max(una);
        }
    }

    /// A time-out sends everything again.
    pub(super) fn clear(&mut self) {
        self.segments.clear();
    }

    /// `pipe` with the segments that keep their place although loss recovery does not count them;
    /// `counted` says whether it does, by an offset, or whether they arrived.
    pub(super) fn correct(&self, pipe: u64, flight: &Flight, counted: impl Fn(u64) -> bool) -> u64 {
        let missing = self.segments.iter().filter(|comeback| !counted(comeback.start));
        pipe + missing.map(|comeback| flight.weigh(comeback.start, comeback.end)).sum::<u64>()
    }

    /// Whether every segment lies in (una, nxt].
    pub(super) fn is_within(&self, una: u64, nxt: u64) -> bool {
        self.segments.iter().all(|comeback| {
            una <= comeback.start && comeback.start < comeback.end && comeback.end <= nxt
        })
    }
}

impl Connection {
    /// A packet of ours came back.
    pub(super) fn on_returned(&mut self, now: Time, segment: &TcpRepr, sink: &mut Sink) {
        let start = self.snd.offset(segment.seq).max(self.snd.una as i64) as u64;
        let end = self.snd.offset(segment.seq) + i64::from(segment.seq_len());
        if !self.state.is_synchronised() || end <= start as i64 || end > self.snd.nxt as i64 {
            return;
        }
        let end = end as u64;
        if self.recovery.board.holds(start, end) {
            return;
        }
        let Some(times) = self.returned.take(start, end, now) else { return };
        let (in_flight, srtt) = (self.flight_size(), self.rtt.srtt());
        let wait = self.cc.on_returned(now, &ReturnedSample { in_flight, times, srtt });
        self.returned.postpone(start, now + wait);
        self.timers.set(Timer::Retransmit, now + wait + self.rtt.rto());
        self.arm_returned(now);
        self.tell_congestion(now, sink);
        self.output_due = true;
    }

    /// The segment that came back and goes again now.
    pub(super) fn next_returned(&mut self, now: Time, mss: u32) -> Option<Again> {
        while let Some((start, end)) = self.returned.next(now, mss) {
            if !self.recovery.board.holds(start, end) {
                return Some(Again::returned(start, end));
            }
            // It arrived after all.
            self.returned.on_resent(start, end);
        }
        None
    }

    /// It went.
    pub(super) fn on_returned_resent(&mut self, now: Time, again: Again) {
        self.returned.on_resent(again.start, again.end);
        self.arm_returned(now);
    }

    fn arm_returned(&mut self, now: Time) {
        match self.returned.earliest().filter(|&at| at > now) {
            Some(at) => self.timers.set(Timer::Returned, at),
            None => self.timers.stop(Timer::Returned),
        }
    }
}
