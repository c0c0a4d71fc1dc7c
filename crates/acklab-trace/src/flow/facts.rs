//! The facts of one direction: what was counted and measured, before anything is inferred.
//!
//! A *direction* is the data from one endpoint to the other, with the acknowledgments that the
//! other sends back for it.

use acklab_core::time::{Span, Time};

use crate::segment::Endpoint;

/// What was counted and measured of one direction.
#[derive(Clone, Debug)]
pub struct DirectionFacts {
    /// The data sender.
    pub from: Endpoint,
    /// The data receiver, which acknowledges.
    pub to: Endpoint,
    /// Stream bytes seen or acknowledged, each once.
    pub bytes: u64,
    /// Segments with payload, those sent again included, frames captured twice not.
    pub segments: u64,
    /// Segments (and FINs) whose bytes had been sent before.
    pub retransmissions: u64,
    /// Segments that arrived late at the capture point, but were sent once.
    pub reordered: u64,
    /// Frames captured twice.
    pub duplicates: u64,
    /// Keep-alives and zero-window probes.
    pub probes: u64,
    /// Times the stream jumped: lost before the capture point, or by the capture itself.
    pub gaps: u64,
    /// Bytes acknowledged that the capture does not hold.
    pub unseen_bytes: u64,
    /// Packets from `to` that only acknowledge.
    pub pure_acks: u64,
    /// Packets from `to` that acknowledge new data on top of data of their own.
    pub acks_on_data: u64,
    /// Duplicate ACKs (RFC 5681 section 2) and those with SACK blocks.
    pub duplicate_acks: u64,
    /// Packets from `to` with SACK blocks.
    pub sack_acks: u64,
    /// Packets from `to` that advertise a window of zero.
    pub zero_windows: u64,
    /// Data segments per pure ACK.
    pub segments_per_ack: Option<f64>,
    /// Bytes per pure ACK, in units of the MSS.
    pub mss_per_ack: Option<f64>,
    /// How long pure ACKs waited at the receiver after the oldest segment that they newly
    /// acknowledge had come; a queue on the path is not counted in.
    pub ack_delay: Option<Spread>,
    /// The same in bins of 1 ms from 0, trimmed; the last of 500 holds what lies beyond.
    pub ack_delay_bins_1ms: Vec<u64>,
    /// Round-trip time of the whole path.
    pub rtt: Option<Rtt>,
    /// What `from` offered in its SYN, where the capture holds it.
    pub handshake: Option<Handshake>,
    /// The effective MSS: the lesser of the two offered, less the timestamp option, or what the
    /// path forced it down to; else by the largest segment seen, at least 536.
    pub mss: u32,
    /// The longest payload seen, which is above the MSS where offload was captured.
    pub segment_max: u32,
    /// Smallest and largest window that `to` advertised after the handshake, bytes; where the
    /// scale is unknown, as it stands.
    pub window: Option<WindowRange>,
    /// The most bytes in flight as seen at the capture point.
    pub in_flight_max: u64,
    /// Time to live of `from`'s packets; the lowest seen.
    pub ttl: Option<u8>,
    /// Where the capture was made, seen from this direction.
    pub capture_point: CapturePoint,
    /// How sure that is, 0 to 1.
    pub capture_point_confidence: f64,
    /// First and last frame with data of this direction, 0 if none.
    pub first_frame: u64,
    /// See `first_frame`.
    pub last_frame: u64,
    /// Time of the first frame with data.
    pub first_time: Time,
    /// Time of the last.
    pub last_time: Time,
}

/// Quantiles of a distribution of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Median.
    pub p50: Span,
    /// 95th percentile.
    pub p95: Span,
    /// Largest.
    pub max: Span,
    /// How many were measured.
    pub samples: u64,
}

/// Round-trip time of the path, put together from its two parts at the capture point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtt {
    /// Least: the least of both parts.
    pub min: Span,
    /// Median.
    pub p50: Span,
    /// 95th percentile.
    pub p95: Span,
    /// Largest.
    pub max: Span,
    /// Samples behind the quantiles; 0 where the handshake alone is known.
    pub samples: u64,
    /// What the quantiles were measured on.
    pub basis: RttBasis,
    /// Least time from the capture point to the receiver and back.
    pub to_receiver_min: Option<Span>,
    /// Least time from the capture point to the sender and back.
    pub to_sender_min: Option<Span>,
}

/// What the quantiles of an [`Rtt`] were measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttBasis {
    /// ACKs that no delayed-ACK timer held: each covers two full segments or more.
    ForcedAcks,
    /// ACKs close behind the fastest (within half as much again, 1 to 10 ms); slower ones may have
    /// waited for a timer.
    PromptAcks,
    /// Full segments that echo the timestamp of an ACK: the sender's side of the path.
    TimestampEchoes,
    /// The handshake alone.
    Handshake,
}

/// What one side offered in its SYN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// Maximum segment size, bytes.
    pub mss: Option<u16>,
    /// Window scale, as a shift.
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: bool,
}

/// Smallest and largest advertised window, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowRange {
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
}

/// Where a capture was made, seen from a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturePoint {
    /// On the data sender, or next to it.
    Sender,
    /// On the data receiver, or next to it.
    Receiver,
    /// Both ends are on the capturing host.
    Loopback,
    /// On the way, away from both.
    Between,
    /// It cannot be told.
    Unknown,
}
