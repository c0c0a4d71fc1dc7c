//! The event loop: frames from device to device, each at the instant its [`Direction`] says.
//!
//! One thread. It sleeps in `ppoll(2)` until shortly before the next departure and spins for the rest,
//! under SCHED_FIFO where that is permitted. Departures run at the times the link computed, not at the
//! times the thread woke, so lateness does not add up; it is measured, departure by departure. When a
//! frame *came* can only be seen when it is read. In a second in which the thread has been awake for long
//! it stops spinning, since the kernel halts real-time threads for the rest of a second of which they
//! used 95 % (sched(7)).

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use acklab_core::time::{Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;

use super::direction::{Direction, Tally};
use crate::kernel;
use acklab_core::quantiles::Quantiles;

/// The last part of a wait is spent spinning: about what a timer and a wake-up take here.
const SPIN: Span = Span::from_micros(80);
/// Who was awake for longer than this in the current second does not spin.
const AWAKE: Span = Span::from_millis(600);
const SECOND: u64 = 1_000_000_000;
/// Frames read from one device before departures are looked at again.
const BATCH: usize = 16;
/// Longer than any IP packet.
const LARGEST_FRAME: usize = 1 << 16;
/// In the middle of the real-time priorities.
const PRIORITY: i32 = 50;

/// What the loop measured.
#[derive(Clone, Debug)]
pub(super) struct Relayed {
    /// Direction by direction: path 0 forward, path 0 reverse, path 1 forward, ...
    pub(super) tallies: Vec<Tally>,
    /// Actual minus scheduled departure of each frame.
    pub(super) lateness: Quantiles,
    /// Frames that a device did not take.
    pub(super) refused: u64,
    /// Whether the thread ran under SCHED_FIFO.
    pub(super) fifo: bool,
}

/// Devices and directions: direction i reads from device i and writes to device i ^ 1.
pub(super) struct Relay {
    devices: Vec<File>,
    directions: Vec<Direction>,
    began: Instant,
    lateness: Quantiles,
    refused: u64,
    buffer: Vec<u8>,
    sleep: Sleep,
}

/// How long the thread slept in the current second.
#[derive(Clone, Copy, Debug, Default)]
struct Sleep {
    second: u64,
    slept: Span,
}

impl Sleep {
    /// Notes a sleep that ended at `now`.
    fn note(&mut self, now: Time, slept: Span) {
        self.turn(now);
        self.slept += slept;
    }

    /// How long the thread has been awake in the second of `now`.
    fn awake(&mut self, now: Time) -> Span {
        self.turn(now);
        Span::from_nanos(now.as_nanos() % SECOND).saturating_sub(self.slept)
    }

    fn turn(&mut self, now: Time) {
        let second = now.as_nanos() / SECOND;
        if second != self.second {
            *self = Self { second, slept: Span::ZERO };
        }
    }
}

impl Relay {
    /// An idle relay whose time begins now.
    #[expect(clippy::disallowed_methods, reason = "the edge of the real network reads the clock")]
    pub(super) fn new(devices: Vec<File>, directions: Vec<Direction>) -> Self {
        Self {
            devices,
            directions,
            began: Instant::now(),
            lateness: Quantiles::default(),
            refused: 0,
            buffer: vec![0; LARGEST_FRAME],
            sleep: Sleep::default(),
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Relays until the other end of `stop` is closed.
    pub(super) fn run(mut self, stop: &UnixStream) -> io::Result<Relayed> {
        let fifo = kernel::schedule_first_in_first_out(PRIORITY).is_ok();
        // Without real-time scheduling timers may come 50 us late on purpose; 1 ns is the least.
        prctl::set_timerslack(1)?;
        let mut readable = vec![false; self.devices.len()];
        loop {
            self.release_due()?;
            if self.wait(stop, &mut readable)? {
                break;
            }
            for (index, _) in readable.iter().enumerate().filter(|(_, ready)| **ready) {
                self.admit(index)?;
            }
        }
        Ok(Relayed {
            tallies: self.directions.iter().map(Direction::tally).collect(),
            lateness: self.lateness,
            refused: self.refused,
            fifo,
        })
    }

    /// Lets every frame go whose time has come.
    fn release_due(&mut self) -> io::Result<()> {
        for index in 0..self.directions.len() {
            self.release(index)?;
        }
        Ok(())
    }

    fn release(&mut self, index: usize) -> io::Result<()> {
        let began = self.began;
        let Self { devices, directions, lateness, refused, .. } = self;
        let mut out = &devices[index ^ 1];
        let mut failure = None;
        while let Some(due) = directions[index].poll_timeout() {
            if due.as_nanos() > began.elapsed().as_nanos() as u64 {
                break;
            }
            directions[index].handle_timeout(due, &mut |frame| {
                let now = Time::from_nanos(began.elapsed().as_nanos() as u64);
                lateness.record(now.since(due));
                match out.write(frame) {
                    Ok(_) => {}
                    Err(error) if is_refusal(&error) => *refused += 1,
                    Err(error) => failure = Some(error),
                }
            });
        }
        failure.map_or(Ok(()), Err)
    }

    /// Reads what has come to a device.
    fn admit(&mut self, index: usize) -> io::Result<()> {
        for _ in 0..BATCH {
            let mut device = &self.devices[index];
            let length = match device.read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            // The link wants its calls in order of time.
            self.release(index)?;
            let now = self.now();
            self.directions[index].handle_frame(now, &self.buffer[..length]);
        }
        Ok(())
    }

    /// Waits for a frame or for the time to spin; true when it is over.
    fn wait(&mut self, stop: &UnixStream, readable: &mut [bool]) -> io::Result<bool> {
        let due = self.directions.iter().filter_map(Direction::poll_timeout).min();
        let timeout = due.map(|due| self.sleep_before(due));
        let mut polled: Vec<PollFd<'_>> = self
            .devices
            .iter()
            .map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN))
            .collect();
        polled.push(PollFd::new(stop.as_fd(), PollFlags::POLLIN));
        let limit = timeout.map(|span| {
            let nanos = span.as_nanos();
            TimeSpec::new((nanos / SECOND) as i64, (nanos % SECOND) as i64)
        });
        let before = self.now();
        match ppoll(&mut polled, limit, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        for (ready, fd) in readable.iter_mut().zip(&polled) {
            *ready = fd.any().unwrap_or(false);
        }
        let over = polled.last().is_some_and(|stop| stop.any().unwrap_or(false));
        if timeout != Some(Span::ZERO) {
            let now = self.now();
            self.sleep.note(now, now.since(before));
        }
        Ok(over)
    }

    /// How long to sleep before a departure at `due`; zero: spin.
    fn sleep_before(&mut self, due: Time) -> Span {
        let now = self.now();
        let left = due.since(now);
        if left > SPIN {
            left.saturating_sub(SPIN)
        } else if self.sleep.awake(now) > AWAKE {
            left
        } else {
            Span::ZERO
        }
    }
}

/// The device is going away or has no memory for a frame.
fn is_refusal(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EAGAIN | Errno::ENOBUFS | Errno::EIO | Errno::EINVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_awake_is_counted_anew_each_second() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let mut sleep = Sleep::default();
        sleep.note(at(300), Span::from_millis(100));
        assert_eq!(sleep.awake(at(500)), Span::from_millis(400));
        assert_eq!(sleep.awake(at(1200)), Span::from_millis(200));
        // A sleep that began in the second before counts for no more than this one.
        sleep.note(at(1300), Span::from_millis(900));
        assert_eq!(sleep.awake(at(1400)), Span::ZERO);
    }
}
