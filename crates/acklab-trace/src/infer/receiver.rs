//! How the receiver times its acknowledgments.
//!
//! Only ACKs that waited for a while say something of a timer. Three kinds are told apart: a timer
//! that starts when data arrives (delays cluster at its length; RFC 9293 section 3.8.6.3 allows up
//! to 500 ms), a clock that runs on its own (4.4BSD's 200 ms fast timer, lwIP's 250 ms: ACK
//! instants lie on a lattice while delays spread over a whole tick), and Linux's ato, which starts
//! at 40 ms and follows the traffic. Which system that is: see [`PROFILES`]; where several fit, all
//! are listed. Not modelled: stretch ACKs of receive offload, which show in segments per ACK.

use acklab_core::time::Time;

use super::lockstep::{self, Lockstep};
use super::path::Path;
use super::spread::Sample;
use crate::diagnosis::{PolicyKind, ReceiverPolicy};
use crate::stall::records::{AckRecord, Counts};

/// A system's fixed delayed-ACK timer.
struct Profile {
    name: &'static str,
    timer_ms: f64,
    /// Delays lie from `timer_ms - early` to `timer_ms + late`.
    early: f64,
    late: f64,
}

/// The timers of known systems. Linux: TCP_DELACK_MIN = HZ/25 (include/net/tcp.h), on a jiffy grid
/// of 1 to 10 ms; FreeBSD: net.inet.tcp.delacktime, 100 ms to 12.1, 40 ms since r360010; Windows 10
/// and Server 2019: DelayedAckTimeout 40 ms, 2012 to 2016: 50 ms, before: 200 ms (KB 328890); QNX
/// and NetBSD: TCP_DELACK_TICKS = hz/5; xnu: TCP_RETRANSHZ/10.
const PROFILES: [Profile; 8] = [
    Profile { name: "linux", timer_ms: 40.0, early: 6.0, late: 10.0 },
    Profile { name: "freebsd-12.2", timer_ms: 40.0, early: 1.0, late: 2.0 },
    Profile { name: "windows-10", timer_ms: 40.0, early: 1.0, late: 2.0 },
    Profile { name: "windows-2012", timer_ms: 50.0, early: 1.0, late: 4.0 },
    Profile { name: "freebsd-12.1", timer_ms: 100.0, early: 1.5, late: 10.5 },
    Profile { name: "macos", timer_ms: 100.0, early: 1.5, late: 10.5 },
    Profile { name: "windows-7", timer_ms: 200.0, early: 3.0, late: 16.0 },
    Profile { name: "qnx-7.0", timer_ms: 200.0, early: 3.0, late: 11.0 },
];

/// Ticks of clocks that run on their own, longest first, and who has them.
const TICKS: [(f64, &str); 6] = [
    (500.0, "bsd-slow-timer"),
    (250.0, "lwip"),
    (200.0, "bsd-4.4"),
    (100.0, "windows-7"),
    (50.0, "fixed-tick"),
    (20.0, "fixed-tick"),
];

/// Other ticks are looked for from here, ms: shorter ones say no more than a
/// beat of the traffic does.
const TICK_LEAST: usize = 25;
/// To here: RFC 9293 section 3.8.6.3 forbids more.
const TICK_MOST: usize = 500;
/// Delays that spread by less may do so for the grain of a timer.
const SPREAD_MS: f64 = 6.0;
/// Steps between ACKs that are looked at; more would not change the answer.
const STEPS_MAX: usize = 2_000;
/// Fewer events say nothing of a timer.
const EVENTS_MIN: usize = 3;
/// An ACK this soon was not delayed by a timer.
const DELAYED_MS: f64 = 8.0;
/// Confidence without the handshake.
const HEADLESS: f64 = 0.8;
/// Width of a cluster: a jiffy grid of 4 ms and some scheduling, or a twentieth of the timer.
const CLUSTER_MS: f64 = 5.0;

/// What the ACKs of one direction say of their sender.
pub struct Delays {
    /// Delays of pure ACKs after the oldest segment they acknowledge reached the receiver.
    oldest: Sample,
    /// ACK instants of the same, in order, milliseconds.
    instants: Vec<f64>,
    /// ACKs of exactly two segments, of which the second was acknowledged at once.
    second_segment: usize,
    /// ACKs that came late although two small segments or more waited for one.
    late_second: usize,
    prompt: u64,
}

