//! Which packets the wire loses: independently, in bursts (Gilbert 1960, Elliott 1963), or by list.
//!
//! Losses happen after queue and transmitter, so a lost packet has used the link. The Gilbert-Elliott
//! chain takes one step per packet and starts in the good state, with netem's four parameters. An
//! outage loses every packet whose transmission begins in it; the queue is served meanwhile.

use super::select::Packets;
use crate::packet::Packet;
use crate::rng::Rng;
use crate::time::Time;

/// Losses on the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// How the lost ones are chosen.
    pub model: LossModel,
    /// Among which packets.
    pub packets: Packets,
}

/// How lost packets are chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum LossModel {
    /// Each with the same probability.
    Independent(f64),
    /// By a chain of a good and a bad state.
    GilbertElliott(GilbertElliott),
    /// These, counted from 0 among the packets looked at.
    List(Vec<u64>),
}

/// A chain with a good and a bad state, one step per packet, and a loss probability in each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// p: probability of going from good to bad.
    pub to_bad: f64,
    /// r: probability of going from bad to good; without losses in the good state and with certain
    /// loss in the bad one, 1/r is the mean length of a burst.
    pub to_good: f64,
    /// 1-h: probability of a loss in the bad state.
    pub loss_in_bad: f64,
    /// 1-k: probability of a loss in the good state.
    pub loss_in_good: f64,
}

impl GilbertElliott {
    /// Gilbert's simple chain: all lost in the bad state, none in the good one.
    pub const fn simple(to_bad: f64, to_good: f64) -> Self {
        Self { to_bad, to_good, loss_in_bad: 1.0, loss_in_good: 0.0 }
    }

    /// The share of packets lost in the long run.
    pub fn stationary_loss(&self) -> f64 {
        let bad = self.to_bad / (self.to_bad + self.to_good);
        bad * self.loss_in_bad + (1.0 - bad) * self.loss_in_good
    }
}

/// A time in which nothing gets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// From then on.
    pub from: Time,
    /// Until just before then.
    pub until: Time,
}

/// Decides for packet after packet.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    loss: Loss,
    pub(super) rng: Rng,
    bad: bool,
    seen: u64,
}

impl Losses {
    pub(super) fn new(mut loss: Loss, rng: Rng) -> Self {
        if let LossModel::List(indices) = &mut loss.model {
            indices.sort_unstable();
        }
        Self { loss, rng, bad: false, seen: 0 }
    }

    pub(super) fn takes(&mut self, packet: &Packet) -> bool {
        if !self.loss.packets.include(packet) {
            return false;
        }
        self.seen += 1;
        match &self.loss.model {
            LossModel::Independent(probability) => self.rng.chance(*probability),
            LossModel::List(indices) => indices.binary_search(&(self.seen - 1)).is_ok(),
            LossModel::GilbertElliott(chain) => {
                let (probability, leave) = if self.bad {
                    (chain.loss_in_bad, chain.to_good)
                } else {
                    (chain.loss_in_good, chain.to_bad)
                };
                let lost = self.rng.chance(probability);
                self.bad ^= self.rng.chance(leave);
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Addr, Body, Ecn};

    fn datagram() -> Packet {
        let (src, dst) = (Addr::default(), Addr::default());
        let body = Body::Datagram { len: 1, words: [0; 2] };
        Packet { src, dst, ecn: Ecn::NotEct, returned: false, body }
    }

    fn losses(model: LossModel, n: usize) -> Vec<bool> {
        let loss = Loss { model, packets: Packets::All };
        let mut losses = Losses::new(loss, Rng::named(5, "link/0/loss"));
        (0..n).map(|_| losses.takes(&datagram())).collect()
    }

    #[test]
    fn bursts_have_their_share_and_mean_length() {
        let chain = GilbertElliott::simple(0.01, 0.25);
        let n = 400_000;
        let lost = losses(LossModel::GilbertElliott(chain), n);
        let share = lost.iter().filter(|&&lost| lost).count() as f64 / n as f64;
        // The variance of the mean of a two-state chain with correlation rho = 1 - p - r.
        let (expect, rho) = (chain.stationary_loss(), 1.0 - 0.01 - 0.25);
        let sd = (expect * (1.0 - expect) * (1.0 + rho) / (1.0 - rho) / n as f64).sqrt();
        assert!((share - expect).abs() < 5.0 * sd, "{share} for {expect}");
        let bursts: Vec<usize> =
            lost.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect();
        let mean = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
        // Lengths are geometric with success 0.25: mean 4, variance 12.
        let sd = (12.0 / bursts.len() as f64).sqrt();
        assert!((mean - 4.0).abs() < 5.0 * sd, "{mean} over {} bursts", bursts.len());
    }

    #[test]
    fn both_states_of_the_full_chain_lose_with_their_own_probability() {
        let chain =
            GilbertElliott { to_bad: 0.05, to_good: 0.2, loss_in_bad: 0.6, loss_in_good: 0.1 };
        let n = 400_000;
        let lost = losses(LossModel::GilbertElliott(chain), n);
        let share = lost.iter().filter(|&&lost| lost).count() as f64 / n as f64;
        // 0.2 * 0.6 + 0.8 * 0.1; the bound is that of a fully correlated chain of states.
        assert!((chain.stationary_loss() - 0.2).abs() < 1e-12);
        let sd = (0.16 * (1.0 + 0.75) / (1.0 - 0.75) / f64::from(n as u32)).sqrt();
        assert!((share - 0.2).abs() < 5.0 * sd, "{share}");
    }

    #[test]
    fn a_list_loses_exactly_those_listed() {
        let lost = losses(LossModel::List(vec![7, 0, 3]), 10);
        let indices: Vec<usize> = (0..10).filter(|&i| lost[i]).collect();
        assert_eq!(indices, [0, 3, 7]);
    }
}
