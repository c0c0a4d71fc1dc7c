//! The transport of the bench scenarios: Reno with the conventions that were set.

use acklab_core::ack;
use acklab_core::cc::reno::Reno;
use acklab_core::cc::{
    AckSample, Algorithm, CongestionControl, EcnSample, Factory, LossSample, RtoSample, Snapshot,
};
use acklab_core::time::Time;
use acklab_tcp::{Config, InitialWindow, LossRecovery, Nagle};

use super::parameters::{Delack, Growth, Set};

/// Reno with the conventions that were set.
pub(super) fn config(set: &Set) -> Config {
    let defaults = Config::default();
    let mut config = Config {
        mss: set.packet as u16 - TCP_HEADERS,
        ack: match set.delack {
            Delack::Off => ack::Profile::EverySegment,
            Delack::On => ack::Profile::delayed(2, set.delack_timer),
            Delack::Linux => defaults.ack,
        },
        timestamps: set.timestamps.is_on(),
        congestion: match set.growth {
            Growth::Acks => Algorithm::Custom(Factory::new(|start| {
                Box::new(PerAck { reno: Reno::new(start), mss: u64::from(start.mss) })
            })),
            Growth::Bytes => Algorithm::Reno,
        },
        nagle: Nagle::Off,
        ..defaults
    };
    config.window.initial = InitialWindow::Segments(set.iw);
    config.loss.recovery = if set.sack.is_on() { LossRecovery::Sack } else { set.recovery };
    config.loss.limited_transmit = set.limited_transmit.is_on();
    config.rto.min = set.min_rto;
    config
}

/// Reno whose window grows by ACKs: one that acknowledges two segments counts as one that
/// acknowledges one (RFC 5681 equation 3).
struct PerAck {
    reno: Reno,
    mss: u64,
}

impl CongestionControl for PerAck {
    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        let acked = sample.acked.min(self.mss);
        self.reno.on_ack(now, &AckSample { acked, ..*sample });
    }

    fn on_loss(&mut self, now: Time, sample: &LossSample) {
        self.reno.on_loss(now, sample);
    }

    fn on_ecn(&mut self, now: Time, sample: &EcnSample) {
        self.reno.on_ecn(now, sample);
    }

    fn on_rto(&mut self, now: Time, sample: &RtoSample) {
        self.reno.on_rto(now, sample);
    }

    fn on_idle(&mut self, now: Time) {
        self.reno.on_idle(now);
    }

    fn cwnd(&self) -> u64 {
        self.reno.cwnd()
    }

    fn snapshot(&self) -> Snapshot {
        self.reno.snapshot()
    }
}

/// IPv4 and TCP headers without options, bytes.
const TCP_HEADERS: u16 = 40;
