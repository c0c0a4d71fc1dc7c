//! [`PlantPeer`]: plant, sensor and actuator on one host (algorithm 2).
//!
//! Every period the sensor takes y(k) and sends it; the actuator applies the newest command. When
//! a command begins to act is the [`Actuation`], which decides more about the loop than most of the
//! network does. The state is advanced exactly, by zero-order hold over a whole period or over the
//! parts into which commands divide it.

use std::convert::Infallible;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::{EventKind, Interest, Sink};
use acklab_core::packet::{Addr, Ecn, Packet};
use acklab_core::time::{Span, Time};

use super::outbox::Outbox;
use super::{Location, Missing, Stamped};
use crate::plant::{ModelError, StateSpace};
use crate::record::code;
use crate::reference::SquareWave;
use crate::zoh::Zoh;

acklab_core::words! {
    /// When an arrived command begins to act.
    #[derive(Default)]
    pub enum Actuation {
        /// y(k) is computed at tick k with the command that has arrived by then, as if it had acted over
        /// the period just ended. This is what an automaton does that calls ComputePosition with its
        /// latest u, as the ANCE article's figure 8, and the reading under which its table 4 comes out.
        #[default]
        PeriodEnded = "period-ended",
        /// The command latched at tick k acts from tick k to tick k + 1: a time-driven actuator. One that
        /// arrives at the very instant of the tick is latched.
        Tick = "tick",
        /// A command acts from the instant of its arrival: an event-driven actuator.
        Arrival = "arrival",
    }
}

/// A plant with its sensor and actuator.
#[derive(Clone, Debug)]
pub struct PlantSetup {
    /// The plant; one input, one output.
    pub model: StateSpace,
    /// Its state at time zero; empty for all zeros.
    pub initial: Vec<f64>,
    /// Sampling period h.
    pub period: Span,
    /// First tick.
    pub phase: Span,
    /// When commands begin to act.
    pub actuation: Actuation,
    /// What acts where no command came since the last tick.
    pub missing: Missing,
    /// What the costs compare the output with.
    pub reference: SquareWave,
    /// From a tick to the departure of its sample: Tpsm, unless the link accounts for it.
    pub sending: Span,
    /// ECN field of its packets.
    pub ecn: Ecn,
    pub local: Addr,
    pub controller: Addr,
}

impl PlantSetup {
    /// `model` at rest under the ANCE article's timing: 14 ms, no phase, [`Actuation::PeriodEnded`].
    pub fn new(model: StateSpace, local: Addr, controller: Addr) -> Self {
        Self {
            model,
            initial: Vec::new(),
            period: Span::from_millis(14),
            phase: Span::ZERO,
            actuation: Actuation::default(),
            missing: Missing::default(),
            reference: SquareWave::default(),
            sending: Span::ZERO,
            ecn: Ecn::NotEct,
            local,
            controller,
        }
    }
}

/// The plant's side of the loop.
#[derive(Clone, Debug)]
pub struct PlantPeer {
    setup: PlantSetup,
    whole_period: Zoh,
    state: Vec<f64>,
    /// The instant of `state`.
    state_at: Time,
    next_tick: Time,
    last_tick: Option<Time>,
    acting: Stamped,
    newest: Stamped,
    /// A command came since the last tick.
    fresh: bool,
    /// The newest command was not latched yet; one that came at a tick's very instant was.
    unlatched: bool,
    commanded: bool,
    missed_in_a_row: u64,
    /// The newest sample whose command has acted.
    answered: Option<Time>,
    cost_s: f64,
    outbox: Outbox,
}

impl PlantPeer {
    /// A plant at rest.
    pub fn new(mut setup: PlantSetup) -> Result<Self, ModelError> {
        let states = setup.model.states();
        if !setup.model.is_siso() {
            let (b, c) = (setup.model.b(), setup.model.c());
            return Err(ModelError::Shape {
                matrix: "B and C",
                rows: c.rows(),
                cols: b.cols(),
                expected: "one input and one output".into(),
            });
        }
        if setup.initial.is_empty() {
            setup.initial = vec![0.0; states];
        }
        if setup.initial.len() != states {
            let (rows, expected) = (setup.initial.len(), format!("{states} by 1"));
            return Err(ModelError::Shape { matrix: "the initial state", rows, cols: 1, expected });
        }
        check_timing(setup.period, setup.sending)?;
        let nothing = Stamped { value: 0.0, sampled: None };
        Ok(Self {
            whole_period: Zoh::new(&setup.model, setup.period),
            state: setup.initial.clone(),
            state_at: Time::ZERO,
            next_tick: Time::ZERO + setup.phase,
            last_tick: None,
            acting: nothing,
            newest: nothing,
            fresh: false,
            unlatched: false,
            commanded: false,
            missed_in_a_row: 0,
            answered: None,
            cost_s: 0.0,
            outbox: Outbox::default(),
            setup,
        })
    }

    /// The output now, as the last tick or arrival left it.
    pub fn output(&self) -> f64 {
        self.setup.model.output(&self.state, self.acting.value)
    }

    /// Where its automaton is.
    pub fn location(&self) -> Location {
        if self.outbox.next().is_some() { Location::Sending } else { Location::Sampling }
    }

