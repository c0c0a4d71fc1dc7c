//! Hosts by name: the TCP defaults of a system, with what a scenario changes about them.

use acklab_core::ack::Profile;
use acklab_core::ack::linux::LinuxOptions;
use acklab_core::time::Span;
use acklab_tcp::{Config, Nagle, System};

/// Systems whose whole TCP is imitated; see `acklab_tcp::System`.
pub(super) const SENDERS: &[&str] = &[
    "linux",
    "freebsd-12.1",
    "freebsd-12.2",
    "windows-7",
    "windows-7-tick",
    "windows-10",
    "qnx-7.0",
    "macos",
];

/// The same, and two receivers that no system is but that bound them all.
pub(super) const RECEIVERS: &[&str] = &[
    "linux",
    "freebsd-12.1",
    "freebsd-12.2",
    "windows-7",
    "windows-7-tick",
    "windows-10",
    "qnx-7.0",
    "macos",
    "every-segment",
    "fixed-timer",
];

/// Values of a `nagle` parameter.
pub(super) const NAGLE: &[&str] = &["on", "off", "classic", "bsd", "minshall"];

/// A sending host's TCP.
pub(super) fn sender(system: &str, nagle: &str) -> Config {
    let mut config = Config::for_system(named(system));
    match nagle {
        "off" => config.nagle = Nagle::Off,
        "classic" => config.nagle = Nagle::Classic,
        "bsd" => config.nagle = Nagle::Bsd,
        "minshall" => config.nagle = Nagle::Minshall,
        _ => {}
    }
    config
}

/// A receiving host's TCP. `timer` is the delay of `fixed-timer`, `jiffy` the grid of Linux's
/// timers (zero: none), `phase` in [0, 1) places a free-running tick or that grid.
pub(super) fn receiver(system: &str, timer: Span, jiffy: Span, phase: f64) -> Config {
    let mut config = match system {
        "every-segment" => Config { ack: Profile::EverySegment, ..Config::default() },
        "fixed-timer" => {
            Config { ack: Profile::Delayed { segments: 2, delay: timer }, ..Config::default() }
        }
        _ => Config::for_system(named(system)),
    };
    if let (Profile::Linux(options), false) = (&config.ack, jiffy.is_zero()) {
        config.ack = Profile::Linux(LinuxOptions { jiffy: Some(jiffy), ..*options });
    }
    config.ack_phase = phase;
    config
}

/// How long a receiver delays the ACK of a lone small segment that its application reads at once,
/// where that is always the same time.
pub(super) fn constant_delay(system: &str, timer: Span) -> Option<Span> {
    match system {
        // Linux acknowledges on reading and macOS on PSH.
        "every-segment" | "linux" | "macos" => Some(Span::ZERO),
        "fixed-timer" => Some(timer),
        _ => match Config::for_system(named(system)).ack {
            Profile::Delayed { delay, .. } => Some(delay),
            _ => None,
        },
    }
}

fn named(system: &str) -> System {
    system.parse().unwrap_or_else(|error| unreachable!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_of_the_core_can_be_chosen() {
        let names: Vec<_> = System::ALL.iter().map(|(_, name)| *name).collect();
        assert_eq!(SENDERS, names);
        assert_eq!(&RECEIVERS[..names.len()], names);
    }
}
