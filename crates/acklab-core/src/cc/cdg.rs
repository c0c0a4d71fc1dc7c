//! CDG, CAIA delay gradient: Hayes and Armitage, "Revisiting TCP congestion control using delay gradients",
//! IFIP Networking 2011.
//!
//! Each round trip has a least and a greatest round-trip time. How much they grew since the round before,
//! averaged over `smoothing` rounds, are the two gradients. A gradient g above 0 lets the window shrink to
//! `backoff` of itself with probability 1 - exp(-g / `scale`): the same on average for flows of all round
//! trips, because those with short ones measure more often. In slow start the newest difference stands for the
//! average. What a reduction does shows two rounds later, so the round after one is not compared.
//!
//! The gradients also tell the queue's state. *Full*: the least still rises, the greatest no longer. *Empty*:
//! the least stands, the greatest falls. A loss while the queue is known and not full is no congestion, and the
//! window stays (`tolerance`). Against flows that only losses stop, there are two more rules: after
//! `ineffectual` reductions in a row without a falling gradient the next `hold` are left out; and a *shadow*
//! window, which delays do not shrink, is what a loss leaves half of.
//!
//! - The paper does not say what a time-out does / we end the shadow / because it would raise the window
//!   again with the next loss.
//!
//! Growth, marks, time-outs and idleness are RFC 5681's. Left out: FreeBSD's growth that increases itself
//! (`alpha_inc`, off by default).

use std::collections::VecDeque;

use super::reno::Reno;
use super::round::Rounds;
use super::{AckSample, CongestionControl, LossSample, RtoSample, Snapshot, Start};
use crate::math;
use crate::rng::Rng;
use crate::time::{Span, Time};

crate::options! {
    /// The paper's and FreeBSD's parameters.
    #[derive(Copy, PartialEq)]
    pub struct Options {
        /// G: the gradient, per round trip, at which the window shrinks with probability 1 - 1/e.
        scale: Span as positive_span() = "3ms",
        /// What delay leaves of the window.
        backoff: f64 as positive_share() = "0.7",
        /// What a loss leaves of it.
        loss_backoff: f64 as positive_share() = "0.5",
        /// Rounds that a gradient is averaged over.
        smoothing: u32 as count(1, 64) = "8",
        /// Reductions in a row without effect, after which some are left out.
        ineffectual: u32 as count(1, 1000) = "5",
        /// How many are left out then.
        hold: u32 as count(0, 1000) = "5",
        /// Losses while the queue is not full leave the window.
        tolerance: bool = "true",
        /// A loss leaves at least half of the shadow window.
        shadow: bool = "true",
    }
}

/// CDG's sender.
#[derive(Clone, Debug)]
pub struct Cdg {
    options: Options,
    /// Grows, and reacts to time-outs and marks.
    reno: Reno,
    rounds: Rounds,
    least: Gradient,
    greatest: Gradient,
    queue: QueueState,
    /// What the window would be if delay did not shrink it, bytes; 0: no such flow beside us.
    shadow: u64,
    /// Reductions called for in a row, no gradient having fallen.
    in_a_row: u32,
    /// The window was reduced for delay in the round before.
    reduced: bool,
    rng: Rng,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueState {
    Unknown,
    Empty,
    Rising,
    Falling,
    Full,
}

/// How one of a round's extremes moves, ns per round.
#[derive(Clone, Debug, Default)]
struct Gradient {
    /// Of the present round.
    now: Option<i64>,
    /// Of the round before, if it is to be compared with.
    before: Option<i64>,
    /// Differences of the rounds that are averaged, oldest first.
    differences: VecDeque<i64>,
}

impl Gradient {
    fn see(&mut self, rtt: Span, better: fn(i64, i64) -> i64) {
        let rtt = rtt.as_nanos() as i64;
        self.now = Some(self.now.map_or(rtt, |now| better(now, rtt)));
    }

    /// Ends the round: how much its extreme is above that of the round before.
    fn end_round(&mut self, smoothing: u32) -> Option<i64> {
        let before = std::mem::replace(&mut self.before, self.now.take());
        let difference = self.before? - before?;
        if self.differences.len() >= smoothing as usize {
            self.differences.pop_front();
        }
        self.differences.push_back(difference);
        Some(difference)
    }

    /// The average over `smoothing` rounds; rounds that are yet to come count as level.
    fn average(&self, smoothing: u32) -> f64 {
        self.differences.iter().sum::<i64>() as f64 / f64::from(smoothing)
    }
}

impl Cdg {
    /// A fresh connection.
    pub fn new(start: &Start, options: Options) -> Self {
        let reno = Reno::new(start);
        Self {
            options,
            rounds: Rounds::default(),
            least: Gradient::default(),
            greatest: Gradient::default(),
            queue: QueueState::Unknown,
            shadow: reno.cwnd(),
            in_a_row: 0,
            reduced: false,
            rng: Rng::named(start.seed, "cdg"),
            reno,
        }
    }

