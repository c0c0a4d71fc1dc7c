//! The one typed event stream: what components have to tell about themselves.
//!
//! A component records into the [`Sink`] that its caller hands it; the world drains the sink after
//! each step and feeds whatever subscribed: metrics, a result hash, qlog, plots. A class of events
//! that no observer wants costs one test of a bit.

use crate::packet::{Addr, NodeId, Packet};
use crate::time::{Span, Time};

/// A set of event classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest(pub u8);

impl Interest {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Application messages: written, sent, delivered.
    pub const MESSAGE: Self = Self(1);
    /// Transport decisions: holds, delayed ACKs, state changes, loss recovery.
    pub const TRANSPORT: Self = Self(2);
    /// Congestion state and rates of ACKs, at every change.
    pub const CONGESTION: Self = Self(4);
    /// Queues, links and processors: enqueued, dropped, marked, worked.
    pub const QUEUE: Self = Self(8);
    /// Of the links' events only packets dropped, marked and copied: far fewer than all.
    pub const DROPS: Self = Self(16);
    /// Each packet's way through the links: far more than all others, so that it is told only where
    /// it is asked for by name.
    pub const PASSAGE: Self = Self(32);
    /// Everything but [`Interest::PASSAGE`].
    pub const ALL: Self = Self(31);

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether any class of `other` is in the set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// One connection as seen from one of its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKey {
    /// The end that tells.
    pub local: Addr,
    /// The other end.
    pub remote: Addr,
}

/// Why an acknowledgment left now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckReason {
    /// The policy does not delay this one (every-nth segment, quick-ack mode, PSH, ...).
    Policy,
    /// The delayed-ACK timer expired.
    Timer,
    /// The application read, and the policy answers reads.
    Read,
    /// It rode on a data segment.
    Piggyback,
    /// Out-of-order data or a gap filled: a duplicate or immediate ACK (RFC 5681 section 4.2).
    OutOfOrder,
    /// A window update.
    Window,
    /// The handshake, a FIN, a challenge (RFC 5961) or a keep-alive's answer.
    Control,
}

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The queue was full.
    Overflow,
    /// The queue's management chose it.
    Early,
    /// The link's loss model took it.
    Loss,
    /// The link damaged it, and a checksum found out.
    Corrupted,
    /// There was no room for it, and it went back to its sender (E-DCTCP).
    Returned,
    /// An ACK that a newer one made superfluous, taken out by a filter.
    Filtered,
    /// No host or socket has that address.
    Unreachable,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventKind {
    /// The application handed a message to the transport.
    MessageWritten {
        /// Connection.
        flow: FlowKey,
        /// Count from 0 in this direction.
        id: u64,
        /// Bytes.
        bytes: u32,
    },
    /// The last byte of a message left for the first time.
    MessageSent {
        /// Connection.
        flow: FlowKey,
        /// Count from 0 in this direction.
        id: u64,
        /// When the application wrote it.
        written_at: Time,
    },
    /// The last byte of a message was handed to the receiving application.
    MessageDelivered {
        /// Connection, from the receiver's side.
        flow: FlowKey,
        /// Count from 0 in this direction.
        id: u64,
    },
    /// Data that Nagle's algorithm (or CORK) holds back; told once per hold.
    Held {
        /// Connection.
        flow: FlowKey,
        /// Bytes waiting.
        bytes: u32,
    },
    /// A hold ended: the data left.
    Released {
        /// Connection.
        flow: FlowKey,
        /// Bytes that left in the releasing segment.
        bytes: u32,
        /// How long the oldest byte was held.
        held: Span,
        /// What released it.
        by: Release,
    },
    /// A segment was sent: every one, as a capture at the sender sees them.
    SegmentSent {
        /// Connection.
        flow: FlowKey,
        /// Payload bytes.
        len: u32,
        /// It carries SYN, FIN or RST; without any of them and without payload it is a pure ACK.
        control: bool,
        /// Whether any byte of it was sent before.
        retransmission: bool,
    },
    /// An acknowledgment of new data left.
    AckSent {
        /// Connection.
        flow: FlowKey,
        /// Why now.
        reason: AckReason,
        /// How long the oldest unacknowledged segment had waited for it.
        delay: Span,
    },
    /// The congestion state changed; bytes.
    Congestion {
        /// Connection.
        flow: FlowKey,
        /// Congestion window.
        cwnd: u64,
        /// Slow-start threshold.
        ssthresh: u64,
        /// Sent and not acknowledged.
        in_flight: u64,
        /// Acknowledged since the connection began: payload, SYN and FIN.
        acked: u64,
    },
    /// A policy that limits the rate of its ACKs set another number of segments per ACK.
    AckRate {
        /// Connection, from the receiver's side.
        flow: FlowKey,
        /// Segments per ACK from now on.
        segments: u32,
        /// What that may become at most.
        most: u32,
    },
    /// Loss recovery began (fast retransmit) or the retransmission timer expired.
    Loss {
        /// Connection.
        flow: FlowKey,
        /// True for a retransmission time-out.
        timeout: bool,
    },
    /// A queue changed.
    Queue {
        /// Link index in the world.
        link: u32,
        /// Packets waiting after the change.
        packets: u32,
        /// Bytes waiting after the change.
        bytes: u64,
    },
    /// A packet was lost.
    Dropped {
        /// Link index in the world; `u32::MAX` at a host.
        link: u32,
        /// Why.
        reason: DropReason,
        /// The packet.
        packet: Packet,
    },
    /// A link made a second packet of one: both are on their way from now on.
    Copied {
        /// Link index in the world.
        link: u32,
        /// The packet.
        packet: Packet,
    },
    /// A packet came to a link.
    Offered {
        /// Link index in the world.
        link: u32,
        /// The packet.
        packet: Packet,
    },
    /// A packet left the queue: its transmission begins.
    Served {
        /// Link index in the world.
        link: u32,
        /// The packet.
        packet: Packet,
    },
    /// A queue marked a packet congestion-experienced (or, ENCN, not congested).
    Marked {
        /// Link index in the world.
        link: u32,
        /// The packet.
        packet: Packet,
    },
    /// A host's processor is done with a packet.
    Worked {
        /// Host.
        node: NodeId,
        /// How long it took.
        took: Span,
    },
    /// The application at a node tells a value, by a number that it chose.
    App {
        /// Host.
        node: NodeId,
        /// Meaning, by the application.
        code: u32,
        /// Value.
        value: f64,
    },
}

