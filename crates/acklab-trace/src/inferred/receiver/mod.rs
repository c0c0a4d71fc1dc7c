//! How the receiver times its acknowledgments, one hypothesis per file: a clock that runs on its own
//! ([`tick`], or in step with the holds it causes, [`lockstep`]), a timer that starts when data arrives
//! ([`fixed`]), one that follows the traffic ([`adaptive`]), too little to say ([`few`]).
//!
//! Which system that is: see [`profiles`]; where several fit, all are listed. Not modelled: stretch
//! ACKs of receive offload, which show in segments per ACK.

mod adaptive;
mod few;
mod fixed;
mod late_acks;
mod lockstep;
mod policy;
mod profiles;
mod tick;
mod timer;

pub(crate) use policy::Receiver;
pub use policy::{PolicyKind, ReceiverPolicy};
pub(crate) use timer::Timer;

use self::late_acks::LateAcks;
use super::RoundTrips;
use super::replay::Replay;

/// What the late ACKs of a direction show of their sender.
pub(super) fn infer(replay: &Replay, trips: &RoundTrips) -> Receiver {
    explain(&LateAcks::of(replay, trips), trips)
}

fn explain(acks: &LateAcks, trips: &RoundTrips) -> Receiver {
    if acks.delays.len() < few::EVENTS_MIN {
        return few::of(acks, trips);
    }
    tick::find(acks)
        .or_else(|| lockstep::find(acks))
        .or_else(|| fixed::find(acks, trips))
        .unwrap_or_else(|| adaptive::of(acks, trips))
}

#[cfg(test)]
mod tests;
