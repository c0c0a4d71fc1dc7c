//! ACK policies by name and parameter: what a scenario chooses and a connection builds.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::delayed::Delayed;
use super::every_segment::EverySegment;
use super::linux::{Linux, LinuxOptions};
use super::macos::MacOs;
use super::tick::Tick;
use super::{AckPolicy, DataSample, Decision, ReadSample};
use crate::time::{Span, Time};

/// Which policy a connection gets.
#[derive(Clone, Debug)]
pub enum Profile {
    /// Every segment at once.
    EverySegment,
    /// Every n-th segment, or a fixed time after the first unacknowledged one.
    Delayed {
        /// n.
        segments: u32,
        /// The time.
        delay: Span,
    },
    /// Every n-th segment, or a tick of a free-running clock.
    Tick {
        /// n.
        segments: u32,
        /// Time between ticks.
        period: Span,
        /// Which tick after the arrival; 1 is the next.
        ticks: u32,
    },
    /// Linux's state machine.
    Linux(LinuxOptions),
    /// macOS: PSH at once.
    MacOs {
        /// Delay of a segment without PSH.
        delay: Span,
        /// Segments per ACK in a stream.
        stretch: u32,
    },
    /// A user's own.
    Custom(Factory),
}

/// Builds a user's own policy for each connection.
#[derive(Clone)]
pub struct Factory(Arc<dyn Fn() -> Box<dyn AckPolicy + Send> + Send + Sync>);

impl Factory {
    /// A factory from a closure.
    pub fn new(build: impl Fn() -> Box<dyn AckPolicy + Send> + Send + Sync + 'static) -> Self {
        Self(Arc::new(build))
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Factory")
    }
}

impl Profile {
    /// FreeBSD up to 12.1: hz/10 (tcp_timer.h before r360010).
    pub const FREEBSD_12_1: Self = Self::Delayed { segments: 2, delay: Span::from_millis(100) };
    /// FreeBSD 12.2 and later (r360510): 40 ms.
    pub const FREEBSD_12_2: Self = Self::Delayed { segments: 2, delay: Span::from_millis(40) };
    /// Windows XP to 7 (KB 328890): 200 ms from the packet.
    pub const WINDOWS_7: Self = Self::Delayed { segments: 2, delay: Span::from_millis(200) };
    /// Windows with `TcpDelAckTicks` 2: two ticks of 100 ms.
    pub const WINDOWS_7_TICK: Self =
        Self::Tick { segments: 2, period: Span::from_millis(100), ticks: 2 };
    /// Windows 10 (the Internet template: `DelayedAckTimeout` 40, frequency 2).
    pub const WINDOWS_10: Self = Self::Delayed { segments: 2, delay: Span::from_millis(40) };
    /// QNX 7.0 and NetBSD: `TCP_DELACK_TICKS` = hz/5.
    pub const QNX_7_0: Self = Self::Delayed { segments: 2, delay: Span::from_millis(200) };
    /// 4.4BSD: the 200 ms fast timer.
    pub const BSD_4_4: Self = Self::Tick { segments: 2, period: Span::from_millis(200), ticks: 1 };
    /// macOS: 100 ms, eight segments in a stream.
    pub const MACOS: Self = Self::MacOs { delay: Span::from_millis(100), stretch: 8 };

    /// Builds the policy of one connection. `phase`, in [0, 1), places a free-running tick (or the
    /// jiffy grid) against the world's clock.
    pub fn policy(&self, phase: f64) -> Policy {
        let of = |period: Span| Span::from_nanos((period.as_nanos() as f64 * phase) as u64);
        match *self {
            Self::EverySegment => Policy::EverySegment(EverySegment),
            Self::Delayed { segments, delay } => Policy::Delayed(Delayed::new(segments, delay)),
            Self::Tick { segments, period, ticks } => {
                Policy::Tick(Tick::new(segments, period, ticks, of(period)))
            }
            Self::Linux(options) => {
                Policy::Linux(Linux::new(options, options.jiffy.map_or(Span::ZERO, of)))
            }
            Self::MacOs { delay, stretch } => Policy::MacOs(MacOs::new(delay, stretch)),
            Self::Custom(ref factory) => Policy::Custom((factory.0)()),
        }
    }
}

