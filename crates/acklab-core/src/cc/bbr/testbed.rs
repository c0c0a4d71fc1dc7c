//! One bulk sender over one bottleneck, for the tests of both versions: it paces, samples delivery rates
//! (draft-ietf-ccwg-bbr-06 section 4.1) and takes a segment for lost once a third later one arrived.

use std::collections::VecDeque;

use crate::cc::{
    AckSample, CongestionControl, LossSample, RateSample, RtoSample, SentSample, Start,
};
use crate::rng::Rng;
use crate::time::{Span, Time};
use crate::units::BitRate;

/// Segment and packet, bytes.
pub(super) const MSS: u32 = 1000;

/// What a connection with an initial window of ten starts from.
pub(super) fn start() -> Start {
    let mss = u64::from(MSS);
    Start { mss: MSS, initial_window: 10 * mss, initial_ssthresh: u64::MAX, seed: 7 }
}

/// A bottleneck with a drop-tail queue, and the sender before it.
pub(super) struct Path {
    pub(super) rate: BitRate,
    /// Round trip without the queue.
    pub(super) rtt: Span,
    /// Queue, bytes.
    pub(super) buffer: u64,
    pub(super) loss: f64,
    pub(super) now: Time,
    rng: Rng,
    free_at: Time,
    /// (arrival of its ACK, index)
    acks: VecDeque<(Time, usize)>,
    segments: Vec<Segment>,
    /// Every segment below has arrived or is lost.
    settled: usize,
    next_send: Time,
    in_flight: u64,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    lost: u64,
    srtt: Option<Span>,
    recovery_end: Option<usize>,
}

#[derive(Clone, Copy)]
struct Segment {
    sent: Time,
    first_sent: Time,
    delivered: u64,
    delivered_at: Time,
    lost: u64,
    tx_in_flight: u64,
    gone: bool,
}

/// What a stretch of time brought.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Share of the bottleneck's rate.
    pub(super) utilisation: f64,
    /// Mean queue that departing segments met, bytes.
    pub(super) queue_mean: f64,
    /// Share of the segments sent that were lost.
    pub(super) lost: f64,
}

impl Path {
    pub(super) fn new(mbps: u64, rtt_ms: u64, buffer: u64, loss: f64) -> Self {
        Self {
            rate: BitRate::from_bps(mbps * 1_000_000).unwrap(),
            rtt: Span::from_millis(rtt_ms),
            buffer,
            loss,
            now: Time::ZERO,
            rng: Rng::named(1, "path"),
            free_at: Time::ZERO,
            acks: VecDeque::new(),
            segments: Vec::new(),
            settled: 0,
            next_send: Time::ZERO,
            in_flight: 0,
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            lost: 0,
            srtt: None,
            recovery_end: None,
        }
    }

    /// What fits on the path without a queue, bytes.
    pub(super) fn bdp(&self) -> f64 {
        self.rate.as_bps() as f64 / 8.0 * self.rtt.as_secs_f64()
    }

    /// Sends for that long; `watch` sees the control after each ACK.
    pub(super) fn run<C: CongestionControl>(
        &mut self,
        cc: &mut C,
        seconds: f64,
        mut watch: impl FnMut(Time, &C),
    ) -> Outcome {
        let (begin, before, lost) = (self.now, self.delivered, self.lost);
        let end = begin + Span::from_secs_f64(seconds);
        let (mut queued, mut sent) = (0.0, 0.0);
        while self.now < end {
            let room = self.in_flight + u64::from(MSS) <= cc.cwnd();
            let send_at = room.then(|| self.next_send.max(self.now));
            let ack_at = self.acks.front().map(|&(at, _)| at);
            match (send_at, ack_at) {
                (Some(at), ack) if ack.is_none_or(|ack| at <= ack) => {
                    self.now = at;
                    queued += self.send(cc);
                    sent += 1.0;
                }
                (_, Some(at)) => {
                    self.now = at;
                    self.acknowledge(cc, !room);
                    watch(self.now, cc);
                }
                _ => self.time_out(cc),
            }
        }
        let seconds = self.now.since(begin).as_secs_f64();
        let rate = (self.delivered - before) as f64 * 8.0 / seconds;
        Outcome {
            utilisation: rate / self.rate.as_bps() as f64,
            queue_mean: queued / sent,
            lost: (self.lost - lost) as f64 / (sent * f64::from(MSS)),
        }
    }

