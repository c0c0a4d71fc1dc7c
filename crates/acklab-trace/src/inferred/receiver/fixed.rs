//! A timer that starts when data arrives: delays cluster at its length and hardly any is longer
//! (RFC 9293 section 3.8.6.3 allows up to 500 ms).

use super::few::EVENTS_MIN;
use super::late_acks::LateAcks;
use super::lockstep;
use super::policy::{PolicyKind, Receiver, ReceiverPolicy, confidence};
use super::profiles::PROFILES;
use super::timer::Timer;
use crate::inferred::{RoundTrips, Sample};

/// Where the delays cluster.
struct Cluster {
    inside: Sample,
    /// Delays beyond it.
    beyond: usize,
}

impl Cluster {
    fn of(sample: &Sample) -> Option<Self> {
        let width = CLUSTER_MS.max(sample.median() * 0.05);
        let (low, count) = sample.densest(width);
        let high = low + width;
        let beyond = sample.len() - sample.count_between(0.0, high + 1.0);
        if count < EVENTS_MIN || count * 10 < sample.len() * 3 || beyond * 4 > sample.len() {
            return None;
        }
        let inside = sample.values().iter().copied().filter(|d| (low..=high).contains(d));
        Some(Self { inside: Sample::new(inside.collect()), beyond })
    }
}

/// The timer, if the delays cluster.
pub(super) fn find(acks: &LateAcks, trips: &RoundTrips) -> Option<Receiver> {
    let Cluster { inside, beyond } = Cluster::of(&acks.delays)?;
    let median = inside.median();
    let mut candidates = rank(&inside, acks);
    if trips.near_ms.is_none() {
        // 50 ms could as well be a round trip; the common timers are likelier than that.
        candidates.retain(|name| *name != "windows-2012");
    }
    let nominal = PROFILES.iter().find(|p| candidates.first() == Some(&p.name)).map(|p| p.timer_ms);
    // A constant delay that no system has is more likely the network, unless the handshake has
    // shown how long that takes.
    if nominal.is_none() && trips.near_ms.is_none() {
        return Some(network(median));
    }
    let linux = candidates.first() == Some(&"linux");
    let mut evidence = evidence(&inside, acks, trips);
    if let Some(tick) = lockstep::may_be_tick(acks).filter(|t| !candidates.contains(t)) {
        candidates.push(tick);
        evidence.push("a clock of this period that runs on its own would look the same".into());
    }
    let adaptive = linux && grain(&inside) > 1.0;
    let confidence = confidence(inside.len(), inside.len() + beyond)
        * if trips.handshake { 1.0 } else { HEADLESS }
        / (1.0 + 0.2 * candidates.len().saturating_sub(1) as f64);
    let policy = ReceiverPolicy {
        profile: candidates.first().copied().or(Some("fixed-timer")),
        timer_ms: Some(nominal.unwrap_or(median)),
        kind: if adaptive { PolicyKind::Adaptive } else { PolicyKind::Fixed },
        confidence,
        candidates,
        evidence,
    };
    let slack = (median * 0.1).max(2.0);
    let high = acks.delays.max().max(inside.max() + slack);
    Some(Receiver { policy, timer: Timer::Fixed { low: inside.min() - slack, high } })
}

/// The round trip, not a timer.
fn network(median: f64) -> Receiver {
    let mut policy = ReceiverPolicy::default();
    policy.evidence.push(format!(
        "ACKs came {median:.1} ms after the data, which no known timer does: the round trip"
    ));
    Receiver { policy, timer: Timer::Network }
}

fn evidence(inside: &Sample, acks: &LateAcks, trips: &RoundTrips) -> Vec<String> {
    let mut evidence = vec![format!(
        "{} of {} delayed ACKs waited {:.1} to {:.1} ms (median {:.1})",
        inside.len(),
        acks.delays.len(),
        inside.min(),
        inside.max(),
        inside.median()
    )];
    if let Some(grid) = jiffy_grid(inside) {
        evidence.push(format!("they lie on a grid of {grid:.0} ms"));
    }
    if acks.late_second >= EVENTS_MIN {
        evidence.push(format!(
            "{} ACKs came late although two segments waited for them",
            acks.late_second
        ));
    } else if acks.second_segment >= EVENTS_MIN {
        evidence.push(format!(
            "{} times the second segment was acknowledged at once",
            acks.second_segment
        ));
    }
    if !trips.handshake {
        evidence.push(match trips.near_ms {
            Some(near) => format!(
                "without the handshake, the fastest ACK ({near:.1} ms) is taken for the round trip"
            ),
            None => "the round trip is not known: the handshake is missing".into(),
        });
    }
    evidence
}

/// How far the delays of a cluster spread, its outermost tenths left out.
fn grain(inside: &Sample) -> f64 {
    inside.quantile(0.9) - inside.quantile(0.1)
}

/// The profiles that fit a cluster, likeliest first.
fn rank(inside: &Sample, acks: &LateAcks) -> Vec<&'static str> {
    let spread = grain(inside);
    let mut names: Vec<&'static str> = PROFILES
        .iter()
        .filter(|p| p.fits(inside.quantile(0.1)) && p.fits(inside.quantile(0.9)))
        .map(|p| p.name)
        .collect();
    // FreeBSD and Windows acknowledge every second segment whatever its size; Linux counts bytes.
    if acks.second_segment >= EVENTS_MIN && acks.late_second * 10 < acks.second_segment {
        names.retain(|n| *n != "linux");
    } else if spread < 0.5 && names.len() > 1 && acks.late_second == 0 {
        // Linux's timer runs in jiffies of 1 to 10 ms; delays as equal as these fit any of them.
        names.sort_by_key(|n| usize::from(*n != "linux"));
    }
    if spread >= 1.0 || acks.late_second >= EVENTS_MIN {
        let linux = names.contains(&"linux");
        names.retain(|n| !linux || *n == "linux");
    }
    names
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

/// Confidence without the handshake.
const HEADLESS: f64 = 0.8;
/// Width of a cluster: a jiffy grid of 4 ms and some scheduling, or a twentieth of the timer.
const CLUSTER_MS: f64 = 5.0;
