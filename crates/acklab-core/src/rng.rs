//! Named random streams: xoshiro256++ (Blackman and Vigna, 2021), seeded by (seed, name).
//!
//! Every component draws from its own stream, `Rng::named(seed, "link/0/loss")`, so that adding a
//! node shifts no other node's draws. Samplers are ours, because a library's may change between
//! versions or features and with it every result hash. Golden vectors hold them in place.

use crate::math;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
    /// Hash of the stream's name.
    name: u64,
}

impl Rng {
    /// The stream called `name` under `seed`.
    pub fn named(seed: u64, name: &str) -> Self {
        // FNV-1a over the name, then SplitMix64 from their mixture, as the authors of xoshiro
        // recommend for filling the state.
        let name_hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self::of(seed, name_hash)
    }

    fn of(mut seed: u64, name: u64) -> Self {
        let mut mixed = split_mix(&mut seed) ^ name;
        Self { state: std::array::from_fn(|_| split_mix(&mut mixed)), name }
    }

    /// From now on, this is the stream of the same name under another seed.
    pub fn reseed(&mut self, seed: u64) {
        *self = Self::of(seed, self.name);
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform on [0, 1), in steps of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform on 0..bound without bias (Lemire 2019); 0 where `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            if wide as u64 >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Exponential with the given mean, by inversion.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * math::ln(1.0 - self.uniform())
    }

    /// Normal, by Marsaglia's polar method (the second value of each pair is discarded, so that
    /// one call never depends on an earlier one's leftovers).
    pub fn normal(&mut self, mean: f64, sd: f64) -> f64 {
        loop {
            let (u, v) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let s = u * u + v * v;
            if s > 0.0 && s < 1.0 {
                return mean + sd * u * (-2.0 * math::ln(s) / s).sqrt();
            }
        }
    }
}

/// The seed of replication `index` under a run's `seed`; replication 0 keeps the seed itself.
pub fn replication_seed(seed: u64, index: u64) -> u64 {
    if index == 0 {
        return seed;
    }
    let mut mix = seed ^ index.wrapping_mul(0xa076_1d64_78bd_642f);
    split_mix(&mut mix)
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_matches_its_reference_vector() {
        // xoshiro256++ from state 1, 2, 3, 4: the authors' reference implementation.
        let mut rng = Rng { state: [1, 2, 3, 4], name: 0 };
        let drawn: Vec<u64> = (0..5).map(|_| rng.next_u64()).collect();
        assert_eq!(
            drawn,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386,
                9_228_616_714_210_784_205
            ]
        );
    }

    #[test]
    fn streams_of_other_names_or_seeds_differ() {
        let first = |seed, name| Rng::named(seed, name).next_u64();
        assert_ne!(first(1, "link/0/loss"), first(1, "link/1/loss"));
        assert_ne!(first(1, "link/0/loss"), first(2, "link/0/loss"));
    }

    #[test]
    fn a_stream_keeps_its_name_under_another_seed() {
        let mut rng = Rng::named(1, "link/0/loss");
        rng.next_u64();
        rng.reseed(2);
        assert_eq!(rng.next_u64(), Rng::named(2, "link/0/loss").next_u64());
    }

    #[test]
    fn samplers_have_their_moments() {
        let mut rng = Rng::named(7, "test/moments");
        let n = 200_000;
        let mean_of = |mut draw: Box<dyn FnMut() -> f64 + '_>| {
            (0..n).map(|_| draw()).sum::<f64>() / f64::from(n)
        };
        assert!((mean_of(Box::new(|| rng.uniform())) - 0.5).abs() < 0.003);
        assert!((mean_of(Box::new(|| rng.exponential(2.0))) - 2.0).abs() < 0.02);
        assert!((mean_of(Box::new(|| rng.normal(3.0, 1.0))) - 3.0).abs() < 0.01);
        assert!((mean_of(Box::new(|| rng.below(10) as f64)) - 4.5).abs() < 0.03);
    }
}
