//! The values of one run with their weights, for quantiles within the run.
//!
//! Equal values are one. Where there are more than memory should hold, values are told apart by fewer
//! binary digits: by twelve at worst, which is 1 in 4000.

/// Values with weights above 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distribution {
    weighted: Vec<(f64, f64)>,
    /// Binary digits behind the point that values have lost.
    lost: u32,
}

impl Distribution {
    pub(crate) fn push(&mut self, value: f64, weight: f64) {
        let rounded = without(self.lost, value);
        match self.weighted.last_mut() {
            Some((last, sum)) if last.to_bits() == rounded.to_bits() => *sum += weight,
            _ => self.weighted.push((rounded, weight)),
        }
        if self.weighted.len() >= LIMIT {
            self.merge();
            while self.weighted.len() > LIMIT / 2 && self.lost < LOST_MAX {
                self.lost += 4;
                for (value, _) in &mut self.weighted {
                    *value = without(self.lost, *value);
                }
                self.merge();
            }
        }
    }

    fn merge(&mut self) {
        self.weighted.sort_unstable_by(|(left, _), (right, _)| left.total_cmp(right));
        self.weighted.dedup_by(|(next, weight), (value, sum)| {
            let same = next.to_bits() == value.to_bits();
            if same {
                *sum += *weight;
            }
            same
        });
    }

    /// The least value that at least `share` of the weight does not exceed; `None` without any weight.
    pub(crate) fn quantile(mut self, share: f64) -> Option<f64> {
        self.merge();
        let all: f64 = self.weighted.iter().map(|(_, weight)| weight).sum();
        let mut below = 0.0;
        let reaches = |(_, weight): &&(f64, f64)| {
            below += weight;
            // The same sum in the same order, so that a share of 1 is reached.
            below >= share * all
        };
        self.weighted.iter().find(reaches).map(|(value, _)| *value)
    }
}

/// `value` with so many of its last binary digits 0.
fn without(digits: u32, value: f64) -> f64 {
    f64::from_bits(value.to_bits() >> digits << digits)
}

/// Values of one run in memory: four megabytes.
const LIMIT: usize = 1 << 18;
/// Twelve of the 52 binary digits remain.
const LOST_MAX: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_weights() {
        let mut weights = Distribution::default();
        for (value, weight) in [(3.0, 1.0), (1.0, 2.0), (2.0, 0.5), (1.0, 0.5), (-4.0, 1.0)] {
            weights.push(value, weight);
        }
        for (share, expect) in [(0.1, -4.0), (0.21, 1.0), (0.7, 1.0), (0.71, 2.0), (0.99, 3.0)] {
            assert_eq!(weights.clone().quantile(share), Some(expect), "{share}");
        }
        assert_eq!(Distribution::default().quantile(0.5), None);
    }

    #[test]
    fn memory_is_bounded_and_the_quantile_near() {
        let mut many = Distribution::default();
        let count = 1_000_000_u64;
        for step in 0..count {
            // In no order, all different.
            many.push((step * 7919 % count) as f64 + 1.0, 1.0);
            assert!(many.weighted.len() < LIMIT);
        }
        let median = many.quantile(0.5).expect("values");
        assert!((median / 500_000.0 - 1.0).abs() < 1.0 / 4000.0, "{median}");
    }
}
