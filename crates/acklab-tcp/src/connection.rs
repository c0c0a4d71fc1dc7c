//! A connection: the application's verbs, the five verbs of the contract, and what can be asked.
//!
//! After any call the caller drains `poll_transmit`, then `poll_event`, then reads `poll_timeout`
//! once; a write or read by itself sends nothing. RFC 9293 section 3.9.1 names the application's
//! calls: OPEN is [`Connection::connect`], [`Connection::listen`] and [`Connection::accept`], SEND
//! is [`Connection::write`], RECEIVE [`Connection::read`], CLOSE and ABORT have their names.

use std::ops::Range;

use crate::config::Config;
use crate::input::Arrival;
use crate::life::Life;
use crate::options::Terms;
use crate::output::{self, Output};
use crate::receive::Receiver;
use crate::send::{Expiry, Sender};
use crate::state::{Cause, State};
use acklab_core::endpoint::Endpoint;
use acklab_core::event::{FlowKey, Sink};
use acklab_core::notices::AppEvent;
use acklab_core::packet::{Addr, Body, Packet};
use acklab_core::segment::{Flags, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::{Span, Time};

/// One end of a TCP connection.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    flow: FlowKey,
    life: Life,
    tx: Sender,
    rx: Receiver,
    /// A segment that leaves before all others.
    reply: Option<TcpRepr>,
    /// Something changed since `poll_transmit` last found nothing.
    output_due: bool,
}

/// State for reports; bytes where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// State of the connection.
    pub state: State,
    /// Congestion window.
    pub cwnd: u64,
    /// Slow-start threshold.
    pub ssthresh: u64,
    /// Sent and not acknowledged.
    pub in_flight: u64,
    /// Written and not sent.
    pub unsent: u64,
    /// Window the peer announced.
    pub peer_window: u64,
    /// Received and not read.
    pub unread: u64,
    /// Smoothed round trip.
    pub srtt: Option<Span>,
    /// Retransmission time-out in force.
    pub rto: Span,
    /// Loss recovery is under way.
    pub recovering: bool,
}

/// The application's verbs.
impl Connection {
    /// Opens towards `remote`; the SYN leaves with the next `poll_transmit`.
    pub fn connect(now: Time, config: Config, local: Addr, remote: Addr, isn: Seq) -> Self {
        let mut connection = Self::new(now, config, FlowKey { local, remote }, isn, false);
        connection.tx.open();
        connection.output_due = true;
        connection
    }

    /// Waits for a SYN from anyone, which `handle_packet` takes.
    pub fn listen(config: Config, local: Addr, isn: Seq) -> Self {
        let flow = FlowKey { local, remote: Addr::default() };
        Self::new(Time::ZERO, config, flow, isn, true)
    }

    /// Answers a SYN that arrived from `remote`: a listener that was handed its first segment.
    pub fn accept(
        now: Time,
        config: Config,
        local: Addr,
        remote: Addr,
        isn: Seq,
        syn: &Packet,
    ) -> Self {
        let mut connection = Self::listen(config, local, isn);
        connection.flow.remote = remote;
        connection.handle_packet(now, *syn, &mut Sink::default());
        connection
    }

    fn new(now: Time, config: Config, flow: FlowKey, isn: Seq, passive: bool) -> Self {
        let tx = Sender::new(now, &config, flow, isn);
        let rx = Receiver::new(now, &config, tx.ecn_feedback());
        Self {
            flow,
            life: Life::new(&config, rx.contact(), passive),
            tx,
            rx,
            reply: None,
            output_due: false,
            config,
        }
    }

    /// Writes a message of `bytes` bytes; returns how many were taken. Fewer where the send buffer is
    /// full: [`AppEvent::Writable`] follows, and the rest, which the next write brings, belongs to the
    /// same message. None where the state does not allow writing.
    pub fn write(&mut self, now: Time, bytes: u32) -> u32 {
        if !self.life.state.may_write() || self.tx.is_closed() {
            return 0;
        }
        self.output_due = true;
        self.tx.write(now, bytes)
    }

    /// Reads up to `max` bytes; returns how many. An ACK that the read causes leaves with the next
    /// `poll_transmit`.
    pub fn read(&mut self, now: Time, max: u32) -> u32 {
        let copied = self.rx.read(max);
        if copied > 0 && self.life.state.may_receive() {
            self.rx.on_read(now, copied);
            self.output_due |= self.rx.is_ack_due();
        }
        copied
    }

    /// TCP_NODELAY: turns Nagle's algorithm off, or back to the configured variant (classic where
    /// that is off). Turning it off releases what is held, even under CORK (tcp(7)).
    pub fn set_nodelay(&mut self, _now: Time, on: bool) {
        self.output_due |= self.tx.set_nodelay(on);
    }

    /// TCP_CORK: holds small segments for at most 200 ms; clearing it releases them.
    pub fn set_cork(&mut self, _now: Time, on: bool) {
        self.output_due |= self.tx.set_cork(on);
    }

