//! [`Delays`]: the distribution of many delays in little memory.

use std::collections::BTreeMap;

use acklab_core::time::Span;

/// Delays, counted in classes that are at most 1/128 of their value wide; least, greatest and mean are
/// exact, and a quantile is right to 0.4 %.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delays {
    classes: BTreeMap<u16, u64>,
    count: u64,
    nanos: u128,
    min: u64,
    max: u64,
}

impl Delays {
    /// Takes in one.
    pub fn add(&mut self, delay: Span) {
        let nanos = delay.as_nanos();
        *self.classes.entry(class(nanos)).or_default() += 1;
        self.min = if self.count == 0 { nanos } else { self.min.min(nanos) };
        self.max = self.max.max(nanos);
        self.count += 1;
        self.nanos += u128::from(nanos);
    }

    /// Takes in all of another.
    pub fn pool(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        for (class, count) in &other.classes {
            *self.classes.entry(*class).or_default() += count;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.nanos += other.nanos;
    }

    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The least, ms; `None` where there is none.
    pub fn min_ms(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min as f64 / 1e6)
    }

    /// The greatest, ms.
    pub fn max_ms(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max as f64 / 1e6)
    }

    pub fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.nanos as f64 / self.count as f64 / 1e6)
    }

    /// The least delay that a share of them does not exceed, ms.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        let rank = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut sum = 0;
        let reached = self.classes.iter().find(|(_, count)| {
            sum += **count;
            sum >= rank
        });
        reached.map(|(class, _)| {
            let (low, high) = edges(*class);
            // The middle of the class, but nothing that was not there.
            (low.midpoint(high - 1)).clamp(self.min, self.max) as f64 / 1e6
        })
    }

    /// (ms, share of the delays at or below), both rising; at most some `limit` points.
    pub fn distribution(&self, limit: usize) -> Vec<(f64, f64)> {
        let mut points: Vec<(f64, f64)> = self.min_ms().map(|min| (min, 0.0)).into_iter().collect();
        let (mut sum, mut shown) = (0, 0.0);
        for (class, count) in &self.classes {
            sum += count;
            let share = sum as f64 / self.count as f64;
            if share - shown >= 1.0 / limit as f64 || sum == self.count {
                let ms = (edges(*class).1 - 1).min(self.max) as f64 / 1e6;
                points.push((ms, share));
                shown = share;
            }
        }
        points
    }
}

/// The class of a value: below 256 its own, above one of 128 between two powers of two.
const fn class(nanos: u64) -> u16 {
    let octave = match nanos.checked_ilog2() {
        Some(log) if log > BITS => log - BITS,
        _ => 0,
    };
    (octave << BITS) as u16 + (nanos >> octave) as u16
}

/// The least value of a class, and the least above it.
const fn edges(class: u16) -> (u64, u64) {
    let octave = (class >> BITS).saturating_sub(1);
    let first = (class - (octave << BITS)) as u64;
    (first << octave, (first + 1).saturating_mul(1 << octave))
}

/// Between two powers of two lie 2^BITS classes.
const BITS: u32 = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_each_other_without_a_gap_and_hold_their_values() {
        let mut nanos = 1_u64;
        while nanos < 1 << 50 {
            for value in [nanos - 1, nanos, nanos + nanos / 3] {
                let (low, high) = edges(class(value));
                assert!((low..high).contains(&value), "{value}: {low}..{high}");
                assert!(high - low <= (low / 128).max(1), "{value}: {low}..{high}");
            }
            nanos *= 2;
        }
        for class in 0..4000 {
            assert_eq!(edges(class).1, edges(class + 1).0, "{class}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_samples() {
        let mut delays = Delays::default();
        let mut other = Delays::default();
        for micros in 1..=10_000 {
            let half = if micros % 2 == 0 { &mut delays } else { &mut other };
            half.add(Span::from_micros(micros));
        }
        delays.pool(&other);
        assert_eq!(delays.count(), 10_000);
        assert_eq!((delays.min_ms(), delays.max_ms()), (Some(0.001), Some(10.0)));
        assert!((delays.mean_ms().unwrap() - 5.0005).abs() < 1e-9);
        for (share, ms) in [(0.5, 5.0), (0.95, 9.5), (0.99, 9.9), (1.0, 10.0)] {
            let found = delays.quantile_ms(share).unwrap();
            assert!((found / ms - 1.0).abs() < 0.0045, "{share}: {found}");
        }
        let points = delays.distribution(50);
        assert!(points.len() <= 60 && points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1));
        for (ms, share) in &points[1..] {
            assert!((ms / 10.0 - share).abs() < 0.0045, "{ms}: {share}");
        }
        assert!((points.last().unwrap().1 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_has_no_quantile() {
        let none = Delays::default();
        assert_eq!((none.quantile_ms(0.5), none.min_ms(), none.mean_ms()), (None, None, None));
        assert!(none.distribution(10).is_empty());
    }
}
