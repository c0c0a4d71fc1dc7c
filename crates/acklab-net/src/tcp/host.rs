//! A host with one address: which connection a packet belongs to, who may connect, and what strangers are
//! told. Sans-IO: packets come and leave as bytes, and `now` is an argument.
//!
//! A segment that belongs to no connection is answered with RST (RFC 9293 section 3.10.7.1); damaged
//! packets are dropped; ICMP lowers a path's MTU (RFC 1191, RFC 8201) and ends attempts to connect to
//! where nothing answers. Left out: everything that is not TCP, and a table of TIME-WAIT that outlives its
//! stream.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use acklab_core::event::Sink;
use acklab_core::packet::Ecn;
use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};
use acklab_core::wire::{
    IcmpReport, ParseError, TcpPacket, Trouble, emit_tcp, parse_icmp, parse_tcp,
};
use acklab_tcp::{Config, State, reset_for};

use super::carried::Carried;
use super::stream::{End, Stream};

/// RSTs that wait to leave; more are not owed to anyone.
const MOST_RESETS: usize = 64;
/// TCP header without options.
const TCP_HEADER: u32 = 20;
/// The least MTU that an ICMP message may set: Linux's `ip_rt_min_pmtu` and RFC 8200 section 5.
const LEAST_MTU: u32 = 552;
const LEAST_MTU6: u32 = 1280;
/// Of a router that does not say its MTU (RFC 1191 section 5).
const SILENT_MTU: u32 = 576;
/// Ports for connections that we open (RFC 6335 section 6).
const DYNAMIC_PORTS: std::ops::RangeInclusive<u16> = 49_152..=65_535;

/// What a host was sent that no connection took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strays {
    /// A checksum was wrong.
    pub damaged: u64,
    /// Segments for no connection of ours.
    pub refused: u64,
    /// Other protocols and addresses.
    pub ignored: u64,
}

/// Local port and remote end.
type Key = (u16, SocketAddr);

/// A host with one address.
pub struct Host {
    address: IpAddr,
    config: Config,
    /// Port, and connections that there may be at once.
    listening: Option<(u16, usize)>,
    streams: BTreeMap<Key, Stream>,
    /// Whose turn it is to send.
    turn: Key,
    resets: VecDeque<(SocketAddr, SocketAddr, TcpRepr)>,
    strays: Strays,
    identification: u16,
    frame: Vec<u8>,
    /// Random numbers: initial sequence numbers that outsiders cannot guess (RFC 6528), and ports.
    random: Box<dyn FnMut() -> u32 + Send>,
    sink: Sink,
}

impl Host {
    /// The largest segment, without options, that a packet of `mtu` bytes carries to `address`.
    pub fn mss(address: IpAddr, mtu: u32) -> u16 {
        let header = if address.is_ipv4() { 20 } else { 40 };
        mtu.saturating_sub(header + TCP_HEADER).min(u32::from(u16::MAX)) as u16
    }

    /// A host whose connections have the parameters `config`, and segments that fit `mtu`.
    pub fn new(
        address: IpAddr,
        mtu: u32,
        config: Config,
        random: impl FnMut() -> u32 + Send + 'static,
    ) -> Self {
        let mss = config.mss.min(Self::mss(address, mtu));
        Self {
            address,
            config: Config { mss, ..config },
            listening: None,
            streams: BTreeMap::new(),
            turn: (0, SocketAddr::new(address, 0)),
            resets: VecDeque::new(),
            strays: Strays::default(),
            identification: 0,
            frame: Vec::new(),
            random: Box::new(random),
            sink: Sink::default(),
        }
    }

    /// Takes connections to `port` from now on, `most` at once; a SYN beyond finds no answer, as where a
    /// backlog is full.
    pub fn listen(&mut self, port: u16, most: usize) {
        self.listening = Some((port, most));
    }

    /// Opens a connection from a port of its choice; `None`: every port is in use, or `remote` is no host's address.
    pub fn connect(&mut self, now: Time, remote: SocketAddr) -> Option<&mut Stream> {
        if !is_of_one_host(remote.ip()) {
            return None;
        }
        let ports = u32::from(DYNAMIC_PORTS.end() - DYNAMIC_PORTS.start()) + 1;
        let first = (self.random)() % ports;
        let port = (0..ports)
            .map(|step| DYNAMIC_PORTS.start() + ((first + step) % ports) as u16)
            .find(|&port| !self.streams.contains_key(&(port, remote)))?;
        let local = SocketAddr::new(self.address, port);
        let (us, peer) = Stream::ends(local, remote);
        let isn = Seq((self.random)());
        let connection = Carried::connect(now, &self.config, us, peer, isn);
        Some(self.streams.entry((port, remote)).or_insert(Stream::new(connection, local, remote)))
    }

    /// Every connection, those that have ended included.
    pub fn streams(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.streams.values_mut()
    }

    /// Forgets the connections of which that is said.
    pub fn forget(&mut self, mut over: impl FnMut(&Stream) -> bool) {
        self.streams.retain(|_, stream| !over(stream));
    }

    /// What no connection took.
    pub const fn strays(&self) -> Strays {
        self.strays
    }

