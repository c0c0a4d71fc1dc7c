//! ACK policies: when does a receiver acknowledge? One policy, one file.
//!
//! A policy sees named samples of what happened and answers with a [`Decision`]; it owns its timer
//! and knows nothing of packets, so the same policy serves TCP in virtual time, TCP on the wire and
//! reliable UDP. RFC 9293 section 3.8.6.3 and RFC 5681 section 4.2 bound it: at most 500 ms, at
//! least every second full-sized segment, at once for out-of-order data; the transport enforces the
//! last itself, so that no policy can break loss recovery.

pub mod ack_frequency;
pub mod ack_rate_limit;
pub mod delayed;
pub mod every_segment;
pub mod linux;
pub mod macos;
mod profile;
pub mod solaris;
pub mod tack;
pub mod tick;

pub use profile::{Factory, Policy, Profile};

use crate::time::{Span, Time};

/// In-order data arrived.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent observations about one segment")]
pub struct DataSample {
    /// Payload bytes.
    pub len: u32,
    /// PSH was set.
    pub push: bool,
    /// The effective MSS for data towards us, bytes.
    pub mss: u32,
    /// Segments in order since our last ACK, this one included.
    pub unacked_segments: u32,
    /// Bytes in order since our last ACK, this one included.
    pub unacked_bytes: u32,
    /// Free receive window, bytes.
    pub window: u32,
    /// The window we would now advertise is no smaller than the one last advertised.
    pub window_not_shrunk: bool,
    /// The last window advertised was zero.
    pub was_zero_window: bool,
    /// This segment let the receive window open further than before.
    pub window_grew: bool,
    /// Smoothed round trip, where known.
    pub srtt: Option<Span>,
    /// Retransmission time-out in force.
    pub rto: Span,
}

/// The application read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadSample {
    /// Bytes read.
    pub copied: u32,
    /// Bytes in order since our last ACK.
    pub unacked_bytes: u32,
    /// Nothing more waits to be read.
    pub queue_empty: bool,
    /// Free receive window, bytes.
    pub window: u32,
    /// Window last advertised, less what has arrived since, bytes.
    pub advertised: u32,
}

/// What to do about acknowledging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Acknowledge at once.
    Now,
    /// Not yet: the policy's own timer will tell ([`AckPolicy::poll_timeout`]).
    Wait,
}

/// How data that arrived is not simply the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disorder {
    /// It lies beyond a gap.
    Ahead,
    /// It fills a gap, or a part of one.
    Filling,
    /// Some of it had arrived before, or has no room.
    Repeated,
}

/// When a receiver acknowledges.
///
/// The transport calls `on_*` as things happen and `handle_timeout` when `poll_timeout` is due.
/// Every ACK that leaves, whatever its reason, is told through `on_ack_sent`, which disarms.
pub trait AckPolicy {
    /// In-order data arrived.
    fn on_data(&mut self, now: Time, sample: &DataSample) -> Decision;

    /// Data arrived that is not simply the next; the transport acknowledges it at once by itself.
    /// `window` is the free receive window in bytes.
    fn on_disorder(&mut self, _now: Time, _disorder: Disorder, _window: u32) {}

    /// The application read.
    fn on_read(&mut self, _now: Time, _sample: &ReadSample) -> Decision {
        Decision::Wait
    }

    /// We sent data of our own (an ACK rode along).
    fn on_data_sent(&mut self, _now: Time) {}

    /// The application set or cleared `TCP_QUICKACK` (`always`: the route's quickack metric, which
    /// is not undone by the conversation).
    fn on_quickack(&mut self, _now: Time, _on: bool, _always: bool) {}

    /// The sender asked for an ACK each `segments` full segments, at least 1; it may ask again. What cannot wait, and
    /// the bound of the timer, stay as they are. A policy that does not say so ([`Profile::honours_requests`])
    /// goes its own way.
    fn on_request(&mut self, _segments: u32) {}

    /// Segments per ACK and the most that they may become, where the policy limits them and they changed since this was
    /// last asked.
    fn poll_rate(&mut self) -> Option<[u32; 2]> {
        None
    }

    /// An ACK left.
    fn on_ack_sent(&mut self, now: Time);

    /// The timer came due: whether to acknowledge now.
    fn handle_timeout(&mut self, now: Time, rto: Span) -> Decision;

    /// When the timer is due.
    fn poll_timeout(&self) -> Option<Time>;
}