    /// ComputePosition, ComputeITAE and the sample of the tick at `at`.
    fn on_tick(&mut self, at: Time, sink: &mut Sink) {
        match self.setup.actuation {
            Actuation::PeriodEnded => {
                if let Some(begin) = self.last_tick {
                    self.acting = self.command(self.fresh);
                    self.tell_first_answer(at, begin, sink);
                }
                self.advance(at);
            }
            Actuation::Tick => self.advance(at),
            Actuation::Arrival => {
                self.advance(at);
                self.acting = self.command(self.fresh);
            }
        }
        let output = self.output();
        self.tell(at, output, sink);
        self.last_tick = Some(at);
        self.fresh = false;
        if self.setup.actuation == Actuation::Tick {
            self.latch(at, sink);
        }
        self.next_tick = at + self.setup.period;
        let sample = Stamped { value: output, sampled: Some(at) };
        let packet = sample.into_packet(self.setup.local, self.setup.controller, self.setup.ecn);
        self.outbox.push(at + self.setup.sending, packet);
    }

    /// The newest command, or what stands in for it where it is not new.
    const fn command(&self, new: bool) -> Stamped {
        match self.setup.missing {
            Missing::Zero if !new => Stamped { value: 0.0, ..self.newest },
            Missing::Zero | Missing::Hold => self.newest,
        }
    }

    fn latch(&mut self, at: Time, sink: &mut Sink) {
        self.acting = self.command(self.unlatched);
        self.unlatched = false;
        self.tell_first_answer(at, at, sink);
    }

    /// Moves the state to `at` under the acting command.
    fn advance(&mut self, at: Time) {
        let span = at.since(self.state_at);
        self.state_at = at;
        if span == self.setup.period {
            self.state = self.whole_period.step(&self.state, self.acting.value);
        } else if !span.is_zero() {
            self.state = Zoh::new(&self.setup.model, span).step(&self.state, self.acting.value);
        }
    }

    /// Tells the loop's delay where the acting command is the first of its sample; it acts since
    /// `since`.
    fn tell_first_answer(&mut self, now: Time, since: Time, sink: &mut Sink) {
        if let Some(sampled) = self.acting.sampled.filter(|_| self.answered < self.acting.sampled) {
            self.answered = Some(sampled);
            let delay = since.since(sampled).as_millis_f64();
            self.say(now, code::LOOP_DELAY_MS, delay, sink);
        }
    }

    fn tell(&mut self, at: Time, output: f64, sink: &mut Sink) {
        let reference = self.setup.reference.at(at);
        self.cost_s += at.as_secs_f64() * (reference - output).abs();
        self.missed_in_a_row =
            if self.fresh || !self.commanded { 0 } else { self.missed_in_a_row + 1 };
        if !sink.wants(Interest::MESSAGE) {
            return;
        }
        self.say(at, code::REFERENCE, reference, sink);
        self.say(at, code::POSITION, output, sink);
        self.say(at, code::COST_S, self.cost_s, sink);
        self.say(at, code::ACTING, self.acting.value, sink);
        // At a tick that latches, the command that acts from there on.
        let acting = match self.setup.actuation {
            Actuation::Tick => self.command(self.unlatched),
            Actuation::PeriodEnded | Actuation::Arrival => self.acting,
        };
        let age = at.since(acting.sampled.unwrap_or(Time::ZERO)).as_millis_f64();
        self.say(at, code::COMMAND_AGE_MS, age, sink);
        if self.commanded {
            self.say(at, code::MISSED_COMMANDS, self.missed_in_a_row as f64, sink);
        }
    }

    fn say(&self, at: Time, code: u32, value: f64, sink: &mut Sink) {
        sink.record(at, EventKind::App { node: self.setup.local.node, code, value });
    }
}

/// Refuses timing with which no automaton could keep its period.
pub(super) const fn check_timing(period: Span, sending: Span) -> Result<(), ModelError> {
    if period.is_zero() {
        return Err(ModelError::Timing { what: "the sampling period must be longer than 0" });
    }
    if sending.as_nanos() >= period.as_nanos() {
        return Err(ModelError::Timing { what: "sending must take less than the sampling period" });
    }
    Ok(())
}

impl Endpoint for PlantPeer {
    type Arrival<'a> = Packet;
    type Departure<'a> = Packet;
    type AppEvent = Infallible;

    fn handle_packet(&mut self, now: Time, packet: Packet, sink: &mut Sink) {
        let Some(command) = Stamped::from_packet(now, &packet) else { return };
        if command.sampled < self.newest.sampled {
            return;
        }
        self.newest = command;
        self.commanded = true;
        self.fresh = true;
        self.unlatched = true;
        match self.setup.actuation {
            Actuation::Tick if self.last_tick == Some(now) => self.latch(now, sink),
            Actuation::Tick | Actuation::PeriodEnded => {}
            Actuation::Arrival => {
                self.advance(now);
                self.acting = command;
                self.tell_first_answer(now, now, sink);
            }
        }
    }

    fn handle_timeout(&mut self, now: Time, sink: &mut Sink) {
        while self.next_tick <= now && self.next_tick < Time::MAX {
            self.on_tick(self.next_tick, sink);
        }
    }

    fn poll_transmit(&mut self, now: Time, _sink: &mut Sink) -> Option<Packet> {
        self.outbox.pop(now)
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.outbox.next().map_or(self.next_tick, |at| at.min(self.next_tick)))
    }
}
