//! The kernel's TCP sockets, with what it knows of their timing: `sock_diag(7)` over netlink, as `ss -ti` asks.
//!
//! One dump per IP version; addresses of IPv4 in IPv6's clothes become IPv4 again, as the frames have them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use acklab_trace::segment::Endpoint;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// One TCP socket.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TcpSocket {
    /// This end.
    pub local: Endpoint,
    /// The other end; port 0 where the socket listens.
    pub remote: Endpoint,
    /// `/proc/PID/fd` has it as `socket:[inode]`; 0 where the process has closed it.
    pub inode: u32,
    /// It waits for connections.
    pub listens: bool,
    /// What the kernel knows of its timing.
    pub timing: Timing,
}

/// From `struct tcp_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Timing {
    /// Smoothed round trip, milliseconds.
    pub rtt_ms: f64,
    /// How long an ACK may be delayed (`icsk_ack.ato`), milliseconds; 0 before the first data.
    pub ack_timeout_ms: f64,
    /// Segments not acknowledged.
    pub unacked: u32,
    /// Bytes written that have not left.
    pub unsent_bytes: u32,
    /// Largest segment that may leave, bytes.
    pub mss: u32,
}

impl TcpSocket {
    /// Whether a small write waits in it for an acknowledgment at this moment.
    pub fn holds_a_write(&self) -> bool {
        let Timing { unacked, unsent_bytes, mss, .. } = self.timing;
        unacked > 0 && unsent_bytes > 0 && unsent_bytes < mss
    }
}

/// All TCP sockets of the calling thread's namespace.
pub fn tcp_sockets() -> io::Result<Vec<TcpSocket>> {
    let mut sockets = Vec::new();
    for family in [libc_family(false), libc_family(true)] {
        let netlink = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkSockDiag,
        )?;
        send(netlink.as_raw_fd(), &request(family), MsgFlags::empty())?;
        let mut answer = vec![0u8; 1 << 16];
        loop {
            let length = recv(netlink.as_raw_fd(), &mut answer, MsgFlags::empty())?;
            if length == 0 || !read_answer(&answer[..length], &mut sockets)? {
                break;
            }
        }
    }
    Ok(sockets)
}

fn libc_family(v6: bool) -> u8 {
    if v6 { AF_INET6 } else { AF_INET }
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`, which asks for every state and `INET_DIAG_INFO`.
fn request(family: u8) -> Vec<u8> {
    let mut request = Vec::with_capacity(72);
    request.extend(72u32.to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(REQUEST_DUMP.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([family, IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.resize(72, 0);
    request
}

/// Reads the messages of one answer; false when the dump is over.
fn read_answer(mut answer: &[u8], sockets: &mut Vec<TcpSocket>) -> io::Result<bool> {
    while let Some(length) = word(answer, 0).map(|length| length as usize) {
        let kind = half(answer, 4).unwrap_or(NLMSG_DONE);
        let Some(message) = answer.get(16..length) else { return Ok(false) };
        match kind {
            NLMSG_DONE => return Ok(false),
            NLMSG_ERROR => {
                let code = word(message, 0).unwrap_or(0) as i32;
                return Err(io::Error::from_raw_os_error(-code));
            }
            _ => sockets.extend(read_socket(message)),
        }
        answer = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

/// `struct inet_diag_msg` and its attributes.
fn read_socket(message: &[u8]) -> Option<TcpSocket> {
    let (family, state) = (*message.first()?, *message.get(1)?);
    let end = |port: usize, address: usize| {
        let port = u16::from_be_bytes([*message.get(port)?, *message.get(port + 1)?]);
        let octets: [u8; 16] = message.get(address..address + 16)?.try_into().ok()?;
        let address = match family {
            AF_INET => IpAddr::from(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3])),
            _ => IpAddr::from(Ipv6Addr::from(octets)).to_canonical(),
        };
        Some(Endpoint { addr: address, port })
    };
    let (local, remote) = (end(4, 8)?, end(6, 24)?);
    let timing = attribute(message.get(72..)?, INET_DIAG_INFO).and_then(timing);
    Some(TcpSocket {
        local,
        remote,
        inode: word(message, 68)?,
        listens: state == TCP_LISTEN,
        timing: timing.unwrap_or_default(),
    })
}

/// The value of the attribute of that kind.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let (length, kind) = (usize::from(half(attributes, 0)?), half(attributes, 2)?);
        let value = attributes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

/// `struct tcp_info`, by the offsets of linux/tcp.h.
fn timing(info: &[u8]) -> Option<Timing> {
    Some(Timing {
        ack_timeout_ms: f64::from(word(info, 12)?) / 1e3,
        mss: word(info, 16)?,
        unacked: word(info, 24)?,
        rtt_ms: f64::from(word(info, 68)?) / 1e3,
        unsent_bytes: word(info, 144).unwrap_or(0),
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes([bytes[0], bytes[1]]))
}

/// linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h, linux/socket.h, net/tcp_states.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const REQUEST_DUMP: u16 = 0x301;
const INET_DIAG_INFO: u16 = 2;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const TCP_LISTEN: u8 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn both_ends_of_a_connection_and_its_listener_are_found() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (_server, _) = listener.accept().unwrap();
            client.write_all(b"one").unwrap();
            let here =
                |socket: std::net::SocketAddr| Endpoint { addr: socket.ip(), port: socket.port() };
            let (from, to) =
                (here(client.local_addr().unwrap()), here(client.peer_addr().unwrap()));
            let sockets = tcp_sockets().unwrap();
            let find = |local, remote| {
                sockets.iter().find(|s| s.local == local && s.remote == remote).copied()
            };
            let client = find(from, to).expect("the client's socket");
            assert!(client.inode > 0 && client.timing.mss > 500 && client.timing.rtt_ms > 0.0);
            assert!(find(to, from).is_some(), "the server's socket");
            assert!(sockets.iter().any(|s| s.listens && s.local == to));
        }
    }

    #[test]
    fn an_answer_that_is_cut_or_lies_about_its_length_is_read_as_far_as_it_goes() {
        let mut message = vec![0u8; 16 + 72];
        message[0..4].copy_from_slice(&88u32.to_ne_bytes());
        message[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        message[16] = AF_INET;
        for length in 0..message.len() {
            let mut sockets = Vec::new();
            let _ = read_answer(&message[..length], &mut sockets);
            assert!(sockets.is_empty());
        }
        let mut sockets = Vec::new();
        assert!(read_answer(&message, &mut sockets).unwrap());
        assert_eq!(sockets.len(), 1);
        message[0..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert!(!read_answer(&message, &mut sockets).unwrap());
    }
}
