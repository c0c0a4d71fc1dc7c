//! What the flow tracker tells the analysers of one direction: every segment, already put in its
//! place in the connection.
//!
//! A *direction* is the data from one endpoint (`from`, the data sender) to the other (`to`, which
//! acknowledges). [`DataSeen`] travels with the data, [`AckSeen`] against it. One packet can be
//! both: a data segment of one direction that acknowledges the other. The acknowledgment is then
//! told first, because the sender saw that ACK before it sent the data.

use acklab_core::time::{Span, Time};

use super::facts::DirectionFacts;
use crate::segment::Endpoint;

/// What listens to one direction; the flow table is generic over it, so no call is virtual.
///
/// The table opens one observer per direction, tells it every segment in capture order, and closes
/// it with the facts of both directions when the connection has ended, fell idle, or the capture is
/// over. What [`finish`](Self::finish) returns should be small: the table keeps thousands of them.
///
/// Where to expect what: frames captured twice arrive as [`DataKind::Duplicate`]; a bare FIN is a
/// [`DataSeen`] with `len` 0; a segment that overlaps old data and brings new bytes too is
/// [`DataKind::Retransmission`] with `offset + len` beyond the highest seen; the handshake itself
/// (SYN, SYN-ACK) is not told, its outcome stands in `mss`, `window_left` and the facts.
///
/// ```
/// use acklab_trace::capture::CaptureReader;
/// use acklab_trace::flow::observe::DataSeen;
/// use acklab_trace::flow::{DirectionFacts, DirectionObserver, FlowTable};
/// use acklab_trace::read::read_capture;
/// use acklab_trace::segment::Endpoint;
///
/// /// The shortest segment of a direction.
/// struct Shortest(u32);
///
/// impl DirectionObserver for Shortest {
///     type Report = u32;
///
///     fn open(_from: Endpoint, _to: Endpoint) -> Self {
///         Self(u32::MAX)
///     }
///     fn on_data(&mut self, seen: &DataSeen<'_>) {
///         self.0 = if seen.len > 0 { self.0.min(seen.len) } else { self.0 };
///     }
///     fn finish(self, _facts: &DirectionFacts, _opposite: &DirectionFacts) -> u32 {
///         self.0
///     }
/// }
///
/// let mut reader = CaptureReader::open("../../demo/nagle-linux.pcapng".as_ref())?;
/// let mut table = FlowTable::<Shortest>::default();
/// read_capture(&mut reader, &mut table, |_bytes_read| {})?;
/// let flow = &table.finish().flows[0];
/// assert_eq!(flow.directions[0].observed, 10);
/// # Ok::<(), acklab_trace::capture::CaptureError>(())
/// ```
pub trait DirectionObserver {
    /// What remains of the direction once it is over.
    type Report;

    /// A new direction: data from `from` to `to`.
    fn open(from: Endpoint, to: Endpoint) -> Self;

    /// A segment with payload or FIN, or a probe, of this direction.
    fn on_data(&mut self, _seen: &DataSeen<'_>) {}

    /// An acknowledgment of this direction, told before the data of the same packet.
    fn on_ack(&mut self, _seen: &AckSeen) {}

    /// Bytes of memory that the observer holds beyond its own size, roughly.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Memory is short, and this observer holds much of it: give up at least half of what is held
    /// (keep counting, and say in the report that it is a sample).
    fn shed(&mut self) {}

    /// The connection is over: what `opposite` observed of the other direction can be taken over before [`Self::finish`].
    fn heed(&mut self, _opposite: &Self)
    where
        Self: Sized,
    {
    }

    /// The direction is over. `facts` are its own, `opposite` those of the other direction.
    fn finish(self, facts: &DirectionFacts, opposite: &DirectionFacts) -> Self::Report;

    /// Time this direction lost in stalls: of all flows, the table keeps the most stalled in detail and
    /// counts the rest.
    fn stalled(_report: &Self::Report) -> Span {
        Span::ZERO
    }

    /// The report's connection is not the one to look closely at: give up what is kept for that one alone.
    fn lighten(_report: &mut Self::Report) {}
}

/// An observer that can be asked before its direction is over, and begin anew in the middle of it.
pub trait LiveObserver: DirectionObserver + Clone {
    /// Grows with whatever can change the report.
    fn noted(&self) -> u64;

