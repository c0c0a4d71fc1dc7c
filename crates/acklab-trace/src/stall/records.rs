//! The compact records that a direction keeps while the capture is read.
//!
//! Times are nanoseconds since the epoch, as captured. Every list has a limit; what comes after it
//! is counted only.

use acklab_core::time::Time;

use super::ladder::LadderTap;
use super::tape::Tape;
use crate::framing::FrameReader;

/// Most records of one kind that a direction keeps.
pub const RECORDS_MAX: usize = 65_536;
/// Most points of a time-sequence line that a direction keeps.
pub const POINTS_MAX: usize = 512;

/// A small new segment that left while nothing small was unacknowledged, after an ACK had come
/// since the segment before it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Frame of the segment.
    pub frame: u64,
    /// When it passed.
    pub time: Time,
    /// When the segment before it passed.
    pub before: Time,
    /// When the ACK passed that left nothing small (or nothing at all) unacknowledged.
    pub ack: Time,
    /// Frame of that ACK.
    pub ack_frame: u64,
    /// Time from the newest segment it acknowledged to the ACK; `None` by Karn.
    pub ack_age: Option<u64>,
    /// Time from the oldest one; `None` likewise.
    pub oldest_age: Option<u64>,
    /// The first data of the peer after that ACK, if any came before the segment.
    pub peer_after: Option<Time>,
    /// The last data of the peer before that ACK and since the segment before.
    pub peer_before: Option<Time>,
    /// Last stream offset of the segment.
    pub end: u64,
    /// Bytes of the segment.
    pub len: u32,
    /// Bytes in flight before the ACK.
    pub flight_before: u32,
    /// Largest flight seen by then.
    pub flight_max: u32,
    /// Segments the ACK acknowledged.
    pub acked_segments: u16,
    /// What else is known.
    pub marks: Marks,
}

/// Yes-or-no facts about a [`Candidate`].
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of one packet")]
pub struct Marks {
    /// The ACK carried no data.
    pub pure: bool,
    /// A small segment was among what was in flight before the ACK.
    pub small_before: bool,
    /// The segment did not fit the receiver's window before the ACK.
    pub window: bool,
    /// Lost data was being repaired.
    pub recovery: bool,
    /// PSH on the segment.
    pub push: bool,
}

/// A small new segment that left although a small one was unacknowledged: Nagle was off.
#[derive(Clone, Copy, Debug)]
pub struct Violation {
    /// When.
    pub time: Time,
    /// Last stream offset of the segment.
    pub end: u64,
    /// Since the sender's last segment or the last ACK, whichever came later, ns.
    pub silence: u64,
    /// Lost data was being repaired, or was sent again before this segment was acknowledged.
    pub repair: bool,
}

/// A new segment of exactly one MSS, alone after a pause, with data unacknowledged and no ACK
/// since the segment before it.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// Frame of the segment.
    pub frame: u64,
    /// When it passed.
    pub time: Time,
    /// When the segment before it passed.
    pub before: Time,
    /// Time since the last ACK of this direction's data, ns; `u64::MAX` if none.
    pub since_ack: u64,
    /// Last stream offset of the segment.
    pub end: u64,
    /// Bytes of the segment.
    pub len: u32,
    /// A small segment was unacknowledged.
    pub small_outstanding: bool,
    /// More data followed at once.
    pub burst: bool,
    /// PSH on the segment.
    pub push: bool,
}

/// An acknowledgment that came some time after the data.
#[derive(Clone, Copy, Debug)]
pub struct AckRecord {
    /// When it passed.
    pub time: Time,
    /// Time since the oldest segment it acknowledged passed, ns.
    pub oldest_age: u64,
    /// Time since the newest segment it acknowledged passed, ns.
    pub newest_age: u64,
    /// Segments it acknowledged.
    pub segments: u16,
    /// It carried no data.
    pub pure: bool,
    /// A small segment was unacknowledged.
    pub small: bool,
    /// The peer's own data followed at once, so its application had just read: Linux acknowledges
    /// on read (tcp_cleanup_rbuf), and no timer did.
    pub answered: bool,
}

impl AckRecord {
    /// Whether a delayed-ACK timer can have sent it.
    pub fn is_timed(&self) -> bool {
        self.pure && self.small && !self.answered
    }
}

/// A silence of the sender.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    /// How long, ns.
    pub nanos: u64,
    /// Time since the last ACK when it ended, ns; `u64::MAX` if none.
    pub since_ack: u64,
    /// A small segment ended it.
    pub small: bool,
    /// The receiver's window had no room before the last ACK.
    pub blocked: bool,
    /// Lost data was being repaired.
    pub recovery: bool,
}

