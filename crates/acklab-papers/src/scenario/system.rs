//! Hosts by name: the TCP defaults of a system, with what a scenario changes about them.

use acklab_core::ack::{Profile, delayed, linux};
use acklab_core::options::{Conflict, Kind, Typed, Value, Word, joined};
use acklab_core::time::Span;
use acklab_lab::parameter::{SetError, Settings};
use acklab_sim::segments;
use acklab_tcp::{Config, Nagle, System};

/// A receiving host, or one of two that none is but that bound them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiver {
    Of(System),
    EverySegment,
    FixedTimer,
}

const BOUNDS: [&str; 2] = ["every-segment", "fixed-timer"];
const RECEIVERS: [&str; System::NAMES.len() + 2] = joined("", &[System::NAMES, &BOUNDS]);

impl Typed for Receiver {
    const KIND: Kind = Kind::Choice(&RECEIVERS);

    fn from_value(value: Value) -> Option<Self> {
        let bound = BOUNDS.iter().position(|bound| value == Value::Choice(bound));
        match bound {
            Some(0) => Some(Self::EverySegment),
            Some(_) => Some(Self::FixedTimer),
            None => System::from_value(value).map(Self::Of),
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Of(one) => one.to_value(),
            Self::EverySegment => Value::Choice(BOUNDS[0]),
            Self::FixedTimer => Value::Choice(BOUNDS[1]),
        }
    }
}

acklab_core::words! {
    /// Nagle's algorithm at a sender.
    pub(super) enum NagleChoice {
        /// The system's own.
        On = "on",
        Off = "off",
        Classic = "classic",
        Bsd = "bsd",
        Minshall = "minshall",
    }
}

/// The numbers of `fixed-timer`.
pub(super) const fn fixed(segments: u32, delay: Span, quick: u32) -> delayed::Options {
    delayed::Options { segments, delay, quick, push: false }
}

/// A sending host's TCP.
pub(super) fn sender(one: System, nagle: NagleChoice) -> Config {
    let own = one.config();
    let nagle = match nagle {
        NagleChoice::On => own.nagle,
        NagleChoice::Off => Nagle::Off,
        NagleChoice::Classic => Nagle::Classic,
        NagleChoice::Bsd => Nagle::Bsd,
        NagleChoice::Minshall => Nagle::Minshall,
    };
    Config { nagle, ..own }
}

/// Refuses what the host of `sender` cannot be told.
pub(super) fn check(settings: &Settings, sender: &Config) -> Result<(), SetError> {
    segments::check(sender)
        .map_err(|Conflict { name, reason }| settings.refuse("sender", format!("{name}: {reason}")))
}

impl Receiver {
    /// A receiving host's TCP. `fixed` are the numbers of `fixed-timer`, `jiffy` the grid of Linux's
    /// timers (zero: none), `phase` in [0, 1) places a free-running tick or that grid.
    pub(super) fn config(self, fixed: delayed::Options, jiffy: Span, phase: f64) -> Config {
        let mut config = match self {
            Self::Of(one) => one.config(),
            Self::EverySegment => Config { ack: Profile::EverySegment, ..Config::default() },
            Self::FixedTimer => Config { ack: Profile::Delayed(fixed), ..Config::default() },
        };
        if let (Profile::Linux(options), false) = (&config.ack, jiffy.is_zero()) {
            config.ack = Profile::Linux(linux::Options { jiffy: Some(jiffy), ..*options });
        }
        Config { ack_phase: phase, ..config }
    }

    /// How long it delays the ACK of a lone small segment that its application reads at once, where that
    /// is always the same time.
    pub(super) fn constant_delay(self, fixed: delayed::Options) -> Option<Span> {
        match self.config(fixed, Span::ZERO, 0.0).ack {
            // Linux acknowledges on reading and macOS on PSH.
            Profile::EverySegment | Profile::Linux(_) | Profile::MacOs(_) => Some(Span::ZERO),
            // The law is of all messages; of a few that are acknowledged at once it has nothing to say.
            Profile::Delayed(options) if options.quick > 0 => None,
            Profile::Delayed(options) if options.segments == 1 => Some(Span::ZERO),
            Profile::Delayed(options) => Some(options.delay),
            _ => None,
        }
    }
}
