//! How a receiver times its acknowledgments, as the result has it.

use schemars::JsonSchema;
use serde::Serialize;

use super::timer::Timer;

/// What the acknowledgments say of their sender: its policy, and the timer behind it.
pub(crate) struct Receiver {
    pub(crate) policy: ReceiverPolicy,
    pub(crate) timer: Timer,
}

/// How the receiver times its acknowledgments.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ReceiverPolicy {
    /// The likeliest system profile.
    pub profile: Option<&'static str>,
    /// All profiles that fit, where they cannot be told apart.
    pub candidates: Vec<&'static str>,
    /// The timer, milliseconds: the delay (`fixed`), the tick (`tick`) or the least delay
    /// (`adaptive`).
    pub timer_ms: Option<f64>,
    /// How the timer runs.
    pub kind: PolicyKind,
    /// How sure, 0 to 1.
    pub confidence: f64,
    /// Sentences with numbers.
    pub evidence: Vec<String>,
}

/// How a delayed-ACK timer runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyKind {
    /// A fixed time after the data arrived.
    Fixed,
    /// At the beats of a clock that runs on its own.
    Tick,
    /// After a time that follows the traffic.
    Adaptive,
    /// No delay seen.
    Immediate,
    /// Too little seen.
    #[default]
    Unknown,
}

/// Rule of succession, capped.
pub(super) fn confidence(hits: usize, of: usize) -> f64 {
    ((hits as f64 + 1.0) / (of as f64 + 2.0)).min(0.99) * (1.0 - 1.0 / (hits as f64 + 1.0))
}
