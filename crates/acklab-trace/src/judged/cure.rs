//! The best remedy and its predicted effect, as values and words. Who plays conversations again fills it in: a
//! diagnosis alone predicts nothing.

use schemars::JsonSchema;
use serde::Serialize;

/// What the best remedy would have done to the direction that was held longest.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Cure {
    /// The connection's number.
    pub flow: u64,
    /// The host whose writes were held, `ip:port`.
    pub from: String,
    /// The host that was waited for, `ip:port`.
    pub to: String,
    /// Whether anything is predicted.
    pub state: CureState,
    /// Why nothing is; `null` where something is.
    pub why: Option<String>,
    /// What is; `null` where nothing is.
    pub prediction: Option<Prediction>,
}

/// Whether a remedy's effect is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CureState {
    /// It is.
    Predicted,
    /// It cannot be told.
    CannotTell,
}

/// A conversation played again with each of the usual remedies.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Prediction {
    /// Only so many seconds from the connection's first data on were played; `null`: all of it.
    pub first_s: Option<f64>,
    /// Writes of the direction in that time.
    pub messages: u64,
    /// Delays from write to departure as the diagnosis infers them.
    pub measured: CureDelays,
    /// Kolmogorov-Smirnov distance of the delays of the conversation played as it was, 0 to 1.
    pub ks: f64,
    /// The remedies, the one that saves most first.
    pub remedies: Vec<Tried>,
    /// Least and greatest 95th percentile with the first of them, as far as it is known when the held writes came,
    /// milliseconds.
    pub p95_interval_ms: [f64; 2],
}

/// A remedy and its predicted effect.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Tried {
    /// As `acklab whatif --set` has it.
    pub set: String,
    /// What it is and on which host, in words.
    pub words: String,
    /// Delays with it.
    pub delays: CureDelays,
    /// Delay saved, all messages together, seconds: of what was measured, the share that is saved against the conversation
    /// played as it was.
    pub saved_s: f64,
}

/// A distribution of delays in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CureDelays {
    /// Median, milliseconds.
    pub p50_ms: f64,
    /// 95th percentile, milliseconds.
    pub p95_ms: f64,
    /// Mean, milliseconds.
    pub mean_ms: f64,
    /// All delays together, seconds.
    pub seconds: f64,
}

impl Cure {
    /// The best remedy and its effect, or why it cannot be told, in one sentence or two.
    pub fn sentence(&self) -> String {
        match (&self.prediction, self.prediction.as_ref().and_then(|told| told.remedies.first())) {
            (Some(told), Some(best)) => told.best(best),
            _ => format!(
                "What a remedy would have done cannot be told: {}.",
                self.why.as_deref().unwrap_or("none of them can be made")
            ),
        }
    }
}

impl Prediction {
    fn best(&self, tried: &Tried) -> String {
        let [least, most] = self.p95_interval_ms;
        let Tried { words, delays, saved_s, .. } = tried;
        let interval = if most - least < SHOWN_MS {
            String::new()
        } else {
            format!(" (between {least:.1} and {most:.1})")
        };
        format!(
            "The best remedy, predicted: {words} would have saved {saved_s:.2} s of the {:.2} s by which all messages \
             together were late; 95 % of them would have left within {:.1} ms of being written{interval}, for {:.1} ms \
             measured.",
            self.measured.seconds, delays.p95_ms, self.measured.p95_ms,
        )
    }

    /// What the prediction stands on.
    pub fn ground(&self) -> String {
        let part = self
            .first_s
            .map_or(String::new(), |s| format!(" of the connection's first {s:.1} s of data"));
        format!(
            "{} messages{part} were played again in virtual time; played as it was, the conversation differs from the \
             capture by {:.2} (Kolmogorov-Smirnov distance of the delays). `acklab whatif` says more, and tries other \
             changes.",
            self.messages, self.ks
        )
    }
}

/// An interval that is narrower is none.
const SHOWN_MS: f64 = 0.05;
