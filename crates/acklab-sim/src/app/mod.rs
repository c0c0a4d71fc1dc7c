//! Applications: what writes into a connection and reads from it.
//!
//! An application drives one end of one connection. It is sans-IO like the transport below it: it
//! is told of events and deadlines, acts through [`Io`], and says when it wants to be called next.
//! It never sees packets, and time passes only in its arguments. Which transport carries it does not
//! matter: it sees a [`Stream`]. Built-in models are here, one per file; anything else that implements
//! [`App`] runs the same way.

mod bulk;
mod reader;
mod request;
mod source;
mod stream;

use acklab_core::event::{EventKind, FlowKey, Sink};
use acklab_core::time::Time;
use acklab_tcp::{AppEvent, Connection};

pub use bulk::Bulk;
pub use reader::{Reader, ReaderModel, TRANSFER_MS};
pub use request::{EXCHANGE_MS, ReplyingServer, RequestClient, RequestPattern};
pub use source::{MessageSource, Schedule};
pub use stream::Source;

/// One end's application.
pub trait App: Send {
    /// The transport has something to say.
    fn on_event(&mut self, event: AppEvent, io: &mut Io<'_>);

    /// Acts on the deadline that is due; does nothing where none is.
    fn handle_timeout(&mut self, io: &mut Io<'_>);

    /// When [`App::handle_timeout`] must be called next.
    fn poll_timeout(&self) -> Option<Time>;

    /// From now on, whatever it draws comes from its streams under `seed`: a run that branches. Those
    /// that draw nothing ignore it.
    fn reseed(&mut self, _seed: u64) {}
}

/// One end of a connection as an application sees it: bytes in order, counted and not held.
pub trait Stream {
    /// Writes up to `bytes` bytes, which are one message; returns how many were taken. Where that is
    /// fewer, [`AppEvent::Writable`] follows, and the rest, which the next write brings, belongs to the
    /// same message.
    fn write(&mut self, now: Time, bytes: u32, sink: &mut Sink) -> u32;

    /// Reads up to `max` bytes; returns how many.
    fn read(&mut self, now: Time, max: u32) -> u32;

    /// Ends this direction after what was written.
    fn close(&mut self, now: Time);

    /// This end of the connection.
    fn flow(&self) -> FlowKey;

    /// Bytes read so far.
    fn total_read(&self) -> u64;
}

impl Stream for Connection {
    fn write(&mut self, now: Time, bytes: u32, _sink: &mut Sink) -> u32 {
        Self::write(self, now, bytes)
    }

    fn read(&mut self, now: Time, max: u32) -> u32 {
        Self::read(self, now, max)
    }

    fn close(&mut self, now: Time) {
        Self::close(self, now);
    }

    fn flow(&self) -> FlowKey {
        Self::flow(self)
    }

    fn total_read(&self) -> u64 {
        Self::total_read(self)
    }
}

impl Stream for acklab_host::connection::Connection {
    fn write(&mut self, now: Time, bytes: u32, sink: &mut Sink) -> u32 {
        Self::write(self, now, bytes, sink)
    }

    fn read(&mut self, now: Time, max: u32) -> u32 {
        Self::read(self, now, max)
    }

    fn close(&mut self, now: Time) {
        Self::close(self, now);
    }

    fn flow(&self) -> FlowKey {
        Self::flow(self)
    }

    fn total_read(&self) -> u64 {
        Self::total_read(self)
    }
}

/// What an application may do, now.
pub struct Io<'a> {
    /// The time.
    pub now: Time,
    /// The application's end of the connection.
    pub stream: &'a mut dyn Stream,
    /// Where events are recorded.
    pub sink: &'a mut Sink,
}

impl Io<'_> {
    /// [`Stream::write`], now.
    pub fn write(&mut self, bytes: u32) -> u32 {
        self.stream.write(self.now, bytes, self.sink)
    }

    /// [`Stream::read`], now.
    pub fn read(&mut self, max: u32) -> u32 {
        self.stream.read(self.now, max)
    }

    /// [`Stream::close`], now.
    pub fn close(&mut self) {
        self.stream.close(self.now);
    }

    /// Records an event of the application's own.
    pub fn tell(&mut self, kind: EventKind) {
        self.sink.record(self.now, kind);
    }

    /// This end of the connection.
    pub fn flow(&self) -> FlowKey {
        self.stream.flow()
    }
}
