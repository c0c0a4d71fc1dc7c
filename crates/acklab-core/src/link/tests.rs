use super::*;
use crate::contract::{check_quiet, drain};
use crate::packet::{Addr, Body, Ecn};
use crate::queue::{DropTail, Factory};
use crate::units::BitRate;

fn datagram(number: u16) -> Packet {
    let src = Addr { port: number, ..Addr::default() };
    // 1000 bytes with both headers.
    Packet {
        src,
        dst: Addr::default(),
        ecn: Ecn::NotEct,
        returned: false,
        body: Body::Datagram { len: 972, words: [0; 2] },
    }
}

/// Sends a packet every `gap` and returns when each arrives.
fn arrivals(link: &mut Link, count: u16, gap: Span) -> Vec<(u16, Time)> {
    let mut sink = Sink::new(Interest::ALL);
    let mut came = Vec::new();
    let (mut now, mut next) = (Time::ZERO, 0);
    loop {
        drain(link, now, &mut sink, |packet| came.push((packet.src.port, now)));
        check_quiet(link, now, &mut sink);
        let send = (next < count).then(|| Time::ZERO + gap * u64::from(next));
        let Some(at) = [send, link.poll_timeout()].into_iter().flatten().min() else { break };
        now = at;
        link.handle_timeout(now, &mut sink);
        if send == Some(at) {
            link.handle_packet(now, datagram(next), &mut sink);
            next += 1;
        }
    }
    came
}

fn both_kinds(rate: BitRate, limit: Limit) -> [Link; 2] {
    let plain =
        LinkConfig::new(rate, Span::from_millis(10)).with_queue(Discipline::drop_tail(limit));
    let managed = plain.clone().with_queue(Discipline::Custom(Factory::new(move |setup| {
        Box::new(DropTail::new(drop_tail::Options { limit }, setup))
    })));
    [Link::new(0, 1, plain), Link::new(0, 1, managed)]
}

#[test]
fn packets_arrive_after_queue_transmission_and_propagation() {
    let rate: BitRate = "1mbit".parse().unwrap();
    for mut link in both_kinds(rate, Limit::NONE) {
        let came = arrivals(&mut link, 3, Span::from_millis(1));
        let times: Vec<u64> = came.iter().map(|&(_, at)| at.as_nanos() / 1_000_000).collect();
        assert_eq!(times, [18, 26, 34]);
    }
}

#[test]
fn what_does_not_fit_behind_the_packet_in_service_is_dropped() {
    let rate: BitRate = "1mbit".parse().unwrap();
    for limit in [Limit::packets(2), Limit::bytes(2500)] {
        for mut link in both_kinds(rate, limit) {
            let came = arrivals(&mut link, 12, Span::from_millis(1));
            let numbers: Vec<u16> = came.iter().map(|&(number, _)| number).collect();
            assert_eq!(numbers, [0, 1, 2, 8], "{limit:?}");
        }
    }
}

#[test]
fn a_computed_queue_and_a_managed_one_agree_packet_by_packet() {
    let rate: BitRate = "3mbit".parse().unwrap();
    let [mut a, mut b] = both_kinds(rate, Limit::packets(5));
    let gap = Span::from_micros(1700);
    assert_eq!(arrivals(&mut a, 500, gap), arrivals(&mut b, 500, gap));
}

#[test]
fn jitter_keeps_the_order_and_stays_within_its_bound() {
    let jitter = Span::from_millis(5);
    let config = LinkConfig::new(BitRate::INFINITE, Span::from_millis(10)).with_jitter(jitter);
    let gap = Span::from_millis(1);
    let came = arrivals(&mut Link::new(0, 3, config), 500, gap);
    assert!(came.is_sorted_by(|x, y| x.0 < y.0 && x.1 <= y.1));
    for (number, at) in came {
        let delay = at.since(Time::ZERO + gap * u64::from(number));
        assert!((Span::from_millis(10)..=Span::from_millis(15)).contains(&delay), "{delay}");
    }
}

#[test]
fn losses_have_their_probability() {
    let config = LinkConfig::new(BitRate::INFINITE, Span::ZERO).with_loss(0.1);
    let came = arrivals(&mut Link::new(0, 3, config), 20_000, Span::from_micros(1)).len();
    // Five standard deviations of a binomial.
    assert!((17_788..=18_212).contains(&came), "{came}");
}

fn impaired(impairments: Impairments) -> Link {
    let delay = Span::from_millis(10);
    let config = LinkConfig::new(BitRate::INFINITE, delay).with_impairments(impairments);
    Link::new(0, 3, config)
}

#[test]
fn a_late_packet_is_overtaken_and_the_others_do_not_wait() {
    let mut link = impaired(Impairments {
        reordering: Some(Reordering {
            share: Share::independent(1.0),
            gap: 4,
            shift: Shift::Late(Span::from_micros(2500)),
            packets: Packets::All,
        }),
        ..Impairments::default()
    });
    let came = arrivals(&mut link, 8, Span::from_millis(1));
    let order: Vec<u16> = came.iter().map(|&(number, _)| number).collect();
    // Every fourth, 2.5 ms late, behind the two that left within that time.
    assert_eq!(order, [0, 1, 2, 4, 5, 3, 6, 7]);
    assert_eq!(came[5].1, Time::ZERO + Span::from_micros(15_500));
}

