//! How much the delay varies by itself: a queue that grows or shrinks does so evenly between packets that follow
//! each other closely.

use crate::time::Time;

/// What neighbouring round trips say; seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    /// The last two samples.
    last: [(Time, f64); 2],
    /// By how much each of the last samples was off the line through its neighbours, as a ring, and how
    /// many there were.
    bends: [f32; BENDS],
    bent: usize,
    /// Rounds in a row in which the delay varied by itself.
    uneven: u32,
}

impl Noise {
    pub(super) const fn new() -> Self {
        Self { last: [(Time::ZERO, f64::NAN); 2], bends: [0.0; BENDS], bent: 0, uneven: 0 }
    }

    pub(super) fn on_rtt(&mut self, now: Time, rtt: f64) {
        let [(since, first), (_, middle)] = self.last;
        let off = (f64::midpoint(first, rtt) - middle).abs();
        // Before the second sample it is not a number.
        if off.is_finite() && now.since(since).as_secs_f64() < first / 2.0 {
            self.bends[self.bent % BENDS] = off as f32;
            self.bent += 1;
        }
        self.last = [self.last[1], (now, rtt)];
    }

    /// By how much the delay varies between neighbours: the median of late, so that the few turns of a
    /// queue do not count. 0.3 of the jitter where that is uniform and the order is kept.
    pub(super) fn size(&self) -> f64 {
        let mut bends = self.bends;
        f64::from(*bends.select_nth_unstable_by(BENDS / 2, f32::total_cmp).1)
    }

    /// Whether there were samples enough.
    pub(super) const fn is_known(&self) -> bool {
        self.bent >= BENDS
    }

    /// A round ends; whether the delay varied by itself in it.
    pub(super) const fn end_round(&mut self, varies: bool) {
        self.uneven = if varies { self.uneven + 1 } else { 0 };
    }

    /// Whether it has done so for longer than rivals in a queue do.
    pub(super) const fn lasts(&self) -> bool {
        self.uneven >= UNEVEN_ROUNDS
    }
}

// Ours.
/// Samples.
const BENDS: usize = 15;
const UNEVEN_ROUNDS: u32 = 4;
