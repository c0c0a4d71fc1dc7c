//! UDP sockets in batches: one system call sends up to 64 kB as datagrams of one size (UDP GSO) or receives
//! up to [`BUFFERS`] trains of them (recvmmsg with UDP GRO). docs/rudp.md sections 2 ("Size of datagrams"),
//! 6 and 9; `quinn-udp` wraps the system calls.
//!
//! The DF bit is set (`IP_PMTUDISC_PROBE`), ECN is read and written, and a socket on a wildcard address
//! tells and chooses its own address by `IP_PKTINFO`. What the network or ICMP says about a path
//! (unreachable, refused, too large) is never an error here: the packet is lost, and the protocol
//! finds out what that means. ICMP can be forged, so that it is a hint for people and no more: sockets that lead
//! to a peer collect it (`IP_RECVERR`). IPv6 sockets do not serve IPv4: a path has one address of each end.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use acklab_core::packet::Ecn;
use acklab_rudp::PathAddrs;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrStorage, bind,
    recvmsg, setsockopt, socket, sockopt,
};
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState};
use thiserror::Error;

/// Buffers that one receive may fill. Each may hold a train of datagrams of one sender.
pub const BUFFERS: usize = 8;
/// The longest train that the kernel makes: the largest IP packet.
pub const LARGEST: usize = 1 << 16;
/// What the kernel may hold for a socket, each way: 100 ms at 320 Mbit/s, and what arrives while the
/// application is at work. More than `net.core.rmem_max` needs root.
const KERNEL_BUFFER: usize = 4 << 20;

#[derive(Debug, Error)]
pub enum SocketError {
    #[error("{address}: cannot receive there: {source}")]
    Bind { address: SocketAddr, source: io::Error },
    #[error("{remote}: no way there from here: {source}")]
    Route { remote: SocketAddr, source: io::Error },
    #[error("{local} and {remote} are not of one kind (IPv4 or IPv6): name a pair that is")]
    Families { local: IpAddr, remote: SocketAddr },
    #[error("more than {0} addresses at once: leave some out")]
    TooMany(usize),
}

impl SocketError {
    /// Whether it may be otherwise when the machine's interfaces, addresses and routes are.
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Bind { .. } | Self::Route { .. })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The kernel has it.
    Taken,
    /// The socket's buffer is full after so many bytes: the rest is to be tried again when the socket is
    /// writable.
    Full(usize),
    /// The kernel refused it (no route, too large, ...): lost, as far as the path is concerned.
    Lost(Errno),
}

/// One UDP socket.
#[derive(Debug)]
pub struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
    bound: SocketAddr,
    /// The kernel's routes choose the source of each packet: where this host moves, its path moves along.
    roams: bool,
}

impl Socket {
    /// Binds to `address`, whose IP may be a wildcard and whose port may be 0.
    pub fn bind(address: SocketAddr) -> Result<Self, SocketError> {
        Self::open(address).map_err(|source| SocketError::Bind { address, source })
    }

