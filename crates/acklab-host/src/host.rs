//! A host: its sockets, the segments that come and go, and time.

use std::collections::{BTreeMap, VecDeque};

use crate::datagram::{Datagram, Udp};
use crate::input::Answer;
use crate::mib::{Mib, Mibs};
use crate::segment::{Place, Segment, TcpOption, after, before, flag};
use crate::settings::{Env, Route, Sysctls, Us};
use crate::socket::{Descriptor, File, Socket};
use crate::tcp::{State, earlier, poll};

/// From one initial sequence number to the next.
pub(crate) const ISN_STEP: u32 = 0x0100_0193;
/// Before the first port of the host's own choice.
const FIRST_PORT: u16 = 40_000;
/// The option of RFC 2385.
const MD5: u8 = 19;

/// A host with one route.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// System controls.
    pub sysctls: Sysctls,
    /// The route.
    pub route: Route,
    /// Sockets; an index is never used twice.
    pub sockets: Vec<Socket>,
    /// UDP sockets.
    pub datagrams: Vec<Udp>,
    /// Datagrams that left, with their times.
    pub datagrams_out: VecDeque<(Us, Datagram)>,
    /// Descriptors.
    pub files: BTreeMap<i32, Descriptor>,
    /// Bytes in each pipe.
    pub pipes: Vec<u64>,
    /// Segments that left, with their times.
    pub wire: VecDeque<(Us, Segment)>,
    /// Where the next initial sequence number comes from.
    pub next_isn: u32,
    /// The next port of an active open.
    pub next_port: u16,
    /// The cookie of fast open that this host gives to every peer: a test's addresses are one.
    pub fastopen_cookie: Vec<u8>,
    /// What fast open knows of peers.
    pub fastopen_known: crate::tcp::Cache,
    /// Signals that the program would have got: SIGPIPE.
    pub broken_pipes: u32,
    /// Counters.
    pub mibs: Mibs,
}

/// Runs `body` with the socket at `index` and its surroundings.
macro_rules! with {
    ($host:expr, $now:expr, $index:expr, |$socket:ident, $env:ident| $body:expr) => {{
        let $env = crate::settings::Env { now: $now, sysctls: &$host.sysctls, route: &$host.route };
        let $socket = &mut $host.sockets[$index];
        let result = $body;
        $host.settle($now, $index);
        result
    }};
}
pub(crate) use with;

impl Host {
    /// A host without sockets; its initial sequence numbers begin behind `isn`.
    pub fn new(isn: u32) -> Self {
        let fastopen_cookie = vec![0x30, 0x21, 0xb9, 0xd8, 0x89, 0x01, 0x7e, 0xeb];
        Self { next_isn: isn, next_port: FIRST_PORT, fastopen_cookie, ..Self::default() }
    }

