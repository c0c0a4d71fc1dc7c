//! What ended a hold.

use schemars::JsonSchema;
use serde::Serialize;

use super::Hold;
use super::receiver::Timer;

/// What ended a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// The receiver's delayed-ACK timer.
    DelayedAckTimer,
    /// The queue grew to a full segment.
    MssFilled,
    /// An ordinary acknowledgment: after one round trip, on data, or in the peer's own cycle.
    AckClocked,
}

impl Mechanism {
    /// The name used in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DelayedAckTimer => "delayed_ack_timer",
            Self::MssFilled => "mss_filled",
            Self::AckClocked => "ack_clocked",
        }
    }

    /// What ended `hold`, if the receiver has such a timer.
    pub(crate) fn of(hold: &Hold, timer: Timer) -> Self {
        if hold.filled {
            return Self::MssFilled;
        }
        match hold.ack_delay_ms {
            Some(delay) if hold.pure && timer.explains(delay) => Self::DelayedAckTimer,
            _ => Self::AckClocked,
        }
    }
}
