//! Paths that die, return, flap and move.

use acklab_core::link::{Duplication, LinkConfig, Packets, Reordering, Share, Shift};
use acklab_core::time::{Span, Time};
use acklab_rudp::{Connection, Event, Listener};
use acklab_sim::road::{Road, path};

use crate::support::{FILE, Transfer, drive, lane, lane_of, road, road_over};

/// Runs a transfer over two paths, of which path 0 is as `up` says at each time in ms.
fn transfer_with_flaps(
    seed: u64,
    lanes: &[(LinkConfig, LinkConfig)],
    flaps: &[(u64, bool)],
) -> Flown {
    let mut road = road(seed, lanes);
    let mut transfer = Transfer::default();
    let mut flown = Flown::default();
    let limit = Time::ZERO + Span::from_secs(60);
    let mut left = flaps.iter();
    let mut next = left.next();
    loop {
        let until = next.map_or(limit, |&(ms, _)| Time::ZERO + Span::from_millis(ms));
        let ended = road.run(until, &mut |now, client: &mut Connection, server: &mut Listener| {
            if let Some(stats) = client.path_stats().find(|stats| stats.id == 0)
                && stats.content > flown.content
            {
                flown.content = stats.content;
                flown.used.push(now);
            }
            transfer.on_progress(now, client, server)
        });
        match next {
            Some(&(_, up)) if !ended => road.set_up(0, up),
            _ => break,
        }
        next = left.next();
    }
    assert_eq!(transfer.received, FILE, "seed {seed}, flaps {flaps:?}: {:?}", transfer.events);
    let done = transfer.done.expect("done");
    flown.seconds = done.since(Time::ZERO).as_secs_f64();
    flown.events = transfer.events;
    flown
}

