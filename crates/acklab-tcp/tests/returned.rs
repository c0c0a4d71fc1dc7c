//! Segments that a switch sends back (E-DCTCP) between two connections.

use std::sync::{Arc, Mutex};

use acklab_core::cc::{
    AckSample, Algorithm, CongestionControl, EcnSample, Factory, LossSample, ReturnedSample,
    RtoSample, Snapshot,
};
use acklab_core::event::EventKind;
use acklab_core::time::{Span, Time};
use acklab_tcp::harness::{Fate, Pair, Sent, Side};
use acklab_tcp::{Config, LossRecovery};

const LATENCY: Span = Span::from_millis(10);

/// A window of ten segments; what came back waits 30 ms for each time it did.
#[derive(Clone, Default)]
struct Patient {
    times: Arc<Mutex<Vec<u32>>>,
}

impl CongestionControl for Patient {
    fn on_ack(&mut self, _now: Time, _sample: &AckSample) {}

    fn on_loss(&mut self, _now: Time, _sample: &LossSample) {}

    fn on_ecn(&mut self, _now: Time, _sample: &EcnSample) {}

    fn on_rto(&mut self, _now: Time, _sample: &RtoSample) {}

    fn on_returned(&mut self, _now: Time, sample: &ReturnedSample) -> Span {
        self.times.lock().expect("one thread").push(sample.times);
        Span::from_millis(30) * u64::from(sample.times)
    }

    fn cwnd(&self) -> u64 {
        10_000
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { cwnd: 10_000, ssthresh: 0 }
    }
}

/// An open connection, of which A's n-th segment with data has the fate that `fates` has for n.
fn start(sack: bool, fates: Vec<(usize, Fate)>) -> (Pair, Arc<Mutex<Vec<u32>>>) {
    let patient = Patient::default();
    let times = Arc::clone(&patient.times);
    let congestion = Algorithm::Custom(Factory::new(move |_| Box::new(patient.clone())));
    let recovery = if sack { LossRecovery::Sack } else { LossRecovery::NewReno };
    let mut config = Config { congestion, ..Config::textbook(1000) };
    config.loss.recovery = recovery;
    let mut pair = Pair::new(config.clone(), config, LATENCY);
    pair.drive(Time::ZERO + Span::from_secs(1));
    let mut count = 0;
    pair.filter = Box::new(move |_, sent: &Sent| {
        if sent.from == Side::B || sent.segment.payload_len == 0 {
            return Fate::Arrive;
        }
        count += 1;
        fates.iter().find(|fate| fate.0 == count - 1).map_or(Fate::Arrive, |fate| fate.1)
    });
    pair.log.clear();
    (pair, times)
}

/// Sends 20 segments of 1000 bytes over it.
fn run(sack: bool, fates: Vec<(usize, Fate)>) -> (Pair, Vec<u32>) {
    let (mut pair, times) = start(sack, fates);
    pair.a.write(pair.time, 20_000);
    pair.run(Span::from_secs(5));
    assert_eq!(pair.b.total_read(), 20_000, "sack {sack}");
    let times = times.lock().expect("one thread").clone();
    (pair, times)
}

/// When the segment of this number left, ms.
fn departures(pair: &Pair, number: u32) -> Vec<u64> {
    let first = pair.data_from(Side::A)[0].segment.seq;
    pair.data_from(Side::A)
        .iter()
        .filter(|sent| sent.segment.seq - first == number * 1000)
        .map(|sent| sent.at.since(Time::ZERO + Span::from_secs(1)).as_micros() / 1000)
        .collect()
}

fn losses(pair: &Pair) -> Vec<bool> {
    let of = |kind| match kind {
        EventKind::Loss { timeout, .. } => Some(timeout),
        _ => None,
    };
    pair.events.iter().filter_map(|event| of(event.kind)).collect()
}

