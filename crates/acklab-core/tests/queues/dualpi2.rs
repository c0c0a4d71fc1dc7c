//! DualPI2's controller, its coupling and its scheduler against RFC 9332 appendix A.

use acklab_core::packet::Ecn;
use acklab_core::queue::dualpi2::{Laqm, Options, Scheduler};
use acklab_core::queue::{DualPi2, Queue, Verdict, Verdicts};
use acklab_core::time::{Span, Time};

use crate::drive::{SERVICE, packet, setup};

/// Packets of either kind that left and how many of them were chosen, with the sum of the probabilities
/// that they should have been chosen with.
#[derive(Default)]
struct Tally {
    left: u64,
    chosen: f64,
    expected: f64,
}

/// Both queues hold a few packets all the time; returns the tallies of C and L.
fn run(config: Options, slots: u64, classic: Ecn) -> [Tally; 2] {
    let mut queue = DualPi2::new(config, &setup());
    let mut verdicts = Verdicts::default();
    let mut tallies = [Tally::default(), Tally::default()];
    let at = |slot| Time::from_nanos(slot * SERVICE);
    for slot in 0..slots {
        for (port, ecn) in [(0, classic), (1, Ecn::Ect1)] {
            queue.enqueue(at(slot), packet(slot, port, ecn), &mut verdicts);
        }
        verdicts.drain();
        // p' as the next departure will see it.
        let base = queue.base_probability(at(slot));
        for _ in 0..2 {
            let before = queue.packets();
            let Some(left) = queue.dequeue(at(slot), &mut verdicts) else { continue };
            let marked = verdicts.drain().count();
            let lane = usize::from(left.src.port);
            assert!(marked <= 1 && queue.packets() + 1 == before);
            let tally = &mut tallies[lane];
            tally.left += 1;
            tally.chosen += marked as f64;
            tally.expected += if lane == 0 { base * base } else { 2.0 * base };
        }
    }
    tallies
}

#[test]
fn classic_marks_come_with_the_square_of_half_the_scalable_ones() {
    // The L queue's own AQM keeps silent, so that only the coupling marks there. The gains are low and
    // C's delay is zero at most updates, so p' moves slowly; a head start fills C.
    let silent = Laqm::Step { threshold: Span::MAX };
    let target = Span::from_nanos(0);
    let scheduler = Scheduler::Weighted { classic: 0.5 };
    let mut config = Options { laqm: silent, target, scheduler, ..Options::packets(100_000) };
    (config.alpha, config.beta) = (0.01, 0.0);
    let mut queue = DualPi2::new(config, &setup());
    let mut verdicts = Verdicts::default();
    for number in 0..40 {
        queue.enqueue(Time::ZERO, packet(number, 0, Ecn::Ect0), &mut verdicts);
    }
    let (mut expected, mut chosen, mut highest) = ([0.0; 2], [0.0; 2], 0.0);
    for slot in 0..2_000_u64 {
        let now = Time::from_nanos(slot * SERVICE);
        for (port, ecn) in [(0, Ecn::Ect0), (1, Ecn::Ect1)] {
            queue.enqueue(now, packet(slot, port, ecn), &mut verdicts);
        }
        let base = queue.base_probability(now);
        highest = base.max(highest);
        if 2.0 * base >= 1.0 {
            break;
        }
        for _ in 0..2 {
            let left = queue.dequeue(now, &mut verdicts).expect("both wait");
            let lane = usize::from(left.src.port);
            expected[lane] += if lane == 0 { base * base } else { 2.0 * base };
            chosen[lane] += verdicts.drain().count() as f64;
        }
    }
    assert!(highest > 0.3, "{highest}");
    for lane in 0..2 {
        // Choices by accumulation are never more than one away from the sum of probabilities.
        assert!((expected[lane] - chosen[lane]).abs() <= 1.0, "{expected:?} {chosen:?}");
    }
    assert!(chosen[0] > 10.0 && chosen[1] > 3.0 * chosen[0], "{chosen:?}");
}

