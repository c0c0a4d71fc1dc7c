//! The sending end: a window, a deadline per packet, a round-trip estimate per path.
//!
//! In the authors' program every packet has a thread that sends, sleeps for the time-out and sends again
//! until it finds an ACK; here it is an entry in a heap. What the estimate is made of is theirs too: each
//! ACK, a second copy as well, gives a sample from the *last* transmission of its packet (no rule of
//! Karn's); the deviation is taken from the estimate that already holds the sample, so that it starts at
//! 0; the time-out is read before a transmission, has no minimum and does not grow.
//!
//! [`Settings::cpu`] is what the paper does not speak of: transmissions are the work of one interpreter,
//! one after the other, and each costs that much time before the packet is out.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use acklab_core::time::{Span, Time};

use super::Header;

/// How the sender is set up; the default is the authors'.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Packets of the file.
    pub chunks: u16,
    /// Paths, 1 or 2; with two, the parity of a packet's index chooses.
    pub paths: usize,
    /// Packets that may be unacknowledged, on both paths together.
    pub window: u16,
    /// Time-out before the first sample.
    pub initial_timeout: Span,
    /// So many time-outs of one packet, and its path is down.
    pub tries: u32,
    /// Time of the one processor that a transmission takes.
    pub cpu: Span,
    /// A sleeper wakes that much late.
    pub slack: Span,
}

impl Settings {
    /// The authors' settings, with a processor that costs nothing.
    pub const fn new(chunks: u16, paths: usize) -> Self {
        Self {
            chunks,
            paths,
            window: 16,
            initial_timeout: Span::from_millis(50),
            tries: 1000,
            cpu: Span::ZERO,
            slack: TIMER_SLACK,
        }
    }
}

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Data is unacknowledged.
    Sending,
    /// All data is acknowledged, at this time, and the end packet is not answered yet.
    Ending(Time),
    Over {
        /// When the last data was acknowledged.
        delivered: Time,
        ended: Time,
        /// Whether the end packet was answered; else it was given up.
        answered: bool,
    },
}

/// A thread of the original: one packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Thread {
    index: u16,
    /// Which entry of `routes` it sends to; fixed when it starts.
    key: usize,
    tries: u32,
}

#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    /// First unacknowledged packet, and first unsent one.
    base: u16,
    next: u16,
    acked: Vec<bool>,
    unacked: usize,
    /// When each packet was last sent; the end packet comes last.
    sent_at: Vec<Option<Time>>,
    /// To which path odd and even packets go.
    routes: [usize; 2],
    estimates: [Estimate; 2],
    /// Sleeping threads by the time they wake, then in the order in which they fell asleep.
    sleeping: BinaryHeap<Reverse<(Time, u64, Thread)>>,
    asleep: u64,
    /// Threads that want the processor.
    ready: VecDeque<Thread>,
    free_at: Time,
    /// What leaves, when, and on which path.
    leaving: VecDeque<(Time, Header, usize)>,
    stage: Stage,
    links_down: u32,
}

impl Sender {
    /// Starts a transfer at `now`.
    pub fn new(now: Time, settings: Settings) -> Self {
        let chunks = usize::from(settings.chunks);
        let mut sender = Self {
            settings,
            base: 0,
            next: 0,
            acked: vec![false; chunks],
            unacked: chunks,
            sent_at: vec![None; chunks + 1],
            routes: [0, settings.paths.saturating_sub(1).min(1)],
            estimates: [Estimate::new(settings.initial_timeout); 2],
            sleeping: BinaryHeap::new(),
            asleep: 0,
            ready: VecDeque::new(),
            free_at: now,
            leaving: VecDeque::new(),
            stage: Stage::Sending,
            links_down: 0,
        };
        sender.fill_window();
        sender.work(now);
        sender
    }

    /// Takes a packet from the receiver; its checksum is not looked at.
    pub fn handle_packet(&mut self, now: Time, header: Header) {
        match header.ack.checked_sub(1) {
            Some(index) if index < self.settings.chunks => self.on_ack(now, index),
            // The original's thread for ACKs dies of any other number.
            Some(_) => {}
            None => self.on_end(now),
        }
        self.work(now);
    }

