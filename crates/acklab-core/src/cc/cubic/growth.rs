//! How fast Linux's CUBIC grows: in whole segments, times in ticks of the kernel (`bictcp_update`).

use crate::time::{Span, Time};

/// The state between two reductions, and what is remembered of the last one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Growth {
    /// Segments acknowledged for one more in the window.
    every: u32,
    /// The window before the last reduction, less what fast convergence gives away; 0: none.
    last_max: u32,
    /// The window of the last computation, and when it was, ticks.
    computed: (u32, u64),
    /// Centre of the curve, segments.
    origin: u32,
    /// Time to the centre, 1/1024 s.
    k: u64,
    /// When this stage began.
    epoch: Option<Time>,
    /// Segments acknowledged towards the next of `reno`.
    acked: u32,
    /// What Reno's window would be.
    reno: u32,
    least_rtt: Option<Span>,
    /// Milliseconds of a tick, in which times are counted; 0 is 1.
    tick: u8,
}

impl Growth {
    /// That of a kernel whose ticks are so many milliseconds apart (1000 / CONFIG_HZ).
    pub fn ticking(tick: u8) -> Self {
        Self { tick, ..Self::default() }
    }

    /// The threshold after a loss at a window of `cwnd` segments.
    pub fn reduce(&mut self, cwnd: u32, fast_convergence: bool) -> u32 {
        self.epoch = None;
        self.last_max = if cwnd < self.last_max && fast_convergence {
            (u64::from(cwnd) * u64::from(1024 + BETA) / 2048) as u32
        } else {
            cwnd
        };
        ((u64::from(cwnd) * u64::from(BETA) / 1024) as u32).max(2)
    }

    /// A time-out: nothing of the past counts.
    pub fn forget(&mut self) {
        *self = Self::ticking(self.tick);
    }

    /// A round trip was measured. In the second after a reduction it is not looked at: the queue drains.
    pub fn on_rtt(&mut self, now: Time, rtt: Span) {
        if !self.is_young(now) {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// Whether a stage began less than a second ago.
    pub fn is_young(&self, now: Time) -> bool {
        self.epoch.is_some_and(|epoch| now.since(epoch) < Span::from_secs(1))
    }

    /// The least round trip that was measured.
    pub const fn least_rtt(&self) -> Option<Span> {
        self.least_rtt
    }

    /// For so long nothing was on the way: the curve did not move on.
    pub fn on_idle(&mut self, now: Time, idle: Span) {
        if let Some(epoch) = &mut self.epoch {
            *epoch = (*epoch + idle).min(now);
        }
    }

    /// `acked` segments more arrived: after how many the window of `cwnd` grows by one.
    pub fn every(&mut self, cwnd: u32, acked: u32, now: Time, reno_friendly: bool) -> u32 {
        self.acked += acked;
        let ticks = self.ticks(now);
        let (last_cwnd, last) = self.computed;
        if last_cwnd == cwnd && ticks - last <= SECOND_MS / self.tick() / 32 {
            return self.every.max(2);
        }
        if self.epoch.is_none() || ticks != last {
            self.compute(cwnd, acked, now);
        }
        if reno_friendly {
            self.follow_reno(cwnd);
        }
        self.every = self.every.max(2);
        self.every
    }

    /// At least Reno's window at the same mean: 8/15 of a segment a round trip (RFC 9438 section 4.3: 9/17).
    fn follow_reno(&mut self, cwnd: u32) {
        let share = ((u64::from(cwnd) * 15) >> 3).max(1);
        while u64::from(self.acked) > share {
            self.acked -= share as u32;
            self.reno += 1;
        }
        if self.reno > cwnd {
            self.every = self.every.min(cwnd / (self.reno - cwnd));
        }
    }

    fn compute(&mut self, cwnd: u32, acked: u32, now: Time) {
        let ticks = self.ticks(now);
        self.computed = (cwnd, ticks);
        if self.epoch.is_none() {
            self.begin(cwnd, acked, now);
        }
        let epoch = self.ticks(self.epoch.unwrap_or(now));
        let tick = self.tick();
        let ahead = self.least_rtt.map_or(0, |rtt| rtt.as_nanos().div_ceil(1_000_000 * tick));
        let t = ((ticks.saturating_sub(epoch) + ahead) << 10) / (SECOND_MS / tick);
        let cube = u128::from(C) * u128::from(t.abs_diff(self.k)).pow(3);
        let delta = (cube >> 40).min(1 << 30) as u32;
        let target = if t < self.k {
            self.origin.saturating_sub(delta)
        } else {
            self.origin.saturating_add(delta)
        };
        self.every = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        // The first increase comes soon where nothing was ever lost.
        if self.last_max == 0 {
            self.every = self.every.min(20);
        }
    }

    fn begin(&mut self, cwnd: u32, acked: u32, now: Time) {
        (self.epoch, self.acked, self.reno) = (Some(now), acked, cwnd);
        (self.k, self.origin) = match self.last_max.checked_sub(cwnd) {
            None | Some(0) => (0, cwnd),
            Some(distance) => (cube_root((1 << 40) / C * u64::from(distance)), self.last_max),
        };
    }
}

impl Growth {
    const fn tick(&self) -> u64 {
        if self.tick == 0 { 1 } else { self.tick as u64 }
    }

    const fn ticks(&self, at: Time) -> u64 {
        at.as_nanos() / (1_000_000 * self.tick())
    }
}

/// The largest integer whose cube is at most `of`.
fn cube_root(of: u64) -> u64 {
    let (mut low, mut high) = (0_u64, 1 << 21);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if u128::from(middle).pow(3) <= u128::from(of) { low = middle } else { high = middle - 1 }
    }
    low
}

/// What a reduction leaves, of 1024.
const BETA: u32 = 717;
/// 0.4 segments per cubic second, of 1024.
const C: u64 = 410;
/// A second, ms.
const SECOND_MS: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cube_root_is_exact() {
        for (of, root) in [(0, 0), (26, 2), (27, 3), (1_000_000, 100), (999_999, 99)] {
            assert_eq!(cube_root(of), root);
        }
    }

    #[test]
    fn times_are_those_of_the_kernels_ticks() {
        // The curve is looked at again after 31 ms at 1000 ticks a second, and after 28 ms, 7 ticks, at 250.
        for (tick, pause) in [(1, 31), (4, 28)] {
            let mut growth = Growth::ticking(tick);
            growth.reduce(100, true);
            let at = |ms| Time::from_nanos(ms * 1_000_000);
            growth.every(70, 1, at(8000), false);
            let computed = growth.computed;
            growth.every(70, 1, at(8000 + pause), false);
            assert_eq!(growth.computed, computed, "{tick}");
            growth.every(70, 1, at(8000 + pause + u64::from(tick)), false);
            assert_ne!(growth.computed, computed, "{tick}");
        }
    }

    #[test]
    fn it_reduces_by_its_beta_and_converges_fast() {
        let mut growth = Growth::default();
        assert_eq!(growth.reduce(100, true), 70);
        assert_eq!(growth.reduce(80, true), 56);
        assert_eq!(growth.last_max, 80 * 1741 / 2048);
    }
}
