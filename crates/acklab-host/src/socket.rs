//! Sockets and other things behind descriptors.

use std::collections::{BTreeMap, VecDeque};

use crate::request::Request;
use crate::segment::Place;
use crate::tcp::Tcp;

/// Which addresses a socket has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

/// A socket.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, one flag each")]
pub struct Socket {
    /// The connection, listener or neither.
    pub tcp: Tcp,
    /// Addresses.
    pub family: Family,
    /// Bound to.
    pub bound: Option<Place>,
    /// Length of the accept queue; `None`: it does not listen.
    pub backlog: Option<u32>,
    /// SYNs answered.
    pub requests: Vec<Request>,
    /// Connections to accept.
    pub ready: VecDeque<usize>,
    /// A connect that is not reported yet.
    pub connecting: bool,
    /// It was connected once.
    pub was_connected: bool,
    /// Descriptors that lead to it.
    pub descriptors: u32,
    /// SO_TIMESTAMPING.
    pub timestamping: u32,
    /// Where the key of byte stamps counts from.
    pub stamp_base: u32,
    /// SO_ZEROCOPY.
    pub zero_copy: bool,
    /// TCP_INQ.
    pub inq: bool,
    /// Integer options without effect here, by level and name.
    pub kept: BTreeMap<(i32, i32), i64>,
    /// The descriptor of its listener, of a connection that was not accepted.
    pub parent: Option<usize>,
    /// Fast open at a client.
    pub fast: FastOpen,
    /// The last SYN was answered by a cookie since then.
    pub cookies: u32,
}

/// Fast open at a client, as a socket's options have it.
#[derive(Clone, Copy, Debug, Default)]
pub struct FastOpen {
    /// TCP_FASTOPEN_CONNECT.
    pub on_connect: bool,
    /// TCP_FASTOPEN_NO_COOKIE.
    pub no_cookie: bool,
    /// connect(2) returned and the SYN waits for the first write: its ends.
    pub deferred: Option<(Place, Place)>,
}

/// What an epoll instance watches.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The descriptor.
    pub fd: i32,
    /// Events asked for, flags included.
    pub events: u32,
    /// The program's word.
    pub data: u64,
    /// It may have something to tell.
    pub ready: bool,
}

/// What a descriptor leads to.
#[derive(Clone, Debug)]
pub enum File {
    /// A socket, by its index.
    Socket(usize),
    /// A UDP socket, by its index.
    Datagrams(usize),
    /// An epoll instance.
    Epoll(Vec<Watch>),
    /// A pipe with bytes in it: index of the pipe, and whether this end writes.
    Pipe(usize, bool),
    /// A file of so many bytes.
    Plain(u64),
}

/// A descriptor.
#[derive(Clone, Debug)]
pub struct Descriptor {
    /// What it leads to.
    pub file: File,
    /// O_NONBLOCK and others of F_SETFL.
    pub flags: i32,
}

/// O_NONBLOCK.
pub const O_NONBLOCK: i32 = 0o4000;

/// SOL_SOCKET.
pub const SOCKET: i32 = 1;
/// IPPROTO_TCP.
pub const TCP: i32 = 6;
/// IPPROTO_IP.
pub const IP: i32 = 0;
/// IPPROTO_IPV6.
pub const IPV6: i32 = 41;

/// What a read is to do.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the call")]
pub struct ReadFlags {
    /// MSG_PEEK.
    pub peek: bool,
    /// MSG_WAITALL.
    pub wait_all: bool,
    /// MSG_DONTWAIT.
    pub dont_wait: bool,
    /// MSG_TRUNC: bytes are dropped, not copied.
    pub truncate: bool,
    /// MSG_OOB.
    pub urgent: bool,
}
