//! One end of a connection in the world: its transport and its application as one component.
//!
//! Both answer to deadlines; the world sees one, the earlier. After anything happens the transport
//! is drained of packets and events and the application acts on the events, until neither has
//! anything more to do at this instant.

use acklab_core::endpoint::Endpoint;
use acklab_core::event::Sink;
use acklab_core::packet::{NodeId, Packet};
use acklab_core::time::Time;
use acklab_tcp::Connection;

use crate::app::{App, Io};

/// One end of a connection.
pub(crate) struct Socket {
    pub(crate) node: NodeId,
    connection: Connection,
    app: Box<dyn App>,
}

impl Socket {
    pub(crate) fn new(node: NodeId, connection: Connection, app: Box<dyn App>) -> Self {
        Self { node, connection, app }
    }

    pub(crate) const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Takes a packet.
    #[inline]
    pub(crate) fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) {
        self.connection.handle_packet(now, packet, sink);
        self.tell_app(now, sink);
    }

    /// Acts on whatever is due; returns whether anything was.
    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Time, sink: &mut Sink) -> bool {
        let due = |deadline: Option<Time>| deadline.is_some_and(|at| at <= now);
        let (transport, app) = (due(self.connection.poll_timeout()), due(self.app.poll_timeout()));
        if transport {
            self.connection.handle_timeout(now, sink);
            self.tell_app(now, sink);
        }
        if app {
            let mut io = Io { now, stream: &mut self.connection, sink };
            self.app.handle_timeout(&mut io);
        }
        transport || app
    }

    /// The next packet that leaves at `now`; the application acts on events in between.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Time, sink: &mut Sink) -> Option<Packet> {
        loop {
            if let Some(packet) = self.connection.poll_transmit(now, sink) {
                return Some(packet);
            }
            if !self.tell_app(now, sink) {
                return None;
            }
        }
    }

    /// Both draw from streams under another seed from now on.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.connection.reseed(seed);
        self.app.reseed(seed);
    }

    /// The earlier of the two deadlines.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        match (self.connection.poll_timeout(), self.app.poll_timeout()) {
            (Some(transport), Some(app)) => Some(transport.min(app)),
            (transport, app) => transport.or(app),
        }
    }

    /// Hands the transport's events to the application; returns whether there were any.
    fn tell_app(&mut self, now: Time, sink: &mut Sink) -> bool {
        let mut told = false;
        while let Some(event) = self.connection.poll_event() {
            told = true;
            let mut io = Io { now, stream: &mut self.connection, sink };
            self.app.on_event(event, &mut io);
        }
        told
    }
}
