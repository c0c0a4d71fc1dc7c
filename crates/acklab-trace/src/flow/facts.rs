//! The facts of one direction: what was counted and measured, before anything is inferred.
//!
//! A *direction* is the data from one endpoint to the other, with the acknowledgments that the
//! other sends back for it.

use acklab_core::time::{Span, Time};

use crate::segment::Endpoint;

/// What was counted and measured of one direction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DirectionFacts {
    /// The data sender.
    pub from: Endpoint,
    /// The data receiver, which acknowledges.
    pub to: Endpoint,
    /// Packets by kind.
    pub packets: PacketCounts,
    /// The stream of bytes.
    pub stream: StreamFacts,
    /// How long pure ACKs waited at the receiver after the oldest segment that they newly
    /// acknowledge had come; a queue on the path is not counted in.
    pub ack_delay: Option<AckDelay>,
    /// Round-trip time of the whole path.
    pub rtt: Option<Rtt>,
    /// Smallest and largest window that `to` advertised after the handshake, bytes; where the
    /// scale is unknown, as it stands.
    pub window: Option<WindowRange>,
    /// Time to live of `from`'s packets; the lowest seen.
    pub ttl: Option<u8>,
    /// Where the capture was made, seen from this direction.
    pub vantage: Vantage,
    /// Time of the first frame with data.
    pub first_time: Time,
}

impl DirectionFacts {
    /// Data segments per pure ACK.
    pub fn segments_per_ack(&self) -> Option<f64> {
        self.per_ack(self.packets.segments as f64)
    }

    /// Bytes per pure ACK, in units of the MSS.
    pub fn mss_per_ack(&self) -> Option<f64> {
        self.per_ack(self.stream.bytes as f64 / f64::from(self.stream.mss))
    }

    fn per_ack(&self, n: f64) -> Option<f64> {
        (self.packets.pure_acks > 0).then(|| n / self.packets.pure_acks as f64)
    }
}

/// Packets of one direction by kind: data from the sender, acknowledgments from the receiver.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PacketCounts {
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
    /// Packets from the receiver that only acknowledge.
    pub pure_acks: u64,
    /// Packets from the receiver that acknowledge new data on top of the data that they carry.
    pub acks_on_data: u64,
    /// Of these, those for data of [`OVERDUE`] and a round trip earlier that was not sent again: an ACK that carried
    /// nothing else came before, and the capture lacks it.
    pub overdue_acks: u64,
    /// Packets from the receiver that the capture lacks, put back by the timestamps that the sender echoed.
    pub inferred: u64,
    /// Duplicate ACKs (RFC 5681 section 2) and those with SACK blocks.
    pub duplicate_acks: u64,
    /// Packets from the receiver with SACK blocks.
    pub sack_acks: u64,
    /// Packets from the receiver that advertise a window of zero.
    pub zero_windows: u64,
}

/// No receiver keeps an ACK for half of it (RFC 1122 section 4.2.3.2: less than 0.5 s), and a sender without one sends
/// again by then (RFC 6298 section 2.1: 1 s at first).
pub(super) const OVERDUE: Span = Span::from_secs(1);

/// What is known of one direction's stream of bytes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StreamFacts {
    /// Bytes seen or acknowledged, each once.
    pub bytes: u64,
    /// Times the stream jumped: lost before the capture point, or by the capture itself.
    pub gaps: u64,
    /// Bytes acknowledged that the capture does not hold.
    pub unseen_bytes: u64,
    /// The most bytes in flight as seen at the capture point.
    pub in_flight_max: u64,
    /// The effective MSS: the lesser of the two offered, less the timestamp option, or what the
    /// path forced it down to; else by the largest segment seen, at least 536.
    pub mss: u32,
    /// What the sender offered in its SYN, where the capture holds it.
    pub offer: Option<Offer>,
}

/// How long pure ACKs waited at the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckDelay {
    /// Median.
    pub p50: Span,
    /// 95th percentile.
    pub p95: Span,
    /// Largest.
    pub max: Span,
    /// Counts in bins of 1 ms from 0, trimmed; the last of 500 holds what lies beyond.
    pub bins_1ms: Vec<u64>,
}

/// Round-trip time of the path, put together from its two parts at the capture point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
#[non_exhaustive]
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
#[non_exhaustive]
pub struct Offer {
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

/// Where a capture was made, and how sure that is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Vantage {
    /// Where.
    pub point: CapturePoint,
    /// From 0 to 1.
    pub confidence: f64,
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
