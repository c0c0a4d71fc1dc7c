//! RED's average, probability and drops against the algorithm of Floyd and Jacobson 1993 (figure 2),
//! the spacing of its choices against their distributions, and adaptive RED's steps.

use acklab_core::math;
use acklab_core::packet::Ecn;
use acklab_core::queue::ecn::Treatment;
use acklab_core::queue::red::{AboveMax, Adaptive, Options, Spacing};
use acklab_core::queue::{Limit, Queue, Red, Verdict, Verdicts};
use acklab_core::rng::Rng;
use acklab_core::time::{Span, Time};

use crate::drive::{Ours, SERVICE, Server, assert_close, drive, overload_steps, packet, setup};

const MIN: f64 = 5.0;
const MAX: f64 = 15.0;
const MAX_P: f64 = 0.1;
const WEIGHT: f64 = 0.02;

struct Oracle {
    gentle: bool,
    uniform: bool,
    fifo: Vec<u64>,
    avg: f64,
    count: i64,
    /// The transmitter ran dry then.
    q_time: Option<u64>,
    rng: Rng,
    drops: Vec<(u64, u64)>,
    log: Vec<f64>,
}

impl Oracle {
    fn chosen(&mut self) -> bool {
        if self.avg < MIN {
            self.count = -1;
            return false;
        }
        self.count += 1;
        let p_b = if self.avg < MAX {
            MAX_P * (self.avg - MIN) / (MAX - MIN)
        } else if self.gentle && self.avg < 2.0 * MAX {
            MAX_P + (self.avg - MAX) / MAX * (1.0 - MAX_P)
        } else {
            self.count = 0;
            return true;
        };
        let denominator = 1.0 - self.count as f64 * p_b;
        let p_a = if !self.uniform {
            p_b
        } else if denominator > 0.0 {
            (p_b / denominator).min(1.0)
        } else {
            1.0
        };
        let chosen = p_a > 0.0 && (p_a >= 1.0 || self.rng.uniform() < p_a);
        if chosen {
            self.count = 0;
        }
        chosen
    }
}

impl Server for Oracle {
    fn arrive(&mut self, now: u64, id: u64) {
        if let Some(q_time) = self.q_time {
            let m = (now - q_time) as f64 / SERVICE as f64;
            self.avg *= math::pow(1.0 - WEIGHT, m);
        } else {
            self.avg = (1.0 - WEIGHT) * self.avg + WEIGHT * self.fifo.len() as f64;
        }
        if self.chosen() {
            self.drops.push((id, now));
        } else {
            self.fifo.push(id);
        }
        self.log.push(self.avg);
    }

    fn leave(&mut self, now: u64) -> Option<u64> {
        if self.fifo.is_empty() {
            self.q_time.get_or_insert(now);
            return None;
        }
        self.q_time = None;
        Some(self.fifo.remove(0))
    }
}

fn config() -> Options {
    Options {
        limit: Limit::NONE,
        weight: WEIGHT,
        min_threshold: MIN,
        max_threshold: MAX,
        max_probability: MAX_P,
        ..Options::packets(u32::MAX)
    }
}

#[test]
fn red_has_the_averages_and_drops_of_the_1993_paper_at_every_arrival() {
    let arrivals = overload_steps();
    for (gentle, spacing) in
        [(false, Spacing::Uniform), (false, Spacing::Geometric), (true, Spacing::Uniform)]
    {
        let config = Options { gentle, spacing, ..config() };
        let mut ours = Ours::new(Red::new(config, &setup()), |red, _| red.average());
        drive(&mut ours, &arrivals, u64::MAX);
        let mut oracle = Oracle {
            gentle,
            uniform: spacing == Spacing::Uniform,
            fifo: Vec::new(),
            avg: 0.0,
            count: -1,
            q_time: Some(0),
            rng: Rng::named(setup().seed, "link/0/queue"),
            drops: Vec::new(),
            log: Vec::new(),
        };
        drive(&mut oracle, &arrivals, u64::MAX);
        assert_close(&ours.log, &oracle.log);
        assert_eq!(ours.drops, oracle.drops);
        assert!(ours.drops.len() > 300, "{}", ours.drops.len());
    }
}

/// How many packets lie between two choices while the average stands at `length`.
fn gaps(config: Options, length: u64, n: usize) -> Vec<u64> {
    let mut red = Red::new(Options { weight: 1.0, ..config }, &setup());
    let mut verdicts = Verdicts::default();
    for id in 0..length {
        red.enqueue(Time::ZERO, packet(id, 0, Ecn::Ect0), &mut verdicts);
    }
    verdicts.drain();
    let (mut gaps, mut since) = (Vec::new(), 0);
    while gaps.len() < n + 1 {
        red.enqueue(Time::ZERO, packet(0, 0, Ecn::Ect0), &mut verdicts);
        red.dequeue(Time::ZERO, &mut verdicts);
        since += 1;
        if verdicts.drain().count() > 0 {
            gaps.push(since);
            since = 0;
        }
    }
    gaps.split_off(1)
}

