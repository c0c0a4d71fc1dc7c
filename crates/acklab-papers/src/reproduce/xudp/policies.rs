//! The same stream under the core's other ACK policies: what the timer did in 1997, any timer does that no
//! count of packets cuts short.

use acklab_core::ack::Profile;
use acklab_core::time::Span;

use super::experiment::Figures;
use super::runs::stream_log;
use acklab_lab::parameter::Settings;
use acklab_tcp::System;

/// The stream under one policy.
pub struct PolicyRow {
    /// The policy in words.
    pub name: &'static str,
    pub figures: Figures,
}

/// Runs them all, under the window's rules of the first day.
pub(super) fn run(settings: &Settings, seed: u64) -> Vec<PolicyRow> {
    let hold = Span::from_millis(100);
    let alone = |delay| Profile::delayed(u32::MAX, delay);
    let profiles = [
        ("100 ms after the first packet", alone(hold)),
        ("tick of 100 ms, free-running", Profile::tick(u32::MAX, hold, 1)),
        ("40 ms after the first packet", alone(Span::from_millis(40))),
        ("10 ms after the first packet", alone(Span::from_millis(10))),
        ("tick of 100 ms or every second packet", Profile::tick(2, hold, 1)),
        ("FreeBSD 12.1: 100 ms or every second packet", System::FreeBsd121.config().ack),
        ("Windows 7: 200 ms or every second packet", System::Windows7.config().ack),
        ("Linux", System::Linux.config().ack),
        ("every packet at once", Profile::EverySegment),
    ];
    profiles
        .into_iter()
        .map(|(name, profile)| PolicyRow {
            name,
            figures: stream_log(settings, &profile, seed).figures(),
        })
        .collect()
}