/// What happened in a transfer with a path that flaps.
#[derive(Default)]
struct Flown {
    seconds: f64,
    /// When content left on path 0.
    used: Vec<Time>,
    content: u64,
    events: Vec<(Time, Event)>,
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

#[test]
fn a_path_that_dies_at_0_7_s_costs_no_more_than_its_share() {
    let mut runs: Vec<f64> = (1..=9)
        .map(|seed| transfer_with_flaps(seed, &[lane(0.0), lane(0.0)], &[(700, false)]).seconds)
        .collect();
    runs.sort_by(f64::total_cmp);
    println!("{runs:.3?}");
    assert!(runs[8] <= 2.0, "{runs:?}");
}

#[test]
fn a_path_may_die_at_any_instant() {
    for step in 0..50 {
        let ms = 20 + 24 * step;
        let lanes = [lane(0.05), lane(0.05)];
        let flown = transfer_with_flaps(step, &lanes, &[(ms, false)]);
        // The other path alone takes 2.6 s (the table), from the beginning on.
        assert!(flown.seconds <= 2.6 + 0.3, "dead at {ms} ms: {} s", flown.seconds);
    }
}

#[test]
fn a_path_that_returns_is_used_again_within_a_second() {
    for seed in 1..=9 {
        let lanes = [lane(0.05), lane_of("5mbit", 20, 0.05)];
        let flown = transfer_with_flaps(seed, &lanes, &[(700, false), (1500, true)]);
        let again = flown.used.iter().find(|&&used| used > at(1500)).expect("used again");
        assert!(*again <= at(2500), "seed {seed}: again at {again:?}");
    }
}

#[test]
fn a_path_that_flaps_all_the_time_does_not_stop_the_other() {
    for seed in 1..=5 {
        let flaps: Vec<_> = (1..40).map(|n| (300 * n, n % 2 == 0)).collect();
        let flown = transfer_with_flaps(seed, &[lane(0.0), lane(0.0)], &flaps);
        assert!(flown.seconds <= 2.6, "seed {seed}: {} s", flown.seconds);
    }
}

/// Bytes of content sent on each path so far.
fn content(road: &Road) -> Vec<(u8, u64)> {
    road.client.path_stats().map(|stats| (stats.id, stats.content)).collect()
}

#[test]
fn paths_come_and_go_while_data_flows() {
    let mut road = road_over(1, &[lane(0.05), lane(0.05)], 1);
    let mut transfer = Transfer::default();
    drive(&mut road, &mut transfer, at(500));
    let now = road.now();
    assert_eq!(road.client.add_path(now, path(1)), Some(2));
    drive(&mut road, &mut transfer, at(1000));
    assert!(content(&road)[1].1 > 500_000, "{:?}", content(&road));
    let now = road.now();
    road.client.remove_path(now, 0);
    assert!(drive(&mut road, &mut transfer, at(4000)));
    assert_eq!(transfer.received, FILE);
    assert_eq!(content(&road).len(), 1);
    let (_, server) = road.server.connections().next().expect("a connection");
    let theirs: Vec<_> = server.path_stats().map(|stats| stats.id).collect();
    assert_eq!(theirs, [2], "the server was told");
}

#[test]
fn the_last_path_stays() {
    let mut road = road(1, &[lane(0.0)]);
    let mut transfer = Transfer::default();
    drive(&mut road, &mut transfer, at(500));
    let now = road.now();
    road.client.remove_path(now, 0);
    assert!(drive(&mut road, &mut transfer, at(4000)));
}

#[test]
fn a_spare_path_is_used_only_when_the_other_is_dead() {
    let mut road = road(2, &[lane(0.0), lane(0.0)]);
    let mut transfer = Transfer::default();
    drive(&mut road, &mut transfer, at(45));
    road.client.set_spare(2, true);
    drive(&mut road, &mut transfer, at(200));
    let before = content(&road)[1].1;
    drive(&mut road, &mut transfer, at(1000));
    assert_eq!(content(&road)[1].1, before, "spare");
    road.set_up(0, false);
    drive(&mut road, &mut transfer, at(1500));
    assert!(content(&road)[1].1 > before + 200_000, "{:?}", content(&road));
    assert!(drive(&mut road, &mut transfer, at(6000)));
    assert_eq!(transfer.received, FILE);
}

#[test]
fn a_server_tells_of_its_other_addresses() {
    let mut road = road_over(3, &[lane(0.05), lane(0.05)], 1);
    let mut transfer = Transfer::default();
    drive(&mut road, &mut transfer, at(200));
    let other = path(1).remote;
    road.server.connections().next().expect("a connection").1.announce(&[other]);
    assert!(drive(&mut road, &mut transfer, at(4000)));
    let told = transfer.events.iter().any(|(_, event)| *event == Event::Address(other));
    assert!(told, "{:?}", transfer.events);
}

#[test]
fn packets_that_overtake_each_other_or_arrive_twice_are_no_lost_ones() {
    let (mut forward, mut reverse) = lane(0.0);
    for direction in [&mut forward, &mut reverse] {
        // 5 ms are eight packets at 20 Mbit/s.
        let reordering = Reordering {
            share: Share::independent(0.1),
            gap: 0,
            shift: Shift::Late(Span::from_millis(5)),
            packets: Packets::All,
        };
        let share = Share::independent(0.1);
        let duplication = Duplication { share, packets: Packets::All };
        direction.impairments.reordering = Some(reordering);
        direction.impairments.duplication = Some(duplication);
    }
    let mut road = road(4, &[(forward, reverse)]);
    let mut transfer = Transfer::default();
    assert!(drive(&mut road, &mut transfer, at(6000)));
    assert_eq!(transfer.received, FILE);
    let stats = road.client.path_stats().next().expect("a path");
    assert!(stats.lost < FILE as u64 / 100, "{} bytes declared lost in vain", stats.lost);
    let wire = road.wire_bytes()[0] as f64 / FILE as f64;
    assert!(wire < 1.1, "{wire}");
}

#[test]
fn a_nat_that_forgets_changes_nothing() {
    for step in 0..20 {
        let mut road = road(step, &[lane(0.05)]);
        let mut transfer = Transfer::default();
        let mut drive = |road: &mut Road, until| {
            road.run(until, &mut |now, client: &mut Connection, server: &mut Listener| {
                transfer.on_progress(now, client, server)
            })
        };
        for rebinding in 1..=3 {
            drive(&mut road, at(100 + 97 * step + 300 * rebinding));
            road.rebind(0);
        }
        assert!(drive(&mut road, at(20_000)), "step {step}");
        assert_eq!(transfer.received, FILE);
        let seconds = transfer.done.expect("done").since(Time::ZERO).as_secs_f64();
        assert!(seconds <= 3.2, "step {step}: {seconds} s");
    }
}