    /// Ends a round of measuring; true where its gradients call for a smaller window.
    fn end_round(&mut self) -> bool {
        self.reduced = false;
        let smoothing = self.options.smoothing;
        let differences = (self.least.end_round(smoothing), self.greatest.end_round(smoothing));
        let (Some(least), Some(greatest)) = differences else { return false };
        let averages = (self.least.average(smoothing), self.greatest.average(smoothing));
        let Snapshot { cwnd, ssthresh } = self.reno.snapshot();
        let newest = if cwnd < ssthresh { [least as f64, greatest as f64] } else { [0.0; 2] };
        self.infer(averages);
        let gradients = [newest[0], averages.0, newest[1], averages.1];
        gradients.into_iter().find(|gradient| *gradient > 0.0).is_some_and(|gradient| {
            self.rng.chance(1.0 - math::exp(-gradient / self.options.scale.as_nanos() as f64))
        })
    }

    /// The queue's state from both gradients.
    fn infer(&mut self, (least, greatest): (f64, f64)) {
        if least > 0.0 && greatest <= 0.0 {
            self.queue = QueueState::Full;
        } else if least >= 0.0 && greatest < 0.0 {
            self.queue = QueueState::Empty;
            self.shadow = 0;
        } else if least > 0.0 && greatest > 0.0 {
            self.queue = QueueState::Rising;
        } else if least < 0.0 && greatest < 0.0 {
            self.queue = QueueState::Falling;
        }
        if least < 0.0 || greatest < 0.0 {
            self.in_a_row = 0;
        }
    }

    /// Reduces the window, unless that was in vain too often.
    fn back_off(&mut self) {
        let Options { backoff, ineffectual, hold, .. } = self.options;
        self.in_a_row += 1;
        self.shadow = self.shadow.max(self.reno.cwnd());
        if self.in_a_row <= ineffectual {
            self.reno.reduce_to((self.reno.cwnd() as f64 * backoff).round() as u64);
            self.reduced = true;
        } else if self.in_a_row >= ineffectual + hold {
            self.in_a_row = 0;
        }
        (self.least.before, self.greatest.before) = (None, None);
    }
}

impl CongestionControl for Cdg {
    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        let called_for = self.rounds.on_ack(sample) && self.end_round();
        if let Some(rtt) = sample.rtt {
            self.least.see(rtt, i64::min);
            self.greatest.see(rtt, i64::max);
        }
        if called_for && !sample.in_fast_recovery {
            self.back_off();
            return;
        }
        let before = self.reno.cwnd();
        self.reno.on_ack(now, sample);
        if self.shadow > 0 {
            self.shadow += self.reno.cwnd() - before;
        }
    }

    fn on_loss(&mut self, _now: Time, _sample: &LossSample) {
        let Options { loss_backoff, tolerance, shadow, .. } = self.options;
        let cwnd = self.reno.cwnd();
        let harmless = !matches!(self.queue, QueueState::Full | QueueState::Unknown);
        if self.reduced || (tolerance && harmless) {
            self.reno.reduce_to(cwnd);
            return;
        }
        self.shadow /= 2;
        let left = (cwnd as f64 * loss_backoff).round() as u64;
        let left = if shadow { left.max(self.shadow) } else { left };
        // A loss raises no window; where the shadow was higher, slow start leads to what is left of it.
        self.reno.reduce_to(left);
    }

    fn on_rto(&mut self, now: Time, sample: &RtoSample) {
        self.reno.on_rto(now, sample);
        self.shadow = 0;
    }

    fn on_idle(&mut self, now: Time) {
        self.reno.on_idle(now);
        self.rounds.restart();
        (self.least, self.greatest) = (Gradient::default(), Gradient::default());
    }

    fn reseed(&mut self, seed: u64) {
        self.rng.reseed(seed);
    }

    crate::forward! { reno: on_ecn cwnd snapshot }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::ack_of;

    const MSS: u32 = 1000;

    /// In congestion avoidance from the start, and its rounds are compared one by one.
    fn plain() -> Options {
        Options { smoothing: 1, ..Options::default() }
    }

    fn cdg(options: Options, initial_ssthresh: u64, seed: u64) -> Cdg {
        let start = Start { mss: MSS, initial_window: 40_000, initial_ssthresh, seed };
        Cdg::new(&start, options)
    }

    /// One window's worth of ACKs; the first has the greatest round trip, the others the least, ms.
    fn round(cdg: &mut Cdg, least: u64, greatest: u64) {
        let window = cdg.cwnd();
        for index in 0..window / u64::from(MSS) {
            let rtt = Some(Span::from_millis(if index == 0 { greatest } else { least }));
            let ack = AckSample { in_flight: window, rtt, srtt: rtt, ..ack_of(MSS) };
            cdg.on_ack(Time::ZERO, &ack);
        }
    }