    /// Segments observed since it began.
    fn segments(&self) -> u64;

    /// Forgets what was observed, but not where the stream stands.
    fn begin_anew(&mut self);
}

/// The observer that sees nothing, for facts alone.
impl DirectionObserver for () {
    type Report = ();

    fn open(_from: Endpoint, _to: Endpoint) -> Self {}

    fn finish(self, _facts: &DirectionFacts, _opposite: &DirectionFacts) -> Self::Report {}
}

/// A segment with payload (or FIN) of this direction.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of one packet")]
#[non_exhaustive]
pub struct DataSeen<'a> {
    /// Frame number, from 1.
    pub frame: u64,
    /// Capture time.
    pub time: Time,
    /// Offset of the first byte in the direction's stream; 0 is the first byte after the SYN, or
    /// the first byte seen where the capture begins mid-connection.
    pub offset: u64,
    /// Payload bytes on the wire.
    pub len: u32,
    /// The captured part of the payload.
    pub payload: &'a [u8],
    /// How the segment relates to what was seen before.
    pub kind: DataKind,
    /// PSH was set.
    pub push: bool,
    /// FIN or URG was set: no stack holds such a segment back by Nagle's algorithm (Linux: `tcp_nagle_test`, FreeBSD:
    /// `tcp_default_output`).
    pub exempt: bool,
    /// The packet acknowledges data of the peer that the capture does not hold.
    pub hears_unseen: bool,
    /// Bytes of this direction sent and not acknowledged, as seen at the capture point, before this
    /// segment.
    pub in_flight: u64,
    /// Bytes the receiver's window left open before this segment; `None` where the scale is unknown
    /// (the capture missed the handshake).
    pub window_left: Option<u64>,
    /// The effective MSS of this direction: from the handshake less the timestamp option, else the
    /// largest segment seen so far.
    pub mss: u32,
    /// Its IP identification is the next after that of the packet before it from this host: nothing from this host died
    /// between the two. Hosts that count otherwise never show it.
    pub follows: bool,
    /// From the capture point to the data's sender and back, as short as seen by now, if the
    /// handshake was seen.
    pub to_sender: Option<Span>,
}

/// How a data segment relates to the data seen before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// New data right after the highest byte seen.
    New,
    /// New data beyond a gap (the capture lost frames, or reordering).
    NewAfterGap,
    /// Bytes that were seen before, sent again by the sender.
    Retransmission,
    /// Bytes that were seen before and arrive late: reordered, not sent again.
    Reordered,
    /// The same frame captured twice (same IP id or same instant).
    Duplicate,
    /// A keep-alive or zero-window probe: one byte or none below the highest seen.
    Probe,
}

/// An acknowledgment of this direction's data, travelling against it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AckSeen {
    /// Frame number, from 1.
    pub frame: u64,
    /// Capture time.
    pub time: Time,
    /// The stream offset acknowledged: all bytes below it have arrived.
    pub acked_to: u64,
    /// Bytes newly acknowledged; 0 for a duplicate or window update.
    pub newly_acked: u64,
    /// Segments newly acknowledged.
    pub newly_acked_segments: u32,
    /// No payload, SYN, FIN or RST in the packet.
    pub pure: bool,
    /// Payload bytes that the packet carries for the opposite direction.
    pub payload_len: u32,
    /// A duplicate ACK in RFC 5681's sense, or one that carries SACK blocks.
    pub duplicate: bool,
    /// It carries SACK blocks.
    pub sacks: bool,
    /// The window it advertises, in bytes, where the scale is known.
    pub window: Option<u64>,
    /// Time since the *oldest* newly acknowledged segment passed the capture point; `None` if
    /// nothing new was acknowledged or one of the bytes was retransmitted (Karn).
    pub oldest_age: Option<Span>,
    /// Time since the *newest* newly acknowledged segment passed the capture point.
    pub newest_age: Option<Span>,
    /// Bytes still in flight after this ACK.
    pub in_flight: u64,
}
