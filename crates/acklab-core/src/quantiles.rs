//! Quantiles of durations in bounded memory.
//!
//! Few samples are kept as they are. More are counted in log-linear buckets, 64 to each power of
//! two as in HdrHistogram (hdrhistogram.org): a bucket is at most 1/64 of its value wide, and a
//! quantile interpolates within it, so that it is off by at most 1.6 %. Count, mean, minimum and
//! maximum are exact. Only the range of buckets in use is stored, about 2 KB for times from 10 us
//! to 1 s; 15 KB hold the whole range of 64 bits.

use crate::time::Span;

/// The distribution of durations recorded.
///
/// ```
/// use acklab_core::{quantiles::Quantiles, time::Span};
///
/// let mut waits = Quantiles::default();
/// (1..=1_000).for_each(|micros| waits.record(Span::from_micros(micros)));
/// assert_eq!((waits.count(), waits.max()), (1_000, Span::from_millis(1)));
/// let p95 = waits.quantile(0.95).as_micros_f64();
/// assert!((p95 / 950.0 - 1.0).abs() < 1.0 / 64.0);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Quantiles {
    /// Samples as they came, until there are too many.
    exact: Vec<u64>,
    /// Counts of the buckets from `first` on.
    buckets: Vec<u32>,
    first: usize,
    count: u64,
    /// Of all samples; 584 years at most.
    sum: u64,
    min: u64,
    max: u64,
}

impl Quantiles {
    /// Takes a sample.
    #[inline]
    pub fn record(&mut self, span: Span) {
        let nanos = span.as_nanos();
        if self.count == 0 || nanos < self.min {
            self.min = nanos;
        }
        self.max = self.max.max(nanos);
        self.count += 1;
        self.sum = self.sum.saturating_add(nanos);
        if self.buckets.is_empty() {
            if self.exact.len() < EXACT_MAX {
                self.exact.push(nanos);
                return;
            }
            self.spill();
        }
        self.add_to_bucket(nanos);
    }

    #[cold]
    fn spill(&mut self) {
        self.first = bucket(self.exact.iter().copied().min().unwrap_or(0));
        for nanos in std::mem::take(&mut self.exact) {
            self.add_to_bucket(nanos);
        }
    }

    #[inline]
    fn add_to_bucket(&mut self, nanos: u64) {
        let index = bucket(nanos);
        if index < self.first {
            let missing = self.first - index;
            self.buckets.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = index;
        }
        let at = index - self.first;
        if at >= self.buckets.len() {
            self.buckets.resize(at + 1, 0);
        }
        self.buckets[at] = self.buckets[at].saturating_add(1);
    }

    /// Number of samples.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The smallest sample; `None` of none.
    pub fn min(&self) -> Option<Span> {
        (self.count > 0).then(|| Span::from_nanos(self.min))
    }

    /// The largest sample; zero of none.
    pub const fn max(&self) -> Span {
        Span::from_nanos(self.max)
    }

    /// The mean; zero of none.
    pub fn mean(&self) -> Span {
        Span::from_nanos(self.sum / self.count.max(1))
    }

    /// The `q`-quantile, `q` from 0 to 1: the smallest sample that a share of at least `q` does not
    /// exceed; zero of none.
    pub fn quantile(&self, q: f64) -> Span {
        self.quantile_up_to(q, Span::MAX)
    }

    /// The `q`-quantile of the samples that do not exceed `limit`; zero of none.
    pub fn quantile_up_to(&self, q: f64, limit: Span) -> Span {
        let total = self.count_up_to(limit);
        if total == 0 {
            return Span::ZERO;
        }
        let rank = ((q * total as f64).ceil() as u64).clamp(1, total);
        if self.buckets.is_empty() {
            let mut sorted = self.exact.clone();
            sorted.sort_unstable();
            return Span::from_nanos(sorted[rank as usize - 1]);
        }
        let mut below = 0;
        for (low, high, count) in self.filled() {
            if below + count >= rank {
                let part = (rank - below) as f64 / (count + 1) as f64;
                let nanos = low + ((high - low) as f64 * part) as u64;
                return Span::from_nanos(nanos.clamp(self.min, self.max).min(limit.as_nanos()));
            }
            below += count;
        }
        self.max()
    }

    /// How many samples do not exceed `limit`, to within the bucket that holds it.
    pub fn count_up_to(&self, limit: Span) -> u64 {
        let limit = limit.as_nanos();
        if self.buckets.is_empty() {
            return self.exact.iter().filter(|&&n| n <= limit).count() as u64;
        }
        self.filled().take_while(|&(low, ..)| low <= limit).map(|(.., count)| count).sum()
    }