#[test]
fn a_segment_that_comes_back_goes_again_after_its_wait_and_is_no_loss() {
    for sack in [false, true] {
        let (pair, times) = run(sack, vec![(2, Fate::Return)]);
        // Back after 20 ms; eight duplicates arrive at the same time.
        assert_eq!(departures(&pair, 2), [0, 50], "sack {sack}");
        assert_eq!((times.as_slice(), losses(&pair)), (&[1][..], vec![]), "sack {sack}");
        assert_eq!(pair.data_from(Side::A).len(), 21, "sack {sack}");
    }
}

#[test]
fn a_segment_may_come_back_again_and_again() {
    // Its second departure is the eleventh in all, or with SACK, where the others make room, the
    // twenty-first.
    for (sack, second) in [(false, 10), (true, 20)] {
        let (pair, times) = run(sack, vec![(0, Fate::Return), (second, Fate::Return)]);
        assert_eq!((times, losses(&pair)), (vec![1, 2], vec![]), "sack {sack}");
        // 20 ms to come back, 30 ms of waiting; 20 and 60.
        assert_eq!(departures(&pair, 0), [0, 50, 130], "sack {sack}");
        assert_eq!(pair.data_from(Side::A).len(), 22, "sack {sack}");
    }
}

#[test]
fn another_loss_of_the_same_window_is_still_repaired_by_fast_retransmit() {
    let (pair, times) = run(true, vec![(2, Fate::Lose), (4, Fate::Return)]);
    assert_eq!((times.len(), losses(&pair)), (1, vec![false]));
    assert_eq!(departures(&pair, 2), [0, 20]);
    assert_eq!(departures(&pair, 4), [0, 50], "recovery passes over what waits");
}

#[test]
fn a_copy_that_is_lost_after_all_is_left_to_the_time_out() {
    let (pair, _) = run(true, vec![(2, Fate::Return), (20, Fate::Lose), (13, Fate::Lose)]);
    assert!(losses(&pair).contains(&true), "{:?}", losses(&pair));
}

#[test]
fn a_return_waits_no_longer_when_an_earlier_one_is_acknowledged_before_it_goes() {
    for sack in [false, true] {
        // The third segment is late and goes again at 20 ms; that copy comes back at 40 and waits until 70,
        // but the late one is acknowledged at 45. What left at 23 comes back at 43 and waits until 73.
        let late = Fate::Delay(Span::from_millis(25));
        let (mut pair, times) =
            start(sack, vec![(2, late), (12, Fate::Return), (13, Fate::Return)]);
        pair.a.write(pair.time, 12_000);
        pair.run(Span::from_millis(23));
        pair.a.write(pair.time, 1000);
        pair.run(Span::from_secs(5));
        assert_eq!(pair.b.total_read(), 13_000, "sack {sack}");
        assert_eq!(times.lock().expect("one thread").as_slice(), [1, 1], "sack {sack}");
        assert_eq!(departures(&pair, 2), [0, 20], "sack {sack}");
        assert_eq!(departures(&pair, 12), [23, 73], "sack {sack}");
        assert_eq!(losses(&pair), [false], "sack {sack}");
    }
}

#[test]
fn edctcp_carries_everything_over_a_switch_that_returns_every_fifth_segment() {
    let mut config = Config {
        congestion: "edctcp".parse().expect("known"),
        ecn: true,
        ..Config::textbook(1000)
    };
    config.loss.recovery = LossRecovery::Sack;
    let mut pair = Pair::new(config.clone(), config, LATENCY);
    pair.drive(Time::ZERO + Span::from_secs(1));
    let mut count = 0;
    pair.filter = Box::new(move |_, sent: &Sent| {
        count += usize::from(sent.segment.payload_len > 0);
        let returns = sent.segment.payload_len > 0 && count % 5 == 0;
        if returns { Fate::Return } else { Fate::Arrive }
    });
    pair.a.write(pair.time, 500_000);
    pair.run(Span::from_secs(120));
    assert_eq!(pair.b.total_read(), 500_000);
    assert!(!losses(&pair).contains(&false), "no fast recovery");
}
