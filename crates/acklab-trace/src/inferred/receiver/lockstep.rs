//! A chain of holds in step with the receiver's timer: a clock that runs on its own, or a timer that
//! each segment arms?
//!
//! Each released segment arms the next delayed ACK, so that delays stand still at the timer's length
//! either way. On a free-running clock the ACKs stay on its lattice: what one comes late, the next
//! makes up for, so successive intervals correlate by -1/2 and their mean is the period to the
//! drift of clocks. An armed timer starts anew with each segment: gap and lateness add up in every
//! cycle, the intervals do not correlate, and their mean is the timer plus the gap.

use super::late_acks::LateAcks;
use super::policy::{PolicyKind, Receiver, ReceiverPolicy};
use super::profiles::{PROFILES, TICKS};
use super::timer::Timer;
use crate::inferred::Sample;

/// Fewer cycles tell nothing.
const CYCLES_MIN: usize = 20;
/// Cycles longer than the delay by more than this are the application's, milliseconds.
const GAP_MOST_MS: f64 = 3.0;
/// Intervals of a lattice correlate by -0.5, less where the clock itself wanders; halfway to none.
const CORRELATION: f64 = -0.25;
/// Standard errors (one over the root of the number) that the correlation lies from none.
const ERRORS: f64 = 3.0;
/// The clock of a small stack, driven by a loop that sleeps, is slow by no more than this share.
const DRIFT: f64 = 1.5e-3;

/// The clock of a tick that a chain of holds follows.
pub(super) fn find(acks: &LateAcks) -> Option<Receiver> {
    TICKS.iter().find_map(|(period, name)| {
        let found = judge(&acks.instants, &acks.delays, *period);
        let Lockstep::Clock { mean_ms, correlation } = found else { return None };
        let evidence = format!(
            "{} delayed ACKs come every {mean_ms:.3} ms on average, although each answers data that \
             came after the one before, and what one is late the next makes up for (correlation \
             {correlation:.2}): a clock that runs on its own",
            acks.instants.len()
        );
        let armed = PROFILES.iter().filter(|p| p.fits(acks.delays.median())).map(|p| p.name);
        let policy = ReceiverPolicy {
            profile: Some(name),
            candidates: std::iter::once(*name).chain(armed.filter(|p| p != name)).collect(),
            timer_ms: Some(*period),
            kind: PolicyKind::Tick,
            confidence: 0.8,
            evidence: vec![evidence],
        };
        Some(Receiver { policy, timer: Timer::Tick { period: *period, skips: 0.0 } })
    })
}

/// The tick that fits as well as a fixed timer, if one does.
pub(super) fn may_be_tick(acks: &LateAcks) -> Option<&'static str> {
    let open = |period| judge(&acks.instants, &acks.delays, period) == Lockstep::Open;
    TICKS.iter().find(|(period, _)| open(*period)).map(|t| t.1)
}

/// What a chain in step shows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lockstep {
    /// A free-running clock, by the mean interval and the correlation of successive ones.
    Clock { mean_ms: f64, correlation: f64 },
    /// It could be either.
    Open,
    /// No chain, or an armed timer.
    Armed,
}

/// Judges ACK instants whose delays stand still against a clock of `period` milliseconds.
fn judge(instants: &[f64], delays: &Sample, period: f64) -> Lockstep {
    let cycle = |s: &f64| (delays.median()..=delays.median() + GAP_MOST_MS).contains(s);
    let wide = |s: &f64| (*s - delays.median()).abs() <= GAP_MOST_MS;
    let steps: Vec<f64> = instants.windows(2).map(|w| w[1] - w[0]).filter(wide).collect();
    if steps.len() < CYCLES_MIN || steps.len() * 10 < instants.len() * 8 {
        return Lockstep::Armed;
    }
    let mean = steps.iter().fold(0.0, |sum, s| sum + s) / steps.len() as f64;
    let off = |i: usize| steps[i] - mean;
    let power = (0..steps.len()).fold(0.0, |sum, i| sum + off(i) * off(i));
    let lagged = (1..steps.len()).fold(0.0, |sum, i| sum + off(i) * off(i - 1));
    let correlation = if power > 0.0 { lagged / power } else { 0.0 };
    let exact = (mean - period).abs() <= period * DRIFT;
    let sure = correlation < CORRELATION.min(-ERRORS / (steps.len() as f64).sqrt());
    match (exact, sure) {
        (true, true) => Lockstep::Clock { mean_ms: mean, correlation },
        (true, false) if cycle(&mean) => Lockstep::Open,
        _ => Lockstep::Armed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lateness of the n-th ACK, up to 0.4 ms.
    fn late(i: u32) -> f64 {
        f64::from(i.wrapping_mul(2_654_435_769) >> 20) / 4_096.0 * 0.4
    }

    #[test]
    fn a_clock_makes_up_for_lateness_and_an_armed_timer_adds_it_up() {
        let clock: Vec<f64> = (0..200).map(|i| f64::from(i) * 100.0 + late(i)).collect();
        let delays = Sample::new(vec![99.95; 200]);
        assert!(matches!(judge(&clock, &delays, 100.0), Lockstep::Clock { .. }));
        let mut now = 0.0;
        let armed: Vec<f64> = (0..200)
            .map(|i| {
                now += 100.03 + late(i);
                now
            })
            .collect();
        assert_eq!(judge(&armed, &delays, 100.0), Lockstep::Armed);
        assert_eq!(judge(&clock[..10], &delays, 100.0), Lockstep::Armed);
    }
}
