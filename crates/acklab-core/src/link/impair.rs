//! All that a wire may do to packets ([`Impairments`]), and the machine that does it.
//!
//! Each impairment draws from its own stream, `link/INDEX/NAME`, so that switching one on changes
//! no other's draws. Independent losses among all packets are the link's own affair; without anything
//! else it has no such machine and pays for one test per packet.

use super::disorder::{Copier, Corruption, Corruptor, Duplication, Reorderer, Reordering, Shift};
use super::loss::{Loss, LossModel, Losses, Outage};
use super::select::Packets;
use crate::packet::Packet;
use crate::rng::Rng;
use crate::time::Time;

/// What a wire does to packets; by default nothing. A link is one direction, so each direction has its
/// own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impairments {
    /// Losses.
    pub loss: Option<Loss>,
    /// Times in which everything is lost.
    pub outages: Vec<Outage>,
    /// Damage.
    pub corruption: Option<Corruption>,
    /// Overtaking.
    pub reordering: Option<Reordering>,
    /// Copies.
    pub duplication: Option<Duplication>,
}

impl Impairments {
    /// Takes out the probability of independent losses among all packets, which the link draws without
    /// any machine.
    pub(super) fn take_plain_loss(&mut self) -> f64 {
        match self.loss {
            Some(Loss { model: LossModel::Independent(probability), packets: Packets::All }) => {
                self.loss = None;
                probability
            }
            _ => 0.0,
        }
    }

    /// Whether packets may arrive in another order or number than they left the transmitter.
    pub(super) const fn disturbs_order(&self) -> bool {
        self.reordering.is_some() || self.duplication.is_some()
    }
}

/// What the wire does to one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fate {
    /// It arrives.
    #[default]
    Arrives,
    /// It never does.
    Lost,
    /// It does, damaged.
    Corrupted,
}

/// What becomes of one packet, and when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passage {
    pub(super) fate: Fate,
    pub(super) shift: Option<Shift>,
    pub(super) copied: bool,
}

/// Decides for packet after packet.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    losses: Option<Losses>,
    outages: Vec<Outage>,
    corruptor: Option<Corruptor>,
    reorderer: Option<Reorderer>,
    copier: Option<Copier>,
    /// Packets may overtake or be copied.
    pub(super) disturbs_order: bool,
}

impl Wire {
    pub(super) fn new(config: Impairments, seed: u64, name: &str) -> Self {
        let stream = |what| Rng::named(seed, &format!("{name}/{what}"));
        Self {
            disturbs_order: config.disturbs_order(),
            losses: config.loss.map(|loss| Losses::new(loss, stream("loss"))),
            outages: config.outages,
            corruptor: config.corruption.map(|config| Corruptor::new(config, stream("corruption"))),
            reorderer: config.reordering.map(|config| Reorderer::new(config, stream("reordering"))),
            copier: config.duplication.map(|config| Copier::new(config, stream("duplication"))),
        }
    }

    /// Every impairment draws for every packet, lost or not, so that one's decisions do not move
    /// another's.
    pub(super) fn pass(&mut self, start: Time, packet: &Packet) -> Passage {
        let lost = self.losses.as_mut().is_some_and(|losses| losses.takes(packet));
        let down = self.outages.iter().any(|outage| outage.from <= start && start < outage.until);
        let damaged = self.corruptor.as_mut().is_some_and(|corruptor| corruptor.damages(packet));
        let fate = match (lost || down, damaged) {
            (true, _) => Fate::Lost,
            (false, true) => Fate::Corrupted,
            (false, false) => Fate::Arrives,
        };
        let shift = self.reorderer.as_mut().and_then(|reorderer| reorderer.shift(packet));
        let copied = self.copier.as_mut().is_some_and(|copier| copier.copies(packet));
        Passage { fate, shift, copied }
    }

    /// Draws as under another seed from now on.
    pub(super) fn reseed(&mut self, seed: u64) {
        let losses = self.losses.as_mut().map(|losses| &mut losses.rng);
        let corruptor = self.corruptor.as_mut().map(|corruptor| &mut corruptor.rng);
        let reorderer = self.reorderer.as_mut().map(|reorderer| &mut reorderer.coin.rng);
        let copier = self.copier.as_mut().map(|copier| &mut copier.coin.rng);
        for rng in [losses, corruptor, reorderer, copier].into_iter().flatten() {
            rng.reseed(seed);
        }
    }
}
