//! Flow queues between bulk flows and a sparse one: RFC 8290 sections 1.3 and 4.2; under CoDel's law and
//! under PIE's.

use acklab_core::packet::{Body, Ecn, Packet};
use acklab_core::queue::{
    Discipline, FqCodel, FqPie, Pie, Queue, Verdict, Verdicts, fq_codel, fq_pie, pie,
};
use acklab_core::time::{Span, Time};

use crate::drive::{Ours, SERVICE, SIZE, drive, id, overload_steps, packet, setup};

/// Ports whose flows share no queue under the salt of the tests.
const BULK: [u16; 3] = [1, 2, 3];
const SPARSE: u16 = 4;

#[test]
fn bulk_flows_share_equally_and_a_sparse_packet_waits_for_one_packet_only() {
    // Where all queues together are full, FQ-PIE drops any arrival.
    for (name, room) in [("fq-codel", 300), ("fq-pie", 10_000)] {
        let discipline = Discipline::by_name(name, room).expect("a queue");
        share(&mut *discipline.build(&setup()));
    }
}

fn share(queue: &mut dyn Queue) {
    let mut verdicts = Verdicts::default();
    let mut sent = [0_u64; 5];
    let (mut number, mut sparse_since) = (0, None);
    for slot in 0..6_000_u64 {
        let now = Time::from_nanos(slot * SERVICE);
        // Unequal bulk: one, two and three packets per slot.
        for (index, &port) in BULK.iter().enumerate() {
            for _ in 0..=index {
                number += 1;
                queue.enqueue(now, packet(number, port, Ecn::NotEct), &mut verdicts);
            }
        }
        if slot % 50 == 25 {
            queue.enqueue(now, packet(number, SPARSE, Ecn::NotEct), &mut verdicts);
            sparse_since = Some(slot);
        }
        let left = queue.dequeue(now, &mut verdicts).expect("something waits");
        sent[usize::from(left.src.port)] += 1;
        if left.src.port == SPARSE {
            let waited = sparse_since.take().map(|since| slot - since);
            assert_eq!(waited, Some(0), "it goes first");
        }
        let lost = verdicts.drain().filter(|(_, verdict)| *verdict != Verdict::Marked);
        assert!(lost.map(|(packet, _)| packet.src.port).all(|port| port != SPARSE));
    }
    assert_eq!(sent[usize::from(SPARSE)], 120);
    let bulk: Vec<u64> = BULK.iter().map(|&port| sent[usize::from(port)]).collect();
    let (least, most) = (bulk.iter().min().expect("three"), bulk.iter().max().expect("three"));
    // Within two quanta of each other, after 1960 packets each.
    assert!(most - least <= 4, "{bulk:?}");
}

#[test]
fn a_full_buffer_drops_the_older_half_of_the_longest_queue_but_64_packets_at_most() {
    for (room, dropped) in [(1, 1), (10, 5), (100, 50), (200, 64)] {
        let mut queue = FqCodel::new(fq_codel::Options::packets(room), &setup());
        let mut verdicts = Verdicts::default();
        for number in 0..u64::from(room) {
            queue.enqueue(Time::ZERO, packet(number, BULK[0], Ecn::NotEct), &mut verdicts);
        }
        assert!(verdicts.is_empty());
        queue.enqueue(Time::ZERO, packet(u64::MAX, BULK[1], Ecn::NotEct), &mut verdicts);
        let numbers: Vec<u64> = verdicts.drain().map(|(packet, _)| id(&packet)).collect();
        assert!(numbers.iter().copied().eq(0..dropped), "{room}: {numbers:?}");
        assert_eq!(queue.packets(), room + 1 - dropped as u32);
    }
}

#[test]
fn a_flow_with_less_than_the_largest_packet_of_any_flow_loses_nothing() {
    let mut queue = FqCodel::new(fq_codel::Options::packets(10_000), &setup());
    let mut verdicts = Verdicts::default();
    queue.enqueue(Time::ZERO, packet(0, BULK[0], Ecn::NotEct), &mut verdicts);
    let small = Packet {
        body: Body::Datagram { len: 20, words: [0; 2] },
        ..packet(0, SPARSE, Ecn::NotEct)
    };
    assert_eq!(20 * small.size(), 960);
    for _ in 0..20 {
        queue.enqueue(Time::ZERO, small, &mut verdicts);
    }
    // They wait far longer than target and interval.
    for step in 0..21 {
        assert!(queue.dequeue(Time::ZERO + Span::from_millis(50 * step), &mut verdicts).is_some());
    }
    assert!(verdicts.is_empty());
}