    /// What a connection may ask.
    pub const fn env(&self, now: Us) -> Env<'_> {
        Env { now, sysctls: &self.sysctls, route: &self.route }
    }

    /// A new initial sequence number.
    pub const fn isn(&mut self) -> u32 {
        self.next_isn = self.next_isn.wrapping_add(ISN_STEP);
        self.next_isn
    }

    /// A port for who asked for none, the one after the last.
    pub(crate) const fn own_port(&mut self) -> u16 {
        self.next_port = if self.next_port == u16::MAX { FIRST_PORT } else { self.next_port + 1 };
        self.next_port
    }

    /// Takes a segment from the wire.
    pub fn receive(&mut self, now: Us, segment: &Segment) {
        self.mibs.count(Mib::InSegs);
        if self.is_signed_in_vain(segment) || self.is_from_too_far(segment) {
            return;
        }
        if let Some(index) = self.connection(segment.dst, segment.src) {
            let state = self.sockets[index].tcp.state;
            if state == State::TimeWait && self.is_new_syn(now, index, segment) {
                self.sockets[index].tcp.state = State::Close;
                self.sockets[index].tcp.timers = crate::tcp::Timers::default();
            } else {
                if self.receive_early(now, index, segment) {
                    return;
                }
                let answer = with!(self, now, index, |socket, env| socket.tcp.take(&env, segment));
                if !self.sockets[index].tcp.open.early && state != State::Listen {
                    self.sockets[index].requests.clear();
                }
                if answer == Answer::Reset {
                    self.reset_sender(now, segment);
                }
                return;
            }
        }
        match self.listener(segment.dst.port) {
            Some(listener) => self.receive_as_listener(now, listener, segment),
            None => self.reset_sender(now, segment),
        }
    }

    /// IP_MINTTL: whether a segment passed more routers than its socket allows (RFC 5082).
    fn is_from_too_far(&mut self, segment: &Segment) -> bool {
        let index =
            self.connection(segment.dst, segment.src).or_else(|| self.listener(segment.dst.port));
        let ttl = if segment.ttl == 0 { 64 } else { segment.ttl };
        let far = index.is_some_and(|index| ttl < self.sockets[index].tcp.opt.min_ttl);
        if far {
            self.mibs.count(Mib::TCPMinTTLDrop);
        }
        far
    }

    /// Whether a segment carries a digest (RFC 2385) that nobody here has a key for.
    fn is_signed_in_vain(&self, segment: &Segment) -> bool {
        let is_digest = |option: &TcpOption| matches!(option, TcpOption::Other(MD5, _));
        segment.options.iter().any(is_digest)
            && (self.listener(segment.dst.port).is_some()
                || self
                    .connection(segment.dst, segment.src)
                    .is_some_and(|index| self.sockets[index].tcp.state != State::TimeWait))
    }

    /// A SYN beyond what TIME-WAIT saw may open anew (RFC 9293 section 3.6.1).
    fn is_new_syn(&self, now: Us, index: usize, segment: &Segment) -> bool {
        let tcp = &self.sockets[index].tcp;
        let newer_stamp = match (segment.stamp(), tcp.rcv.recent) {
            (Some((value, _)), Some((recent, _))) => before(recent, value),
            _ => false,
        };
        segment.flags & (flag::SYN | flag::RST | flag::ACK) == flag::SYN
            && (after(segment.seq, tcp.rcv.nxt) || newer_stamp)
            && !tcp.is_stale_after_end(&self.env(now), segment)
            && self.listener(segment.dst.port).is_some()
    }

    /// The connection between two places.
    pub fn connection(&self, local: Place, remote: Place) -> Option<usize> {
        self.sockets.iter().position(|socket| {
            let tcp = &socket.tcp;
            !matches!(tcp.state, State::Close | State::Listen)
                && tcp.local.port == local.port
                && tcp.remote == remote
        })
    }

    pub(crate) fn listener(&self, port: u16) -> Option<usize> {
        self.sockets
            .iter()
            .position(|s| s.tcp.state == State::Listen && s.bound.is_some_and(|b| b.port == port))
    }

    /// Answers a segment that no connection wants (RFC 9293 section 3.10.7.1).
    pub fn reset_sender(&mut self, now: Us, segment: &Segment) {
        if segment.has(flag::RST) {
            return;
        }
        let mut reset =
            Segment { src: segment.dst, dst: segment.src, flags: flag::RST, ..Segment::default() };
        if segment.has(flag::ACK) {
            reset.seq = segment.ack;
        } else {
            reset.ack = segment.end();
            reset.flags |= flag::ACK;
        }
        self.mibs.count(Mib::OutSegs);
        self.mibs.count(Mib::OutRsts);
        self.wire.push_back((now, reset));
    }

    /// After anything happened to a socket: what it sends leaves, and who waits for it is told.
    pub fn settle(&mut self, now: Us, index: usize) {
        self.learn(index);
        let tcp = &mut self.sockets[index].tcp;
        self.mibs.take(tcp);
        let wake = std::mem::take(&mut tcp.fate.wake);
        for segment in tcp.wire.drain(..) {
            self.wire.push_back((now, segment));
        }
        if wake != 0 && self.files.values().any(|it| matches!(it.file, File::Epoll(_))) {
            self.tell_watches(&File::Socket(index), wake);
        }
    }

    /// Tells the epoll instances that watch a socket.
    pub(crate) fn tell_watches(&mut self, socket: &File, wake: u32) {
        let is_meant = |file: &File| match (file, socket) {
            (File::Socket(at), File::Socket(index))
            | (File::Datagrams(at), File::Datagrams(index)) => at == index,
            _ => false,
        };
        let told: Vec<i32> =
            self.files.iter().filter(|(_, d)| is_meant(&d.file)).map(|(&fd, _)| fd).collect();
        let all = wake & (poll::HUP | poll::RDHUP) != 0;
        for descriptor in self.files.values_mut() {
            if let File::Epoll(watches) = &mut descriptor.file {
                for watch in watches.iter_mut().filter(|w| told.contains(&w.fd)) {
                    let asked = watch.events | poll::ERR | poll::HUP;
                    watch.ready |= all || wake & asked != 0;
                }
            }
        }
    }

    /// The earliest deadline.
    pub fn deadline(&self) -> Option<Us> {
        let mut first = None;
        for socket in &self.sockets {
            first = earlier(first, socket.tcp.deadline());
            for request in &socket.requests {
                first = earlier(first, Some(request.deadline));
            }
        }
        first
    }

    /// Acts on every deadline up to `now`.
    pub fn advance(&mut self, now: Us) {
        for index in 0..self.sockets.len() {
            if self.sockets[index].tcp.deadline().is_some_and(|at| at <= now) {
                with!(self, now, index, |socket, env| socket.tcp.on_time(&env));
            }
            self.advance_requests(now, index);
        }
    }
}
