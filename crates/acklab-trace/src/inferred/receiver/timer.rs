//! What a receiver's timer explains.

/// The timer that ACK delays show, as needed to tell what released a hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Timer {
    /// A fixed time after arrival: delays from `low` to `high` milliseconds.
    Fixed {
        /// Least delay.
        low: f64,
        /// Largest delay.
        high: f64,
    },
    /// A free-running tick.
    Tick {
        /// Its period, milliseconds.
        period: f64,
        /// Whole ticks that pass at least.
        skips: f64,
    },
    /// Constant delays that no timer has: the network's round trip.
    Network,
    /// No timer known: a delay this long is taken for one.
    Unknown {
        /// Least delay.
        least: f64,
    },
}

impl Timer {
    /// Whether a pure ACK with this delay came from the timer.
    pub(crate) fn explains(self, delay_ms: f64) -> bool {
        match self {
            Self::Fixed { low, high } => (low..=high).contains(&delay_ms),
            Self::Tick { period, skips } => {
                (2.0..=period * (skips + 1.0) + 3.0).contains(&delay_ms)
            }
            Self::Network => false,
            Self::Unknown { least } => delay_ms >= least,
        }
    }
}
