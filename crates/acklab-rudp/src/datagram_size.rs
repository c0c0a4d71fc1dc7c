//! How large datagrams may be on a path (docs/rudp.md section 2, "Size of datagrams"; RFC 8899).
//!
//! The search begins at the size that every path carries and tries the few sizes that real networks
//! have. What the congestion control counts in is the present size; it is told once, at its start.

use std::net::SocketAddr;

use super::config::ETHERNET_DATAGRAM;
use acklab_core::time::{Span, Time};

/// What every path must carry, bytes of UDP payload (RFC 9000 section 14.1).
pub(super) const BASE: usize = 1200;
/// Tried first: fits tunnels and IPv6.
const TUNNEL: usize = 1452;
/// MAX_PROBES of RFC 8899 section 5.1.2.
const PROBES: u32 = 3;
/// A search that lost its probes is repeated once after this time.
const SECOND_SEARCH: Span = Span::from_secs(5);
/// PMTU_RAISE_TIMER of RFC 8899 section 5.1.1.
const RAISE: Span = Span::from_secs(600);
/// An IPv6 header is 20 bytes longer than an IPv4 one.
const IPV6_MORE: usize = 20;

/// The search on one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatagramSize {
    current: usize,
    largest: usize,
    /// A probe is on its way.
    probing: bool,
    losses: u32,
    searches: u32,
    again_at: Time,
}

impl DatagramSize {
    /// `largest` is for IPv4.
    pub(super) fn new(largest: usize, remote: SocketAddr) -> Self {
        let less = if remote.is_ipv6() { IPV6_MORE } else { 0 };
        let largest = largest.saturating_sub(less).max(BASE);
        Self {
            current: BASE,
            largest,
            probing: false,
            losses: 0,
            searches: 0,
            again_at: Time::ZERO,
        }
    }

    /// The peer takes no more than this.
    pub(super) fn limit(&mut self, largest: usize) {
        self.largest = self.largest.min(largest).max(BASE);
        self.current = self.current.min(self.largest);
    }

    /// Bytes of a full datagram now.
    pub(super) const fn current(&self) -> usize {
        self.current
    }

    pub(super) fn poll_probe(&self, now: Time) -> Option<usize> {
        if self.probing || self.current >= self.largest || now < self.again_at {
            return None;
        }
        [TUNNEL, ETHERNET_DATAGRAM]
            .into_iter()
            .find(|&size| size > self.current && size <= self.largest)
            .or(Some(self.largest))
    }

    pub(super) const fn on_probe_sent(&mut self) {
        self.probing = true;
    }

    pub(super) fn on_arrived(&mut self, size: u32) {
        self.probing = false;
        self.losses = 0;
        self.current = self.current.max((size as usize).min(self.largest));
    }

    pub(super) fn on_lost(&mut self, now: Time) {
        self.probing = false;
        self.losses += 1;
        if self.losses == PROBES {
            self.losses = 0;
            self.searches += 1;
            self.again_at = now + if self.searches == 1 { SECOND_SEARCH } else { RAISE };
        }
    }

    /// Nothing is acknowledged any more: it may be the size. Back to the base, to search again later.
    pub(super) fn on_silence(&mut self, now: Time) {
        self.current = BASE;
        self.probing = false;
        self.losses = 0;
        self.again_at = now + SECOND_SEARCH;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOTE: &str = "10.0.0.1:7";

    #[test]
    fn the_search_climbs_and_stops_at_what_is_lost() {
        let mut size = DatagramSize::new(ETHERNET_DATAGRAM, REMOTE.parse().expect("an address"));
        let now = Time::ZERO;
        assert_eq!((size.current(), size.poll_probe(now)), (1200, Some(1452)));
        size.on_probe_sent();
        assert_eq!(size.poll_probe(now), None);
        size.on_arrived(1452);
        assert_eq!((size.current(), size.poll_probe(now)), (1452, Some(1472)));
        for _ in 0..3 {
            size.on_probe_sent();
            size.on_lost(now);
        }
        assert_eq!(size.poll_probe(now), None);
        assert_eq!(size.poll_probe(now + SECOND_SEARCH), Some(1472));
    }

    #[test]
    fn the_peers_limit_and_longer_headers_count() {
        let mut size = DatagramSize::new(ETHERNET_DATAGRAM, "[::1]:7".parse().expect("an address"));
        size.on_arrived(1452);
        assert_eq!((size.current(), size.poll_probe(Time::ZERO)), (1452, None));
        size.limit(1300);
        assert_eq!(size.current(), 1300);
    }
}
