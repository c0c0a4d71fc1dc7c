//! Congestion controls by name: what a scenario chooses and a connection builds.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{
    AckSample, CongestionControl, EcnFeedback, EcnSample, LossSample, ReturnedSample, RtoSample,
    SentSample, Snapshot, Start, ance, bbr, cubic, dctcp, edctcp, encn, jersey, lossy, reno, vegas,
    westwood,
};
use crate::time::{Span, Time};
use crate::units::BitRate;

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

/// One line per algorithm: its documentation, its name, its variant with the options it takes, and its
/// state, which `new(&Start)` or `new(&Start, Options)` builds. Options are `Copy + Default`.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $name:literal $variant:ident $(($options:ident: $kind:ty))? => $state:ty;)+) => {
        /// Which congestion control a connection gets.
        #[derive(Clone, Debug)]
        pub enum Algorithm {
            $($(#[$doc])* $variant $(($kind))?,)+
            /// A user's own.
            Custom(Factory),
        }

        impl Algorithm {
            /// The names of the built-in ones.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Its name.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)+
                    Self::Custom(_) => "custom",
                }
            }

            /// Builds the controller of one connection.
            pub fn controller(&self, start: &Start) -> Controller {
                match self {
                    $(Self::$variant $(($options))? => Controller::$variant(
                        <$state>::new(start $(, *$options)?)
                    ),)+
                    Self::Custom(factory) => Controller::Custom((factory.0)(start)),
                }
            }
        }

        /// By name, with the default options.
        impl FromStr for Algorithm {
            type Err = UnknownAlgorithm;

            fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
                match text {
                    $($name => Ok(Self::$variant $((<$kind>::default()))?),)+
                    _ => Err(UnknownAlgorithm(text.to_owned())),
                }
            }
        }

        /// The congestion control of one connection; built-ins are dispatched without a pointer.
        pub enum Controller {
            $($(#[$doc])* $variant($state),)+
            /// A user's own.
            Custom(Box<dyn CongestionControl + Send>),
        }

        impl fmt::Debug for Controller {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant(cc) => cc.fmt(f),)+
                    Self::Custom(_) => f.write_str("Custom"),
                }
            }
        }

        macro_rules! each {
            ($controller:expr, $inner:ident => $call:expr) => {
                match $controller {
                    $(Controller::$variant($inner) => $call,)+
                    Controller::Custom($inner) => $call,
                }
            };
        }
    };
}

algorithms! {
    /// RFC 5681.
    "reno" Reno => reno::Reno;
    /// RFC 9438, with HyStart++ (RFC 9406).
    "cubic" Cubic(options: cubic::Options) => cubic::Cubic;
    /// Queue kept at a threshold by the sender's own estimate.
    "ance" Ance(options: ance::Options) => ance::Ance;
    /// Queue kept at a threshold by routers that mark the absence of congestion.
    "encn" Encn(options: encn::Options) => encn::Encn;
    /// Bandwidth estimated from ACKs, congestion warned of by routers.
    "jersey" Jersey(options: jersey::Options) => jersey::Jersey;
    /// RFC 8257.
    "dctcp" Dctcp(options: dctcp::Options) => dctcp::Dctcp;
    /// DCTCP with packets that a full switch hands back.
    "edctcp" Edctcp(options: edctcp::Options) => edctcp::Edctcp;
    /// A few segments kept in the queue, by round-trip times.
    "vegas" Vegas(options: vegas::Options) => vegas::Vegas;
    /// Westwood+: after a loss, what the path was measured to carry.
    "westwood" Westwood(options: westwood::Options) => westwood::Westwood;
    /// BBR version 1: a model of the path rather than losses.
    "bbr1" Bbr1 => bbr::v1::BbrV1;
    /// BBR version 3: bounded by loss.
    "bbr3" Bbr3 => bbr::v3::BbrV3;
    /// For links that lose without being full: rate from what was served, by delay beside its like.
    "lossy" Lossy => lossy::Lossy;
}

#[expect(clippy::derivable_impls, reason = "the table has no place for #[default]")]
impl Default for Algorithm {
    fn default() -> Self {
        Self::Reno
    }
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
