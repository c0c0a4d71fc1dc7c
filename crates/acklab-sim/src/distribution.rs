//! [`Distribution`]: how large things are, or how long they take, where that is random.

use std::sync::Arc;

use acklab_core::math;
use acklab_core::rng::Rng;

/// A distribution of positive values.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always this.
    Constant(f64),
    /// Exponential.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Pareto: with a shape of at most 2 its variance is infinite.
    Pareto {
        /// Mean.
        mean: f64,
        /// Shape, above 1.
        shape: f64,
    },
    /// Log-normal.
    LogNormal {
        /// Mean.
        mean: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// One of these, each as probable.
    Listed(Arc<[f64]>),
}

impl Distribution {
    /// A value.
    pub fn draw(&self, rng: &mut Rng) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Exponential { mean } => rng.exponential(*mean),
            Self::Pareto { mean, shape } => {
                // Inversion of P(X > x) = (least / x)^shape.
                mean * (shape - 1.0) / shape * math::exp(rng.exponential(1.0 / shape))
            }
            // The mean of exp(N(mu, sigma)) is exp(mu + sigma^2 / 2).
            Self::LogNormal { mean, sigma } => {
                mean * math::exp(rng.normal(-sigma * sigma / 2.0, *sigma))
            }
            Self::Listed(values) => {
                let index = rng.below(values.len().max(1) as u64) as usize;
                values.get(index).copied().unwrap_or_default()
            }
        }
    }

    /// Its mean.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Constant(mean)
            | Self::Exponential { mean }
            | Self::Pareto { mean, .. }
            | Self::LogNormal { mean, .. } => *mean,
            Self::Listed(values) => values.iter().sum::<f64>() / values.len().max(1) as f64,
        }
    }
}

/// Values that are drawn one after the other; two of the same stream draw the same.
#[derive(Clone, Debug)]
pub struct Draws {
    distribution: Distribution,
    rng: Rng,
}

impl Draws {
    /// From the stream called `name` under `seed`.
    pub fn new(distribution: Distribution, seed: u64, name: &str) -> Self {
        Self { distribution, rng: Rng::named(seed, name) }
    }

    /// The next one.
    pub fn draw(&mut self) -> f64 {
        self.distribution.draw(&mut self.rng)
    }

    /// The next number of bytes: a whole one, from 1 to `most`.
    pub fn bytes(&mut self, most: u32) -> u32 {
        (self.draw() + 0.5).clamp(1.0, f64::from(most)) as u32
    }

    /// Draws as under another seed from now on.
    pub fn reseed(&mut self, seed: u64) {
        self.rng.reseed(seed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_those_that_were_asked_for() {
        let listed = Distribution::Listed(vec![1.0, 2.0, 6.0].into());
        for (distribution, tolerance) in [
            (Distribution::Constant(3.0), 1e-12),
            (Distribution::Exponential { mean: 3.0 }, 0.01),
            (Distribution::Pareto { mean: 3.0, shape: 2.5 }, 0.02),
            (Distribution::LogNormal { mean: 3.0, sigma: 1.0 }, 0.02),
            (listed, 0.01),
        ] {
            let mut draws = Draws::new(distribution.clone(), 7, "test");
            let mean = (0..400_000).map(|_| draws.draw()).sum::<f64>() / 4e5;
            assert!((mean / 3.0 - 1.0).abs() < tolerance, "{distribution:?}: {mean}");
            assert!((distribution.mean() - 3.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_pareto_tail_falls_with_its_shape() {
        let mut draws = Draws::new(Distribution::Pareto { mean: 3.0, shape: 1.5 }, 7, "test");
        // The least value is 1: P(X > 10) = 10^-1.5 = 0.0316, P(X > 100) = 0.001.
        let values: Vec<f64> = (0..400_000).map(|_| draws.draw()).collect();
        let above = |limit: f64| values.iter().filter(|value| **value > limit).count() as f64 / 4e5;
        assert!((above(10.0) - 0.0316).abs() < 0.001, "{}", above(10.0));
        assert!((above(100.0) - 0.001).abs() < 0.0002, "{}", above(100.0));
        assert!(values.iter().all(|value| *value >= 1.0));
    }
}
