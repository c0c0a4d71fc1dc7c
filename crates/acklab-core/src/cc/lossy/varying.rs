//! A path whose delay varies by itself, by more than the queue that the delay-based law would keep: radio
//! links that send again what was lost, slots, shared media. There no round trip tells of a queue, and a law that
//! gives way to one gives way without end. So the rate follows what arrives: BBR v1, whose model needs the
//! largest delivery rate and a round trip without a queue. The latter is the least of the smoothed ones: the
//! least of all is one that hardly any packet has, and a window made of it starves.
//!
//! What the path loses whatever we send is added to what arrives: the least loss of the last blocks of
//! packets, so that an overflow, which BBR's own probes cause, is not added.

use super::super::bbr::filter::WindowedMax;
use super::super::bbr::v1::{BbrV1, State};
use super::super::{AckSample, CongestionControl, RateSample, RtoSample, SentSample, Start};
use super::tally::Packets;
use crate::time::Time;
use crate::units::BitRate;

/// BBR, and which share of its packets comes through.
#[derive(Clone, Debug)]
pub(super) struct Varying {
    bbr: BbrV1,
    /// The share of a block that arrived, of the last blocks.
    through: WindowedMax<BLOCKS>,
    blocks: u64,
    block: Packets,
    start: Start,
    /// What BBR had found when its start-up ended, or the least since, bytes per second.
    found: f64,
    /// Rounds in a row in which the delay varied little.
    calm: u32,
}

impl Varying {
    /// Begins with a start-up.
    pub(super) fn new(start: &Start) -> Self {
        // Until enough blocks say otherwise, nothing is lost.
        let mut through = WindowedMax::default();
        through.record(0, 1.0);
        Self {
            bbr: BbrV1::new(start),
            through,
            blocks: 0,
            block: Packets { sent: 0.0, lost: 0.0 },
            start: *start,
            found: f64::INFINITY,
            calm: 0,
        }
    }

    pub(super) fn on_sent(&mut self, now: Time, sample: &SentSample) {
        self.bbr.on_sent(now, sample);
    }

    pub(super) fn on_ack(&mut self, now: Time, sample: &AckSample) {
        let through = self.through.max();
        let whole = |rate: RateSample| RateSample {
            delivered: (rate.delivered as f64 / through) as u64,
            ..rate
        };
        self.bbr
            .on_ack(now, &AckSample { rate: sample.rate.map(whole), rtt: sample.srtt, ..*sample });
    }

    pub(super) fn on_rto(&mut self, now: Time, sample: &RtoSample) {
        self.bbr.on_rto(now, sample);
    }

    /// A round ends with so much on the way, bytes. What the path carries, bytes per second, once its delay has
    /// varied little for long.
    pub(super) fn end_round(&mut self, packets: Packets, flight: u64, varies: bool) -> Option<f64> {
        if self.bbr.state() != State::Startup {
            let bandwidth = self.bbr.bandwidth();
            self.found = self.found.min(bandwidth);
            if bandwidth > AGAIN * self.found {
                // Packets that came in one lump hid the growth of a start-up, or the path became faster.
                self.bbr = BbrV1::new(&Start { initial_window: flight, ..self.start });
                self.found = f64::INFINITY;
            }
        }
        if self.bbr.state() == State::ProbeBw {
            self.block.sent += packets.sent;
            self.block.lost += packets.lost;
        }
        if self.block.sent >= BLOCK {
            self.blocks += 1;
            self.through.record(self.blocks, 1.0 - self.block.lost / self.block.sent);
            self.block = Packets { sent: 0.0, lost: 0.0 };
        }
        self.calm = if varies { 0 } else { self.calm + 1 };
        (self.calm >= CALM_ROUNDS).then(|| self.bbr.bandwidth())
    }

    pub(super) fn cwnd(&self) -> u64 {
        self.bbr.cwnd()
    }

    pub(super) fn pacing_rate(&self) -> Option<BitRate> {
        self.bbr.pacing_rate()
    }
}

// All ours, measured in docs/lossy.md.
/// Packets.
const BLOCK: f64 = 100.0;
const BLOCKS: usize = 8;
/// More than a cycle of BBR's probes adds.
const AGAIN: f64 = 1.35;
const CALM_ROUNDS: u32 = 10;
