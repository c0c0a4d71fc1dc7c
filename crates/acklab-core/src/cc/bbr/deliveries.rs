//! What has arrived and what is on the way: the rounds that follow from it, whether the connection was
//! idle, and stretches whose rates say nothing of the path.

use super::super::{AckSample, RateSample, RtoSample, SentSample};
use super::pipe::Pipe;
use super::rounds::PacketRounds;

/// C.delivered and C.inflight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deliveries {
    /// Bytes that arrived.
    total: u64,
    pipe: Pipe,
    rounds: PacketRounds,
    self_limited: SelfLimited,
    /// A segment left after nothing was on the way, and nothing has arrived since.
    idle_restart: bool,
}

impl Deliveries {
    /// A segment leaves; whether nothing was on the way, because the application had nothing to send.
    pub(super) fn on_sent(&mut self, sample: &SentSample) -> bool {
        let alone = sample.in_flight <= u64::from(sample.bytes) && !sample.retransmission;
        let restarts = alone && self.total > 0;
        self.idle_restart |= restarts;
        self.pipe.on_sent(sample);
        restarts
    }

    pub(super) fn on_ack(&mut self, sample: &AckSample) {
        self.pipe.on_ack(sample);
        self.total = self.total.saturating_add(sample.delivered);
    }

    /// Its rate; whether something other than the path limited that.
    pub(super) fn on_rate(&mut self, rate: &RateSample) -> bool {
        self.total = rate.total_delivered;
        rate.app_limited || self.self_limited.covers(rate.prior_delivered)
    }

    /// UpdateRound; whether the ACK began a round.
    pub(super) fn update_round(&mut self, rate: &RateSample) -> bool {
        self.rounds.on_ack(rate)
    }

    /// StartRound: the round in progress ends with the ACK of what leaves from now on.
    pub(super) fn start_round(&mut self) {
        self.rounds.restart(self.total);
    }

    pub(super) fn on_rto(&mut self, sample: &RtoSample) {
        self.pipe.on_rto(sample);
    }

    /// Rates are kept low on purpose until what is on the way has arrived (MarkConnectionAppLimited).
    pub(super) fn limit(&mut self) {
        self.self_limited.mark(self.total, self.pipe.bytes());
    }

    /// Something arrived after an idle time.
    pub(super) const fn end_restart(&mut self) {
        self.idle_restart = false;
    }

    pub(super) const fn is_restarting(&self) -> bool {
        self.idle_restart
    }

    /// Bytes that arrived.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Bytes on the way.
    pub(super) const fn in_flight(&self) -> u64 {
        self.pipe.bytes()
    }

    /// Rounds so far.
    pub(super) const fn round(&self) -> u64 {
        self.rounds.count()
    }

    /// Whether the latest ACK began a round.
    pub(super) const fn is_round_start(&self) -> bool {
        self.rounds.is_start()
    }
}

/// A stretch of deliveries whose rates the algorithm itself kept low: what leaves until everything now on
/// the way has arrived.
#[derive(Clone, Copy, Debug, Default)]
struct SelfLimited {
    from: u64,
    until: u64,
}

impl SelfLimited {
    fn mark(&mut self, delivered: u64, in_flight: u64) {
        if delivered > self.until {
            self.from = delivered;
        }
        self.until = delivered.saturating_add(in_flight.max(1));
    }

    /// Whether a segment that left after so much was delivered belongs to it.
    const fn covers(&self, prior_delivered: u64) -> bool {
        self.from > 0 && prior_delivered >= self.from && prior_delivered <= self.until
    }
}
