//! [`Connection`]: a host with one connection as an end of the simulations' links: packets, the five verbs of
//! [`Endpoint`], and an application that writes, reads and closes.
//!
//! The world's zero is [`EPOCH`] of the host's clock: a machine has been up for a while, and the timestamp
//! that stands for "none" is long past. Its microseconds are the clock of everything that the host does.

use acklab_core::ack::Profile;
use acklab_core::cc::Algorithm;
use acklab_core::endpoint::Endpoint;
use acklab_core::event::{AckReason, EventKind, FlowKey, Interest, Release, Sink};
use acklab_core::messages::Messages;
use acklab_core::notices::{AppEvent, Notices};
use acklab_core::packet::{Addr, Body, Packet};
use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::Time;

use crate::asking::Asking;
use crate::calls::ReadFlags;
use crate::cc::Congestion;
use crate::errno;
use crate::host::{Host, ISN_STEP, with};
use crate::model::Model;
use crate::packet::{Packets, place, segment_of};
use crate::policy::Ruling;
use crate::segment::Place;
use crate::settings::{Route, SECOND, Sysctls, Us};
use crate::socket::{Family, O_NONBLOCK};
use crate::tcp::{CaState, State, Tcp, poll};
use crate::window::truesize;
use crate::write::WriteFlags;

/// What a host is set up with, and its socket.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// System controls.
    pub sysctls: Sysctls,
    /// The route.
    pub route: Route,
    /// One of the simulations' congestion controls; `None`: what the controls say.
    pub control: Option<Algorithm>,
    /// One of the simulations' ACK policies and where its tick stands at time zero; `None`: the kernel's rules.
    pub policy: Option<(Profile, f64)>,
    /// How it asks the peer for ACKs, and may be asked; `None`: not at all.
    pub asking: Option<Asking>,
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// Nagle's algorithm of RFC 896 in place of Minshall's variant.
    pub classic_nagle: bool,
    /// The time-out before the first measurement; 0: a second.
    pub initial_rto: Us,
    /// SO_KEEPALIVE.
    pub keep_alive: bool,
    /// SO_SNDBUF, bytes; `None`: tuned.
    pub send_buffer: Option<u32>,
    /// The window to announce while nothing waits, bytes, of which SO_RCVBUF follows; `None`: tuned.
    pub receive_window: Option<u32>,
}

impl Setup {
    /// SO_RCVBUF for a window of `bytes`: the kernel doubles it, and a full packet's memory is more than its payload.
    fn receive_buffer(&self, bytes: u32) -> u32 {
        let headers = self.route.ip_header + 20;
        let payload = self.route.mtu().saturating_sub(headers).max(1);
        let memory = u64::from(bytes) * u64::from(truesize(payload, headers)) / u64::from(payload);
        u32::try_from(memory / 2).unwrap_or(u32::MAX)
    }
}

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    host: Host,
    flow: FlowKey,
    /// The socket, by its descriptor and its place: of the listener until a connection is there.
    fd: i32,
    socket: usize,
    /// It waits for a connection.
    listens: bool,
    notices: Notices,
    told: Told,
    /// What is left of the burst that is leaving.
    leaving: Option<Packets>,
    messages: Messages,
    /// After the last that ever left, counted from the initial sequence number.
    highest: u64,
    /// The oldest number unacknowledged, and the next expected of the peer.
    marks: [Mark; 2],
    /// New data arrived since an acknowledgment left last: when, and what will have made it leave.
    owed: Option<(Time, AckReason)>,
    /// Nagle's algorithm holds data back since.
    held: Option<Time>,
    /// Bytes read and written.
    total: [u64; 2],
}

/// A sequence number that moves on, and its distance from the initial one.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    seq: u32,
    at: Option<u64>,
}

impl Mark {
    const fn follow(&mut self, initial: u32, seq: u32) {
        let (from, at) = match self.at {
            Some(at) => (self.seq, at),
            None => (initial, 0),
        };
        (self.seq, self.at) = (seq, Some(at + seq.wrapping_sub(from) as u64));
    }

