//! A scalable response to marks, for the L4S service (RFC 9330, RFC 9331 section 4): what TCP Prague is
//! (draft-briscoe-iccrg-prague-congestion-control), as built here.
//!
//! Packets bear ECT(1). Over each virtual round trip alpha = alpha + (share of marked bytes - alpha) / 16, and a
//! mark cuts the window to (1 - alpha / 2) of itself once in it. Bytes without a mark add one segment a round trip. So
//! W = 2 / p (RFC 9332 section 2.1 couples a classic queue to that). Packets are paced, for the L queue marks what
//! comes in bursts.
//!
//! - **Round trips below 25 ms** (RFC 9331 section 4.3, item 5): a virtual round trip has 25 ms at least, and the window grows
//!   by (srtt / 25 ms)^2 of a segment in a real one, so that the rate is that of a flow with 25 ms.
//! - **Loss** halves the window, as Reno does (item 2).
//! - **A classic queue that marks** (item 3): the L queue of RFC 9332 marks at 1 ms, a classic one at 5 ms (`CoDel`) and more.
//!   Where every packet of the virtual round trips with marks waited longer than 3 ms, a mark counts as a loss once a round trip, until
//!   as many with marks wait less. RFC 9331 appendix A.1.5 says why no such test is certain: a shallow classic queue
//!   (`RED` with a low threshold) passes for an L queue, and so does a standing queue that is in the least round trip.
//!
//! Left out: the fall-back by a route's history, and `AccECN`, which reliable UDP's own counters replace.

use super::{
    AckSample, CongestionControl, EcnFeedback, EcnSample, LossSample, RtoSample, Snapshot, Start,
    UNKNOWN_RTT,
};
use crate::packet::Ecn;
use crate::time::{Span, Time};
use crate::units::BitRate;

/// The sender's state; windows in bytes, times in seconds but for instants.
#[derive(Clone, Copy, Debug)]
pub struct Prague {
    mss: f64,
    initial_window: f64,
    cwnd: f64,
    ssthresh: f64,
    alpha: f64,
    /// Of the virtual round trip under way: delivered, and of it marked.
    delivered: f64,
    marked: f64,
    ends: Time,
    /// No mark cuts the window before, nor before so many bytes of what was on the way at the last cut are delivered or lost.
    heeds_from: Time,
    heeded: u64,
    srtt: Span,
    depth: Depth,
}

impl Prague {
    /// A fresh connection.
    pub fn new(start: &Start) -> Self {
        let mss = f64::from(start.mss.max(1));
        let initial_window = (start.initial_window as f64).max(mss);
        Self {
            mss,
            initial_window,
            cwnd: initial_window,
            ssthresh: start.initial_ssthresh as f64,
            alpha: 1.0,
            delivered: 0.0,
            marked: 0.0,
            ends: Time::ZERO,
            heeds_from: Time::ZERO,
            heeded: 0,
            srtt: UNKNOWN_RTT,
            depth: Depth::default(),
        }
    }

    /// The estimated share of marked bytes.
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Whether marks come from a classic queue, as far as is known.
    pub const fn is_classic(&self) -> bool {
        self.depth.is_classic
    }

    /// Not below two segments, where it is not there already.
    fn reduce_to(&mut self, cwnd: f64) {
        self.cwnd = self.cwnd.min(cwnd.max(2.0 * self.mss));
        self.ssthresh = self.cwnd.max(2.0 * self.mss);
    }

    /// A virtual round trip ends.
    fn end_round(&mut self, now: Time) {
        if self.delivered > 0.0 {
            self.alpha += GAIN * (self.marked / self.delivered - self.alpha);
            self.depth.end_round(self.marked > 0.0);
        }
        (self.delivered, self.marked) = (0.0, 0.0);
        self.ends = now + self.srtt.max(REFERENCE_RTT);
    }

    /// A mark cuts the window, with so much on the way.
    fn heed(&mut self, now: Time, in_flight: u64) {
        if now < self.heeds_from {
            return;
        }
        let (cut, pause) = if self.is_classic() {
            (CLASSIC_CUT, self.srtt)
        } else {
            (self.alpha / 2.0, self.srtt.max(REFERENCE_RTT))
        };
        self.reduce_to(self.cwnd * (1.0 - cut));
        (self.heeds_from, self.heeded) = (now + pause, in_flight);
    }

