//! CUBIC, whose window grows along a cubic curve around the window of the last loss: as RFC 9438 has it
//! ([`Rfc9438`]) and as Linux has it ([`Linux`]), whose users it is mostly.
//!
//! Linux counts windows in whole segments and computes their growth each 32 ms at most; slow start ends at once when it
//! is found to fill the path (HyStart, `cc/ack_train.rs`) and is watched anew after a time-out; the Reno-friendly
//! slope stays at 0.53 above the old window; without an old window it rises by 5 % a round trip at least; what is
//! reduced is the window, whatever is on the way (`tcp_cubic.c`).

mod growth;
mod linux;
mod rfc9438;

pub use growth::Growth;
pub use linux::Linux;
pub use rfc9438::Rfc9438;

use super::{
    AckSample, CongestionControl, CoupledSample, EcnSample, LossSample, RtoSample, SentSample,
    Snapshot, Start,
};
use crate::time::Time;

crate::options! {
    /// What may be switched.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Options {
        /// Slow start may end before the queue overflows, by HyStart or, as in the RFC, by HyStart++ (RFC 9406).
        hystart: bool = "true",
        /// Section 4.7: a flow whose window shrinks makes room for newcomers.
        fast_convergence: bool = "true",
        /// Section 4.3: never slower than Reno would be.
        reno_friendly: bool = "true",
        /// As Linux has it; else as RFC 9438 and RFC 9406 have it.
        linux: bool = "true",
    }
}

/// Either of the two.
#[derive(Clone, Copy, Debug)]
pub enum Cubic {
    /// Of Linux.
    Linux(Linux),
    /// Of the RFC.
    Rfc9438(Rfc9438),
}

impl Cubic {
    /// A fresh connection.
    pub fn new(start: &Start, options: Options) -> Self {
        if options.linux {
            Self::Linux(Linux::new(start, options))
        } else {
            Self::Rfc9438(Rfc9438::new(start, options))
        }
    }
}

/// Leaves a verb to whichever it is.
macro_rules! each {
    ($self:ident, $cubic:ident => $call:expr) => {
        match $self {
            Self::Linux($cubic) => $call,
            Self::Rfc9438($cubic) => $call,
        }
    };
}

impl CongestionControl for Cubic {
    fn on_sent(&mut self, now: Time, sample: &SentSample) {
        each!(self, cubic => cubic.on_sent(now, sample));
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        each!(self, cubic => cubic.on_ack(now, sample));
    }

    fn on_loss(&mut self, now: Time, sample: &LossSample) {
        each!(self, cubic => cubic.on_loss(now, sample));
    }

    fn on_ecn(&mut self, now: Time, sample: &EcnSample) {
        each!(self, cubic => cubic.on_ecn(now, sample));
    }

    fn on_rto(&mut self, now: Time, sample: &RtoSample) {
        each!(self, cubic => cubic.on_rto(now, sample));
    }

    fn on_idle(&mut self, now: Time) {
        each!(self, cubic => cubic.on_idle(now));
    }

    fn on_coupled(&mut self, sample: &CoupledSample) {
        each!(self, cubic => cubic.on_coupled(sample));
    }

    fn cwnd(&self) -> u64 {
        each!(self, cubic => cubic.cwnd())
    }

    fn snapshot(&self) -> Snapshot {
        each!(self, cubic => cubic.snapshot())
    }
}
