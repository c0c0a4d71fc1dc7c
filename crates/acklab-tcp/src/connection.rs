//! The connection block, the application's verbs and the five verbs of the contract.
//!
//! After any call the caller drains `poll_transmit`, then `poll_event`, then reads `poll_timeout`
//! once; a write or read by itself sends nothing. RFC 9293 section 3.9.1 names the application's
//! calls: OPEN is [`Connection::connect`], [`Connection::listen`] and [`Connection::accept`], SEND
//! is [`Connection::write`], RECEIVE [`Connection::read`], CLOSE and ABORT have their names.

use super::acking::{Acking, Surroundings};
use super::config::Config;
use super::ecn::EcnState;
use super::flight::Flight;
use super::nagle::{Holding, Nagle};
use super::news::Account;
use super::options::Terms;
use super::rate::RateSampler;
use super::receive_buffer::ReceiveBuffer;
use super::recovery::Recovery;
use super::returned::Returned;
use super::rto::RtoEstimator;
use super::send_buffer::SendBuffer;
use super::state::{Cause, State};
use super::timers::{Timer, Timers};
use super::usage::Usage;
use acklab_core::ack::AckPolicy;
use acklab_core::cc::{CongestionControl as _, Controller, Start};
use acklab_core::endpoint::Endpoint;
use acklab_core::event::{AckReason, FlowKey, Sink};
use acklab_core::pacing::Pacer;
use acklab_core::packet::{Addr, Packet};
use acklab_core::segment::TcpRepr;
use acklab_core::seq::Seq;
use acklab_core::time::Time;

/// What the application should know. Each is told once until it is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AppEvent {
    /// The handshake is complete.
    Connected,
    /// Bytes arrived in order.
    Readable,
    /// There is room again after a write that found too little.
    Writable,
    /// The peer will send no more.
    PeerClosed,
    /// The connection ended in order.
    Closed,
    /// The peer reset the connection.
    Reset,
    /// The peer did not answer any more.
    TimedOut,
}

impl AppEvent {
    const ALL: [Self; 7] = [
        Self::Connected,
        Self::Readable,
        Self::Writable,
        Self::PeerClosed,
        Self::Closed,
        Self::Reset,
        Self::TimedOut,
    ];
}

/// A set of events, told in the order of the enum.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Notices(u8);

impl Notices {
    pub(super) fn add(&mut self, event: AppEvent) {
        self.0 |= 1 << event as u8;
    }

    fn pop(&mut self) -> Option<AppEvent> {
        if self.0 == 0 {
            return None;
        }
        let lowest = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        AppEvent::ALL.get(lowest).copied()
    }
}

/// Send sequence variables (RFC 9293 section 3.3.1) as offsets from the initial sequence number.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendSpace {
    pub(super) isn: Seq,
    /// Oldest unacknowledged.
    pub(super) una: u64,
    /// Next to send for the first time.
    pub(super) nxt: u64,
    /// Highest ever sent; above `nxt` only after a window probe was taken back.
    pub(super) max: u64,
    /// Window the peer announced, bytes.
    pub(super) wnd: u64,
    /// Largest window it ever announced.
    pub(super) max_wnd: u64,
    /// Sequence and acknowledgment number of the segment that last updated the window.
    pub(super) wl1: Seq,
    pub(super) wl2: u64,
    /// The application closed: a FIN follows the last byte.
    pub(super) fin: bool,
}

impl SendSpace {
    pub(super) const fn seq(&self, offset: u64) -> Seq {
        Seq(self.isn.0.wrapping_add(offset as u32))
    }

    /// The offset of `seq`, which lies near the oldest unacknowledged.
    pub(super) const fn offset(&self, seq: Seq) -> i64 {
        self.una as i64 + seq.distance(self.seq(self.una)) as i64
    }
}

/// One end of a TCP connection.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent pending actions, each with its own cause"
)]
#[derive(Debug)]
pub struct Connection {
    pub(super) config: Config,
    pub(super) state: State,
    pub(super) flow: FlowKey,
    /// It began in LISTEN.
    pub(super) passive: bool,
    pub(super) terms: Terms,
    pub(super) snd: SendSpace,
    pub(super) send_buffer: SendBuffer,
    pub(super) rcv: ReceiveBuffer,
    pub(super) flight: Flight,
    pub(super) rtt: RtoEstimator,
    pub(super) recovery: Recovery,
    pub(super) cc: Controller,
    pub(super) account: Account,
    pub(super) ecn: EcnState,
    pub(super) returned: Returned,
    pub(super) pacer: Pacer,
    /// Only for a congestion control that asks for it.
    pub(super) rate: Option<Box<RateSampler>>,
    pub(super) usage: Usage,
    pub(super) last_sent: Option<Time>,
    pub(super) last_heard: Time,
    pub(super) acking: Acking,
    pub(super) holding: Holding,
    pub(super) timers: Timers,
    /// Expiries of the retransmission timer since the last progress.
    pub(super) attempts: u32,
    /// Window or keep-alive probes since the peer was last heard.
    pub(super) probes: u32,
    /// Doublings of the persist timer (RFC 9293 section 3.8.6.1).
    pub(super) persist_backoffs: u32,
    /// The peer's window, not ours, keeps data from leaving.
    pub(super) window_blocked: bool,
    /// A probe of one byte must leave, window or not.
    pub(super) probe_due: bool,
    pub(super) keep_alive_due: bool,
    pub(super) syn_due: bool,
    pub(super) reply: Option<TcpRepr>,
    /// Something changed since `poll_transmit` last found nothing.
    pub(super) output_due: bool,
    pub(super) notices: Notices,
}