impl Delays {
    /// Collects the delayed ACKs.
    pub fn of(acks: &[AckRecord], counts: &Counts, path: &Path) -> Self {
        let near = path.near_ms.unwrap_or(0.0);
        let own = |ns: u64| (ns as f64 / 1e6 - near).max(0.0);
        let origin = acks.first().map_or(Time::ZERO, |a| a.time);
        let delayed: Vec<&AckRecord> = acks
            .iter()
            .filter(|a| a.is_timed() && own(a.oldest_age) >= DELAYED_MS)
            // The second segment, not the timer, brought these.
            .filter(|a| a.segments < 2 || own(a.newest_age) >= 2.0)
            .collect();
        let prompt_far = acks
            .iter()
            .filter(|a| {
                a.pure && a.small && a.segments == 1 && own(a.oldest_age) < DELAYED_MS / 4.0
            })
            .count();
        Self {
            oldest: Sample::new(delayed.iter().map(|a| own(a.oldest_age)).collect()),
            instants: delayed.iter().map(|a| a.time.since(origin).as_millis_f64()).collect(),
            second_segment: acks
                .iter()
                .filter(|a| {
                    a.pure && a.segments == 2 && own(a.oldest_age) >= 5.0 && own(a.newest_age) < 2.0
                })
                .count(),
            late_second: acks
                .iter()
                .filter(|a| a.pure && a.small && a.segments >= 2 && own(a.newest_age) >= 5.0)
                .count(),
            prompt: counts.prompt_single_acks + prompt_far as u64,
        }
    }
}

/// The timer that ACK delays show, as needed to tell what released a hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timer {
    /// A fixed time after arrival: delays from `low` to `high` milliseconds.
    Fixed {
        /// Least delay.
        low: f64,
        /// Largest delay.
        high: f64,
    },
    /// A free-running tick.
    Tick {
        /// Its period, milliseconds.
        period: f64,
        /// Whole ticks that pass at least.
        skips: f64,
    },
    /// Constant delays that no timer has: the network's round trip.
    Network,
    /// No timer known: a delay this long is taken for one.
    Unknown {
        /// Least delay.
        least: f64,
    },
}

impl Timer {
    /// Whether a pure ACK with this delay came from the timer.
    pub fn explains(self, delay_ms: f64) -> bool {
        match self {
            Self::Fixed { low, high } => (low..=high).contains(&delay_ms),
            Self::Tick { period, skips } => {
                (2.0..=period * (skips + 1.0) + 3.0).contains(&delay_ms)
            }
            Self::Network => false,
            Self::Unknown { least } => delay_ms >= least,
        }
    }
}

/// Infers the receiver's policy, and the timer behind it.
pub fn infer(delays: &Delays, path: &Path) -> (ReceiverPolicy, Timer) {
    if delays.oldest.len() < EVENTS_MIN {
        return few(delays, path);
    }
    if let Some(found) = tick(delays) {
        return found;
    }
    if let Some(found) = in_step(delays) {
        return found;
    }
    fixed(delays, path).unwrap_or_else(|| adaptive(delays, path))
}

/// The clock of a tick that a chain of holds follows.
fn in_step(delays: &Delays) -> Option<(ReceiverPolicy, Timer)> {
    TICKS.iter().find_map(|(period, name)| {
        let found = lockstep::judge(&delays.instants, &delays.oldest, *period);
        let Lockstep::Clock { mean_ms, correlation } = found else { return None };
        let evidence = format!(
            "{} delayed ACKs come every {mean_ms:.3} ms on average, although each answers data that \
             came after the one before, and what one is late the next makes up for (correlation \
             {correlation:.2}): a clock that runs on its own",
            delays.instants.len()
        );
        let armed = PROFILES.iter().filter(|p| fits(p, delays.oldest.median())).map(|p| p.name);
        let policy = ReceiverPolicy {
            profile: Some(name),
            candidates: std::iter::once(*name).chain(armed.filter(|p| p != name)).collect(),
            timer_ms: Some(*period),
            kind: PolicyKind::Tick,
            confidence: 0.8,
            evidence: vec![evidence],
        };
        Some((policy, Timer::Tick { period: *period, skips: 0.0 }))
    })
}

/// The tick that fits as well as a fixed timer, if one does.
fn tick_too(delays: &Delays) -> Option<&'static str> {
    let open = |period| lockstep::judge(&delays.instants, &delays.oldest, period) == Lockstep::Open;
    TICKS.iter().find(|(period, _)| open(*period)).map(|t| t.1)
}

