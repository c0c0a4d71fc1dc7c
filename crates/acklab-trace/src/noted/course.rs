//! What else a direction shows: whose turn it was, closed windows, what was sent again and where it had been seen.
//!
//! Only what is proved counts. A turn is the data sender's from the moment at which the peer's data had come to it and
//! nothing of its own was unacknowledged: then neither Nagle's algorithm nor a window keeps a write, and what is late was
//! written late. (`TCP_CORK` alone does: 200 ms at most, tcp(7).) The way from the capture point to the sender and back is
//! taken off; where the handshake was not seen it is not known, and no turn counts. A window is closed from the ACK that
//! says zero to the one that opens it. Bytes sent again that had passed the capture point died behind it; bytes that come
//! late for the first time, before it.

use acklab_core::time::{Span, Time};

use crate::flow::observe::{AckSeen, DataKind, DataSeen};

/// Times of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spell {
    /// How many, of 10 ms or longer.
    pub(crate) count: u64,
    /// Their sum.
    pub(crate) sum: Span,
    /// The longest.
    pub(crate) longest: Span,
    /// The frame that ended it.
    pub(crate) frame: u64,
}

impl Spell {
    /// With one more of that length, which a frame ended.
    fn with(self, lasted: Span, frame: u64) -> Self {
        if lasted < COUNTED {
            return self;
        }
        self.and(Self { count: 1, sum: lasted, longest: lasted, frame })
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        let longest = if other.longest > self.longest { other } else { self };
        Self { count: self.count + other.count, sum: self.sum + other.sum, ..longest }
    }
}

/// A segment that was sent again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stuck {
    /// Its first byte's place in the stream.
    pub(crate) offset: u64,
    /// Its length, bytes.
    pub(crate) len: u32,
    /// How often it left.
    pub(crate) times: u32,
    /// When it left first.
    pub(crate) since: Time,
    /// When it was acknowledged after it had left in smaller segments, the largest of so many bytes.
    pub(crate) freed: Option<(Time, u32)>,
    /// The frame that left last.
    pub(crate) frame: u64,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CourseFacts {
    /// Turns of the data's sender in which nothing of it can have died before the capture point.
    pub(crate) turns: Spell,
    /// Turns that were as long as a retransmission timer: what came may have been a second try, the first of which died
    /// before the capture point. At the sender itself none did.
    pub(crate) long_turns: Spell,
    /// Turns of any length.
    pub(crate) all_turns: u64,
    /// Times in which the receiver's window was closed.
    pub(crate) closed: Spell,
    /// Silences that ended with bytes sent again.
    pub(crate) silences: Spell,
    /// Segments sent again that had passed the capture point.
    pub(crate) lost_behind: u64,
    /// Segments that came late and had not passed it.
    pub(crate) lost_before: u64,
    /// ACKs that say that a segment came twice.
    pub(crate) came_twice: u64,
    /// The longest segment that was acknowledged at its first try, bytes.
    pub(crate) acked_len: u32,
    /// A segment that left three times or more, longer than any that was acknowledged.
    pub(crate) stuck: Option<Stuck>,
}

impl CourseFacts {
    /// Those of two stretches of a direction, one behind the other.
    pub(crate) fn and(self, later: Self) -> Self {
        Self {
            turns: self.turns.and(later.turns),
            long_turns: self.long_turns.and(later.long_turns),
            all_turns: self.all_turns + later.all_turns,
            closed: self.closed.and(later.closed),
            silences: self.silences.and(later.silences),
            lost_behind: self.lost_behind + later.lost_behind,
            lost_before: self.lost_before + later.lost_before,
            came_twice: self.came_twice + later.came_twice,
            acked_len: self.acked_len.max(later.acked_len),
            stuck: later.stuck.or(self.stuck),
        }
    }
}

/// Follows one direction; of fixed size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Course {
    facts: CourseFacts,
    /// The peer's last data, since the last of our own.
    asked: Option<Time>,
    /// Since when nothing is unacknowledged.
    clear: Time,
    closed_since: Option<Time>,
    /// The window was closed, and nothing new was sent since.
    was_closed: bool,
    last: Time,
    /// One past the highest byte seen.
    high: u64,
    /// What was jumped over, the latest.
    holes: [(u64, u64); HOLES],
    next_hole: usize,
    /// The longest segment in flight, sent once, and where it ends.
    flying: (u64, u32),
    resent: Stuck,
}

