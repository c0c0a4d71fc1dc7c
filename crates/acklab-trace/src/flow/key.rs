//! The key of a connection: its two endpoints in canonical order, and a fast hash of them.

use std::hash::{BuildHasherDefault, Hasher};
use std::net::IpAddr;

use crate::segment::Endpoint;

/// Both endpoints, the lesser first, so that both directions have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FlowKey {
    low: u128,
    high: u128,
    /// Port of the lesser, port of the greater, and which of the addresses are IPv6.
    ports: u64,
}

impl FlowKey {
    /// The key of both directions between two endpoints.
    #[inline]
    pub(super) fn new(src: Endpoint, dst: Endpoint) -> Self {
        let (a, b) = (number(src.addr), number(dst.addr));
        let src_first = (a, src.port) <= (b, dst.port);
        let ports = (u64::from(src.port), u64::from(dst.port));
        let v6 = u64::from(src.addr.is_ipv6()) << 32;
        if src_first {
            Self { low: a, high: b, ports: v6 | (ports.0 << 16) | ports.1 }
        } else {
            Self { low: b, high: a, ports: v6 | (ports.1 << 16) | ports.0 }
        }
    }
}

#[inline]
fn number(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// A multiply-and-fold hash. Collisions that a capture contrives cost time in proportion to the
/// live flows, whose number is bounded.
#[derive(Default)]
pub(super) struct KeyHasher(u64);

/// Builds [`KeyHasher`]s.
pub(super) type BuildKeyHasher = BuildHasherDefault<KeyHasher>;

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ SEED) * u128::from(MULTIPLIER);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    #[inline]
    fn write_u128(&mut self, word: u128) {
        // The upper half of an IPv4 address is zero: no need to mix it in.
        if word >> 64 != 0 {
            self.write_u64((word >> 64) as u64);
        }
        self.write_u64(word as u64);
    }
}

/// Two odd constants without structure: the fraction bits of pi.
const SEED: u64 = 0x243f_6a88_85a3_08d3;
const MULTIPLIER: u64 = 0x1319_8a2e_0370_7345;
