//! [`motor_loop`]: the loop over two fixed delays, with nothing else between plant and controller.
//!
//! The very peers that a simulated network carries run here over two delay lines, so that what is
//! true of this loop (its costs against an independent computation, its margin) is true of them. At
//! one instant, arrivals come first, then the plant's tick, then the controller's.
//!
//! Where both sides are driven by time, a delay acts as the whole number of periods that it begins:
//! the loop's delay is rounded up once, and the ticks are divided between the two ways. Where either
//! side is driven by events the delay is exact, and divided in time. Left out: queues, jitter.

use std::collections::VecDeque;

use acklab_core::endpoint::Endpoint;
use acklab_core::event::{Event, Interest, Sink};
use acklab_core::packet::{Addr, NodeId, Packet};
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};

use crate::peer::{
    Actuation, ControllerPeer, ControllerSetup, Driven, Missing, PlantPeer, PlantSetup,
};
use crate::pid::PidGains;
use crate::plant::{ModelError, StateSpace, TransferFunction};
use crate::record::LoopRecord;
use crate::reference::SquareWave;

acklab_core::words! {
    /// How the loop's delay is divided between the two ways.
    #[derive(Default)]
    pub enum Split {
        /// Half each; of an odd number of ticks the larger part to the actuator.
        #[default]
        Half = "half",
        /// All from sensor to controller.
        Sensor = "sensor",
        /// All from controller to actuator.
        Actuator = "actuator",
    }
}

/// A loop over fixed delays.
#[derive(Clone, Debug)]
pub struct MotorLoop {
    pub model: StateSpace,
    pub gains: PidGains,
    /// Sampling period h of both sides.
    pub period: Span,
    /// From a sample to the action of its command, the waiting for ticks apart.
    pub loop_delay: Span,
    /// Its division between the two ways.
    pub split: Split,
    /// What makes the controller compute.
    pub driven: Driven,
    /// When commands begin to act.
    pub actuation: Actuation,
    /// The controller's first tick; the plant's is at zero.
    pub phase: Span,
    /// Probability with which each sample and each command is lost.
    pub loss: f64,
    /// What stands in for a missing sample or command.
    pub missing: Missing,
    /// The set point.
    pub reference: SquareWave,
    /// How long; the period that begins last is finished.
    pub duration: Span,
}

impl Default for MotorLoop {
    /// The ANCE article's motor, controller and reference for 30 s, without delay, driven by time,
    /// commands latched at the tick.
    fn default() -> Self {
        Self {
            model: TransferFunction::dc_motor().to_state_space(),
            gains: PidGains::default(),
            period: Span::from_millis(14),
            loop_delay: Span::ZERO,
            split: Split::default(),
            driven: Driven::default(),
            actuation: Actuation::Tick,
            phase: Span::ZERO,
            loss: 0.0,
            missing: Missing::default(),
            reference: SquareWave::default(),
            duration: Span::from_secs(30),
        }
    }
}

impl MotorLoop {
    /// The delays from sensor to controller and from controller to actuator.
    pub fn ways(&self) -> (Span, Span) {
        let ticked = self.driven == Driven::Time && self.actuation != Actuation::Arrival;
        let unit = if ticked { self.period } else { Span::from_nanos(1) };
        let units = self.loop_delay.as_nanos().div_ceil(unit.as_nanos().max(1));
        let to_controller = match self.split {
            Split::Half => units / 2,
            Split::Sensor => units,
            Split::Actuator => 0,
        };
        (unit * to_controller, unit * (units - to_controller))
    }
}

/// Runs the loop; losses are drawn from streams under `seed`, and `on_event` sees every event.
pub fn motor_loop(
    setup: &MotorLoop,
    seed: u64,
    mut on_event: impl FnMut(&Event),
) -> Result<LoopRecord, ModelError> {
    let mut run = LoopRun::new(setup, seed)?;
    let mut record = LoopRecord::new(setup.period);
    while run.next_time().is_some() {
        run.turn(|event| {
            record.on_event(event);
            on_event(event);
        });
    }
    Ok(record)
}

