//! Streams and parcels end to end: keys that change, ACK timers, messages of each kind.

use std::ops::ControlFlow;

use acklab_core::ack::Profile;
use acklab_core::options::Word;
use acklab_core::queue::Discipline;
use acklab_core::time::{Span, Time};
use acklab_rudp::wire::Kind;
use acklab_rudp::{Config, Connection, ContentEvent, Event, Listener};
use acklab_sim::road::Road;
use acklab_tcp::System;

use crate::support::{FILE, Transfer, lane, road_of};

fn ms(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn run(road: &mut Road, transfer: &mut Transfer, until: Time) -> bool {
    road.run(until, &mut |now, client: &mut Connection, server: &mut Listener| {
        transfer.on_progress(now, client, server)
    })
}

#[test]
fn keys_may_change_every_hundred_packets_on_two_lossy_paths() {
    let config = Config { key_packets: 100, ..Config::default() };
    let mut road = road_of(11, &[lane(0.3), lane(0.1)], &config);
    let mut transfer = Transfer::default();
    assert!(run(&mut road, &mut transfer, ms(20_000)), "{} received", transfer.received);
    assert_eq!(transfer.received, FILE);
}

#[test]
fn a_hundred_millisecond_ack_timer_answers_ten_times_a_second() {
    let answers = |ack: Option<Profile>| {
        let config = Config { ack, ..Config::default() };
        let mut road = road_of(12, &[lane(0.0)], &config);
        let mut transfer = Transfer::default();
        run(&mut road, &mut transfer, ms(1500));
        let (_, server) = road.server.connections().next().expect("a connection");
        server.path_stats().next().expect("a path").packets
    };
    let tick = Profile::tick(u32::MAX, Span::from_millis(100), 1);
    let (with, without) = (answers(Some(tick)), answers(None));
    // 1.46 s of data, and the handshake and the size of datagrams, which are answered at once.
    assert!((12..=24).contains(&with), "{with}");
    assert!(without > 100, "{without}");
}

#[test]
fn every_ack_profile_lets_a_transfer_end() {
    let systems = System::ALL.iter().map(|system| system.config().ack);
    for profile in Profile::all().into_iter().chain(systems) {
        let name = format!("{profile:?}");
        let config = Config { ack: Some(profile), ..Config::default() };
        let mut road = road_of(13, &[lane(0.05)], &config);
        let mut transfer = Transfer::default();
        assert!(run(&mut road, &mut transfer, ms(30_000)), "{name}: {}", transfer.received);
        assert_eq!(transfer.received, FILE, "{name}");
    }
}

/// Sends parcels of these lengths and kinds and returns what arrived, with its time.
fn parcels(road: &mut Road, sent: &[(usize, Kind)], until: Time) -> Vec<(u64, usize, Time)> {
    parcels_sent(road, sent, false, until)
}

/// The same, on one path or on two at once.
fn parcels_sent(
    road: &mut Road,
    sent: &[(usize, Kind)],
    redundant: bool,
    until: Time,
) -> Vec<(u64, usize, Time)> {
    let mut arrived = Vec::new();
    let mut next = 0;
    road.run(until, &mut |now, client: &mut Connection, server: &mut Listener| {
        while client.poll_event().is_some() {}
        while let Some(&(len, kind)) = sent.get(next)
            && client.is_open()
        {
            let bytes = (0..len).map(|at| (at * 7 + next) as u8).collect();
            if client.content().send_parcel(now, bytes, kind, 4, redundant).is_err() {
                break;
            }
            next += 1;
        }
        while let Some((handle, event)) = server.poll_event() {
            let Event::Content(ContentEvent::Parcel { .. }) = event else { continue };
            let connection = server.connection(handle).expect("a connection");
            while let Some((id, bytes)) = connection.content().receive_parcel() {
                let whole =
                    bytes.iter().enumerate().all(|(at, &b)| b == (at * 7 + id as usize) as u8);
                assert!(whole, "parcel {id}");
                arrived.push((id, bytes.len(), now));
            }
        }
        ControlFlow::Continue(())
    });
    arrived
}

#[test]
fn reliable_parcels_arrive_whole_and_once_whatever_their_length() {
    let sent: Vec<_> = [1, 2, 511, 512, 1400, 1401, 10_240, 100_000, 3_000_000]
        .into_iter()
        .cycle()
        .take(27)
        .map(|len| (len, Kind::Reliable))
        .collect();
    let mut road = road_of(14, &[lane(0.15), lane(0.15)], &Config::default());
    let mut arrived = parcels(&mut road, &sent, ms(30_000));
    arrived.sort_unstable_by_key(|parcel| parcel.0);
    let lens: Vec<_> = arrived.iter().map(|parcel| parcel.1).collect();
    assert_eq!(lens, sent.iter().map(|parcel| parcel.0).collect::<Vec<_>>());
}

#[test]
fn a_redundant_parcel_is_lost_only_where_both_paths_lose_it() {
    let arrived = |redundant| {
        let mut road = road_of(17, &[lane(0.28), lane(0.28)], &Config::default());
        let (mut sent, mut arrived) = (0, 0);
        road.run(ms(25_000), &mut |now, client: &mut Connection, server: &mut Listener| {
            while client.poll_event().is_some() {}
            // One each 20 ms, from when both paths are in use.
            while sent < 1000 && now >= ms(1000 + 20 * sent) {
                let parcel = vec![1; 500];
                let taken = client.content().send_parcel(now, parcel, Kind::OneShot, 4, redundant);
                taken.expect("room");
                sent += 1;
            }
            while let Some((handle, _)) = server.poll_event() {
                let connection = server.connection(handle).expect("a connection");
                while connection.content().receive_parcel().is_some() {
                    arrived += 1;
                }
            }
            ControlFlow::Continue(())
        });
        arrived
    };
    let (once, twice) = (arrived(false), arrived(true));
    // 1 - 0.28 and 1 - 0.28 squared of 1000, within four deviations.
    assert!((663..=777).contains(&once), "{once}");
    assert!((887..=957).contains(&twice), "{twice}");
}

#[test]
fn marks_slow_a_sender_down_before_anything_is_lost() {
    let (mut forward, reverse) = lane(0.0);
    forward.queue = Discipline::by_name("threshold", 1000).expect("a queue");
    let config = Config { algorithm: "dctcp".parse().expect("known"), ..Config::default() };
    let mut road = road_of(18, &[(forward, reverse)], &config);
    let mut transfer = Transfer::default();
    // Of the initial window of 32 packets 10 bear marks, as a test; the queue drops of the others.
    assert!(!run(&mut road, &mut transfer, ms(200)), "{}", transfer.received);
    let lost = road.client.path_stats().next().expect("a path").lost;
    assert!(lost <= 22 * 1200, "{lost}");
    assert!(run(&mut road, &mut transfer, ms(6000)), "{}", transfer.received);
    let stats = road.client.path_stats().next().expect("a path");
    assert_eq!(stats.lost, lost);
    let waits = stats.srtt.expect("measured");
    assert!(waits < Span::from_millis(80), "the queue would take 600 ms: {waits:?}");
}

#[test]
fn one_shot_parcels_of_one_packet_arrive_as_often_as_packets_do() {
    let sent = vec![(1000, Kind::OneShot); 1000];
    let mut road = road_of(15, &[lane(0.28)], &Config::default());
    let arrived = parcels(&mut road, &sent, ms(20_000)).len();
    // One or two packets each: between 0.72 and 0.72 squared.
    assert!((518..=720).contains(&arrived), "{arrived} of 1000 at 28 %");
}

#[test]
fn redundant_one_shot_parcels_arrive_unless_both_copies_are_lost() {
    let sent = vec![(1000, Kind::OneShot); 1000];
    let mut road = road_of(17, &[lane(0.28), lane(0.28)], &Config::default());
    let arrived = parcels_sent(&mut road, &sent, true, ms(20_000)).len();
    // Between 0.92 squared (two packets each) and 1 - 0.28^2 = 0.92.
    assert!((800..=950).contains(&arrived), "{arrived} of 1000 at 28 % on two paths");
}

#[test]
fn copies_of_redundant_parcels_whose_time_is_over_stay_behind() {
    // Far more than fits through before they expire, so that copies outlive their parcels.
    let sent: Vec<_> = (0..200)
        .map(|n| (40_000, if n % 2 == 0 { Kind::OneShot } else { Kind::Expiring { life_ms: 60 } }))
        .collect();
    for seed in 18..24 {
        let mut road = road_of(seed, &[lane(0.15), lane(0.28)], &Config::default());
        parcels_sent(&mut road, &sent, true, ms(4_000));
        assert!(road.client.is_open(), "seed {seed}: a frame of no bytes ended the connection");
    }
}

#[test]
fn expiring_parcels_arrive_in_time_or_not_at_all() {
    // 4 MB wait at 20 Mbit/s, that is 1.6 s; only the first half second's worth is wanted.
    let sent = vec![(40_000, Kind::Expiring { life_ms: 500 }); 100];
    let mut road = road_of(16, &[lane(0.05)], &Config::default());
    let arrived = parcels(&mut road, &sent, ms(10_000));
    assert!((20..=40).contains(&arrived.len()), "{} of 100", arrived.len());
    // The client has them from 40 ms on; one transit more is allowed.
    assert!(arrived.iter().all(|parcel| parcel.2 <= ms(40 + 500 + 130)), "{arrived:?}");
}
