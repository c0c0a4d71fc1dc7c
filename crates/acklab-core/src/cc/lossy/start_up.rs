//! Start-up: the pace at which a train of packets comes through is the bottleneck's.
//!
//! Each train leaves at twice the pace of the one before, the first one at an initial window in 10 ms.
//! Its ACKs, from the first on, give the pace at which it was served: where that is clearly below the
//! pace at which it left, the bottleneck is found, a round trip and a few ACKs after the first packet.
//! Losses count as served, so that they slow nothing down.

use super::super::RateSample;
use crate::time::Time;

/// One train after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartUp {
    /// The pace of the train that leaves now, bytes per second.
    pub(super) pace: f64,
    /// Packets of this train left after so much was delivered.
    from: u64,
    /// When its first ACK came, and what was served by then, bytes.
    first: Option<(Time, f64)>,
    /// What had arrived then, bytes, and at what pace the train before arrived.
    arrived: f64,
    arrived_before: f64,
}

impl StartUp {
    pub(super) const fn new(initial_window: f64) -> Self {
        Self {
            pace: initial_window / FIRST_TRAIN,
            from: 0,
            first: None,
            arrived: 0.0,
            arrived_before: 0.0,
        }
    }

    /// An ACK; `served`: delivered or lost in all, bytes. The pace of the bottleneck, once it is found.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        rate: &RateSample,
        (served, mss): (f64, f64),
        least_rtt: f64,
        queue: f64,
    ) -> Option<f64> {
        if rate.app_limited {
            // No train: it tells of the application. The next one begins after it.
            (self.from, self.first) = (rate.total_delivered, None);
            return None;
        }
        if rate.prior_delivered < self.from {
            return None;
        }
        let Some((begin, before)) = self.first else {
            (self.first, self.arrived) = (Some((now, served)), rate.total_delivered as f64);
            return None;
        };
        let (bytes, seconds) = (served - before, now.since(begin).as_secs_f64());
        let long = seconds >= (least_rtt / 4.0).clamp(TRAIN_MIN, TRAIN_MAX);
        if !long || bytes < TRAIN_PACKETS * mss {
            return None;
        }
        let pace = bytes / seconds;
        let waits = queue > QUEUE_MIN.max(least_rtt / 4.0);
        if waits || pace < FOUND * self.pace {
            return Some(pace);
        }
        let arrived = (rate.total_delivered as f64 - self.arrived) / seconds;
        if arrived < GAIN_MIN * self.arrived_before {
            // Twice the pace brought next to nothing: the buffer is too short to show in the round trip.
            return Some(arrived);
        }
        self.arrived_before = arrived;
        self.pace = 2.0 * pace.min(self.pace);
        (self.from, self.first) = (rate.total_delivered, None);
        None
    }
}

// All ours; docs/lossy.md has what they bring.
/// In which the initial window leaves, seconds.
const FIRST_TRAIN: f64 = 0.010;
/// Seconds.
const TRAIN_MIN: f64 = 0.002;
/// Seconds.
const TRAIN_MAX: f64 = 0.010;
const TRAIN_PACKETS: f64 = 8.0;
/// Served at less than this share of its pace, the train was held up.
const FOUND: f64 = 0.75;
/// What a train must bring more than the one before, of half its pace.
const GAIN_MIN: f64 = 1.3;
/// Seconds.
const QUEUE_MIN: f64 = 0.004;