    fn send<C: CongestionControl>(&mut self, cc: &mut C) -> f64 {
        let mss = u64::from(MSS);
        if self.in_flight == 0 {
            (self.first_sent, self.delivered_at) = (self.now, self.now);
        }
        self.in_flight += mss;
        self.segments.push(Segment {
            sent: self.now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            tx_in_flight: self.in_flight,
            gone: false,
        });
        let in_flight = self.in_flight;
        cc.on_sent(self.now, &SentSample { bytes: MSS, in_flight, retransmission: false });
        let gap = cc.pacing_rate().map_or(Span::ZERO, |rate| rate.serialisation(mss));
        self.next_send = self.now + gap;
        let waits = self.free_at.since(self.now).as_secs_f64();
        let queue = waits * self.rate.as_bps() as f64 / 8.0;
        if queue <= self.buffer as f64 && !self.rng.chance(self.loss) {
            self.free_at = self.free_at.max(self.now) + self.rate.serialisation(mss);
            self.acks.push_back((self.free_at + self.rtt, self.segments.len() - 1));
        }
        queue
    }

    fn acknowledge<C: CongestionControl>(&mut self, cc: &mut C, cwnd_limited: bool) {
        let Some((_, index)) = self.acks.pop_front() else { return };
        let mss = u64::from(MSS);
        let segment = self.segments[index];
        if segment.gone {
            return; // It arrived after it was given up.
        }
        self.segments[index].gone = true;
        let before = self.in_flight;
        let lost = self.find_lost(index.saturating_sub(2));
        self.in_flight -= mss + lost;
        self.delivered += mss;
        self.delivered_at = self.now;
        self.first_sent = segment.sent;
        let rtt = self.now.since(segment.sent);
        self.srtt = Some(self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        let interval = segment.sent.since(segment.first_sent);
        let rate = RateSample {
            delivered: self.delivered - segment.delivered,
            interval: interval.max(self.now.since(segment.delivered_at)),
            prior_delivered: segment.delivered,
            total_delivered: self.delivered,
            app_limited: false,
            tx_in_flight: segment.tx_in_flight,
            lost: self.lost - segment.lost,
        };
        let in_fast_recovery = self.recovery_end.is_some();
        if self.recovery_end.is_some_and(|end| index >= end) {
            self.recovery_end = None;
            cc.on_recovered(self.now);
        }
        let sample = AckSample {
            acked: mss,
            delivered: mss,
            lost,
            ece: false,
            rate: Some(rate),
            in_flight: before,
            rtt: Some(rtt),
            srtt: self.srtt,
            cwnd_limited,
            in_fast_recovery,
        };
        cc.on_ack(self.now, &sample);
        if lost > 0 && self.recovery_end.is_none() {
            // As in TCP: what the flight of now loses must be sent again and arrive, two round trips.
            let flight = (self.in_flight / mss) as usize;
            self.recovery_end = Some(self.segments.len() + flight);
            cc.on_loss(self.now, &LossSample { in_flight: self.in_flight, ece: false });
        }
    }

    /// Gives up what is missing below that index; its bytes.
    fn find_lost(&mut self, below: usize) -> u64 {
        let mut lost = 0;
        while self.settled < below {
            let segment = &mut self.segments[self.settled];
            lost += u64::from(MSS) * u64::from(!segment.gone);
            segment.gone = true;
            self.settled += 1;
        }
        self.lost += lost;
        lost
    }

    fn time_out<C: CongestionControl>(&mut self, cc: &mut C) {
        self.now += Span::from_secs(1);
        let in_flight = self.in_flight;
        let given_up = self.find_lost(self.segments.len());
        assert_eq!(given_up, in_flight);
        self.in_flight = 0;
        self.recovery_end = None;
        cc.on_rto(self.now, &RtoSample { in_flight, ..RtoSample::default() });
    }
}