/// The application's verbs.
impl Connection {
    /// Opens towards `remote`; the SYN leaves with the next `poll_transmit`.
    pub fn connect(now: Time, config: Config, local: Addr, remote: Addr, isn: Seq) -> Self {
        let mut connection = Self::new(now, config, FlowKey { local, remote }, isn);
        connection.go(Cause::ActiveOpen);
        connection.syn_due = true;
        connection.output_due = true;
        connection
    }

    /// Waits for a SYN from anyone, which `handle_packet` takes.
    pub fn listen(config: Config, local: Addr, isn: Seq) -> Self {
        let flow = FlowKey { local, remote: Addr::default() };
        let mut connection = Self::new(Time::ZERO, config, flow, isn);
        connection.passive = true;
        connection.go(Cause::PassiveOpen);
        connection
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

    fn new(now: Time, config: Config, flow: FlowKey, isn: Seq) -> Self {
        let terms = Terms::new(&config);
        let start = Start {
            mss: terms.full_segment(0),
            initial_window: config.initial_window.bytes(terms.full_segment(0)),
            initial_ssthresh: config.initial_ssthresh.unwrap_or(u64::MAX),
            seed: u64::from(isn.0),
        };
        let cc = config.congestion.controller(&start);
        Self {
            state: State::Closed,
            flow,
            passive: false,
            terms,
            snd: SendSpace {
                isn,
                una: 0,
                nxt: 0,
                max: 0,
                wnd: 0,
                max_wnd: 0,
                wl1: Seq(0),
                wl2: 0,
                fin: false,
            },
            send_buffer: SendBuffer::new(config.send_buffer),
            rcv: ReceiveBuffer::new(config.receive_buffer),
            flight: Flight::new(config.cwnd_unit, terms.full_segment(0)),
            rtt: RtoEstimator::new(&config),
            recovery: Recovery::new(&config),
            account: Account::default(),
            ecn: EcnState::new(cc.ecn_feedback()),
            returned: Returned::default(),
            pacer: Pacer::default(),
            rate: None,
            cc,
            usage: Usage::default(),
            last_sent: None,
            last_heard: now,
            acking: Acking::new(config.ack.policy(config.ack_phase)),
            holding: Holding::new(config.nagle),
            timers: Timers::default(),
            attempts: 0,
            probes: 0,
            persist_backoffs: 0,
            window_blocked: false,
            probe_due: false,
            keep_alive_due: false,
            syn_due: false,
            reply: None,
            output_due: false,
            notices: Notices::default(),
            config,
        }
    }

    /// Writes a message of `bytes` bytes; returns how many were taken. Fewer where the send buffer is
    /// full: [`AppEvent::Writable`] follows, and the rest, which the next write brings, belongs to the
    /// same message. None where the state does not allow writing.
    pub fn write(&mut self, now: Time, bytes: u32) -> u32 {
        if !self.state.may_write() || self.snd.fin {
            return 0;
        }
        self.output_due = true;
        self.send_buffer.write(now, bytes, self.snd.una)
    }

    /// Reads up to `max` bytes; returns how many. An ACK that the read causes leaves with the next
    /// `poll_transmit`.
    pub fn read(&mut self, now: Time, max: u32) -> u32 {
        let copied = self.rcv.take(max);
        if copied == 0 || !self.state.may_receive() {
            return copied;
        }
        let at = self.surroundings();
        self.acking.on_read(now, copied, self.rcv.unread(), &at);
        if self.acking.due.is_none()
            && self.rcv.is_update_worthwhile(self.config.window_update, at.mss)
        {
            self.acking.demand(AckReason::Window);
        }
        self.output_due |= self.acking.due.is_some();
        copied
    }

    /// TCP_NODELAY: turns Nagle's algorithm off, or back to the configured variant (classic where
    /// that is off). Turning it off releases what is held, even under CORK (tcp(7)).
    pub fn set_nodelay(&mut self, _now: Time, on: bool) {
        self.holding.nagle = match (on, self.config.nagle) {
            (true, _) => Nagle::Off,
            (false, Nagle::Off) => Nagle::Classic,
            (false, variant) => variant,
        };
        if on {
            self.flush();
        }
    }

    /// TCP_CORK: holds small segments for at most 200 ms; clearing it releases them.
    pub fn set_cork(&mut self, _now: Time, on: bool) {
        self.holding.cork = on;
        if !on {
            self.timers.stop(Timer::Cork);
            self.flush();
        }
    }

    /// TCP_QUICKACK: a hint to the policy to stop delaying; `always` is the route's quickack metric,
    /// which lasts.
    pub fn set_quickack(&mut self, now: Time, on: bool, always: bool) {
        self.acking.policy.on_quickack(now, on, always);
        if on && self.acking.unacked(self.rcv.nxt) > 0 && self.state.is_synchronised() {
            self.acking.demand(AckReason::Policy);
            self.output_due = true;
        }
    }

    /// Closes our direction: a FIN follows what was written. Unread data may still be read.
    pub fn close(&mut self, _now: Time) {
        self.output_due = true;
        match self.state {
            State::Listen | State::SynSent => {
                self.go(Cause::Close);
                self.end(AppEvent::Closed);
            }
            State::SynReceived | State::Established | State::CloseWait => {
                self.snd.fin = true;
                // RFC 9293 section 3.10.4: in SYN-RECEIVED the state follows the handshake.
                if self.state != State::SynReceived {
                    self.go(Cause::Close);
                }
            }
            _ => {}
        }
    }

    /// Aborts: an RST leaves where the peer knows of us, and nothing more.
    pub fn abort(&mut self, _now: Time) {
        let peer_knows = self.state.is_synchronised() || self.state == State::SynReceived;
        let ended = self.state == State::Closed;
        if peer_knows && self.state != State::TimeWait {
            self.reply = Some(self.reset_of_ours());
        }
        if self.state != State::Closed {
            self.go(Cause::Reset);
        }
        if !ended {
            self.end(AppEvent::Closed);
        }
    }

    fn flush(&mut self) {
        self.holding.flush_below = self.send_buffer.end();
        self.output_due = true;
    }
}

/// What several parts of the machine need.
impl Connection {
    /// Moves along the transition table; a pair that is not in it leaves the state as it is, which
    /// the checks of RFC 9293 section 3.10.7 exclude.
    pub(super) fn go(&mut self, cause: Cause) {
        debug_assert!(self.state.next(cause).is_some(), "{} on {cause}", self.state);
        if let Some(next) = self.state.next(cause) {
            self.state = next;
        }
    }