/// A loop while it runs: plant, controller and the two delay lines between them.
pub struct LoopRun {
    plant: PlantPeer,
    controller: ControllerPeer,
    to_controller: DelayLine,
    to_plant: DelayLine,
    end: Time,
    sink: Sink,
}

/// A way that delays every packet alike and loses some.
struct DelayLine {
    delay: Span,
    loss: f64,
    draws: Rng,
    flying: VecDeque<(Time, Packet)>,
}

impl DelayLine {
    fn send(&mut self, now: Time, packet: Packet) {
        if self.loss == 0.0 || !self.draws.chance(self.loss) {
            self.flying.push_back((now + self.delay, packet));
        }
    }

    fn arrived(&mut self, now: Time) -> Option<Packet> {
        self.flying.pop_front_if(|(at, _)| *at <= now).map(|(_, packet)| packet)
    }
}

impl LoopRun {
    /// The loop at time zero.
    pub fn new(setup: &MotorLoop, seed: u64) -> Result<Self, ModelError> {
        let plant_addr = Addr { node: NodeId(0), port: 5000 };
        let controller_addr = Addr { node: NodeId(1), port: 5000 };
        let plant = PlantPeer::new(PlantSetup {
            period: setup.period,
            actuation: setup.actuation,
            missing: setup.missing,
            reference: setup.reference,
            ..PlantSetup::new(setup.model.clone(), plant_addr, controller_addr)
        })?;
        let controller = ControllerPeer::new(ControllerSetup {
            gains: setup.gains,
            period: setup.period,
            phase: setup.phase,
            driven: setup.driven,
            missing: setup.missing,
            reference: setup.reference,
            ..ControllerSetup::new(controller_addr, plant_addr)
        })?;
        let (forth, back) = setup.ways();
        let line = |delay, name| DelayLine {
            delay,
            loss: setup.loss,
            draws: Rng::named(seed, name),
            flying: VecDeque::new(),
        };
        let periods = setup.duration.as_nanos().div_ceil(setup.period.as_nanos());
        Ok(Self {
            plant,
            controller,
            to_controller: line(forth, SAMPLES),
            to_plant: line(back, COMMANDS),
            end: Time::ZERO + setup.period * periods,
            sink: Sink::new(Interest::MESSAGE),
        })
    }

    /// Draws the losses from here on from streams under another seed.
    pub fn reseed(&mut self, seed: u64) {
        self.to_controller.draws.reseed(seed);
        self.to_plant.draws.reseed(seed);
    }

    /// When something happens next; `None` at the end.
    pub fn next_time(&self) -> Option<Time> {
        let flying = [&self.to_controller, &self.to_plant]
            .map(|line| line.flying.front().map(|(at, _)| *at));
        let due = [self.plant.poll_timeout(), self.controller.poll_timeout()];
        flying.into_iter().chain(due).flatten().min().filter(|&at| at <= self.end)
    }

    /// Lets everything happen that happens next, and shows its events.
    pub fn turn(&mut self, on_event: impl FnMut(&Event)) {
        let Some(now) = self.next_time() else { return };
        self.exchange(now);
        self.plant.handle_timeout(now, &mut self.sink);
        self.exchange(now);
        self.controller.handle_timeout(now, &mut self.sink);
        self.exchange(now);
        self.sink.drain().as_slice().iter().for_each(on_event);
    }

    /// Delivers what has arrived and takes what leaves, until nothing moves at this instant.
    fn exchange(&mut self, now: Time) {
        loop {
            let mut moved = false;
            while let Some(packet) = self.plant.poll_transmit(now, &mut self.sink) {
                self.to_controller.send(now, packet);
                moved = true;
            }
            while let Some(packet) = self.controller.poll_transmit(now, &mut self.sink) {
                self.to_plant.send(now, packet);
                moved = true;
            }
            while let Some(packet) = self.to_controller.arrived(now) {
                self.controller.handle_packet(now, packet, &mut self.sink);
                moved = true;
            }
            while let Some(packet) = self.to_plant.arrived(now) {
                self.plant.handle_packet(now, packet, &mut self.sink);
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }
}

/// Names of the streams that losses are drawn from.
const SAMPLES: &str = "motor-loop/samples";
const COMMANDS: &str = "motor-loop/commands";
