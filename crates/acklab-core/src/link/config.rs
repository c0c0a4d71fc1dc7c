//! What a link is like: [`LinkConfig`].

use super::impair::Impairments;
use super::loss::{Loss, LossModel};
use super::rate::RateChanges;
use super::select::Packets;
use crate::queue::Discipline;
use crate::time::Span;
use crate::units::BitRate;

/// What a link is like.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Transmitter.
    pub rate: BitRate,
    /// How its rate changes, if it does; `rate` is then what a queue is told.
    pub changes: Option<RateChanges>,
    /// Propagation.
    pub delay: Span,
    /// Added to the propagation of each packet, uniform on [0, jitter].
    pub jitter: Span,
    /// What happens on the wire.
    pub impairments: Impairments,
    /// What waits for the transmitter.
    pub queue: Discipline,
}

/// Infinitely fast, without delay or loss.
impl Default for LinkConfig {
    fn default() -> Self {
        Self::new(BitRate::INFINITE, Span::ZERO)
    }
}

impl LinkConfig {
    /// A rate and a delay; no jitter, no impairments, an unlimited queue.
    pub fn new(rate: BitRate, delay: Span) -> Self {
        Self {
            rate,
            changes: None,
            delay,
            jitter: Span::ZERO,
            impairments: Impairments::default(),
            queue: Discipline::default(),
        }
    }

    /// With independent losses of probability `loss`, and no other model of loss.
    #[must_use]
    pub fn with_loss(mut self, loss: f64) -> Self {
        let model = LossModel::Independent(loss);
        self.impairments.loss = (loss > 0.0).then_some(Loss { model, packets: Packets::All });
        self
    }

    /// With other impairments.
    #[must_use]
    pub fn with_impairments(mut self, impairments: Impairments) -> Self {
        self.impairments = impairments;
        self
    }

    /// With jitter.
    #[must_use]
    pub fn with_jitter(mut self, jitter: Span) -> Self {
        self.jitter = jitter;
        self
    }

    /// With another queue.
    #[must_use]
    pub fn with_queue(mut self, queue: Discipline) -> Self {
        self.queue = queue;
        self
    }
}