    /// Acts on what is due.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(Reverse((due, ..))) = self.sleeping.peek() {
            if *due > now {
                break;
            }
            let Some(Reverse((_, _, thread))) = self.sleeping.pop() else { break };
            self.ready.push_back(thread);
        }
        self.work(now);
    }

    /// The next packet that leaves at `now`, and its path. Data is that of index `seq - 1`.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Header, usize)> {
        let (_, header, path) = self.leaving.pop_front_if(|(at, ..)| *at <= now)?;
        Some((header, path))
    }

    /// When [`Self::handle_timeout`] or [`Self::poll_transmit`] has something to do.
    pub fn poll_timeout(&self) -> Option<Time> {
        let leaving = self.leaving.front().map(|(at, ..)| *at);
        let waking = self.sleeping.peek().map(|Reverse((at, ..))| *at);
        let working = (!self.ready.is_empty()).then_some(self.free_at);
        [leaving, waking, working].into_iter().flatten().min()
    }

    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// How often a path was found to be down.
    pub const fn links_down(&self) -> u32 {
        self.links_down
    }

    /// The time-out of each path's next transmission.
    pub fn timeouts(&self) -> [Span; 2] {
        self.estimates.map(|estimate| estimate.timeout)
    }

    fn on_ack(&mut self, now: Time, index: u16) {
        self.sample(now, index, usize::from(index % 2));
        let acked = &mut self.acked[usize::from(index)];
        if std::mem::replace(acked, true) {
            return;
        }
        self.unacked -= 1;
        while self.acked.get(usize::from(self.base)).is_some_and(|acked| *acked) {
            self.base += 1;
        }
        self.fill_window();
        if self.unacked == 0 {
            self.stage = Stage::Ending(now);
            // The end packet's index is -1, which Python calls odd.
            self.ready.push_back(Thread {
                index: self.settings.chunks,
                key: self.key(1),
                tries: 0,
            });
        }
    }

    fn on_end(&mut self, now: Time) {
        if let Stage::Ending(delivered) = self.stage {
            self.sample(now, self.settings.chunks, 1);
            self.stage = Stage::Over { delivered, ended: now, answered: true };
        }
    }

    fn sample(&mut self, now: Time, index: u16, parity: usize) {
        let key = self.key(parity);
        if let Some(sent) = self.sent_at[usize::from(index)] {
            self.estimates[key].update(now.since(sent));
        }
    }

    /// Once both routes lead to the same path, everything has the first entry.
    const fn key(&self, parity: usize) -> usize {
        if self.routes[0] == self.routes[1] { 0 } else { parity }
    }

    fn fill_window(&mut self) {
        let end = self.base.saturating_add(self.settings.window).min(self.settings.chunks);
        for index in self.next..end {
            let key = self.key(usize::from(index % 2));
            self.ready.push_back(Thread { index, key, tries: 0 });
        }
        self.next = self.next.max(end);
    }

    /// Lets threads have the processor while it is free.
    fn work(&mut self, now: Time) {
        while self.free_at <= now {
            let Some(thread) = self.ready.pop_front() else { return };
            if self.is_acked(thread.index) {
                continue;
            }
            if thread.tries >= self.settings.tries {
                self.on_link_down(now, thread);
                continue;
            }
            let index = usize::from(thread.index);
            let timeout = self.estimates[thread.key].timeout;
            self.sent_at[index] = Some(now);
            self.free_at = now + self.settings.cpu;
            let seq = if thread.index < self.settings.chunks { thread.index + 1 } else { 0 };
            let header = Header { seq, ack: 0 };
            self.leaving.push_back((self.free_at, header, self.routes[thread.key]));
            let wakes = self.free_at + timeout + self.settings.slack;
            let thread = Thread { tries: thread.tries + 1, ..thread };
            self.sleeping.push(Reverse((wakes, self.asleep, thread)));
            self.asleep += 1;
        }
    }

    fn is_acked(&self, index: u16) -> bool {
        match self.acked.get(usize::from(index)) {
            Some(acked) => *acked,
            None => matches!(self.stage, Stage::Over { .. }),
        }
    }

    /// A packet has had its time-outs: its half of the traffic takes the other path, with that path's
    /// estimate. Nothing ever takes it back. With one path the packet simply starts again.
    fn on_link_down(&mut self, now: Time, thread: Thread) {
        if thread.index == self.settings.chunks {
            if let Stage::Ending(delivered) = self.stage {
                self.stage = Stage::Over { delivered, ended: now, answered: false };
            }
            return;
        }
        let key = usize::from(thread.index % 2);
        if self.routes[0] != self.routes[1] {
            self.routes[key] = self.routes[1 - key];
            self.estimates[key] = self.estimates[1 - key];
            self.links_down += 1;
        }
        self.ready.push_back(Thread { index: thread.index, key: self.key(key), tries: 0 });
    }
}

/// A path's round trip and time-out (paper, equation 1).
#[derive(Clone, Copy, Debug)]
struct Estimate {
    /// Seconds: estimate and deviation.
    state: Option<(f64, f64)>,
    timeout: Span,
}

impl Estimate {
    const fn new(timeout: Span) -> Self {
        Self { state: None, timeout }
    }

    fn update(&mut self, sample: Span) {
        let sample = sample.as_secs_f64();
        let (mut rtt, dev) = self.state.unwrap_or((sample, 0.0));
        rtt = (1.0 - ALPHA) * rtt + ALPHA * sample;
        let dev = (1.0 - BETA) * dev + BETA * (sample - rtt).abs();
        self.state = Some((rtt, dev));
        self.timeout = Span::from_secs_f64(rtt + 4.0 * dev);
    }
}

/// Weight of a sample in the estimate (paper, section II).
const ALPHA: f64 = 0.125;
/// Weight of its distance in the deviation (paper, section II).
const BETA: f64 = 0.25;
/// A sleep on Linux ends that much late unless asked otherwise (prctl(2), `PR_SET_TIMERSLACK`).
const TIMER_SLACK: Span = Span::from_micros(50);

#[cfg(test)]
mod tests;
