//! A clock that runs on its own (4.4BSD's 200 ms fast timer, lwIP's 250 ms): ACK instants lie on a
//! lattice, while delays spread over a whole tick.

use acklab_core::math;

use super::few::EVENTS_MIN;
use super::late_acks::LateAcks;
use super::policy::{PolicyKind, Receiver, ReceiverPolicy, confidence};
use super::profiles::{PROFILES, TICKS};
use super::timer::Timer;
use crate::inferred::Sample;

/// A free-running clock: instants on a lattice, delays spread over the tick. Known ticks first, then
/// any other.
pub(super) fn find(acks: &LateAcks) -> Option<Receiver> {
    let steps: Vec<f64> = acks.instants.windows(2).map(|w| w[1] - w[0]).collect();
    let known = TICKS.iter().find_map(|(period, name)| {
        let fit = Lattice::fit(acks, &steps, *period, f64::INFINITY)?;
        let enough = fit.of > EVENTS_MIN && fit.on * 10 >= fit.of * 7;
        enough.then(|| receiver(acks, *period, name, fit))
    });
    known.or_else(|| {
        (TICK_LEAST..=TICK_MOST).rev().find_map(|ms| {
            let period = ms as f64;
            let fit = Lattice::fit(acks, &steps, period, period * 10.0)?;
            let enough = fit.of >= 12 && fit.on * 20 >= fit.of * 19 && fit.wide;
            enough.then(|| receiver(acks, period, "fixed-tick", fit))
        })
    })
}

/// How well ACK instants and delays fit a tick.
#[derive(Clone, Copy)]
struct Lattice {
    on: usize,
    of: usize,
    skips: f64,
    /// Delays spread over a good part of the tick.
    wide: bool,
}

impl Lattice {
    /// Fits the steps up to `longest` and all delays to a tick; `None` where the delays do not fit.
    fn fit(acks: &LateAcks, steps: &[f64], period: f64, longest: f64) -> Option<Self> {
        let tolerance = (period * 0.02).clamp(1.0, 4.0);
        let (low, high) = (acks.delays.quantile(0.02), acks.delays.quantile(0.98));
        let spread = acks.delays.quantile(0.9) - acks.delays.quantile(0.1);
        let skips = if low >= period * 0.9 { 1.0 } else { 0.0 };
        let within = high <= period * (skips + 1.0) + tolerance.max(3.0);
        // A chain of holds re-arms itself at every tick, so that delays stand still just below it; only
        // a length that no fixed timer has gives it away.
        let standing = spread < period * 0.05
            && high >= period * 0.6
            && (skips == 0.0 && !PROFILES.iter().any(|p| p.fits(acks.delays.median()))
                || strays_on(acks, period));
        if !within || !(spread >= SPREAD_MS || standing) {
            return None;
        }
        let usable = steps.iter().take(STEPS_MAX).filter(|s| **s > period * 0.4 && **s <= longest);
        let off = Sample::new(usable.map(|s| off_lattice(*s, period)).collect());
        let on = off.count_between(0.0, tolerance);
        // The ACKs keep the lattice better than the data, or it is the data that does.
        let is_the_acks = spread >= 4.0 * off.quantile(0.7);
        if !is_the_acks && !standing {
            return None;
        }
        let (of, wide) = (off.len(), spread >= period * 0.25);
        Some(Self { on, of, skips, wide })
    }
}

fn receiver(acks: &LateAcks, period: f64, name: &'static str, fit: Lattice) -> Receiver {
    let Lattice { on, of, skips, .. } = fit;
    let (low, high) = (acks.delays.quantile(0.02), acks.delays.quantile(0.98));
    let evidence = format!(
        "{on} of {of} steps between delayed ACKs are multiples of {period} ms, while the delays range \
         from {low:.1} to {high:.1} ms: a clock that runs on its own"
    );
    let policy = ReceiverPolicy {
        profile: Some(name),
        candidates: vec![name],
        timer_ms: Some(period),
        kind: PolicyKind::Tick,
        confidence: confidence(on, of),
        evidence: vec![evidence],
    };
    Receiver { policy, timer: Timer::Tick { period, skips } }
}

/// Whether ACKs whose delays stray from those of the chain, as the first's does, are on the lattice of the others,
/// which a timer that data arms hits by chance alone.
fn strays_on(acks: &LateAcks, period: f64) -> bool {
    let usual = acks.delays.median();
    let apart = |wait: f64| off_lattice((wait - usual).abs(), period);
    let (mut before, mut strays, mut unlikely): (Option<usize>, usize, f64) = (None, 0, 0.0);
    let mut others = Vec::new();
    for i in 0..acks.waits.len().min(STEPS_MAX) {
        let Some(last) = before.replace(i) else { continue };
        let step = acks.instants[i] - acks.instants[last];
        let off = off_lattice(step, period);
        // One of the two answers data that came at another time of the tick.
        if apart(acks.waits[i] - acks.waits[last] + usual) >= STRAY_LEAST_MS.max(period * 0.05) {
            strays += 1;
            unlikely += math::ln(period / (2.0 * (off + CLOCK_MS)));
        } else {
            others.push(off);
        }
    }
    strays > 0 && unlikely >= BY_CHANCE && Sample::new(others).quantile(0.9) <= CLOCK_MS
}

fn off_lattice(step: f64, period: f64) -> f64 {
    let remainder = step % period;
    remainder.min(period - remainder)
}

/// Delays this far apart are not those of one timer.
const STRAY_LEAST_MS: f64 = 5.0;
/// Lattices of clocks are seen this sharply.
const CLOCK_MS: f64 = 0.5;
/// A stray on the lattice by chance is so unlikely, e to the power of it.
const BY_CHANCE: f64 = 4.0;
/// Other ticks are looked for from here, ms: shorter ones say no more than a beat of the traffic does.
const TICK_LEAST: usize = 25;
/// To here: RFC 9293 section 3.8.6.3 forbids more.
const TICK_MOST: usize = 500;
/// Delays that spread by less may do so for the grain of a timer.
const SPREAD_MS: f64 = 6.0;
/// Steps between ACKs that are looked at; more would not change the answer.
const STEPS_MAX: usize = 2_000;
