//! Congestion controls by name: what a scenario chooses and a connection builds.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::reno::Reno;
use super::{
    AckSample, CongestionControl, EcnFeedback, EcnSample, LossSample, ReturnedSample, RtoSample,
    SentSample, Snapshot, Start,
};
use crate::time::{Span, Time};
use crate::units::BitRate;

/// Which congestion control a connection gets.
#[derive(Clone, Debug, Default)]
pub enum Algorithm {
    /// RFC 5681.
    #[default]
    Reno,
    /// A user's own.
    Custom(Factory),
}

type Build = dyn Fn(&Start) -> Box<dyn CongestionControl + Send> + Send + Sync;

/// Builds a user's own congestion control for each connection.
#[derive(Clone)]
pub struct Factory(Arc<Build>);

impl Factory {
    /// A factory from a closure.
    pub fn new(
        build: impl Fn(&Start) -> Box<dyn CongestionControl + Send> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(build))
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Factory")
    }
}

impl Algorithm {
    /// The names of the built-in ones.
    pub const NAMES: &'static [&'static str] = &["reno"];

    /// Builds the controller of one connection.
    pub fn controller(&self, start: &Start) -> Controller {
        match self {
            Self::Reno => Controller::Reno(Reno::new(start)),
            Self::Custom(factory) => Controller::Custom((factory.0)(start)),
        }
    }
}

/// No algorithm of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm(String);

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown congestion control \"{}\"; known: {}",
            self.0,
            Algorithm::NAMES.join(", ")
        )
    }
}

impl std::error::Error for UnknownAlgorithm {}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
        match text {
            "reno" => Ok(Self::Reno),
            _ => Err(UnknownAlgorithm(text.to_owned())),
        }
    }
}

/// The congestion control of one connection; built-ins are dispatched without a pointer.
pub enum Controller {
    /// See [`Reno`].
    Reno(Reno),
    /// A user's own.
    Custom(Box<dyn CongestionControl + Send>),
}

macro_rules! each {
    ($controller:expr, $inner:ident => $call:expr) => {
        match $controller {
            Controller::Reno($inner) => $call,
            Controller::Custom($inner) => $call,
        }
    };
}

impl CongestionControl for Controller {
    fn on_sent(&mut self, now: Time, sample: &SentSample) {
        each!(self, cc => cc.on_sent(now, sample));
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        each!(self, cc => cc.on_ack(now, sample));
    }

    fn on_loss(&mut self, now: Time, sample: &LossSample) {
        each!(self, cc => cc.on_loss(now, sample));
    }

    fn on_recovered(&mut self, now: Time) {
        each!(self, cc => cc.on_recovered(now));
    }

    fn on_ecn(&mut self, now: Time, sample: &EcnSample) {
        each!(self, cc => cc.on_ecn(now, sample));
    }

    fn on_rto(&mut self, now: Time, sample: &RtoSample) {
        each!(self, cc => cc.on_rto(now, sample));
    }

    fn on_idle(&mut self, now: Time) {
        each!(self, cc => cc.on_idle(now));
    }

    fn on_returned(&mut self, now: Time, sample: &ReturnedSample) -> Span {
        each!(self, cc => cc.on_returned(now, sample))
    }

    fn ecn_feedback(&self) -> EcnFeedback {
        each!(self, cc => cc.ecn_feedback())
    }

    fn wants_rate(&self) -> bool {
        each!(self, cc => cc.wants_rate())
    }

    fn cwnd(&self) -> u64 {
        each!(self, cc => cc.cwnd())
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        each!(self, cc => cc.pacing_rate())
    }

    fn snapshot(&self) -> Snapshot {
        each!(self, cc => cc.snapshot())
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reno(reno) => reno.fmt(f),
            Self::Custom(_) => f.write_str("Custom"),
        }
    }
}