    /// The distance of another that is near.
    const fn place(&self, seq: u32) -> i64 {
        let at = match self.at {
            Some(at) => at as i64,
            None => 0,
        };
        at + seq.wrapping_sub(self.seq) as i32 as i64
    }
}

/// What the application and the listeners were told.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, one flag each")]
struct Told {
    connected: bool,
    peer_closed: bool,
    over: bool,
    /// Why there is no connection, as errno.
    refusal: i32,
    /// A write found too little room.
    wants_room: bool,
    /// Bytes that had arrived in order.
    received: u64,
    ca: CaState,
    timeouts: u32,
    /// Congestion window, threshold, and the oldest byte unacknowledged.
    window: (u32, u32, u32),
}

impl Connection {
    /// Opens towards `remote` at `now`.
    pub fn connect(now: Time, setup: &Setup, local: Addr, remote: Addr, isn: Seq) -> Self {
        let mut connection = Self::new(setup, FlowKey { local, remote }, isn);
        let (now, fd) = (us(now), connection.fd);
        // It says that it is under way.
        let _ = connection.host.connect(now, fd, place(local), place(remote));
        connection
    }

    /// Waits for a SYN from anyone.
    pub fn listen(setup: &Setup, local: Addr, isn: Seq) -> Self {
        let mut connection = Self::new(setup, FlowKey { local, remote: Addr::default() }, isn);
        let fd = connection.fd;
        let listening =
            connection.host.bind(fd, place(local)).and_then(|_| connection.host.listen(fd, 1));
        debug_assert!(listening.is_ok(), "a new host has every port");
        connection.listens = true;
        connection
    }

    fn new(setup: &Setup, flow: FlowKey, isn: Seq) -> Self {
        // The next number is the first connection's.
        let mut host = Host::new(isn.0.wrapping_sub(ISN_STEP));
        host.sysctls = setup.sysctls.clone();
        host.route = setup.route;
        let fd = host.socket(EPOCH, Family::V4, true).map_or(-1, |fd| fd as i32);
        if let Ok(index) = host.index(fd) {
            let tcp = &mut host.sockets[index].tcp;
            let ruling = setup.policy.as_ref().map(|(it, phase)| Ruling::new(it.clone(), *phase));
            tcp.ack.policy = ruling.map(Box::new);
            tcp.ack.asking = setup.asking.clone().map(Box::new);
            tcp.opt.classic_nagle = setup.classic_nagle;
            tcp.opt.initial_rto = setup.initial_rto;
            if let Some(algorithm) = &setup.control {
                let model = Model::new(algorithm.clone(), u64::from(isn.0));
                tcp.cc = Congestion::Model(Box::new(model));
            }
        }
        let mut option = |level, name, value: u32| {
            let done = host.set_option(EPOCH, fd, level, name, i64::from(value));
            debug_assert!(done.is_ok(), "{level} {name} is known");
        };
        if setup.nodelay {
            option(crate::socket::TCP, NODELAY, 1);
        }
        if setup.keep_alive {
            option(crate::socket::SOCKET, KEEPALIVE, 1);
        }
        if let Some(bytes) = setup.send_buffer {
            option(crate::socket::SOCKET, SNDBUFFORCE, bytes);
        }
        if let Some(bytes) = setup.receive_window {
            option(crate::socket::SOCKET, RCVBUFFORCE, setup.receive_buffer(bytes));
        }
        Self {
            host,
            flow,
            fd,
            socket: 0,
            listens: false,
            notices: Notices::default(),
            told: Told::default(),
            leaving: None,
            messages: Messages::default(),
            highest: 0,
            marks: [Mark::default(); 2],
            owed: None,
            held: None,
            total: [0; 2],
        }
    }