    fn grow(&mut self, unmarked: f64) {
        if self.cwnd < self.ssthresh {
            self.cwnd += unmarked;
            return;
        }
        let trip = self.srtt.as_secs_f64() / REFERENCE_RTT.as_secs_f64();
        let slope = if self.is_classic() { 1.0 } else { (trip * trip).min(1.0) };
        self.cwnd += slope * self.mss * unmarked / self.cwnd;
    }
}

impl CongestionControl for Prague {
    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        self.srtt = sample.srtt.unwrap_or(self.srtt);
        // This ACK tells of the next.
        if now >= self.ends {
            self.end_round(now);
        }
        if let Some(rtt) = sample.rtt {
            self.depth.on_rtt(now, rtt);
        }
        let marked = sample.marked.min(sample.delivered) as f64;
        self.delivered += sample.delivered as f64;
        self.marked += marked;
        if sample.cwnd_limited && !sample.in_fast_recovery {
            self.grow(sample.delivered as f64 - marked);
        }
        let gone = sample.delivered.saturating_add(sample.lost);
        // What it covers left before the last cut.
        let answered = self.heeded > 0;
        self.heeded = self.heeded.saturating_sub(gone);
        if sample.ece && !answered {
            self.heed(now, sample.in_flight.saturating_sub(gone));
        }
    }

    fn on_loss(&mut self, now: Time, sample: &LossSample) {
        self.reduce_to(self.cwnd / 2.0);
        (self.heeds_from, self.heeded) = (now + self.srtt, sample.in_flight);
    }

    /// Each mark is heard of.
    fn on_ecn(&mut self, _now: Time, _sample: &EcnSample) {}

    fn on_rto(&mut self, _now: Time, sample: &RtoSample) {
        if !sample.keeps_threshold() {
            self.ssthresh = (self.cwnd / 2.0).max(2.0 * self.mss);
        }
        self.cwnd = self.mss;
    }

    fn on_idle(&mut self, _now: Time) {
        self.cwnd = self.cwnd.min(self.initial_window);
    }

    fn codepoint(&self) -> Ecn {
        Ecn::Ect1
    }

    fn ecn_feedback(&self) -> EcnFeedback {
        EcnFeedback::PerAck
    }

    /// More than the rate fills, so that pacing and no window that waits for ACKs spaces the packets.
    fn cwnd(&self) -> u64 {
        (self.cwnd * HEADROOM + 2.0 * self.mss) as u64
    }

    fn wants_each_ack(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        let gain = if self.cwnd < self.ssthresh { 2.0 } else { 1.0 };
        BitRate::from_bps((gain * self.cwnd * 8.0 / self.srtt.as_secs_f64().max(1e-6)) as u64)
    }

    fn snapshot(&self) -> Snapshot {
        let most = u64::MAX as f64;
        Snapshot { cwnd: self.cwnd(), ssthresh: self.ssthresh.min(most) as u64 }
    }
}

/// How deep the queue is where marks come from.
#[derive(Clone, Copy, Debug)]
struct Depth {
    /// The least round trip of late, and when it was met.
    least: Span,
    met: Time,
    /// Of the virtual round trip under way.
    round: Span,
    /// Virtual round trips with marks in a deep queue, less those in a shallow one.
    score: i32,
    is_classic: bool,
}

impl Default for Depth {
    fn default() -> Self {
        Self { least: Span::MAX, met: Time::ZERO, round: Span::MAX, score: 0, is_classic: false }
    }
}

impl Depth {
    fn on_rtt(&mut self, now: Time, rtt: Span) {
        if rtt <= self.least || now.since(self.met) > LEAST_LIFE {
            (self.least, self.met) = (rtt, now);
        }
        self.round = self.round.min(rtt);
    }

    /// Marks in a round whose every packet waited long are a classic queue's.
    fn end_round(&mut self, marked: bool) {
        let round = std::mem::replace(&mut self.round, Span::MAX);
        if !marked || round == Span::MAX {
            return;
        }
        let step = if round.saturating_sub(self.least) > DEEP { 1 } else { -1 };
        self.score = (self.score + step).clamp(-CERTAIN, CERTAIN);
        if self.score.abs() == CERTAIN {
            self.is_classic = self.score > 0;
        }
    }
}

