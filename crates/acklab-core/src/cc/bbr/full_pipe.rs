//! Is the pipe full? Three rounds in which the bandwidth grew by less than a quarter say so
//! (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.2.2; draft-ietf-ccwg-bbr-06 section
//! 5.3.1.2).

/// The estimator's state.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullPipe {
    /// The bandwidth that growth is judged against, bytes per second.
    bandwidth: f64,
    rounds: u32,
    now: bool,
    reached: bool,
}

impl FullPipe {
    /// Begins a search from that bandwidth.
    pub fn search(&mut self, bandwidth: f64) {
        *self = Self { bandwidth, reached: self.reached, ..Self::default() };
    }

    /// Whether the present search found the pipe full.
    pub const fn is_full(&self) -> bool {
        self.now
    }

    /// Whether some search found it full.
    pub const fn is_reached(&self) -> bool {
        self.reached
    }

    /// Something other than growth says that it is full.
    pub const fn reach(&mut self) {
        self.reached = true;
    }

    /// The bandwidth of a round that the application did not limit.
    pub fn on_round(&mut self, bandwidth: f64) {
        if self.now {
            return;
        }
        if bandwidth >= self.bandwidth * FULL_BW_GROWTH {
            self.search(bandwidth);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_BW_ROUNDS;
        self.reached |= self.now;
    }
}

// Both drafts, sections as above.
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_of_little_growth_mean_full() {
        let mut pipe = FullPipe::default();
        for bandwidth in [100.0, 200.0, 249.0, 240.0] {
            pipe.on_round(bandwidth);
            assert!(!pipe.now);
        }
        pipe.on_round(230.0);
        assert!(pipe.now && pipe.reached);
        pipe.search(230.0);
        assert!(!pipe.now && pipe.reached, "a later search starts anew");
    }
}