    /// The connection is over: no timer, nothing to send but a pending reset.
    pub(super) fn end(&mut self, event: AppEvent) {
        self.notices.add(event);
        self.timers = Timers::default();
        self.acking.due = None;
        self.acking.policy.on_ack_sent(Time::ZERO);
        self.holding.since = None;
        self.send_buffer.clear();
        self.syn_due = false;
        self.probe_due = false;
        self.keep_alive_due = false;
    }

    pub(super) fn surroundings(&self) -> Surroundings {
        let mss = self.terms.full_segment(0);
        Surroundings {
            mss,
            nxt: self.rcv.nxt,
            window: self.rcv.window(),
            best_window: self.rcv.best_window(mss),
            not_shrunk: self.rcv.is_not_shrunk(self.acking.acked()),
            srtt: self.rtt.srtt(),
            rto: self.rtt.rto(),
        }
    }

    /// What is on the way, as the congestion window counts it.
    pub(super) fn pipe(&self) -> u64 {
        let pipe = self.recovery.pipe(self.snd.una, self.snd.nxt, &self.flight);
        if self.returned.is_empty() {
            return pipe;
        }
        let board = &self.recovery.board;
        self.returned.correct(pipe, &self.flight, |offset| {
            self.recovery.is_in_pipe(offset, &self.flight) || board.holds(offset, offset + 1)
        })
    }

    /// What was sent and not acknowledged (RFC 5681's FlightSize), as the congestion window counts it.
    pub(super) fn flight_size(&self) -> u64 {
        self.flight.weigh_all(self.snd.una, self.snd.nxt)
    }
}

impl Endpoint for Connection {
    type Arrival<'a> = Packet;
    type Departure<'a> = Packet;
    type AppEvent = AppEvent;

    fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) {
        self.on_packet(now, &packet, sink);
    }

    fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        self.on_timeout(now, sink);
    }

    fn poll_transmit(&mut self, now: Time, sink: &mut Sink) -> Option<Packet> {
        if let Some(reply) = self.reply.take() {
            self.tell_segment(now, &reply, false, sink);
            return Some(self.packet(reply));
        }
        if !self.output_due {
            return None;
        }
        self.holding.pass_unacked.get_or_insert(self.snd.max > self.snd.una);
        let packet = self.next_packet(now, sink);
        if packet.is_none() {
            self.output_due = false;
            self.holding.pass_unacked = None;
            self.settle(now);
        }
        packet
    }

    fn poll_timeout(&self) -> Option<Time> {
        match (self.timers.next(), self.acking.policy.poll_timeout()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn poll_event(&mut self) -> Option<AppEvent> {
        self.notices.pop()
    }
}
