//! BBR version 1 over one bottleneck.

use super::super::super::testbed::{MSS, Path, start};
use super::*;

#[test]
fn startup_finds_the_bandwidth_and_drain_empties_the_queue() {
    let mut path = Path::new(BbrV1::new(&start()), 20, 40, 400_000, 0.0);
    let mut states = vec![path.control().state()];
    path.run(2.0, |_, bbr| {
        if states.last() != Some(&bbr.state()) {
            states.push(bbr.state());
        }
    });
    assert_eq!(states, [State::Startup, State::Drain, State::ProbeBw]);
    let bandwidth = path.control().bandwidth() * 8.0 / 20e6;
    assert!((0.99..1.05).contains(&bandwidth), "{bandwidth} of the bottleneck");
    // The first segment's own serialisation of 0.4 ms is part of the least round trip.
    assert_eq!(path.control().min_rtt(), Some(Span::from_micros(40_400)));
}

#[test]
fn it_fills_the_path_with_a_queue_of_under_a_bdp() {
    let mut path = Path::new(BbrV1::new(&start()), 20, 40, 400_000, 0.0);
    path.run(2.0, |_, _| {});
    let outcome = path.run(20.0, |_, _| {});
    assert!(outcome.utilisation > 0.95, "{outcome:?}");
    assert!(outcome.queue_mean < 0.5 * path.bdp(), "{outcome:?}");
}

#[test]
fn the_cycle_has_eight_gains_of_a_round_trip_each() {
    let mut path = Path::new(BbrV1::new(&start()), 20, 40, 400_000, 0.0);
    path.run(2.0, |_, _| {});
    let mut phases: Vec<(Time, f64)> = Vec::new();
    path.run(3.0, |now, bbr| {
        if phases.last().is_none_or(|&(_, gain)| gain.to_bits() != bbr.gains().0.to_bits()) {
            phases.push((now, bbr.gains().0));
        }
    });
    let cycles: Vec<f64> = phases
        .windows(4)
        .filter(|phases| phases[0].1 > 1.0)
        .map(|phases| phases[3].0.since(phases[0].0).as_secs_f64())
        .collect();
    assert!(cycles.len() >= 6, "{} cycles in 3 s", cycles.len());
    assert!(cycles.iter().all(|cycle| (0.28..0.42).contains(cycle)), "{cycles:?}");
}

#[test]
fn after_ten_seconds_it_looks_for_the_least_round_trip_for_200_ms() {
    let mut path = Path::new(BbrV1::new(&start()), 20, 40, 400_000, 0.0);
    let (mut entered, mut left, mut least) = (None, None, u64::MAX);
    path.run(14.0, |now, bbr| {
        if bbr.state() == State::ProbeRtt {
            entered.get_or_insert(now);
            least = least.min(bbr.cwnd());
        } else if entered.is_some() {
            left.get_or_insert(now);
        }
    });
    let lasted = left.unwrap().since(entered.unwrap()).as_secs_f64();
    assert!(entered.unwrap() > Time::ZERO + Span::from_secs(10), "{entered:?}");
    assert!((0.2..0.4).contains(&lasted), "{lasted} s");
    assert_eq!(least, 4 * u64::from(MSS));
}

#[test]
fn random_loss_of_five_percent_costs_little_more_than_what_is_lost() {
    let mut path = Path::new(BbrV1::new(&start()), 20, 40, 400_000, 0.05);
    path.run(2.0, |_, _| {});
    let outcome = path.run(20.0, |_, _| {});
    assert!(outcome.utilisation > 0.85, "{outcome:?}");
    assert!((outcome.lost - 0.05).abs() < 0.01, "{outcome:?}");
}

#[test]
fn a_timeout_leaves_one_segment_and_the_model() {
    let mut path = Path::new(BbrV1::new(&start()), 20, 40, 400_000, 0.0);
    path.run(2.0, |_, _| {});
    let bandwidth = path.control().bandwidth();
    path.sender.time_out();
    assert_eq!(path.control().cwnd(), u64::from(MSS));
    assert_eq!(path.control().bandwidth().to_bits(), bandwidth.to_bits());
}
