//! What a connection tells the layer above, and the datagrams that it gives.

use std::net::SocketAddr;

use super::code::Code;
use super::life::PathState;
use super::piece::ContentEvent;
use acklab_core::event::FlowKey;
use acklab_core::packet::Ecn;
use acklab_core::time::Span;
use acklab_core::units::BitRate;

/// The two ends of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathAddrs {
    /// Where this end sends from.
    pub local: SocketAddr,
    /// Where it sends to.
    pub remote: SocketAddr,
}

impl PathAddrs {
    /// Whether both lead to one address of the peer's from one port: which of its own addresses a host sends from may
    /// be its routes' choice, packet by packet.
    pub(super) fn leads_where(&self, other: &Self) -> bool {
        (self.remote, self.local.port()) == (other.remote, other.local.port())
    }

    /// The flow as which the event stream knows a path with these ends.
    pub fn flow(&self) -> FlowKey {
        FlowKey { local: self.local.into(), remote: self.remote.into() }
    }
}

/// What a connection tells the layer above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is done; the peer's public key where it has shown one.
    Opened {
        /// X25519 public key.
        peer: Option<[u8; 32]>,
    },
    /// A stream or parcel has something to say.
    Content(ContentEvent),
    /// A path changed its state.
    Path {
        /// Its id.
        id: u8,
        /// The new state.
        state: PathState,
    },
    /// The peer can be reached at this address too.
    Address(SocketAddr),
    /// The connection is over.
    Closed {
        /// Why.
        code: Code,
        /// The peer's words, or ours.
        text: String,
        /// The peer ended it.
        by_peer: bool,
    },
}

/// A batch of datagrams of one length, of which the last may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transmit {
    pub(super) addrs: PathAddrs,
    /// ECN field of all.
    pub(super) ecn: Ecn,
    /// Bytes in all.
    pub(super) len: usize,
    /// Bytes of each but the last.
    pub(super) segment: usize,
}

impl Transmit {
    /// One datagram that bears no mark.
    pub(super) const fn one(addrs: PathAddrs, len: usize) -> Self {
        Self { addrs, ecn: Ecn::NotEct, len, segment: len }
    }
}

/// What there is to say about a path.
#[derive(Clone, Copy, Debug)]
pub struct PathStats {
    /// Its id.
    pub id: u8,
    /// Its ends.
    pub addrs: PathAddrs,
    /// Whether it lives.
    pub state: PathState,
    /// Datagrams and bytes of UDP payload sent.
    pub packets: u64,
    /// Bytes of UDP payload sent.
    pub bytes: u64,
    /// Bytes of UDP payload received.
    pub bytes_received: u64,
    /// Bytes of content sent, copies included.
    pub content: u64,
    /// Bytes declared lost and not acknowledged since.
    pub lost: u64,
    /// Bytes on the way.
    pub in_flight: u64,
    /// Smoothed round trip, where measured.
    pub srtt: Option<Span>,
    /// Least round trip of the last 10 s, where measured.
    pub least_rtt: Option<Span>,
    /// Bytes of content acknowledged, each counted once.
    pub delivered: u64,
    /// Recoveries that losses began, and probe time-outs that expired.
    pub recoveries: u64,
    /// See `recoveries`.
    pub timeouts: u64,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes.
    pub ssthresh: u64,
    /// Pacing rate of the congestion control, if it has one.
    pub rate: Option<BitRate>,
    /// Bytes of UDP payload in a full datagram.
    pub datagram: usize,
}
