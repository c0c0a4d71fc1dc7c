//! The thesis's runs: the stream of section 8.1 in its four corners, and the frames of 8.5 and 8.6.

use acklab_core::ack::Profile;
use acklab_core::time::Span;
use acklab_lab::parameter::Settings;

use super::experiment::{self, Figures, Log};
use super::paper::{self, Printed};
use super::parameters::Set;
use super::protocol::application::Application;

pub struct Run {
    /// Its name in tables and legends.
    pub name: &'static str,
    /// The thesis's table of it, if it has one.
    pub printed: Option<Printed>,
    /// What we measured.
    pub figures: Figures,
    /// Parcels that reached the receiver whole.
    pub received: u64,
    /// Parcels in all.
    pub parcels: u64,
    pub log: Log,
}

impl Run {
    /// A run of `parcels` parcels by its log.
    pub(super) fn new(name: &'static str, parcels: u64, log: Log) -> Self {
        let received = log.received.len() as u64;
        Self { name, printed: None, figures: log.figures(), received, parcels, log }
    }
}

/// With the timer, under the window's rules of the first day.
pub const TIMER: &str = "with the timer";
/// The same without the timer.
pub const REMOVED: &str = "timer removed";
/// Without the timer and with the window's rules of the second day.
pub const TWEAKED: &str = "timer removed, window tweaked";
/// The corner that was not measured then.
pub const TIMER_TWEAKED: &str = "with the timer, window tweaked";

/// The program of section 8.1.
pub(super) fn stream(settings: &Settings) -> Application {
    let Set { parcel: bytes, parcels, .. } = settings.read();
    Application::Stream { bytes, parcels }
}

/// Frames as in section 8.5, with the time after which they are obsolete.
pub(super) fn frames(per_second: u64, parcels: u64) -> Application {
    let life = Span::from_secs(paper::FRAME_LIFE_S);
    Application::Frames { bytes: paper::FRAME_BYTES, per_second, parcels, life }
}

/// The stream's log under one ACK policy.
pub(super) fn stream_log(settings: &Settings, policy: &Profile, seed: u64) -> Log {
    experiment::run(settings, policy, stream(settings), settings.read::<Set>().cut, seed)
}

/// Tables 8.1 and 8.2, and the two corners between them.
pub(super) fn stream_runs(settings: &Settings, seed: u64) -> Vec<Run> {
    let timer = experiment::timer(settings);
    let none = Profile::EverySegment;
    let second_day = tweaked(settings);
    [
        (TIMER, settings, &timer, Some(paper::TABLE_8_1)),
        (REMOVED, settings, &none, None),
        (TWEAKED, &second_day, &none, Some(paper::TABLE_8_2)),
        (TIMER_TWEAKED, &second_day, &timer, None),
    ]
    .map(|(name, settings, policy, printed)| {
        let log = stream_log(settings, policy, seed);
        Run { printed, ..Run::new(name, settings.read::<Set>().parcels, log) }
    })
    .into()
}

/// Tables 8.5 to 8.9, and the frames on computers that take no time.
pub(super) fn frame_runs(settings: &Settings, seed: u64) -> Vec<Run> {
    let march = tweaked(settings);
    let host = |time: &str| {
        let mut changed = march.clone();
        changed.set("host", time).expect("times as this one prints them");
        changed
    };
    let loaded = host(&settings.read::<Set>().loaded_host.to_string());
    let idle = host("0");
    [
        ("10 frames a second", &march, 10, 291, Some(paper::TABLE_8_5)),
        ("20 frames a second", &march, 20, 581, Some(paper::TABLE_8_7)),
        ("20 frames a second, loaded", &loaded, 20, 581, Some(paper::TABLE_8_9)),
        ("20 frames a second, host=0", &idle, 20, 581, None),
    ]
    .map(|(name, settings, per_second, parcels, printed)| {
        let policy = Profile::EverySegment;
        let application = frames(per_second, parcels);
        let log = experiment::run(settings, &policy, application, FRAMES_CUT, seed);
        Run { printed, ..Run::new(name, parcels, log) }
    })
    .into()
}

/// The settings under the window's rules of the second day.
fn tweaked(settings: &Settings) -> Settings {
    let mut tweaked = settings.clone();
    let most = settings.read::<Set>().tweaked_window.to_string();
    for (name, value) in [("restart", "no"), ("window_most", most.as_str())] {
        tweaked.set(name, value).expect("both limits are the same");
    }
    tweaked
}

/// Long past the last frame.
pub(super) const FRAMES_CUT: Span = Span::from_secs(300);
