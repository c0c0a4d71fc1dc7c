//! Everything of the thesis that is run.

use acklab_lab::parameter::Settings;
use acklab_lab::timing::{Stopwatch, Timing};

use super::policies::{self, PolicyRow};
use super::runs::{self, Run, TIMER};
use super::sensitivity::{self, Changed};
use super::today;

/// Everything that was run.
pub struct Reproduction {
    /// Seed of the timer's phase and of losses.
    pub seed: u64,
    pub settings: Settings,
    /// The stream of parcels: tables 8.1 and 8.2, and the two corners between them.
    pub stream: Vec<Run>,
    pub frames: Vec<Run>,
    /// Today's protocol on the same wire.
    pub today: Vec<Run>,
    /// The stream under other ACK policies.
    pub policies: Vec<PolicyRow>,
    /// The stream with one parameter changed.
    pub sensitivity: Vec<Changed>,
    pub timing: Timing,
}

impl Reproduction {
    /// Runs everything; `progress` is told what is being done.
    pub fn run(settings: Settings, seed: u64, mut progress: impl FnMut(&str)) -> Self {
        let watch = Stopwatch::start();
        progress("tables 8.1 and 8.2");
        let stream = runs::stream_runs(&settings, seed);
        progress("frames");
        let frames = runs::frame_runs(&settings, seed);
        progress("today's protocol");
        let today = today::run(&settings, seed);
        progress("other ACK policies");
        let policies = policies::run(&settings, seed);
        progress("sensitivity");
        let sensitivity = sensitivity::run(&settings, seed);
        Self { seed, settings, stream, frames, today, policies, sensitivity, timing: watch.read(0) }
    }

    /// The run of the stream called `name`.
    ///
    /// # Panics
    /// If there is no run of that name.
    pub fn stream_run(&self, name: &str) -> &Run {
        self.stream.iter().find(|run| run.name == name).expect("a run of that name")
    }

    /// The run of today's protocol called `name`.
    ///
    /// # Panics
    /// If there is no run of that name.
    pub fn today_run(&self, name: &str) -> &Run {
        self.today.iter().find(|run| run.name == name).expect("a run of that name")
    }

    /// How much faster run `name` was than that with the timer.
    pub fn factor(&self, name: &str) -> f64 {
        self.stream_run(name).figures.rate() / self.stream_run(TIMER).figures.rate()
    }
}
