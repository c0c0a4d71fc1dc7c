//! HyStart++ (RFC 9406): leaves slow start when the round trip grows, before the queue overflows.
//!
//! A rise of the round's least RTT over the previous round's starts Conservative Slow Start, which
//! grows at a quarter of the pace; should the RTT fall back below where it began, slow start goes
//! on; after five such rounds congestion avoidance begins. Loss and ECN end it at once: that is the
//! business of the algorithm that uses it.
//!
//! Only for the first slow start of a connection (section 4.3). Burst limit L: 8 segments without
//! pacing, none with it (section 4.3).

use super::AckSample;
use super::round::Rounds;
use crate::time::Span;

/// Where slow start is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The window doubles each round.
    SlowStart,
    /// The window grows at a quarter of that pace; the rise may have been noise.
    Conservative,
    /// Set ssthresh to cwnd and avoid congestion from here on.
    Done,
}

/// The state of section 4.2.
#[derive(Clone, Copy, Debug)]
pub struct HystartPlusPlus {
    rounds: Rounds,
    last_round_min: Option<Span>,
    current_round_min: Option<Span>,
    rtt_samples: u32,
    /// The least RTT with which Conservative Slow Start began, and how many rounds it lasts.
    conservative: Option<(Span, u32)>,
    burst_limit: Option<u64>,
    done: bool,
}

impl HystartPlusPlus {
    /// At the start of a connection; `paced` lifts the burst limit.
    pub fn new(paced: bool) -> Self {
        Self {
            rounds: Rounds::default(),
            last_round_min: None,
            current_round_min: None,
            rtt_samples: 0,
            conservative: None,
            burst_limit: (!paced).then_some(BURST_LIMIT),
            done: false,
        }
    }

    /// Takes an ACK of slow start; tells the phase that it leaves the sender in.
    pub fn on_ack(&mut self, sample: &AckSample) -> Phase {
        if self.rounds.on_ack(sample) {
            self.end_round();
        }
        if let Some(rtt) = sample.rtt {
            self.current_round_min = Some(self.current_round_min.map_or(rtt, |min| min.min(rtt)));
            self.rtt_samples += 1;
        }
        if self.rtt_samples >= N_RTT_SAMPLE {
            self.judge();
        }
        self.phase()
    }

    fn phase(&self) -> Phase {
        match self.conservative {
            _ if self.done => Phase::Done,
            Some(_) => Phase::Conservative,
            None => Phase::SlowStart,
        }
    }

    /// By how much an ACK of `acked` bytes opens the window, bytes.
    pub fn growth(&self, acked: u64, mss: u64) -> u64 {
        let growth = self.burst_limit.map_or(acked, |limit| acked.min(limit * mss));
        match self.phase() {
            Phase::SlowStart => growth,
            Phase::Conservative => growth / CSS_GROWTH_DIVISOR,
            Phase::Done => 0,
        }
    }

    fn end_round(&mut self) {
        self.last_round_min = self.current_round_min.take();
        self.rtt_samples = 0;
        if let Some((_, rounds)) = &mut self.conservative {
            *rounds += 1;
            self.done = *rounds >= CSS_ROUNDS;
        }
    }

    fn judge(&mut self) {
        let Some(current) = self.current_round_min else { return };
        if let Some((baseline, _)) = self.conservative {
            if current < baseline && !self.done {
                self.conservative = None;
            }
        } else if let Some(last) = self.last_round_min {
            let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
            if current >= last + threshold {
                self.conservative = Some((current, 0));
            }
        }
    }
}

// RFC 9406 section 4.3.
const MIN_RTT_THRESH: Span = Span::from_millis(4);
const MAX_RTT_THRESH: Span = Span::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// L, segments, for a sender that does not pace.
const BURST_LIMIT: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::ack_of;

    const MSS: u32 = 1000;

    /// One round of ten ACKs, each of a segment with that RTT.
    fn round(hystart: &mut HystartPlusPlus, rtt_ms: u64) -> Phase {
        let rtt = Some(Span::from_millis(rtt_ms));
        let ack = AckSample { in_flight: 10_000, rtt, ..ack_of(MSS) };
        let mut phase = Phase::SlowStart;
        for _ in 0..10 {
            phase = hystart.on_ack(&ack);
        }
        phase
    }

    #[test]
    fn a_steady_round_trip_never_leaves_slow_start() {
        let mut hystart = HystartPlusPlus::new(false);
        for _ in 0..50 {
            assert_eq!(round(&mut hystart, 40), Phase::SlowStart);
        }
    }

    #[test]
    fn a_rise_below_the_threshold_is_no_rise() {
        // An eighth of 40 ms is 5 ms; of 400 ms it would be 50 ms, bounded to 16 ms.
        for (before, after, phase) in [
            (40, 44, Phase::SlowStart),
            (40, 45, Phase::Conservative),
            (8, 11, Phase::SlowStart),
            (8, 12, Phase::Conservative),
            (400, 415, Phase::SlowStart),
            (400, 416, Phase::Conservative),
        ] {
            let mut hystart = HystartPlusPlus::new(false);
            round(&mut hystart, before);
            round(&mut hystart, before);
            round(&mut hystart, after);
            assert_eq!(round(&mut hystart, after), phase, "{before} ms to {after} ms");
        }
    }

    #[test]
    fn five_conservative_rounds_end_it_and_grow_at_a_quarter() {
        let mut hystart = HystartPlusPlus::new(false);
        let phases: Vec<_> = [40, 40, 60, 60, 60, 60, 60, 60]
            .map(|rtt| {
                let phase = round(&mut hystart, rtt);
                (phase, hystart.growth(1000, 1000))
            })
            .to_vec();
        let slow = (Phase::SlowStart, 1000);
        let conservative = (Phase::Conservative, 250);
        let mut expected = vec![slow, slow];
        expected.extend([conservative; 5]);
        expected.push((Phase::Done, 0));
        assert_eq!(phases, expected);
    }

    #[test]
    fn a_fall_below_the_baseline_resumes_slow_start() {
        let mut hystart = HystartPlusPlus::new(false);
        round(&mut hystart, 40);
        round(&mut hystart, 40);
        assert_eq!(round(&mut hystart, 60), Phase::Conservative);
        assert_eq!(round(&mut hystart, 41), Phase::SlowStart);
    }

    #[test]
    fn a_burst_counts_as_eight_segments_unless_paced() {
        assert_eq!(HystartPlusPlus::new(false).growth(20_000, 1000), 8000);
        assert_eq!(HystartPlusPlus::new(true).growth(20_000, 1000), 20_000);
    }
}
