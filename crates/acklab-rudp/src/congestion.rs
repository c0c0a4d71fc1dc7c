//! Congestion control of one path (docs/rudp.md section 8): the core's [`Congestion`], fed by packets,
//! and the recovery periods of RFC 9002 section 7.3.2.

use super::config::Config;
use acklab_core::cc::{Controller, CoupledSample, EcnFeedback, LossSample, RtoSample, Start};
use acklab_core::congestion::{Acked, Congestion, Departure};
use acklab_core::delivery_rate::Stamp;
use acklab_core::packet::Ecn;
use acklab_core::time::{Span, Time};
use acklab_core::units::BitRate;

/// How much one batch may hold where nothing is paced, bytes.
const BATCH: u64 = 64 << 10;

/// The state of one path.
#[derive(Debug)]
pub(super) struct PathCongestion {
    congestion: Congestion,
    /// Losses of packets from this number on begin a new recovery.
    recovered_to: u64,
    /// A recovery is under way.
    recovering: bool,
    /// Until when pacing held data back when this path was last asked.
    paced: Option<Time>,
}

/// An ACK, as the path understands it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckNews {
    /// The largest number newly acknowledged.
    pub(super) largest: u64,
    /// The next number to leave.
    pub(super) next_number: u64,
    /// Packets that it newly tells to bear CE.
    pub(super) marked: u64,
    /// Bytes newly acknowledged and newly lost.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// A full packet, bytes.
    pub(super) mss: u64,
    /// Bytes on the way before it, and now.
    pub(super) before: u64,
    pub(super) in_flight: u64,
    pub(super) rtt: Option<Span>,
    pub(super) srtt: Option<Span>,
}

impl PathCongestion {
    pub(super) fn new(now: Time, control: Controller) -> Self {
        let congestion = Congestion::new(now, control);
        Self { congestion, recovered_to: 0, recovering: false, paced: None }
    }

    /// The path may lead elsewhere now; `next_number` leaves next.
    pub(super) fn restart(&mut self, control: Controller, next_number: u64) {
        self.congestion.restart(control);
        self.recovering = false;
        self.recovered_to = next_number;
    }

    pub(super) fn cwnd(&self) -> u64 {
        self.congestion.cwnd()
    }

    pub(super) fn ssthresh(&self) -> u64 {
        self.congestion.snapshot().ssthresh
    }

    pub(super) fn pacing_rate(&self) -> Option<BitRate> {
        self.congestion.pacing_rate()
    }

    /// How many bytes one batch may hold, so that it does not burst.
    pub(super) fn batch(&self, mss: u32) -> u64 {
        self.congestion.quantum(mss).unwrap_or(BATCH)
    }

    /// What the path carries in a round trip, bytes: the scheduler's window.
    pub(super) fn window(&self, srtt: Span) -> u64 {
        let cwnd = self.cwnd();
        self.pacing_rate().map_or(cwnd, |rate| {
            let bytes = rate.as_bps() as f64 / 8.0 * srtt.as_secs_f64();
            cwnd.min(bytes as u64)
        })
    }

    /// Nothing was asked for yet: nothing waits for pacing.
    pub(super) const fn forget_paced(&mut self) {
        self.paced = None;
    }

    /// With which mark packets say that they understand ECN.
    pub(super) fn codepoint(&self) -> Ecn {
        self.congestion.codepoint()
    }

    /// Whether the algorithm should hear of each packet.
    pub(super) fn wants_each_ack(&self) -> bool {
        self.congestion.wants_each_ack()
    }

    /// When pacing lets the next packet leave, if something waits for that.
    pub(super) const fn paced(&self) -> Option<Time> {
        self.paced
    }

    /// Whether window and pacing let a packet of `mss` bytes leave; `full`: there is no room to record it.
    pub(super) fn may_send(&mut self, now: Time, in_flight: u64, mss: u64, full: bool) -> bool {
        let blocked = full || !self.congestion.has_room(in_flight, mss);
        self.paced = if blocked { None } else { self.congestion.pace_at(now) };
        let held = blocked || self.paced.is_some();
        if held {
            self.congestion.on_held(now);
        }
        !held
    }

    /// Nothing waits to be sent here though, perhaps, something could be.
    pub(super) fn on_nothing_to_send(&mut self, in_flight: u64, mss: u64) {
        if self.paced.is_none() && in_flight + mss <= self.cwnd() {
            self.congestion.on_app_limited(in_flight);
        }
    }

    pub(super) fn stamp(&mut self, now: Time, bytes: u32, in_flight: u64) -> Option<Stamp> {
        self.congestion.stamp(now, u64::from(bytes), in_flight)
    }

    /// A packet that asks for an acknowledgment left.
    pub(super) fn on_sent(&mut self, now: Time, bytes: u32, in_flight: u64, mss: u64) {
        let departure = Departure { mss: mss as u32, ..Departure::new(bytes, in_flight) };
        self.congestion.on_sent(now, &departure);
    }

    pub(super) fn on_delivered(&mut self, stamp: Stamp) {
        self.congestion.on_delivered(stamp);
    }

    /// Packets up to `largest` were lost, with `in_flight` bytes on the way before that. Whether a
    /// recovery begins.
    pub(super) fn on_loss(
        &mut self,
        now: Time,
        largest: u64,
        next_number: u64,
        in_flight: u64,
    ) -> bool {
        let begins = largest >= self.recovered_to;
        if begins {
            self.recovered_to = next_number;
            self.recovering = true;
            self.congestion.on_loss(now, &LossSample { in_flight, ece: false });
        }
        begins
    }

    pub(super) fn on_ack(&mut self, now: Time, news: &AckNews) {
        let per_ack = self.congestion.ecn_feedback() == EcnFeedback::PerAck;
        let recovered = self.recovering && news.largest >= self.recovered_to;
        self.recovering &= !recovered;
        let acked = Acked {
            lost: news.lost,
            ece: news.marked > 0 && per_ack,
            marked: news.marked.saturating_mul(news.mss).min(news.delivered),
            in_flight: news.before,
            rtt: news.rtt,
            srtt: news.srtt,
            in_fast_recovery: self.recovering,
            recovered,
            ..Acked::of(news.delivered)
        };
        self.congestion.on_ack(now, &acked);
        if news.marked > 0 && !per_ack && news.largest >= self.recovered_to {
            self.recovered_to = news.next_number;
            self.congestion.on_ecn(now, news.in_flight);
        }
    }

    /// What the path is of its connection has changed.
    pub(super) fn on_coupled(&mut self, sample: &CoupledSample) {
        self.congestion.on_coupled(sample);
    }

    /// From now on the coins are those of path `id` of a connection whose seed is that of `config`.
    pub(super) fn reseed(&mut self, config: &Config, id: u8) {
        self.congestion.reseed(seed_of(config, id));
    }

    /// Congestion is persistent.
    pub(super) fn on_persistent(&mut self, now: Time, in_flight: u64) {
        let sample = RtoSample { in_flight, again: false, recovering: self.recovering };
        self.congestion.on_rto(now, &sample, 0);
    }
}

/// The congestion control of path `id`, whose full datagram has `mss` bytes.
pub(super) fn controller(config: &Config, id: u8, mss: u64) -> Controller {
    config.algorithm.controller(&Start {
        mss: mss as u32,
        initial_window: u64::from(config.initial_window) * mss,
        initial_ssthresh: u64::MAX,
        seed: seed_of(config, id),
    })
}

fn seed_of(config: &Config, id: u8) -> u64 {
    config.seed ^ (u64::from(id) << 56)
}
