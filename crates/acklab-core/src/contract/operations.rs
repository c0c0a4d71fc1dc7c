//! An operation model of a sender: whatever a connection may tell its congestion control, in any order,
//! with samples that fit together, and what must hold whatever the algorithm.
//!
//! [`super::attack_congestion_control`] feeds samples that no sender would produce; here in-flight counts,
//! deliveries, round trips and rate samples ([`Congestion`]) follow from the operations, so that stronger
//! claims can be made. The sender repairs a loss by sending its oldest segment again.

use std::collections::VecDeque;

use super::Choices;
use crate::cc::{
    Algorithm, CongestionControl, EcnFeedback, LossSample, ReturnedSample, RtoSample, Snapshot,
    Start,
};
use crate::congestion::{Acked, Congestion, Departure};
use crate::delivery_rate::Stamp;
use crate::time::{Span, Time};

/// Runs a congestion control through a sender's operations (sent, acked, SACKed, lost, marked, timed out,
/// returned, recovered, idle) and returns its state after each of them.
///
/// # Panics
/// Where the window falls below one MSS; where a loss, a mark, a time-out, a returned segment, idleness
/// or a departure raises it; where it exceeds the initial window and 64 segments by more than was
/// delivered (fifteen times that under `lossy`, whose window grows up to sixteenfold in a long round trip); where ssthresh, having begun with at least two MSS, falls below; where the snapshot and
/// the window disagree; where a returned segment waits for an hour.
pub fn operate_congestion_control(
    algorithm: &Algorithm,
    start: &Start,
    bytes: &[u8],
) -> Vec<Snapshot> {
    let mut sender = Sender::new(algorithm.controller(start), start.mss);
    if matches!(algorithm, Algorithm::Lossy) {
        sender.growth = 15;
    }
    let mut choices = Choices::new(bytes);
    sender.check("the start");
    while !choices.is_empty() {
        let micros = 1 + u64::from(choices.word()) * u64::from(choices.below(4));
        sender.now += Span::from_micros(micros);
        let before = sender.congestion.cwnd();
        let (what, may_grow) = sender.operate(&mut choices);
        sender.check(what);
        let after = sender.congestion.cwnd();
        assert!(may_grow || after <= before, "{what} raised the window: {before} to {after}");
    }
    sender.trace
}

/// A segment on its way.
#[derive(Clone, Copy)]
struct Segment {
    sent: Time,
    stamp: Option<Stamp>,
    again: bool,
    /// SACK reported it.
    arrived: bool,
}

struct Sender<C> {
    congestion: Congestion<C>,
    mss: u64,
    now: Time,
    initial: u64,
    segments: VecDeque<Segment>,
    delivered: u64,
    /// What the window may grow by for what was delivered.
    growth: u64,
    newly_lost: u64,
    srtt: Option<Span>,
    /// Segments to acknowledge before fast recovery ends.
    recovering: usize,
    timeouts: u32,
    returned: u32,
    trace: Vec<Snapshot>,
}

impl<C: CongestionControl> Sender<C> {
    fn new(control: C, mss: u32) -> Self {
        Self {
            mss: u64::from(mss),
            now: Time::ZERO,
            initial: control.cwnd(),
            congestion: Congestion::new(Time::ZERO, control),
            segments: VecDeque::new(),
            delivered: 0,
            growth: 1,
            newly_lost: 0,
            srtt: None,
            recovering: 0,
            timeouts: 0,
            returned: 0,
            trace: Vec::new(),
        }
    }

    /// One operation: its name, and whether it may raise the window.
    fn operate(&mut self, choices: &mut Choices) -> (&'static str, bool) {
        let some = !self.segments.is_empty();
        match choices.below(12) {
            4..=7 if some => {
                self.ack(1 + usize::from(choices.below(4)), choices.below(4) == 0);
                ("an ACK", true)
            }
            8 if some => {
                self.sack(usize::from(choices.byte()), choices.flip());
                ("a SACK", true)
            }
            9 if some && self.recovering == 0 => {
                self.lose(choices.below(3) == 0);
                ("a loss", false)
            }
            10 if some => match choices.below(4) {
                0 => {
                    self.time_out();
                    ("a time-out", false)
                }
                1 => {
                    self.hand_back();
                    ("a returned segment", false)
                }
                _ if self.congestion.ecn_feedback() == EcnFeedback::PerWindow => {
                    self.congestion.on_ecn(self.now, self.in_flight());
                    ("a mark", false)
                }
                _ => ("nothing", false),
            },
            11 if !some => {
                self.congestion.on_idle(self.now);
                ("idleness", false)
            }
            _ => {
                self.send(1 + choices.below(16));
                ("a departure", false)
            }
        }
    }

    fn in_flight(&self) -> u64 {
        self.segments.len() as u64 * self.mss
    }

