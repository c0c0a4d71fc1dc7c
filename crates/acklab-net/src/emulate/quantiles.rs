//! Quantiles of durations in constant memory: a histogram whose buckets are 1/64 of their value wide.
//!
//! Each power of two has 64 buckets, as in HdrHistogram, so a quantile is at most 1.6 % too small;
//! below 64 ns, count, sum and maximum are exact.

use acklab_core::time::Span;

/// Buckets per power of two, as a power of two.
const PRECISION: u32 = 6;

/// Counts durations.
#[derive(Clone, Debug)]
pub struct Quantiles {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    max: Span,
}

impl Default for Quantiles {
    fn default() -> Self {
        let buckets = (64 - PRECISION as usize + 1) << PRECISION;
        Self { buckets: vec![0; buckets], count: 0, sum: 0, max: Span::ZERO }
    }
}

impl Quantiles {
    /// Counts one.
    pub fn record(&mut self, span: Span) {
        self.buckets[bucket(span.as_nanos())] += 1;
        self.count += 1;
        self.sum += u128::from(span.as_nanos());
        self.max = self.max.max(span);
    }

    /// How many were counted.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The longest; zero of none.
    pub const fn max(&self) -> Span {
        self.max
    }

    /// The mean; zero of none.
    pub fn mean(&self) -> Span {
        Span::from_nanos((self.sum / u128::from(self.count.max(1))) as u64)
    }

    /// The smallest that is not below a share `q` of all; zero of none.
    pub fn quantile(&self, q: f64) -> Span {
        let rank = ((q * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Span::from_nanos(lower_end(index));
            }
        }
        Span::ZERO
    }
}

fn bucket(nanos: u64) -> usize {
    let shift = (64 - nanos.leading_zeros()).saturating_sub(PRECISION + 1);
    ((shift as usize) << PRECISION) + (nanos >> shift) as usize
}

fn lower_end(bucket: usize) -> u64 {
    let shift = (bucket >> PRECISION).saturating_sub(1);
    ((bucket - (shift << PRECISION)) as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_is_at_most_a_sixtyfourth_larger() {
        let powers = (0..64).map(|power| 1u64 << power);
        for nanos in powers.flat_map(|p| [p, p + p / 3, p - 1]).chain([u64::MAX, 0]) {
            let low = lower_end(bucket(nanos));
            assert!(low <= nanos && nanos - low <= nanos / 64, "{nanos} {low}");
        }
    }

    #[test]
    fn quantiles_of_a_thousand_microseconds() {
        let mut quantiles = Quantiles::default();
        assert_eq!(quantiles.quantile(0.5), Span::ZERO);
        for micros in 1..=1000 {
            quantiles.record(Span::from_micros(micros));
        }
        let near = |span: Span, micros: f64| {
            let error = span.as_nanos() as f64 / 1e3 / micros - 1.0;
            assert!((-0.016..=0.0).contains(&error), "{span} for {micros} us");
        };
        near(quantiles.quantile(0.5), 500.0);
        near(quantiles.quantile(0.99), 990.0);
        assert_eq!(quantiles.max(), Span::from_millis(1));
        assert_eq!(quantiles.mean(), Span::from_nanos(500_500));
        assert_eq!(quantiles.count(), 1000);
    }
}
