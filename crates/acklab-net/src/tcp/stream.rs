//! A connection whose bytes exist: [`Carried`] decides, and what it decides about is kept beside it.

use std::net::SocketAddr;

use acklab_core::event::Sink;
use acklab_core::packet::{Addr, Body, NodeId, Packet};
use acklab_core::time::{Span, Time};
use acklab_core::wire::{TcpPacket, emit_tcp};
use acklab_tcp::{AppEvent, Snapshot, State, Terms};

use super::bytes::Bytes;
use super::carried::Carried;

/// Our node in the connection's eyes, and the peer's. Who they really are, the host knows.
const US: NodeId = NodeId(0);
const PEER: NodeId = NodeId(1);

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Both directions were closed in order.
    Closed,
    /// The peer reset it, or refused it.
    Reset,
    /// The peer does not answer.
    TimedOut,
    /// A router or the peer's host says that it cannot be reached: ICMP type and code.
    Unreachable {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
}

/// What left and came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Segments of ours.
    pub segments_sent: u64,
    /// Those of them with payload that left before.
    pub retransmissions: u64,
    /// Segments of the peer.
    pub segments_received: u64,
    /// Times that a router told us that the path carries less than we sent.
    pub too_big: u64,
}

/// One end of a connection, with its bytes.
#[derive(Debug)]
pub struct Stream {
    connection: Carried,
    local: SocketAddr,
    remote: SocketAddr,
    /// Written and not acknowledged.
    written: Bytes,
    /// Arrived and not read.
    arrived: Bytes,
    end: Option<End>,
    tally: Tally,
    /// The highest place of the stream that left.
    sent: u64,
    /// Nobody listens to what a write lets happen.
    sink: Sink,
}

/// What the application does.
impl Stream {
    /// Bytes that [`Self::write`] would take.
    pub fn room(&self) -> usize {
        let open = matches!(self.connection.state(), State::Established | State::CloseWait);
        if open { self.connection.room() as usize } else { 0 }
    }

    /// Writes as many of `bytes` as there is room for; returns how many.
    pub fn write(&mut self, now: Time, bytes: &[u8]) -> usize {
        let fits = bytes.len().min(self.room());
        let taken = self.connection.write(now, fits as u32, &mut self.sink) as usize;
        self.written.append(&bytes[..taken]);
        taken
    }

    /// What may be read now, as the two halves of a ring.
    pub fn unread(&self) -> [&[u8]; 2] {
        let from = self.connection.total_read();
        self.arrived.at(from..from + self.connection.unread())
    }

    /// The first `bytes` of what may be read were read.
    pub fn consume(&mut self, now: Time, bytes: usize) {
        self.connection.read(now, bytes as u32);
        self.arrived.release(self.connection.total_read());
    }

    /// No more will be written.
    pub fn close(&mut self, now: Time) {
        self.connection.close(now);
    }

    /// Gives the connection up; the peer is told.
    pub fn abort(&mut self, now: Time) {
        self.connection.abort(now);
    }
}

/// What can be asked.
impl Stream {
    /// Our end.
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// The peer's end.
    pub const fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// State of the connection.
    pub fn state(&self) -> State {
        self.connection.state()
    }

    /// What both ends agreed on.
    pub fn terms(&self) -> Terms {
        self.connection.terms()
    }

    /// Payload of a full segment, bytes.
    pub fn mss(&self) -> u32 {
        self.connection.mss()
    }

    /// State for reports.
    pub fn snapshot(&self) -> Snapshot {
        self.connection.snapshot()
    }

    /// Whether the peer will send no more than what may be read.
    pub fn is_read_out(&self) -> bool {
        let over = matches!(
            self.connection.state(),
            State::CloseWait | State::LastAck | State::Closing | State::TimeWait | State::Closed
        );
        over && self.connection.unread() == 0
    }

    /// How it ended. TIME-WAIT is an end; only late segments of the peer are answered there.
    pub fn end(&self) -> Option<End> {
        match self.connection.state() {
            State::TimeWait => Some(End::Closed),
            State::Closed => self.end.clone(),
            _ => None,
        }
    }

