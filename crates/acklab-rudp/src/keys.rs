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
        let mut open =
            |phase, body: &mut [u8]| self.protection.open(phase, path, number, header, body);
        if bit == self.receiving {
            return open(Phase::Current, body);
        }
        if !newest {
            return open(Phase::Previous, body);
        }
        // The newest of its path can be of either: another path may have brought the present key, or the peer
        // may have changed its key again, because it waits by its own PTO and not by ours.
        if self.previous_until.is_some() {
            let copy = body.to_vec();
            if open(Phase::Previous, body) {
                return true;
            }
            body.copy_from_slice(&copy);
        }
        let opened = open(Phase::Next, body);
        if opened {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protect::Unprotected;

    #[test]
    fn a_key_that_changes_while_the_one_before_the_last_is_kept_is_followed() {
        let keys = || Keys::new(Time::ZERO, Box::new(Unprotected::default()));
        let (mut sender, mut receiver) = (keys(), keys());
        let packet = |sender: &mut Keys, path, number| {
            let mut packet = vec![7; SHORT_HEADER + 100 + TAG];
            sender.seal(path, number, &mut packet);
            let keep = Span::from_secs(30);
            (Sealed { path, number, phase: sender.phase_bit(), newest: true, keep }, packet)
        };
        let mut opens = |(sealed, mut packet): (Sealed, Vec<u8>)| {
            receiver.open(Time::ZERO, &sealed, &mut packet)
                && packet[SHORT_HEADER..SHORT_HEADER + 100] == [7; 100]
        };
        let late = packet(&mut sender, 1, 0);
        for number in 0..5 {
            assert!(opens(packet(&mut sender, 0, number)), "packet {number}");
            sender.update(Time::ZERO);
        }
        assert!(!opens(late), "its key was dropped long ago");
        assert!(opens(packet(&mut sender, 0, 5)));
        let late = packet(&mut sender, 1, 1);
        sender.update(Time::ZERO);
        assert!(opens(packet(&mut sender, 0, 6)));
        assert!(opens(late), "the newest of its path, under the key before");
    }
}
