//! One end of a connection in the world: its transport and its application as one component.
//!
//! Both answer to deadlines; the world sees one, the earlier. After anything happens the transport
//! is drained of packets and events and the application acts on the events, until neither has
//! anything more to do at this instant. Which of the two implementations of TCP it is ([`Stack`](acklab_tcp::Stack)),
//! neither the application nor the world can tell.

use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::packet::{NodeId, Packet};
use acklab_core::time::Time;
use acklab_tcp::{AppEvent, Connection};

use crate::app::{App, Io, Stream};

/// One end of a connection.
pub(crate) struct Socket {
    pub(crate) node: NodeId,
    transport: Transport,
    app: Box<dyn App>,
}

/// Its TCP.
#[expect(clippy::large_enum_variant, reason = "most are the large one, and one step nearer so")]
pub(crate) enum Transport {
    Stream(Connection),
    Segments(Box<acklab_host::connection::Connection>),
}

/// The same of either.
macro_rules! either {
    ($transport:expr, $connection:ident => $call:expr) => {
        match $transport {
            Transport::Stream($connection) => $call,
            Transport::Segments($connection) => $call,
        }
    };
}

impl Transport {
    #[inline]
    fn poll_timeout(&self) -> Option<Time> {
        either!(self, connection => connection.poll_timeout())
    }

    #[inline]
    fn poll_event(&mut self) -> Option<AppEvent> {
        either!(self, connection => connection.poll_event())
    }

    fn stream(&mut self) -> &mut dyn Stream {
        match self {
            Self::Stream(connection) => connection,
            Self::Segments(connection) => &mut **connection,
        }
    }
}

impl Socket {
    pub(crate) fn new(node: NodeId, transport: Transport, app: Box<dyn App>) -> Self {
        Self { node, transport, app }
    }

    /// The connection, where acklab-tcp carries it.
    pub(crate) const fn connection(&self) -> Option<&Connection> {
        match &self.transport {
            Transport::Stream(connection) => Some(connection),
            Transport::Segments(_) => None,
        }
    }

    pub(crate) fn stream(&self) -> &dyn Stream {
        match &self.transport {
            Transport::Stream(connection) => connection,
            Transport::Segments(connection) => &**connection,
        }
    }

    /// Takes a packet.
    #[inline]
    pub(crate) fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) {
        either!(&mut self.transport, connection => connection.handle_packet(now, packet, sink));
        self.tell_app(now, sink);
    }

    /// Acts on whatever is due; returns whether anything was.
    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Time, sink: &mut Sink) -> bool {
        let due = |deadline: Option<Time>| deadline.is_some_and(|at| at <= now);
        let (transport, app) = (due(self.transport.poll_timeout()), due(self.app.poll_timeout()));
        if transport {
            either!(&mut self.transport, connection => connection.handle_timeout(now, sink));
            self.tell_app(now, sink);
        }
        if app {
            let mut io = Io { now, stream: self.transport.stream(), sink };
            self.app.handle_timeout(&mut io);
        }
        transport || app
    }

    /// The next packet that leaves at `now`; the application acts on events in between.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Time, sink: &mut Sink) -> Option<Packet> {
        loop {
            let packet =
                either!(&mut self.transport, connection => connection.poll_transmit(now, sink));
            if packet.is_some() {
                return packet;
            }
            if !self.tell_app(now, sink) {
                return None;
            }
        }
    }

    /// Both draw from streams under another seed from now on.
    pub(crate) fn reseed(&mut self, seed: u64) {
        either!(&mut self.transport, connection => connection.reseed(seed));
        self.app.reseed(seed);
    }

    /// The earlier of the two deadlines.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        match (self.transport.poll_timeout(), self.app.poll_timeout()) {
            (Some(transport), Some(app)) => Some(transport.min(app)),
            (transport, app) => transport.or(app),
        }
    }

    /// Hands the transport's events to the application; returns whether there were any.
    fn tell_app(&mut self, now: Time, sink: &mut Sink) -> bool {
        let mut told = false;
        while let Some(event) = self.transport.poll_event() {
            told = true;
            let mut io = Io { now, stream: self.transport.stream(), sink };
            self.app.on_event(event, &mut io);
        }
        told
    }
}
