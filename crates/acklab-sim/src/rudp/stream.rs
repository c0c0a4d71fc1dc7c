//! Applications over reliable UDP: an [`App`] at each end of a connection, as over TCP.
//!
//! Each end writes on a one-way stream that it opens, and reads the peer's. What is written at once is a
//! message; the bytes are zeros, for what arrives is compared where content is tested. An end that has
//! closed, whose stream was delivered and whose peer has closed ends the connection.

use acklab_core::endpoint::Endpoint as _;
use acklab_core::event::{EventKind, FlowKey, Sink};
use acklab_core::messages::Messages;
use acklab_core::notices::AppEvent;
use acklab_core::packet::Addr;
use acklab_core::rng::Rng;
use acklab_core::time::Time;
use acklab_rudp::protect::PlainGreeter;
use acklab_rudp::{
    Code, Config, Connection, ContentEvent, Event, Handle, Limits, Listener, PathAddrs,
};

use super::host::{Host, User};
use crate::app::{App, Io, Stream};

/// One end of a connection as a scenario describes it.
pub struct End {
    /// Where.
    pub addr: Addr,
    /// How its reliable UDP is set up.
    pub config: Config,
    /// What writes and reads there.
    pub app: Box<dyn App>,
}

/// The hosts of a client, which connects at `at`, and of its server. They draw from streams under `seed`
/// that are named by their addresses.
pub fn pair(
    at: Time,
    seed: u64,
    client: End,
    server: End,
) -> (Host<Connection, AppUser>, Host<Listener, AppUser>) {
    let stream = move |Addr { node, port }, count| {
        Rng::named(seed, &format!("rudp/{}/{port}/{count}", node.0))
    };
    let addrs = PathAddrs { local: client.addr.into(), remote: server.addr.into() };
    let entropy = Box::new(stream(client.addr, 0));
    let greeter = Box::new(PlainGreeter);
    let connection = Connection::connect(at, client.config, entropy, greeter, &[addrs]);
    let mut connections = 0;
    let entropy = move || -> Box<dyn acklab_rudp::protect::Entropy> {
        connections += 1;
        Box::new(stream(server.addr, connections))
    };
    let greeter = Box::new(PlainGreeter);
    let listener = Listener::new(Time::ZERO, server.config, entropy, greeter, Limits::default());
    let user = |local, remote, app| AppUser::new(FlowKey { local, remote }, app);
    (
        Host::new(connection, user(client.addr, server.addr, client.app)),
        Host::new(listener, user(server.addr, client.addr, server.app)),
    )
}

/// An application as the user of a connection, or of the first that a listener opens.
pub struct AppUser {
    app: Box<dyn App>,
    line: Line,
    handle: Option<Handle>,
}

/// The application's two streams.
struct Line {
    flow: FlowKey,
    writing: Option<u64>,
    reading: Option<u64>,
    /// Arrived and not read.
    unread: u64,
    total_read: u64,
    messages: Messages,
    end: Ends,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct Ends {
    /// The application has closed, and the peer is to hear it.
    closed: bool,
    told_peer: bool,
    /// All that was written arrived.
    delivered: bool,
    /// The peer has closed, and the application is to hear it.
    peer_closed: bool,
    told_app: bool,
}

impl AppUser {
    fn new(flow: FlowKey, app: Box<dyn App>) -> Self {
        let line = Line {
            flow,
            writing: None,
            reading: None,
            unread: 0,
            total_read: 0,
            messages: Messages::default(),
            end: Ends::default(),
        };
        Self { app, line, handle: None }
    }

    /// Bytes that the application has read.
    pub const fn total_read(&self) -> u64 {
        self.line.total_read
    }

    fn on_event(&mut self, now: Time, event: &Event, connection: &mut Connection, sink: &mut Sink) {
        let line = &mut self.line;
        let told = match event {
            Event::Opened { .. } => AppEvent::Connected,
            Event::Content(ContentEvent::Readable { stream }) => {
                line.reading.get_or_insert(*stream);
                AppEvent::Readable
            }
            Event::Content(ContentEvent::Writable { .. }) => AppEvent::Writable,
            Event::Content(ContentEvent::StreamDelivered { .. }) => {
                line.end.delivered = true;
                return;
            }
            Event::Closed { code: Code::Done, .. } => AppEvent::Closed,
            Event::Closed { code: Code::Idle, .. } => AppEvent::TimedOut,
            Event::Closed { .. } => AppEvent::Reset,
            Event::Content(_) | Event::Path { .. } | Event::Address(_) => return,
        };
        self.tell(now, told, connection, sink);
    }