#[test]
fn the_base_probability_follows_the_controller_of_appendix_a() {
    let config = Options::packets(100_000);
    let mut queue = DualPi2::new(config, &setup());
    let mut verdicts = Verdicts::default();
    // 120 packets at once, one leaves each 5.33 ms: the head's age is the time itself. No packet
    // comes or goes between two departures, nor for 400 ms after the tenth.
    for number in 0..120 {
        queue.enqueue(Time::ZERO, packet(number, 0, Ecn::Ect0), &mut verdicts);
    }
    let times: Vec<u64> = (1..=10).map(|slot| slot * SERVICE).chain([453_333_340]).collect();
    for now in times {
        let (mut p, mut prevq) = (0.0_f64, 0.0);
        for update in 1..=now / 15_000_000 {
            let curq = update as f64 * 0.015;
            p = (p + 0.15 * (curq - 0.015) + 3.0 * (curq - prevq)).clamp(0.0, 1.0);
            prevq = curq;
        }
        let ours = queue.base_probability(Time::from_nanos(now));
        assert!((ours - p).abs() < 1e-9, "{now}: {ours} for {p}");
        queue.dequeue(Time::from_nanos(now), &mut verdicts);
    }
}

#[test]
fn under_overload_both_queues_drop_whatever_the_ecn_field_says() {
    let config = Options::packets(100_000);
    let mut queue = DualPi2::new(config, &setup());
    let mut verdicts = Verdicts::default();
    for number in 0..2_000 {
        queue.enqueue(Time::ZERO, packet(number, 0, Ecn::Ect0), &mut verdicts);
        queue.enqueue(Time::ZERO, packet(number, 1, Ecn::Ect1), &mut verdicts);
    }
    let now = Time::ZERO + Span::from_secs(2);
    assert!(queue.base_probability(now) >= 1.0);
    while queue.dequeue(now, &mut verdicts).is_some() {}
    let mut drops = [0, 0];
    for (packet, verdict) in verdicts.drain() {
        if verdict != Verdict::Marked {
            drops[usize::from(packet.src.port)] += 1;
        }
    }
    // p_C is 1: accumulation spares the first of each.
    assert_eq!(drops, [1_999, 1_999]);
}

#[test]
fn the_low_latency_queue_marks_by_its_own_delay_before_any_coupling() {
    let ramp = Options::packets(100);
    let step = Options { laqm: Laqm::Step { threshold: Span::from_millis(1) }, ..ramp };
    for (config, wait_us, marked) in
        [(ramp, 700, 0), (ramp, 1_000, 9), (ramp, 1_300, 18), (step, 900, 0), (step, 1_100, 18)]
    {
        let mut queue = DualPi2::new(config, &setup());
        let mut verdicts = Verdicts::default();
        for number in 0..20 {
            queue.enqueue(Time::ZERO, packet(number, 1, Ecn::Ect1), &mut verdicts);
        }
        let now = Time::ZERO + Span::from_micros(wait_us);
        while queue.dequeue(now, &mut verdicts).is_some() {}
        // The last packet is alone and is not marked; accumulation spares the first.
        assert_eq!(verdicts.drain().count(), marked, "{:?} after {wait_us} us", config.laqm);
    }
}

#[test]
fn the_classic_queue_gets_its_share_and_low_latency_goes_first() {
    let config = Options::packets(100_000);
    let [classic, low] = run(Options { alpha: 0.0, beta: 0.0, ..config }, 100, Ecn::Ect0);
    assert_eq!((classic.left, low.left), (100, 100), "enough for both");
    assert!(classic.chosen + classic.expected + low.expected < 1e-9);
    let both_wait = |scheduler| {
        let mut queue = DualPi2::new(Options { scheduler, ..config }, &setup());
        let mut verdicts = Verdicts::default();
        for number in 0..320 {
            for (port, ecn) in [(0, Ecn::Ect0), (1, Ecn::Ect1)] {
                queue.enqueue(Time::ZERO, packet(number, port, ecn), &mut verdicts);
            }
        }
        let order = (0..160).map(|_| queue.dequeue(Time::ZERO, &mut verdicts).unwrap().src.port);
        order.filter(|&port| port == 0).count()
    };
    let share = both_wait(Scheduler::Weighted { classic: 1.0 / 16.0 });
    assert!((9..=11).contains(&share), "{share} of 160");
    assert_eq!(both_wait(Scheduler::TimeShifted { shift: Span::from_millis(30) }), 0);
}
