//! PIE's drop probability and drops against RFC 8033 sections 4 and 5, with a real timer instead of
//! lazy updates, and against the controller of the 2013 paper.

use std::collections::VecDeque;

use acklab_core::queue::pie::{Delay, Options};
use acklab_core::queue::{Limit, Pie};
use acklab_core::rng::Rng;
use acklab_core::time::Span;

use crate::drive::{Ours, SERVICE, SIZE, Server, assert_close, drive, overload_steps, setup};

struct Oracle {
    rfc: bool,
    target: f64,
    period: f64,
    max_burst: f64,
    room: usize,
    fifo: VecDeque<u64>,
    drop_prob: f64,
    qdelay_old: f64,
    burst_allowance: f64,
    accu_prob: f64,
    rng: Rng,
    drops: Vec<(u64, u64)>,
    log: Vec<f64>,
}

impl Oracle {
    fn new(rfc: bool, room: usize) -> Self {
        let (target, period, max_burst) =
            if rfc { (0.015, 0.015, 0.15) } else { (0.02, 0.03, 0.1) };
        Self {
            rfc,
            target,
            period,
            max_burst,
            room,
            fifo: VecDeque::new(),
            drop_prob: 0.0,
            qdelay_old: 0.0,
            burst_allowance: max_burst,
            accu_prob: 0.0,
            rng: Rng::named(setup().seed, "link/0/queue"),
            drops: Vec::new(),
            log: Vec::new(),
        }
    }

    fn drop_early(&mut self) -> bool {
        if self.burst_allowance > 1e-9 {
            return false;
        }
        if !self.rfc {
            return self.drop_prob > 0.0 && self.rng.uniform() < self.drop_prob;
        }
        if self.qdelay_old < self.target / 2.0 && self.drop_prob < 0.2 {
            return false;
        }
        if self.fifo.len() <= 2 {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob < 8.5 && self.rng.uniform() >= self.drop_prob {
            return false;
        }
        self.accu_prob = 0.0;
        true
    }

    fn scaled(&self, p: f64) -> f64 {
        let prob = self.drop_prob;
        if self.rfc && prob < 0.000_001 {
            p / 2048.0
        } else if self.rfc && prob < 0.000_01 {
            p / 512.0
        } else if self.rfc && prob < 0.000_1 {
            p / 128.0
        } else if self.rfc && prob < 0.001 {
            p / 32.0
        } else if prob < 0.01 {
            p / 8.0
        } else if prob < 0.1 {
            p / 2.0
        } else {
            p
        }
    }
}

impl Server for Oracle {
    fn arrive(&mut self, now: u64, id: u64) {
        if self.fifo.len() >= self.room {
            self.accu_prob = 0.0;
            self.drops.push((id, now));
        } else if self.drop_early() {
            self.drops.push((id, now));
        } else {
            self.fifo.push_back(id);
        }
        self.log.push(self.drop_prob);
    }

    fn leave(&mut self, _now: u64) -> Option<u64> {
        self.fifo.pop_front()
    }

    fn tick(&mut self, _now: u64) {
        let qdelay = self.fifo.len() as f64 * f64::from(SIZE) * 8.0 / 1_500_000.0;
        let mut p = 0.125 * (qdelay - self.target) + 1.25 * (qdelay - self.qdelay_old);
        p = self.scaled(p);
        if self.rfc && self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if self.rfc && qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob -= self.drop_prob / 64.0;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        let calm = self.drop_prob == 0.0
            && qdelay < self.target / 2.0
            && self.qdelay_old < self.target / 2.0;
        self.burst_allowance =
            if calm { self.max_burst } else { (self.burst_allowance - self.period).max(0.0) };
        self.qdelay_old = qdelay;
    }
}

fn agree(config: Options, rfc: bool, room: usize) -> Oracle {
    let arrivals = overload_steps();
    let mut ours = Ours::new(Pie::new(config, &setup()), Pie::probability);
    drive(&mut ours, &arrivals, u64::MAX);
    let mut oracle = Oracle::new(rfc, room);
    drive(&mut oracle, &arrivals, config.update.as_nanos());
    assert_close(&ours.log, &oracle.log);
    assert_eq!(ours.drops, oracle.drops);
    oracle
}

#[test]
fn pie_has_the_probabilities_and_drops_of_rfc_8033_at_every_arrival() {
    for room in [17, 100, 10_000] {
        let config = Options { limit: Limit::packets(room), ..Options::packets(0) };
        let oracle = agree(config, true, room as usize);
        let highest = oracle.log.iter().copied().fold(0.0, f64::max);
        assert!(oracle.drops.len() > 300 && highest > 0.2, "{} {highest}", oracle.drops.len());
    }
}

#[test]
fn pie_of_2013_has_the_probabilities_and_drops_of_its_paper_at_every_arrival() {
    let config = Options { limit: Limit::packets(100), ..Options::hpsr_2013(0) };
    assert!(agree(config, false, 100).drops.len() > 300);
}

#[test]
fn a_queue_that_never_holds_the_measuring_threshold_is_never_managed() {
    let arrivals = overload_steps();
    let delay = Delay::Departures;
    let config = Options { delay, ..Options::packets(16) };
    let mut ours = Ours::new(Pie::new(config, &setup()), Pie::probability);
    drive(&mut ours, &arrivals, u64::MAX);
    assert!(ours.log.iter().all(|&probability| probability == 0.0));
    assert!(!ours.drops.is_empty(), "it overflows instead");
}

#[test]
fn all_three_sources_of_the_delay_hold_it_near_the_target() {
    for delay in [Delay::KnownRate, Delay::TimeStamps, Delay::Departures] {
        let config = Options { delay, dq_threshold: 4_000, ..Options::packets(200) };
        let watch = |pie: &mut Pie, _| acklab_core::queue::Queue::bytes(pie) as f64;
        let mut ours = Ours::new(Pie::new(config, &setup()), watch);
        // 30 % overload for 60 s; the second half is settled.
        let gap = SERVICE * 10 / 13;
        let arrivals: Vec<u64> = (0..60_000_000_000 / gap).map(|i| i * gap).collect();
        drive(&mut ours, &arrivals, u64::MAX);
        let settled = &ours.log[ours.log.len() / 2..];
        let mean = settled.iter().sum::<f64>() / settled.len() as f64 * 8.0 / 1_500_000.0;
        let target = Span::from_millis(15).as_secs_f64();
        assert!((0.5 * target..2.0 * target).contains(&mean), "{delay:?}: {mean} s");
    }
}
