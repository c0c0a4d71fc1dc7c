//! The observer of one direction: a [`Recorder`] while the capture is read, a judgement at the end.

use acklab_core::time::Span;

use super::direction;
use crate::diagnosis::Direction;
use crate::flow::DirectionFacts;
use crate::flow::observe::{AckSeen, DataSeen, DirectionObserver};
use crate::segment::Endpoint;
use crate::stall::Recorder;

/// Observes one direction and diagnoses it when it is over.
#[derive(Debug, Default)]
pub struct Analyst {
    recorder: Recorder,
}

impl DirectionObserver for Analyst {
    type Report = Box<Direction>;

    fn open(_from: Endpoint, _to: Endpoint) -> Self {
        Self::default()
    }

    fn on_data(&mut self, seen: &DataSeen<'_>) {
        self.recorder.on_data(seen);
    }

    fn on_ack(&mut self, seen: &AckSeen) {
        self.recorder.on_ack(seen);
    }

    fn held_bytes(&self) -> usize {
        self.recorder.held_bytes()
    }

    fn shed(&mut self) {
        self.recorder.shed();
    }

    fn finish(mut self, facts: &DirectionFacts, opposite: &DirectionFacts) -> Box<Direction> {
        self.recorder.unroll();
        Box::new(direction::judge(&self.recorder, facts, opposite))
    }

    fn stalled(report: &Box<Direction>) -> Span {
        Span::from_secs_f64(report.stalled_s())
    }
}
