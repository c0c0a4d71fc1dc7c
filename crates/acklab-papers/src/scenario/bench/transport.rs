//! The transport of the bench scenarios: Reno with the conventions that were set.

use acklab_core::ack;
use acklab_core::cc::reno::Reno;
use acklab_core::cc::{
    AckSample, Algorithm, CongestionControl, EcnSample, Factory, LossSample, RtoSample, Snapshot,
};
use acklab_core::time::Time;
use acklab_tcp::{Config, InitialWindow, LossRecovery, Nagle};

use acklab_lab::parameter::Settings;

/// Reno with the conventions that were set.
pub(super) fn config(settings: &Settings) -> Config {
    let defaults = Config::default();
    let every_second = ack::Profile::Delayed { segments: 2, delay: settings.span("delack_timer") };
    let mut config = Config {
        mss: settings.count("packet") as u16 - TCP_HEADERS,
        ack: match settings.choice("delack") {
            "off" => ack::Profile::EverySegment,
            "on" => every_second,
            _ => defaults.ack,
        },
        timestamps: settings.choice("timestamps") == "on",
        congestion: match settings.choice("growth") {
            "acks" => Algorithm::Custom(Factory::new(|start| {
                Box::new(PerAck { reno: Reno::new(start), mss: u64::from(start.mss) })
            })),
            _ => Algorithm::Reno,
        },
        nagle: Nagle::Off,
        ..defaults
    };
    config.window.initial = InitialWindow::Segments(settings.count("iw") as u32);
    config.loss.recovery = match (settings.choice("sack"), settings.choice("recovery")) {
        ("on", _) => LossRecovery::Sack,
        (_, "reno") => LossRecovery::Reno,
        _ => LossRecovery::NewReno,
    };
    config.loss.limited_transmit = settings.choice("limited_transmit") == "on";
    config.rto.min = settings.span("min_rto");
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
