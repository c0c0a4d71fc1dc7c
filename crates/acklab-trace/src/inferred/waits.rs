//! The sender's other silences, by cause.

use schemars::JsonSchema;
use serde::Serialize;

use super::replay::Silence;
use super::{Hold, RoundTrips, SMALL_HOLD_MS};

/// Waits that are not Nagle's.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Wait {
    /// The cause.
    pub cause: WaitCause,
    /// How many, of 10 ms or longer.
    pub count: u64,
    /// Their sum, seconds.
    pub seconds: f64,
}

/// Why a sender was silent without being held by Nagle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// The application had nothing to send.
    Application,
    /// The receiver's window was full.
    Window,
    /// The congestion window was full.
    Congestion,
    /// Lost segments were being repaired.
    LossRecovery,
}

/// Silences by cause; those that ended in one of `holds` are not the application's.
pub(super) fn find(silences: &[Silence], trips: &RoundTrips, holds: &[Hold]) -> Vec<Wait> {
    let far_ms = trips.far_ms.unwrap_or(0.0);
    let mut pauses = [(0u64, 0u64); CAUSES.len()];
    for silence in silences {
        let pause = &mut pauses[cause_of(silence, far_ms) as usize];
        pause.0 += 1;
        pause.1 += silence.nanos;
    }
    let long = holds.iter().filter(|h| h.upper_ms() >= SMALL_HOLD_MS);
    let (held_count, held_s) = long.fold((0u64, 0.0), |(n, s), h| (n + 1, s + h.upper_ms() / 1e3));
    let wait = |cause: WaitCause| {
        let (mut count, nanos) = pauses[cause as usize];
        let mut seconds = nanos as f64 / 1e9;
        if cause == WaitCause::Application {
            count = count.saturating_sub(held_count);
            seconds = (seconds - held_s).max(0.0);
        }
        (count > 0).then_some(Wait { cause, count, seconds })
    };
    CAUSES.into_iter().filter_map(wait).collect()
}

/// `far_ms` is the round trip to the sender, within which it answers an ACK that it waited for.
fn cause_of(silence: &Silence, far_ms: f64) -> WaitCause {
    let since = silence.since_ack as f64 / 1e6;
    let at_ack = silence.since_ack != u64::MAX && since <= far_ms * 1.1 + 1.0;
    if silence.recovery {
        WaitCause::LossRecovery
    } else if at_ack && silence.blocked {
        WaitCause::Window
    } else if at_ack && !silence.small {
        WaitCause::Congestion
    } else {
        WaitCause::Application
    }
}

/// In the order of the result.
const CAUSES: [WaitCause; 4] =
    [WaitCause::Application, WaitCause::Window, WaitCause::Congestion, WaitCause::LossRecovery];