fn few(delays: &Delays, path: &Path) -> (ReceiverPolicy, Timer) {
    let known = PROFILES
        .iter()
        .filter(|p| delays.oldest.values().iter().all(|d| fits(p, *d)))
        .map(|p| p.name)
        .collect::<Vec<_>>();
    let timer = Timer::Unknown { least: if path.handshake { 1.5 * DELAYED_MS } else { 35.0 } };
    if delays.oldest.is_empty() && delays.prompt >= 10 {
        let evidence = format!("{} small segments were acknowledged within 2 ms", delays.prompt);
        let policy = ReceiverPolicy {
            profile: Some("every-segment"),
            candidates: vec!["every-segment", "linux", "macos"],
            timer_ms: None,
            kind: PolicyKind::Immediate,
            confidence: 1.0 - 1.0 / delays.prompt as f64,
            evidence: vec![evidence],
        };
        return (policy, timer);
    }
    let mut policy = ReceiverPolicy::unknown();
    if !delays.oldest.is_empty() && !known.is_empty() {
        policy.candidates = known;
        policy.evidence.push(format!(
            "only {} delayed ACK{} seen, after {:.1} ms at most",
            delays.oldest.len(),
            if delays.oldest.len() == 1 { "" } else { "s" },
            delays.oldest.max()
        ));
    }
    (policy, timer)
}

