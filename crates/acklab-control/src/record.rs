//! [`LoopRecord`]: the loop's events turned into costs, ages, delays and gaps.
//!
//! Plant and controller travel inside the world and tell what happens as application events with the
//! codes of [`code`], at each of their ticks. An observer hands every event to [`LoopRecord::on_event`]
//! and reads the figures at the end; others (plots, a model checker's signals) may read the same
//! events.

use std::collections::BTreeMap;

use acklab_core::event::{Event, EventKind};
use acklab_core::time::{Span, Time};

use crate::cost::Costs;

/// Codes of the application events, and what their value is.
pub mod code {
    /// The reference at the plant's tick; told before the position of the same tick.
    pub const REFERENCE: u32 = 0x0c01;
    /// The plant's output at its tick.
    pub const POSITION: u32 = 0x0c02;
    /// The ANCE article's S = Σ t|e| up to and with this tick, rad·s.
    pub const COST_S: u32 = 0x0c03;
    /// The command that acted up to the plant's tick.
    pub const ACTING: u32 = 0x0c04;
    /// A sample's first command began to act: milliseconds since the sample was taken.
    pub const LOOP_DELAY_MS: u32 = 0x0c05;
    /// At the plant's tick: milliseconds since the sample behind the acting command was taken.
    pub const COMMAND_AGE_MS: u32 = 0x0c06;
    /// At each of the plant's ticks since the first command: how many of them in a row, this one
    /// counted, had no new command.
    pub const MISSED_COMMANDS: u32 = 0x0c07;
    /// The command that the controller computed.
    pub const COMMAND: u32 = 0x0c11;
    /// When the controller computes: milliseconds since its newest sample was taken.
    pub const SAMPLE_AGE_MS: u32 = 0x0c12;
    /// When the controller computes, since the first sample: how many times in a row, this one
    /// counted, it had no new sample.
    pub const MISSED_SAMPLES: u32 = 0x0c13;
}

/// A value of the loop that changes as it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopValue {
    /// The last one that was told under this code; 0 before the first.
    Told(u32),
    /// ITAE up to now, rad·s².
    Itae,
    /// How far beyond its target the step under way went so far, as a share of the step.
    Overshoot,
    /// How long the step under way took so far until it settled, ms.
    SettlingMs,
}

impl LoopValue {
    /// The code of the event with which it changes.
    pub const fn changes_with(self) -> u32 {
        match self {
            Self::Told(code) => code,
            Self::Itae | Self::Overshoot | Self::SettlingMs => code::POSITION,
        }
    }
}

/// What one loop did in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopRecord {
    /// Costs of the error at the plant's ticks.
    pub costs: Costs,
    /// From each sample to the instant at which its first command began to act, ms.
    pub loop_delay_ms: Vec<f64>,
    /// Age of information at the controller, each time it computed, ms.
    pub sample_age_ms: Vec<f64>,
    /// Age of information at the actuator, at each plant's tick, ms.
    pub command_age_ms: Vec<f64>,
    /// Controller's ticks that had no new sample, after the first one arrived.
    pub missed_samples: u64,
    /// The most of them in a row.
    pub missed_samples_run: u64,
    /// Plant's ticks that had no new command, after the first one arrived.
    pub missed_commands: u64,
    /// The most of them in a row.
    pub missed_commands_run: u64,
    reference: f64,
    /// By code.
    told: BTreeMap<u32, f64>,
    /// The plant's last tick.
    tick: Time,
}

impl LoopRecord {
    /// Nothing recorded yet, of a loop with this sampling period.
    pub fn new(period: Span) -> Self {
        Self {
            costs: Costs::new(period),
            loop_delay_ms: Vec::new(),
            sample_age_ms: Vec::new(),
            command_age_ms: Vec::new(),
            missed_samples: 0,
            missed_samples_run: 0,
            missed_commands: 0,
            missed_commands_run: 0,
            reference: 0.0,
            told: BTreeMap::new(),
            tick: Time::ZERO,
        }
    }

    /// A value as it is now.
    pub fn value(&self, value: LoopValue) -> f64 {
        match value {
            LoopValue::Told(code) => self.told.get(&code).copied().unwrap_or(0.0),
            LoopValue::Itae => self.costs.itae(),
            LoopValue::Overshoot => self.costs.overshoot(),
            LoopValue::SettlingMs => self.costs.settling(self.tick).as_millis_f64(),
        }
    }

    /// Takes in an event; all but the loop's own are ignored.
    pub fn on_event(&mut self, event: &Event) {
        let EventKind::App { code, value, .. } = event.kind else { return };
        self.told.insert(code, value);
        match code {
            code::REFERENCE => self.reference = value,
            code::POSITION => {
                self.tick = event.time;
                self.costs.on_tick(event.time, self.reference, value);
            }
            code::LOOP_DELAY_MS => self.loop_delay_ms.push(value),
            code::COMMAND_AGE_MS => self.command_age_ms.push(value),
            code::SAMPLE_AGE_MS => self.sample_age_ms.push(value),
            code::MISSED_SAMPLES if value > 0.0 => {
                self.missed_samples += 1;
                self.missed_samples_run = self.missed_samples_run.max(value as u64);
            }
            code::MISSED_COMMANDS if value > 0.0 => {
                self.missed_commands += 1;
                self.missed_commands_run = self.missed_commands_run.max(value as u64);
            }
            _ => {}
        }
    }
}
