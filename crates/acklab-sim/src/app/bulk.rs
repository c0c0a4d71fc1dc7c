//! [`Bulk`]: as many bytes as the send buffer takes, until the total is written.

use acklab_core::tcp::AppEvent;
use acklab_core::time::Time;

use super::{App, Io};

/// Writes in calls of `chunk` bytes.
#[derive(Clone, Debug)]
pub struct Bulk {
    remaining: u64,
    chunk: u32,
}

impl Bulk {
    /// `total` bytes in calls of `chunk` bytes (the last may be shorter).
    pub fn new(total: u64, chunk: u32) -> Self {
        Self { remaining: total, chunk: chunk.max(1) }
    }

    fn write(&mut self, io: &mut Io<'_>) {
        while self.remaining > 0 {
            let bytes = self.remaining.min(u64::from(self.chunk)) as u32;
            let taken = io.write(bytes);
            self.remaining -= u64::from(taken);
            if self.remaining == 0 {
                io.close();
            }
            if taken < bytes {
                return;
            }
        }
    }
}

impl App for Bulk {
    fn on_event(&mut self, event: AppEvent, io: &mut Io<'_>) {
        if matches!(event, AppEvent::Connected | AppEvent::Writable) {
            self.write(io);
        }
    }

    fn handle_timeout(&mut self, _io: &mut Io<'_>) {}

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}