/// A clock of its own: instants on a lattice, delays spread over the tick. Known ticks first, then
/// any other.
fn tick(delays: &Delays) -> Option<(ReceiverPolicy, Timer)> {
    let steps: Vec<f64> = delays.instants.windows(2).map(|w| w[1] - w[0]).collect();
    let known = TICKS.iter().find_map(|(period, name)| {
        let fit = lattice(delays, &steps, *period, f64::INFINITY)?;
        let enough = fit.of > EVENTS_MIN && fit.on * 10 >= fit.of * 7;
        enough.then(|| tick_policy(delays, *period, name, fit))
    });
    known.or_else(|| {
        (TICK_LEAST..=TICK_MOST).rev().find_map(|ms| {
            let period = ms as f64;
            let fit = lattice(delays, &steps, period, period * 10.0)?;
            let enough = fit.of >= 12 && fit.on * 20 >= fit.of * 19 && fit.wide;
            enough.then(|| tick_policy(delays, period, "fixed-tick", fit))
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

/// Fits the steps up to `longest` and all delays to a tick; `None` where the delays do not fit.
fn lattice(delays: &Delays, steps: &[f64], period: f64, longest: f64) -> Option<Lattice> {
    let tolerance = (period * 0.02).clamp(1.0, 4.0);
    let (low, high) = (delays.oldest.quantile(0.02), delays.oldest.quantile(0.98));
    let spread = delays.oldest.quantile(0.9) - delays.oldest.quantile(0.1);
    let skips = if low >= period * 0.9 { 1.0 } else { 0.0 };
    let within = high <= period * (skips + 1.0) + tolerance.max(3.0);
    // A chain of holds re-arms itself at every tick, so that delays stand still just below it; only
    // a length that no fixed timer has gives it away.
    let standing = spread < period * 0.05
        && high >= period * 0.6
        && skips == 0.0
        && !PROFILES.iter().any(|p| fits(p, delays.oldest.median()));
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
    Some(Lattice { on, of, skips, wide })
}

fn tick_policy(
    delays: &Delays,
    period: f64,
    name: &'static str,
    fit: Lattice,
) -> (ReceiverPolicy, Timer) {
    let Lattice { on, of, skips, .. } = fit;
    let (low, high) = (delays.oldest.quantile(0.02), delays.oldest.quantile(0.98));
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
    (policy, Timer::Tick { period, skips })
}

fn off_lattice(step: f64, period: f64) -> f64 {
    let remainder = step % period;
    remainder.min(period - remainder)
}

/// A timer from arrival: delays cluster at it and hardly any is longer.
fn fixed(delays: &Delays, path: &Path) -> Option<(ReceiverPolicy, Timer)> {
    let sample = &delays.oldest;
    let width = CLUSTER_MS.max(sample.median() * 0.05);
    let (low, count) = sample.densest(width);
    let high = low + width;
    let beyond = sample.len() - sample.count_between(0.0, high + 1.0);
    if count < EVENTS_MIN || count * 10 < sample.len() * 3 || beyond * 4 > sample.len() {
        return None;
    }
    let inside =
        Sample::new(sample.values().iter().copied().filter(|d| (low..=high).contains(d)).collect());
    let (median, spread) = (inside.median(), inside.quantile(0.9) - inside.quantile(0.1));
    let mut candidates = rank(&inside, spread, delays);
    if path.near_ms.is_none() {
        // 50 ms could as well be a round trip; the common timers are likelier than that.
        candidates.retain(|name| *name != "windows-2012");
    }
    let nominal = PROFILES.iter().find(|p| candidates.first() == Some(&p.name)).map(|p| p.timer_ms);
    // A constant delay that no system has is more likely the network, unless the handshake has
    // shown how long that takes.
    if nominal.is_none() && path.near_ms.is_none() {
        let mut policy = ReceiverPolicy::unknown();
        policy.evidence.push(format!(
            "ACKs came {median:.1} ms after the data, which no known timer does: the round trip"
        ));
        return Some((policy, Timer::Network));
    }
    let linux = candidates.first() == Some(&"linux");
    let mut evidence = vec![format!(
        "{count} of {} delayed ACKs waited {:.1} to {:.1} ms (median {median:.1})",
        sample.len(),
        inside.min(),
        inside.max()
    )];
    if let Some(grid) = jiffy_grid(&inside) {
        evidence.push(format!("they lie on a grid of {grid:.0} ms"));
    }
    if delays.late_second >= EVENTS_MIN {
        evidence.push(format!(
            "{} ACKs came late although two segments waited for them",
            delays.late_second
        ));
    } else if delays.second_segment >= EVENTS_MIN {
        evidence.push(format!(
            "{} times the second segment was acknowledged at once",
            delays.second_segment
        ));
    }
    if !path.handshake {
        evidence.push(match path.near_ms {
            Some(near) => format!(
                "without the handshake, the fastest ACK ({near:.1} ms) is taken for the round trip"
            ),
            None => "the round trip is not known: the handshake is missing".into(),
        });
    }
    if let Some(tick) = tick_too(delays).filter(|t| !candidates.contains(t)) {
        candidates.push(tick);
        evidence.push("a clock of this period that runs on its own would look the same".into());
    }
    let policy = ReceiverPolicy {
        profile: candidates.first().copied().or(Some("fixed-timer")),
        timer_ms: Some(nominal.unwrap_or(median)),
        kind: if linux && spread > 1.0 { PolicyKind::Adaptive } else { PolicyKind::Fixed },
        confidence: confidence(count, count + beyond) * if path.handshake { 1.0 } else { HEADLESS }
            / (1.0 + 0.2 * candidates.len().saturating_sub(1) as f64),
        candidates,
        evidence,
    };
    let slack = (median * 0.1).max(2.0);
    Some((
        policy,
        Timer::Fixed { low: inside.min() - slack, high: sample.max().max(inside.max() + slack) },
    ))
}

/// The profiles that fit a cluster, likeliest first.
fn rank(inside: &Sample, spread: f64, delays: &Delays) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = PROFILES
        .iter()
        .filter(|p| fits(p, inside.quantile(0.1)) && fits(p, inside.quantile(0.9)))
        .map(|p| p.name)
        .collect();
    // FreeBSD and Windows acknowledge every second segment whatever its size; Linux counts bytes.
    if delays.second_segment >= EVENTS_MIN && delays.late_second * 10 < delays.second_segment {
        names.retain(|n| *n != "linux");
    } else if spread < 0.5 && names.len() > 1 && delays.late_second == 0 {
        // Linux's timer runs in jiffies of 1 to 10 ms; delays as equal as these fit any of them.
        names.sort_by_key(|n| usize::from(*n != "linux"));
    }
    if spread >= 1.0 || delays.late_second >= EVENTS_MIN {
        let linux = names.contains(&"linux");
        names.retain(|n| !linux || *n == "linux");
    }
    names
}

fn fits(profile: &Profile, delay_ms: f64) -> bool {
    (profile.timer_ms - profile.early..=profile.timer_ms + profile.late).contains(&delay_ms)
}

/// The spacing of a grid on which delays pile up: 4 or 10 ms, if their remainders gather.
fn jiffy_grid(inside: &Sample) -> Option<f64> {
    if inside.len() < 20 {
        return None;
    }
    [10.0, 4.0].into_iter().find(|grid| {
        let remainders = Sample::new(inside.values().iter().map(|d| d % grid).collect());
        let spread = inside.quantile(0.95) - inside.quantile(0.05);
        spread > *grid && remainders.densest(grid * 0.2).1 * 2 > inside.len()
    })
}

/// Spread-out delays: Linux's ato if they begin at its minimum, else unknown.
fn adaptive(delays: &Delays, path: &Path) -> (ReceiverPolicy, Timer) {
    let sample = &delays.oldest;
    let (low, high) = (sample.quantile(0.1), sample.quantile(0.95));
    let evidence = format!("{} delayed ACKs spread from {low:.1} to {high:.1} ms", sample.len());
    let linux = (35.0..=50.0).contains(&low) && high <= 210.0;
    let mut policy = ReceiverPolicy::unknown();
    policy.evidence.push(evidence);
    if linux {
        policy.profile = Some("linux");
        policy.candidates = vec!["linux"];
        policy.timer_ms = Some(40.0);
        policy.kind = PolicyKind::Adaptive;
        policy.confidence = confidence(sample.len(), sample.len()) * 0.7;
    }
    // Round trips vary under load by as much as they are long; what is shorter is the network's.
    let least = if linux { low - 5.0 } else { path.near_ms.unwrap_or(0.0).max(1.5 * DELAYED_MS) };
    (policy, Timer::Unknown { least })
}

/// Rule of succession, capped.
fn confidence(hits: usize, of: usize) -> f64 {
    ((hits as f64 + 1.0) / (of as f64 + 2.0)).min(0.99) * (1.0 - 1.0 / (hits as f64 + 1.0))
}

impl ReceiverPolicy {
    /// Nothing known.
    pub fn unknown() -> Self {
        Self {
            profile: None,
            candidates: Vec::new(),
            timer_ms: None,
            kind: PolicyKind::Unknown,
            confidence: 0.0,
            evidence: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delayed ACKs at `instants` with these delays.
    fn policy(pairs: &[(f64, f64)]) -> ReceiverPolicy {
        let nanos = |ms: f64| (ms * 1e6) as u64;
        let acks: Vec<AckRecord> = pairs
            .iter()
            .map(|(instant, delay)| AckRecord {
                time: Time::from_nanos(1_000_000_000 + nanos(*instant)),
                oldest_age: nanos(*delay),
                newest_age: nanos(*delay),
                segments: 1,
                pure: true,
                small: true,
                answered: false,
            })
            .collect();
        let path = Path { near_ms: Some(0.0), far_ms: Some(1.0), handshake: true };
        infer(&Delays::of(&acks, &Counts::default(), &path), &path).0
    }

    /// Delays of a fixed timer, data arriving every 317 ms.
    fn at(delays: impl Fn(u32) -> f64) -> ReceiverPolicy {
        let pairs: Vec<(f64, f64)> =
            (0..60).map(|i| (f64::from(i) * 317.3 + delays(i), delays(i))).collect();
        policy(&pairs)
    }

    #[test]
    fn fixed_timers_are_named_by_their_length() {
        for (timer, profile) in
            [(100.0, "freebsd-12.1"), (200.0, "windows-7"), (50.0, "windows-2012")]
        {
            let found = at(|i| timer + f64::from(i % 3) * 0.1);
            assert_eq!((found.kind, found.profile), (PolicyKind::Fixed, Some(profile)));
            assert_eq!(found.timer_ms, Some(timer));
        }
        let linux = at(|i| 36.2 + f64::from(i * 7 % 5) * 0.9);
        assert_eq!((linux.profile, linux.timer_ms), (Some("linux"), Some(40.0)));
    }

    #[test]
    fn a_tick_is_told_from_a_timer_by_its_lattice() {
        for period in [250.0, 200.0, 100.0] {
            let pairs: Vec<(f64, f64)> = (0..80)
                .map(|i| {
                    let data = f64::from(i) * 613.7 + f64::from(i * i % 97);
                    let tick = (data / period).ceil() * period;
                    (tick, tick - data)
                })
                .collect();
            let found = policy(&pairs);
            assert_eq!(
                (found.kind, found.timer_ms),
                (PolicyKind::Tick, Some(period)),
                "{:?}",
                found.evidence
            );
        }
    }

    #[test]
    fn data_on_a_beat_does_not_make_a_fixed_timer_a_tick() {
        let pairs: Vec<(f64, f64)> =
            (0..50).map(|i| (f64::from(i) * 500.0 + 40.0, 40.0 + f64::from(i % 4) * 0.2)).collect();
        assert_eq!(policy(&pairs).timer_ms, Some(40.0));
    }

    #[test]
    fn two_delayed_acks_are_too_few() {
        assert_eq!(policy(&[(0.0, 40.0), (90.0, 40.0)]).kind, PolicyKind::Unknown);
    }
}
