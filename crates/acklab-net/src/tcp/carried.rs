//! The connection under a stream: acklab's of any system, or the host's that goes segment by segment as Linux 6.18.

use std::ops::Range;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::packet::{Addr, Packet};
use acklab_core::segment::TcpRepr;
use acklab_core::seq::Seq;
use acklab_core::time::Time;
use acklab_host::config::setup;
use acklab_host::connection::Connection as Segments;
use acklab_tcp::{AppEvent, Config, Connection, Snapshot, Stack, State, Terms};

#[derive(Debug)]
pub(super) enum Carried {
    Stream(Box<Connection>),
    Segments(Box<Segments>),
}

/// Leaves a verb to whichever it is.
macro_rules! each {
    ($carried:expr, $one:ident => $call:expr) => {
        match $carried {
            Carried::Stream($one) => $call,
            Carried::Segments($one) => $call,
        }
    };
}

impl Carried {
    /// Opens towards `peer`.
    pub(super) fn connect(now: Time, config: &Config, us: Addr, peer: Addr, isn: Seq) -> Self {
        if let Some(setup) = host(config) {
            return Self::Segments(Box::new(Segments::connect(now, &setup, us, peer, isn)));
        }
        Self::Stream(Box::new(Connection::connect(now, config.clone(), us, peer, isn)))
    }

    /// Answers a SYN.
    pub(super) fn accept(
        now: Time,
        config: &Config,
        [us, peer]: [Addr; 2],
        isn: Seq,
        syn: &Packet,
        sink: &mut Sink,
    ) -> Self {
        if let Some(setup) = host(config) {
            let mut connection = Segments::listen(&setup, us, isn);
            connection.handle_packet(now, *syn, sink);
            return Self::Segments(Box::new(connection));
        }
        Self::Stream(Box::new(Connection::accept(now, config.clone(), us, peer, isn, syn)))
    }

    pub(super) fn write(&mut self, now: Time, bytes: u32, sink: &mut Sink) -> u32 {
        match self {
            Self::Stream(one) => one.write(now, bytes),
            Self::Segments(one) => one.write(now, bytes, sink),
        }
    }

    pub(super) fn read(&mut self, now: Time, max: u32) -> u32 {
        each!(self, one => one.read(now, max))
    }

    pub(super) fn close(&mut self, now: Time) {
        each!(self, one => one.close(now));
    }

    pub(super) fn abort(&mut self, now: Time) {
        each!(self, one => one.abort(now));
    }

    pub(super) fn take_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) -> Range<u64> {
        each!(self, one => one.take_packet(now, packet, sink))
    }

    pub(super) fn on_too_big(&mut self, now: Time, seq: Seq, mss: u16) {
        each!(self, one => one.on_too_big(now, seq, mss));
    }

    pub(super) fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        each!(self, one => one.handle_timeout(now, sink));
    }

    pub(super) fn poll_transmit(&mut self, now: Time, sink: &mut Sink) -> Option<Packet> {
        each!(self, one => one.poll_transmit(now, sink))
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        each!(self, one => one.poll_timeout())
    }

    pub(super) fn poll_event(&mut self) -> Option<AppEvent> {
        each!(self, one => one.poll_event())
    }

    pub(super) fn state(&self) -> State {
        each!(self, one => one.state())
    }

    pub(super) fn room(&self) -> u64 {
        each!(self, one => one.room())
    }

    pub(super) fn unread(&self) -> u64 {
        each!(self, one => one.unread())
    }

    pub(super) fn total_read(&self) -> u64 {
        each!(self, one => one.total_read())
    }

    pub(super) fn acknowledged(&self) -> u64 {
        each!(self, one => one.acknowledged())
    }

    pub(super) fn inbound_offset(&self, segment: &TcpRepr) -> i64 {
        each!(self, one => one.inbound_offset(segment))
    }

    pub(super) fn outbound_range(&self, segment: &TcpRepr) -> Range<u64> {
        each!(self, one => one.outbound_range(segment))
    }

    pub(super) fn send_sequence(&self) -> (Seq, Seq) {
        each!(self, one => one.send_sequence())
    }

    pub(super) fn terms(&self) -> Terms {
        match self {
            Self::Stream(one) => *one.terms(),
            Self::Segments(one) => one.terms(),
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        each!(self, one => one.snapshot())
    }

    /// Payload of a full segment now, bytes.
    pub(super) fn mss(&self) -> u32 {
        match self {
            Self::Stream(one) => one.mss(),
            Self::Segments(one) => one.tcp().current_mss(),
        }
    }
}

/// What the host is set up with, where the stack is its.
fn host(config: &Config) -> Option<acklab_host::connection::Setup> {
    (config.stack == Stack::Segments)
        .then(|| setup(config).unwrap_or_else(|conflict| panic!("{conflict:?}")))
}
