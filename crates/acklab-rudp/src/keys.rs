//! The keys of an open connection and their updates (docs/rudp.md section 3, "Key update").

use super::protect::{Phase, Protection, TAG};
use crate::wire::SHORT_HEADER;
use acklab_core::time::{Span, Time};

/// More packets that do not authenticate end the connection (RFC 9001 section 6.6, ChaCha20).
pub(super) const FORGED: u64 = 1 << 36;

/// A packet that arrived, by its header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sealed {
    pub(super) path: u8,
    pub(super) number: u64,
    /// The phase bit.
    pub(super) phase: bool,
    /// Its number is the largest of its path.
    pub(super) newest: bool,
    /// How long the key before the one that it may bring is kept.
    pub(super) keep: Span,
}

/// What seals and opens packets, and which of its keys is in force.
pub(super) struct Keys {
    protection: Box<dyn Protection>,
    /// The bit in the header of what leaves, and of what is expected to arrive.
    sending: bool,
    receiving: bool,
    /// When the previous receiving key is dropped.
    previous_until: Option<Time>,
    sent: u64,
    /// A packet under the present sending key was acknowledged.
    confirmed: bool,
    updated_at: Time,
}

impl Keys {
    pub(super) fn new(now: Time, protection: Box<dyn Protection>) -> Self {
        Self {
            protection,
            sending: false,
            receiving: false,
            previous_until: None,
            sent: 0,
            confirmed: false,
            updated_at: now,
        }
    }

    /// Whether the sending key has served for `most` packets and may change: the present one has shown
    /// itself in use for `least`.
    pub(super) fn must_update(&self, now: Time, most: u64, least: Span) -> bool {
        self.sent >= most && self.confirmed && now.since(self.updated_at) >= least
    }

    pub(super) fn update(&mut self, now: Time) {
        self.protection.update_sending();
        self.sending = !self.sending;
        self.sent = 0;
        self.confirmed = false;
        self.updated_at = now;
    }

    /// The phase bit of what leaves.
    pub(super) const fn phase_bit(&self) -> bool {
        self.sending
    }

    /// A packet sent under the present key was acknowledged.
    pub(super) const fn on_confirmed(&mut self) {
        self.confirmed = true;
    }

    /// Seals a packet: a header, frames and room for the tag.
    pub(super) fn seal(&mut self, path: u8, number: u64, packet: &mut [u8]) {
        let (header, body) = packet.split_at_mut(SHORT_HEADER);
        self.protection.seal(path, number, header, body);
        self.sent += 1;
    }

    /// Opens a packet. The frames end [`TAG`] bytes before the packet's end.
    pub(super) fn open(&mut self, now: Time, sealed: &Sealed, packet: &mut [u8]) -> bool {
        let Sealed { path, number, phase: bit, newest, keep } = *sealed;
        if packet.len() < SHORT_HEADER + TAG {
            return false;
        }
        if self.previous_until.is_some_and(|until| now >= until) {
            self.previous_until = None;
            self.protection.forget_previous();
        }
        let (header, body) = packet.split_at_mut(SHORT_HEADER);
        let phase = if bit == self.receiving {
            Phase::Current
        } else if newest && self.previous_until.is_none() {
            Phase::Next
        } else {
            Phase::Previous
        };
        let opened = self.protection.open(phase, path, number, header, body);
        if opened && phase == Phase::Next {
            self.protection.update_receiving();
            self.receiving = bit;
            self.previous_until = Some(now + keep);
        }
        opened
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("sent", &self.sent).finish_non_exhaustive()
    }
}
