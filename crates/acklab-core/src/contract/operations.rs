//! An operation model of a sender: whatever a connection may tell its congestion control, in any order,
//! with samples that fit together, and what must hold whatever the algorithm.
//!
//! [`super::attack_congestion_control`] feeds samples that no sender would produce; here in-flight counts,
//! deliveries, round trips and rate samples (draft-ietf-ccwg-bbr section 4.1) follow from the operations,
//! so that stronger claims can be made. The sender repairs a loss by sending its oldest segment again.

use std::collections::VecDeque;

use super::Choices;
use crate::cc::{
    AckSample, CongestionControl, EcnFeedback, EcnSample, LossSample, RateSample, ReturnedSample,
    RtoSample, SentSample, Snapshot,
};
use crate::time::{Span, Time};

/// Runs a congestion control through a sender's operations (sent, acked, SACKed, lost, marked, timed out,
/// returned, recovered, idle) and returns its state after each of them.
///
/// # Panics
/// Where the window falls below one MSS; where a loss, a mark, a time-out, a returned segment, idleness
/// or a departure raises it; where it exceeds the initial window and 64 segments by more than was
/// delivered; where ssthresh, having begun with at least two MSS, falls below; where the snapshot and
/// the window disagree; where a returned segment waits for an hour.
pub fn operate_congestion_control(
    cc: &mut impl CongestionControl,
    mss: u32,
    bytes: &[u8],
) -> Vec<Snapshot> {
    let mut sender = Sender::new(cc, mss);
    let mut choices = Choices::new(bytes);
    sender.check("the start");
    while !choices.is_empty() {
        let micros = 1 + u64::from(choices.word()) * u64::from(choices.below(4));
        sender.now += Span::from_micros(micros);
        let before = sender.cc.cwnd();
        let (what, may_grow) = sender.operate(&mut choices);
        sender.check(what);
        let after = sender.cc.cwnd();
        assert!(may_grow || after <= before, "{what} raised the window: {before} to {after}");
    }
    sender.trace
}

/// A segment on its way, with what rate sampling notes at its departure.
#[derive(Clone, Copy)]
struct Segment {
    sent: Time,
    first_sent: Time,
    delivered: u64,
    delivered_at: Time,
    lost: u64,
    app_limited: bool,
    tx_in_flight: u64,
    again: bool,
    /// SACK reported it.
    arrived: bool,
}

struct Sender<'a, C> {
    cc: &'a mut C,
    mss: u64,
    now: Time,
    initial: u64,
    segments: VecDeque<Segment>,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    lost: u64,
    newly_lost: u64,
    srtt: Option<Span>,
    cwnd_limited: bool,
    /// Segments to acknowledge before fast recovery ends.
    recovering: usize,
    timeouts: u32,
    returned: u32,
    trace: Vec<Snapshot>,
}

impl<'a, C: CongestionControl> Sender<'a, C> {
    fn new(cc: &'a mut C, mss: u32) -> Self {
        Self {
            mss: u64::from(mss),
            now: Time::ZERO,
            initial: cc.cwnd(),
            cc,
            segments: VecDeque::new(),
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            lost: 0,
            newly_lost: 0,
            srtt: None,
            cwnd_limited: false,
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
                _ if self.cc.ecn_feedback() == EcnFeedback::PerWindow => {
                    self.cc.on_ecn(self.now, &EcnSample { in_flight: self.in_flight() });
                    ("a mark", false)
                }
                _ => ("nothing", false),
            },
            11 if !some => {
                self.cc.on_idle(self.now);
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
            self.cwnd_limited = self.in_flight() + self.mss > self.cc.cwnd();
            if self.cwnd_limited {
                return;
            }
            if self.segments.is_empty() {
                (self.first_sent, self.delivered_at) = (self.now, self.now);
            }
            let segment = self.departure(false);
            self.segments.push_back(segment);
            self.tell_sent(false);
        }
        if let Some(last) = self.segments.back_mut() {
            last.app_limited = true;
        }
    }

    fn departure(&self, again: bool) -> Segment {
        Segment {
            sent: self.now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            app_limited: false,
            tx_in_flight: self.in_flight() + if again { 0 } else { self.mss },
            again,
            arrived: false,
        }
    }

    fn tell_sent(&mut self, retransmission: bool) {
        let in_flight = self.in_flight();
        let bytes = self.mss as u32;
        self.cc.on_sent(self.now, &SentSample { bytes, in_flight, retransmission });
    }

    fn send_oldest_again(&mut self) {
        let segment = self.departure(true);
        if let Some(oldest) = self.segments.front_mut() {
            *oldest = Segment { arrived: oldest.arrived, ..segment };
            self.tell_sent(true);
        }
    }