impl Course {
    pub(crate) fn on_data(&mut self, seen: &DataSeen<'_>) {
        if seen.len == 0 || matches!(seen.kind, DataKind::Duplicate | DataKind::Probe) {
            return;
        }
        let end = seen.offset + u64::from(seen.len);
        match seen.kind {
            DataKind::Retransmission => self.on_again(seen),
            DataKind::NewAfterGap => {
                self.holes[self.next_hole % HOLES] = (self.high, seen.offset);
                self.next_hole += 1;
            }
            _ => {
                if let Some(asked) = self.asked.take()
                    && let Some(to_sender) = seen.to_sender
                    && seen.in_flight == 0
                {
                    let waited = seen.time.since(asked.max(self.clear));
                    // A queue on the way to the sender may take as long again as the way.
                    let waited = if waited > to_sender * 3 {
                        waited.saturating_sub(to_sender)
                    } else {
                        Span::ZERO
                    };
                    let sure = seen.follows || waited < LEAST_TIMER;
                    let facts = &mut self.facts;
                    facts.all_turns += 1;
                    let turns = if sure { &mut facts.turns } else { &mut facts.long_turns };
                    *turns = turns.with(waited, seen.frame);
                }
                if seen.len > self.flying.1 {
                    self.flying = (end, seen.len);
                }
            }
        }
        self.asked = None;
        self.was_closed &= end <= self.high;
        self.high = self.high.max(end);
        self.last = seen.time;
    }

    fn on_again(&mut self, seen: &DataSeen<'_>) {
        if self.closed_since.is_some() || self.was_closed {
            // What the receiver had no room for, or a probe whether it has.
            return;
        }
        let end = seen.offset + u64::from(seen.len);
        let hole = self.holes.iter_mut().find(|(from, to)| seen.offset < *to && *from < end);
        if let Some(hole) = hole {
            hole.0 = end.min(hole.1);
            self.facts.lost_before += 1;
        } else {
            self.facts.lost_behind += 1;
        }
        self.facts.silences = self.facts.silences.with(seen.time.since(self.last), seen.frame);
        self.flying = (0, 0);
        let resent = &mut self.resent;
        if resent.offset == seen.offset && resent.len == seen.len {
            resent.times += 1;
        } else if resent.times < STUCK_TIMES
            || resent.freed.is_some()
            || seen.offset > resent.offset
        {
            *resent = Stuck {
                offset: seen.offset,
                len: seen.len,
                times: 2,
                since: self.last,
                ..Stuck::default()
            };
        }
        resent.frame = seen.frame;
        if seen.len < resent.len && seen.offset == resent.offset {
            let largest = resent.freed.map_or(0, |freed| freed.1).max(seen.len);
            resent.freed = Some((Time::ZERO, largest));
        }
        if resent.times >= STUCK_TIMES && resent.len > self.facts.acked_len {
            self.facts.stuck = Some(*resent);
        }
    }

    pub(crate) fn on_ack(&mut self, seen: &AckSeen) {
        // SACK blocks although nothing is missing: a segment came twice (RFC 2883).
        self.facts.came_twice += u64::from(seen.sacks && seen.in_flight == 0);
        if seen.payload_len > 0 {
            self.asked = Some(seen.time);
        }
        if seen.newly_acked > 0 {
            self.last = seen.time;
            if self.flying.1 > 0 && seen.acked_to >= self.flying.0 {
                self.facts.acked_len = self.facts.acked_len.max(self.flying.1);
                self.flying = (0, 0);
            }
            self.on_progress(seen);
            if seen.in_flight == 0 {
                self.clear = seen.time;
            }
        }
        match (seen.window, self.closed_since) {
            (Some(0), None) => self.closed_since = Some(seen.time),
            (Some(1..), Some(since)) => {
                let lasted = seen.time.since(since);
                self.facts.closed = self.facts.closed.with(lasted, seen.frame);
                self.closed_since = None;
                self.was_closed = true;
            }
            _ => {}
        }
    }

    /// What was stuck is acknowledged: because it left in smaller segments, or it was only lost.
    fn on_progress(&mut self, seen: &AckSeen) {
        if let Some(stuck) = &mut self.facts.stuck
            && seen.acked_to > stuck.offset
            && stuck.freed.is_none_or(|freed| freed.0 == Time::ZERO)
        {
            match self.resent.freed {
                Some((_, largest)) if self.resent.offset == stuck.offset => {
                    stuck.freed = Some((seen.time, largest));
                }
                _ => self.facts.stuck = None,
            }
        }
    }

    pub(crate) const fn facts(&self) -> CourseFacts {
        self.facts
    }

    /// Forgets what was counted.
    pub(crate) fn begin_anew(&mut self) {
        self.facts = CourseFacts::default();
    }
}

/// A retransmission timer is no shorter: 200 ms in Linux (`TCP_RTO_MIN`), 230 in FreeBSD, 300 in Windows; less 5 %.
const LEAST_TIMER: Span = Span::from_millis(190);
/// What is shorter is not worth a line.
const COUNTED: Span = Span::from_millis(10);
/// Gaps that are remembered.
const HOLES: usize = 8;
/// Who loses the same segment so often does not lose it by chance: at a loss of 5 %, once in 8,000.
const STUCK_TIMES: u32 = 3;