    /// A socket for a path to `remote`, bound to `local` or else to none, so that it sends from the address that the
    /// kernel's routes choose at that moment; and from where it sends now.
    pub fn towards(
        local: Option<IpAddr>,
        remote: SocketAddr,
    ) -> Result<(Self, PathAddrs), SocketError> {
        let source = match local {
            Some(local) if local.is_ipv4() != remote.is_ipv4() => {
                return Err(SocketError::Families { local, remote });
            }
            Some(local) => local,
            None => {
                let chosen = source_towards(remote);
                chosen.map_err(|source| SocketError::Route { remote, source })?.ip()
            }
        };
        let any: IpAddr = match remote {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let mut socket = Self::bind(SocketAddr::new(local.unwrap_or(any), 0))?;
        socket.roams = local.is_none();
        let addrs = PathAddrs { local: (source, socket.bound.port()).into(), remote };
        // Without it the user is not told why no answer comes, and that is all.
        let _ = if remote.is_ipv4() {
            setsockopt(&socket.udp, sockopt::Ipv4RecvErr, &true)
        } else {
            setsockopt(&socket.udp, sockopt::Ipv6RecvErr, &true)
        };
        Ok((socket, addrs))
    }

    fn open(address: SocketAddr) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let fd = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        if address.is_ipv6() {
            setsockopt(&fd, sockopt::Ipv6V6Only, &true)?;
        }
        // What is not permitted here costs speed alone.
        if setsockopt(&fd, sockopt::RcvBufForce, &KERNEL_BUFFER).is_err() {
            let _ = setsockopt(&fd, sockopt::RcvBuf, &KERNEL_BUFFER);
        }
        if setsockopt(&fd, sockopt::SndBufForce, &KERNEL_BUFFER).is_err() {
            let _ = setsockopt(&fd, sockopt::SndBuf, &KERNEL_BUFFER);
        }
        bind(fd.as_raw_fd(), &SockaddrStorage::from(address))?;
        let udp = UdpSocket::from(fd);
        let state = UdpSocketState::new(UdpSockRef::from(&udp))?;
        // quinn-udp asks for a time stamp of every packet, which is not read here.
        let _ = setsockopt(&udp, sockopt::ReceiveTimestampns, &false);
        let bound = udp.local_addr()?;
        Ok(Self { udp, state, bound, roams: false })
    }

    /// The address that it is bound to.
    pub fn local(&self) -> SocketAddr {
        self.bound
    }

    /// How many datagrams one send may carry: 1 where the kernel or the device cannot cut them.
    pub fn segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Whether this is the socket from which a path with that local address sends.
    pub fn serves(&self, local: SocketAddr) -> bool {
        self.bound == local
            || (self.bound.ip().is_unspecified()
                && self.bound.port() == local.port()
                && self.bound.is_ipv4() == local.is_ipv4())
    }

    /// Sends `bytes`, as many datagrams of `segment` bytes as there are, the last may be shorter: in one
    /// call where the kernel and the device cut it.
    pub fn send(&self, addrs: PathAddrs, ecn: Ecn, bytes: &[u8], segment: usize) -> Sent {
        if bytes.len() <= segment.saturating_mul(self.segments()) {
            let error = match self.send_train(addrs, ecn, bytes, segment) {
                Ok(()) => return Sent::Taken,
                Err(error) => error,
            };
            if error.kind() == ErrorKind::WouldBlock {
                return Sent::Full(0);
            }
            // What a device says that cannot cut trains (quinn-udp then counts on single datagrams too).
            let errno = errno(&error);
            let refused = matches!(errno, Errno::EIO | Errno::EINVAL);
            if !refused || bytes.len() <= segment {
                return Sent::Lost(errno);
            }
        }
        let (mut lost, mut left) = (Some(Errno::UnknownErrno), 0);
        for datagram in bytes.chunks(segment) {
            match self.send_train(addrs, ecn, datagram, segment) {
                Ok(()) => lost = None,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Sent::Full(left),
                Err(error) => lost = lost.map(|_| errno(&error)),
            }
            left += datagram.len();
        }
        lost.map_or(Sent::Taken, Sent::Lost)
    }

