//! The time-out from the round trip's mean and mean deviation (Jacobson 1988, section 2 and appendix A).

use acklab_core::time::Span;

/// Its constants.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Before the first round trip is known.
    pub initial: Span,
    /// Never less.
    pub least: Span,
    /// Deviations on top of the mean.
    pub deviations: f64,
}

/// The estimator.
#[derive(Clone, Debug)]
pub(super) struct Timeout {
    rules: Rules,
    /// Mean and deviation, seconds.
    estimate: Option<(f64, f64)>,
    /// Doublings since the last round trip.
    backoff: u32,
}

impl Timeout {
    pub(super) fn new(rules: Rules) -> Self {
        Self { rules, estimate: None, backoff: 0 }
    }

    /// A round trip was measured.
    pub(super) fn on_round_trip(&mut self, rtt: Span) {
        let sample = rtt.as_secs_f64();
        self.backoff = 0;
        self.estimate = Some(match self.estimate {
            None => (sample, sample / 2.0),
            Some((mean, deviation)) => {
                let error = sample - mean;
                (mean + error / 8.0, deviation + (error.abs() - deviation) / 4.0)
            }
        });
    }

    /// A packet's time ran out.
    pub(super) fn on_timeout(&mut self) {
        self.backoff = (self.backoff + 1).min(MOST_DOUBLINGS);
    }

    /// The mean round trip, where known.
    pub(super) fn mean(&self) -> Option<Span> {
        self.estimate.map(|(mean, _)| Span::from_secs_f64(mean))
    }

    /// The time-out in force.
    pub(super) fn span(&self) -> Span {
        let base = self.estimate.map_or(self.rules.initial, |(mean, deviation)| {
            Span::from_secs_f64(mean + self.rules.deviations * deviation)
        });
        let base = base.max(self.rules.least);
        Span::from_nanos(base.as_nanos() << self.backoff)
    }
}

/// 64 times the time-out: where BSD stopped (tcp_backoff of Net/2).
const MOST_DOUBLINGS: u32 = 6;
