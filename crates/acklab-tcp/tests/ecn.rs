//! ECN between two connections: RFC 3168's feedback per window and RFC 8257's per ACK; and what the
//! congestion control is told of every ACK.

use std::sync::{Arc, Mutex, MutexGuard};

use acklab_core::ack::Profile;
use acklab_core::cc::{
    AckSample, Algorithm, CongestionControl, EcnFeedback, EcnSample, Factory, LossSample,
    RtoSample, Snapshot,
};
use acklab_core::packet::Ecn;
use acklab_core::segment::Flags;
use acklab_core::time::{Span, Time};
use acklab_tcp::harness::{Fate, Pair, Sent, Side};
use acklab_tcp::{Config, LossRecovery};

const LATENCY: Span = Span::from_millis(10);

/// What a congestion control was told: (acked, delivered, lost, ece) of each ACK, echoes, and of each
/// loss whether its ACK echoed.
#[derive(Debug, Default)]
struct Told {
    acks: Vec<(u64, u64, u64, bool)>,
    echoes: u32,
    losses: Vec<bool>,
}

/// A window of ten segments that never changes, and a diary.
#[derive(Clone, Default)]
struct Diary {
    feedback: EcnFeedback,
    told: Arc<Mutex<Told>>,
}

impl Diary {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().expect("one thread")
    }
}

impl CongestionControl for Diary {
    fn on_ack(&mut self, _now: Time, sample: &AckSample) {
        self.told().acks.push((sample.acked, sample.delivered, sample.lost, sample.ece));
    }

    fn on_loss(&mut self, _now: Time, sample: &LossSample) {
        self.told().losses.push(sample.ece);
    }

    fn on_ecn(&mut self, _now: Time, _sample: &EcnSample) {
        self.told().echoes += 1;
    }

    fn on_rto(&mut self, _now: Time, _sample: &RtoSample) {}

    fn ecn_feedback(&self) -> EcnFeedback {
        self.feedback
    }

    fn cwnd(&self) -> u64 {
        10_000
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { cwnd: 10_000, ssthresh: 10_000 }
    }
}

/// Two ends with a diary at A, opened, at 1 s.
fn pair(feedback: EcnFeedback, ecn: [bool; 2], change: impl Fn(&mut Config)) -> (Pair, Diary) {
    let diary = Diary { feedback, ..Diary::default() };
    let config = |ecn, diary: Diary| {
        let congestion = Algorithm::Custom(Factory::new(move |_| Box::new(diary.clone())));
        let mut config = Config { ecn, congestion, ..Config::textbook(1000) };
        change(&mut config);
        config
    };
    let b = config(ecn[1], Diary { feedback, ..Diary::default() });
    let mut pair = Pair::new(config(ecn[0], diary.clone()), b, LATENCY);
    pair.drive(Time::ZERO + Span::from_secs(1));
    (pair, diary)
}

/// Does `what` with the data segments of these numbers from A, counted from now.
fn treat(pair: &mut Pair, numbers: &'static [usize], what: Fate) {
    let mut count = 0;
    pair.filter = Box::new(move |_, sent: &Sent| {
        if sent.from == Side::B || sent.segment.payload_len == 0 {
            return Fate::Arrive;
        }
        count += 1;
        if numbers.contains(&(count - 1)) { what } else { Fate::Arrive }
    });
}

fn per_window(_: &mut Config) {}

#[test]
fn both_ends_must_want_ecn_for_data_to_leave_as_ect() {
    let echo_and_reduced = Flags::ECE.with(Flags::CWR);
    for ecn in [[true, true], [true, false], [false, true], [false, false]] {
        let (mut pair, _) = pair(EcnFeedback::PerWindow, ecn, per_window);
        let syn = pair.log[0].segment.flags;
        let answer = pair.log[1].segment.flags;
        assert_eq!(syn.has(echo_and_reduced), ecn[0]);
        assert_eq!(answer.has(Flags::ECE), ecn[0] && ecn[1]);
        assert!(!answer.has(Flags::CWR));
        assert!(pair.log.iter().all(|sent| sent.ecn == Ecn::NotEct), "control packets");
        pair.a.write(pair.time, 5000);
        pair.run(Span::from_secs(1));
        let expect = if ecn[0] && ecn[1] { Ecn::Ect0 } else { Ecn::NotEct };
        assert!(pair.data_from(Side::A).iter().all(|sent| sent.ecn == expect));
        assert!(pair.bare_from(Side::B).iter().all(|sent| sent.ecn == Ecn::NotEct));
    }
}

#[test]
fn retransmissions_leave_without_ect() {
    let (mut pair, _) = pair(EcnFeedback::PerWindow, [true, true], per_window);
    treat(&mut pair, &[0], Fate::Lose);
    pair.a.write(pair.time, 5000);
    pair.run(Span::from_secs(1));
    let data = pair.data_from(Side::A);
    let fields: Vec<Ecn> = data.iter().map(|sent| sent.ecn).collect();
    assert_eq!(fields, [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::NotEct]);
}

