//! [`Series`]: a run's signals over time, for plots.
//!
//! Signals are steps: a value lasts until the next change. They are read on a grid fine enough for a
//! plot; of each cell the value farthest from the one before the cell is kept, so that no peak and no dip
//! is lost between two grid points.

use std::ops::ControlFlow;

use acklab_core::time::{Span, Time};

use crate::parameter::Settings;
use crate::scenario::Scenario;
use crate::signal::Segment;

/// One signal over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The signal.
    pub name: String,
    pub unit: &'static str,
    /// (seconds, value), times rising.
    pub points: Vec<(f64, f64)>,
}

/// Runs the replication of `seed` and returns the signals called `names`, in that order; names that
/// the scenario does not have are left out.
pub fn record(
    scenario: &dyn Scenario,
    settings: &Settings,
    seed: u64,
    until: Time,
    names: &[&str],
) -> Vec<Series> {
    let signals = scenario.signals(settings);
    let slots: Vec<usize> = names
        .iter()
        .filter_map(|name| signals.iter().position(|signal| signal.name == *name))
        .collect();
    let mut wanted = vec![false; signals.len()];
    for slot in &slots {
        wanted[*slot] = true;
    }
    let step = Span::from_nanos((until.since(Time::ZERO).as_nanos() / GRID).max(1));
    let mut cells: Vec<Cells> = slots.iter().map(|_| Cells::new(step)).collect();
    let path = [Segment { from: Time::ZERO, seed }];
    scenario.watch(settings, &path, until, &wanted, &mut |now, values| {
        for (cells, slot) in cells.iter_mut().zip(&slots) {
            cells.on_value(now, values[*slot]);
        }
        ControlFlow::Continue(())
    });
    slots
        .iter()
        .zip(cells)
        .map(|(slot, cells)| Series {
            name: signals[*slot].name.clone(),
            unit: signals[*slot].unit,
            points: cells.finish(until),
        })
        .collect()
}

/// The value in each cell of the grid that is farthest from the one it began with.
struct Cells {
    step: Span,
    /// End of the present cell.
    end: Time,
    began: f64,
    farthest: f64,
    value: f64,
    points: Vec<(f64, f64)>,
}

impl Cells {
    fn new(step: Span) -> Self {
        Self {
            step,
            end: Time::ZERO + step,
            began: 0.0,
            farthest: 0.0,
            value: 0.0,
            points: Vec::new(),
        }
    }

    fn on_value(&mut self, now: Time, value: f64) {
        self.pass(now);
        self.value = value;
        if (value - self.began).abs() > (self.farthest - self.began).abs() {
            self.farthest = value;
        }
    }

    fn pass(&mut self, now: Time) {
        while self.end <= now {
            self.points.push((self.end.as_secs_f64(), self.farthest));
            (self.began, self.farthest) = (self.value, self.value);
            self.end += self.step;
        }
    }

    fn finish(mut self, until: Time) -> Vec<(f64, f64)> {
        self.pass(until);
        self.points
    }
}

/// Points of a plot.
const GRID: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_between_two_grid_points_is_kept() {
        let ms = |ms| Time::ZERO + Span::from_millis(ms);
        let mut cells = Cells::new(Span::from_millis(10));
        for (at, value) in [(1, 2.0), (4, 9.0), (6, 3.0), (25, 1.0)] {
            cells.on_value(ms(at), value);
        }
        let points = cells.finish(ms(40));
        assert_eq!(points, [(0.01, 9.0), (0.02, 3.0), (0.03, 1.0), (0.04, 1.0)]);
    }
}
