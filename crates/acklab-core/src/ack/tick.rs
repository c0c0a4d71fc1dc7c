//! The delayed ACK of a free-running tick: a lone segment is acknowledged at the n-th tick after its
//! arrival, whatever the time between.
//!
//! 4.4BSD walks all connections every 200 ms (`tcp_fasttimo`), so a delay is uniform on (0, 200] ms;
//! Windows up to 2000/XP counts `TcpDelAckTicks` = 2 ticks of 100 ms, so (100, 200] ms. The phase of
//! the tick against the traffic is the host's boot time, hence a parameter.

use super::delayed::{expire, is_due};
use super::{AckPolicy, DataSample, Decision};
use crate::time::{Span, Time};

crate::options! {
    /// The numbers of a system.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Options {
        /// After how many segments an ACK leaves at once.
        segments: u32 as count(1, 1_000_000) = "2",
        /// From one tick to the next.
        period: Span as positive_span() = "200ms",
        /// At which tick after its arrival a lone segment is acknowledged; 1 is the next.
        ticks: u32 as count(1, 1000) = "1",
    }
}

/// Every n-th segment, or the `ticks`-th tick after the first unacknowledged one.
#[derive(Clone, Copy, Debug)]
pub struct Tick {
    segments: u32,
    period: Span,
    ticks: u32,
    phase: Span,
    deadline: Option<Time>,
}

impl Tick {
    /// Ticks come at `phase` times the period, and a period after that, ...; `phase` is in [0, 1).
    pub fn new(phase: f64, options: Options) -> Self {
        let Options { segments, period, ticks } = options;
        let period = Span::from_nanos(period.as_nanos().max(1));
        let phase = shifted(period, phase);
        Self { segments, period, ticks: ticks.max(1), phase, deadline: None }
    }

    fn after(&self, now: Time) -> Time {
        next_tick(now, self.period, self.phase, self.ticks)
    }
}

/// Where in a clock's period a `phase` in [0, 1) is.
pub(super) fn shifted(period: Span, phase: f64) -> Span {
    Span::from_nanos((period.as_nanos() as f64 * phase) as u64 % period.as_nanos().max(1))
}

/// The `ticks`-th tick strictly after `now`.
pub(super) fn next_tick(now: Time, period: Span, phase: Span, ticks: u32) -> Time {
    let (now, period, phase) = (now.as_nanos(), period.as_nanos(), phase.as_nanos());
    // Shifted by one period so that a `now` before the first tick needs no negative numbers.
    let passed = (now + period - phase) / period;
    Time::from_nanos(((passed + u64::from(ticks)) * period + phase) - period)
}

impl AckPolicy for Tick {
    fn on_data(&mut self, now: Time, sample: &DataSample) -> Decision {
        if is_due(self.segments, sample) {
            return Decision::Now;
        }
        if self.deadline.is_none() {
            self.deadline = Some(self.after(now));
        }
        Decision::Wait
    }

    fn on_request(&mut self, segments: u32) {
        self.segments = segments;
    }

    fn on_ack_sent(&mut self, _now: Time) {
        self.deadline = None;
    }

    fn handle_timeout(&mut self, now: Time, _rto: Span) -> Decision {
        expire(&mut self.deadline, now)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_tick_strictly_after_an_arrival() {
        let check = |now_ms, ticks, phase_ms, expect_ms| {
            let at = next_tick(
                Time::ZERO + Span::from_millis(now_ms),
                Span::from_millis(100),
                Span::from_millis(phase_ms),
                ticks,
            );
            assert_eq!(
                at,
                Time::ZERO + Span::from_millis(expect_ms),
                "{now_ms} {ticks} {phase_ms}"
            );
        };
        check(0, 1, 0, 100);
        check(0, 1, 30, 30);
        check(30, 1, 30, 130);
        check(99, 2, 0, 200);
        check(100, 2, 0, 300);
        check(101, 2, 0, 300);
        check(129, 2, 30, 230);
    }
}
