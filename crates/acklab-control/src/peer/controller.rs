//! [`ControllerPeer`]: the controller's host (algorithm 3).
//!
//! Driven by time, it computes a command at every tick of its clock from the newest sample, and
//! from the plant's output at rest, zero, before the first one; driven by events, it computes when
//! a sample arrives. The set point is its own. The integral takes every computation as one period.

use std::convert::Infallible;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::{EventKind, Interest, Sink};
use acklab_core::packet::{Addr, Ecn, Packet};
use acklab_core::time::{Span, Time};

use super::outbox::Outbox;
use super::plant::check_timing;
use super::{Missing, Stamped};
use crate::pid::{Pid, PidGains};
use crate::plant::ModelError;
use crate::record::code;
use crate::reference::SquareWave;

acklab_core::words! {
    /// What makes the controller compute.
    #[derive(Default)]
    pub enum Driven {
        /// Its own clock, once per period (the ANCE article's algorithm 3).
        #[default]
        Time = "time-driven",
        /// The arrival of a sample newer than all before.
        Event = "event-driven",
    }
}

#[derive(Clone, Debug)]
pub struct ControllerSetup {
    pub gains: PidGains,
    /// Sampling period h.
    pub period: Span,
    /// First tick, where driven by time.
    pub phase: Span,
    /// What makes it compute.
    pub driven: Driven,
    /// What it takes for the output where no sample came since the last tick.
    pub missing: Missing,
    /// The set point.
    pub reference: SquareWave,
    /// From a computation's beginning to the command's departure: Tcsc, unless the link accounts for
    /// it, and the time to compute.
    pub sending: Span,
    /// ECN field of its packets.
    pub ecn: Ecn,
    pub local: Addr,
    pub plant: Addr,
}

impl ControllerSetup {
    /// The ANCE article's PI controller under its timing: 14 ms, driven by time, no phase.
    pub fn new(local: Addr, plant: Addr) -> Self {
        Self {
            gains: PidGains::default(),
            period: Span::from_millis(14),
            phase: Span::ZERO,
            driven: Driven::default(),
            missing: Missing::default(),
            reference: SquareWave::default(),
            sending: Span::ZERO,
            ecn: Ecn::NotEct,
            local,
            plant,
        }
    }
}

/// The controller's side of the loop.
#[derive(Clone, Debug)]
pub struct ControllerPeer {
    setup: ControllerSetup,
    pid: Pid,
    next_tick: Time,
    newest: Stamped,
    /// A sample came since the last computation.
    fresh: bool,
    missed_in_a_row: u64,
    outbox: Outbox,
}

impl ControllerPeer {
    /// A controller at rest.
    pub fn new(setup: ControllerSetup) -> Result<Self, ModelError> {
        check_timing(setup.period, setup.sending)?;
        let next_tick = match setup.driven {
            Driven::Time => Time::ZERO + setup.phase,
            Driven::Event => Time::MAX,
        };
        Ok(Self {
            pid: Pid::new(setup.gains, setup.period),
            next_tick,
            newest: Stamped { value: 0.0, sampled: None },
            fresh: false,
            missed_in_a_row: 0,
            outbox: Outbox::default(),
            setup,
        })
    }

    /// ComputeControlSignal at `at`.
    fn compute(&mut self, at: Time, sink: &mut Sink) {
        let output = match self.setup.missing {
            Missing::Zero if !self.fresh => 0.0,
            Missing::Zero | Missing::Hold => self.newest.value,
        };
        let value = self.pid.update(self.setup.reference.at(at) - output);
        let missed = !self.fresh && self.newest.sampled.is_some();
        self.missed_in_a_row = if missed { self.missed_in_a_row + 1 } else { 0 };
        self.tell(at, value, sink);
        self.fresh = false;
        let command = Stamped { value, sampled: self.newest.sampled };
        let packet = command.into_packet(self.setup.local, self.setup.plant, self.setup.ecn);
        self.outbox.push(at + self.setup.sending, packet);
    }

    fn tell(&self, at: Time, command: f64, sink: &mut Sink) {
        if !sink.wants(Interest::MESSAGE) {
            return;
        }
        let node = self.setup.local.node;
        let mut say = |code, value| sink.record(at, EventKind::App { node, code, value });
        say(code::COMMAND, command);
        let age = at.since(self.newest.sampled.unwrap_or(Time::ZERO)).as_millis_f64();
        say(code::SAMPLE_AGE_MS, age);
        if self.newest.sampled.is_some() {
            say(code::MISSED_SAMPLES, self.missed_in_a_row as f64);
        }
    }
}

impl Endpoint for ControllerPeer {
    type Arrival<'a> = Packet;
    type Departure<'a> = Packet;
    type AppEvent = Infallible;

    fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) {
        let Some(sample) = Stamped::from_packet(now, &packet) else { return };
        if sample.sampled <= self.newest.sampled {
            return;
        }
        self.newest = sample;
        self.fresh = true;
        if self.setup.driven == Driven::Event {
            self.compute(now, sink);
        }
    }

    fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        while self.next_tick <= now && self.next_tick < Time::MAX {
            let tick = self.next_tick;
            self.next_tick = tick + self.setup.period;
            self.compute(tick, sink);
        }
    }

    fn poll_transmit(&mut self, now: Time, _sink: &mut Sink) -> Option<Packet> {
        self.outbox.pop(now)
    }

    fn poll_timeout(&self) -> Option<Time> {
        let tick = Some(self.next_tick).filter(|&at| at != Time::MAX);
        [tick, self.outbox.next()].into_iter().flatten().min()
    }
}