    /// TCP_QUICKACK: a hint to the policy to stop delaying; `always` is the route's quickack metric,
    /// which lasts.
    pub fn set_quickack(&mut self, now: Time, on: bool, always: bool) {
        let synchronised = self.life.state.is_synchronised();
        self.output_due |= self.rx.set_quickack(now, on, always, synchronised);
    }

    /// Closes our direction: a FIN follows what was written. Unread data may still be read.
    pub fn close(&mut self, _now: Time) {
        self.output_due = true;
        match self.life.state {
            State::Listen | State::SynSent => {
                self.life.go(Cause::Close);
                self.life.end(AppEvent::Closed);
                self.follow_end();
            }
            // RFC 9293 section 3.10.4: in SYN-RECEIVED the state follows the handshake.
            State::SynReceived => self.tx.close(),
            State::Established | State::CloseWait => {
                self.tx.close();
                self.life.go(Cause::Close);
            }
            _ => {}
        }
    }

    /// Aborts: an RST leaves where the peer knows of us, and nothing more.
    pub fn abort(&mut self, _now: Time) {
        let state = self.life.state;
        if state == State::Closed {
            return;
        }
        let peer_knows = state.is_synchronised() || state == State::SynReceived;
        if peer_knows && state != State::TimeWait {
            self.reply = Some(TcpRepr {
                seq: self.tx.highest(),
                ack: self.rx.next_expected(),
                flags: Flags::RST.with(Flags::ACK),
                ..TcpRepr::default()
            });
        }
        self.life.go(Cause::Reset);
        self.life.end(AppEvent::Closed);
        self.follow_end();
    }

    /// Once the connection is over, neither side has anything to do.
    fn follow_end(&mut self) {
        if self.life.state == State::Closed {
            self.tx.end();
            self.rx.end();
        }
    }
}

/// What leaves.
impl Connection {
    /// Most calls find nothing due: this stays out of their way.
    #[inline(never)]
    fn next_packet(&mut self, now: Time, sink: &mut Sink) -> Option<Packet> {
        if let Some(reply) = self.reply.take() {
            output::tell(now, self.flow, &reply, false, sink);
            return Some(output::packet(self.flow, reply));
        }
        let mut output = Output {
            now,
            flow: self.flow,
            config: &self.config,
            state: self.life.state,
            life: &mut self.life,
            tx: &mut self.tx,
            rx: &mut self.rx,
            sink,
        };
        let packet = output.next();
        if packet.is_none() {
            self.output_due = false;
            if self.life.state != State::Closed {
                self.tx.settle(now);
                self.life.settle(now, self.tx.is_blocked().then(|| self.tx.rto()));
            }
        }
        packet
    }
}

const fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(a), Some(b)) => Some(if a.as_nanos() <= b.as_nanos() { a } else { b }),
        (Some(at), None) | (None, Some(at)) => Some(at),
        (None, None) => None,
    }
}

/// What arrives.
impl Connection {
    /// Takes a packet; one that is not of this connection is ignored. Returns which bytes of the stream that
    /// we read, counted from 0, it is the first to bring; none of a segment that is refused. Where real bytes
    /// are carried, the caller keeps these; [`Self::inbound_offset`] says where they stand in the payload.
    pub fn take_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) -> Range<u64> {
        let Body::Tcp(segment) = &packet.body else { return 0..0 };
        let before = self.life.state;
        if packet.returned {
            let ours = (packet.src, packet.dst) == (self.flow.local, self.flow.remote);
            if ours && before.is_synchronised() {
                self.output_due |= self.tx.on_returned(now, segment, sink);
            }
            return 0..0;
        }
        if packet.dst != self.flow.local {
            return 0..0;
        }
        if before == State::Listen {
            self.flow.remote = packet.src;
        } else if packet.src != self.flow.remote {
            return 0..0;
        }
        self.output_due = true;
        let mut arrival = Arrival {
            now,
            flow: self.flow,
            config: &self.config,
            state: before,
            mark: packet.ecn,
            segment,
            life: &mut self.life,
            tx: &mut self.tx,
            rx: &mut self.rx,
            sink,
            reply: &mut self.reply,
        };
        let kept = arrival.take();
        if before != State::Listen && self.life.state == State::Listen {
            self.listen_again();
        }
        self.follow_end();
        kept
    }

    #[cold]
    fn listen_again(&mut self) {
        *self = Self::listen(self.config.clone(), self.flow.local, self.tx.seq(0));
    }

    /// A router on the path to `remote` has it that a segment of ours that began at `seq` was too large, and
    /// that `mss` bytes of payload without options would not be: segments become smaller, and what is out
    /// leaves again, which is no sign of congestion (RFC 8201 section 5.4). A `seq` that is not out belongs to a
    /// forged report (RFC 5927 section 4.1).
    pub fn on_too_big(&mut self, now: Time, seq: Seq, mss: u16) {
        self.output_due |= self.tx.on_too_big(now, seq, mss.into());
    }
}

