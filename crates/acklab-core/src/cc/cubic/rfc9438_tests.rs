//! CUBIC against RFC 9438's formula, computed here on its own.

use super::*;
use crate::cc::ack_of;
use crate::cc::testbed::{MSS, Sender};

const RTT: Span = Span::from_millis(100);

fn start(initial_window: u64, initial_ssthresh: u64) -> Start {
    let mss = u64::from(MSS);
    let initial_ssthresh = initial_ssthresh.saturating_mul(mss);
    Start { mss: MSS, initial_window: initial_window * mss, initial_ssthresh, seed: 0 }
}

/// A path of one RTT without a queue: acknowledges a window's worth in even steps each round trip.
struct Path {
    sender: Sender<Rfc9438>,
}

impl Path {
    fn new(cubic: Rfc9438) -> Self {
        Self { sender: Sender::new(Time::from_nanos(1), cubic) }
    }

    fn cubic(&self) -> &Rfc9438 {
        self.sender.control()
    }

    fn ack(&mut self) {
        self.sender.fill();
        self.sender.now += RTT / self.sender.segments();
        self.sender.acknowledge(RTT, None, 0, false);
    }

    fn lose(&mut self) {
        self.sender.fill();
        self.sender.lose();
        self.sender.acknowledge(RTT, None, 0, true);
    }

    /// Acknowledges for that long and returns (seconds since its start, window in segments).
    fn run(&mut self, seconds: f64) -> Vec<(f64, f64)> {
        let begin = self.sender.now;
        let mut curve = Vec::new();
        while self.sender.now.since(begin).as_secs_f64() < seconds {
            self.ack();
            curve.push((self.sender.now.since(begin).as_secs_f64(), self.cubic().cwnd));
        }
        curve
    }
}

/// Figures 1 and 2 of RFC 9438 section 4.2.
#[expect(clippy::disallowed_methods, reason = "the oracle is not the code's own arithmetic")]
fn formula(w_max: f64, cwnd_epoch: f64, t: f64) -> f64 {
    let k = ((w_max - cwnd_epoch) / 0.4).cbrt();
    0.4 * (t - k).powi(3) + w_max
}

#[test]
fn the_window_follows_the_formula_through_both_its_halves() {
    for w_max in [400.0, 1000.0] {
        let options = Options { reno_friendly: false, ..Options::default() };
        let mut path = Path::new(Rfc9438::new(&start(w_max as u64, 1), options));
        path.lose();
        let k = math::cbrt(w_max * 0.3 / 0.4);
        let curve = path.run(1.8 * k);
        let worst = curve
            .iter()
            .map(|&(t, cwnd)| (cwnd - formula(w_max, 0.7 * w_max, t)).abs())
            .fold(0.0, f64::max);
        assert!(worst < 1.0, "off by {worst} segments");
        let last = curve.last().unwrap();
        assert!(last.1 > 1.1 * w_max, "the convex half was reached: {last:?}");
    }
}

#[test]
fn a_small_window_grows_as_renos_would() {
    // Alpha 9/17 a round trip up to the old window, one segment a round trip above it; the cubic
    // curve alone is slower there.
    let mut path = Path::new(Rfc9438::new(&start(10, 1), Options::default()));
    path.lose();
    path.run(0.5);
    let slope = (path.cubic().cwnd - 7.0) / 5.0;
    assert!((slope - 9.0 / 17.0).abs() < 0.05, "{slope} segments a round trip");
    while path.cubic().cwnd < 10.5 {
        path.ack();
    }
    let before = path.cubic().cwnd;
    path.run(0.5);
    let slope = (path.cubic().cwnd - before) / 5.0;
    assert!((slope - 1.0).abs() < 0.1, "{slope} segments a round trip");
    let alone = Options { reno_friendly: false, ..Options::default() };
    let mut slower = Path::new(Rfc9438::new(&start(10, 1), alone));
    slower.lose();
    slower.run(0.5);
    assert!(slower.cubic().cwnd < 7.0 + 4.0 * 9.0 / 17.0, "{} segments", slower.cubic().cwnd);
}

