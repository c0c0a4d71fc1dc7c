//! A fresh network namespace with its loopback interface up.
//!
//! `unshare(2)` moves only the calling thread; threads that it spawns afterwards start in the new
//! namespace, every other thread of the process stays where it was. The namespace has no name in
//! the file system, so it ends with its last thread and socket. rtnetlink(7) brings interfaces up and
//! gives them addresses in one message each, which saves both an external `ip` command and an `unsafe`
//! ioctl.

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

/// `RTM_NEWLINK`, linux/rtnetlink.h.
const RTM_NEWLINK: u16 = 16;
/// `RTM_NEWADDR`, linux/rtnetlink.h.
const RTM_NEWADDR: u16 = 20;
/// `IFLA_MTU` and `IFLA_TXQLEN`, linux/if_link.h.
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
/// `IFA_ADDRESS` and `IFA_LOCAL`, linux/if_addr.h.
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// `AF_INET` and `AF_INET6`, linux/socket.h.
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// `IFA_F_NODAD`, linux/if_addr.h: the address is good at once: no other host is there to have it.
const IFA_F_NODAD: u8 = 2;
/// `NLM_F_REQUEST | NLM_F_ACK`, linux/netlink.h.
const REQUEST_WITH_ACK: u16 = 0x1 | 0x4;
/// `NLMSG_ERROR`, linux/netlink.h; error 0 is the acknowledgment.
const NLMSG_ERROR: u16 = 2;
/// `IFF_UP`, linux/if.h.
const IFF_UP: u32 = 1;
/// A new namespace numbers its interfaces from 1, and the first is always `lo`.
const LOOPBACK_INDEX: u32 = 1;

/// Moves the calling thread into a fresh network namespace; needs `CAP_SYS_ADMIN`.
pub(crate) fn enter_new() -> Result<(), Errno> {
    unshare(CloneFlags::CLONE_NEWNET)
}

/// Sets `IFF_UP` on the loopback interface of the calling thread's namespace.
pub(crate) fn loopback_up() -> Result<(), Errno> {
    ask(&link_up_request(LOOPBACK_INDEX, &[]))
}

/// Sets `IFF_UP` on interface `index`, lets `packets` wait for whoever reads from it, and gives it an
/// `mtu` where one is said.
pub(crate) fn interface_up(index: u32, packets: u32, mtu: Option<u32>) -> Result<(), Errno> {
    let (packets, mtu) = (packets.to_ne_bytes(), mtu.map(u32::to_ne_bytes));
    let mut attributes: Vec<(u16, &[u8])> = vec![(IFLA_TXQLEN, &packets)];
    attributes.extend(mtu.as_ref().map(|mtu| (IFLA_MTU, &mtu[..])));
    ask(&link_up_request(index, &attributes))
}

/// Gives interface `index` an address, and a route to the others that share its first `prefix` bits.
pub(crate) fn add_address(index: u32, address: IpAddr, prefix: u8) -> Result<(), Errno> {
    add(index, address, address, prefix)
}

/// Gives interface `index` an address, and a route to `peer` at its other end. Both are of one family.
pub(crate) fn add_address_towards(index: u32, address: IpAddr, peer: IpAddr) -> Result<(), Errno> {
    add(index, address, peer, if address.is_ipv4() { 32 } else { 128 })
}

fn add(index: u32, address: IpAddr, peer: IpAddr, prefix: u8) -> Result<(), Errno> {
    let octets = |address| match address {
        IpAddr::V4(address) => Ipv4Addr::octets(&address).to_vec(),
        IpAddr::V6(address) => Ipv6Addr::octets(&address).to_vec(),
    };
    let (family, flags) = if address.is_ipv4() { (AF_INET, 0) } else { (AF_INET6, IFA_F_NODAD) };
    // `struct ifaddrmsg`: family, prefix, flags, scope, index.
    let mut body = vec![family, prefix, flags, 0];
    body.extend(index.to_ne_bytes());
    ask(&request(
        RTM_NEWADDR,
        &body,
        &[(IFA_LOCAL, &octets(address)), (IFA_ADDRESS, &octets(peer))],
    ))
}

/// Sends one request and waits for its acknowledgment.
fn ask(request: &[u8]) -> Result<(), Errno> {
    let netlink = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    send(netlink.as_raw_fd(), request, MsgFlags::empty())?;
    let mut answer = [0u8; 256];
    let length = recv(netlink.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    acknowledgment(&answer[..length])
}

/// `struct ifinfomsg` (16 bytes): family, padding, type, index, flags, which of the flags to change.
fn link_up_request(index: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend([index, IFF_UP, IFF_UP].iter().flat_map(|word| word.to_ne_bytes()));
    request(RTM_NEWLINK, &body, attributes)
}

/// `struct nlmsghdr` (16 bytes), a body and attributes of whole words; in the host's byte order.
fn request(kind: u16, body: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let attached: usize = attributes.iter().map(|(_, value)| 4 + value.len()).sum();
    let length = (16 + body.len() + attached) as u32;
    let mut request = Vec::with_capacity(length as usize);
    request.extend(length.to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(REQUEST_WITH_ACK.to_ne_bytes());
    // Sequence number and port: one request per socket needs neither.
    request.extend([0; 8]);
    request.extend(body);
    for (kind, value) in attributes {
        request.extend((4 + value.len() as u16).to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend(*value);
    }
    request
}

/// Reads `struct nlmsgerr`: header, then the negated errno.
fn acknowledgment(answer: &[u8]) -> Result<(), Errno> {
    let kind = answer.get(4..6).map(|b| u16::from_ne_bytes([b[0], b[1]]));
    let code = answer.get(16..20).map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    match (kind, code) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(code)) => Err(Errno::from_raw(-code)),
        _ => Err(Errno::EBADMSG),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgment_is_told_from_a_refusal_and_from_noise() {
        let answer = |kind: u16, code: i32| {
            let mut bytes = [0u8; 36];
            bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
            bytes[16..20].copy_from_slice(&code.to_ne_bytes());
            bytes
        };
        assert_eq!(acknowledgment(&answer(NLMSG_ERROR, 0)), Ok(()));
        assert_eq!(acknowledgment(&answer(NLMSG_ERROR, -1)), Err(Errno::EPERM));
        assert_eq!(acknowledgment(&answer(RTM_NEWLINK, 0)), Err(Errno::EBADMSG));
        assert_eq!(acknowledgment(&answer(NLMSG_ERROR, 0)[..18]), Err(Errno::EBADMSG));
    }
}
