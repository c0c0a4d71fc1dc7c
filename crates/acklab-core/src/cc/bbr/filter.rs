//! The largest value of the last N rounds or cycles, exactly: one maximum for each.

/// A windowed maximum over N slots of time.
#[derive(Clone, Copy, Debug)]
pub struct WindowedMax<const N: usize> {
    slots: [f64; N],
    newest: u64,
}

impl<const N: usize> Default for WindowedMax<N> {
    fn default() -> Self {
        Self { slots: [0.0; N], newest: 0 }
    }
}

impl<const N: usize> WindowedMax<N> {
    /// Moves on to slot `time`; what is N slots old is forgotten. Time does not go back.
    pub fn advance(&mut self, time: u64) {
        let forgotten = time.saturating_sub(self.newest).min(N as u64);
        for ahead in 1..=forgotten {
            self.slots[((self.newest + ahead) % N as u64) as usize] = 0.0;
        }
        // A long jump clears every slot, wherever it lands.
        self.newest = self.newest.max(time);
    }

    /// A value of slot `time`.
    pub fn record(&mut self, time: u64, value: f64) {
        self.advance(time);
        let slot = &mut self.slots[(self.newest % N as u64) as usize];
        *slot = slot.max(value);
    }

    /// The largest value in the window.
    pub fn max(&self) -> f64 {
        self.slots.iter().copied().fold(0.0, f64::max)
    }

    /// The largest value of the newest slot.
    pub fn newest(&self) -> f64 {
        self.slots[(self.newest % N as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn it_agrees_with_looking_at_every_value() {
        let mut rng = Rng::named(1, "filter");
        let (mut filter, mut all, mut time) = (WindowedMax::<10>::default(), Vec::new(), 0);
        for _ in 0..5000 {
            if rng.chance(0.3) {
                time += 1 + rng.below(4) * rng.below(5);
            }
            let value = rng.uniform();
            filter.record(time, value);
            all.push((time, value));
            let expected = all
                .iter()
                .filter(|&&(at, _)| time - at < 10)
                .map(|&(_, value)| value)
                .fold(0.0, f64::max);
            assert_eq!(filter.max().to_bits(), expected.to_bits(), "slot {time}");
        }
    }
}
