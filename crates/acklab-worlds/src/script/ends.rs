//! The script's two hosts: the kernel's, which [`Place`] calls host 1, and the script's, host 2.

use std::net::{Ipv4Addr, Ipv6Addr};

use acklab_host::segment::Place;
use acklab_packetdrill::wire::{Content, Ends, read};

const LOCAL_V4: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
const REMOTE_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const LOCAL_V6: Ipv6Addr = Ipv6Addr::new(0xfd3d, 0x0a0b, 0x17d6, 0, 0, 0, 0, 1);
const REMOTE_V6: Ipv6Addr = Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1);
/// The kernel's host.
const LOCAL: u32 = 1;
const REMOTE: u32 = 2;

/// The ends of packets from the script's host to the kernel's.
pub(super) fn inwards(v6: bool) -> Ends {
    if v6 {
        Ends { from: REMOTE_V6.into(), to: LOCAL_V6.into() }
    } else {
        Ends { from: REMOTE_V4.into(), to: LOCAL_V4.into() }
    }
}

/// An address as bytes of `struct sockaddr_in` or `sockaddr_in6`.
pub(super) fn address(place: Place, v6: bool) -> Vec<u8> {
    let is_local = place.host == LOCAL;
    let mut bytes = Vec::new();
    if v6 {
        bytes.extend(10_u16.to_ne_bytes());
        bytes.extend(place.port.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(if is_local { LOCAL_V6 } else { REMOTE_V6 }.octets());
        bytes.extend([0; 4]);
    } else {
        bytes.extend(2_u16.to_ne_bytes());
        bytes.extend(place.port.to_be_bytes());
        bytes.extend(if is_local { LOCAL_V4 } else { REMOTE_V4 }.octets());
        bytes.extend([0; 8]);
    }
    bytes
}

/// What the kernel sent; `gso`: payload of each packet of a burst.
pub(super) fn outward(packet: &[u8], gso: u32) -> Option<Content> {
    let mut content = read(packet, gso)?.content;
    let (src, dst) = match &mut content {
        Content::Segment(segment) => (&mut segment.src, &mut segment.dst),
        Content::Datagram(datagram) => (&mut datagram.src, &mut datagram.dst),
        Content::Icmp(_) => return Some(content),
    };
    (src.host, dst.host) = (LOCAL, REMOTE);
    Some(content)
}
