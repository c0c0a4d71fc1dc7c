//! Streams and parcels end to end: keys that change, ACK timers, messages of each kind.

use std::sync::{Arc, Mutex};

use acklab_core::ack::{Profile, linux, tack};
use acklab_core::endpoint::Endpoint as _;
use acklab_core::event::Sink;
use acklab_core::options::Word;
use acklab_core::queue::Discipline;
use acklab_core::time::{Span, Time};
use acklab_rudp::wire::Kind;
use acklab_rudp::{Config, Connection, ContentEvent, Event, Listener};
use acklab_sim::rudp::User;
use acklab_tcp::System;

use crate::support::{Lane, Net, Transfer, Use, lane, ms};

#[test]
fn keys_may_change_every_hundred_packets_on_two_lossy_paths() {
    let config = Config { key_packets: 100, ..Config::default() };
    Transfer::of(11, &[lane(0.3), lane(0.1)], 2, &config).finish(ms(20_000));
}

#[test]
fn a_hundred_millisecond_ack_timer_answers_ten_times_a_second() {
    let answers = |ack: Option<Profile>| {
        let config = Config { ack, ..Config::default() };
        let mut transfer = Transfer::of(12, &[lane(0.0)], 1, &config);
        transfer.run(ms(1500));
        transfer.net.server(|_, server| {
            let (_, server) = server.connections().next().expect("a connection");
            server.path_stats().next().expect("a path").packets
        })
    };
    let tick = Profile::tick(u32::MAX, Span::from_millis(100), 1);
    let (with, without) = (answers(Some(tick)), answers(None));
    // 1.46 s of data, and the handshake and the size of datagrams, which are answered at once.
    assert!((12..=24).contains(&with), "{with}");
    assert!(without > 100, "{without}");
}

#[test]
fn policies_that_count_full_packets_do_so_over_reliable_udp() {
    let answers = |ack: Profile| {
        let config = Config { ack: Some(ack), ..Config::default() };
        let mut transfer = Transfer::of(12, &[lane(0.0)], 1, &config);
        transfer.run(ms(1500));
        transfer.net.server(|_, server| {
            let (_, server) = server.connections().next().expect("a connection");
            server.path_stats().next().expect("a path").packets
        })
    };
    let every = answers(Profile::EverySegment);
    let counting = tack::Options { beta: 1000, ..tack::Options::default() };
    for second in [Profile::Tack(counting), Profile::Linux(linux::Options::default())] {
        let name = second.name();
        let second = answers(second);
        // Each second full packet.
        assert!((every * 2 / 5..every * 3 / 5).contains(&second), "{name}: {second} of {every}");
    }
}

#[test]
fn every_ack_profile_lets_a_transfer_end() {
    let systems = System::ALL.iter().map(|system| system.config().ack);
    for profile in Profile::all().into_iter().chain(systems) {
        let name = format!("{profile:?}");
        let config = Config { ack: Some(profile), ..Config::default() };
        println!("{name}");
        Transfer::of(13, &[lane(0.05)], 1, &config).finish(ms(30_000));
    }
}

/// Parcels on their way: length, kind, and from when each may leave.
struct Parcels {
    sent: Vec<(usize, Kind, Time)>,
    next: usize,
    now: Time,
    redundant: bool,
    /// Id, length and time of those that arrived.
    arrived: Vec<(u64, usize, Time)>,
}

impl Parcels {
    fn send(&mut self, now: Time, client: &mut Connection) {
        self.now = now;
        while client.poll_event().is_some() {}
        while let Some(&(len, kind, at)) = self.sent.get(self.next)
            && client.is_open()
            && at <= now
        {
            let bytes = (0..len).map(|at| (at * 7 + self.next) as u8).collect();
            if client.content().send_parcel(now, bytes, kind, 4, self.redundant).is_err() {
                break;
            }
            self.next += 1;
        }
    }

    fn receive(&mut self, now: Time, server: &mut Listener) {
        while let Some((handle, event)) = server.poll_event() {
            let Event::Content(ContentEvent::Parcel { .. }) = event else { continue };
            let connection = server.connection(handle).expect("a connection");
            while let Some((id, bytes)) = connection.content().receive_parcel() {
                let whole =
                    bytes.iter().enumerate().all(|(at, &b)| b == (at * 7 + id as usize) as u8);
                assert!(whole, "parcel {id}");
                self.arrived.push((id, bytes.len(), now));
            }
        }
    }
}

struct Sending(Arc<Mutex<Parcels>>);

impl User<Connection> for Sending {
    fn on_progress(&mut self, now: Time, client: &mut Connection, _sink: &mut Sink) {
        self.0.lock().expect("no panic").send(now, client);
    }

    fn poll_timeout(&self) -> Option<Time> {
        let parcels = self.0.lock().expect("no panic");
        parcels.sent.get(parcels.next).map(|(.., at)| *at).filter(|at| *at > parcels.now)
    }
}

