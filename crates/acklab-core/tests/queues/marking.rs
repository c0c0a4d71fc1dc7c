//! Threshold, ENCN, Jersey and E-DCTCP: which packets they mark, return or drop.

use acklab_core::event::DropReason;
use acklab_core::packet::{Body, Ecn, Packet};
use acklab_core::queue::ecn::{Moment, Treatment};
use acklab_core::queue::{
    Edctcp, Encn, Jersey, Queue, Threshold, Unit, Verdict, Verdicts, encn, jersey, threshold,
};
use acklab_core::segment::{Flags, TcpOptions, TcpRepr};
use acklab_core::seq::Seq;
use acklab_core::time::Time;

use crate::drive::{id, packet, setup};

/// Eight packets arrive and all leave; which are marked?
fn marked(queue: &mut dyn Queue, ecn: Ecn) -> Vec<u64> {
    let mut verdicts = Verdicts::default();
    for number in 0..8 {
        queue.enqueue(Time::ZERO, packet(number, 0, ecn), &mut verdicts);
    }
    let mut left = Vec::new();
    while let Some(packet) = queue.dequeue(Time::ZERO, &mut verdicts) {
        left.push(packet);
    }
    let told: Vec<u64> = verdicts
        .drain()
        .filter(|(_, verdict)| *verdict == Verdict::Marked)
        .map(|(packet, _)| id(&packet))
        .collect();
    let carried: Vec<u64> = left.iter().filter(|p| p.ecn == Ecn::Ce).map(id).collect();
    assert_eq!(told, carried);
    told
}

#[test]
fn a_threshold_marks_what_finds_or_leaves_behind_more_than_k() {
    let config = threshold::Options::packets(20);
    let departure = threshold::Options { moment: Moment::Departure, ..config };
    let bytes = threshold::Options { unit: Unit::Bytes, threshold: 5_500.0, ..config };
    for (config, expect) in
        [(config, vec![4, 5, 6, 7]), (departure, vec![0, 1, 2, 3]), (bytes, vec![6, 7])]
    {
        assert_eq!(marked(&mut Threshold::new(config, &setup()), Ecn::Ect0), expect, "{config:?}");
    }
}

#[test]
fn encn_marks_what_finds_or_leaves_behind_less_than_q_min() {
    let config = encn::Options::packets(20);
    let departure = encn::Options { moment: Moment::Departure, ..config };
    assert_eq!(marked(&mut Encn::new(config, &setup()), Ecn::Ect0), [0, 1, 2]);
    assert_eq!(marked(&mut Encn::new(departure, &setup()), Ecn::Ect0), [5, 6, 7]);
    assert_eq!(marked(&mut Encn::new(config, &setup()), Ecn::NotEct), [0; 0]);
}

#[test]
fn jersey_warns_all_while_the_average_is_high() {
    let config = jersey::Options { weight: 0.5, threshold: 2.0, ..jersey::Options::packets(20) };
    // Averages at arrival: 0, .5, 1.25, 2.125, 3.06, ...
    assert_eq!(marked(&mut Jersey::new(config, &setup()), Ecn::Ect0), [3, 4, 5, 6, 7]);
    assert_eq!(marked(&mut Jersey::new(config, &setup()), Ecn::NotEct), [0; 0]);
    let departure = jersey::Options { moment: Moment::Departure, ..config };
    // It was 6.0 at the last arrival, and no packet has come since.
    assert_eq!(marked(&mut Jersey::new(departure, &setup()), Ecn::Ect0), [0, 1, 2, 3, 4, 5, 6, 7]);
}

fn segment(returned: bool) -> Packet {
    let tcp = TcpRepr {
        seq: Seq(0),
        ack: Seq(0),
        flags: Flags::ACK,
        window: 0,
        options: TcpOptions::default(),
        payload_len: 960,
    };
    Packet { returned, body: Body::Tcp(tcp), ..packet(0, 0, Ecn::NotEct) }
}

#[test]
fn edctcp_returns_segments_once_and_drops_everything_else() {
    let ecn = Treatment::Exempt;
    let mut queue =
        Edctcp::new(threshold::Options { ecn, ..threshold::Options::packets(5) }, &setup());
    let mut verdicts = Verdicts::default();
    for number in 0..5 {
        queue.enqueue(Time::ZERO, packet(number, 0, Ecn::NotEct), &mut verdicts);
    }
    assert!(verdicts.is_empty(), "exempt packets fill the queue");
    for (packet, reason) in [
        (segment(false), DropReason::Returned),
        (segment(true), DropReason::Overflow),
        (packet(9, 0, Ecn::Ect0), DropReason::Overflow),
    ] {
        queue.enqueue(Time::ZERO, packet, &mut verdicts);
        let verdicts: Vec<_> = verdicts.drain().collect();
        assert_eq!(verdicts, [(packet, Verdict::Dropped(reason))]);
    }
}
