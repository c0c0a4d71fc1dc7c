//! Everything of the thesis that is run.

use acklab_lab::parameter::Settings;
use acklab_lab::timing::{Stopwatch, Timing};

use super::policies::{self, PolicyRow};
use super::runs::{self, Run, TIMER};
use super::sensitivity::{self, Changed};
use super::{tables, today};
use crate::reproduce::{Course, Stop};

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
    /// Runs everything.
    pub fn run(settings: Settings, seed: u64, course: &mut Course<'_>) -> Result<Self, Stop> {
        let watch = Stopwatch::start();
        let logs = |runs: &Vec<Run>| vec![tables::logs(runs), tables::today(runs)];
        let stream =
            course.part("Tables 8.1 and 8.2", |_| runs::stream_runs(&settings, seed), logs)?;
        let frames = course.part("Frames", |_| runs::frame_runs(&settings, seed), logs)?;
        let today = course.part("Today's protocol", |_| today::run(&settings, seed), logs)?;
        let policies = course.part(
            "Other ACK policies",
            |_| policies::run(&settings, seed),
            |rows| vec![tables::policy_logs(rows), tables::policies(rows)],
        )?;
        let sensitivity = course.part(
            "What each open parameter decides",
            |ended| sensitivity::run(&settings, seed, ended),
            |rows| vec![tables::change_logs(rows), tables::changes(rows)],
        )?;
        let timing = watch.read(0);
        Ok(Self { seed, settings, stream, frames, today, policies, sensitivity, timing })
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