    /// Writes a message of `bytes` bytes; returns how many were taken. Fewer where the send buffer is
    /// full: [`AppEvent::Writable`] follows, and the rest, which the next write brings, belongs to the
    /// same message. None where the state does not allow writing.
    pub fn write(&mut self, now: Time, bytes: u32, sink: &mut Sink) -> u32 {
        if self.listens || !self.told.connected || self.tcp().fate.shut_write {
            return 0;
        }
        let written = self.host.write(us(now), self.fd, bytes, WriteFlags::default(), true);
        let taken = match written {
            Ok(taken) => taken as u32,
            Err(_) => 0,
        };
        self.total[1] += u64::from(taken);
        self.told.wants_room |= taken < bytes && self.tcp().state.may_send();
        let flow = self.flow;
        if let Some((id, bytes)) = self.messages.on_write(now, bytes, taken) {
            sink.record(now, EventKind::MessageWritten { flow, id, bytes });
        }
        self.follow(now, sink);
        taken
    }

    /// Reads up to `max` bytes; returns how many.
    pub fn read(&mut self, now: Time, max: u32) -> u32 {
        if self.listens || self.tcp().readable() == 0 {
            return 0;
        }
        if let Some((_, reason)) = &mut self.owed {
            *reason = AckReason::Read;
        }
        let read = self.host.read(us(now), self.fd, max, ReadFlags::default());
        let read = read.map_or(0, |bytes| bytes as u32);
        self.total[0] += u64::from(read);
        read
    }

    /// Closes our direction: a FIN follows what was written. Unread data may still be read.
    pub fn close(&mut self, now: Time) {
        let how = if self.listens { BOTH } else { WRITING };
        // One that is closed stays so.
        let _ = self.host.shutdown(us(now), self.fd, how);
        self.follow_end();
    }

    /// Both ends.
    pub const fn flow(&self) -> FlowKey {
        self.flow
    }

    /// Bytes read so far.
    pub const fn total_read(&self) -> u64 {
        self.total[0]
    }

    /// Bytes written so far.
    pub const fn total_written(&self) -> u64 {
        self.total[1]
    }

    /// Somebody asked for a connection that is not there yet.
    pub(crate) fn is_asked(&self) -> bool {
        !self.host.sockets[self.socket].requests.is_empty()
    }

    /// How many numbers from the initial one on the peer acknowledged.
    pub(crate) fn acknowledged_numbers(&self) -> u64 {
        self.marks[0].at.unwrap_or(0)
    }

    /// How many numbers from the peer's initial one on arrived in order.
    pub(crate) fn expected_numbers(&self) -> u64 {
        self.marks[1].at.unwrap_or(0)
    }

    /// Distance of a number of ours from the initial one.
    pub(crate) const fn outbound_place(&self, seq: u32) -> i64 {
        self.marks[0].place(seq)
    }

    /// Distance of a number of the peer's from its initial one.
    pub(crate) const fn inbound_place(&self, seq: u32) -> i64 {
        self.marks[1].place(seq)
    }

    pub(crate) const fn descriptor(&self) -> i32 {
        self.fd
    }

    pub(crate) const fn host(&mut self) -> &mut Host {
        &mut self.host
    }

    /// The connection, or the listener while none is there.
    pub fn tcp(&self) -> &Tcp {
        &self.host.sockets[self.socket].tcp
    }

    /// After anything happened: the application and the listeners are told.
    fn follow(&mut self, now: Time, sink: &mut Sink) {
        if self.told.over || (self.listens && !self.accept()) {
            return;
        }
        if !self.told.connected && self.tcp().state != State::SynSent {
            // It reports what came of it, once.
            self.told.refusal = self.tcp().fate.error;
            let _ = self.host.connect(us(now), self.fd, Place::default(), Place::default());
        }
        let tcp = &self.host.sockets[self.socket].tcp;
        let opening = matches!(tcp.state, State::SynSent | State::SynRecv | State::Close);
        let [acked, expected] = &mut self.marks;
        acked.follow(tcp.snd.isn, tcp.snd.una);
        if !matches!(tcp.state, State::SynSent | State::Close) {
            expected.follow(tcp.rcv.isn, tcp.rcv.nxt);
        }
        if !self.told.connected && !opening {
            self.told.connected = true;
            self.notices.add(AppEvent::Connected);
        }
        let received = tcp.count.bytes_received;
        if received != self.told.received {
            self.told.received = received;
            if tcp.readable() > 0 {
                self.notices.add(AppEvent::Readable);
            }
        }
        if tcp.rcv.fin && !self.told.peer_closed {
            self.told.peer_closed = true;
            self.notices.add(AppEvent::PeerClosed);
        }
        self.tell_loss(now, sink);
        if sink.wants(Interest::CONGESTION) {
            self.tell_congestion(now, sink);
            self.tell_ack_rate(now, sink);
        }
        self.follow_hold(now, sink);
        if self.told.wants_room && self.host.poll_mask(us(now), self.fd) & poll::OUT != 0 {
            self.told.wants_room = false;
            if self.tcp().state.may_send() {
                self.notices.add(AppEvent::Writable);
            }
        }
        self.follow_end();
    }

