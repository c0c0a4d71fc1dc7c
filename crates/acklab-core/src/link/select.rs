//! Which packets an impairment touches ([`Packets`]), and correlated coins ([`Share`]).

use crate::packet::{Body, Packet};
use crate::rng::Rng;
use crate::segment::Flags;

/// Which packets an impairment looks at; the others pass without a draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packets {
    /// All.
    #[default]
    All,
    /// TCP segments without payload, SYN, FIN or RST.
    PureAcks,
    /// TCP segments with payload, and datagrams.
    Data,
}

impl Packets {
    /// Whether `packet` is among them.
    pub fn include(self, packet: &Packet) -> bool {
        match (self, &packet.body) {
            (Self::All, _) | (Self::Data, Body::Datagram { .. } | Body::Stored { .. }) => true,
            (Self::PureAcks, Body::Datagram { .. } | Body::Stored { .. }) => false,
            (Self::Data, Body::Tcp(tcp)) => tcp.payload_len > 0,
            (Self::PureAcks, Body::Tcp(tcp)) => {
                tcp.payload_len == 0
                    && ![Flags::SYN, Flags::FIN, Flags::RST].iter().any(|&bit| tcp.flags.has(bit))
            }
        }
    }
}

/// A share of packets, with a memory: with probability `correlation` a decision repeats the last one,
/// otherwise it is a fresh coin. The share holds exactly and the correlation of neighbours is
/// `correlation`; netem's way, a moving average of two uniform numbers, changes the share with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Probability of a packet, 0 to 1.
    pub share: f64,
    /// Correlation of successive decisions, 0 to 1.
    pub correlation: f64,
}

impl Share {
    /// Independent decisions.
    pub const fn independent(share: f64) -> Self {
        Self { share, correlation: 0.0 }
    }
}

/// Flips the coins of a [`Share`].
#[derive(Clone, Debug)]
pub(super) struct Coin {
    share: Share,
    last: Option<bool>,
    pub(super) rng: Rng,
}

impl Coin {
    pub(super) fn new(share: Share, rng: Rng) -> Self {
        Self { share, last: None, rng }
    }

    pub(super) fn flip(&mut self) -> bool {
        let Share { share, correlation } = self.share;
        if let Some(last) = self.last
            && correlation > 0.0
            && self.rng.chance(correlation)
        {
            return last;
        }
        let drawn = self.rng.chance(share);
        self.last = Some(drawn);
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correlated_coin_keeps_its_share_and_has_its_correlation() {
        let share = Share { share: 0.3, correlation: 0.5 };
        let mut coin = Coin::new(share, Rng::named(1, "test/coin"));
        let n = 100_000_usize;
        let flips: Vec<f64> = (0..n).map(|_| f64::from(u8::from(coin.flip()))).collect();
        let mean = flips.iter().sum::<f64>() / n as f64;
        // Five standard deviations of a mean with correlation 0.5^k: sqrt(0.21 * 3 / n).
        assert!((mean - 0.3).abs() < 5.0 * (0.21 * 3.0 / n as f64).sqrt(), "{mean}");
        let product = flips.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>();
        let correlation = product / n as f64 / (mean * (1.0 - mean));
        assert!((correlation - 0.5).abs() < 0.02, "{correlation}");
    }
}
