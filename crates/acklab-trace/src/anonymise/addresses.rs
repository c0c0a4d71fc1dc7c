//! Addresses that keep their prefixes: two that share their first bits share as many afterwards.
//!
//! The construction is that of Xu, Fan, Ammar and Moon, "Prefix-Preserving IP Address Anonymization" (ICNP 2002): each bit
//! is flipped or not by a keyed function of the bits before it, here BLAKE3. Below the prefixes of [`KEPT_V4`] and
//! [`KEPT_V6`] addresses stay below them, so that loopback is still loopback and nothing else becomes it; of an address
//! outside of these, the bits that it shares with one of them are seen, and one more.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::key::Key;

/// The addresses that have been met, and what they became.
#[derive(Debug)]
pub(super) struct Addresses {
    key: Key,
    met: BTreeMap<IpAddr, IpAddr>,
}

impl Addresses {
    pub(super) fn new(key: Key) -> Self {
        Self { key, met: BTreeMap::new() }
    }

    /// What stands for an address.
    pub(super) fn of(&mut self, address: IpAddr) -> IpAddr {
        if let Some(known) = self.met.get(&address) {
            return *known;
        }
        let mapped = self.map(address);
        self.met.insert(address, mapped);
        mapped
    }

    fn map(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(v4) => self.map_v4(v4).into(),
            IpAddr::V6(Ipv6Addr::LOCALHOST | Ipv6Addr::UNSPECIFIED) => address,
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => self.map_v4(v4).to_ipv6_mapped().into(),
                None => Ipv6Addr::from_bits(self.flip(v6.to_bits(), 6, 128, &KEPT_V6)).into(),
            },
        }
    }

    fn map_v4(&self, address: Ipv4Addr) -> Ipv4Addr {
        if matches!(address, Ipv4Addr::LOCALHOST | Ipv4Addr::UNSPECIFIED) {
            return address;
        }
        let bits = u128::from(address.to_bits()) << 96;
        Ipv4Addr::from_bits((self.flip(bits, 4, 32, &KEPT_V4) >> 96) as u32)
    }

    /// Flips the first `len` bits, counted from the top.
    fn flip(&self, bits: u128, version: u8, len: u32, kept: &[(u128, u32)]) -> u128 {
        let mut flipped = bits;
        for at in 0..len {
            let prefix = bits & !(u128::MAX >> at);
            let is_on_the_way_to =
                |&(to, length): &(u128, u32)| at < length && prefix == to & !(u128::MAX >> at);
            if !kept.iter().any(is_on_the_way_to) {
                let place = [&[version, at as u8][..], &prefix.to_be_bytes()].concat();
                flipped ^= u128::from(self.key.word("address", &place) & 1) << (127 - at);
            }
        }
        flipped
    }
}

/// "This network", loopback, and multicast with what is reserved (RFC 6890): prefix and its length.
const KEPT_V4: [(u128, u32); 3] = [(0, 8), (0x7f << 120, 8), (0xe0 << 120, 3)];
/// Loopback with embedded addresses, global unicast, link-local, multicast.
const KEPT_V6: [(u128, u32); 4] = [(0, 8), (0x20 << 120, 3), (0xfe80 << 112, 10), (0xff << 120, 8)];

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(a: u32, b: u32) -> u32 {
        (a ^ b).leading_zeros()
    }

    #[test]
    fn prefixes_are_kept_and_addresses_are_not() {
        let mut addresses = Addresses::new(Key::from_bytes([7; 32]));
        let all = ["192.0.2.1", "192.0.2.2", "192.0.2.129", "192.168.7.1", "10.0.0.1", "8.8.8.8"];
        let all = all.map(|text| text.parse::<Ipv4Addr>().expect("an address"));
        let mapped = all.map(|one| match addresses.of(one.into()) {
            IpAddr::V4(v4) => v4,
            IpAddr::V6(v6) => panic!("{v6}"),
        });
        for (i, a) in all.iter().enumerate() {
            assert_ne!(*a, mapped[i]);
            assert!(!mapped[i].is_loopback() && !mapped[i].is_multicast());
            for (j, b) in all.iter().enumerate() {
                let was = shared(a.to_bits(), b.to_bits());
                assert_eq!(shared(mapped[i].to_bits(), mapped[j].to_bits()), was);
            }
        }
        let other = Addresses::new(Key::from_bytes([8; 32])).of(all[0].into());
        assert_ne!(other, IpAddr::V4(mapped[0]), "another key, other addresses");
    }

    #[test]
    fn loopback_stays_and_the_rest_of_an_ipv6_address_goes() {
        let mut addresses = Addresses::new(Key::from_bytes([7; 32]));
        let mut of = |text: &str| addresses.of(text.parse().expect("an address")).to_string();
        assert_eq!([of("127.0.0.1"), of("::1")], ["127.0.0.1", "::1"]);
        assert!(of("127.1.2.3").starts_with("127."));
        // The MAC in an interface identifier (EUI-64) is not there any more.
        let local = of("fe80::0211:22ff:fe33:4455");
        assert!(local.parse::<Ipv6Addr>().expect("an address").is_unicast_link_local(), "{local}");
        assert!(!local.contains("ff:fe"), "{local}");
        assert!(of("::ffff:192.0.2.1").starts_with("::ffff:"));
        assert!(
            of("2001:db8::1").parse::<Ipv6Addr>().expect("an address").segments()[0] >> 13 == 1
        );
    }
}