#[test]
fn every_flow_is_under_codels_law() {
    let mut queue = FqCodel::new(fq_codel::Options::packets(10_000), &setup());
    let mut verdicts = Verdicts::default();
    for number in 0..500 {
        queue.enqueue(Time::ZERO, packet(number, BULK[0], Ecn::Ect0), &mut verdicts);
    }
    let mut marks = Vec::new();
    for step in 0..300 {
        let now = Time::ZERO + Span::from_millis(step);
        queue.dequeue(now, &mut verdicts);
        marks.extend(verdicts.drain().map(|_| step));
    }
    // Above 5 ms from 5 ms on, so the first at 105 ms, then after 100, 71 ms ...
    assert_eq!(marks[..3], [105, 205, 276]);
}

#[test]
fn a_full_fq_pie_drops_the_arrival_whichever_queue_it_is_for() {
    let mut queue = FqPie::new(fq_pie::Options::packets(10), &setup());
    let mut verdicts = Verdicts::default();
    for number in 0..10 {
        queue.enqueue(Time::ZERO, packet(number, BULK[0], Ecn::NotEct), &mut verdicts);
    }
    assert!(verdicts.is_empty());
    queue.enqueue(Time::ZERO, packet(10, BULK[1], Ecn::NotEct), &mut verdicts);
    let ports: Vec<u16> = verdicts.drain().map(|(packet, _)| packet.src.port).collect();
    assert_eq!(ports, [BULK[1]]);
    assert_eq!((queue.packets(), queue.bytes()), (10, 10 * u64::from(SIZE)));
}

#[test]
fn every_flow_is_under_pies_law_with_a_delay_of_its_own() {
    let mut queue = FqPie::new(fq_pie::Options::packets(10_000), &setup());
    let mut verdicts = Verdicts::default();
    let (mut dropped, mut waited) = ([0; 5], Vec::new());
    // 60 s of one and a half packets per slot, and one in eight slots of the other flow.
    for slot in 0..11_250_u64 {
        let now = Time::from_nanos(slot * SERVICE);
        for number in 0..2 - slot % 2 {
            queue.enqueue(now, packet(slot * 10 + number, BULK[0], Ecn::NotEct), &mut verdicts);
        }
        if slot % 8 == 0 {
            queue.enqueue(now, packet(slot * 10, SPARSE, Ecn::NotEct), &mut verdicts);
        }
        if let Some(left) = queue.dequeue(now, &mut verdicts)
            && left.src.port == BULK[0]
            && slot > 5_000
        {
            waited.push((slot - id(&left) / 10) as f64 * SERVICE as f64 / 1e9);
        }
        for (packet, _) in verdicts.drain() {
            dropped[usize::from(packet.src.port)] += 1;
        }
    }
    assert_eq!(dropped[usize::from(SPARSE)], 0);
    assert!(dropped[usize::from(BULK[0])] > 3_000, "{dropped:?}");
    let mean = waited.iter().sum::<f64>() / waited.len() as f64;
    assert!((0.0075..0.03).contains(&mean), "{mean} s for a target of 15 ms");
}

#[test]
fn one_flow_under_fq_pie_loses_exactly_what_it_loses_under_pie() {
    fn drops(mut queue: impl Queue) -> Vec<(u64, u64)> {
        // The same coins for both.
        queue.reseed(7);
        let mut ours = Ours::new(queue, |queue, _| queue.bytes() as f64);
        drive(&mut ours, &overload_steps(), u64::MAX);
        ours.drops
    }
    let options = fq_pie::Options::packets(100);
    let pie = pie::Options { limit: options.limit, ..options.pie };
    let (alone, among) = (drops(Pie::new(pie, &setup())), drops(FqPie::new(options, &setup())));
    assert!(alone.len() > 300, "{}", alone.len());
    assert_eq!(alone, among);
}
