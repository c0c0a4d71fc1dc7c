//! At which addresses peers may find this machine.

use std::net::{IpAddr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

use super::socket::source_towards;

/// So many addresses of one family are told: a host has more of IPv6 than a person wants to read.
const MOST: usize = 2;

/// Where a socket that is bound to `bound` may be reached: for a wildcard, at this machine's addresses, that of the
/// default route first. Link-local ones are left out, and loopback ones unless there is no other.
pub fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    // Addresses for documentation: the default route leads there, and nothing is sent.
    let far: IpAddr = if bound.is_ipv4() {
        [192, 0, 2, 1].into()
    } else {
        [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()
    };
    let first = source_towards((far, 9).into()).ok().map(|source| source.ip());
    let (mut found, mut loopback) = (Vec::from_iter(first), Vec::new());
    for interface in getifaddrs().into_iter().flatten() {
        let address = interface.address.as_ref();
        let ip: Option<IpAddr> = address.and_then(|address| match address.as_sockaddr_in() {
            Some(v4) => Some(v4.ip().into()),
            None => address.as_sockaddr_in6().map(|v6| v6.ip().into()),
        });
        let up = interface.flags.contains(InterfaceFlags::IFF_UP);
        let Some(ip) = ip.filter(|ip| up && ip.is_ipv4() == bound.is_ipv4()) else { continue };
        let local = match ip {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        };
        let list = if ip.is_loopback() { &mut loopback } else { &mut found };
        if !local && !list.contains(&ip) {
            list.push(ip);
        }
    }
    let list = if found.is_empty() { loopback } else { found };
    list.into_iter().take(MOST).map(|ip| (ip, bound.port()).into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_is_reached_at_addresses_of_this_machine_and_another_where_it_is() {
        let here: SocketAddr = "127.0.0.9:7".parse().expect("an address");
        assert_eq!(reachable(here), [here]);
        let all = reachable("0.0.0.0:7".parse().expect("an address"));
        assert!(!all.is_empty() && all.len() <= MOST, "{all:?}");
        for address in all {
            assert!(address.is_ipv4() && address.port() == 7 && !address.ip().is_unspecified());
            std::net::UdpSocket::bind((address.ip(), 0)).expect("it is this machine's");
        }
    }
}
