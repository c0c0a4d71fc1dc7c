//! What a transport tells the application above it.

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

/// A set of events, told in the order of the enum; what ended a connection comes after what arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notices(u8);

impl Notices {
    /// Adds an event.
    pub const fn add(&mut self, event: AppEvent) {
        self.0 |= 1 << event as u8;
    }

    /// The first that waits.
    pub fn pop(&mut self) -> Option<AppEvent> {
        if self.0 == 0 {
            return None;
        }
        let lowest = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        AppEvent::ALL.get(lowest).copied()
    }
}