#[test]
fn a_second_loss_below_the_old_window_gives_room_away() {
    for (fast_convergence, w_max) in [(true, 70.0 * 0.85), (false, 70.0)] {
        let options = Options { fast_convergence, ..Options::default() };
        let mut path = Path::new(Rfc9438::new(&start(100, 1), options));
        path.lose();
        path.lose();
        assert!((path.cubic().w_max.unwrap() - w_max).abs() < 1e-9, "{:?}", path.cubic().w_max);
        assert_eq!(path.cubic().cwnd(), 49_000);
    }
}

#[test]
fn loss_leaves_two_segments_and_a_mark_leaves_one() {
    let mut cubic = Rfc9438::new(&start(2, 1), Options::default());
    cubic.on_loss(Time::ZERO, &LossSample { in_flight: 2000, ..LossSample::default() });
    assert_eq!(cubic.snapshot(), Snapshot { cwnd: 2000, ssthresh: 2000 });
    let mut cubic = Rfc9438::new(&start(1, 1), Options::default());
    cubic.on_ecn(Time::ZERO, &EcnSample { in_flight: 1000 });
    assert_eq!(cubic.snapshot(), Snapshot { cwnd: 1000, ssthresh: 2000 });
}

#[test]
fn a_timeout_slow_starts_to_seven_tenths_and_goes_on_convexly() {
    let mut path = Path::new(Rfc9438::new(&start(100, 1), Options::default()));
    path.sender.fill();
    path.sender.time_out();
    assert_eq!(path.cubic().snapshot(), Snapshot { cwnd: 1000, ssthresh: 70_000 });
    let again = RtoSample { in_flight: 1000, again: true, ..RtoSample::default() };
    path.sender.congestion.on_rto(path.sender.now, &again, 1000);
    assert_eq!(path.cubic().snapshot(), Snapshot { cwnd: 1000, ssthresh: 70_000 });
    while path.cubic().cwnd() < 70_000 {
        path.ack();
    }
    path.ack();
    let epoch = path.cubic().epoch.unwrap();
    assert_eq!((epoch.k, epoch.w_max), (0.0, 70.0));
}

#[test]
fn time_that_the_application_leaves_idle_does_not_move_the_curve_on() {
    let mut busy = Path::new(Rfc9438::new(&start(400, 1), Options::default()));
    busy.lose();
    busy.run(2.0);
    let mut idle = Path { sender: Sender::new(busy.sender.now, *busy.cubic()) };
    // A minute of ACKs that find the window not full, then a minute of silence.
    for _ in 0..60 {
        idle.sender.now += Span::from_secs(1);
        idle.sender.send();
        idle.sender.acknowledge(RTT, None, 0, false);
    }
    idle.sender.now += Span::from_secs(60);
    busy.run(1.0);
    idle.run(1.0);
    let apart = (busy.cubic().cwnd - idle.cubic().cwnd).abs();
    assert!(apart < 0.5, "{apart} segments apart");
}

#[test]
fn hystart_ends_the_first_slow_start_before_any_loss() {
    let mut cubic = Rfc9438::new(&start(10, u64::MAX), Options::default());
    let mut now = Time::ZERO;
    // The queue of a path of 40 segments: beyond them each segment adds to the round trip.
    for _ in 0..2000 {
        let queued = cubic.cwnd().saturating_sub(40_000) / 1000;
        let rtt = Some(RTT + Span::from_millis(2) * queued);
        now += RTT / 40;
        let ack = AckSample { in_flight: cubic.cwnd(), rtt, srtt: rtt, ..ack_of(MSS) };
        cubic.on_ack(now, &ack);
        if cubic.ssthresh.is_finite() {
            break;
        }
    }
    // The rise of 12.5 ms comes with 47 segments; the round that notices it at most doubles them,
    // and five rounds at a quarter of the pace make 1.25^5 of that.
    assert!((47.0..2.0 * 47.0 * 3.06).contains(&cubic.ssthresh), "{} segments", cubic.ssthresh);
    assert_eq!(cubic.cwnd.to_bits(), cubic.ssthresh.to_bits());
}

#[test]
fn a_loss_in_the_first_slow_start_is_the_end_of_hystart() {
    let mut path = Path::new(Rfc9438::new(&start(10, u64::MAX), Options::default()));
    path.run(0.3);
    path.lose();
    assert!(path.cubic().hystart.is_none());
    assert!(path.cubic().cwnd >= path.cubic().ssthresh, "congestion avoidance from here");
}