    fn tell(&mut self, now: Time, event: AppEvent, connection: &mut Connection, sink: &mut Sink) {
        let mut stream = Bound { line: &mut self.line, connection };
        self.app.on_event(event, &mut Io { now, stream: &mut stream, sink });
    }

    /// The application's own deadline, the ends of both directions, and what has left.
    fn settle(&mut self, now: Time, connection: &mut Connection, sink: &mut Sink) {
        if self.app.poll_timeout().is_some_and(|due| due <= now) {
            let mut stream = Bound { line: &mut self.line, connection };
            self.app.handle_timeout(&mut Io { now, stream: &mut stream, sink });
        }
        if self.line.end.peer_closed && !std::mem::replace(&mut self.line.end.told_app, true) {
            self.tell(now, AppEvent::PeerClosed, connection, sink);
        }
        let Line { flow, writing, messages, end, .. } = &mut self.line;
        let flow = *flow;
        if let Some(stream) = *writing {
            let sent = connection.content().sent(stream).unwrap_or(u64::MAX);
            while let Some((id, written_at)) = messages.next_sent(sent) {
                sink.record(now, EventKind::MessageSent { flow, id, written_at });
            }
        }
        if end.closed && end.delivered && end.peer_closed {
            connection.close(now, Code::Done, "");
        } else if end.closed && !end.told_peer && connection.is_open() {
            let mut stream = Bound { line: &mut self.line, connection };
            if let Some(stream) = stream.own(now) {
                connection.content().finish(stream);
                self.line.end.told_peer = true;
            }
        }
    }
}

impl User<Connection> for AppUser {
    fn on_progress(&mut self, now: Time, connection: &mut Connection, sink: &mut Sink) {
        while let Some(event) = connection.poll_event() {
            self.on_event(now, &event, connection, sink);
        }
        self.settle(now, connection, sink);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.app.poll_timeout()
    }

    fn reseed(&mut self, seed: u64) {
        self.app.reseed(seed);
    }
}

impl User<Listener> for AppUser {
    fn on_progress(&mut self, now: Time, listener: &mut Listener, sink: &mut Sink) {
        while let Some((handle, event)) = listener.poll_event() {
            if *self.handle.get_or_insert(handle) == handle
                && let Some(connection) = listener.connection(handle)
            {
                self.on_event(now, &event, connection, sink);
            }
        }
        if let Some(connection) = self.handle.and_then(|handle| listener.connection(handle)) {
            self.settle(now, connection, sink);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.app.poll_timeout().filter(|_| self.handle.is_some())
    }

    fn reseed(&mut self, seed: u64) {
        self.app.reseed(seed);
    }
}

/// The streams with their connection: what the application sees.
struct Bound<'a> {
    line: &'a mut Line,
    connection: &'a mut Connection,
}

impl Bound<'_> {
    /// The stream that this end writes on, opened when it is first needed.
    fn own(&mut self, now: Time) -> Option<u64> {
        if self.line.writing.is_none() && self.connection.is_open() {
            self.line.writing = self.connection.content().open_stream(now, false);
        }
        self.line.writing
    }
}

impl Stream for Bound<'_> {
    fn write(&mut self, now: Time, bytes: u32, sink: &mut Sink) -> u32 {
        let Some(stream) = self.own(now).filter(|_| !self.line.end.closed) else { return 0 };
        let content = self.connection.content();
        let taken = content.room(stream).min(u64::from(bytes)) as u32;
        if taken > 0 {
            content.write(stream, vec![0; taken as usize]);
        }
        let flow = self.line.flow;
        if let Some((id, bytes)) = self.line.messages.on_write(now, bytes, taken) {
            sink.record(now, EventKind::MessageWritten { flow, id, bytes });
        }
        taken
    }

    fn read(&mut self, now: Time, max: u32) -> u32 {
        let Some(stream) = self.line.reading else { return 0 };
        while self.line.unread < u64::from(max)
            && let Some(block) = self.connection.content().read(now, stream)
        {
            self.line.unread += block.len() as u64;
            self.line.end.peer_closed |= block.fin;
        }
        let read = self.line.unread.min(u64::from(max));
        self.line.unread -= read;
        self.line.total_read += read;
        read as u32
    }

    fn close(&mut self, _now: Time) {
        self.line.end.closed = true;
    }

    fn flow(&self) -> FlowKey {
        self.line.flow
    }

    fn total_read(&self) -> u64 {
        self.line.total_read
    }
}