/// No profile of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownProfile(String);

impl fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown ACK policy \"{}\"; known are linux, freebsd-12.1, freebsd-12.2, windows-7, \
             windows-7-tick, windows-10, qnx-7.0, macos, 4.4bsd, every-segment, fixed-timer:40ms \
             and tick:200ms",
            self.0
        )
    }
}

impl std::error::Error for UnknownProfile {}

/// Parses a system's name, `every-segment`, `fixed-timer:DELAY` or `tick:PERIOD`.
impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        let unknown = || UnknownProfile(text.to_owned());
        if let Some(delay) = text.strip_prefix("fixed-timer:") {
            let delay = delay.parse().map_err(|_| unknown())?;
            return Ok(Self::Delayed { segments: 2, delay });
        }
        if let Some(period) = text.strip_prefix("tick:") {
            let period: Span = period.parse().map_err(|_| unknown())?;
            if period.is_zero() {
                return Err(unknown());
            }
            return Ok(Self::Tick { segments: 2, period, ticks: 1 });
        }
        Ok(match text {
            "linux" => Self::Linux(LinuxOptions::default()),
            "freebsd-12.1" => Self::FREEBSD_12_1,
            "freebsd-12.2" => Self::FREEBSD_12_2,
            "windows-7" => Self::WINDOWS_7,
            "windows-7-tick" => Self::WINDOWS_7_TICK,
            "windows-10" => Self::WINDOWS_10,
            "qnx-7.0" => Self::QNX_7_0,
            "macos" => Self::MACOS,
            "4.4bsd" => Self::BSD_4_4,
            "every-segment" => Self::EverySegment,
            _ => return Err(unknown()),
        })
    }
}

/// The policy of one connection; built-ins are dispatched without a pointer.
pub enum Policy {
    /// See [`EverySegment`].
    EverySegment(EverySegment),
    /// See [`Delayed`].
    Delayed(Delayed),
    /// See [`Tick`].
    Tick(Tick),
    /// See [`Linux`].
    Linux(Linux),
    /// See [`MacOs`].
    MacOs(MacOs),
    /// A user's own.
    Custom(Box<dyn AckPolicy + Send>),
}

macro_rules! each {
    ($policy:expr, $inner:ident => $call:expr) => {
        match $policy {
            Policy::EverySegment($inner) => $call,
            Policy::Delayed($inner) => $call,
            Policy::Tick($inner) => $call,
            Policy::Linux($inner) => $call,
            Policy::MacOs($inner) => $call,
            Policy::Custom($inner) => $call,
        }
    };
}

impl AckPolicy for Policy {
    fn on_data(&mut self, now: Time, sample: &DataSample) -> Decision {
        each!(self, policy => policy.on_data(now, sample))
    }

    fn on_disorder(&mut self, now: Time, window: u32) {
        each!(self, policy => policy.on_disorder(now, window));
    }

    fn on_read(&mut self, now: Time, sample: &ReadSample) -> Decision {
        each!(self, policy => policy.on_read(now, sample))
    }

    fn on_data_sent(&mut self, now: Time) {
        each!(self, policy => policy.on_data_sent(now));
    }

    fn on_ack_sent(&mut self, now: Time) {
        each!(self, policy => policy.on_ack_sent(now));
    }

    fn on_quickack(&mut self, now: Time, on: bool, always: bool) {
        each!(self, policy => policy.on_quickack(now, on, always));
    }

    fn handle_timeout(&mut self, now: Time, rto: Span) -> Decision {
        each!(self, policy => policy.handle_timeout(now, rto))
    }

    fn poll_timeout(&self) -> Option<Time> {
        each!(self, policy => policy.poll_timeout())
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EverySegment(_) => f.write_str("EverySegment"),
            Self::Delayed(policy) => policy.fmt(f),
            Self::Tick(policy) => policy.fmt(f),
            Self::Linux(policy) => policy.fmt(f),
            Self::MacOs(policy) => policy.fmt(f),
            Self::Custom(_) => f.write_str("Custom"),
        }
    }
}