impl Endpoint for Connection {
    type Arrival<'a> = Packet;
    type Departure<'a> = Packet;
    type AppEvent = AppEvent;

    /// As [`Connection::take_packet`], where no bytes exist.
    fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) {
        self.take_packet(now, packet, sink);
    }

    fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        self.rx.handle_timeout(now, self.tx.rto());
        self.output_due |= self.rx.is_ack_due();
        match self.tx.on_timeout(now, self.life.limit(), sink) {
            Expiry::Nothing => {}
            Expiry::Output => self.output_due = true,
            Expiry::GiveUp => self.life.give_up(),
        }
        self.output_due |= self.life.on_timeout(now, self.rx.contact(), self.tx.in_flight() > 0);
        self.follow_end();
    }

    fn poll_transmit(&mut self, now: Time, sink: &mut Sink) -> Option<Packet> {
        if self.reply.is_none() && !self.output_due {
            return None;
        }
        self.next_packet(now, sink)
    }

    fn poll_timeout(&self) -> Option<Time> {
        earlier(self.tx.poll_timeout(), earlier(self.rx.poll_timeout(), self.life.poll_timeout()))
    }

    fn poll_event(&mut self) -> Option<AppEvent> {
        self.life.poll_event()
    }

    fn reseed(&mut self, seed: u64) {
        self.tx.reseed(seed);
    }
}

/// What can be asked.
impl Connection {
    /// The state.
    pub const fn state(&self) -> State {
        self.life.state
    }

    /// Both ends.
    pub const fn flow(&self) -> FlowKey {
        self.flow
    }

    /// Bytes received in order and not read.
    pub fn unread(&self) -> u64 {
        self.rx.unread()
    }

    /// Bytes read so far.
    pub const fn total_read(&self) -> u64 {
        self.rx.total_read()
    }

    /// Bytes written so far.
    pub const fn total_written(&self) -> u64 {
        self.tx.total_written()
    }

    /// Bytes that a write would take now.
    pub fn room(&self) -> u64 {
        self.tx.room()
    }

    /// Bytes written that the peer acknowledged: the caller, where it keeps bytes, need keep these no more.
    pub fn acknowledged(&self) -> u64 {
        self.tx.acknowledged()
    }

    /// What both ends agreed on with their SYNs.
    pub const fn terms(&self) -> &Terms {
        self.rx.terms()
    }

    /// Bytes written and not sent for the first time.
    pub fn unsent(&self) -> u64 {
        self.tx.unsent()
    }

    /// Sequence space sent and not acknowledged, bytes.
    pub const fn in_flight(&self) -> u64 {
        self.tx.in_flight()
    }

    /// Smoothed round trip.
    pub fn srtt(&self) -> Option<Span> {
        self.tx.srtt()
    }

    /// Payload of a full segment now, bytes.
    pub const fn mss(&self) -> u32 {
        self.tx.mss()
    }

    /// Whether Nagle's algorithm or CORK holds data back now.
    pub const fn is_holding(&self) -> bool {
        self.tx.is_holding()
    }

    /// The sequence number that the peer should use next.
    pub const fn next_expected(&self) -> Seq {
        self.rx.next_expected()
    }

    /// The sequence numbers of the oldest byte unacknowledged and of the next to send.
    pub const fn send_sequence(&self) -> (Seq, Seq) {
        (self.tx.oldest(), self.tx.next_to_send())
    }

    /// State for reports.
    pub fn snapshot(&self) -> Snapshot {
        let congestion = self.tx.congestion();
        Snapshot {
            state: self.state(),
            cwnd: congestion.cwnd,
            ssthresh: congestion.ssthresh,
            in_flight: self.in_flight(),
            unsent: self.unsent(),
            peer_window: self.tx.peer_window(),
            unread: self.unread(),
            srtt: self.srtt(),
            rto: self.tx.rto(),
            recovering: self.tx.is_recovering(),
        }
    }

    /// The place of a segment's first payload byte in the stream that we read, counted from 0; negative
    /// where it is older than that, or a SYN.
    pub const fn inbound_offset(&self, segment: &TcpRepr) -> i64 {
        self.rx.offset(segment.seq) - 1
    }

    /// Which bytes of the stream we write a segment of ours carries, counted from 0.
    pub fn outbound_range(&self, segment: &TcpRepr) -> Range<u64> {
        let start = self.tx.offset(segment.seq).max(1) as u64 - 1;
        start..start + u64::from(segment.payload_len)
    }

    /// What must hold of the state between any two calls; the contract's tests ask.
    pub fn check(&self) -> Result<(), &'static str> {
        let state = self.state();
        self.tx.check(state.is_synchronised(), state.may_send() && !self.output_due)?;
        self.rx.check()
    }
}
