//! The transport of the bench scenarios: Reno with the conventions that were set.

use acklab_core::ack;
use acklab_core::cc::reno::PerAck;
use acklab_core::cc::{Algorithm, Factory};
use acklab_tcp::{Config, InitialWindow, LossRecovery, Nagle, Stack};

use super::parameters::{Delack, Growth, Set};

/// Reno with the conventions that were set.
pub(super) fn config(set: &Set) -> Config {
    let defaults = Config::default();
    let mut config = Config {
        stack: set.stack,
        mss: set.packet as u16 - TCP_HEADERS,
        ack: match set.delack {
            Delack::Off => ack::Profile::EverySegment,
            Delack::On => ack::Profile::delayed(2, set.delack_timer),
            Delack::Linux => defaults.ack,
        },
        timestamps: set.timestamps.is_on(),
        congestion: match set.growth {
            Growth::Acks => Algorithm::Custom(Factory::new(|start| Box::new(PerAck::new(start)))),
            Growth::Bytes => Algorithm::Reno,
        },
        nagle: Nagle::Off,
        // As the peers have it: the receiver's window is no limit, and no segment is pushed.
        receive_tuning: false,
        push_bursts: false,
        ..defaults
    };
    config.window.initial = InitialWindow::Segments(set.iw);
    config.loss.recovery = match (set.sack.is_on(), set.stack) {
        (false, _) => set.recovery,
        (true, Stack::Stream) => LossRecovery::Sack,
        // Linux has no other with SACK.
        (true, Stack::Segments) => LossRecovery::Rack,
    };
    config.loss.limited_transmit = set.limited_transmit.is_on();
    config.rto.min = set.min_rto;
    config
}

/// Payload of a full segment, bytes.
pub(super) fn payload(set: &Set) -> u64 {
    let options = if set.timestamps.is_on() { TIMESTAMPS } else { 0 };
    u64::from(set.packet) - u64::from(TCP_HEADERS + options)
}

/// The timestamp option with its padding (RFC 7323 appendix A), bytes.
const TIMESTAMPS: u16 = 12;
/// IPv4 and TCP headers without options, bytes.
const TCP_HEADERS: u16 = 40;
