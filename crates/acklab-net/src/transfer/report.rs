//! What there is to say about a transfer's paths, and how much went over the wire.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use acklab_core::time::{Span, Time};
use acklab_rudp::{Connection, PathState, PathStats};

/// How often progress is told.
pub const INTERVAL: Span = Span::from_millis(200);

/// A path as the user sees it.
#[derive(Clone, Copy, Debug)]
pub struct PathReport {
    /// This end's address.
    pub local: SocketAddr,
    /// The other end's.
    pub remote: SocketAddr,
    /// Bytes of UDP payload sent on it.
    pub bytes: u64,
    /// Datagrams sent on it.
    pub datagrams: u64,
    /// Bytes sent on it that were lost.
    pub lost: u64,
    /// Smoothed round trip, once measured.
    pub rtt: Option<Span>,
    /// Whether it lives.
    pub state: PathState,
}

impl PathReport {
    fn new(stats: &PathStats) -> Self {
        let &PathStats { addrs, packets, bytes, lost, srtt, state, .. } = stats;
        let (local, remote) = (addrs.local, addrs.remote);
        Self { local, remote, bytes, datagrams: packets, lost, rtt: srtt, state }
    }

    /// Bytes of IP packets: 28 more per datagram than of UDP payload over IPv4, 48 over IPv6.
    pub fn wire_bytes(&self) -> u64 {
        let headers = if self.remote.is_ipv6() { 48 } else { 28 };
        self.bytes + self.datagrams * headers
    }

    /// Share of the bytes sent that were lost.
    pub fn loss(&self) -> f64 {
        if self.bytes == 0 { 0.0 } else { self.lost as f64 / self.bytes as f64 }
    }
}

/// Every path that a connection has had.
#[derive(Debug, Default)]
pub(super) struct Paths(BTreeMap<u8, PathReport>);

impl Paths {
    /// Takes what the connection says now; a path that it no longer has keeps its last figures.
    pub(super) fn update(&mut self, connection: &Connection) {
        for report in self.0.values_mut() {
            report.state = PathState::Gone;
        }
        for stats in connection.path_stats() {
            self.0.insert(stats.id, PathReport::new(&stats));
        }
    }

    pub(super) fn to_vec(&self) -> Vec<PathReport> {
        self.0.values().copied().collect()
    }
}

/// A rhythm: due at once, then every [`INTERVAL`].
#[derive(Debug, Default)]
pub(super) struct Rhythm(Time);

impl Rhythm {
    pub(super) fn is_due(&mut self, now: Time) -> bool {
        let due = now >= self.0;
        if due {
            self.0 = now + INTERVAL;
        }
        due
    }

    pub(super) const fn next(&self) -> Time {
        self.0
    }
}