/// When the stream reached an offset.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When the segment passed.
    pub time: Time,
    /// Its last stream offset.
    pub end: u64,
    /// Messages complete by then, by their framing; 0 where none fits.
    pub frames: u64,
}

/// Everything a direction keeps beyond its counters; made when first needed.
#[derive(Debug, Default)]
pub struct Log {
    /// Candidates, ACKs and arrivals until the direction is over.
    pub tape: Tape,
    /// When the last ACK on the tape passed, if it was pure and is not yet answered.
    pub answerable: Option<Time>,
    /// Possible holds, once [unrolled](Self::unroll).
    pub candidates: Vec<Candidate>,
    /// Proofs against Nagle.
    pub violations: Vec<Violation>,
    /// Possible MSS fills.
    pub fills: Vec<Fill>,
    /// Acknowledgments, for the receiver's policy, once unrolled.
    pub acks: Vec<AckRecord>,
    /// Segments in order, once unrolled, unless the direction turned out to be bulk.
    pub arrivals: Vec<Arrival>,
    /// Set once no more arrivals are noted.
    pub arrivals_dropped: bool,
    /// Set where those noted are of no use either.
    pub arrivals_dropped_as_bulk: bool,
    /// Message boundaries.
    pub frames: FrameReader,
    /// Silences of the sender.
    pub silences: Vec<Silence>,
    /// Packets around possible holds.
    pub ladders: LadderTap,
    /// Data line, decimated.
    pub data_line: Line,
    /// ACK line, decimated.
    pub ack_line: Line,
}

impl Log {
    /// Bytes held by the lists.
    pub fn held_bytes(&self) -> usize {
        fn of<T>(list: &Vec<T>) -> usize {
            list.capacity() * size_of::<T>()
        }
        self.tape.held_bytes() + of(&self.violations) + of(&self.fills) + of(&self.silences)
    }

    /// Makes the lists of what is on the tape, when the direction is over.
    pub fn unroll(&mut self) {
        let lists = std::mem::take(&mut self.tape).unroll();
        self.candidates = lists.candidates;
        self.acks = lists.acks;
        self.arrivals = if self.arrivals_dropped_as_bulk { Vec::new() } else { lists.arrivals };
    }

    /// Halves every list: the first half of what was seen stays, as a sample.
    pub fn shed(&mut self) {
        fn halve<T>(list: &mut Vec<T>) {
            list.truncate(list.len() / 2);
            list.shrink_to_fit();
        }
        self.tape.shed();
        self.answerable = None;
        halve(&mut self.violations);
        halve(&mut self.fills);
        halve(&mut self.silences);
        self.arrivals_dropped = true;
    }
}

/// Exact counters of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// New data segments.
    pub segments: u64,
    /// Of these, multiples of the MSS.
    pub full: u64,
    /// Full segments that left within [`super::BURST`] of the one before.
    pub burst: u64,
    /// Full segments with PSH.
    pub full_push: u64,
    /// Small segments that left with full ones in flight and no small one: Minshall's rule allows
    /// it, so does a write larger than the MSS in newer BSDs.
    pub small_after_full: u64,
    /// Small segments that left while a small one was unacknowledged.
    pub violations: u64,
    /// Possible holds.
    pub candidates: u64,
    /// Possible MSS fills.
    pub fills: u64,
    /// Pure ACKs that acknowledged one small segment within 2 ms of it at the capture point.
    pub prompt_single_acks: u64,
    /// Silences of 10 ms or longer that did not fit into the list.
    pub more_silences: Pause,
}

/// Pauses of one cause.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pause {
    /// How many.
    pub count: u64,
    /// Their sum, ns.
    pub nanos: u64,
}

/// A line of at most [`POINTS_MAX`] points: when full, every second one goes and the stride doubles.
#[derive(Debug)]
pub struct Line {
    points: Vec<(Time, u64)>,
    stride: u32,
    skip: u32,
}

impl Default for Line {
    fn default() -> Self {
        Self { points: Vec::new(), stride: 1, skip: 0 }
    }
}

impl Line {
    /// Offers a point.
    pub fn push(&mut self, time: Time, value: u64) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        if self.points.len() == POINTS_MAX {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride *= 2;
        }
        self.points.push((time, value));
        self.skip = self.stride - 1;
    }

    /// The points kept.
    pub fn points(&self) -> &[(Time, u64)] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_within_its_limit_and_spans_all_that_was_offered() {
        let mut line = Line::default();
        for i in 0..100_000u64 {
            line.push(Time::from_nanos(i), i);
        }
        let points = line.points();
        assert!(points.len() <= POINTS_MAX && points.len() > POINTS_MAX / 3);
        assert_eq!(points[0].1, 0);
        assert!(points[points.len() - 1].1 > 99_000);
    }
}
