//! BBR version 3 over one bottleneck.

use super::super::super::testbed::{MSS, Path, start};
use super::State::{Cruise, Down, Drain, Refill, Startup, Up};
use super::*;

/// Runs and returns the states that it went through, with their beginnings.
fn states(path: &mut Path<BbrV3>, seconds: f64) -> Vec<(Time, State)> {
    let mut states = vec![(path.sender.now, path.control().state())];
    path.run(seconds, |now, bbr| {
        if states.last().is_none_or(|&(_, state)| state != bbr.state()) {
            states.push((now, bbr.state()));
        }
    });
    states
}

#[test]
fn startup_and_drain_lead_into_the_cycle_of_four() {
    let mut path = Path::new(BbrV3::new(&start()), 20, 40, 400_000, 0.0);
    let seen: Vec<State> = states(&mut path, 4.5).iter().map(|&(_, state)| state).collect();
    // Drain leaves so little on the way that DOWN is over with the ACK that begins it.
    assert_eq!(seen[..7], [Startup, Drain, Cruise, Refill, Up, Down, Cruise], "{seen:?}");
    let bandwidth = path.control().max_bandwidth() * 8.0 / 20e6;
    assert!((0.99..1.05).contains(&bandwidth), "{bandwidth} of the bottleneck");
    assert_eq!(path.control().min_rtt(), Some(Span::from_micros(40_400)));
    assert_eq!(path.control().inflight_longterm(), None, "nothing was lost");
}

#[test]
fn probes_come_every_two_to_three_seconds() {
    let mut path = Path::new(BbrV3::new(&start()), 20, 40, 400_000, 0.0);
    let seen = states(&mut path, 60.0);
    // Those that ProbeRTT did not interrupt.
    let waits: Vec<f64> = seen
        .windows(3)
        .filter(|three| [three[0].1, three[1].1, three[2].1] == [Down, Cruise, Refill])
        .map(|three| three[2].0.since(three[0].0).as_secs_f64())
        .collect();
    assert!(waits.len() > 5, "{waits:?}");
    // 63 round trips of 40 ms, Reno's time scale, cut the longest waits short.
    assert!(waits.iter().all(|wait| (2.0..2.7).contains(wait)), "{waits:?}");
}

#[test]
fn it_fills_the_path_with_a_queue_of_under_half_a_bdp() {
    let mut path = Path::new(BbrV3::new(&start()), 20, 40, 400_000, 0.0);
    path.run(2.0, |_, _| {});
    let outcome = path.run(20.0, |_, _| {});
    assert!(outcome.utilisation > 0.93, "{outcome:?}");
    assert!(outcome.queue_mean < 0.5 * path.bdp(), "{outcome:?}");
}

#[test]
fn every_five_seconds_half_of_the_path_is_left_free_for_200_ms() {
    let mut path = Path::new(BbrV3::new(&start()), 20, 40, 400_000, 0.0);
    let seen = states(&mut path, 22.0);
    let probes: Vec<(f64, f64)> = seen
        .windows(2)
        .filter(|two| two[0].1 == State::ProbeRtt)
        .map(|two| (two[0].0.as_secs_f64(), two[1].0.since(two[0].0).as_secs_f64()))
        .collect();
    assert!((3..=4).contains(&probes.len()), "{probes:?}");
    assert!(probes.iter().all(|&(_, lasted)| (0.2..0.4).contains(&lasted)), "{probes:?}");
    assert!(probes.windows(2).all(|two| two[1].0 - two[0].0 >= 5.0), "{probes:?}");
}

#[test]
fn a_shallow_queue_bounds_what_is_on_the_way() {
    // A tenth of a BDP: probing 25 % above the rate loses there.
    let mut path = Path::new(BbrV3::new(&start()), 20, 40, 10_000, 0.0);
    path.run(5.0, |_, _| {});
    let outcome = path.run(20.0, |_, _| {});
    let bound = path.control().inflight_longterm().expect("a bound from loss") as f64;
    assert!((0.7..1.6).contains(&(bound / path.bdp())), "{bound} bytes of {}", path.bdp());
    assert!(outcome.lost < 0.02, "{outcome:?}");
    assert!(outcome.utilisation > 0.8, "{outcome:?}");
}

#[test]
fn one_percent_of_random_loss_is_tolerated() {
    let mut path = Path::new(BbrV3::new(&start()), 20, 40, 400_000, 0.01);
    path.run(2.0, |_, _| {});
    let outcome = path.run(30.0, |_, _| {});
    assert!(outcome.utilisation > 0.8, "{outcome:?}");
}

#[test]
fn a_mark_counts_as_a_loss() {
    let mut path = Path::new(BbrV3::new(&start()), 20, 40, 400_000, 0.0);
    path.run(1.0, |_, _| {});
    assert!(path.control().bounds.shortterm().is_infinite());
    path.sender.mark();
    path.run(0.2, |_, _| {});
    assert!(path.control().bounds.shortterm().is_finite());
}

#[test]
fn a_timeout_leaves_one_segment_and_the_model() {
    let mut path = Path::new(BbrV3::new(&start()), 20, 40, 400_000, 0.0);
    path.run(2.0, |_, _| {});
    path.sender.time_out();
    assert_eq!(path.control().cwnd(), u64::from(MSS));
    assert!(path.control().max_bandwidth() * 8.0 > 19e6);
}