/// Sends parcels of these lengths and kinds, on one path or on two at once; returns what arrived.
fn parcels(
    seed: u64,
    lanes: &[Lane],
    sent: impl IntoIterator<Item = (usize, Kind, Time)>,
    redundant: bool,
    until: Time,
) -> (Vec<(u64, usize, Time)>, Net) {
    let sent = sent.into_iter().collect();
    let (now, arrived) = (Time::ZERO, Vec::new());
    let parcels = Arc::new(Mutex::new(Parcels { sent, next: 0, now, redundant, arrived }));
    let (sending, receiving) = (parcels.clone(), parcels.clone());
    let users = (
        Use::by(Sending(sending)),
        Use::by(move |now, server: &mut Listener| {
            receiving.lock().expect("no panic").receive(now, server);
        }),
    );
    let mut net = Net::new(seed, lanes, lanes.len(), &Config::default(), users);
    net.run(until, || false);
    let arrived = std::mem::take(&mut parcels.lock().expect("no panic").arrived);
    (arrived, net)
}

#[test]
fn reliable_parcels_arrive_whole_and_once_whatever_their_length() {
    let sent: Vec<_> = [1, 2, 511, 512, 1400, 1401, 10_240, 100_000, 3_000_000]
        .into_iter()
        .cycle()
        .take(27)
        .map(|len| (len, Kind::Reliable, Time::ZERO))
        .collect();
    let lanes = [lane(0.15), lane(0.15)];
    let (mut arrived, _) = parcels(14, &lanes, sent.clone(), false, ms(30_000));
    arrived.sort_unstable_by_key(|parcel| parcel.0);
    let lens: Vec<_> = arrived.iter().map(|parcel| parcel.1).collect();
    assert_eq!(lens, sent.iter().map(|parcel| parcel.0).collect::<Vec<_>>());
}

#[test]
fn a_redundant_parcel_is_lost_only_where_both_paths_lose_it() {
    let arrived = |redundant| {
        // One each 20 ms, from when both paths are in use.
        let sent = (0..1000).map(|n| (500, Kind::OneShot, ms(1000 + 20 * n)));
        parcels(17, &[lane(0.28), lane(0.28)], sent, redundant, ms(25_000)).0.len()
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
    let mut transfer = Transfer::of(18, &[(forward, reverse)], 1, &config);
    // Of the initial window of 32 packets 10 bear marks, as a test; the queue drops of the others.
    assert!(!transfer.run(ms(200)), "{}", transfer.file().received);
    let lost = transfer.net.stats()[0].lost;
    assert!(lost <= 22 * 1200, "{lost}");
    transfer.finish(ms(6000));
    let stats = transfer.net.stats()[0];
    assert_eq!(stats.lost, lost);
    let waits = stats.srtt.expect("measured");
    assert!(waits < Span::from_millis(80), "the queue would take 600 ms: {waits:?}");
}

#[test]
fn one_shot_parcels_of_one_packet_arrive_as_often_as_packets_do() {
    let sent = vec![(1000, Kind::OneShot, Time::ZERO); 1000];
    let arrived = parcels(15, &[lane(0.28)], sent, false, ms(20_000)).0.len();
    // One or two packets each: between 0.72 and 0.72 squared.
    assert!((518..=720).contains(&arrived), "{arrived} of 1000 at 28 %");
}

#[test]
fn redundant_one_shot_parcels_arrive_unless_both_copies_are_lost() {
    let sent = vec![(1000, Kind::OneShot, Time::ZERO); 1000];
    let arrived = parcels(17, &[lane(0.28), lane(0.28)], sent, true, ms(20_000)).0.len();
    // Between 0.92 squared (two packets each) and 1 - 0.28^2 = 0.92.
    assert!((800..=950).contains(&arrived), "{arrived} of 1000 at 28 % on two paths");
}

#[test]
fn copies_of_redundant_parcels_whose_time_is_over_stay_behind() {
    // Far more than fits through before they expire, so that copies outlive their parcels.
    let sent: Vec<_> = (0..200)
        .map(|n| if n % 2 == 0 { Kind::OneShot } else { Kind::Expiring { life_ms: 60 } })
        .map(|kind| (40_000, kind, Time::ZERO))
        .collect();
    for seed in 18..24 {
        let lanes = [lane(0.15), lane(0.28)];
        let (_, mut net) = parcels(seed, &lanes, sent.clone(), true, ms(4_000));
        assert!(net.is_open(), "seed {seed}: a frame of no bytes ended the connection");
    }
}

#[test]
fn expiring_parcels_arrive_in_time_or_not_at_all() {
    // 4 MB wait at 20 Mbit/s, that is 1.6 s; only the first half second's worth is wanted.
    let sent = vec![(40_000, Kind::Expiring { life_ms: 500 }, Time::ZERO); 100];
    let (arrived, _) = parcels(16, &[lane(0.05)], sent, false, ms(10_000));
    assert!((20..=40).contains(&arrived.len()), "{} of 100", arrived.len());
    // The client has them from 40 ms on; one transit more is allowed.
    assert!(arrived.iter().all(|parcel| parcel.2 <= ms(40 + 500 + 130)), "{arrived:?}");
}
