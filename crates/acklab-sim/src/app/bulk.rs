//! [`Bulk`]: as many bytes as the send buffer takes, until the total is written or its time is up.

use acklab_core::time::Time;
use acklab_tcp::AppEvent;

use super::{App, Io};

/// Writes in calls of `chunk` bytes.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// Bytes still to write; `None` without end.
    remaining: Option<u64>,
    chunk: u32,
    stop: Time,
    connected: bool,
}

impl Bulk {
    /// `total` bytes in calls of `chunk` bytes (the last may be shorter), then the end of the stream.
    pub fn new(total: u64, chunk: u32) -> Self {
        Self { remaining: Some(total), chunk: chunk.max(1), stop: Time::MAX, connected: false }
    }

    /// Bytes without end.
    pub fn unlimited() -> Self {
        Self { remaining: None, ..Self::new(0, u32::MAX) }
    }

    /// Writes nothing more from `stop` on, and closes.
    #[must_use]
    pub fn until(mut self, stop: Time) -> Self {
        self.stop = stop;
        self
    }

    fn write(&mut self, io: &mut Io<'_>) {
        while io.now < self.stop && self.remaining != Some(0) {
            let left = self.remaining.unwrap_or(u64::MAX);
            let bytes = left.min(u64::from(self.chunk)) as u32;
            let taken = io.write(bytes);
            if let Some(remaining) = &mut self.remaining {
                *remaining -= u64::from(taken);
            }
            if taken < bytes {
                return;
            }
        }
        io.close();
        self.stop = Time::MAX;
        self.remaining = Some(0);
    }
}

impl App for Bulk {
    fn on_event(&mut self, event: AppEvent, io: &mut Io<'_>) {
        if matches!(event, AppEvent::Connected | AppEvent::Writable) {
            self.connected = true;
            self.write(io);
        }
    }

    fn handle_timeout(&mut self, io: &mut Io<'_>) {
        if self.poll_timeout().is_some_and(|stop| stop <= io.now) {
            self.write(io);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.stop).filter(|&stop| self.connected && stop != Time::MAX)
    }
}