#[test]
fn a_packet_that_is_ahead_arrives_early_but_not_before_it_was_sent() {
    for (by, expect_ms) in [(4, 6), (400, 0)] {
        let mut link = impaired(Impairments {
            reordering: Some(Reordering {
                share: Share::independent(1.0),
                gap: 1,
                shift: Shift::Ahead(Span::from_millis(by)),
                packets: Packets::All,
            }),
            ..Impairments::default()
        });
        let came = arrivals(&mut link, 1, Span::from_millis(1));
        assert_eq!(came, [(0, Time::ZERO + Span::from_millis(expect_ms))]);
    }
}

#[test]
fn a_copy_arrives_right_behind_its_original() {
    let share = Share::independent(0.2);
    let packets = Packets::All;
    let duplication = Some(Duplication { share, packets });
    let mut link = impaired(Impairments { duplication, ..Impairments::default() });
    let came = arrivals(&mut link, 1000, Span::from_millis(1));
    assert!(came.is_sorted());
    assert_eq!(came.len() as u64, 1000 + link.copies());
    // Five standard deviations: sqrt(1000 * 0.2 * 0.8) = 12.6.
    assert!((137..=263).contains(&link.copies()), "{}", link.copies());
}

#[test]
fn damage_and_outages_are_told_and_touch_the_packets_they_name() {
    let mut link = impaired(Impairments {
        corruption: Some(Corruption { rate: ErrorRate::PerBit(1e-4), packets: Packets::Data }),
        outages: vec![Outage {
            from: Time::from_nanos(1_000_000),
            until: Time::from_nanos(3_000_000),
        }],
        ..Impairments::default()
    });
    let came = arrivals(&mut link, 2000, Span::from_millis(1));
    assert!(!came.iter().any(|&(number, _)| number == 1 || number == 2));
    // 1000 bytes survive with (1 - 1e-4)^8000 = 0.449; five standard deviations are 111.
    assert!((787..=1009).contains(&came.len()), "{}", came.len());
    let pure_acks = Some(Loss { model: LossModel::Independent(1.0), packets: Packets::PureAcks });
    let mut link = impaired(Impairments { loss: pure_acks, ..Impairments::default() });
    assert_eq!(arrivals(&mut link, 50, Span::from_millis(1)).len(), 50);
}

#[test]
fn marks_are_told_and_a_returned_packet_comes_back_stamped() {
    let queue = Discipline::by_name("edctcp", 5).unwrap();
    let rate: BitRate = "1mbit".parse().unwrap();
    let config = LinkConfig::new(rate, Span::ZERO).with_queue(queue);
    let mut link = Link::new(0, 1, config);
    let mut sink = Sink::new(Interest::QUEUE);
    let segment = |number| Packet {
        ecn: Ecn::Ect0,
        body: Body::Tcp(crate::segment::TcpRepr {
            seq: crate::seq::Seq(number),
            ack: crate::seq::Seq(0),
            flags: crate::segment::Flags::ACK,
            window: 0,
            options: crate::segment::TcpOptions::default(),
            payload_len: 960,
        }),
        ..datagram(0)
    };
    let mut back = Vec::new();
    for number in 0..8 {
        link.handle_packet(Time::ZERO, segment(number), &mut sink);
        back.extend(std::iter::from_fn(|| link.poll_event()));
    }
    // One in service, five wait, and the last of them found more than three.
    let marks = sink.events().iter().filter(|e| matches!(e.kind, EventKind::Marked { .. }));
    assert_eq!(marks.count(), 1);
    assert_eq!(back.len(), 2);
    assert!(back.iter().all(|packet| packet.returned && packet.dst == Addr::default()));
}

#[test]
fn the_way_of_each_packet_is_told_to_those_who_ask() {
    let rate: BitRate = "1mbit".parse().unwrap();
    for mut link in both_kinds(rate, Limit::NONE) {
        let mut sink = Sink::new(Interest::PASSAGE);
        for number in 0..3 {
            link.handle_packet(Time::ZERO, datagram(number), &mut sink);
        }
        let end = Time::ZERO + Span::from_millis(100);
        drain(&mut link, end, &mut sink, |_| {});
        link.advance(end, &mut sink);
        let mut told: Vec<(&str, u16, u64)> = sink
            .drain()
            .map(|event| {
                let (what, packet) = match event.kind {
                    EventKind::Offered { packet, .. } => ("offered", packet),
                    EventKind::Served { packet, .. } => ("served", packet),
                    other => panic!("not asked for: {other:?}"),
                };
                (what, packet.src.port, event.time.as_nanos() / 1_000_000)
            })
            .collect();
        told.sort_unstable();
        let expected = [("offered", [0, 0, 0]), ("served", [0, 8, 16])];
        let expected = expected
            .into_iter()
            .flat_map(|(what, times)| (0..).zip(times).map(move |(number, at)| (what, number, at)));
        assert_eq!(told, expected.collect::<Vec<_>>());
    }
}
