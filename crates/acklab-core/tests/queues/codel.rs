//! CoDel's drop times against RFC 8289 section 5 and against the article of 2012, in seconds and
//! doubles, as the pseudocode of either reads.

use std::collections::VecDeque;

use acklab_core::queue::codel::{Options, SquareRoot, Variant};
use acklab_core::queue::{Codel, Limit};

use crate::drive::{Ours, Server, drive, overload_steps, setup, short_overloads};

const TARGET: f64 = 0.005;
const INTERVAL: f64 = 0.1;

#[derive(Default)]
struct Oracle {
    article: bool,
    fifo: VecDeque<(u64, f64)>,
    first_above_time: f64,
    drop_next: f64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    drops: Vec<(u64, u64)>,
    /// Rounds of the dropping state.
    rounds: u32,
}

impl Oracle {
    fn control_law(t: f64, count: u32) -> f64 {
        t + INTERVAL / f64::from(count).sqrt()
    }

    fn dodequeue(&mut self, now: f64) -> (Option<u64>, bool) {
        let Some((id, came)) = self.fifo.pop_front() else {
            self.first_above_time = 0.0;
            return (None, false);
        };
        let mut ok_to_drop = false;
        // All packets have the maximum size: at most one left, or in the article less than one.
        if now - came < TARGET || self.fifo.len() <= usize::from(!self.article) {
            self.first_above_time = 0.0;
        } else if self.first_above_time == 0.0 {
            self.first_above_time = now + INTERVAL;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(id), ok_to_drop)
    }

    fn enters(&self, now: f64) -> bool {
        !self.article || now - self.drop_next < INTERVAL || now - self.first_above_time >= INTERVAL
    }

    fn resume(&mut self, now: f64) {
        if self.article {
            let recent = now - self.drop_next < INTERVAL;
            self.count = if recent && self.count > 2 { self.count - 2 } else { 1 };
        } else {
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16.0 * INTERVAL {
                self.count = delta;
            }
        }
        self.drop_next = Self::control_law(now, self.count);
        self.lastcount = self.count;
    }
}

impl Server for Oracle {
    fn arrive(&mut self, now: u64, id: u64) {
        self.fifo.push_back((id, now as f64 / 1e9));
    }

    fn leave(&mut self, now_nanos: u64) -> Option<u64> {
        let now = now_nanos as f64 / 1e9;
        let (mut id, mut ok) = self.dodequeue(now);
        if id.is_none() {
            self.dropping = false;
            return None;
        }
        if self.dropping {
            if !ok {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.drops.push((id.expect("late, so there is one"), now_nanos));
                self.count += 1;
                (id, ok) = self.dodequeue(now);
                if ok {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok && self.enters(now) {
            self.drops.push((id.expect("late, so there is one"), now_nanos));
            (id, _) = self.dodequeue(now);
            self.dropping = true;
            self.rounds += 1;
            self.resume(now);
        }
        id
    }
}

fn drops_of_both(variant: Variant, arrivals: &[u64]) -> (Vec<(u64, u64)>, Oracle) {
    let config = Options { limit: Limit::NONE, variant, ..Options::packets(0) };
    let mut ours = Ours::new(Codel::new(config, &setup()), |_, _| 0.0);
    drive(&mut ours, arrivals, u64::MAX);
    let mut oracle = Oracle { article: variant == Variant::Article2012, ..Oracle::default() };
    drive(&mut oracle, arrivals, u64::MAX);
    (ours.drops, oracle)
}

#[test]
fn codel_drops_what_and_when_the_pseudocode_of_rfc_8289_does() {
    for arrivals in [overload_steps(), short_overloads()] {
        let (ours, oracle) = drops_of_both(Variant::Rfc8289, &arrivals);
        assert_eq!(ours, oracle.drops);
        assert!(ours.len() > 300 && oracle.rounds > 3, "{} in {}", ours.len(), oracle.rounds);
    }
}

#[test]
fn codel_drops_what_and_when_the_pseudocode_of_the_article_does() {
    for arrivals in [overload_steps(), short_overloads()] {
        let (ours, oracle) = drops_of_both(Variant::Article2012, &arrivals);
        assert_eq!(ours, oracle.drops);
        assert!(ours.len() > 100 && oracle.rounds > 3, "{} in {}", ours.len(), oracle.rounds);
        assert_ne!(ours, drops_of_both(Variant::Rfc8289, &arrivals).0);
    }
}

/// The drops of a queue that is always long, each with the gap behind it by `law` of the drop's number: the first comes one
/// interval after the delay passed the target. At one packet per 0.1 ms the grid is fine enough.
fn drops_follow(square_root: SquareRoot, law: &mut dyn FnMut(u32) -> f64) {
    let options = Options { limit: Limit::NONE, square_root, ..Options::packets(0) };
    let mut ours = Ours::new(Codel::new(options, &setup()), |_, _| 0.0);
    for id in 0..20_000 {
        ours.arrive(0, id);
    }
    for step in 0..8_000_u64 {
        ours.leave(6_000_000 + step * 100_000);
    }
    let mut expect = 106.0;
    for (number, &(_, at)) in ours.drops.iter().enumerate().take(12) {
        let late = at as f64 / 1e6 - expect;
        assert!((-0.1..0.2).contains(&late), "drop {number} at {at}, law {expect} ms");
        expect += 100.0 * law(number as u32 + 1);
    }
    assert!(ours.drops.len() >= 12);
}

#[test]
fn first_drops_of_a_standing_queue_come_at_the_square_root_law() {
    drops_follow(SquareRoot::Exact, &mut |count| 1.0 / f64::from(count).sqrt());
}

#[test]
fn with_newtons_steps_the_second_gap_is_half_an_interval_and_later_ones_come_near_the_law() {
    let (mut x, mut last) = (1.0, 0);
    let mut gaps = Vec::new();
    drops_follow(SquareRoot::Newton, &mut |count| {
        let n = f64::from(count);
        x = if count == 1 { 1.0 } else { x * (3.0 - n * x * x) / 2.0 };
        assert_eq!(count, last + 1);
        last = count;
        gaps.push(x * n.sqrt());
        x
    });
    assert!((gaps[1] - 0.5 * 2_f64.sqrt()).abs() < 1e-9, "{gaps:?}");
    assert!(gaps[6..].iter().all(|share| (share - 1.0).abs() < 0.01), "{gaps:?}");
}