    fn loss(cdg: &mut Cdg) {
        cdg.on_loss(Time::ZERO, &LossSample { in_flight: cdg.cwnd(), ece: false });
    }

    #[test]
    fn a_gradient_of_g_shrinks_the_window_with_probability_1_minus_1_over_e() {
        let cut = |gradient: u64| {
            let backs_off = |seed| {
                let mut cdg = cdg(plain(), 1, seed);
                round(&mut cdg, 100, 100);
                round(&mut cdg, 100 + gradient, 100 + gradient);
                let before = cdg.cwnd();
                round(&mut cdg, 100 + gradient, 100 + gradient);
                cdg.cwnd() < before
            };
            (0..4000).filter(|&seed| backs_off(seed)).count()
        };
        for (gradient, expected) in [(1, 0.2835), (3, 0.6321), (9, 0.9502)] {
            let share = cut(gradient) as f64 / 4000.0;
            // Three standard deviations of 4000 coins.
            let sd = (expected * (1.0_f64 - expected) / 4000.0).sqrt();
            assert!((share - expected).abs() < 3.0 * sd, "{gradient} ms: {share}");
        }
        assert_eq!(cut(0), 0);
    }

    #[test]
    fn a_loss_leaves_the_window_unless_the_queue_is_full_or_unknown() {
        // Delay itself never shrinks it here.
        let options = Options { scale: Span::from_secs(10_000), ..plain() };
        let check = |rounds: [(u64, u64); 4], options, queue, left: u64| {
            let mut cdg = cdg(options, 1, 1);
            for (least, greatest) in rounds {
                round(&mut cdg, least, greatest);
            }
            assert_eq!(cdg.queue, queue);
            cdg.shadow = 0;
            let before = cdg.cwnd();
            loss(&mut cdg);
            assert_eq!(cdg.cwnd(), before * left / 100, "{queue:?}");
        };
        let rising = [(100, 150), (100, 150), (110, 160), (120, 170)];
        let full = [(100, 150), (100, 150), (110, 150), (120, 150)];
        let emptying = [(100, 150), (100, 150), (100, 140), (100, 130)];
        let falling = [(100, 150), (100, 150), (90, 140), (80, 130)];
        check(rising, options, QueueState::Rising, 100);
        check(falling, options, QueueState::Falling, 100);
        check(emptying, options, QueueState::Empty, 100);
        check(full, options, QueueState::Full, 50);
        check(rising, Options { tolerance: false, ..options }, QueueState::Rising, 50);
        let mut fresh = cdg(options, 1, 1);
        loss(&mut fresh);
        assert_eq!(fresh.cwnd(), 20_000);
    }

    #[test]
    fn after_five_reductions_in_vain_five_are_left_out() {
        // Every rise shrinks it.
        let mut cdg = cdg(Options { scale: Span::from_nanos(1), ..plain() }, 1, 1);
        let mut cuts = Vec::new();
        for index in 0..30 {
            let before = cdg.cwnd();
            round(&mut cdg, 100 + 10 * index, 150 + 10 * index);
            cuts.push(cdg.cwnd() < before);
        }
        // The first two rounds have nothing to compare; later every second one does.
        let expected: Vec<bool> = (0..30).map(|index| index >= 2 && index % 2 == 0).collect();
        let compared: Vec<bool> =
            cuts.iter().zip(&expected).filter(|(_, due)| **due).map(|(cut, _)| *cut).collect();
        assert_eq!(compared[..10], [[true; 5], [false; 5]].concat());
        assert!(compared[10], "and again from there on: {cuts:?}");
    }

    #[test]
    fn a_loss_leaves_half_of_the_window_that_delay_did_not_shrink() {
        for (shadow, left) in [(true, 22_000), (false, 15_550)] {
            let options = Options { scale: Span::from_nanos(1), shadow, ..plain() };
            let mut cdg = cdg(options, 1, 1);
            round(&mut cdg, 100, 150);
            round(&mut cdg, 100, 150);
            round(&mut cdg, 110, 150);
            // Its first ACK ends the round before, and a loss in the round of a reduction adds nothing.
            round(&mut cdg, 110, 150);
            let reduced = cdg.cwnd();
            loss(&mut cdg);
            assert_eq!(cdg.cwnd(), reduced);
            round(&mut cdg, 110, 150);
            let before = (cdg.cwnd(), cdg.shadow);
            loss(&mut cdg);
            assert_eq!(cdg.cwnd(), left, "of {before:?}");
        }
    }

    #[test]
    fn a_time_out_ends_the_shadow_and_leaves_one_segment() {
        let mut cdg = cdg(plain(), 1, 1);
        cdg.on_rto(Time::ZERO, &RtoSample { in_flight: 40_000, ..RtoSample::default() });
        assert_eq!((cdg.snapshot(), cdg.shadow), (Snapshot { cwnd: 1000, ssthresh: 20_000 }, 0));
    }
}
