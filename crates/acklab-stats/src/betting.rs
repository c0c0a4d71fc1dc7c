//! A confidence sequence by betting, for the mean of values between 0 and 1.
//!
//! Against each candidate m two gamblers bet, one that the mean is larger, one that it is smaller:
//!
//!   K+(m) = prod (1 + l+ (x - m)),  l+ = min(l, c / m),
//!   K-(m) = prod (1 - l- (x - m)),  l- = min(l, c / (1 - m)),  c = 3/4.
//!
//! Each bet l is chosen before its x is seen, so that both capitals have mean 1 if m is the mean, and half of
//! each together ever reaches 1/alpha with probability alpha at most. The m against which neither has come
//! to 2/alpha are an interval, which covers at every look with at least 1 - alpha, whatever the law of the
//! values: the hedged capital process of Waudby-Smith and Ramdas (J. R. Stat. Soc. B 86(1), 2024, section 4).
//! The bets are their predictable plug-in: with the mean and variance s² of what was seen, both with one
//! value more, l = sqrt(2 ln(2/alpha) / (s² n ln(n + 1))) for the nth; sqrt(2 ln(2/alpha) / (s² N)) where
//! a number N of values is fixed ahead, of which the interval is then the narrower.

/// The values and what was bet on each.
#[derive(Clone, Debug)]
pub(crate) struct Betting {
    alpha: f64,
    /// The number of values for which the bets are made, if there is one.
    runs: Option<u64>,
    /// (x, l) in the order of the runs.
    bets: Vec<(f64, f64)>,
    sum: f64,
    /// Sum of the squared distances of each value from the mean up to it.
    squares: f64,
}

impl Betting {
    /// `alpha` inside 0..1.
    pub(crate) fn new(alpha: f64, runs: Option<u64>) -> Self {
        Self { alpha, runs, bets: Vec::new(), sum: 0.0, squares: 0.0 }
    }

    /// Takes a value inside 0..=1.
    pub(crate) fn push(&mut self, value: f64) {
        self.bets.push((value, self.next_bet()));
        self.sum += value;
        let count = self.bets.len() as f64;
        let mean = (0.5 + self.sum) / (count + 1.0);
        self.squares += (value - mean) * (value - mean);
    }

    /// From what was seen alone; the variance begins with one value of 1/4, the largest there is.
    fn next_bet(&self) -> f64 {
        let seen = self.bets.len() as f64;
        let variance = (0.25 + self.squares) / (seen + 1.0);
        let span = match self.runs {
            Some(runs) => runs as f64,
            None => (seen + 1.0) * libm::log(seen + 2.0),
        };
        (2.0 * libm::log(2.0 / self.alpha) / (variance * span)).sqrt()
    }

    /// The ends, from 0 to 1 as long as nothing is refuted.
    pub(crate) fn ends(&self) -> (f64, f64) {
        if self.bets.is_empty() {
            return (0.0, 1.0);
        }
        let mean = self.sum / self.bets.len() as f64;
        let high = 1.0 - largest_refuted(1.0 - mean, |distance| self.is_above(1.0 - distance));
        (largest_refuted(mean, |m| self.is_below(m)), high)
    }

    /// Whether a mean of `m` is refuted because the values are larger.
    fn is_below(&self, m: f64) -> bool {
        self.is_rich(|x, bet| 1.0 + bet.min(CAUTION / m) * (x - m))
    }

    /// Whether a mean of `m` is refuted because the values are smaller.
    fn is_above(&self, m: f64) -> bool {
        self.is_rich(|x, bet| 1.0 - bet.min(CAUTION / (1.0 - m)) * (x - m))
    }

    /// Whether the capital that grows by `factor` with each value comes to 2/alpha.
    fn is_rich(&self, factor: impl Fn(f64, f64) -> f64) -> bool {
        let (mut logarithm, mut product) = (0.0, 1.0);
        for (x, bet) in &self.bets {
            product *= factor(*x, *bet);
            // A logarithm takes as long as twenty products.
            if !(SMALL..1.0 / SMALL).contains(&product) {
                logarithm += libm::log(product);
                product = 1.0;
            }
        }
        logarithm + libm::log(product) >= libm::log(2.0 / self.alpha)
    }
}

/// The largest of 0..=`held` that is refuted, if those that are lie below those that are not; else 0.
fn largest_refuted(held: f64, is_refuted: impl Fn(f64) -> bool) -> f64 {
    let (mut refuted, mut held) = (0.0, held);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(refuted, held);
        if is_refuted(middle) { refuted = middle } else { held = middle }
    }
    refuted
}

/// c: no bet loses more than this share of the capital (the paper takes 1/2 or 3/4).
const CAUTION: f64 = 0.75;
/// When a product is turned into its logarithm; the next factor is at least 1 - c.
const SMALL: f64 = 1e-100;
/// Of an interval of at most 1: to 1e-12.
const HALVINGS: u32 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn after(runs: Option<u64>, values: impl IntoIterator<Item = f64>) -> (f64, f64) {
        let mut betting = Betting::new(0.05, runs);
        values.into_iter().for_each(|value| betting.push(value));
        betting.ends()
    }

    #[test]
    fn the_interval_mirrors_narrows_and_holds_the_mean() {
        let values = |count: u32| (0..count).map(|run| f64::from(run * 37 % 101) / 200.0);
        assert_eq!(after(None, []), (0.0, 1.0));
        let mut wider = 1.0;
        for count in [5, 40, 300, 3000] {
            let (low, high) = after(None, values(count));
            let (left, right) = after(None, values(count).map(|value| 1.0 - value));
            assert!((low + right - 1.0).abs() < 1e-9 && (high + left - 1.0).abs() < 1e-9);
            let mean = values(count).sum::<f64>() / f64::from(count);
            assert!(low < mean && mean < high && high - low < wider, "{count}: {low} {high}");
            wider = high - low;
        }
        assert!(wider < 0.03, "{wider}");
        let (low, high) = after(Some(300), values(300));
        let (left, right) = after(None, values(300));
        assert!(high - low < 0.9 * (right - left), "{low} {high} {left} {right}");
    }

    #[test]
    fn values_without_spread_have_an_interval_as_one_knows_their_bounds() {
        for value in [0.0, 0.3, 1.0] {
            let (low, high) = after(None, std::iter::repeat_n(value, 400));
            assert!(low <= value && value <= high && high - low < 0.03, "{value}: {low} {high}");
        }
    }

    #[test]
    fn a_bet_depends_on_what_came_before_it_alone() {
        let bets = |last: f64| {
            let mut betting = Betting::new(0.05, None);
            for value in [0.1, 0.9, 0.4, last] {
                betting.push(value);
            }
            betting.bets.iter().map(|(_, bet)| bet.to_bits()).collect::<Vec<_>>()
        };
        assert_eq!(bets(0.0), bets(1.0));
    }
}
