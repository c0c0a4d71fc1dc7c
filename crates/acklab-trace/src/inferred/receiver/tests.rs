//! Delays and instants of ACKs, and the policy that they should show.

use acklab_core::time::Time;

use super::*;
use crate::inferred::replay::{AckRecord, Replay};

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
    let trips = RoundTrips {
        near_ms: Some(0.0),
        far_ms: Some(1.0),
        handshake: true,
        grain_ms: 0.0,
        unseen_data: false,
    };
    explain(&LateAcks::of(&Replay { acks, ..Replay::default() }, &trips), &trips).policy
}

/// Delays of a fixed timer, data arriving every 317 ms.
fn at(delays: impl Fn(u32) -> f64) -> ReceiverPolicy {
    let pairs: Vec<(f64, f64)> =
        (0..60).map(|i| (f64::from(i) * 317.3 + delays(i), delays(i))).collect();
    policy(&pairs)
}

#[test]
fn fixed_timers_are_named_by_their_length() {
    for (timer, profile) in [(100.0, "freebsd-12.1"), (200.0, "windows-7"), (50.0, "windows-2012")]
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