/// Of the newest virtual round trip in alpha (RFC 8257 section 4.2).
const GAIN: f64 = 1.0 / 16.0;
/// Section 2.4.4 of the draft.
const REFERENCE_RTT: Span = Span::from_millis(25);
/// What Reno gives way by.
const CLASSIC_CUT: f64 = 0.5;
/// The window above what the rate fills. Ours.
const HEADROOM: f64 = 1.25;
/// Between an L queue's millisecond (RFC 9332 appendix A) and `CoDel`'s five (RFC 8289 section 4.4). Ours.
const DEEP: Span = Span::from_millis(3);
/// Virtual round trips. Ours.
const CERTAIN: i32 = 4;
/// How long a least round trip is remembered: several times what a classic queue takes to drain. Ours.
const LEAST_LIFE: Span = Span::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// Steady, with a window of 100 segments.
    fn prague(alpha: f64) -> Prague {
        let start = Start { mss: MSS, initial_window: 100_000, initial_ssthresh: 100_000, seed: 1 };
        Prague { alpha, ..Prague::new(&start) }
    }

    /// A round trip of `rtt` ms that begins at `at` ms: a window's ACKs, the first of which bear `marked` marks.
    fn round(prague: &mut Prague, at: u64, rtt: u64, marked: u64) {
        let segments = (prague.cwnd / f64::from(MSS)).round() as u64;
        let trip = Some(Span::from_millis(rtt));
        for number in 0..segments {
            let now = Time::ZERO + Span::from_micros(1000 * (at + rtt * number / segments));
            let is_marked = number < marked;
            let ack = AckSample {
                ece: is_marked,
                marked: u64::from(is_marked) * u64::from(MSS),
                in_flight: segments * u64::from(MSS),
                rtt: trip,
                srtt: trip,
                ..crate::cc::ack_of(MSS)
            };
            prague.on_ack(now, &ack);
        }
    }

    #[test]
    fn a_mark_cuts_the_window_by_half_of_alpha_once_however_many_follow() {
        let mut prague = prague(0.4);
        round(&mut prague, 1000, 40, 100);
        // Section 2.4.2 of the draft; nothing grows by bytes with marks.
        assert!((prague.cwnd - 80_000.0).abs() < 1.0, "{}", prague.cwnd);
        round(&mut prague, 1040, 40, 0);
        // A segment in a round trip without marks.
        assert!((prague.cwnd - 81_000.0).abs() < 20.0, "{}", prague.cwnd);
    }

    #[test]
    fn a_short_round_trip_grows_as_slowly_as_one_of_25_ms() {
        // 25 round trips of 5 ms grow by what five of 25 ms would share among them: 25 (5 / 25)^2 segments.
        let mut prague = prague(0.1);
        for number in 0..25 {
            round(&mut prague, 5 * number, 5, 0);
        }
        assert!((prague.cwnd - 101_000.0).abs() < 20.0, "{}", prague.cwnd);
    }

    #[test]
    fn marks_where_every_packet_waits_are_a_classic_queues_and_halve() {
        let mut prague = prague(0.0);
        round(&mut prague, 0, 20, 0);
        let mut at = 100;
        let mut rounds = |prague: &mut Prague, count: u64, rtt: u64| {
            for _ in 0..count {
                round(prague, at, rtt, 1);
                at += 100;
            }
        };
        rounds(&mut prague, 3, 30);
        assert!(!prague.is_classic());
        // Each halves from then on.
        rounds(&mut prague, 2, 30);
        assert!(prague.is_classic());
        let before = prague.cwnd;
        rounds(&mut prague, 1, 30);
        assert!((prague.cwnd / before - 0.5).abs() < 0.05, "{} of {before}", prague.cwnd);
        // As many in a shallow one take it back.
        rounds(&mut prague, 10, 21);
        assert!(!prague.is_classic());
    }

    #[test]
    fn loss_halves() {
        let mut prague = prague(0.0);
        prague.on_loss(Time::ZERO, &LossSample { in_flight: 100_000, ece: false });
        assert!((prague.cwnd - 50_000.0).abs() < 1.0);
    }
}
