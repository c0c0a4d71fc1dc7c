//! Signals: what a scenario lets a query speak about, as values over virtual time.

use std::ops::ControlFlow;

use acklab_core::time::Time;

/// A quantity that changes during a run: `itae_rad_s`, `queue.length`, `flow[1].cwnd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Name as in a query.
    pub name: String,
    /// Unit in words.
    pub unit: &'static str,
    pub doc: &'static str,
}

/// The randomness of a run from a time on. A run has one segment; a run that splits off another has the
/// other's up to where it splits, and then its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// After when: what is drawn at this very time still comes from the segment before.
    pub from: Time,
    /// Seed of everything that is drawn from then on.
    pub seed: u64,
}

/// Takes the values of all signals after each change of a wanted one, in order of time; tells whether
/// the run goes on.
pub type Watch<'a> = &'a mut dyn FnMut(Time, &[f64]) -> ControlFlow<()>;
