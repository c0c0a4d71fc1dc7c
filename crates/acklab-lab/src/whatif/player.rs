//! The application that plays one end's writes.

use acklab_core::time::{Span, Time};
use acklab_sim::app::{App, Io};
use acklab_tcp::AppEvent;

use super::conversation::{Step, Trigger};

/// Writes its steps, each when what it waits for has come, and reads at once what there is.
pub(super) struct Player {
    steps: Vec<Step>,
    next: usize,
    /// When the conversation begins.
    start: Time,
    due: Option<Time>,
    last: Time,
    /// Bytes of a write that found no room yet.
    owed: u32,
}

impl Player {
    pub(super) fn new(steps: Vec<Step>, start: Time) -> Self {
        Self { steps, next: 0, start, due: None, last: start, owed: 0 }
    }

    /// Sets the deadline of the next write, once it is known.
    fn arm(&mut self, now: Time, heard: u64) {
        if self.due.is_some() || self.owed > 0 {
            return;
        }
        let Some(step) = self.steps.get(self.next) else { return };
        self.due = match step.trigger {
            Trigger::At { at, bytes } => (heard >= bytes).then(|| now.max(self.start + at)),
            Trigger::Behind(gap) => Some(self.last + gap),
            Trigger::Heard { bytes, think } => (heard >= bytes).then(|| now + think),
        };
    }

    fn write(&mut self, io: &mut Io<'_>) {
        self.owed -= io.write(self.owed);
        if self.owed == 0 {
            self.last = io.now;
            self.arm(io.now, io.stream.total_read());
        }
    }
}

impl App for Player {
    fn on_event(&mut self, event: AppEvent, io: &mut Io<'_>) {
        match event {
            AppEvent::Readable => {
                io.read(u32::MAX);
                self.arm(io.now, io.stream.total_read());
            }
            AppEvent::Connected => self.arm(io.now, 0),
            AppEvent::Writable if self.owed > 0 => self.write(io),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, io: &mut Io<'_>) {
        if self.due.take_if(|due| *due <= io.now).is_some() {
            self.owed = self.steps[self.next].bytes;
            self.next += 1;
            self.write(io);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.due
    }
}

/// From the connection's first packet to the beginning of the conversation: the handshake is over by then.
pub(super) fn head_start(rtt: Span) -> Span {
    rtt * 3
}
