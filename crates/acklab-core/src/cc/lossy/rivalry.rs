//! Beside cross traffic that fills the queue: a window of CUBIC (RFC 9438), and checks whether it is gone.
//!
//! Its only congestion event is loss beyond the path's own share, or a mark. The window is of what
//! arrives: what the path loses by itself is sent on top.
//!
//! **A check**: half of what the bottleneck serves us in a round trip without a queue stays on the way for
//! two rounds. If the queue empties then, no cross traffic fills it. Each check that was in vain, or that was
//! followed by a relapse, doubles the time until the next.

use super::super::cubic::{self, Cubic};
use super::super::{AckSample, CongestionControl, CoupledSample, LossSample, Start};
use super::unyielding::Unyielding;
use crate::time::{Span, Time};

/// The last competition, or the present.
#[derive(Clone, Debug)]
pub(super) struct Rivals {
    rivalry: Option<Box<Rivalry>>,
    /// Of a window's growth.
    growth: f64,
    /// When it ended.
    left: Option<Time>,
    /// Those that do not give way.
    unyielding: Unyielding,
}

impl Default for Rivals {
    fn default() -> Self {
        Self { rivalry: None, growth: 1.0, left: None, unyielding: Unyielding::default() }
    }
}

impl Rivals {
    /// Those that do not give way.
    pub(super) const fn unyielding(&mut self) -> &mut Unyielding {
        &mut self.unyielding
    }

    /// The window is to grow so much slower than alone.
    pub(super) const fn couple(&mut self, growth: f64) {
        self.growth = growth;
    }

    /// A competition begins, with so much on the way, bytes; `doubtful`: there may be none, so that a check
    /// comes at once. One that has just ended goes on.
    pub(super) fn begin(&mut self, now: Time, mss: f64, flight: f64, doubtful: bool) {
        let soon = self.left.is_some_and(|left| now.since(left) < SOON);
        match &mut self.rivalry {
            Some(rivalry) if soon => rivalry.resume(now),
            none => *none = Some(Box::new(Rivalry::new(now, mss, flight, doubtful))),
        }
    }

    /// What may be on the way of what will arrive, bytes.
    pub(super) fn window(&self) -> f64 {
        self.rivalry.as_ref().map_or(0.0, |rivalry| rivalry.window())
    }

    pub(super) fn on_ack(&mut self, now: Time, sample: &AckSample) {
        if let Some(rivalry) = &mut self.rivalry {
            rivalry.cubic.on_coupled(&CoupledSample { part: 1.0, growth: self.growth });
            rivalry.on_ack(now, sample);
        }
    }

    /// Congestion shows in round `number`.
    pub(super) fn on_congestion(&mut self, now: Time, number: u64) {
        if let Some(rivalry) = &mut self.rivalry {
            rivalry.on_congestion(now, number);
        }
    }

    pub(super) fn end_round(&mut self, now: Time, round: &Round) -> Finding {
        let Some(rivalry) = &mut self.rivalry else { return Finding::None };
        let finding = rivalry.end_round(now, round);
        if let Finding::Alone(_) = finding {
            self.left = Some(now);
        }
        finding
    }
}

/// A competition under way; volumes in bytes, times in seconds.
#[derive(Clone, Copy, Debug)]
struct Rivalry {
    cubic: Cubic,
    check: Option<Check>,
    /// Losses are not a new event until this round.
    deaf_until: u64,
    next_check: Time,
    patience: Span,
    /// What we were served before the check, bytes per second.
    served: f64,
}

/// Standing back.
#[derive(Clone, Copy, Debug)]
struct Check {
    /// So much stays on the way.
    flight: f64,
    /// What was waited before.
    queue: f64,
    /// Since which round so little is on the way.
    low_since: Option<u64>,
}

/// What a round was like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) number: u64,
    /// Bytes per second.
    pub(super) served: f64,
    /// On the way at its end.
    pub(super) flight: f64,
    pub(super) least_rtt: f64,
    pub(super) queue: f64,
}

/// What a round's end showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Finding {
    /// Nothing new.
    None,
    /// What was lost in this round was not our doing.
    QueueGone,
    /// No cross traffic fills the queue; what was served before the check, bytes per second.
    Alone(f64),
}

impl Rivalry {
    /// Begins with so much on the way; `doubtful`: there may be no cross traffic, so a check comes
    /// at once.
    fn new(now: Time, mss: f64, flight: f64, doubtful: bool) -> Self {
        let window = flight.max(4.0 * mss) as u64;
        let start =
            Start { mss: mss as u32, initial_window: window, initial_ssthresh: window, seed: 0 };
        Self {
            cubic: Cubic::new(&start, cubic::Options { linux: false, ..cubic::Options::default() }),
            check: None,
            deaf_until: 0,
            next_check: if doubtful { now } else { now + PATIENCE },
            patience: if doubtful { PATIENCE_IN_DOUBT } else { PATIENCE },
            served: flight,
        }
    }

    /// They were not gone: goes on where it left.
    fn resume(&mut self, now: Time) {
        self.wait(now);
        self.check = None;
        self.deaf_until = 0;
    }

    fn wait(&mut self, now: Time) {
        self.next_check = now + self.patience;
        self.patience = (self.patience * 2).min(PATIENCE_MAX);
    }

    /// What may be on the way of what will arrive, bytes.
    fn window(&self) -> f64 {
        let window = self.cubic.cwnd() as f64;
        self.check.map_or(window, |check| window.min(check.flight))
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        let limited = sample.rate.is_some_and(|rate| rate.app_limited) || self.check.is_some();
        let seen = AckSample {
            acked: sample.delivered + sample.lost,
            in_fast_recovery: false,
            cwnd_limited: !limited,
            ..*sample
        };
        self.cubic.on_ack(now, &seen);
    }

    /// Congestion shows in round `number`.
    fn on_congestion(&mut self, now: Time, number: u64) {
        if number >= self.deaf_until && self.check.is_none() {
            let in_flight = self.cubic.cwnd();
            self.cubic.on_loss(now, &LossSample { in_flight, ece: false });
            self.deaf_until = number + 2;
        }
    }

    fn end_round(&mut self, now: Time, round: &Round) -> Finding {
        let Some(check) = &mut self.check else {
            self.served = round.served;
            if now >= self.next_check {
                let flight = STAND_BACK * round.served * round.least_rtt;
                self.check = Some(Check { flight, queue: round.queue, low_since: None });
            }
            return Finding::None;
        };
        if round.flight > 1.25 * check.flight && check.low_since.is_none() {
            return Finding::None;
        }
        let low_since = *check.low_since.get_or_insert(round.number);
        if round.number < low_since + 2 {
            return Finding::None;
        }
        let queue = check.queue;
        self.check = None;
        self.deaf_until = round.number + 2;
        if round.queue <= EMPTY.max(queue / 10.0) {
            return Finding::Alone(self.served);
        }
        self.wait(now);
        if round.queue < queue / 2.0 { Finding::QueueGone } else { Finding::None }
    }
}

// All ours, measured in docs/lossy.md.
/// Of what is served in a round trip without a queue.
const STAND_BACK: f64 = 0.5;
/// Shorter than this a queue is none, seconds.
const EMPTY: f64 = 0.0015;
const PATIENCE: Span = Span::from_secs(20);
/// Where a loss began it, of which there may be some without any cross traffic.
const PATIENCE_IN_DOUBT: Span = Span::from_secs(10);
const PATIENCE_MAX: Span = Span::from_secs(60);
/// A relapse within this was none of a new rival's doing.
const SOON: Span = Span::from_secs(5);