    /// Hands over what ICMP has said of what was sent, and where that went.
    pub fn take_errors(&self, mut each: impl FnMut(SocketAddr, Errno)) {
        // The address and marks of the packet come before the error.
        let mut control = vec![0; 512];
        loop {
            let mut bytes = [0; 64];
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let fd = self.udp.as_raw_fd();
            let told = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut control), flags);
            let Ok(told) = told else { return };
            let to = told.address.and_then(|to| {
                let v4 = to.as_sockaddr_in().map(|it| SocketAddr::from(SocketAddrV4::from(*it)));
                v4.or_else(|| to.as_sockaddr_in6().map(|it| SocketAddrV6::from(*it).into()))
            });
            let Ok(messages) = told.cmsgs() else { continue };
            for message in messages {
                if let ControlMessageOwned::Ipv4RecvErr(error, _)
                | ControlMessageOwned::Ipv6RecvErr(error, _) = message
                    && let Some(to) = to
                {
                    each(to, Errno::from_raw(error.ee_errno as i32));
                }
            }
        }
    }

    fn send_train(
        &self,
        addrs: PathAddrs,
        ecn: Ecn,
        contents: &[u8],
        segment: usize,
    ) -> io::Result<()> {
        let transmit = quinn_udp::Transmit {
            destination: addrs.remote,
            ecn: codepoint(ecn),
            contents,
            segment_size: Some(segment),
            src_ip: (self.bound.ip().is_unspecified() && !self.roams).then(|| addrs.local.ip()),
        };
        let send = || self.state.try_send(UdpSockRef::from(&self.udp), &transmit);
        // What ICMP said of an earlier datagram is told instead of sending this one, once.
        send()
            .or_else(|error| if errno(&error) == Errno::ECONNREFUSED { send() } else { Err(error) })
    }

    /// Receives what has arrived, a batch of at most [`BUFFERS`] trains, and hands it over datagram by
    /// datagram. Returns how many trains there were: fewer than [`BUFFERS`] and nothing more waits.
    pub fn receive(
        &self,
        batch: &mut Batch,
        mut each: impl FnMut(PathAddrs, Ecn, &mut [u8]),
    ) -> usize {
        let Batch { memory, metas } = batch;
        let mut chunks = memory.chunks_exact_mut(LARGEST);
        let mut slices: [IoSliceMut; BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        // An error here is an empty queue, or what ICMP said about something sent earlier.
        let filled = self.state.recv(UdpSockRef::from(&self.udp), &mut slices, metas).unwrap_or(0);
        for (meta, train) in metas.iter().zip(memory.chunks_exact_mut(LARGEST)).take(filled) {
            let addrs = PathAddrs { local: self.own_address(meta), remote: meta.addr };
            let ecn = field(meta.ecn);
            for datagram in train[..meta.len].chunks_mut(meta.stride.max(1)) {
                each(addrs, ecn, datagram);
            }
        }
        filled
    }

    /// Where a packet was sent to: the kernel tells it per packet, and a wildcard needs it.
    fn own_address(&self, meta: &RecvMeta) -> SocketAddr {
        match meta.dst_ip {
            Some(ip) if self.bound.ip().is_unspecified() => SocketAddr::new(ip, self.bound.port()),
            _ => self.bound,
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }
}

/// Memory for one receive, used again for each.
pub struct Batch {
    memory: Vec<u8>,
    metas: [RecvMeta; BUFFERS],
}

impl Default for Batch {
    fn default() -> Self {
        Self { memory: vec![0; BUFFERS * LARGEST], metas: [RecvMeta::default(); BUFFERS] }
    }
}

/// Whether the kernel's routes lead there.
pub fn has_route(remote: SocketAddr) -> bool {
    source_towards(remote).is_ok()
}

/// The address from which the kernel would send there. Nothing is sent.
pub(super) fn source_towards(remote: SocketAddr) -> io::Result<SocketAddr> {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let probe = UdpSocket::bind((any, 0))?;
    probe.connect(remote)?;
    let mut chosen = probe.local_addr()?;
    chosen.set_port(0);
    Ok(chosen)
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

fn field(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;

    fn loopback(ip: impl Into<IpAddr>) -> Socket {
        Socket::bind(SocketAddr::new(ip.into(), 0)).unwrap()
    }

    /// Everything that arrives until `count` datagrams are there, within 5 s.
    fn gather(socket: &Socket, count: usize) -> Vec<(PathAddrs, Ecn, Vec<u8>)> {
        let mut batch = Batch::default();
        let mut all = Vec::new();
        while all.len() < count {
            let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
            let limit = PollTimeout::try_from(Duration::from_secs(5)).unwrap();
            assert!(poll(&mut fds, limit).unwrap() > 0, "{} of {count} arrived", all.len());
            socket.receive(&mut batch, |addrs, ecn, bytes| all.push((addrs, ecn, bytes.to_vec())));
        }
        all
    }

    #[test]
    fn a_train_arrives_as_its_datagrams_with_their_marks() {
        for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let (from, to) = (loopback(ip), loopback(ip));
            let addrs = PathAddrs { local: from.local(), remote: to.local() };
            let train: Vec<u8> = (0..3100_u32).map(|n| (n % 251) as u8).collect();
            assert_eq!(from.send(addrs, Ecn::Ect0, &train, 1000), Sent::Taken);
            let got = gather(&to, 4);
            let lengths: Vec<usize> = got.iter().map(|(_, _, bytes)| bytes.len()).collect();
            assert_eq!(lengths, [1000, 1000, 1000, 100]);
            assert_eq!(
                got.iter().flat_map(|(_, _, bytes)| bytes.clone()).collect::<Vec<_>>(),
                train
            );
            let back = PathAddrs { local: to.local(), remote: from.local() };
            assert!(got.iter().all(|(from, ecn, _)| (*from, *ecn) == (back, Ecn::Ect0)));
        }
    }

    #[test]
    fn a_wildcard_knows_where_it_was_called_and_answers_from_there() {
        let server = loopback(Ipv4Addr::UNSPECIFIED);
        let client = loopback(Ipv4Addr::LOCALHOST);
        let called = SocketAddr::new(Ipv4Addr::new(127, 0, 0, 9).into(), server.local().port());
        let there = PathAddrs { local: client.local(), remote: called };
        assert_eq!(client.send(there, Ecn::NotEct, b"hello", 1200), Sent::Taken);
        let seen = gather(&server, 1)[0].0;
        assert_eq!(seen, PathAddrs { local: called, remote: client.local() });
        assert!(server.serves(seen.local) && !client.serves(seen.local));
        assert_eq!(server.send(seen, Ecn::NotEct, b"answer", 1200), Sent::Taken);
        assert_eq!(gather(&client, 1)[0].0.remote, called);
    }

    #[test]
    fn what_a_path_refuses_is_lost_and_the_socket_goes_on() {
        let (from, to) = (loopback(Ipv4Addr::LOCALHOST), loopback(Ipv4Addr::LOCALHOST));
        let unbound = loopback(Ipv4Addr::LOCALHOST).local();
        let send = |remote: SocketAddr, bytes: &[u8]| {
            let addrs = PathAddrs { local: from.local(), remote };
            from.send(addrs, Ecn::NotEct, bytes, bytes.len().max(1))
        };
        // Too large for any IP packet; a loopback source cannot leave the machine; a port where no socket
        // listens makes ICMP come back.
        assert_eq!(send(to.local(), &vec![0; 70_000]), Sent::Lost(Errno::EMSGSIZE));
        assert!(matches!(send("192.0.2.1:9".parse().unwrap(), b"x"), Sent::Lost(_)));
        assert_eq!(send(unbound, b"x"), Sent::Taken);
        from.receive(&mut Batch::default(), |_, _, _| panic!("nothing was sent"));
        assert_eq!(send(to.local(), b"still here"), Sent::Taken);
        assert_eq!(gather(&to, 1)[0].2, b"still here");
    }

    #[test]
    fn a_path_without_a_local_address_gets_the_one_that_the_routes_choose() {
        let (socket, addrs) = Socket::towards(None, "127.0.0.1:9".parse().unwrap()).unwrap();
        assert_eq!(addrs.local.ip(), IpAddr::from(Ipv4Addr::LOCALHOST));
        assert!(socket.serves(addrs.local) && socket.local().ip().is_unspecified());
        let mixed = Socket::towards(Some(Ipv4Addr::LOCALHOST.into()), "[::1]:9".parse().unwrap());
        assert!(matches!(mixed, Err(SocketError::Families { .. })));
    }
}