    /// The listener's first connection takes its place.
    fn accept(&mut self) -> bool {
        let Ok(fd) = self.host.accept(self.fd, O_NONBLOCK) else { return false };
        self.fd = fd as i32;
        self.socket = self.host.index(self.fd).unwrap_or(0);
        self.listens = false;
        let remote = self.tcp().remote;
        self.flow.remote = crate::packet::addr(remote);
        true
    }

    fn follow_end(&mut self) {
        let tcp = self.tcp();
        if self.told.over || tcp.state != State::Close {
            return;
        }
        let error = if tcp.fate.error == 0 { self.told.refusal } else { tcp.fate.error };
        let event = match error {
            0 => AppEvent::Closed,
            errno::ETIMEDOUT => AppEvent::TimedOut,
            _ => AppEvent::Reset,
        };
        self.told.over = true;
        self.notices.add(event);
    }

    fn tell_loss(&mut self, now: Time, sink: &mut Sink) {
        let (flow, rec) = (self.flow, &self.tcp().rec);
        let (ca, timeouts) = (rec.ca, rec.total_rto);
        if timeouts != self.told.timeouts {
            sink.record(now, EventKind::Loss { flow, timeout: true });
        } else if ca == CaState::Recovery && self.told.ca != ca {
            sink.record(now, EventKind::Loss { flow, timeout: false });
        }
        (self.told.ca, self.told.timeouts) = (ca, timeouts);
    }

    fn tell_congestion(&mut self, now: Time, sink: &mut Sink) {
        let tcp = self.tcp();
        let window = (tcp.window.cwnd, tcp.window.ssthresh, tcp.snd.una);
        if window == self.told.window || !self.told.connected {
            return;
        }
        let mss = u64::from(tcp.snd.mss);
        let ssthresh = match tcp.window.ssthresh {
            crate::settings::INFINITE_SSTHRESH => u64::MAX,
            packets => u64::from(packets) * mss,
        };
        let (flow, cwnd) = (self.flow, u64::from(tcp.window.cwnd) * mss);
        let in_flight = u64::from(tcp.snd.nxt.wrapping_sub(tcp.snd.una));
        let acked = self.offset(tcp.snd.una);
        self.told.window = window;
        sink.record(now, EventKind::Congestion { flow, cwnd, ssthresh, in_flight, acked });
    }

    fn tell_ack_rate(&mut self, now: Time, sink: &mut Sink) {
        let flow = self.flow;
        let ruling = self.host.sockets[self.socket].tcp.ack.policy.as_mut();
        if let Some([segments, most]) = ruling.and_then(|ruling| ruling.poll_rate()) {
            sink.record(now, EventKind::AckRate { flow, segments, most });
        }
    }

    /// Data that the windows would let leave, and Nagle's algorithm does not.
    fn follow_hold(&mut self, now: Time, sink: &mut Sink) {
        if self.held.is_some() || !sink.wants(Interest::TRANSPORT) {
            return;
        }
        if let Some(bytes) = self.tcp().held() {
            self.held = Some(now);
            sink.record(now, EventKind::Held { flow: self.flow, bytes });
        }
    }

    /// Distance of `seq` from the initial sequence number; it lies near the oldest unacknowledged.
    fn offset(&self, seq: u32) -> u64 {
        self.marks[0].place(seq).max(0) as u64
    }