    /// What left and came.
    pub const fn tally(&self) -> Tally {
        self.tally
    }
}

/// What the host does.
impl Stream {
    /// The two ends of a connection, as it knows them.
    pub(super) const fn ends(local: SocketAddr, remote: SocketAddr) -> (Addr, Addr) {
        (Addr { node: US, port: local.port() }, Addr { node: PEER, port: remote.port() })
    }

    /// A segment as the connection sees it.
    pub(super) const fn packet(packet: &TcpPacket<'_>) -> Packet {
        let (dst, src) = Self::ends(packet.destination, packet.source);
        Packet { src, dst, ecn: packet.ecn, returned: false, body: Body::Tcp(packet.segment) }
    }

    pub(super) fn new(connection: Carried, local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            connection,
            local,
            remote,
            written: Bytes::default(),
            arrived: Bytes::default(),
            end: None,
            tally: Tally::default(),
            sent: 0,
            sink: Sink::default(),
        }
    }

    pub(super) fn handle_packet(&mut self, now: Time, packet: &TcpPacket<'_>, sink: &mut Sink) {
        self.tally.segments_received += 1;
        let kept = self.connection.take_packet(now, Self::packet(packet), sink);
        if !kept.is_empty() {
            let before = kept.start as i64 - self.connection.inbound_offset(&packet.segment);
            let length = (kept.end - kept.start) as usize;
            self.arrived.put(kept.start, &packet.payload[before as usize..][..length]);
        }
        self.settle();
    }

    /// A router says that a segment which began at `seq` was too large, and `mss` bytes would not be.
    pub(super) fn on_too_big(&mut self, now: Time, seq: acklab_core::seq::Seq, mss: u16) {
        self.tally.too_big += 1;
        self.connection.on_too_big(now, seq, mss);
    }

    /// The peer cannot be reached. That ends an attempt to connect; a connection that stands waits for
    /// better times (RFC 5461, RFC 1122 section 4.2.3.9).
    pub(super) fn on_unreachable(&mut self, now: Time, seq: acklab_core::seq::Seq, end: End) {
        let opening = self.connection.state() == State::SynSent;
        if opening && seq == self.connection.send_sequence().0 {
            self.end = Some(end);
            self.connection.abort(now);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        self.connection.handle_timeout(now, sink);
        self.settle();
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.connection.poll_timeout()
    }

    /// Appends the next packet that leaves; returns whether one does.
    pub(super) fn poll_transmit(
        &mut self,
        now: Time,
        identification: u16,
        sink: &mut Sink,
        frame: &mut Vec<u8>,
    ) -> bool {
        let Some(packet) = self.connection.poll_transmit(now, sink) else {
            self.settle();
            return false;
        };
        let Body::Tcp(segment) = packet.body else { return false };
        let places = self.connection.outbound_range(&segment);
        self.tally.segments_sent += 1;
        if !places.is_empty() {
            self.tally.retransmissions += u64::from(places.start < self.sent);
            self.sent = self.sent.max(places.end);
        }
        let payload = self.written.at(places);
        let ends = (self.local, self.remote);
        emit_tcp(ends, packet.ecn, identification, &segment, payload, frame);
        true
    }

    /// Follows what the connection knows: acknowledged bytes go, and its end is noted.
    fn settle(&mut self) {
        self.written.release(self.connection.acknowledged());
        while let Some(event) = self.connection.poll_event() {
            let end = match event {
                AppEvent::Closed => End::Closed,
                AppEvent::Reset => End::Reset,
                AppEvent::TimedOut => End::TimedOut,
                _ => continue,
            };
            self.end.get_or_insert(end);
        }
    }

    /// How long a late segment of the peer may take: its time-out, and some.
    pub(super) fn lingering(&self) -> Span {
        self.connection.snapshot().rto.max(Span::from_millis(500)) * 2
    }
}