    fn ack(&mut self, count: usize, ece: bool) {
        let in_flight = self.in_flight();
        let acked: Vec<Segment> = self.segments.drain(..count.min(self.segments.len())).collect();
        let news = acked.iter().filter(|segment| !segment.arrived).count() as u64;
        self.timeouts = 0;
        self.returned = 0;
        let in_fast_recovery = self.recovering > 0;
        self.recovering = self.recovering.saturating_sub(acked.len());
        if in_fast_recovery && self.recovering == 0 {
            self.cc.on_recovered(self.now);
        }
        let rtt = match acked.last() {
            Some(newest) if !newest.again && !newest.arrived => Some(self.now.since(newest.sent)),
            _ => None,
        };
        let newest = acked.iter().filter(|s| !s.arrived).max_by_key(|s| (s.delivered, s.sent));
        let newest = newest.copied();
        let sample = AckSample {
            acked: acked.len() as u64 * self.mss,
            delivered: news * self.mss,
            rtt,
            in_fast_recovery,
            ..self.plain_ack(in_flight, ece)
        };
        self.tell_ack(newest, sample);
        self.cwnd_limited = false;
    }

    fn sack(&mut self, choice: usize, ece: bool) {
        let index = choice % self.segments.len();
        let segment = self.segments[index];
        if index > 0 && !segment.arrived {
            self.segments[index].arrived = true;
            let plain = self.plain_ack(self.in_flight(), ece);
            self.tell_ack(Some(segment), AckSample { delivered: self.mss, ..plain });
        }
    }

    /// An ACK that brings no news.
    fn plain_ack(&self, in_flight: u64, ece: bool) -> AckSample {
        AckSample {
            acked: 0,
            delivered: 0,
            lost: 0,
            ece,
            rate: None,
            in_flight,
            rtt: None,
            srtt: self.srtt,
            cwnd_limited: self.cwnd_limited,
            in_fast_recovery: self.recovering > 0,
        }
    }

    fn tell_ack(&mut self, newest: Option<Segment>, sample: AckSample) {
        if let Some(rtt) = sample.rtt {
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        }
        self.delivered += sample.delivered;
        if sample.delivered > 0 {
            self.delivered_at = self.now;
        }
        let lost = std::mem::take(&mut self.newly_lost);
        let rate = newest.and_then(|segment| self.rate(&segment));
        self.cc.on_ack(self.now, &AckSample { lost, rate, srtt: self.srtt, ..sample });
    }

    /// draft-ietf-ccwg-bbr section 4.1.2.3.
    fn rate(&mut self, segment: &Segment) -> Option<RateSample> {
        self.first_sent = segment.sent;
        let send_phase = segment.sent.since(segment.first_sent);
        let interval = send_phase.max(self.now.since(segment.delivered_at));
        (self.cc.wants_rate() && !interval.is_zero()).then(|| RateSample {
            delivered: self.delivered - segment.delivered,
            interval,
            prior_delivered: segment.delivered,
            total_delivered: self.delivered,
            app_limited: segment.app_limited,
            tx_in_flight: segment.tx_in_flight,
            lost: self.lost - segment.lost,
        })
    }

    fn lose(&mut self, ece: bool) {
        self.count_lost();
        self.recovering = self.segments.len();
        self.cc.on_loss(self.now, &LossSample { in_flight: self.in_flight(), ece });
        self.send_oldest_again();
    }

    fn time_out(&mut self) {
        self.count_lost();
        let recovering = std::mem::take(&mut self.recovering) > 0;
        let again = self.timeouts > 0;
        self.timeouts += 1;
        let in_flight = self.in_flight();
        self.cc.on_rto(self.now, &RtoSample { in_flight, again, recovering });
        self.send_oldest_again();
    }

    fn count_lost(&mut self) {
        self.lost += self.mss;
        self.newly_lost += self.mss;
    }

    fn hand_back(&mut self) {
        self.returned += 1;
        let (in_flight, times, srtt) = (self.in_flight(), self.returned, self.srtt);
        let wait = self.cc.on_returned(self.now, &ReturnedSample { in_flight, times, srtt });
        let srtt = srtt.unwrap_or(Span::from_millis(100));
        assert!(wait <= srtt.max(Span::from_secs(1)) * 64, "waits {wait} after {times} returns");
        self.send_oldest_again();
    }

    fn check(&mut self, what: &str) {
        let (cwnd, state) = (self.cc.cwnd(), self.cc.snapshot());
        assert_eq!(state.cwnd, cwnd, "after {what}");
        assert!(cwnd >= self.mss, "cwnd {cwnd} below one MSS after {what}");
        assert!(state.ssthresh >= 2 * self.mss, "ssthresh {} after {what}", state.ssthresh);
        let most = self.initial.max(64 * self.mss) + self.delivered;
        assert!(cwnd <= most, "cwnd {cwnd} above {most} after {what}");
        self.trace.push(state);
    }
}