    fn send(&mut self, count: u8) {
        for _ in 0..count {
            let in_flight = self.in_flight();
            if !self.congestion.has_room(in_flight, self.mss) {
                self.congestion.on_held(self.now);
                return;
            }
            let segment = self.departure(in_flight, false);
            self.segments.push_back(segment);
            self.tell_sent(false);
        }
        self.congestion.on_app_limited(self.in_flight());
    }

    fn departure(&mut self, pipe: u64, again: bool) -> Segment {
        let stamp = self.congestion.stamp(self.now, self.mss, pipe);
        Segment { sent: self.now, stamp, again, arrived: false }
    }

    fn tell_sent(&mut self, retransmission: bool) {
        let departure = Departure::new(self.mss as u32, self.in_flight());
        self.congestion.on_sent(self.now, &Departure { retransmission, ..departure });
    }

    fn send_oldest_again(&mut self) {
        let segment = self.departure(self.in_flight().saturating_sub(self.mss).max(1), true);
        if let Some(oldest) = self.segments.front_mut() {
            *oldest = Segment { arrived: oldest.arrived, ..segment };
            self.tell_sent(true);
        }
    }

    fn ack(&mut self, count: usize, ece: bool) {
        let in_flight = self.in_flight();
        let acked: Vec<Segment> = self.segments.drain(..count.min(self.segments.len())).collect();
        self.timeouts = 0;
        self.returned = 0;
        let in_fast_recovery = self.recovering > 0;
        self.recovering = self.recovering.saturating_sub(acked.len());
        let rtt = match acked.last() {
            Some(newest) if !newest.again && !newest.arrived => Some(self.now.since(newest.sent)),
            _ => None,
        };
        let news: Vec<_> = acked.iter().filter(|segment| !segment.arrived).copied().collect();
        let told = Acked {
            acked: acked.len() as u64 * self.mss,
            ece,
            marked: u64::from(ece) * self.mss,
            in_flight,
            rtt,
            in_fast_recovery,
            recovered: in_fast_recovery && self.recovering == 0,
            ..Acked::of(0)
        };
        self.tell_ack(&news, told);
    }

    fn sack(&mut self, choice: usize, ece: bool) {
        let index = choice % self.segments.len();
        let segment = self.segments[index];
        if index > 0 && !segment.arrived {
            self.segments[index].arrived = true;
            let (in_flight, in_fast_recovery) = (self.in_flight(), self.recovering > 0);
            let told = Acked { ece, in_flight, in_fast_recovery, ..Acked::of(0) };
            self.tell_ack(&[segment], told);
        }
    }

    /// An ACK that is the first to say that `arrived` did.
    fn tell_ack(&mut self, arrived: &[Segment], told: Acked) {
        if let Some(rtt) = told.rtt {
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        }
        for stamp in arrived.iter().filter_map(|segment| segment.stamp) {
            self.congestion.on_delivered(stamp);
        }
        let delivered = arrived.len() as u64 * self.mss;
        self.delivered += delivered;
        let lost = std::mem::take(&mut self.newly_lost);
        let news = Acked { delivered, lost, srtt: self.srtt, ..told };
        self.congestion.on_ack(self.now, &news);
    }

    fn lose(&mut self, ece: bool) {
        self.newly_lost += self.mss;
        self.recovering = self.segments.len();
        self.congestion.on_loss(self.now, &LossSample { in_flight: self.in_flight(), ece });
        self.send_oldest_again();
    }

    fn time_out(&mut self) {
        let recovering = std::mem::take(&mut self.recovering) > 0;
        let again = self.timeouts > 0;
        self.timeouts += 1;
        let in_flight = self.in_flight();
        let sample = RtoSample { in_flight, again, recovering };
        self.congestion.on_rto(self.now, &sample, self.mss);
        self.send_oldest_again();
    }

    fn hand_back(&mut self) {
        self.returned += 1;
        let (in_flight, times, srtt) = (self.in_flight(), self.returned, self.srtt);
        let wait =
            self.congestion.on_returned(self.now, &ReturnedSample { in_flight, times, srtt });
        let srtt = srtt.unwrap_or(Span::from_millis(100));
        assert!(wait <= srtt.max(Span::from_secs(1)) * 64, "waits {wait} after {times} returns");
        self.send_oldest_again();
    }

    fn check(&mut self, what: &str) {
        let (cwnd, state) = (self.congestion.cwnd(), self.congestion.snapshot());
        assert_eq!(state.cwnd, cwnd, "after {what}");
        assert!(cwnd >= self.mss, "cwnd {cwnd} below one MSS after {what}");
        assert!(state.ssthresh >= 2 * self.mss, "ssthresh {} after {what}", state.ssthresh);
        let most = self.initial.max(64 * self.mss) + self.growth * self.delivered;
        assert!(cwnd <= most, "cwnd {cwnd} above {most} after {what}");
        self.trace.push(state);
    }
}