#[test]
fn a_mark_is_echoed_until_cwr_and_told_once_per_window() {
    let (mut pair, diary) = pair(EcnFeedback::PerWindow, [true, true], per_window);
    // Thirty segments in windows of ten; two marks in the first window, one in the third.
    treat(&mut pair, &[2, 5, 25], Fate::Mark);
    pair.a.write(pair.time, 30_000);
    pair.run(Span::from_secs(1));
    assert_eq!(pair.b.total_read(), 30_000);
    let echoes: Vec<bool> =
        pair.bare_from(Side::B).iter().map(|sent| sent.segment.flags.has(Flags::ECE)).collect();
    // The third ACK says so first; the sender's CWR leaves with the segment that it clears for
    // sending, the thirteenth.
    let first = echoes.iter().position(|&echo| echo);
    assert_eq!(first, Some(2));
    let reduced: Vec<usize> = (pair.data_from(Side::A).iter().enumerate())
        .filter(|(_, sent)| sent.segment.flags.has(Flags::CWR))
        .map(|(number, _)| number)
        .collect();
    assert_eq!(reduced, [12]);
    assert_eq!(echoes.iter().filter(|&&echo| echo).count(), 10 + 5, "2 to 11, and 25 to the end");
    assert_eq!(diary.told().echoes, 2, "once for the first window, once for the third");
}

#[test]
fn a_loss_and_a_mark_of_one_window_count_once() {
    let (mut pair, diary) = pair(EcnFeedback::PerWindow, [true, true], per_window);
    treat(&mut pair, &[1, 6], Fate::Lose);
    pair.a.write(pair.time, 8000);
    pair.run(Span::from_secs(3));
    assert_eq!(diary.told().losses, [false]);
    let (mut marked, diary) = self::pair(EcnFeedback::PerWindow, [true, true], per_window);
    let mut count = 0;
    marked.filter = Box::new(move |_, sent: &Sent| {
        count += usize::from(sent.from == Side::A && sent.segment.payload_len > 0);
        match (sent.from, count) {
            (Side::A, 1) => Fate::Lose,
            (Side::A, 5) => Fate::Mark,
            _ => Fate::Arrive,
        }
    });
    marked.a.write(marked.time, 30_000);
    marked.run(Span::from_secs(3));
    assert_eq!(marked.b.total_read(), 30_000);
    let told = diary.told();
    assert_eq!((told.losses.as_slice(), told.echoes), (&[false][..], 0));
}

#[test]
fn feedback_per_ack_tells_exactly_the_marked_bytes() {
    let (mut pair, diary) = pair(EcnFeedback::PerAck, [true, true], |_| {});
    treat(&mut pair, &[0, 1, 4], Fate::Mark);
    pair.a.write(pair.time, 8000);
    pair.run(Span::from_secs(1));
    let marks: Vec<bool> = diary.told().acks.iter().map(|&(_, _, _, ece)| ece).collect();
    assert_eq!(marks, [true, true, false, false, true, false, false, false]);
    assert_eq!(diary.told().echoes, 0, "nothing but the samples tells");
}

#[test]
fn delayed_acks_are_cut_where_marks_begin_and_end() {
    // RFC 8257 section 3.2, figure 1: segments 3 to 5 are marked, every fourth is acknowledged.
    let delayed = |config: &mut Config| {
        config.ack = Profile::delayed(4, Span::from_millis(100));
    };
    let (mut pair, diary) = pair(EcnFeedback::PerAck, [true, true], delayed);
    treat(&mut pair, &[2, 3, 4], Fate::Mark);
    pair.a.write(pair.time, 8000);
    pair.run(Span::from_secs(1));
    let told: Vec<(u64, bool)> =
        diary.told().acks.iter().map(|&(acked, _, _, ece)| (acked, ece)).collect();
    let expect = [
        (2000, false), // what was pending when the marks began
        (1000, true),  // at once
        (2000, true),  // pending when they ended
        (1000, false), // at once
        (2000, false), // the timer
    ];
    assert_eq!(told, expect);
}

#[test]
fn without_ecn_a_mark_on_the_way_says_nothing() {
    let (mut pair, diary) = pair(EcnFeedback::PerAck, [true, false], |_| {});
    treat(&mut pair, &[0, 1, 2], Fate::Mark);
    pair.a.write(pair.time, 8000);
    pair.run(Span::from_secs(1));
    assert!(diary.told().acks.iter().all(|&(_, _, _, ece)| !ece));
}

#[test]
fn every_byte_is_told_as_delivered_once_and_losses_when_they_are_inferred() {
    for sack in [false, true] {
        let recovery = if sack { LossRecovery::Sack } else { LossRecovery::NewReno };
        let change = move |config: &mut Config| config.loss.recovery = recovery;
        let (mut pair, diary) = pair(EcnFeedback::PerWindow, [false, false], change);
        treat(&mut pair, &[2, 5], Fate::Lose);
        pair.a.write(pair.time, 40_000);
        pair.run(Span::from_secs(5));
        assert_eq!(pair.b.total_read(), 40_000);
        let told = diary.told();
        let sum = |of: fn(&(u64, u64, u64, bool)) -> u64| told.acks.iter().map(of).sum::<u64>();
        assert_eq!(sum(|ack| ack.0), 40_000, "acked, sack {sack}");
        assert_eq!(sum(|ack| ack.1), 40_000, "delivered, sack {sack}");
        assert_eq!(sum(|ack| ack.2), 2000, "lost, sack {sack}");
        // Segments 0 and 1, then a duplicate for each of the next that arrived.
        let first: Vec<(u64, u64)> = told.acks.iter().take(5).map(|ack| (ack.0, ack.1)).collect();
        assert_eq!(first, [(1000, 1000), (1000, 1000), (0, 1000), (0, 1000), (0, 1000)]);
    }
}
