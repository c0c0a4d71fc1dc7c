//! Packets that arrive out of order ([`Reordering`]), twice ([`Duplication`]) or damaged
//! ([`Corruption`]).
//!
//! All of it happens on the wire. netem does most of it in front of its queue and lets reordered packets
//! skip the delay; here a chosen packet is ahead or late by a stated time, so that the extent of the
//! disorder does not hang on the delay. A copy arrives right behind its original and occupies nothing.
//! A damaged packet crosses the link and is dropped at the far end, where its checksum fails.

use super::select::{Coin, Packets, Share};
use crate::math;
use crate::packet::Packet;
use crate::rng::Rng;
use crate::time::Span;

/// Some packets overtake others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// How many are chosen.
    pub share: Share,
    /// Only every `gap`-th packet may be chosen; 0 and 1: every one (netem's gap).
    pub gap: u32,
    /// What happens to the chosen ones.
    pub shift: Shift,
    /// Among which packets.
    pub packets: Packets,
}

/// Which way a reordered packet moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// It is ahead of the others by this much, but never before it has left the transmitter.
    Ahead(Span),
    /// It is late by this much, and the others do not wait for it.
    Late(Span),
}

/// Some packets arrive twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Duplication {
    /// How many.
    pub share: Share,
    /// Among which packets.
    pub packets: Packets,
}

/// Some packets arrive damaged, which the far end finds out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corruption {
    /// How many.
    pub rate: ErrorRate,
    /// Among which packets.
    pub packets: Packets,
}

/// How often a packet is damaged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorRate {
    /// Probability per packet of any size.
    PerPacket(f64),
    /// Probability per bit, independent: a packet of n bytes survives with (1 - rate)^(8n).
    PerBit(f64),
}

impl ErrorRate {
    /// The probability that `packet` is damaged.
    pub fn of(self, packet: &Packet) -> f64 {
        match self {
            Self::PerPacket(probability) => probability,
            Self::PerBit(rate) => 1.0 - math::pow(1.0 - rate, f64::from(packet.size() * 8)),
        }
    }
}

/// Decides who is shifted.
#[derive(Clone, Debug)]
pub(super) struct Reorderer {
    config: Reordering,
    pub(super) coin: Coin,
    /// Packets since the last chosen one.
    since: u32,
}

impl Reorderer {
    pub(super) fn new(config: Reordering, rng: Rng) -> Self {
        Self { config, coin: Coin::new(config.share, rng), since: 0 }
    }

    pub(super) fn shift(&mut self, packet: &Packet) -> Option<Shift> {
        if !self.config.packets.include(packet) {
            return None;
        }
        self.since += 1;
        if self.since < self.config.gap || !self.coin.flip() {
            return None;
        }
        self.since = 0;
        Some(self.config.shift)
    }
}

/// Decides who is copied.
#[derive(Clone, Debug)]
pub(super) struct Copier {
    packets: Packets,
    pub(super) coin: Coin,
}

impl Copier {
    pub(super) fn new(config: Duplication, rng: Rng) -> Self {
        Self { packets: config.packets, coin: Coin::new(config.share, rng) }
    }

    pub(super) fn copies(&mut self, packet: &Packet) -> bool {
        self.packets.include(packet) && self.coin.flip()
    }
}

/// Decides who is damaged.
#[derive(Clone, Debug)]
pub(super) struct Corruptor {
    config: Corruption,
    pub(super) rng: Rng,
}

impl Corruptor {
    pub(super) fn new(config: Corruption, rng: Rng) -> Self {
        Self { config, rng }
    }

    pub(super) fn damages(&mut self, packet: &Packet) -> bool {
        self.config.packets.include(packet) && self.rng.chance(self.config.rate.of(packet))
    }
}
