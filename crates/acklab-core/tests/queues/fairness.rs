//! FQ-CoDel between bulk flows and a sparse one: RFC 8290 sections 1.3 and 4.2.

use acklab_core::packet::Ecn;
use acklab_core::queue::fq_codel::Options;
use acklab_core::queue::{FqCodel, Queue, Verdict, Verdicts};
use acklab_core::time::{Span, Time};

use crate::drive::{SERVICE, packet, setup};

/// Ports whose flows have queues of their own under the salt of the tests.
const BULK: [u16; 3] = [1, 2, 3];
const SPARSE: u16 = 4;

#[test]
fn bulk_flows_share_equally_and_a_sparse_packet_waits_for_one_packet_only() {
    let mut queue = FqCodel::new(Options::packets(300), &setup());
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
    let (least, most) = (bulk.iter().min().unwrap(), bulk.iter().max().unwrap());
    // Within two quanta of each other, after 1960 packets each.
    assert!(most - least <= 4, "{bulk:?}");
}

#[test]
fn a_full_buffer_takes_from_the_longest_queue() {
    let mut queue = FqCodel::new(Options::packets(10), &setup());
    let mut verdicts = Verdicts::default();
    for number in 0..10 {
        queue.enqueue(Time::ZERO, packet(number, BULK[0], Ecn::NotEct), &mut verdicts);
    }
    assert!(verdicts.is_empty());
    for number in 10..13 {
        queue.enqueue(Time::ZERO, packet(number, BULK[1], Ecn::NotEct), &mut verdicts);
    }
    let ports: Vec<u16> = verdicts.drain().map(|(packet, _)| packet.src.port).collect();
    assert_eq!(ports, [BULK[0]; 3]);
}

#[test]
fn every_flow_is_under_codels_law() {
    let mut queue = FqCodel::new(Options::packets(10_000), &setup());
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
