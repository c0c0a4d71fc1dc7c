//! What each open parameter decides: the stream again with one of them changed.

use std::sync::atomic::{AtomicBool, Ordering};

use acklab_core::ack::Profile;

use super::experiment::{self, Figures};
use super::runs::stream_log;
use acklab_lab::parameter::Settings;

pub struct Changed {
    /// `name=value`; empty for the defaults.
    pub change: String,
    pub timer: Figures,
    /// Without it.
    pub removed: Figures,
}

impl Changed {
    /// How much faster without the timer.
    pub fn factor(&self) -> f64 {
        self.removed.rate() / self.timer.rate()
    }
}

/// Runs the stream with each of [`CHANGES`] on top of `settings`, until `ended` is set.
pub fn run(settings: &Settings, seed: u64, ended: &AtomicBool) -> Vec<Changed> {
    std::iter::once("")
        .chain(CHANGES.split(", "))
        .take_while(|_| !ended.load(Ordering::Relaxed))
        .map(|change| {
            let mut changed = settings.clone();
            for pair in change.split_whitespace() {
                changed.set_pair(pair).expect("the changes are settings");
            }
            let figures = |profile| stream_log(&changed, profile, seed).figures();
            Changed {
                change: change.to_owned(),
                timer: figures(&experiment::timer(&changed)),
                removed: figures(&Profile::EverySegment),
            }
        })
        .collect()
}

/// Many parcels under way.
pub(super) const MANY_AHEAD: &str = "parcels_ahead=64";

/// One or two steps from each default.
const CHANGES: &str = "\
    ack_timer=50ms, ack_timer=200ms, timer=tick, exchange=1, exchange=2, exchange=5, exchange=7, \
    parcels_ahead=2, parcels_ahead=4, parcels_ahead=64, restart=no, restart=no window_most=11, \
    window_initial=2, window_initial=4, window_most=8, packet=488, host=0, host=475us, \
    host=1900us, order=read-first, rto_least=0, rto_least=0 rto_deviations=2, rto_least=1s, \
    karn=no, buffer=8, loss=0.001, loss=0.01, delay=1ms";
