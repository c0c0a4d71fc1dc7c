//! What is noted of a packet: the values that the first floor hands up.
//!
//! Times are nanoseconds since the epoch, as captured.

use acklab_core::time::Time;

/// A packet of one direction: its data, or an acknowledgment of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Data(DataNote),
    Ack(AckNote),
}

impl Event {
    /// When it passed the capture point.
    pub(crate) fn time(&self) -> Time {
        match self {
            Self::Data(data) => data.time,
            Self::Ack(ack) => ack.time,
        }
    }
}

/// A segment with payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataNote {
    pub(crate) frame: u64,
    /// When it passed.
    pub(crate) time: Time,
    /// First stream offset.
    pub(crate) offset: u64,
    /// Bytes of payload.
    pub(crate) len: u32,
    /// Messages complete by then, by their framing; 0 where none fits.
    pub(crate) frames: u64,
    pub(crate) kind: Kind,
    pub(crate) push: bool,
    /// FIN or URG was set: Nagle's algorithm does not hold it.
    pub(crate) exempt: bool,
    /// It acknowledges data of the peer that the capture does not hold.
    pub(crate) hears_unseen: bool,
}

impl DataNote {
    /// One past its last stream offset.
    pub(crate) fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }
}

/// How a segment relates to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Right after the highest byte seen.
    New,
    /// Beyond bytes that the capture does not hold by then.
    Gap,
    /// Bytes sent again.
    Again,
    /// Bytes that came late, or of which a part is new.
    Late,
}

/// A packet of the peer that acknowledged more, opened the window, or carried data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckNote {
    pub(crate) frame: u64,
    /// When it passed.
    pub(crate) time: Time,
    /// The stream offset below which all has arrived.
    pub(crate) acked_to: u64,
    /// Where the receiver's window ends; 0 where its scale is not known.
    pub(crate) edge: u64,
    /// Time since the newest segment that it acknowledges passed, ns, and since the oldest; `None` where
    /// nothing new is acknowledged, or bytes that were sent again (Karn).
    pub(crate) ages: Option<[u64; 2]>,
    /// Segments newly acknowledged.
    pub(crate) segments: u16,
    /// Payload that it carries the other way.
    pub(crate) len: u32,
    /// It carries nothing else.
    pub(crate) pure: bool,
}

/// Exact counters of a direction, whatever the tape has room for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// New data segments.
    pub(crate) segments: u64,
    /// Of these, multiples of the MSS.
    pub(crate) full: u64,
    /// Full segments that left within 0.3 ms of the one before.
    pub(crate) burst: u64,
}

impl Counts {
    /// New segments that are no multiples of the MSS.
    pub(crate) fn small(&self) -> u64 {
        self.segments - self.full
    }
}
