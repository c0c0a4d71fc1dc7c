//! Pacing and delivery-rate samples of a whole connection.

use std::sync::{Arc, Mutex};

use acklab_core::cc::{
    AckSample, Algorithm, CongestionControl, EcnSample, Factory, LossSample, RateSample, RtoSample,
    Snapshot,
};
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;
use acklab_tcp::harness::{Fate, Pair, Sent, Side};
use acklab_tcp::{Config, LossRecovery};

const LATENCY: Span = Span::from_millis(10);

/// A window of fifty segments, a rate, and the rate samples it was given.
#[derive(Clone)]
struct Paced {
    rate: Option<BitRate>,
    samples: Arc<Mutex<Vec<RateSample>>>,
}

impl CongestionControl for Paced {
    fn on_ack(&mut self, _now: Time, sample: &AckSample) {
        self.samples.lock().expect("one thread").extend(sample.rate);
    }

    fn on_loss(&mut self, _now: Time, _sample: &LossSample) {}

    fn on_ecn(&mut self, _now: Time, _sample: &EcnSample) {}

    fn on_rto(&mut self, _now: Time, _sample: &RtoSample) {}

    fn wants_rate(&self) -> bool {
        true
    }

    fn cwnd(&self) -> u64 {
        50_000
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        self.rate
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { cwnd: self.cwnd(), ssthresh: 0 }
    }
}

/// An open connection at 1 s and the samples that its sender gets.
fn pair(rate: Option<&str>) -> (Pair, Arc<Mutex<Vec<RateSample>>>) {
    let rate = rate.map(|text| text.parse().expect("a rate"));
    let paced = Paced { rate, samples: Arc::default() };
    let samples = Arc::clone(&paced.samples);
    let congestion = Algorithm::Custom(Factory::new(move |_| Box::new(paced.clone())));
    let mut sender = Config { congestion, ..Config::textbook(1000) };
    sender.loss.recovery = LossRecovery::Sack;
    let receiver = Config { congestion: Algorithm::Reno, ..sender.clone() };
    let mut pair = Pair::new(sender, receiver, LATENCY);
    pair.drive(Time::ZERO + Span::from_secs(1));
    (pair, samples)
}

fn gaps(pair: &Pair) -> Vec<u64> {
    let sent = pair.data_from(Side::A);
    sent.windows(2).map(|two| two[1].at.since(two[0].at).as_micros()).collect()
}

#[test]
fn departures_are_spaced_by_payload_over_rate_after_a_burst_of_one_quantum() {
    let (mut pair, _) = pair(Some("8mbit"));
    pair.a.write(pair.time, 40_000);
    pair.run(Span::from_secs(1));
    assert_eq!(pair.b.total_read(), 40_000);
    let gaps = gaps(&pair);
    assert_eq!(gaps[..2], [0, 0], "the quantum of two segments and the one that is due");
    assert_eq!(gaps[2..], [1000; 37]);
}

#[test]
fn without_a_rate_the_window_leaves_at_once() {
    let (mut pair, _) = pair(None);
    pair.a.write(pair.time, 40_000);
    pair.run(Span::from_secs(1));
    assert_eq!(gaps(&pair), [0; 39]);
}

#[test]
fn retransmissions_are_paced_too_and_nothing_is_lost_for_good() {
    let (mut pair, _) = pair(Some("8mbit"));
    let mut count = 0;
    pair.filter = Box::new(move |_, sent: &Sent| {
        count += usize::from(sent.segment.payload_len > 0);
        let lost = sent.segment.payload_len > 0 && [5, 6, 7, 20].contains(&count);
        if lost { Fate::Lose } else { Fate::Arrive }
    });
    pair.a.write(pair.time, 40_000);
    pair.run(Span::from_secs(5));
    assert_eq!(pair.b.total_read(), 40_000);
    assert!(gaps(&pair)[2..].iter().all(|&gap| gap >= 1000), "{:?}", gaps(&pair));
}

#[test]
fn samples_show_the_pace_at_which_a_paced_sender_sends() {
    let (mut pair, samples) = pair(Some("8mbit"));
    pair.a.write(pair.time, 200_000);
    pair.run(Span::from_millis(150));
    let samples = samples.lock().expect("one thread");
    let last = samples.last().expect("samples");
    let rate = last.delivered as f64 / last.interval.as_secs_f64();
    assert!((rate / 1e6 - 1.0).abs() < 0.06, "{rate} bytes/s");
    assert!(!last.app_limited);
    // 20 ms of 1 MB/s.
    assert!((20_000..=22_000).contains(&last.tx_in_flight), "{}", last.tx_in_flight);
}

#[test]
fn samples_of_a_sender_with_little_to_say_are_app_limited() {
    let (mut pair, samples) = pair(Some("8mbit"));
    for _ in 0..10 {
        pair.a.write(pair.time, 1000);
        pair.run(Span::from_millis(5));
    }
    pair.run(Span::from_millis(100));
    let samples = samples.lock().expect("one thread");
    assert!(samples.len() >= 9 && samples[1..].iter().all(|sample| sample.app_limited));
}
