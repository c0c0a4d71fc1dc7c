//! Andrews, "XUDP: A Real-Time Multimedia Networking Protocol" (Worcester Polytechnic Institute, 1997),
//! run again: tables 8.1 and 8.2 with their graphs, and the frame experiments 8.5 and 8.6.
//!
//! The thesis names the 100 ms acknowledgment timer as the culprit of table 8.1, but between its two runs
//! it also changed the window. So both are run with and without either.

pub mod experiment;
mod page;
pub mod paper;
pub mod parameters;
mod policies;
pub mod protocol;
mod sensitivity;
mod tables;
pub mod today;

use acklab_core::ack::Profile;
use acklab_core::time::Span;
use serde_json::{Value, json};

use acklab_lab::parameter::Settings;
use acklab_lab::timing::{Stopwatch, Timing};
use experiment::{Figures, Log};
use paper::Printed;
use parameters::Set;
use protocol::application::Application;

pub use page::html;
pub use policies::PolicyRow;
pub use sensitivity::{Changed, markdown};

/// The JSON's schema name.
pub const SCHEMA: &str = "acklab.reproduce/1";

/// One run.
pub struct Run {
    /// Its name in tables and legends.
    pub name: &'static str,
    /// The thesis's table of it, if it has one.
    pub printed: Option<Printed>,
    /// What we measured.
    pub figures: Figures,
    /// Parcels that reached the receiver whole, and parcels in all.
    pub parcels: (u64, u64),
    /// The log.
    pub log: Log,
}

/// Everything that was run.
pub struct Reproduction {
    /// Seed of the timer's phase and of losses.
    pub seed: u64,
    /// What was set.
    pub settings: Settings,
    /// The stream of parcels: tables 8.1 and 8.2, and the two corners between them.
    pub stream: Vec<Run>,
    /// The frames.
    pub frames: Vec<Run>,
    /// Today's protocol on the same wire.
    pub today: Vec<Run>,
    /// The stream under other ACK policies.
    pub policies: Vec<PolicyRow>,
    /// The stream with one parameter changed.
    pub sensitivity: Vec<Changed>,
    /// What it cost.
    pub timing: Timing,
}

/// With the timer, under the window's rules of the first day.
pub const TIMER: &str = "with the timer";
/// The same without the timer.
pub const REMOVED: &str = "timer removed";
/// Without the timer and with the window's rules of the second day.
pub const TWEAKED: &str = "timer removed, window tweaked";
/// The corner that nobody measured.
pub const TIMER_TWEAKED: &str = "with the timer, window tweaked";

impl Reproduction {
    /// Runs everything; `progress` is told what is being done.
    pub fn run(settings: Settings, seed: u64, mut progress: impl FnMut(&str)) -> Self {
        let watch = Stopwatch::start();
        progress("tables 8.1 and 8.2");
        let stream = stream_runs(&settings, seed);
        progress("frames");
        let frames = frame_runs(&settings, seed);
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

    /// The result as JSON.
    pub fn to_json(&self) -> Value {
        let settings: serde_json::Map<String, Value> = self
            .settings
            .values()
            .map(|(name, value)| (name.to_owned(), json!(value.to_string())))
            .collect();
        json!({
            "schema": SCHEMA,
            "paper": "xudp",
            "seed": self.seed,
            "parameters": settings,
            "stream": self.stream.iter().map(Run::to_json).collect::<Value>(),
            "factor": {
                "paper": paper::FACTOR,
                "timer_removed": self.factor(REMOVED),
                "timer_removed_window_tweaked": self.factor(TWEAKED),
            },
            "today": self.today.iter().map(Run::to_json).collect::<Value>(),
            "frames": self.frames.iter().map(Run::to_json).collect::<Value>(),
            "policies": self.policies.iter().map(PolicyRow::to_json).collect::<Value>(),
            "sensitivity": self.sensitivity.iter().map(Changed::to_json).collect::<Value>(),
            "timing": self.timing.to_json(),
        })
    }
}

impl Run {
    fn to_json(&self) -> Value {
        let mut object = figures_json(&self.figures);
        object["run"] = json!(self.name);
        object["paper"] = json!(self.printed);
        object["parcels_received"] = json!(self.parcels.0);
        object["parcels"] = json!(self.parcels.1);
        let values = |points: Vec<(f64, f64)>| -> Vec<f64> {
            points.into_iter().map(|(_, value)| value).collect()
        };
        let (came_ms, rtt_ms): (Vec<f64>, Vec<f64>) = self.log.scatter().into_iter().unzip();
        object["log"] = json!({
            "step_ms": experiment::STEP.as_millis_f64(),
            "acknowledged_bytes": values(self.log.progress()),
            "window_packets": values(self.log.windows()),
            "round_trips": {"came_ms": came_ms, "rtt_ms": rtt_ms},
        });
        object
    }
}

fn figures_json(figures: &Figures) -> Value {
    json!({
        "acknowledged_bytes": figures.bytes,
        "seconds": figures.seconds,
        "bytes_per_second": figures.rate(),
        "rtt_ms": figures.rtt_ms,
        "window_packets": figures.window,
        "peak_bytes_per_second": figures.peak,
    })
}

/// The program of section 8.1.
fn stream(settings: &Settings) -> Application {
    let Set { parcel: bytes, parcels, .. } = settings.read();
    Application::Stream { bytes, parcels }
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

fn stream_runs(settings: &Settings, seed: u64) -> Vec<Run> {
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
        let application = stream(settings);
        let Set { cut, parcels: total, .. } = settings.read();
        make(name, printed, total, experiment::run(settings, policy, application, cut, seed))
    })
    .into()
}

fn frame_runs(settings: &Settings, seed: u64) -> Vec<Run> {
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
        let life = Span::from_secs(paper::FRAME_LIFE_S);
        let bytes = paper::FRAME_BYTES;
        let application = Application::Frames { bytes, per_second, parcels, life };
        let policy = Profile::EverySegment;
        let log = experiment::run(settings, &policy, application, FRAMES_CUT, seed);
        make(name, printed, parcels, log)
    })
    .into()
}

fn make(name: &'static str, printed: Option<Printed>, total: u64, log: Log) -> Run {
    let parcels = (log.received.len() as u64, total);
    Run { name, printed, figures: log.figures(), parcels, log }
}

/// Long past the last frame.
const FRAMES_CUT: Span = Span::from_secs(300);