    /// Tells the listeners of a packet that leaves.
    fn tell(&mut self, now: Time, tcp: &TcpRepr, sink: &mut Sink) {
        let (flow, flags, len) = (self.flow, tcp.flags, tcp.payload_len);
        // A SYN is the first; what a listener sends beside it brings nothing.
        let first = self.listens || flags.has(Flags::SYN);
        let start = if first { 0 } else { self.offset(tcp.seq.0) };
        let end = start + u64::from(tcp.seq_len());
        let control = flags.has(Flags::SYN) || flags.has(Flags::FIN) || flags.has(Flags::RST);
        let retransmission = tcp.seq_len() > 0 && start < self.highest;
        sink.record(now, EventKind::SegmentSent { flow, len, control, retransmission });
        if flags.has(Flags::ACK)
            && let Some((since, reason)) = self.owed.take()
        {
            let reason = if len > 0 { AckReason::Piggyback } else { reason };
            sink.record(now, EventKind::AckSent { flow, reason, delay: now.since(since) });
        }
        if end > self.highest {
            self.highest = end;
            if let Some(since) = self.held.take() {
                let by = if len == self.tcp().snd.mss { Release::Full } else { Release::Ack };
                let held = now.since(since);
                sink.record(now, EventKind::Released { flow, bytes: len, held, by });
            }
            // The SYN is the number before the first byte.
            while let Some((id, written_at)) = self.messages.next_sent(end - 1) {
                sink.record(now, EventKind::MessageSent { flow, id, written_at });
            }
        }
    }
}

impl Endpoint for Connection {
    type Arrival<'a> = Packet;
    type Departure<'a> = Packet;
    type AppEvent = AppEvent;

    fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) {
        let Some(segment) = segment_of(&packet) else { return };
        if packet.returned {
            if packet.src == self.flow.local && packet.dst == self.flow.remote {
                let (host, index) = (&mut self.host, self.socket);
                with!(host, us(now), index, |socket, env| {
                    socket.tcp.take_back(&env, segment.seq, segment.end());
                });
                self.follow(now, sink);
            }
            return;
        }
        let stranger = !self.listens && packet.src != self.flow.remote;
        if packet.dst != self.flow.local || stranger {
            return;
        }
        self.host.receive(us(now), &segment);
        let tcp = self.tcp();
        if self.owed.is_none() && tcp.count.bytes_received != self.told.received {
            let reason =
                if tcp.rcv.ooo.is_empty() { AckReason::Policy } else { AckReason::OutOfOrder };
            self.owed = Some((now, reason));
        }
        self.follow(now, sink);
    }

    fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        if self.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        if let Some((_, reason)) = &mut self.owed {
            *reason = AckReason::Timer;
        }
        self.host.advance(us(now));
        self.follow(now, sink);
    }

    fn poll_transmit(&mut self, now: Time, sink: &mut Sink) -> Option<Packet> {
        loop {
            if let Some(packet) = self.leaving.as_mut().and_then(Iterator::next) {
                if let (true, Body::Tcp(tcp)) = (sink.wants(TOLD), &packet.body) {
                    self.tell(now, tcp, sink);
                }
                return Some(packet);
            }
            self.leaving = None;
            let (_, segment) = self.host.wire.pop_front_if(|(at, _)| *at <= us(now))?;
            self.leaving = Some(Packets::of(&segment));
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.host.deadline().map(|at| Time::from_nanos(at.saturating_sub(EPOCH) * 1000))
    }

    fn poll_event(&mut self) -> Option<AppEvent> {
        self.notices.pop()
    }
}

pub(crate) const fn us(now: Time) -> Us {
    EPOCH + now.as_nanos() / 1000
}

/// How long the host has been up at the world's zero.
const EPOCH: Us = 1000 * SECOND;
/// What a packet that leaves may be told to.
const TOLD: Interest = Interest::TRANSPORT.with(Interest::MESSAGE);
/// SHUT_WR and SHUT_RDWR.
const WRITING: i32 = 1;
const BOTH: i32 = 2;
const NODELAY: i32 = 1;
const KEEPALIVE: i32 = 9;
const SNDBUFFORCE: i32 = 32;
const RCVBUFFORCE: i32 = 33;