/// What ended a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// An ACK of the earlier data came.
    Ack,
    /// The waiting data reached one MSS.
    Full,
    /// A timer (CORK's 200 ms ceiling, the sender's SWS override).
    Timer,
    /// An option was changed (TCP_NODELAY set, CORK cleared) or the stream was closed.
    Flush,
}

impl EventKind {
    /// The class it belongs to; drops, marks and copies belong to two.
    pub const fn class(&self) -> Interest {
        match self {
            Self::MessageWritten { .. }
            | Self::MessageSent { .. }
            | Self::MessageDelivered { .. }
            | Self::App { .. } => Interest::MESSAGE,
            Self::Held { .. }
            | Self::Released { .. }
            | Self::SegmentSent { .. }
            | Self::AckSent { .. }
            | Self::Loss { .. } => Interest::TRANSPORT,
            Self::Congestion { .. } | Self::AckRate { .. } => Interest::CONGESTION,
            Self::Queue { .. } | Self::Worked { .. } => Interest::QUEUE,
            Self::Dropped { .. } | Self::Copied { .. } | Self::Marked { .. } => {
                Interest::QUEUE.with(Interest::DROPS)
            }
            Self::Offered { .. } | Self::Served { .. } => Interest::PASSAGE,
        }
    }
}

/// An event and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// When it happened.
    pub time: Time,
    /// What happened.
    pub kind: EventKind,
}

/// Collects the events of one step; the caller drains it.
#[derive(Debug, Default)]
pub struct Sink {
    interest: Interest,
    events: Vec<Event>,
}

impl Sink {
    /// A sink for the classes in `interest`; with [`Interest::NONE`] it records nothing.
    pub const fn new(interest: Interest) -> Self {
        Self { interest, events: Vec::new() }
    }

    /// From now on it takes the classes in `interest`.
    pub const fn listen(&mut self, interest: Interest) {
        self.interest = interest;
    }

    /// Whether an observer wants events of `class`: ask before computing what is costly to tell.
    #[inline]
    pub const fn wants(&self, class: Interest) -> bool {
        self.interest.has(class)
    }

    /// Records an event if an observer wants its class.
    #[inline]
    pub fn record(&mut self, time: Time, kind: EventKind) {
        if self.interest.has(kind.class()) {
            self.events.push(Event { time, kind });
        }
    }

    /// Takes out what was recorded, oldest first.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Event> {
        self.events.drain(..)
    }

    /// What was recorded and not drained.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
}
