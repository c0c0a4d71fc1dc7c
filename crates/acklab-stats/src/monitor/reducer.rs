//! Reduces one run to a number, or to slices in which a steady state is looked for.
//!
//! Over time, a value weighs as long as the signals keep it. `per c`, the value of a state weighs as much
//! as the counter c is larger there than at the state before: the queue's length per packet that was
//! dropped, say, or the delay per packet that came. A counter that falls weighs nothing. Values that are
//! not finite are passed over, with their weight.

use super::outcome::{RunOutcome, Slice};
use super::until::times;
use crate::distribution::Distribution;
use crate::query::{Expression, Reduction, Value, Window, Within};

/// A run on its way to one number.
#[derive(Clone, Debug)]
pub(super) struct Reducer {
    expression: Expression<usize>,
    counter: Option<usize>,
    within: Within,
    /// (clock, value, count) of the last state.
    last: Option<(f64, f64, f64)>,
    sum: Sink,
    over: bool,
}

/// What has been gathered.
#[derive(Clone, Debug)]
enum Sink {
    Max(Option<f64>),
    Min(Option<f64>),
    Last(Option<f64>),
    /// An average is kept by the weight, a sum is not.
    Weighted(Slice, Reduction),
    Distribution(Distribution, f64),
    Slices(Vec<Slice>),
}

impl Reducer {
    pub(super) fn new(window: &Window<usize>, value: &Value<usize>) -> Self {
        let sum = match value.reduction {
            Reduction::Max => Sink::Max(None),
            Reduction::Min => Sink::Min(None),
            Reduction::Last => Sink::Last(None),
            Reduction::Quantile(share) => Sink::Distribution(Distribution::default(), share),
            reduction => Sink::Weighted(Slice::default(), reduction),
        };
        Self::into(window, value, sum)
    }

    pub(super) fn in_slices(window: &Window<usize>, value: &Value<usize>) -> Self {
        let mut reducer = Self::into(window, value, Sink::Slices(vec![Slice::default(); SLICES]));
        reducer.within.from = reducer.within.from.max(0.0);
        reducer
    }

    fn into(window: &Window<usize>, value: &Value<usize>, sum: Sink) -> Self {
        let Value { within, per, expression, .. } = value.clone();
        let within = times(window, within);
        Self { expression, counter: per, within, last: None, sum, over: false }
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Takes the state from `clock` on; says whether all that counts was seen.
    pub(super) fn observe(&mut self, clock: f64, values: &[f64]) -> bool {
        if self.over {
            return true;
        }
        let Within { from, to } = self.within;
        let enters = self.last.is_some_and(|(since, ..)| since < from) && clock > from;
        self.hold(clock, enters);
        self.over = clock > to;
        if self.over {
            return true;
        }
        let value = self.expression.evaluate(values);
        let count = self.counter.and_then(|slot| values.get(slot)).copied().unwrap_or(0.0);
        if clock >= from {
            self.sum.state(value);
            let counted = self.last.map_or(0.0, |(.., before)| count - before);
            if counted > 0.0 {
                self.sum.weigh(value, counted, clock, clock, self.within);
            }
        }
        self.last = Some((clock, value, count));
        false
    }

    /// The last state was kept up to `clock`; it may have reached into the times that count.
    fn hold(&mut self, clock: f64, enters: bool) {
        let Some((since, value, _)) = self.last else { return };
        let Within { from, to } = self.within;
        if enters && from <= to {
            self.sum.state(value);
        }
        let (since, until) = (since.max(from), clock.min(to));
        if self.counter.is_none() && until > since {
            self.sum.weigh(value, until - since, since, until, self.within);
        }
    }

    /// The run ended at `clock`.
    pub(super) fn finish(mut self, clock: f64) -> RunOutcome {
        if !self.over {
            let from = self.within.from;
            let enters = self.last.is_some_and(|(since, ..)| since < from) && clock >= from;
            self.hold(clock, enters);
        }
        RunOutcome::Value(match self.sum {
            Sink::Max(found) | Sink::Min(found) | Sink::Last(found) => found,
            Sink::Weighted(Slice { sum, .. }, Reduction::Sum) => Some(sum),
            Sink::Weighted(Slice { weight, sum }, _) => (weight > 0.0).then(|| sum / weight),
            Sink::Distribution(distribution, share) => distribution.quantile(share),
            Sink::Slices(slices) => return RunOutcome::Slices(slices),
        })
    }
}

impl Sink {
    /// A state of the times that count, if it lasts no time, too.
    fn state(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        match self {
            Self::Max(found) => *found = Some(found.map_or(value, |found| found.max(value))),
            Self::Min(found) => *found = Some(found.map_or(value, |found| found.min(value))),
            Self::Last(found) => *found = Some(value),
            _ => {}
        }
    }

    /// A value that weighs `weight`, evenly from `since` to `until`.
    fn weigh(&mut self, value: f64, weight: f64, since: f64, until: f64, within: Within) {
        if !value.is_finite() {
            return;
        }
        match self {
            Self::Weighted(all, _) => {
                all.weight += weight;
                all.sum += weight * value;
            }
            Self::Distribution(distribution, _) => distribution.push(value, weight),
            Self::Slices(slices) => spread(slices, value, weight, since, until, within),
            _ => {}
        }
    }
}

/// Adds to each slice what falls into it.
fn spread(slices: &mut [Slice], value: f64, weight: f64, since: f64, until: f64, within: Within) {
    let width = (within.to - within.from) / slices.len() as f64;
    let place = |at: f64| (at - within.from) / width;
    let last = slices.len() - 1;
    let (first, end) = (place(since), place(until));
    for (index, slice) in slices.iter_mut().enumerate().skip((first as usize).min(last)) {
        let inside = end.min(if index == last { end } else { index as f64 + 1.0 })
            - first.max(if index == 0 { first } else { index as f64 });
        let weight = if end > first { weight * inside / (end - first) } else { weight };
        slice.weight += weight;
        slice.sum += weight * value;
        if end <= index as f64 + 1.0 {
            return;
        }
    }
}

/// How finely a steady state is looked at.
const SLICES: usize = 1000;
