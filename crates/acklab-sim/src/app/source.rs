//! [`MessageSource`]: fixed-size messages at a period, as a PMU or a controller sends them.
//!
//! The application's clock may run fast or slow against the world's and each gap may vary; both
//! move the phase between writes and ACKs, on which the delay under Nagle's algorithm depends. A
//! write that finds too little room in the send buffer is continued when there is more, as a
//! blocking `write` is; the schedule goes on meanwhile.

use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};
use acklab_tcp::AppEvent;

use super::{App, Io};

/// When messages are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Messages in all.
    pub count: u64,
    /// Bytes of each.
    pub bytes: u32,
    /// From one write to the next, by the application's own clock.
    pub period: Span,
    /// Each gap is drawn uniformly from `period` ± `jitter`; the deviations add up, as those of a
    /// loop that sleeps do.
    pub jitter: Span,
    /// How much longer the world's second is than the application's, in parts per million:
    /// positive where the application's clock is slow.
    pub skew_ppm: f64,
    /// From the connection's establishment to the first write.
    pub phase: Span,
}

/// Writes messages by a [`Schedule`].
#[derive(Clone, Debug)]
pub struct MessageSource {
    schedule: Schedule,
    rng: Rng,
    next: Option<Time>,
    scheduled: u64,
    /// Bytes that are due and found no room yet.
    waiting: u64,
}

impl MessageSource {
    /// A source; `rng` draws its jitter.
    pub fn new(schedule: Schedule, rng: Rng) -> Self {
        Self { schedule, rng, next: None, scheduled: 0, waiting: 0 }
    }

    fn gap(&mut self) -> Span {
        let Schedule { period, jitter, skew_ppm, .. } = self.schedule;
        let mut nanos = period.as_nanos() as f64;
        if !jitter.is_zero() {
            nanos += (2.0 * self.rng.uniform() - 1.0) * jitter.as_nanos() as f64;
        }
        Span::from_secs_f64(nanos * (1.0 + skew_ppm * 1e-6) / 1e9)
    }

    fn write_waiting(&mut self, io: &mut Io<'_>) {
        while self.waiting > 0 {
            // The rest of a message that found no room, else a whole one.
            let bytes = match self.waiting % u64::from(self.schedule.bytes) {
                0 => self.schedule.bytes,
                rest => rest as u32,
            };
            let taken = io.write(bytes);
            self.waiting -= u64::from(taken);
            if taken < bytes {
                return;
            }
        }
    }
}

impl App for MessageSource {
    fn on_event(&mut self, event: AppEvent, io: &mut Io<'_>) {
        match event {
            AppEvent::Connected => self.next = Some(io.now + self.schedule.phase),
            AppEvent::Writable => self.write_waiting(io),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, io: &mut Io<'_>) {
        let Some(due) = self.next.take_if(|due| *due <= io.now) else { return };
        self.scheduled += 1;
        self.waiting += u64::from(self.schedule.bytes);
        self.next = (self.scheduled < self.schedule.count).then(|| due + self.gap());
        self.write_waiting(io);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.next
    }

    fn reseed(&mut self, seed: u64) {
        self.rng.reseed(seed);
    }
}
