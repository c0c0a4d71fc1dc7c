//! What a note says: the values that the first floor hands up.
//!
//! Times are nanoseconds since the epoch, as captured. Of each kind at most [`RECORDS_MAX`] are kept;
//! what comes after is counted only.

use acklab_core::time::Time;

/// Most records of one kind that a direction keeps.
pub(crate) const RECORDS_MAX: usize = 65_536;

/// A small new segment that left while nothing small was unacknowledged, after an ACK had come
/// since the segment before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Frame of the segment.
    pub(crate) frame: u64,
    /// When it passed.
    pub(crate) time: Time,
    /// When the segment before it passed.
    pub(crate) before: Time,
    /// When the ACK passed that left nothing small (or nothing at all) unacknowledged.
    pub(crate) ack: Time,
    /// Time from the newest segment it acknowledged to the ACK; `None` by Karn.
    pub(crate) ack_age: Option<u64>,
    /// Time from the oldest one; `None` likewise.
    pub(crate) oldest_age: Option<u64>,
    /// The first data of the peer after that ACK, if any came before the segment.
    pub(crate) peer_after: Option<Time>,
    /// Last stream offset of the segment.
    pub(crate) end: u64,
    /// Bytes of the segment.
    pub(crate) len: u32,
    /// Bytes in flight before the ACK.
    pub(crate) flight_before: u32,
    /// Largest flight seen by then.
    pub(crate) flight_max: u32,
    /// What else is known.
    pub(crate) marks: Marks,
}

impl Candidate {
    /// From the ACK to the segment, milliseconds.
    pub(crate) fn gap_ms(&self) -> f64 {
        self.time.since(self.ack).as_millis_f64()
    }

    /// From the segment before to the ACK, milliseconds.
    pub(crate) fn wait_ms(&self) -> f64 {
        self.ack.since(self.before).as_millis_f64()
    }
}

/// Yes-or-no facts about a [`Candidate`].
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of one packet")]
pub(crate) struct Marks {
    /// The ACK carried no data.
    pub(crate) pure: bool,
    /// A small segment was among what was in flight before the ACK.
    pub(crate) small_before: bool,
    /// The segment did not fit the receiver's window before the ACK.
    pub(crate) window: bool,
    /// Lost data was being repaired.
    pub(crate) recovery: bool,
    /// PSH on the segment.
    pub(crate) push: bool,
}

/// A small new segment that left although a small one was unacknowledged: Nagle was off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Violation {
    pub(crate) time: Time,
    /// Last stream offset of the segment.
    pub(crate) end: u64,
    /// Since the sender's last segment or the last ACK, whichever came later, ns.
    pub(crate) silence: u64,
    /// Lost data was being repaired, or was sent again before this segment was acknowledged.
    pub(crate) repair: bool,
}

/// A new segment of exactly one MSS, alone after a pause, with data unacknowledged and no ACK
/// since the segment before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    /// Frame of the segment.
    pub(crate) frame: u64,
    /// When it passed.
    pub(crate) time: Time,
    /// When the segment before it passed.
    pub(crate) before: Time,
    /// Time since the last ACK of this direction's data, ns; `u64::MAX` if none.
    pub(crate) since_ack: u64,
    /// Last stream offset of the segment.
    pub(crate) end: u64,
    /// Bytes of the segment.
    pub(crate) len: u32,
    /// A small segment was unacknowledged.
    pub(crate) small_outstanding: bool,
    /// More data followed at once.
    pub(crate) burst: bool,
    /// PSH on the segment.
    pub(crate) push: bool,
}

/// An acknowledgment that came some time after the data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckRecord {
    /// When it passed.
    pub(crate) time: Time,
    /// Time since the oldest segment it acknowledged passed, ns.
    pub(crate) oldest_age: u64,
    /// Time since the newest segment it acknowledged passed, ns.
    pub(crate) newest_age: u64,
    /// Segments it acknowledged.
    pub(crate) segments: u16,
    /// It carried no data.
    pub(crate) pure: bool,
    /// A small segment was unacknowledged.
    pub(crate) small: bool,
    /// The peer's own data followed at once, so its application had just read: Linux acknowledges
    /// on read (tcp_cleanup_rbuf), and no timer did.
    pub(crate) answered: bool,
}

impl AckRecord {
    /// Whether a delayed-ACK timer can have sent it.
    pub(crate) fn is_timed(&self) -> bool {
        self.pure && self.small && !self.answered
    }
}

/// A silence of the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// How long, ns.
    pub(crate) nanos: u64,
    /// Time since the last ACK when it ended, ns; `u64::MAX` if none.
    pub(crate) since_ack: u64,
    /// A small segment ended it.
    pub(crate) small: bool,
    /// The receiver's window had no room before the last ACK.
    pub(crate) blocked: bool,
    /// Lost data was being repaired.
    pub(crate) recovery: bool,
}

/// When the stream reached an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// When the segment passed.
    pub(crate) time: Time,
    /// Its last stream offset.
    pub(crate) end: u64,
    /// Messages complete by then, by their framing; 0 where none fits.
    pub(crate) frames: u64,
}

/// Exact counters of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// New data segments.
    pub(crate) segments: u64,
    /// Of these, multiples of the MSS.
    pub(crate) full: u64,
    /// Full segments that left within 0.3 ms of the one before.
    pub(crate) burst: u64,
    /// Small segments that left with full ones in flight and no small one: Minshall's rule allows
    /// it, so does a write larger than the MSS in newer BSDs.
    pub(crate) small_after_full: u64,
    /// Small segments that left while a small one was unacknowledged.
    pub(crate) violations: u64,
    /// Possible holds.
    pub(crate) candidates: u64,
    /// Possible MSS fills.
    pub(crate) fills: u64,
    /// Pure ACKs that acknowledged one small segment within 2 ms of it at the capture point.
    pub(crate) prompt_single_acks: u64,
    /// Silences of 10 ms or longer that did not fit into the list.
    pub(crate) more_silences: Pause,
}

/// Silences in sum.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pause {
    /// How many.
    pub(crate) count: u64,
    /// Their sum, ns.
    pub(crate) nanos: u64,
}
