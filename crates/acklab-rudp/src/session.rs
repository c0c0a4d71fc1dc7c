//! What a finished handshake leaves behind: keys, the peer's id and what the peer said of itself.

use super::keys::{FORGED, Keys, Sealed};
use super::protect::{Entropy, Protection};
use crate::wire::{Parameters, SHORT_HEADER, ShortHeader, Writer};
use acklab_core::time::{Span, Time};

/// The state that both ends share.
#[derive(Debug)]
pub(super) struct Session {
    keys: Keys,
    /// The id under which the peer wants to be addressed.
    remote_id: u64,
    peer: Parameters,
    /// Packets that did not authenticate.
    forged: u64,
}

impl Session {
    pub(super) fn new(
        now: Time,
        protection: Box<dyn Protection>,
        remote_id: u64,
        peer: Parameters,
    ) -> Self {
        Self { keys: Keys::new(now, protection), remote_id, peer, forged: 0 }
    }

    pub(super) const fn remote_id(&self) -> u64 {
        self.remote_id
    }

    pub(super) const fn peer(&self) -> &Parameters {
        &self.peer
    }

    /// Opens a datagram in place; whether it is authentic.
    pub(super) fn open(&mut self, now: Time, sealed: &Sealed, datagram: &mut [u8]) -> bool {
        let opened = self.keys.open(now, sealed, datagram);
        self.forged += u64::from(!opened);
        opened
    }

    /// Whether more packets did not authenticate than the keys can bear.
    pub(super) const fn is_worn(&self) -> bool {
        self.forged >= FORGED
    }

    /// Writes the header of packet `number` of a path and seals it.
    pub(super) fn seal(&mut self, path: u8, number: u64, packet: &mut [u8]) {
        let header = ShortHeader {
            key_phase: self.keys.phase_bit(),
            connection: self.remote_id,
            path,
            number32: number as u32,
        };
        header.emit(&mut Writer::new(&mut packet[..SHORT_HEADER]));
        self.keys.seal(path, number, packet);
    }

    /// A packet sent under the present key was acknowledged.
    pub(super) const fn on_confirmed(&mut self) {
        self.keys.on_confirmed();
    }

    /// Changes the sending key if it has served for `most` packets and the present one has shown itself in
    /// use for `least`; whether it did.
    pub(super) fn update_keys(&mut self, now: Time, most: u64, least: Span) -> bool {
        let due = self.keys.must_update(now, most, least);
        if due {
            self.keys.update(now);
        }
        due
    }
}

/// A connection id that cannot be guessed.
pub(super) fn random_id(entropy: &mut dyn Entropy) -> u64 {
    let mut bytes = [0; 8];
    entropy.fill(&mut bytes);
    // Zero stands for "none yet" in a client's INITIAL.
    u64::from_be_bytes(bytes).max(1)
}