    /// Counts in linear bins of `width` from 0; what lies beyond the last bin is counted in it.
    pub fn bins(&self, width: Span, bins_max: usize) -> Vec<u64> {
        let mut bins = Vec::new();
        let mut put = |nanos: u64, count: u64| {
            let at = nanos / width.as_nanos().max(1);
            let at = (at as usize).min(bins_max.saturating_sub(1));
            if at >= bins.len() {
                bins.resize(at + 1, 0);
            }
            bins[at] += count;
        };
        self.exact.iter().for_each(|&nanos| put(nanos, 1));
        self.filled().for_each(|(low, high, count)| put(low + (high - low) / 2, count));
        bins
    }

    /// The buckets in use: least value, first value beyond, count.
    fn filled(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let counted = self.buckets.iter().enumerate().filter(|&(_, &count)| count > 0);
        counted.map(|(at, &count)| {
            let index = self.first + at;
            (bucket_low(index), bucket_low(index + 1), u64::from(count))
        })
    }
}

/// The bucket of a value: its own below 64, then 64 to each power of two.
#[inline]
fn bucket(nanos: u64) -> usize {
    if nanos < PER_OCTAVE {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - PER_OCTAVE.ilog2();
    (u64::from(shift) * PER_OCTAVE + (nanos >> shift)) as usize
}

/// The least value of a bucket.
fn bucket_low(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * PER_OCTAVE {
        return index;
    }
    let shift = index / PER_OCTAVE - 1;
    let low = u128::from(PER_OCTAVE + index % PER_OCTAVE) << shift;
    u64::try_from(low).unwrap_or(u64::MAX)
}

/// Buckets to each power of two.
const PER_OCTAVE: u64 = 64;
/// Samples kept as they are: 256 bytes, what most connections of a large capture need.
const EXACT_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_join_without_gap_or_overlap() {
        for index in 0..3_000 {
            let low = bucket_low(index);
            assert_eq!(bucket(low), index);
            assert_eq!(bucket(bucket_low(index + 1) - 1), index);
        }
        assert_eq!(bucket(u64::MAX), 3_775);
    }

    proptest! {
        #[test]
        fn quantiles_lie_within_a_bucket_of_the_exact_ones(
            mut samples in prop::collection::vec(1_u64..2_000_000_000, 1..400), q in 0.0..=1.0_f64
        ) {
            let mut quantiles = Quantiles::default();
            for &n in &samples {
                quantiles.record(Span::from_nanos(n));
            }
            samples.sort_unstable();
            let rank = ((q * samples.len() as f64).ceil() as usize).clamp(1, samples.len());
            let exact = samples[rank - 1] as f64;
            let found = quantiles.quantile(q).as_nanos() as f64;
            prop_assert!((found - exact).abs() <= exact / 64.0 + 1.0, "{found} for {exact}");
            prop_assert_eq!(quantiles.min().unwrap().as_nanos(), samples[0]);
            prop_assert_eq!(quantiles.max().as_nanos(), samples[samples.len() - 1]);
            prop_assert_eq!(quantiles.count(), samples.len() as u64);
            let sum: u64 = samples.iter().sum();
            prop_assert_eq!(quantiles.mean().as_nanos(), sum / samples.len() as u64);
        }

        #[test]
        fn bins_count_every_sample_once(samples in prop::collection::vec(0_u64..900_000_000, 0..200)) {
            let mut quantiles = Quantiles::default();
            for &n in &samples {
                quantiles.record(Span::from_nanos(n));
            }
            let bins = quantiles.bins(Span::from_millis(1), 500);
            prop_assert_eq!(bins.iter().sum::<u64>(), samples.len() as u64);
        }
    }

    #[test]
    fn of_no_samples_all_is_zero() {
        let none = Quantiles::default();
        assert_eq!((none.count(), none.min()), (0, None));
        assert_eq!(
            (none.mean(), none.max(), none.quantile(0.5)),
            (Span::ZERO, Span::ZERO, Span::ZERO)
        );
    }

    #[test]
    fn a_limit_leaves_out_the_samples_beyond_it() {
        let mut quantiles = Quantiles::default();
        (0..100).for_each(|i| quantiles.record(Span::from_millis(if i < 60 { 1 } else { 40 })));
        assert_eq!(quantiles.count_up_to(Span::from_millis(11)), 60);
        let p95 = quantiles.quantile_up_to(0.95, Span::from_millis(11));
        assert!(p95 < Span::from_micros(1_020), "{p95}");
        assert!(quantiles.quantile(0.95) > Span::from_millis(39));
    }
}