#[test]
fn choices_are_spaced_uniformly_or_geometrically() {
    // Half way between the thresholds p_b is 0.05.
    let n = 40_000;
    let uniform = gaps(config(), 10, n);
    // The text derives 1..=20; its figure counts a packet before it asks, which makes it 1..=19.
    for gap in 1..=19 {
        let share = uniform.iter().filter(|&&other| other == gap).count() as f64 / n as f64;
        let expect = 1.0 / 19.0;
        let sd = (expect * (1.0 - expect) / n as f64).sqrt();
        assert!((share - expect).abs() < 5.0 * sd, "{gap}: {share}");
    }
    let geometric = gaps(Options { spacing: Spacing::Geometric, ..config() }, 10, n);
    let mean = geometric.iter().sum::<u64>() as f64 / n as f64;
    // Mean 20, variance 0.95 / 0.05^2 = 380.
    assert!((mean - 20.0).abs() < 5.0 * (380.0 / n as f64).sqrt(), "{mean}");
}

#[test]
fn above_the_upper_threshold_ecn_capable_packets_are_dropped_or_marked_by_choice() {
    for (above_max, ecn_lives) in [(AboveMax::Drop, false), (AboveMax::Mark, true)] {
        let ecn = Treatment::Exempt;
        let mut red = Red::new(Options { ecn, weight: 1.0, above_max, ..config() }, &setup());
        let mut verdicts = Verdicts::default();
        // Packets that no coin chooses fill the queue to 16.
        for id in 0..16 {
            red.enqueue(Time::ZERO, packet(id, 0, Ecn::NotEct), &mut verdicts);
        }
        red.enqueue(Time::ZERO, packet(16, 0, Ecn::Ect0), &mut verdicts);
        assert_eq!(red.packets() == 17, ecn_lives);
        assert_eq!(verdicts.drain().count(), 1);
    }
}

#[test]
fn adaptive_red_raises_and_lowers_its_probability_every_half_second() {
    let adaptive = Some(Adaptive::default());
    let mut red = Red::new(Options { weight: 1.0, adaptive, ..config() }, &setup());
    let mut verdicts = Verdicts::default();
    let at = |millis| Time::ZERO + Span::from_millis(millis);
    for id in 0..16 {
        red.enqueue(at(0), packet(id, 0, Ecn::Ect0), &mut verdicts);
    }
    // Four steps of 0.01 while the average is above the target range of 9 to 11.
    red.enqueue(at(2_100), packet(16, 0, Ecn::Ect0), &mut verdicts);
    assert!((red.max_probability() - 0.14).abs() < 1e-12, "{}", red.max_probability());
    while red.dequeue(at(2_200), &mut verdicts).is_some() {}
    red.enqueue(at(2_300), packet(17, 0, Ecn::Ect0), &mut verdicts);
    // The average is now that of an empty queue; two factors of 0.9, though no packet came for a second.
    red.enqueue(at(3_100), packet(18, 0, Ecn::Ect0), &mut verdicts);
    assert!((red.max_probability() - 0.14 * 0.81).abs() < 1e-12, "{}", red.max_probability());
}

#[test]
fn adaptive_red_sets_itself_up_from_rate_and_delay() {
    let rate = "15mbit".parse().unwrap();
    let config = Options::adaptive(Limit::packets(100), rate, Span::from_millis(20));
    // 1875 packets/s: 18.75 packets in half of 20 ms.
    assert!((config.min_threshold - 18.75).abs() < 1e-9 && config.gentle);
    assert!((config.max_threshold - 56.25).abs() < 1e-9);
    assert!((config.weight - (1.0 - math::exp(-1.0 / 1875.0))).abs() < 1e-15);
}

#[test]
fn gentle_red_marks_up_to_twice_max_where_it_drops_all() {
    let options = Options { gentle: true, weight: 1.0, limit: Limit::NONE, ..Options::packets(0) };
    let options = Options { min_threshold: MIN, max_threshold: MAX, ..options };
    let mut queue = Red::new(options, &setup());
    let mut verdicts = Verdicts::default();
    let (mut marked_above, mut dropped) = (0, 0);
    for number in 0..200 {
        let average = f64::from(queue.packets());
        queue.enqueue(Time::ZERO, packet(number, 0, Ecn::Ect0), &mut verdicts);
        for (_, verdict) in verdicts.drain() {
            let certain = average >= 2.0 * MAX;
            assert_eq!(verdict == Verdict::Marked, !certain, "at {average}");
            marked_above += u32::from(average >= MAX && !certain);
            dropped += u32::from(certain);
        }
    }
    assert!(marked_above > 3 && dropped > 100, "{marked_above} {dropped}");
}
