//! `struct sockaddr_in` and `sockaddr_in6` as bytes. IPv4 in IPv6 is IPv4 to the host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use acklab_host::errno;
use acklab_host::socket::Family;

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
/// `EAFNOSUPPORT`.
const NO_SUCH_FAMILY: i32 = 97;

/// An address with its port; `None`: AF_UNSPEC.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<(IpAddr, u16)>, i32> {
    let pair = |at: usize| Some([*bytes.get(at)?, *bytes.get(at + 1)?]);
    let family = u16::from_ne_bytes(pair(0).ok_or(errno::EINVAL)?);
    if family == 0 {
        return Ok(None);
    }
    let port = u16::from_be_bytes(pair(2).ok_or(errno::EINVAL)?);
    let address = match family {
        AF_INET => {
            let four = bytes.get(4..8).and_then(|b| <[u8; 4]>::try_from(b).ok());
            IpAddr::from(Ipv4Addr::from(four.ok_or(errno::EINVAL)?))
        }
        AF_INET6 => {
            let sixteen = bytes.get(8..24).and_then(|b| <[u8; 16]>::try_from(b).ok());
            IpAddr::from(Ipv6Addr::from(sixteen.ok_or(errno::EINVAL)?)).to_canonical()
        }
        _ => return Err(NO_SUCH_FAMILY),
    };
    Ok(Some((address, port)))
}

/// The bytes of an address as a socket of `family` sees it.
pub(crate) fn write((address, port): (IpAddr, u16), family: Family) -> Vec<u8> {
    let mut bytes = Vec::new();
    match (address, family) {
        (IpAddr::V4(address), Family::V4) => {
            bytes.extend(AF_INET.to_ne_bytes());
            bytes.extend(port.to_be_bytes());
            bytes.extend(address.octets());
            bytes.extend([0; 8]);
        }
        (address, _) => {
            let address = match address {
                IpAddr::V4(address) => address.to_ipv6_mapped(),
                IpAddr::V6(address) => address,
            };
            bytes.extend(AF_INET6.to_ne_bytes());
            bytes.extend(port.to_be_bytes());
            bytes.extend([0; 4]);
            bytes.extend(address.octets());
            bytes.extend([0; 4]);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_the_same_after_both_ways_and_ipv4_in_ipv6_is_ipv4() {
        for (text, family, length) in [
            ("192.0.2.1", Family::V4, 16),
            ("192.0.2.1", Family::V6, 28),
            ("fd00::1", Family::V6, 28),
        ] {
            let place = (text.parse().expect("an address"), 8080);
            let bytes = write(place, family);
            assert_eq!(bytes.len(), length);
            assert_eq!(read(&bytes), Ok(Some(place)));
        }
        assert_eq!(read(&[0; 16]), Ok(None));
        assert_eq!(read(&[2]), Err(errno::EINVAL));
    }
}