    /// Its address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How long the peer of any connection that ended may still ask for its last ACK.
    pub fn lingering(&self) -> Span {
        let waits = |stream: &&Stream| stream.state() == State::TimeWait;
        self.streams.values().filter(waits).map(Stream::lingering).max().unwrap_or(Span::ZERO)
    }
}

/// What arrives.
impl Host {
    /// Takes an IP packet.
    pub fn handle_frame(&mut self, now: Time, frame: &[u8]) {
        match parse_tcp(frame) {
            Ok(packet)
                if packet.destination.ip() == self.address
                    && is_of_one_host(packet.source.ip()) =>
            {
                self.on_segment(now, &packet);
            }
            Err(ParseError::Checksum) => self.strays.damaged += 1,
            Err(ParseError::Protocol) => match parse_icmp(frame) {
                Some(report) if report.source.ip() == self.address => self.on_report(now, report),
                _ => self.strays.ignored += 1,
            },
            Ok(_) | Err(_) => self.strays.ignored += 1,
        }
    }

    fn on_segment(&mut self, now: Time, packet: &TcpPacket<'_>) {
        let key = (packet.destination.port(), packet.source);
        if let Some(stream) = self.streams.get_mut(&key)
            && stream.state() != State::Closed
        {
            stream.handle_packet(now, packet, &mut self.sink);
            // A peer that resets its own SYN was never there.
            if stream.state() == State::Listen {
                self.streams.remove(&key);
            }
            return;
        }
        let flags = packet.segment.flags;
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::ACK) && !flags.has(Flags::RST);
        self.strays.refused += 1;
        if let Some((_, most)) = self.listening.filter(|&(port, _)| opens && port == key.0) {
            if self.streams.len() < most {
                self.strays.refused -= 1;
                self.accept(now, packet);
            }
            return;
        }
        if let Some(reset) = reset_for(&packet.segment).filter(|_| self.resets.len() < MOST_RESETS)
        {
            self.resets.push_back((packet.destination, packet.source, reset));
        }
    }

    fn accept(&mut self, now: Time, packet: &TcpPacket<'_>) {
        let (local, remote) = (packet.destination, packet.source);
        let (us, peer) = Stream::ends(local, remote);
        let (isn, syn) = (Seq((self.random)()), Stream::packet(packet));
        let connection = Carried::accept(now, &self.config, [us, peer], isn, &syn, &mut self.sink);
        self.streams.insert((local.port(), remote), Stream::new(connection, local, remote));
    }

    fn on_report(&mut self, now: Time, report: IcmpReport) {
        let key = (report.source.port(), report.destination);
        let Some(stream) = self.streams.get_mut(&key) else { return };
        match report.trouble {
            Trouble::TooBig { mtu } => {
                let mtu = match self.address {
                    IpAddr::V4(_) if mtu == 0 => SILENT_MTU,
                    IpAddr::V4(_) => mtu.max(LEAST_MTU),
                    // RFC 8201 section 4: a smaller one is not believed.
                    IpAddr::V6(_) if mtu < LEAST_MTU6 => return,
                    IpAddr::V6(_) => mtu,
                };
                stream.on_too_big(now, report.seq, Self::mss(self.address, mtu));
            }
            Trouble::Unreachable { kind, code } => {
                stream.on_unreachable(now, report.seq, End::Unreachable { kind, code });
            }
        }
    }
}

/// Whether an address is that of one host, with which alone TCP speaks (RFC 9293, MUST-46, 57 and 63). A subnet's broadcast
/// address cannot be told.
pub(super) fn is_of_one_host(address: IpAddr) -> bool {
    let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(address.is_multicast() || address.is_unspecified() || broadcast)
}

/// What leaves, and when.
impl Host {
    /// Acts on every deadline that has come.
    pub fn handle_timeout(&mut self, now: Time) {
        for stream in self.streams.values_mut() {
            if stream.poll_timeout().is_some_and(|due| due <= now) {
                stream.handle_timeout(now, &mut self.sink);
            }
        }
    }

    /// When [`Self::handle_timeout`] must be called next.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.streams.values().filter_map(Stream::poll_timeout).min()
    }

    /// The next IP packet that leaves. Connections take turns.
    pub fn poll_transmit(&mut self, now: Time) -> Option<&[u8]> {
        self.frame.clear();
        self.identification = self.identification.wrapping_add(1);
        let Self { streams, turn, frame, identification, sink, .. } = self;
        let after = (std::ops::Bound::Excluded(*turn), std::ops::Bound::Unbounded);
        for (&key, stream) in streams.range_mut(after) {
            if stream.poll_transmit(now, *identification, sink, frame) {
                *turn = key;
                return Some(frame);
            }
        }
        for (&key, stream) in streams.range_mut(..=*turn) {
            if stream.poll_transmit(now, *identification, sink, frame) {
                *turn = key;
                return Some(frame);
            }
        }
        let (local, remote, reset) = self.resets.pop_front()?;
        let none: [&[u8]; 2] = [&[], &[]];
        emit_tcp((local, remote), Ecn::NotEct, *identification, &reset, none, frame);
        Some(frame)
    }
}
