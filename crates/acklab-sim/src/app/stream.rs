//! [`Source`]: writes what an arrival process brings into its connection.
//!
//! On/off, constant rate, Poisson and trace-driven writers are this with another
//! [`Pattern`](crate::arrivals::Pattern). A write that finds too little room is continued when there
//! is more, as a blocking `write` is; the process goes on meanwhile.

use acklab_core::time::Time;
use acklab_tcp::AppEvent;

use super::{App, Io};
use crate::arrivals::Arrivals;

/// Writes what arrives.
#[derive(Clone, Debug)]
pub struct Source {
    arrivals: Arrivals,
    connected: bool,
    /// Bytes that are due and found no room yet.
    waiting: u64,
}

impl Source {
    /// A source; what arrives before the connection is open is written when it is.
    pub fn new(arrivals: Arrivals) -> Self {
        Self { arrivals, connected: false, waiting: 0 }
    }

    fn write(&mut self, io: &mut Io<'_>) {
        while let Some(bytes) = self.arrivals.take_due(io.now) {
            self.waiting += u64::from(bytes);
        }
        while self.waiting > 0 {
            let bytes = self.waiting.min(u64::from(u32::MAX)) as u32;
            let taken = io.write(bytes);
            self.waiting -= u64::from(taken);
            if taken < bytes {
                return;
            }
        }
        if self.arrivals.next_time().is_none() {
            io.close();
        }
    }
}

impl App for Source {
    fn on_event(&mut self, event: AppEvent, io: &mut Io<'_>) {
        match event {
            AppEvent::Connected => {
                self.connected = true;
                self.write(io);
            }
            AppEvent::Writable => self.write(io),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, io: &mut Io<'_>) {
        if self.poll_timeout().is_some_and(|due| due <= io.now) {
            self.write(io);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.arrivals.next_time().filter(|_| self.connected)
    }

    fn reseed(&mut self, seed: u64) {
        self.arrivals.reseed(seed);
    }
}
