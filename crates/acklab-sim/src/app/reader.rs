//! [`Reader`]: when a receiving application reads, since some receivers acknowledge on reading.
//!
//! Linux answers a read with an ACK outside "pingpong" mode (tcp_cleanup_rbuf), so a sink that
//! reads promptly is acknowledged promptly, and one that is busy delays ACKs and windows alike.

use std::fmt;

use acklab_core::event::EventKind;
use acklab_core::packet::NodeId;
use acklab_core::time::{Span, Time};
use acklab_tcp::AppEvent;

use super::{App, Io};

/// Code of the [`EventKind::App`] event with which a reader that is timed tells how long a message took, in ms
/// from the instant at which its flow began to its last byte.
pub const TRANSFER_MS: u32 = 2;

/// When the application reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderModel {
    /// As soon as there is something: blocked in `read`.
    Promptly,
    /// At fixed instants this far apart, whatever has come: a polling loop.
    Every(Span),
    /// This long after data came: an application that has to be woken.
    After(Span),
    /// Never.
    Never,
}

impl fmt::Display for ReaderModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Promptly => f.write_str("promptly"),
            Self::Every(period) => write!(f, "every {period}"),
            Self::After(delay) => write!(f, "after {delay}"),
            Self::Never => f.write_str("never"),
        }
    }
}

/// Reads messages of a known size and discards them.
#[derive(Clone, Debug)]
pub struct Reader {
    model: ReaderModel,
    message_bytes: u64,
    delivered: u64,
    next: Option<Time>,
    peer_closed: bool,
    /// Since when, and the node that its events name.
    timed: Option<(Time, NodeId)>,
}

impl Reader {
    /// A reader of the given model; it tells of each message of `message_bytes` bytes that it has
    /// read whole.
    pub fn new(model: ReaderModel, message_bytes: u32) -> Self {
        let message_bytes = u64::from(message_bytes.max(1));
        Self { model, message_bytes, delivered: 0, next: None, peer_closed: false, timed: None }
    }

    /// The same, which tells [`TRANSFER_MS`] since `start`, as `node`, in place of each message.
    #[must_use]
    pub fn timed(self, start: Time, node: NodeId) -> Self {
        Self { timed: Some((start, node)), ..self }
    }

    fn read(&mut self, io: &mut Io<'_>) {
        io.read(u32::MAX);
        let (flow, whole) = (io.flow(), io.stream.total_read() / self.message_bytes);
        for id in self.delivered..whole {
            io.tell(match self.timed {
                Some((start, node)) => {
                    let value = io.now.since(start).as_millis_f64();
                    EventKind::App { node, code: TRANSFER_MS, value }
                }
                None => EventKind::MessageDelivered { flow, id },
            });
        }
        self.delivered = whole;
        if self.peer_closed {
            io.close();
            self.next = None;
        }
    }
}

impl App for Reader {
    fn on_event(&mut self, event: AppEvent, io: &mut Io<'_>) {
        match (event, self.model) {
            (AppEvent::Connected, ReaderModel::Every(period)) => self.next = Some(io.now + period),
            (AppEvent::Readable, ReaderModel::Promptly) => self.read(io),
            (AppEvent::Readable, ReaderModel::After(delay)) => {
                self.next = self.next.or(Some(io.now + delay));
            }
            (AppEvent::PeerClosed, model) => {
                self.peer_closed = true;
                match model {
                    ReaderModel::Promptly => self.read(io),
                    ReaderModel::After(delay) => self.next = self.next.or(Some(io.now + delay)),
                    ReaderModel::Every(_) | ReaderModel::Never => {}
                }
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, io: &mut Io<'_>) {
        while let Some(due) = self.next.filter(|&due| due <= io.now) {
            self.next = match self.model {
                ReaderModel::Every(period) if !self.peer_closed => Some(due + period),
                _ => None,
            };
            self.read(io);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.next
    }
}
